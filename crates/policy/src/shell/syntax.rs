//! The tree of a bash program, as far as policy cares.
//!
//! Only [`super::reader`] makes these, so another parser can take its place without anybody else noticing.

/// A whole program: the commands, and the here-documents that its redirects refer to by number.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub(super) list: List,
    pub(super) bodies: Vec<Body>,
}

/// Commands one after another.
#[derive(Debug, Default)]
pub(super) struct List(pub(super) Vec<AndOr>);

/// Pipelines joined by `&&` and `||`.
#[derive(Debug)]
pub(super) struct AndOr {
    pub(super) first: BashPipeline,
    pub(super) rest: Vec<(AndOrOperator, BashPipeline)>,
    pub(super) background: bool,
}

/// What joins two pipelines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AndOrOperator {
    And,
    Or,
}

/// Commands joined by `|`.
#[derive(Debug)]
pub(super) struct BashPipeline {
    pub(super) negated: bool,
    pub(super) commands: Vec<Command>,
}

/// One command.
#[derive(Debug)]
pub(super) enum Command {
    Simple(Simple),
    Compound(Compound, Vec<Redirect>),
    Function { name: String, body: Box<Command> },
}

/// Words, assignments and redirects.
#[derive(Debug, Default)]
pub(super) struct Simple {
    pub(super) assignments: Vec<Assignment>,
    pub(super) words: Vec<Word>,
    pub(super) redirects: Vec<Redirect>,
    /// Each item as written, in order.
    pub(super) spelled: Vec<String>,
}

/// Commands made of commands.
#[derive(Debug)]
pub(super) enum Compound {
    Group(List),
    Subshell(List),
    If { arms: Vec<(List, List)>, otherwise: Option<List> },
    While { condition: List, body: List },
    For { name: String, words: Vec<Word>, body: List },
    Case { subject: Word, arms: Vec<(Vec<Word>, List)> },
    Test(Vec<Word>),
    Arithmetic(Vec<Piece>),
    ArithmeticFor(Vec<Piece>, List),
}

/// `name=value`, `name[subscript]+=value`, `name=(…)`.
#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) name: String,
    pub(super) subscript: Option<Vec<Piece>>,
    /// One word, or the elements of an array.
    pub(super) values: Vec<Word>,
    pub(super) array: bool,
    /// As written.
    pub(super) source: String,
}

/// A redirect. For a here-document the target is its delimiter.
#[derive(Debug)]
pub(super) struct Redirect {
    pub(super) kind: BashRedirectKind,
    pub(super) target: Word,
    /// Number of the here-document.
    pub(super) body: Option<usize>,
    /// `{name}>file`: the shell sets a variable.
    pub(super) sets_variable: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BashRedirectKind {
    Read,
    Write,
    Append,
    ReadWrite,
    /// `&>`, `&>>`: always a file.
    Both,
    /// `<&`, `>&`: a descriptor, or for `>&` a file.
    DuplicateInput,
    DuplicateOutput,
    HereDocument,
    HereString,
}

/// The text of a here-document.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) pieces: Vec<Piece>,
}

/// One word as written, before any expansion.
#[derive(Debug, Default)]
pub(super) struct Word {
    pub(super) pieces: Vec<Piece>,
    pub(super) source: String,
}

/// A piece of a word.
#[derive(Debug)]
pub(super) enum Piece {
    /// Text that stands for itself; quoted text is neither split, matched nor expanded.
    Literal { text: String, quoted: bool },
    /// `$x`, `${x…}`; `arithmetic` are subscripts and offsets, `operands` the words after another operator.
    Parameter {
        name: String,
        form: Form,
        arithmetic: Vec<Vec<Piece>>,
        operands: Vec<Vec<Piece>>,
        quoted: bool,
    },
    /// `$(…)` or backquotes.
    Command { list: List, quoted: bool },
    /// `<(…)` or `>(…)`.
    Process { list: List },
    /// `$((…))`, `$[…]`.
    Arithmetic { pieces: Vec<Piece> },
}

/// How a parameter is expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `$x`, `${x}`.
    Value,
    /// `${#x}`.
    Length,
    /// `${x:-…}`, `${x%…}` and the like: the value, changed.
    Changed,
    /// `${x:=…}`: the shell's variable changes too.
    Assigned,
    /// `${x@P}`, `${!x}`: the value is itself expanded.
    Evaluated,
}
