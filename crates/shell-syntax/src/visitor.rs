//! From the tree to the parts: every command is visited, with the directory it runs in.

use super::analysis::{
    CommandAnalysis, CommandDanger, CommandDoubt, CommandPart, DangerKind, DangerResponse, DangerStanding,
    DoubtKind,
};
use super::expand::{self, ShellArg};
use super::parser;
use super::scan;
use super::syntax::{
    AndOrList, AndOrOperator, BashCommand, BashCompoundCommand, BashPipeline, BashProgram, BashRedirectKind,
    BashSimpleCommand, CommandList, HereDocumentBody, ShellWord, VariableAssignment, WordPiece,
};
use super::variable_safety;
use super::variable_table::{KnownValues, VariableTable, assignment_value};
use super::working_dirs::WorkingDirs;
use std::collections::{HashMap, HashSet};
use toolgate_proto::Workspace;
use toolgate_proto::{AbsPath, Effect, RiskLevel};

/// How deep texts may hold programs that hold texts (`sh -c "sh -c …"`).
const MAX_TEXT_DEPTH: usize = 6;

/// Nobody reads more warnings than these; what binds is always kept.
const MAX_WARNINGS: usize = 32;

/// More parts than this and nobody can look them through.
const MAX_PARTS: usize = 2_000;

/// What has been found so far.
pub(super) struct AnalysisVisitor<'a> {
    pub(super) workspace: &'a Workspace,
    /// The directory in which the line starts.
    pub(super) start: &'a AbsPath,
    pub(super) found: CommandAnalysis,
    /// Variables that the line sets to something harmless.
    pub(super) set_here: HashSet<String>,
    /// Variables that the line sets to the output of commands or to other variables.
    pub(super) text_here: HashSet<String>,
    /// Variables whose values are evaluated as arithmetic.
    pub(super) evaluated: HashSet<String>,
    /// Variables that the line sets to numbers.
    pub(super) numbers: HashSet<String>,
    /// Variables that the line sets to something that may be no number.
    pub(super) not_numbers: HashSet<String>,
    /// The values of the variables of loops, in the turn that is looked at.
    pub(super) bound: HashMap<String, ShellArg>,
    /// How many turns the loops around have, multiplied.
    pub(super) iteration_count: usize,
    /// How many texts we are inside of.
    texts: usize,
    /// The text could not be read: what is found only has to be matched, not shown.
    pub(super) brief: bool,
    /// How many wrappers we are inside of.
    pub(super) wrappers: usize,
    /// How many commands have been guessed at, and how deep in guesses we are.
    pub(super) guess_count: usize,
    pub(super) guess_depth: usize,
    /// Every place that sets a variable.
    pub(super) variables: VariableTable,
    /// The values of variables that are certain where the walk is.
    pub(super) known: KnownValues,
}

/// Where a command stands.
#[derive(Clone)]
pub(super) struct CommandContext<'b> {
    pub(super) bodies: &'b [HereDocumentBody],
    pub(super) dirs: WorkingDirs,
    pub(super) background: bool,
    /// Its input is the output of another command.
    pub(super) piped: bool,
    pub(super) run_by: Option<usize>,
    /// A wrapper executes it, so that a builtin's name means the program file of that name.
    pub(super) executed: bool,
}

/// Where the shell is after a command, by its outcome.
struct WorkingDirsByStatus {
    success: WorkingDirs,
    failure: WorkingDirs,
}

impl WorkingDirsByStatus {
    fn unchanged(dirs: WorkingDirs) -> Self {
        Self { failure: dirs.clone(), success: dirs }
    }

    fn either(&self) -> WorkingDirs {
        self.success.merge(&self.failure)
    }
}

impl<'a> AnalysisVisitor<'a> {
    pub(super) fn new(workspace: &'a Workspace, start: &'a AbsPath) -> Self {
        let found =
            CommandAnalysis { parts: Vec::new(), dangers: Vec::new(), doubt: None, plain_syntax: false };
        Self {
            workspace,
            start,
            found,
            set_here: HashSet::new(),
            text_here: HashSet::new(),
            evaluated: HashSet::new(),
            numbers: HashSet::new(),
            not_numbers: HashSet::new(),
            bound: HashMap::new(),
            iteration_count: 1,
            texts: 0,
            brief: false,
            wrappers: 0,
            guess_count: 0,
            guess_depth: 0,
            variables: VariableTable::default(),
            known: KnownValues::new(),
        }
    }

    /// Visits what may not run, runs more than once, or runs in a shell of its own: what it sets is not certain later.
    fn visit_scoped<T>(&mut self, visit: impl FnOnce(&mut Self) -> T) -> T {
        let known = self.known.clone();
        let outcome = visit(self);
        self.known = known;
        outcome
    }

    /// Visits a whole program that starts in the given place.
    pub(super) fn visit_program(&mut self, program: &BashProgram, place: &CommandContext<'_>) {
        let mut place = CommandContext { bodies: &program.bodies, ..place.clone() };
        let variables = std::mem::replace(&mut self.variables, VariableTable::of(program));
        let known = std::mem::take(&mut self.known);
        self.visit_list(&program.list, &mut place);
        self.variables = variables;
        self.known = known;
    }

    /// Visits a text that a command would run as a program.
    pub(super) fn visit_text(&mut self, text: &str, place: &CommandContext<'_>) {
        if self.texts >= MAX_TEXT_DEPTH {
            self.record_doubt(DoubtKind::TooDeep, "programs in texts are nested too deeply");
            return;
        }
        self.texts += 1;
        // Another shell does not know the variables of this one.
        let bound = std::mem::take(&mut self.bound);
        match parser::parse_bash(text) {
            Ok(program) => self.visit_program(&program, place),
            Err(fault) => {
                self.record_doubt(fault.kind, fault.what);
                scan::scan_unparsed(self, text, place);
            }
        }
        self.bound = bound;
        self.texts -= 1;
    }

    pub(super) fn record_doubt(&mut self, kind: DoubtKind, what: &str) {
        if self.found.doubt.is_none() {
            self.found.doubt = Some(CommandDoubt { kind, text: what.to_owned() });
        }
    }

    pub(super) fn warn(&mut self, kind: DangerKind, severity: RiskLevel, text: impl FnOnce() -> String) {
        if self.found.dangers.len() < MAX_WARNINGS {
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

    pub(super) fn record_danger(&mut self, danger: CommandDanger) {
        if !self.found.dangers.contains(&danger) {
            self.found.dangers.push(danger);
        }
    }

    pub(super) fn push_part(&mut self, part: CommandPart) -> usize {
        if self.found.parts.len() >= MAX_PARTS {
            self.record_doubt(DoubtKind::TooMany, "the line has too many commands");
        }
        self.found.parts.push(part);
        self.found.parts.len() - 1
    }

    /// Last look at the whole: what a variable holds at one place may be evaluated at another.
    pub(super) fn finish(mut self, plain_syntax: bool) -> CommandAnalysis {
        if self.evaluated.intersection(&self.not_numbers).next().is_some() {
            self.record_doubt(DoubtKind::Unclear, "arithmetic evaluates a value that may be no number");
        }
        self.found.plain_syntax = plain_syntax && self.found.doubt.is_none();
        self.found
    }

    fn visit_list(&mut self, list: &CommandList, place: &mut CommandContext<'_>) -> WorkingDirsByStatus {
        let mut outcome = WorkingDirsByStatus::unchanged(place.dirs.clone());
        for item in &list.0 {
            place.dirs = outcome.either();
            outcome = self.visit_and_or(item, place);
        }
        outcome
    }

    fn visit_and_or(&mut self, item: &AndOrList, place: &CommandContext<'_>) -> WorkingDirsByStatus {
        let mut place = place.clone();
        let before = place.dirs.clone();
        place.background |= item.background;
        let known = item.background.then(|| self.known.clone());
        let mut outcome = self.visit_pipeline(&item.first, &place);
        let known = known.unwrap_or_else(|| self.known.clone());
        for (joint, pipeline) in &item.rest {
            place.dirs = match joint {
                AndOrOperator::And => outcome.success.clone(),
                AndOrOperator::Or => outcome.failure.clone(),
            };
            let next = self.visit_pipeline(pipeline, &place);
            outcome = match joint {
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
        self.known = known;
        if item.background { WorkingDirsByStatus::unchanged(before) } else { outcome }
    }

    fn visit_pipeline(&mut self, pipeline: &BashPipeline, place: &CommandContext<'_>) -> WorkingDirsByStatus {
        if let [command] = pipeline.commands.as_slice() {
            let outcome = self.visit_command(command, place);
            return if pipeline.negated {
                WorkingDirsByStatus { success: outcome.failure, failure: outcome.success }
            } else {
                outcome
            };
        }
        let first = self.found.parts.len();
        for (position, command) in pipeline.commands.iter().enumerate() {
            let stage = CommandContext { piped: place.piped || position > 0, ..place.clone() };
            self.visit_scoped(|walk| walk.visit_command(command, &stage));
        }
        self.warn_of_fetch_into_shell(first);
        // Each stage is a shell of its own.
        WorkingDirsByStatus::unchanged(place.dirs.clone())
    }

    /// Warns of a fetch whose output a later stage runs.
    fn warn_of_fetch_into_shell(&mut self, first: usize) {
        let stages = self.found.parts.get(first..).unwrap_or_default();
        let fetch = stages.iter().position(|part| {
            part.effects.iter().any(|inferred| matches!(inferred.effect, Effect::Fetch { .. }))
        });
        let Some(fetch) = fetch else { return };
        let runner = stages.get(fetch + 1..).unwrap_or_default().iter().find(|part| {
            part.program.as_deref().is_some_and(|program| {
                super::wrappers::SHELLS.contains(&program)
                    || ["python", "python3", "perl", "ruby", "node", "php"].contains(&program)
            })
        });
        if let Some(runner) = runner {
            let text = format!("what is fetched is run by `{}`", runner.text);
            self.warn(DangerKind::NetworkPipeToShell, RiskLevel::Critical, || text);
        }
    }

    fn visit_command(&mut self, command: &BashCommand, place: &CommandContext<'_>) -> WorkingDirsByStatus {
        match command {
            BashCommand::Simple(simple) => self.visit_simple(simple, place),
            BashCommand::Compound(compound, redirects) => {
                let redirected = self.analyse_redirects(redirects, place);
                if redirected.unknown || redirected.reveals || !redirected.effects.is_empty() {
                    self.add_bare_part("a redirected group".to_owned(), redirected, true, place);
                }
                let mut inner = place.clone();
                inner.piped |= redirects.iter().any(|redirect| {
                    !matches!(
                        redirect.kind,
                        BashRedirectKind::Write
                            | BashRedirectKind::Append
                            | BashRedirectKind::Both
                            | BashRedirectKind::DuplicateOutput
                    )
                });
                if matches!(compound, BashCompoundCommand::Group(_)) {
                    return self.visit_compound(compound, &mut inner);
                }
                self.visit_scoped(|walk| walk.visit_compound(compound, &mut inner))
            }
            BashCommand::Function { name, body } => {
                self.warn(DangerKind::ShellState, RiskLevel::High, || {
                    format!("`{name}` is defined as a function")
                });
                let mut part = super::command_part::empty_part(format!("{name}()"), place);
                part.deny_texts.push(part.text.clone());
                self.push_part(part);
                // It may be called from anywhere; it is never allowed, but what it does here is still known.
                self.visit_scoped(|walk| walk.visit_command(body, place));
                WorkingDirsByStatus::unchanged(place.dirs.clone())
            }
        }
    }

    fn visit_compound(
        &mut self,
        compound: &BashCompoundCommand,
        place: &mut CommandContext<'_>,
    ) -> WorkingDirsByStatus {
        match compound {
            BashCompoundCommand::Group(list) => self.visit_list(list, place),
            BashCompoundCommand::Subshell(list) => {
                let before = place.dirs.clone();
                self.visit_list(list, place);
                WorkingDirsByStatus::unchanged(before)
            }
            BashCompoundCommand::If { arms, otherwise } => {
                let mut after: Option<WorkingDirs> = None;
                let mut join = |outcome: WorkingDirs| {
                    after = Some(after.as_ref().map_or(outcome.clone(), |dirs| dirs.merge(&outcome)))
                };
                for (condition, body) in arms {
                    let tested = self.visit_list(condition, place);
                    let mut inner = CommandContext { dirs: tested.success, ..place.clone() };
                    join(self.visit_scoped(|walk| walk.visit_list(body, &mut inner)).either());
                    place.dirs = tested.failure;
                }
                match otherwise {
                    Some(body) => join(self.visit_list(body, place).either()),
                    None => join(place.dirs.clone()),
                }
                WorkingDirsByStatus::unchanged(after.unwrap_or_else(WorkingDirs::unknown))
            }
            BashCompoundCommand::While { condition, body } => {
                self.forget_dirs_of_moving_loop(&[condition, body], place);
                let tested = self.visit_list(condition, place);
                let mut inner = CommandContext { dirs: tested.success.clone(), ..place.clone() };
                let after = self.visit_list(body, &mut inner).either();
                WorkingDirsByStatus::unchanged(tested.either().merge(&after))
            }
            BashCompoundCommand::For { name, words, body } => {
                let mut values = Vec::new();
                for word in words {
                    self.visit_pieces(&word.pieces, place);
                    self.expand(word, &mut values);
                }
                self.visit_loop_variable(name, &values, place);
                self.note_known_values(name, &values);
                self.forget_dirs_of_moving_loop(&[body], place);
                let before = place.dirs.clone();
                let mut after = before.clone();
                // With few values that are known, every turn is looked at by itself.
                let turns = self.loop_iterations(name, &values);
                let turns_before = self.iteration_count;
                self.iteration_count = turns_before.saturating_mul(turns.len());
                for value in turns {
                    self.bound.extend(value.map(|value| (name.clone(), value)));
                    place.dirs = before.clone();
                    after = after.merge(&self.visit_list(body, place).either());
                    self.bound.remove(name);
                }
                self.iteration_count = turns_before;
                WorkingDirsByStatus::unchanged(after)
            }
            BashCompoundCommand::Case { subject, arms } => {
                self.visit_pieces(&subject.pieces, place);
                let before = place.dirs.clone();
                let mut after = before.clone();
                for (patterns, body) in arms {
                    for pattern in patterns {
                        self.visit_pieces(&pattern.pieces, place);
                    }
                    let mut inner = CommandContext { dirs: before.clone(), ..place.clone() };
                    let end = self.visit_scoped(|walk| walk.visit_list(body, &mut inner)).either();
                    after = after.merge(&end);
                }
                WorkingDirsByStatus::unchanged(after)
            }
            BashCompoundCommand::Test(words) => {
                self.visit_test(words, place);
                WorkingDirsByStatus::unchanged(place.dirs.clone())
            }
            BashCompoundCommand::Arithmetic(pieces) => {
                self.visit_arithmetic(pieces, place);
                WorkingDirsByStatus::unchanged(place.dirs.clone())
            }
            BashCompoundCommand::ArithmeticFor(pieces, body) => {
                self.note_loop_counter(pieces);
                self.visit_arithmetic(pieces, place);
                self.forget_dirs_of_moving_loop(&[body], place);
                let before = place.dirs.clone();
                let after = self.visit_list(body, place).either();
                WorkingDirsByStatus::unchanged(before.merge(&after))
            }
        }
    }

    /// A loop that changes directory may be anywhere from its second turn on.
    fn forget_dirs_of_moving_loop(&mut self, bodies: &[&CommandList], place: &mut CommandContext<'_>) {
        if bodies.iter().any(|body| may_change_dir(body)) {
            place.dirs = WorkingDirs::unknown();
        }
    }

    /// Visits the commands inside pieces of words. Every word of a line comes through here, so what evaluates a
    /// value is found wherever it stands.
    pub(super) fn visit_pieces(&mut self, pieces: &[WordPiece], place: &CommandContext<'_>) {
        self.visit_substitutions(pieces, place);
        let mut arg = ShellArg::default();
        arg.evaluates = expand::collect_evaluation(pieces, &mut arg.evaluated);
        if self.evaluates(&arg) {
            let mut part =
                super::command_part::empty_part("an expansion that evaluates a value".to_owned(), place);
            part.unknown_effects = true;
            self.push_part(part);
        }
    }

    fn visit_substitutions(&mut self, pieces: &[WordPiece], place: &CommandContext<'_>) {
        for piece in pieces {
            match piece {
                WordPiece::Literal { .. } => {}
                WordPiece::Parameter { arithmetic, operands, .. } => {
                    for operand in arithmetic.iter().chain(operands) {
                        self.visit_substitutions(operand, place);
                    }
                }
                WordPiece::Arithmetic { pieces } => self.visit_substitutions(pieces, place),
                WordPiece::Command { list, .. } => {
                    if !list.0.is_empty() {
                        let text = "the output of a command becomes part of another".to_owned();
                        self.warn(DangerKind::CommandSubstitution, RiskLevel::Medium, || text);
                    }
                    // It has the standard input of the command that it stands in.
                    self.visit_scoped(|walk| walk.visit_list(list, &mut place.clone()));
                }
                WordPiece::Process { list } => {
                    self.visit_scoped(|walk| {
                        walk.visit_list(list, &mut CommandContext { piped: true, ..place.clone() })
                    });
                }
            }
        }
    }

    fn expand(&mut self, word: &ShellWord, out: &mut Vec<ShellArg>) {
        if let Some(value) = self.bound_value(word) {
            out.push(value);
            return;
        }
        let first = out.len();
        if expand::expand(word, out).is_none() {
            self.record_doubt(DoubtKind::TooMany, "braces stand for too many words");
            out.push(ShellArg::literal(word.source.clone()));
        }
        if let [arg] = out.get_mut(first..).unwrap_or_default() {
            self.note_unsplit_number(arg);
        }
    }

    fn visit_simple(
        &mut self,
        simple: &BashSimpleCommand,
        place: &CommandContext<'_>,
    ) -> WorkingDirsByStatus {
        for assignment in &simple.assignments {
            self.visit_assignment(assignment, place);
        }
        let mut args = Vec::new();
        for word in &simple.words {
            self.visit_pieces(&word.pieces, place);
            self.expand(word, &mut args);
        }
        for arg in &mut args {
            self.substitute(arg);
        }
        let redirected = self.analyse_redirects(&simple.redirects, place);
        for assignment in &simple.assignments {
            let number =
                assignment.subscript.is_none() && variable_safety::is_number(&assignment_value(assignment));
            self.note_value(&assignment.name, number && !assignment.source.contains("+="));
        }
        self.note_builtin(&args);
        let spelled = simple.spelled.join(" ");
        let outcome = self.dirs_after_command(&args, place);
        if args.is_empty() {
            let values: Vec<(&VariableAssignment, ShellArg)> = simple
                .assignments
                .iter()
                .map(|assignment| (assignment, assignment_value(assignment)))
                .collect();
            let harmless = values.iter().all(|(assignment, value)| {
                let name = &assignment.name;
                let plain =
                    variable_safety::is_local(name, value) || variable_safety::is_harmless(name, value);
                assignment.subscript.is_none()
                    && if assignment.array { is_literal_array(assignment) } else { plain }
            });
            for (assignment, value) in &values {
                if assignment.subscript.is_none() && !assignment.array {
                    self.note_known_values(&assignment.name, std::slice::from_ref(value));
                }
            }
            if harmless {
                self.set_here.extend(values.iter().map(|(assignment, _)| assignment.name.clone()));
            } else {
                for (assignment, _) in &values {
                    self.warn(DangerKind::Environment, RiskLevel::Medium, || {
                        format!("`{}` is set for what follows", assignment.name)
                    });
                }
            }
            // A value from a command is text; it only must not go to a name that steers something.
            let local = values.iter().all(|(assignment, value)| {
                assignment.subscript.is_none()
                    && (variable_safety::is_local(&assignment.name, &ShellArg::literal("x"))
                        || variable_safety::is_neutral(&assignment.name))
                    && (value.live.is_some() || variable_safety::is_inert(value))
                    && !self.evaluates(value)
            });
            let only: Vec<ShellArg> = values.iter().map(|(_, value)| value.clone()).collect();
            let remembered = local && self.are_printable(&only);
            if local && remembered && !harmless {
                for (assignment, value) in &values {
                    let names = if variable_safety::is_number(value) {
                        &mut self.set_here
                    } else {
                        &mut self.text_here
                    };
                    names.insert(assignment.name.clone());
                }
            }
            let index = self.add_bare_part(spelled, redirected, harmless || local, place);
            if !harmless
                && !remembered
                && let Some(part) = self.found.parts.get_mut(index)
            {
                part.read_only = false;
            }
            return outcome;
        }
        if self.note_read_builtin(&simple.assignments, &args) {
            self.add_bare_part(spelled, redirected, true, place);
            return outcome;
        }
        let assignments: Vec<(&str, ShellArg)> = simple
            .assignments
            .iter()
            .map(|assignment| (assignment.name.as_str(), assignment_value(assignment)))
            .collect();
        self.analyse_simple_command(spelled, &assignments, args, redirected, place);
        outcome
    }

    fn visit_assignment(&mut self, assignment: &VariableAssignment, place: &CommandContext<'_>) {
        for value in &assignment.values {
            self.visit_pieces(&value.pieces, place);
        }
        if let Some(subscript) = &assignment.subscript {
            self.visit_pieces(subscript, place);
        }
    }

    /// Where the shell is after a simple command.
    fn dirs_after_command(&self, args: &[ShellArg], place: &CommandContext<'_>) -> WorkingDirsByStatus {
        let mut words = args;
        while let Some((first, rest)) = words.split_first() {
            match first.text.as_str() {
                "command" | "builtin" => words = rest,
                "cd" => {
                    return WorkingDirsByStatus {
                        success: place.dirs.after_cd(rest, self.workspace),
                        failure: place.dirs.clone(),
                    };
                }
                "pushd" | "popd" | "eval" | "source" | "." | "trap" => {
                    return WorkingDirsByStatus::unchanged(WorkingDirs::unknown());
                }
                _ if first.live.is_some() => return WorkingDirsByStatus::unchanged(WorkingDirs::unknown()),
                _ => break,
            }
        }
        WorkingDirsByStatus::unchanged(place.dirs.clone())
    }
}

/// An array of texts, none of which is put at a place of its own.
fn is_literal_array(assignment: &VariableAssignment) -> bool {
    assignment.values.iter().all(|word| {
        let value = expand::expand_single(&word.pieces, &word.source);
        variable_safety::is_local(&assignment.name, &value) && !value.tilde && !word.source.starts_with('[')
    })
}

/// Whether a list may change the directory of the shell that runs it.
fn may_change_dir(list: &CommandList) -> bool {
    fn command_may_change_dir(command: &BashCommand) -> bool {
        match command {
            BashCommand::Simple(simple) => simple.words.iter().take(3).any(|word| {
                matches!(
                    word.source.trim_matches(['"', '\'', '\\']),
                    "cd" | "pushd" | "popd" | "eval" | "source" | "." | "trap"
                ) || word.source.contains(['$', '\\', '"', '\''])
                    && std::ptr::eq(word, simple.words.first().unwrap_or(word))
            }),
            BashCommand::Compound(compound, _) => match compound {
                BashCompoundCommand::Group(list) => may_change_dir(list),
                BashCompoundCommand::Subshell(_)
                | BashCompoundCommand::Test(_)
                | BashCompoundCommand::Arithmetic(_) => false,
                BashCompoundCommand::If { arms, otherwise } => {
                    arms.iter().any(|(condition, body)| may_change_dir(condition) || may_change_dir(body))
                        || otherwise.as_ref().is_some_and(may_change_dir)
                }
                BashCompoundCommand::While { condition, body } => {
                    may_change_dir(condition) || may_change_dir(body)
                }
                BashCompoundCommand::For { body, .. } | BashCompoundCommand::ArithmeticFor(_, body) => {
                    may_change_dir(body)
                }
                BashCompoundCommand::Case { arms, .. } => arms.iter().any(|(_, body)| may_change_dir(body)),
            },
            BashCommand::Function { .. } => false,
        }
    }
    list.0.iter().any(|item| {
        std::iter::once(&item.first)
            .chain(item.rest.iter().map(|(_, pipeline)| pipeline))
            .any(|pipeline| pipeline.commands.iter().any(command_may_change_dir))
    })
}
