//! Builtins of bash: those that only read, and those that change the state of the shell.

use super::{EMPTY_OPTION_TABLE, OperandKind, OptionTable};
use crate::word_list::WordList;

/// `wait`: `-p` sets a variable, whose subscript it would evaluate.
const WAIT: OptionTable = OptionTable {
    names: &["wait"],
    operands: OperandKind::Text,
    hazards: WordList("-p"),
    ..EMPTY_OPTION_TABLE
};

/// Builtins that only read or print. `echo`, `printf`, `test` and `cd` are in [`crate::grammars`].
pub(crate) const BUILTIN_TABLES: &[OptionTable] = &[
    OptionTable { names: &["pwd"], flags: "LP", operands: OperandKind::Nothing, ..EMPTY_OPTION_TABLE },
    OptionTable { names: &["type"], flags: "aftpP", operands: OperandKind::Text, ..EMPTY_OPTION_TABLE },
    OptionTable {
        names: &["true", "false", ":"],
        flags: "",
        operands: OperandKind::Text,
        ..EMPTY_OPTION_TABLE
    },
    OptionTable {
        names: &["exit", "return", "break", "continue", "times", "help"],
        flags: "dms",
        operands: OperandKind::Text,
        ..EMPTY_OPTION_TABLE
    },
    OptionTable {
        names: &["dirs", "jobs"],
        flags: "lpvnrs",
        operands: OperandKind::Nothing,
        ..EMPTY_OPTION_TABLE
    },
    WAIT,
];

/// Builtins that change the state of the shell: what words mean, or how later commands run.
pub(crate) const STATE_BUILTINS: WordList = WordList(
    "alias unalias set shopt unset enable hash bind complete compopt compgen trap read mapfile \
     readarray let getopts history fc ulimit umask disown suspend logout local declare typeset \
     readonly export pushd popd shift coproc caller builtin zmodload emulate setopt unsetopt autoload \
     function noglob",
);
