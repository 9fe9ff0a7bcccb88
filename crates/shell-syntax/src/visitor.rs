//! The visitor that turns the syntax tree of a command line into a [`CommandAnalysis`].
//!
//! [`AnalysisVisitor`] visits every command of the tree in the order of the text, together with a
//! [`CommandContext`]: the working directories in which the command may run, whether its input is a pipe, and which
//! command runs it. This module visits lists, pipelines and the substitutions inside words;
//! `visit_compound`, `visit_simple` and `visit_test` visit the commands themselves.

use crate::analysis::{
    CommandAnalysis, CommandDanger, CommandDoubt, CommandPart, DangerKind, DangerResponse, DangerStanding,
    DoubtKind,
};
use crate::bash_program::{
    AndOrList, AndOrOperator, BashCommand, BashCompoundCommand, BashPipeline, BashProgram, BashRedirect,
    BashRedirectKind, CommandList, HereDocumentBody, ShellWord, WordPiece,
};
use crate::command_part::empty_part;
use crate::evaluated_names;
use crate::expand;
use crate::parser;
use crate::scan;
use crate::shell_arg::ShellArg;
use crate::variable_table::VariableTable;
use crate::variable_tracker::VariableTracker;
use crate::word_list::WordList;
use crate::working_dirs::{WorkingDirs, WorkingDirsByStatus};
use crate::wrappers;
use toolgate_proto::Workspace;
use toolgate_proto::{AbsPath, Effect, RiskLevel};

/// How deep strings of shell code may contain strings of shell code (`sh -c "sh -c …"`).
const MAX_TEXT_DEPTH: usize = 6;

/// How many advisory warnings are kept. A prompt with more is not read, and hostile input could otherwise make the
/// list as long as the line. Binding dangers are always kept.
const MAX_WARNINGS: usize = 32;

/// How many commands one line may have before it is doubted.
const MAX_PARTS: usize = 2_000;

/// Interpreters besides the shells that run what they read from a pipe.
const PIPED_INTERPRETERS: WordList = WordList("python python3 perl ruby node php");

/// Visits a syntax tree and collects the [`CommandAnalysis`].
pub(crate) struct AnalysisVisitor<'a> {
    /// The workspace: its home directory resolves `~`, and its roots bound the search for the top of a repository.
    pub(crate) workspace: &'a Workspace,
    /// The directory in which the line starts. git is read-only only there.
    pub(crate) start: &'a AbsPath,
    /// The commands, dangers and doubt found so far.
    pub(crate) analysis: CommandAnalysis,
    /// What the line is known to do to variables.
    pub(crate) variables: VariableTracker,
    /// How many strings of shell code are being visited inside one another.
    text_depth: usize,
    /// The text could not be parsed: its commands are matched against deny and ask rules, but never displayed by word.
    pub(crate) unparsed: bool,
    /// How many wrapper commands are being analysed inside one another.
    pub(crate) wrapper_depth: usize,
    /// How many commands of runners have been guessed for this line; limited, because guesses may contain guesses.
    pub(crate) guess_count: usize,
    /// How many guesses are being analysed inside one another.
    pub(crate) guess_depth: usize,
    /// The line has created a symlink to a directory that must not be removed: a path through it may lead there.
    pub(crate) links_protected_dir: bool,
}

/// The environment in which a command runs.
#[derive(Clone)]
pub(crate) struct CommandContext<'b> {
    /// The here-documents of the program, to which redirects refer by index.
    pub(crate) here_documents: &'b [HereDocumentBody],
    /// The directories in which the command may run.
    pub(crate) dirs: WorkingDirs,
    /// The command runs in the background (`&`).
    pub(crate) background: bool,
    /// Standard input is a pipe or a file, so that an interpreter may read its program from it.
    pub(crate) piped: bool,
    /// The index of the part whose command runs this one.
    pub(crate) run_by: Option<usize>,
    /// A wrapper executes the command, so that the name of a builtin means the program file of that name.
    pub(crate) executed: bool,
}

impl<'a> AnalysisVisitor<'a> {
    /// A visitor that has visited nothing yet.
    pub(crate) fn new(workspace: &'a Workspace, start: &'a AbsPath) -> Self {
        Self {
            workspace,
            start,
            analysis: CommandAnalysis {
                parts: Vec::new(),
                dangers: Vec::new(),
                doubt: None,
                plain_syntax: false,
            },
            variables: VariableTracker::default(),
            text_depth: 0,
            unparsed: false,
            wrapper_depth: 0,
            guess_count: 0,
            guess_depth: 0,
            links_protected_dir: false,
        }
    }

    /// Visits commands that may not run, run more than once, or run in a subshell: the values that they assign are
    /// not certain afterwards, so that the known values of before are restored.
    pub(crate) fn visit_scoped<T>(&mut self, visit: impl FnOnce(&mut Self) -> T) -> T {
        let known = self.variables.known.clone();
        let outcome = visit(self);
        self.variables.known = known;
        outcome
    }

    /// Visits a whole program that starts in the given context.
    pub(crate) fn visit_program(&mut self, program: &BashProgram, context: &CommandContext<'_>) {
        let mut context = CommandContext { here_documents: &program.here_documents, ..context.clone() };
        let table = std::mem::replace(&mut self.variables.table, VariableTable::scan_program(program));
        let known = std::mem::take(&mut self.variables.known);
        self.variables.outer_tables.push(table);
        self.visit_list(&program.list, &mut context);
        self.variables.table = self.variables.outer_tables.pop().unwrap_or_default();
        self.variables.known = known;
    }

    /// Visits a string that a command would run as shell code.
    ///
    /// The code is parsed like a command line of its own, but shares the counters that limit the work. If it cannot
    /// be parsed, the whole line is doubted.
    pub(crate) fn visit_text(&mut self, text: &str, context: &CommandContext<'_>) {
        if self.text_depth >= MAX_TEXT_DEPTH {
            self.record_doubt(DoubtKind::TooDeep, "strings of shell code are nested too deeply");
            return;
        }
        self.text_depth += 1;
        // Another shell does not know the variables of this one.
        let loop_values = std::mem::take(&mut self.variables.loop_values);
        match parser::parse_bash(text) {
            Ok(program) => self.visit_program(&program, context),
            Err(error) => {
                self.record_doubt(error.kind, error.message);
                scan::scan_unparsed(self, text, context);
            }
        }
        self.variables.loop_values = loop_values;
        self.text_depth -= 1;
    }

    /// Doubts the line as a whole. The first reason is kept, because later ones often follow from it.
    pub(crate) fn record_doubt(&mut self, kind: DoubtKind, message: &str) {
        if self.analysis.doubt.is_none() {
            self.analysis.doubt = Some(CommandDoubt { kind, text: message.to_owned() });
        }
    }

    /// Records an advisory danger. The text is made only if it is kept.
    pub(crate) fn warn(&mut self, kind: DangerKind, severity: RiskLevel, text: impl FnOnce() -> String) {
        if self.analysis.dangers.len() < MAX_WARNINGS {
            let text = text();
            self.record_danger(CommandDanger {
                kind,
                severity,
                phase: DangerResponse::Ask,
                standing: DangerStanding::Advisory,
                text,
            });
        }
    }

    /// Records a danger, unless the same one is recorded already.
    pub(crate) fn record_danger(&mut self, danger: CommandDanger) {
        if !self.analysis.dangers.contains(&danger) {
            self.analysis.dangers.push(danger);
        }
    }

    /// Adds a part and returns its index.
    ///
    /// Beyond the maximum the line is doubted, but its parts are still added, because deny and ask rules must see
    /// them.
    pub(crate) fn push_part(&mut self, part: CommandPart) -> usize {
        if self.analysis.parts.len() >= MAX_PARTS {
            self.record_doubt(DoubtKind::TooMany, "it has too many commands");
        }
        self.analysis.parts.push(part);
        self.analysis.parts.len() - 1
    }

    /// Returns the analysis. Only now is it known whether a value that is evaluated at one place of the line is set
    /// to something other than a number at another.
    pub(crate) fn finish(mut self, plain_syntax: bool) -> CommandAnalysis {
        if self.variables.evaluates_non_number() {
            self.record_doubt(DoubtKind::Unclear, "arithmetic may evaluate a value that is not a number");
        }
        self.analysis.plain_syntax = plain_syntax && self.analysis.doubt.is_none();
        self.analysis
    }

    /// Visits commands that run one after another; returns where the shell is afterwards.
    ///
    /// The directories before each command are those after the one before it, whatever its exit status was.
    pub(crate) fn visit_list(
        &mut self,
        list: &CommandList,
        context: &mut CommandContext<'_>,
    ) -> WorkingDirsByStatus {
        let mut outcome = WorkingDirsByStatus::unchanged(context.dirs.clone());
        for item in &list.0 {
            context.dirs = outcome.either();
            outcome = self.visit_and_or(item, context);
        }
        outcome
    }

    /// Visits pipelines joined by `&&` and `||`. Each one after the first runs in the directories in which a success
    /// or a failure of those before it leaves the shell.
    fn visit_and_or(&mut self, item: &AndOrList, context: &CommandContext<'_>) -> WorkingDirsByStatus {
        let mut context = context.clone();
        let before = context.dirs.clone();
        context.background |= item.background;
        let known = item.background.then(|| self.variables.known.clone());
        let mut outcome = self.visit_pipeline(&item.first, &context);
        let known = known.unwrap_or_else(|| self.variables.known.clone());
        for (operator, pipeline) in &item.rest {
            context.dirs = match operator {
                AndOrOperator::And => outcome.success.clone(),
                AndOrOperator::Or => outcome.failure.clone(),
            };
            let next = self.visit_pipeline(pipeline, &context);
            outcome = match operator {
                AndOrOperator::And => WorkingDirsByStatus {
                    failure: outcome.failure.merge(&next.failure),
                    success: next.success,
                },
                AndOrOperator::Or => WorkingDirsByStatus {
                    success: outcome.success.merge(&next.success),
                    failure: next.failure,
                },
            };
        }
        self.variables.known = known;
        if item.background { WorkingDirsByStatus::unchanged(before) } else { outcome }
    }

    /// Visits the commands of a pipeline. With more than one, each runs in a subshell and leaves this shell alone.
    fn visit_pipeline(
        &mut self,
        pipeline: &BashPipeline,
        context: &CommandContext<'_>,
    ) -> WorkingDirsByStatus {
        if let [command] = pipeline.commands.as_slice() {
            let outcome = self.visit_command(command, context);
            return if pipeline.negated {
                WorkingDirsByStatus { success: outcome.failure, failure: outcome.success }
            } else {
                outcome
            };
        }
        let first = self.analysis.parts.len();
        for (position, command) in pipeline.commands.iter().enumerate() {
            let stage = CommandContext { piped: context.piped || position > 0, ..context.clone() };
            self.visit_scoped(|visitor| visitor.visit_command(command, &stage));
        }
        self.warn_of_fetch_into_shell(first);
        WorkingDirsByStatus::unchanged(context.dirs.clone())
    }

    /// Warns if an interpreter runs what an earlier stage of its pipeline downloads. `first` is the index of the
    /// first part of the pipeline.
    fn warn_of_fetch_into_shell(&mut self, first: usize) {
        let stages = self.analysis.parts.get(first..).unwrap_or_default();
        let fetch = stages.iter().position(|part| {
            part.effects.iter().any(|inferred| matches!(inferred.effect, Effect::Fetch { .. }))
        });
        let Some(fetch) = fetch else { return };
        let interpreter = stages.get(fetch + 1..).unwrap_or_default().iter().find(|part| {
            part.program.as_deref().is_some_and(|program| {
                wrappers::SHELLS.contains(program) || PIPED_INTERPRETERS.contains(program)
            })
        });
        if let Some(interpreter) = interpreter {
            let text = format!("`{}` runs what another command downloads", interpreter.text);
            self.warn(DangerKind::NetworkPipeToShell, RiskLevel::Critical, || text);
        }
    }

    /// Visits one command; returns where the shell is afterwards.
    fn visit_command(&mut self, command: &BashCommand, context: &CommandContext<'_>) -> WorkingDirsByStatus {
        match command {
            BashCommand::Simple(simple) => self.visit_simple(simple, context),
            BashCommand::Compound(compound, redirects) => {
                let redirected = self.analyse_redirects(redirects, context);
                if redirected.unknown || redirected.reveals || !redirected.effects.is_empty() {
                    self.add_bare_part("a redirected group".to_owned(), redirected, true, context);
                }
                let piped = context.piped || redirects.iter().any(feeds_input);
                let mut inner = CommandContext { piped, ..context.clone() };
                if matches!(compound, BashCompoundCommand::Group(_)) {
                    return self.visit_compound(compound, &mut inner);
                }
                self.visit_scoped(|visitor| visitor.visit_compound(compound, &mut inner))
            }
            BashCommand::Function { name, body } => {
                self.warn(DangerKind::ShellState, RiskLevel::High, || {
                    format!("the command defines the function `{name}`")
                });
                let mut part = empty_part(format!("{name}()"), context);
                part.deny_texts.push(part.text.clone());
                self.push_part(part);
                // A call may come from any directory. No rule covers the definition, but deny and ask rules see its
                // body.
                self.visit_scoped(|visitor| visitor.visit_command(body, context));
                WorkingDirsByStatus::unchanged(context.dirs.clone())
            }
        }
    }

    /// Visits the commands inside pieces of words.
    ///
    /// Every word of a line passes through here, so that an expansion that evaluates a value is found wherever it
    /// is, also in words that become no argument.
    ///
    /// A part without words is added for such an expansion, so that no rule covers the line.
    pub(crate) fn visit_pieces(&mut self, pieces: &[WordPiece], context: &CommandContext<'_>) {
        self.visit_substitutions(pieces, context);
        let mut arg = ShellArg::default();
        arg.evaluates = evaluated_names::collect_evaluation(pieces, &mut arg.evaluated);
        if self.variables.evaluates(&arg) {
            let mut part = empty_part("an expansion that evaluates a value".to_owned(), context);
            part.unknown_effects = true;
            self.push_part(part);
        }
    }

    /// Visits the command and process substitutions inside pieces of words, at any depth.
    fn visit_substitutions(&mut self, pieces: &[WordPiece], context: &CommandContext<'_>) {
        for piece in pieces {
            match piece {
                WordPiece::Literal { .. } => {}
                WordPiece::Parameter { arithmetic, operands, .. } => {
                    for operand in arithmetic.iter().chain(operands) {
                        self.visit_substitutions(operand, context);
                    }
                }
                WordPiece::Arithmetic { pieces } => self.visit_substitutions(pieces, context),
                WordPiece::Command { list, .. } => {
                    if !list.0.is_empty() {
                        let text = "the output of one command becomes part of another".to_owned();
                        self.warn(DangerKind::CommandSubstitution, RiskLevel::Medium, || text);
                    }
                    // A command substitution inherits standard input from the command that it is a word of.
                    self.visit_scoped(|visitor| visitor.visit_list(list, &mut context.clone()));
                }
                WordPiece::Process { list } => {
                    let mut piped = CommandContext { piped: true, ..context.clone() };
                    self.visit_scoped(|visitor| visitor.visit_list(list, &mut piped));
                }
            }
        }
    }

    /// Expands a word and appends the arguments that it becomes.
    pub(crate) fn expand_word(&mut self, word: &ShellWord, args: &mut Vec<ShellArg>) {
        if let Some(value) = self.variables.loop_value(word) {
            args.push(value);
            return;
        }
        let first = args.len();
        if expand::expand(word, args).is_none() {
            self.record_doubt(DoubtKind::TooMany, "a brace expansion makes too many words");
            args.push(ShellArg::literal(word.source.clone()));
        }
        if let [arg] = args.get_mut(first..).unwrap_or_default() {
            self.variables.note_unsplit_number(arg);
        }
    }
}

/// Whether a redirect gives a command an input other than that of the shell.
fn feeds_input(redirect: &BashRedirect) -> bool {
    !matches!(
        redirect.kind,
        BashRedirectKind::Write
            | BashRedirectKind::Append
            | BashRedirectKind::Both
            | BashRedirectKind::DuplicateOutput
    )
}
