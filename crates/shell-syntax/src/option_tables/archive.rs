//! Programs that list or print the content of compressed files.

use super::{EMPTY_OPTION_TABLE, OptionTable};
use crate::word_list::WordList;

/// Programs that decompress to standard output. Most are other names of programs that replace files, whose options to
/// write a file or to remove the original they accept too.
const ZCAT: OptionTable = OptionTable {
    names: &["zcat", "bzcat", "xzcat", "zstdcat"],
    flags: "v",
    hazards: WordList("-o --rm --files --files0 -T -D --output-dir-flat --output-dir-mirror"),
    ..EMPTY_OPTION_TABLE
};

/// The programs of this family. `tar` has a grammar of its own in [`crate::grammars`], because it lists or extracts
/// depending on its mode.
pub(crate) const ARCHIVE_TABLES: &[OptionTable] =
    &[ZCAT, OptionTable { names: &["zipinfo"], flags: "12smlvhtTzCM", ..EMPTY_OPTION_TABLE }];
