//! Programs that search in files.
//!
//! `find` has a grammar of its own in [`crate::grammars`].

use super::{EMPTY_OPTION_TABLE, OperandKind, OptionTable};
use crate::word_list::WordList;

/// The options of `grep`.
const GREP: OptionTable = OptionTable {
    flags: "abcEFGHhIiLlnoPqrRsTUuvVwxyZz",
    valued: "ABCDdem",
    files: "f",
    pattern: "e f regexp file",
    // `-d recurse` is the same as `-r`, and its value may be abbreviated.
    tree: "rRd",
    tree_long: "recursive dereference-recursive directories",
    numbers: true,
    long: "extended-regexp fixed-strings basic-regexp perl-regexp regexp= file< ignore-case \
            no-ignore-case word-regexp line-regexp null-data no-messages invert-match version help \
            max-count= byte-offset line-number line-buffered with-filename no-filename label= \
            only-matching quiet silent binary-files= text directories= devices= recursive \
            dereference-recursive include= exclude= exclude-from< exclude-dir= files-without-match \
            files-with-matches count initial-tab null before-context= after-context= context= color? \
            colour? binary",
    operands: OperandKind::PatternThenFiles,
    ..EMPTY_OPTION_TABLE
};

/// `rg`: `--pre` runs a program for every file, `--hostname-bin` runs one to get the name of the machine, and `-z`
/// starts programs that decompress.
const RG: OptionTable = OptionTable {
    names: &["rg"],
    flags: "abcFHhiILlnNopPqsSuUvVwx0.",
    valued: "ABCdEegjmMrtT",
    files: "f",
    pattern: "e f regexp file files type-list",
    long: "after-context= before-context= binary block-buffered byte-offset case-sensitive color= \
        colors= column context= context-separator= count count-matches crlf debug dfa-size-limit= \
        encoding= engine= field-context-separator= field-match-separator= file< files \
        files-with-matches files-without-match fixed-strings follow glob= glob-case-insensitive \
        heading help hidden hyperlink-format= iglob= ignore-case ignore-file< include-zero \
        invert-match json line-buffered line-number line-regexp max-columns= max-columns-preview \
        max-count= max-depth= max-filesize= mmap multiline multiline-dotall no-config no-filename \
        no-heading no-ignore no-ignore-dot no-ignore-exclude no-ignore-files no-ignore-global \
        no-ignore-messages no-ignore-parent no-ignore-vcs no-line-number no-messages no-mmap \
        no-pcre2-unicode no-require-git no-unicode null null-data one-file-system only-matching \
        passthru path-separator= pcre2 pcre2-version pretty quiet regex-size-limit= regexp= replace= \
        smart-case sort= sortr= stats stop-on-nonmatch text threads= trace trim type= type-add= \
        type-clear= type-list type-not= unrestricted version vimgrep with-filename word-regexp",
    operands: OperandKind::PatternThenTree,
    hazards: WordList("--pre --pre-glob --hostname-bin --search-zip -z"),
    ..EMPTY_OPTION_TABLE
};

/// `fd`: `-x` and `-X` run a command for what is found, and `-l` starts `ls`.
const FD: OptionTable = OptionTable {
    names: &["fd", "fdfind"],
    flags: "HIuLpagsiF0q1",
    valued: "dtEeSjc",
    long: "hidden no-ignore unrestricted case-sensitive ignore-case glob regex fixed-strings \
        absolute-path follow full-path max-depth= min-depth= exact-depth= exclude= type= extension= \
        size= changed-within= changed-before= color= threads= max-results= quiet no-ignore-vcs \
        no-ignore-parent print0 help version",
    operands: OperandKind::PatternThenTree,
    hazards: WordList("-x -X -l --exec --exec-batch --list-details --gen-completions"),
    ..EMPTY_OPTION_TABLE
};

/// `ag`: `--pager` runs a program, and `--search-zip` decompresses files. The number of lines after `-A`, `-B` and `-C`
/// may be missing: a word that is no number is then the pattern.
const AG: OptionTable = OptionTable {
    names: &["ag"],
    flags: "acDfFHilLnoQrRsStuUvVwz0",
    valued: "Ggm",
    counts: "ABC",
    files: "p",
    pattern: "g",
    long: "ackmate after? before? break nobreak count color nocolor color-line-number= color-match= color-path= \
        column context? depth= filename nofilename file-search-regex= files-with-matches \
        files-without-matches follow group nogroup heading noheading hidden ignore= ignore-case ignore-dir= \
        invert-match literal max-count= nonumbers numbers one-device only-matching passthrough print0 \
        path-to-ignore< print-long-lines recurse norecurse silent skip-vcs-ignores smart-case \
        case-sensitive stats unrestricted vimgrep word-regexp width= all-types all-text help version",
    operands: OperandKind::PatternThenTree,
    hazards: WordList("--pager --search-zip --search-binary"),
    ..EMPTY_OPTION_TABLE
};

/// `rg` and `ag` start a preprocessor or a decompressor with some options, and `fd` runs commands with `-x`: these are
/// hazards.
pub(crate) const SEARCH_TABLES: &[OptionTable] =
    &[OptionTable { names: &["grep", "egrep", "fgrep"], ..GREP }, RG, FD, AG];
