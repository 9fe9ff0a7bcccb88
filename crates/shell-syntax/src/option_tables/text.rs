//! Programs that print, cut, sort and compare text, or print the content of binary files.

use super::{EMPTY_OPTION_TABLE, OperandKind, OptionTable};
use crate::word_list::WordList;

/// `head`: `-5` is the number of lines, as is `-n 5`.
const HEAD: OptionTable = OptionTable {
    names: &["head"],
    flags: "qvz",
    valued: "nc",
    long: "lines= bytes= quiet silent verbose zero-terminated help version",
    numbers: true,
    ..EMPTY_OPTION_TABLE
};

/// `tail`: `-f` and `--follow` wait for the file to grow, so that the command ends only at its timeout. That is no
/// reason
/// to ask.
const TAIL: OptionTable = OptionTable {
    names: &["tail"],
    flags: "qvzfF",
    valued: "ncs",
    long: "lines= bytes= quiet silent verbose zero-terminated follow? retry pid= sleep-interval= help \
        version",
    numbers: true,
    ..EMPTY_OPTION_TABLE
};

/// `sort`: `-o` writes the result to a file, `-T` puts temporary files into a directory, and `--compress-program` runs
/// a
/// program for them. `--files0-from` and `--random-source` read files that no operand names.
const SORT: OptionTable = OptionTable {
    names: &["sort"],
    flags: "bcCdfghiMmnRrsuVz",
    valued: "kSt",
    long: "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting \
        month-sort human-numeric-sort numeric-sort random-sort reverse sort= version-sort check? \
        key= merge stable buffer-size= field-separator= unique zero-terminated parallel= batch-size= \
        debug help version",
    hazards: WordList(
        "-o -T --output --compress-program --temporary-directory --files0-from --random-source",
    ),
    ..EMPTY_OPTION_TABLE
};

/// `uniq`: a second operand is written, so that one is the maximum.
const UNIQ: OptionTable = OptionTable {
    names: &["uniq"],
    flags: "cdDiuz",
    valued: "fsw",
    long: "count repeated all-repeated? skip-fields= group? ignore-case skip-chars= unique \
        zero-terminated check-chars= help version",
    max_operands: 1,
    ..EMPTY_OPTION_TABLE
};

/// `hexdump`: `-f` reads a file of format strings, which can print and nothing else.
const HEXDUMP: OptionTable = OptionTable {
    names: &["hexdump", "hd"],
    flags: "bcCdovx",
    valued: "ens",
    files: "f",
    long: "canonical length= skip= no-squeezing",
    ..EMPTY_OPTION_TABLE
};

/// `strings`: like all programs of binutils it replaces `@file` with the arguments in that file.
const STRINGS: OptionTable = OptionTable {
    names: &["strings"],
    at_files: true,
    flags: "afwo",
    valued: "ntes",
    long: "all print-file-name bytes= radix= encoding= include-all-whitespace help version",
    ..EMPTY_OPTION_TABLE
};

/// Programs that print checksums. `-c` is left out: it reads the files that are named in a file.
const MD5SUM: OptionTable = OptionTable {
    names: &["md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum"],
    flags: "btz",
    long: "binary text tag zero help version",
    ..EMPTY_OPTION_TABLE
};

/// `diff`: `-l` starts `pr`. `--from-file` and `--to-file` name files that are compared with every operand.
const DIFF: OptionTable = OptionTable {
    names: &["diff"],
    flags: "abBcdeEiqnNpPrstTuwyZ",
    valued: "CFIUWxL",
    files: "XS",
    // Also without `-r`, two directories are compared file by file, and `-N` and `-P` show whole files of one.
    operands: OperandKind::Tree,
    long: "normal brief report-identical-files unified? context? ed rcs side-by-side width= left-column \
        suppress-common-lines show-c-function show-function-line= label= expand-tabs initial-tab \
        tabsize= suppress-blank-empty recursive no-dereference new-file unidirectional-new-file \
        ignore-file-name-case exclude= exclude-from< starting-file< from-file< to-file< ignore-case \
        ignore-tab-expansion ignore-trailing-space ignore-space-change ignore-all-space \
        ignore-blank-lines ignore-matching-lines= text strip-trailing-cr minimal speed-large-files \
        color? help version",
    hazards: WordList("-l --paginate"),
    ..EMPTY_OPTION_TABLE
};

/// `cmp`: two files, and for each of them the number of bytes to skip.
const CMP: OptionTable = OptionTable {
    names: &["cmp"],
    flags: "bls",
    valued: "in",
    long: "print-bytes ignore-initial= verbose bytes= quiet silent help version",
    max_operands: 4,
    ..EMPTY_OPTION_TABLE
};

/// `iconv`: `-o` writes the result to a file. An encoding with a slash is also opened as a file (`-t ASCII//TRANSLIT`
/// tries `ASCII/TRANSLIT`).
const ICONV: OptionTable = OptionTable {
    names: &["iconv"],
    flags: "lcs",
    names_or_files: "ft",
    long: "from-code/ to-code/ list silent verbose help version",
    hazards: WordList("-o --output"),
    ..EMPTY_OPTION_TABLE
};

/// `shuf`: `-o` writes the result to a file, and `--random-source` reads one that no operand names.
const SHUF: OptionTable = OptionTable {
    names: &["shuf"],
    flags: "ez",
    valued: "in",
    long: "echo input-range= head-count= repeat zero-terminated help version",
    hazards: WordList("-o --output --random-source"),
    ..EMPTY_OPTION_TABLE
};

/// `bat`: its pager is a program that an option names. `cache` is a subcommand that writes; the configuration and the
/// cached themes are read from the home directory.
const BAT: OptionTable = OptionTable {
    names: &["bat", "batcat"],
    flags: "pnAPuhVd",
    valued: "lrHm",
    long: "plain? number show-all language= line-range= highlight-line= file-name= style= theme= color= \
        decorations= tabs= wrap= terminal-width= map-syntax= ignored-suffix= squeeze-blank squeeze-limit= \
        list-themes list-languages no-paging unbuffered help version",
    whole_options: &["--paging=never"],
    not_operands: &["cache"],
    looks_in: &["~/.config/bat", "~/.cache/bat"],
    hazards: WordList("--pager --paging --generate-config-file --completion --diagnostic --acknowledgements"),
    ..EMPTY_OPTION_TABLE
};

/// `nm`: `--plugin` loads a shared library, and `-l` reads the source files that the debug information names.
const NM: OptionTable = OptionTable {
    names: &["nm"],
    flags: "aABCDgnopPrSsuvVW",
    valued: "ftX",
    long: "debug-syms print-file-name demangle? no-demangle dynamic defined-only extern-only format= \
        numeric-sort no-sort portability print-armap print-size radix= reverse-sort size-sort special-syms \
        undefined-only without-symbols help version",
    at_files: true,
    hazards: WordList("--plugin -l --line-numbers"),
    ..EMPTY_OPTION_TABLE
};

/// `readelf`: `-w` and its relatives follow links to files with debug information.
const READELF: OptionTable = OptionTable {
    names: &["readelf"],
    flags: "aADdehIlLnrSstuVvWTC",
    valued: "xpRj",
    long: "all file-header program-headers segments section-headers sections section-details headers \
        symbols syms dyn-syms lto-syms notes relocs unwind dynamic version-info arch-specific \
        archive-index use-dynamic hex-dump= string-dump= relocated-dump= wide histogram demangle? \
        no-demangle silent-truncation help version",
    at_files: true,
    hazards: WordList("-w --debug-dump -z -P -N -K"),
    ..EMPTY_OPTION_TABLE
};

/// `objdump`: `-S` and `-l` read the source files that the debug information names, `-W` follows links to files with
/// debug information, and `--plugin` loads a shared library.
const OBJDUMP: OptionTable = OptionTable {
    names: &["objdump"],
    flags: "afCdDeEhHiprRstTvxwzFg",
    valued: "bjmM",
    long: "archive-headers file-headers private-headers private= section-headers headers all-headers \
        disassemble? disassemble-all disassembler-options= section= syms dynamic-syms reloc \
        dynamic-reloc full-contents info target= architecture= wide start-address= stop-address= \
        demangle? no-show-raw-insn show-raw-insn no-addresses prefix-addresses disassemble-zeroes \
        file-offsets help version",
    at_files: true,
    hazards: WordList("-S --source --source-comment -l --line-numbers -W --dwarf --plugin -L -P -I"),
    ..EMPTY_OPTION_TABLE
};

/// The programs of this family read files or standard input and print. Options that write a file (`sort -o`), start a
/// program (`diff -l`) or load code (`nm --plugin`) are hazards.
pub(crate) const TEXT_TABLES: &[OptionTable] = &[
    OptionTable {
        names: &["cat"],
        flags: "AbeEnstTuv",
        long: "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting help \
            version",
        ..EMPTY_OPTION_TABLE
    },
    OptionTable {
        names: &["tac"],
        flags: "br",
        valued: "s",
        long: "before regex separator= help version",
        ..EMPTY_OPTION_TABLE
    },
    HEAD,
    TAIL,
    OptionTable {
        names: &["wc"],
        flags: "clmwL",
        long: "bytes chars lines words max-line-length total= help version",
        ..EMPTY_OPTION_TABLE
    },
    OptionTable {
        names: &["nl"],
        flags: "p",
        valued: "bdfhilnsvw",
        long: "body-numbering= section-delimiter= footer-numbering= header-numbering= line-increment= \
            join-blank-lines= number-format= no-renumber number-separator= starting-line-number= \
            number-width= help version",
        ..EMPTY_OPTION_TABLE
    },
    OptionTable {
        names: &["cut"],
        flags: "nsz",
        valued: "bcdf",
        long: "bytes= characters= delimiter= fields= complement only-delimited output-delimiter= \
            zero-terminated help version",
        ..EMPTY_OPTION_TABLE
    },
    OptionTable {
        names: &["paste"],
        flags: "sz",
        valued: "d",
        long: "delimiters= serial zero-terminated help version",
        ..EMPTY_OPTION_TABLE
    },
    OptionTable {
        names: &["tr"],
        flags: "cCdst",
        long: "complement delete squeeze-repeats truncate-set1 help version",
        operands: OperandKind::Text,
        ..EMPTY_OPTION_TABLE
    },
    SORT,
    UNIQ,
    OptionTable {
        names: &["comm"],
        flags: "123z",
        long: "check-order nocheck-order output-delimiter= total zero-terminated help version",
        ..EMPTY_OPTION_TABLE
    },
    OptionTable {
        names: &["join"],
        flags: "iz",
        valued: "aejotv12",
        long: "ignore-case check-order nocheck-order header zero-terminated help version",
        ..EMPTY_OPTION_TABLE
    },
    OptionTable {
        names: &["fold"],
        flags: "bs",
        valued: "w",
        long: "bytes spaces width= help version",
        numbers: true,
        ..EMPTY_OPTION_TABLE
    },
    OptionTable {
        names: &["fmt"],
        flags: "cstu",
        valued: "gpw",
        long: "crown-margin prefix= split-only tagged-paragraph uniform-spacing width= goal= help version",
        numbers: true,
        ..EMPTY_OPTION_TABLE
    },
    OptionTable {
        names: &["expand", "unexpand"],
        flags: "ai",
        valued: "t",
        long: "all initial first-only tabs= help version",
        numbers: true,
        ..EMPTY_OPTION_TABLE
    },
    OptionTable {
        names: &["pr"],
        flags: "acdfFJmrtTv",
        valued: "DhlNowW",
        attached: "einsS",
        long: "pages= columns= across show-control-chars double-space date-format= expand-tabs? form-feed header= \
            output-tabs? join-lines length= merge number-lines? first-line-number= indent= no-file-warnings \
            separator? sep-string? omit-header omit-pagination show-nonprinting width= page-width= help version",
        numbers: true,
        ..EMPTY_OPTION_TABLE
    },
    OptionTable { names: &["rev"], long: "help version", flags: "0hV", ..EMPTY_OPTION_TABLE },
    OptionTable {
        names: &["od"],
        flags: "abcdfiloshvxX",
        valued: "AjNSt",
        attached: "w",
        long: "address-radix= skip-bytes= read-bytes= format= output-duplicates endian= strings? width? help \
            version",
        ..EMPTY_OPTION_TABLE
    },
    HEXDUMP,
    STRINGS,
    OptionTable {
        names: &["base64", "base32"],
        flags: "di",
        valued: "w",
        long: "decode ignore-garbage wrap= help version",
        ..EMPTY_OPTION_TABLE
    },
    MD5SUM,
    OptionTable { names: &["cksum", "sum"], flags: "rs", long: "help version", ..EMPTY_OPTION_TABLE },
    OptionTable {
        names: &["column"],
        // `-n` has a value in some implementations and none in others.
        flags: "teLxJd",
        valued: "cosNRETWHOrip",
        long: "table separator= output-separator= columns= output-width= table-columns= table-right= \
            table-name= fillrows json help version",
        ..EMPTY_OPTION_TABLE
    },
    DIFF,
    CMP,
    ICONV,
    SHUF,
    OptionTable {
        names: &["seq", "factor", "expr"],
        flags: "w",
        valued: "fs",
        long: "format= separator= equal-width help version",
        numbers: true,
        operands: OperandKind::Text,
        ..EMPTY_OPTION_TABLE
    },
    OptionTable {
        names: &["numfmt"],
        flags: "z",
        valued: "d",
        long: "from= to= from-unit= to-unit= grouping header? padding= round= suffix= field= format= \
            invalid= delimiter= help version",
        operands: OperandKind::Text,
        ..EMPTY_OPTION_TABLE
    },
    OptionTable { names: &["tsort"], long: "help version", ..EMPTY_OPTION_TABLE },
    BAT,
    NM,
    READELF,
    OBJDUMP,
    OptionTable {
        names: &["size"],
        flags: "ABCGodxtfV",
        long: "format= radix= totals common help version",
        at_files: true,
        ..EMPTY_OPTION_TABLE
    },
];
