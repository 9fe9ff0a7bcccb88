//! The tree of a bash program, as far as policy cares.
//!
//! Only [`super::parser`] makes these, so another parser can take its place without anybody else noticing.

/// A whole program: the commands, and the here-documents that its redirects refer to by number.
#[derive(Debug, Default)]
pub(super) struct BashProgram {
    pub(super) list: CommandList,
    pub(super) bodies: Vec<HereDocumentBody>,
}

/// Commands one after another.
#[derive(Debug, Default)]
pub(super) struct CommandList(pub(super) Vec<AndOrList>);

/// Pipelines joined by `&&` and `||`.
#[derive(Debug)]
pub(super) struct AndOrList {
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
    pub(super) commands: Vec<BashCommand>,
}

/// One command.
#[derive(Debug)]
pub(super) enum BashCommand {
    Simple(BashSimpleCommand),
    Compound(BashCompoundCommand, Vec<BashRedirect>),
    Function { name: String, body: Box<BashCommand> },
}

/// Words, assignments and redirects.
#[derive(Debug, Default)]
pub(super) struct BashSimpleCommand {
    pub(super) assignments: Vec<VariableAssignment>,
    pub(super) words: Vec<ShellWord>,
    pub(super) redirects: Vec<BashRedirect>,
    /// Each item as written, in order.
    pub(super) spelled: Vec<String>,
}

/// Commands made of commands.
#[derive(Debug)]
pub(super) enum BashCompoundCommand {
    Group(CommandList),
    Subshell(CommandList),
    If { arms: Vec<(CommandList, CommandList)>, otherwise: Option<CommandList> },
    While { condition: CommandList, body: CommandList },
    For { name: String, words: Vec<ShellWord>, body: CommandList },
    Case { subject: ShellWord, arms: Vec<(Vec<ShellWord>, CommandList)> },
    Test(Vec<ShellWord>),
    Arithmetic(Vec<WordPiece>),
    ArithmeticFor(Vec<WordPiece>, CommandList),
}

/// `name=value`, `name[subscript]+=value`, `name=(…)`.
#[derive(Debug)]
pub(super) struct VariableAssignment {
    pub(super) name: String,
    pub(super) subscript: Option<Vec<WordPiece>>,
    /// One word, or the elements of an array.
    pub(super) values: Vec<ShellWord>,
    pub(super) array: bool,
    /// As written.
    pub(super) source: String,
}

/// A redirect. For a here-document the target is its delimiter.
#[derive(Debug)]
pub(super) struct BashRedirect {
    pub(super) kind: BashRedirectKind,
    pub(super) target: ShellWord,
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
pub(super) struct HereDocumentBody {
    pub(super) pieces: Vec<WordPiece>,
}

/// One word as written, before any expansion.
#[derive(Debug, Default)]
pub(super) struct ShellWord {
    pub(super) pieces: Vec<WordPiece>,
    pub(super) source: String,
}

/// A piece of a word.
#[derive(Debug)]
pub(super) enum WordPiece {
    /// Text that stands for itself; quoted text is neither split, matched nor expanded.
    Literal { text: String, quoted: bool },
    /// `$x`, `${x…}`; `arithmetic` are subscripts and offsets, `operands` the words after another operator.
    Parameter {
        name: String,
        form: ParameterExpansionForm,
        arithmetic: Vec<Vec<WordPiece>>,
        operands: Vec<Vec<WordPiece>>,
        quoted: bool,
    },
    /// `$(…)` or backquotes.
    Command { list: CommandList, quoted: bool },
    /// `<(…)` or `>(…)`.
    Process { list: CommandList },
    /// `$((…))`, `$[…]`.
    Arithmetic { pieces: Vec<WordPiece> },
}

/// How a parameter is expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParameterExpansionForm {
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
