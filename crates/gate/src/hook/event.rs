//! The events for which hooks run. One line for each; a new one is a line here and a place that raises it.

use std::fmt;

macro_rules! hook_events {
    ($( $(#[$doc:meta])* $name:ident, )+) => {
        /// An event for which hooks run.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum HookEvent {
            $( $(#[$doc])* $name, )+
        }

        impl HookEvent {
            /// Every event.
            pub const ALL: &[Self] = &[ $( Self::$name, )+ ];

            /// Its name in settings, in records and in the input of hooks.
            pub fn as_str(self) -> &'static str {
                match self {
                    $( Self::$name => stringify!($name), )+
                }
            }
        }
    };
}

hook_events! {
    /// Before a call is judged.
    PreToolUse,
    /// Before the user is asked.
    PermissionRequest,
    /// After a call was denied.
    PermissionDenied,
    /// After a tool succeeded.
    PostToolUse,
    /// After a tool failed.
    PostToolUseFailure,
    /// After a batch of calls.
    PostToolBatch,
    /// A task was added to a list; a denial removes it again.
    TaskCreated,
    /// A task is about to be completed; a denial keeps it open.
    TaskCompleted,
}

impl fmt::Display for HookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
