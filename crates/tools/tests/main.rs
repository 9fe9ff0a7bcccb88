//! The built-in tools through the real gate, on real files.

#![expect(clippy::disallowed_methods, reason = "tests look at real files")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]
#![expect(
    clippy::string_slice,
    clippy::print_stdout,
    reason = "tests cut texts they know, and tell their figures"
)]

#[path = "main/files_room.rs"]
mod files_room;

#[path = "main/files_edit.rs"]
mod files_edit;
#[path = "main/files_notebook.rs"]
mod files_notebook;
#[cfg(feature = "pdf")]
#[path = "main/files_pdf.rs"]
mod files_pdf;
#[path = "main/files_properties.rs"]
mod files_properties;
#[path = "main/files_race.rs"]
mod files_race;
#[path = "main/files_read.rs"]
mod files_read;
#[path = "main/files_torture.rs"]
mod files_torture;
#[path = "main/files_undo.rs"]
mod files_undo;
#[path = "main/files_watch.rs"]
mod files_watch;
#[path = "main/files_write.rs"]
mod files_write;
