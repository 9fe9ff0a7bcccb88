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
mod clock;
mod files;
mod hookhttp;
mod hookproc;
mod resolve;
mod scratch;
mod terminal;

pub use ambient::{Ambient, Stream, is_terminal};
pub use appendlog::{AppendLog, Segment};
pub use clock::{fresh_id, now_millis};
pub use files::{
    Entry, FileProblem, Files, Reach, Stamp, names_in, open_named_file, opens_beneath, read_named_bytes,
    read_settings_text, replace_own, stamp, write_private,
};
pub use hookhttp::{HookPost, HookReply, PostProblem, post_hook};
pub use hookproc::{HookCommand, HookProblem, HookProgram, HookRun, HookStep, run_hook};
pub use resolve::resolve;
pub use scratch::Scratch;
pub use terminal::Terminal;
