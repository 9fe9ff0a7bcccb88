//! The syntax tree of a bash program, as far as the analysis needs it.
//!
//! Only [`crate::parser`] creates these types, so that another parser could replace it without further changes.

/// A whole program.
#[derive(Debug, Default)]
pub(crate) struct BashProgram {
    /// The commands.
    pub(crate) list: CommandList,
    /// The here-documents, to which redirects refer by index.
    pub(crate) here_documents: Vec<HereDocumentBody>,
}

/// Commands that run one after another.
#[derive(Debug, Default)]
pub(crate) struct CommandList(pub(crate) Vec<AndOrList>);

/// Pipelines joined by `&&` and `||`.
#[derive(Debug)]
pub(crate) struct AndOrList {
    /// The pipeline that always runs.
    pub(crate) first: BashPipeline,
    /// The further pipelines, each with the operator before it.
    pub(crate) rest: Vec<(AndOrOperator, BashPipeline)>,
    /// It ends with `&`.
    pub(crate) background: bool,
}

/// The operator between two pipelines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AndOrOperator {
    /// `&&`: the next pipeline runs after a success.
    And,
    /// `||`: the next pipeline runs after a failure.
    Or,
}

/// Commands joined by `|`.
#[derive(Debug)]
pub(crate) struct BashPipeline {
    /// `!` before it inverts its exit status.
    pub(crate) negated: bool,
    /// The commands; never empty.
    pub(crate) commands: Vec<BashCommand>,
}

/// One command.
#[derive(Debug)]
pub(crate) enum BashCommand {
    /// Words, assignments and redirects.
    Simple(BashSimpleCommand),
    /// A compound command with the redirects after it.
    Compound(BashCompoundCommand, Vec<BashRedirect>),
    /// The definition of a function.
    Function {
        /// Its name.
        name: String,
        /// Its body, a compound command.
        body: Box<BashCommand>,
    },
}

/// A command of words, assignments and redirects.
#[derive(Debug, Default)]
pub(crate) struct BashSimpleCommand {
    /// The assignments before the words.
    pub(crate) assignments: Vec<VariableAssignment>,
    /// The words, the name of the command first.
    pub(crate) words: Vec<ShellWord>,
    /// The redirects, wherever they are among the words.
    pub(crate) redirects: Vec<BashRedirect>,
    /// Each assignment, word and redirect as written, in order.
    pub(crate) spelled: Vec<String>,
}

/// A command made of commands, a test or arithmetic.
#[derive(Debug)]
pub(crate) enum BashCompoundCommand {
    /// `{ …; }`
    Group(CommandList),
    /// `( … )`
    Subshell(CommandList),
    /// `if` with its conditions and bodies, and the body of `else`.
    If {
        /// The condition and the body of `if` and of every `elif`.
        arms: Vec<(CommandList, CommandList)>,
        /// The body of `else`.
        otherwise: Option<CommandList>,
    },
    /// `while` or `until`: for the analysis they are the same.
    While {
        /// The commands whose exit status decides.
        condition: CommandList,
        /// The commands that are repeated.
        body: CommandList,
    },
    /// `for name in words`; without a list, over the arguments of the shell.
    For {
        /// The loop variable.
        name: String,
        /// The list.
        words: Vec<ShellWord>,
        /// The commands that are repeated.
        body: CommandList,
    },
    /// `case` with the patterns and the body of each arm.
    Case {
        /// The word that is matched.
        subject: ShellWord,
        /// The patterns and the body of each arm.
        arms: Vec<(Vec<ShellWord>, CommandList)>,
    },
    /// `[[ … ]]`: operators are words without pieces.
    Test(Vec<ShellWord>),
    /// `(( … ))`
    Arithmetic(Vec<WordPiece>),
    /// `for (( … ))`: the three expressions as one, and the body.
    ArithmeticFor(Vec<WordPiece>, CommandList),
}

/// An assignment: `name=value`, `name[subscript]+=value`, `name=(…)`.
#[derive(Debug)]
pub(crate) struct VariableAssignment {
    /// The variable.
    pub(crate) name: String,
    /// The subscript, which bash evaluates as arithmetic.
    pub(crate) subscript: Option<Vec<WordPiece>>,
    /// The value as one word, or the elements of an array.
    pub(crate) values: Vec<ShellWord>,
    /// The value is an array in parentheses.
    pub(crate) array: bool,
    /// The assignment as written.
    pub(crate) source: String,
}

/// A redirect. For a here-document the target is its delimiter.
#[derive(Debug)]
pub(crate) struct BashRedirect {
    /// The operator.
    pub(crate) kind: BashRedirectKind,
    /// The word after the operator.
    pub(crate) target: ShellWord,
    /// The index of the here-document.
    pub(crate) here_document: Option<usize>,
    /// `{name}>file`: the shell stores the file descriptor in a variable.
    pub(crate) sets_variable: bool,
}

/// The operator of a redirect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BashRedirectKind {
    /// `<`
    Read,
    /// `>`, `>|`
    Write,
    /// `>>`
    Append,
    /// `<>`
    ReadWrite,
    /// `&>`, `&>>`: standard output and standard error to a file.
    Both,
    /// `<&`: a file descriptor.
    DuplicateInput,
    /// `>&`: a file descriptor or a file.
    DuplicateOutput,
    /// `<<`, `<<-`
    HereDocument,
    /// `<<<`
    HereString,
}

/// The text of a here-document.
#[derive(Debug, Default)]
pub(crate) struct HereDocumentBody {
    /// The text and its expansions; one literal piece if the delimiter is quoted.
    pub(crate) pieces: Vec<WordPiece>,
}

/// One word as written, before any expansion.
#[derive(Debug, Default)]
pub(crate) struct ShellWord {
    /// The literal text, quoted text and expansions that it consists of.
    pub(crate) pieces: Vec<WordPiece>,
    /// The word as written, quotes included.
    pub(crate) source: String,
}

/// A piece of a word.
#[derive(Debug)]
pub(crate) enum WordPiece {
    /// Literal text.
    Literal {
        /// The text without its quotes.
        text: String,
        /// It is quoted, so that it is not split, and its globs and braces are literal.
        quoted: bool,
    },
    /// A parameter expansion: `$x`, `${x…}`.
    Parameter {
        /// The parameter.
        name: String,
        /// What the expansion does with the value.
        form: ParameterExpansionForm,
        /// Subscripts and offsets, which bash evaluates as arithmetic.
        arithmetic: Vec<Vec<WordPiece>>,
        /// The words after other operators.
        operands: Vec<Vec<WordPiece>>,
        /// It is in double quotes, so that its value is not split.
        quoted: bool,
    },
    /// A command substitution: `$(…)` or backquotes.
    Command {
        /// The commands whose output is substituted.
        list: CommandList,
        /// It is in double quotes, so that the output is not split.
        quoted: bool,
    },
    /// A process substitution: `<(…)` or `>(…)`.
    Process {
        /// The commands at the other end of the pipe.
        list: CommandList,
    },
    /// An arithmetic expansion: `$((…))`, `$[…]`.
    Arithmetic {
        /// The expression.
        pieces: Vec<WordPiece>,
    },
}

/// What a parameter expansion does with the value of the parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterExpansionForm {
    /// `$x`, `${x}`: the value.
    Value,
    /// `${#x}`: its length, a number.
    Length,
    /// `${x:-…}`, `${x%…}` and the like: the value, changed.
    Changed,
    /// `${x:=…}`: the value, which may be assigned to the variable first.
    Assigned,
    /// `${x@P}`, `${!x}`: the value is expanded or used as a name in turn.
    Evaluated,
}
