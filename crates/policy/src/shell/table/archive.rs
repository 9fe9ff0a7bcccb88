//! Programs that list or print what is packed.

use super::{ENTRY, Entry};

/// The family. `tar` is not here: whether it only lists depends on its mode, see [`super::super::grammars`].
pub(in super::super) const ENTRIES: &[Entry] = &[
    Entry {
        names: &["zcat", "bzcat", "xzcat", "zstdcat"],
        flags: "v",
        hazards: &[
            "-o",
            "--rm",
            "--files",
            "--files0",
            "-T",
            "-D",
            "--output-dir-flat",
            "--output-dir-mirror",
        ],
        ..ENTRY
    },
    Entry { names: &["zipinfo"], flags: "12smlvhtTzCM", ..ENTRY },
];
