//! Hands: the only crate that touches files, processes and the network.
//!
//! The rest of toolgate names paths; this crate says what is really there ([`resolve`]) and opens it without being
//! led astray ([`Files`]).
//! A path is resolved once, link by link, the way the kernel would; policy judges the result; and what is then
//! opened is that result, with links forbidden on the whole way.
//! A link swapped in between judgement and use therefore makes the open fail instead of leading elsewhere.
//!
//! The process's own working directory, environment and standard places are read in [`AmbientEnvironment::read`] and nowhere
//! else.
//!
//! ```
//! use toolgate_os::resolve;
//! use toolgate_proto::{AbsPath, EntryKind};
//!
//! let fact = resolve(&AbsPath::new("/usr/../no-such-file").unwrap());
//! assert_eq!(fact.real, AbsPath::new("/no-such-file").unwrap());
//! assert_eq!(fact.kind, EntryKind::Missing);
//! ```

#![expect(clippy::disallowed_methods, reason = "this is the crate that may")]

mod ambient;
mod appendlog;
mod awake;
mod clock;
mod expand;
mod files;
mod hard_links;
mod hookhttp;
mod hookproc;
#[cfg(feature = "http")]
mod http_client;
mod journal;
mod listen;
pub mod process;
mod proxy;
mod resolve;
pub mod sandbox;
mod scratch;
pub mod search;
mod serverproc;
mod spill;
mod stdio;
mod terminal;
mod threads;
mod watch;

pub use ambient::{AmbientEnvironment, Stream, is_terminal};
pub use appendlog::{AppendLog, LogEnd, Segment};
pub use awake::{BackgroundWorkGuard, spin_for_input};
pub use clock::{fresh_id, now_millis, random_bytes};
pub use expand::{NamePattern, expand_pattern};
#[cfg(any(test, feature = "faults"))]
pub use files::faults;
pub use files::{
    Access, ChangeProblem, ContentCheck, Entry, FileProblem, Files, Hash, Held, Hidden, Made, Mark, OwnLock,
    Reach, SecretFileMatcher, Stamp, Version, blocking, is_executable, is_system_file,
    list_names_with_suffix, lock_state_file, make_private_dir, open_named_file, read_named_bytes,
    read_settings_text, replace_state_file, stamp, supports_openat2, write_private_file,
};
pub use hard_links::find_hard_links;
pub use hookhttp::{HookHttpError, HookHttpResponse, HookPost, post_hook};
pub use hookproc::{HookCommand, HookProcessError, HookProcessOutput, HookProgram, HookStep, run_hook};
#[cfg(feature = "http")]
pub use http_client::{HttpClient, http_client};
pub use journal::{
    Among, Change, ChangeRecorder, Conflict, FileRestore, How, Journal, JournalLimits, Kept, Moved, Plan,
    State, Undo, UndoProblem, UndoSelector,
};
pub use listen::{listen_tcp, listen_unix};
pub use proxy::{HostDecision, RefusedHost, SandboxProxy};
pub use resolve::{resolve, resolve_all, resolve_tracking_parent_steps};
pub use scratch::Scratch;
pub use serverproc::{Launch, ServerProcess, server_depth};
pub use spill::{SpillCleanupReport, SpillLimits, SpillStore};
pub use stdio::{ByteSink, ByteSource, standard_streams};
pub use terminal::ControllingTerminal;
pub use threads::{beside, cores};
pub use watch::FileWatcher;
