//! Programs that list or print what is packed.

use super::{EMPTY_OPTION_TABLE, OptionTable};

/// The family. `tar` is not here: whether it only lists depends on its mode, see [`super::super::grammars`].
pub(in super::super) const OPTION_TABLES: &[OptionTable] = &[
    OptionTable {
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
        ..EMPTY_OPTION_TABLE
    },
    OptionTable { names: &["zipinfo"], flags: "12smlvhtTzCM", ..EMPTY_OPTION_TABLE },
];
