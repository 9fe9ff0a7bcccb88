//! Programs that list or print the content of compressed files.

use super::{EMPTY_OPTION_TABLE, OptionTable};
use crate::word_list::WordList;

/// The programs of this family. `tar` has a grammar of its own in [`crate::grammars`], because it lists or extracts
/// depending on its mode.
pub(crate) const ARCHIVE_TABLES: &[OptionTable] = &[
    OptionTable {
        names: &["zcat", "bzcat", "xzcat", "zstdcat"],
        flags: "v",
        hazards: WordList("-o --rm --files --files0 -T -D --output-dir-flat --output-dir-mirror"),
        ..EMPTY_OPTION_TABLE
    },
    OptionTable { names: &["zipinfo"], flags: "12smlvhtTzCM", ..EMPTY_OPTION_TABLE },
];
