//! What bash itself does.

use super::{ENTRY, Entry, OperandKind};

/// Builtins that read or print only. `echo` takes whatever is no option of its own as text.
pub(in super::super) const ENTRIES: &[Entry] = &[
    Entry { names: &["pwd"], flags: "LP", operands: OperandKind::Nothing, ..ENTRY },
    Entry { names: &["type"], flags: "aftpP", operands: OperandKind::Text, ..ENTRY },
    Entry { names: &["true", "false", ":"], flags: "", operands: OperandKind::Text, ..ENTRY },
    Entry {
        names: &["exit", "return", "break", "continue", "times", "help"],
        flags: "dms",
        operands: OperandKind::Text,
        ..ENTRY
    },
    Entry { names: &["dirs", "jobs"], flags: "lpvnrs", operands: OperandKind::Nothing, ..ENTRY },
    Entry { names: &["wait"], operands: OperandKind::Text, hazards: &["-p"], ..ENTRY },
];

/// Builtins after which words mean something else, or later commands run in another way.
pub(in super::super) const STATE: &[&str] = &[
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
