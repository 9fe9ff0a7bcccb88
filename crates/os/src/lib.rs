//! Hands: the only crate that touches files, processes and the network.
//!
//! The rest of toolgate names paths; this crate says what is really there ([`resolve`]) and opens it without being
//! led astray ([`Files`]).
//! A path is resolved once, link by link, the way the kernel would; policy judges the result; and what is then
//! opened is that result, with links forbidden on the whole way.
//! A link swapped in between judgement and use therefore makes the open fail instead of leading elsewhere.
//!
//! The process's own working directory, environment and standard places are read in [`Ambient::read`] and nowhere
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

pub use ambient::{Ambient, Stream, is_terminal};
pub use appendlog::{AppendLog, LogEnd, Segment};
pub use awake::{Elsewhere, stay_awake};
pub use clock::{fresh_id, now_millis, random_bytes};
pub use expand::{NamePattern, expand_pattern};
#[cfg(any(test, feature = "faults"))]
pub use files::faults;
pub use files::{
    Access, ChangeProblem, ContentCheck, Entry, FileProblem, Files, Hash, Held, Hidden, Made, Mark, OwnLock,
    Reach, Secrets, Stamp, Version, blocking, is_executable, is_system_file, lock_own, make_private_dir,
    names_in, open_named_file, opens_beneath, read_named_bytes, read_settings_text, replace_own, stamp,
    write_private,
};
pub use hard_links::find_hard_links;
pub use hookhttp::{HookPost, HookReply, PostProblem, post_hook};
pub use hookproc::{HookCommand, HookProblem, HookProgram, HookRun, HookStep, run_hook};
#[cfg(feature = "http")]
pub use http_client::{HttpClient, http_client};
pub use journal::{
    Among, Change, Conflict, How, Journal, JournalLimits, Kept, Moved, Plan, Recorder, Restore, State, Undo,
    UndoProblem, Which,
};
pub use listen::{listen_tcp, listen_unix};
pub use proxy::{HostRule, Proxy, RefusedHost};
pub use resolve::{resolve, resolve_all, resolve_noting_turns};
pub use scratch::Scratch;
pub use serverproc::{Launch, ServerProcess, server_depth};
pub use spill::{Spill, SpillLimits, Swept};
pub use stdio::{ByteSink, ByteSource, standard_streams};
pub use terminal::Terminal;
pub use threads::{beside, cores};
pub use watch::FileWatcher;
