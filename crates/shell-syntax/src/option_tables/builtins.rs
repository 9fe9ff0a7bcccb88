//! What bash itself does.

use super::{EMPTY_OPTION_TABLE, OperandKind, OptionTable};

/// Builtins that read or print only. `echo` takes whatever is no option of its own as text.
pub(in super::super) const OPTION_TABLES: &[OptionTable] = &[
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
    OptionTable { names: &["wait"], operands: OperandKind::Text, hazards: &["-p"], ..EMPTY_OPTION_TABLE },
];

/// Builtins after which words mean something else, or later commands run in another way.
pub(in super::super) const STATE_BUILTINS: &[&str] = &[
    "alias",
    "unalias",
    "set",
    "shopt",
    "unset",
    "enable",
    "hash",
    "bind",
    "complete",
    "compopt",
    "compgen",
    "trap",
    "read",
    "mapfile",
    "readarray",
    "let",
    "getopts",
    "history",
    "fc",
    "ulimit",
    "umask",
    "disown",
    "suspend",
    "logout",
    "local",
    "declare",
    "typeset",
    "readonly",
    "export",
    "pushd",
    "popd",
    "shift",
    "coproc",
    "caller",
    "builtin",
    "zmodload",
    "emulate",
    "setopt",
    "unsetopt",
    "autoload",
    "function",
    "noglob",
];
