//! Files, reached only through what a call was granted.

mod open;
mod own;
mod reach;

pub(crate) use open::open_real;
pub use open::{FileProblem, opens_beneath};
pub use own::{make_private_dir, open_named_file, read_settings_text, write_private};
pub use reach::{Entry, Files, Reach};
