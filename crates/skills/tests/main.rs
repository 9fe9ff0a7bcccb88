//! Tests of the readers: public files, properties over any text, seeds of the fuzz target.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test fails loudly, and reads its own files"
)]

mod main {
    mod properties;
    mod public_files;
}
