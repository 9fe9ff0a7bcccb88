//! The moments at which hooks are told. One line for each; a new one is a line here and a place that tells it.

use std::fmt;

macro_rules! moments {
    ($( $(#[$doc:meta])* $name:ident, )+) => {
        /// A moment at which hooks are told.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum HookEvent {
            $( $(#[$doc])* $name, )+
        }

        impl HookEvent {
            /// Every moment.
            pub const ALL: &[Self] = &[ $( Self::$name, )+ ];

            /// Its name in settings, records and what a hook is told.
            pub fn as_str(self) -> &'static str {
                match self {
                    $( Self::$name => stringify!($name), )+
                }
            }
        }
    };
}

moments! {
    /// Before a call is judged.
    PreToolUse,
    /// Before a person is asked.
    PermissionRequest,
    /// After a call was denied.
    PermissionDenied,
    /// After a tool succeeded.
    PostToolUse,
    /// After a tool failed.
    PostToolUseFailure,
    /// After a batch of calls.
    PostToolBatch,
}

impl fmt::Display for HookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
