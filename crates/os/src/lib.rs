//! Hands: the only crate that touches files, processes and the network.
//!
//! The rest of toolgate names paths; this crate says what is really there ([`resolve`]) and opens it without being
//! led astray ([`GrantedFiles`]).
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
mod append_log;
mod clock;
mod expand;
mod files;
mod hard_links;
mod hook_http;
mod hook_process;
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
mod server_process;
mod spill;
mod spin_wait;
mod stdio;
mod terminal;
mod threads;
mod watch;

pub use ambient::{AmbientEnvironment, StandardStream, is_terminal};
pub use append_log::{AppendLog, LogEnd, LogSegment};
pub use clock::{generate_id, now_millis, random_bytes};
pub use expand::{ComponentPattern, expand_pattern};
#[cfg(any(test, feature = "faults"))]
pub use files::faults;
pub use files::{
    AppliedFileChange, ChangeProblem, ContentCheck, ContentHash, DirectoryEntry, FileFingerprint,
    FileProblem, FileSnapshot, FileStamp, GrantedAccess, GrantedFiles, HiddenFileFilter, LockedFile,
    PathGrant, SecretFileMatcher, StateFileLock, is_executable, is_system_file, list_names_with_suffix,
    lock_state_file, make_private_dir, open_named_file, read_file_stamp, read_named_bytes,
    read_settings_text, replace_state_file, run_blocking, supports_openat2, write_private_file,
};
pub use hard_links::find_hard_links;
pub use hook_http::{HookHttpError, HookHttpRequest, HookHttpResponse, post_hook};
pub use hook_process::{HookCommand, HookProcessError, HookProcessOutput, HookProgram, HookStep, run_hook};
#[cfg(feature = "http")]
pub use http_client::{HttpClient, http_client};
pub use journal::{
    ChangeRecorder, ChangeState, ConflictHandling, ContentDescriptor, FileRestore, Journal, JournalChange,
    JournalLimits, UndoAvailability, UndoConflict, UndoFilter, UndoOutcome, UndoPlan, UndoProblem,
    UndoSelector,
};
pub use listen::{listen_tcp, listen_unix};
pub use proxy::{HostDecision, RefusedHost, SandboxProxy};
pub use resolve::{resolve, resolve_all, resolve_tracking_parent_steps};
pub use scratch::ScratchDirectory;
pub use server_process::{ServerLaunch, ServerProcess, server_depth};
pub use spill::{SpillCleanupReport, SpillLimits, SpillStore};
pub use spin_wait::{BackgroundWorkGuard, spin_for_input};
pub use stdio::{ByteSink, ByteSource, standard_streams};
pub use terminal::ControllingTerminal;
pub use threads::{available_cores, try_spawn_scoped};
pub use watch::FileWatcher;
