//! Programs that list files and print their attributes.

use super::{EMPTY_OPTION_TABLE, OperandKind, OptionTable};
use crate::word_list::WordList;

/// `ls`: with `-R` it reads everything below its operands.
const LS: OptionTable = OptionTable {
    names: &["ls", "dir", "vdir"],
    flags: "aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1",
    valued: "ITw",
    tree: "R",
    tree_long: "recursive",
    long: "all almost-all author escape block-size= ignore-backups color? directory dired classify? \
        file-type format= full-time group-directories-first no-group human-readable si \
        dereference-command-line dereference hide= hyperlink? indicator-style= inode ignore= \
        kibibytes numeric-uid-gid literal hide-control-chars show-control-chars quote-name \
        quoting-style= reverse recursive size sort= time= time-style= tabsize= width= context zero \
        help version",
    operands: OperandKind::Here,
    ..EMPTY_OPTION_TABLE
};

/// `file`: `-C` writes a compiled magic file, `-p` sets the access time of the file back, `-f` reads the names of files
/// from a file, and `-z` starts programs that decompress.
const FILE: OptionTable = OptionTable {
    names: &["file"],
    flags: "bcdEhiIkLlnNrs0v",
    valued: "eFP",
    files: "m",
    long: "brief mime mime-type mime-encoding extension keep-going dereference no-dereference no-buffer \
        no-pad raw special-files separator= print0 magic-file< exclude= help version",
    // `-p` sets the times of the file back.
    hazards: WordList(
        "-p --preserve-date -C -f --files-from -z -Z -S --compile --uncompress \
         --uncompress-noreport --no-sandbox",
    ),
    ..EMPTY_OPTION_TABLE
};

/// `tree`: `-o` writes the listing to a file, and `-R` writes one into each directory. The options for files read names
/// from them. The value of a letter is the next word, and the letters after it are further options.
const TREE: OptionTable = OptionTable {
    names: &["tree"],
    flags: "adfiplxsughDFvtcUrnNqACSXJQ",
    valued: "LPIT",
    values_in_next_word: true,
    long: "dirsfirst filesfirst gitignore matchdirs ignore-case noreport inodes device prune filelimit= \
        si du timefmt= sort? charset= metafirst help version",
    operands: OperandKind::Tree,
    hazards: WordList("-o -R -H --output --fromfile --fromtabfile --gitfile --infofile"),
    ..EMPTY_OPTION_TABLE
};

/// `which`: searches `PATH` and runs nothing.
const WHICH: OptionTable = OptionTable {
    names: &["which"],
    flags: "as",
    long: "all version help",
    operands: OperandKind::Text,
    ..EMPTY_OPTION_TABLE
};

/// The programs of this family print the names and attributes of files, and `file` the type of their content.
pub(crate) const FILE_TABLES: &[OptionTable] = &[
    LS,
    OptionTable {
        names: &["eza", "exa"],
        flags: "1lGRTxFXaAdrfDBbghHimMnSuUZ@",
        valued: "LIst",
        tree: "RT",
        tree_long: "recurse tree",
        long: "oneline long grid across recurse tree dereference classify? color? colour? color-scale? icons? \
            no-quotes hyperlink all almost-all list-dirs level= reverse sort= group-directories-first \
            only-dirs only-files ignore-glob= git-ignore binary bytes group header links inode modified mounts \
            numeric blocksize time= accessed created changed time-style= total-size no-permissions octal-permissions \
            no-filesize no-user no-time git no-git git-repos extended context width= help version",
        operands: OperandKind::Here,
        ..EMPTY_OPTION_TABLE
    },
    OptionTable {
        names: &["stat"],
        flags: "Lft",
        valued: "c",
        long: "dereference file-system format= printf= terse cached= help version",
        ..EMPTY_OPTION_TABLE
    },
    FILE,
    OptionTable {
        names: &["du"],
        flags: "0aAbcDhHklLmPsSx",
        valued: "Bdt",
        files: "X",
        long: "null all apparent-size block-size= bytes total dereference-args max-depth= human-readable \
            inodes dereference count-links no-dereference separate-dirs si summarize threshold= time? \
            time-style= exclude-from< exclude= one-file-system help version",
        operands: OperandKind::Tree,
        ..EMPTY_OPTION_TABLE
    },
    OptionTable {
        names: &["df"],
        flags: "ahHiklPTv",
        valued: "Btx",
        long: "all block-size= human-readable si inodes local no-sync output? portability total type= \
            print-type exclude-type= help version",
        ..EMPTY_OPTION_TABLE
    },
    TREE,
    OptionTable {
        names: &["realpath"],
        flags: "eEmLPqsz",
        long: "canonicalize-existing canonicalize-missing logical physical quiet relative-to= \
            relative-base= strip no-symlinks zero help version",
        ..EMPTY_OPTION_TABLE
    },
    OptionTable {
        names: &["readlink"],
        flags: "femnqsvz",
        long: "canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero \
            help version",
        ..EMPTY_OPTION_TABLE
    },
    OptionTable {
        names: &["basename", "dirname"],
        flags: "az",
        valued: "s",
        long: "multiple suffix= zero help version",
        operands: OperandKind::Text,
        ..EMPTY_OPTION_TABLE
    },
    OptionTable {
        names: &["namei"],
        flags: "lmnovx",
        long: "long modes owners vertical nosymlinks",
        ..EMPTY_OPTION_TABLE
    },
    WHICH,
    OptionTable { names: &["whereis"], flags: "bmsul", operands: OperandKind::Text, ..EMPTY_OPTION_TABLE },
];
