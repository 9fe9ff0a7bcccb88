//! Files, reached only through what a call was granted.

mod open;
mod own;
mod reach;

pub use open::{FileProblem, opens_beneath};
pub use own::{
    Stamp, names_in, open_named_file, read_named_bytes, read_settings_text, replace_own, stamp, write_private,
};
pub use reach::{Entry, Files, Reach};
