//! From the tree to the parts: every command is visited, with the directory it runs in.

use super::analysis::{Analysis, CommandDanger, CommandDoubt, DangerKind, DoubtKind, Part, Phase, Standing};
use super::assign;
use super::dirs::WorkingDirs;
use super::expand::{self, Arg};
use super::reader;
use super::scan;
use super::syntax::{
    AndOr, AndOrOperator, Assignment, BashPipeline, BashRedirectKind, Body, Command, Compound, List, Piece,
    Program, Simple, Word,
};
use super::values::{KnownValues, VariableTable, value_of};
use crate::facts::Workspace;
use std::collections::{HashMap, HashSet};
use toolgate_proto::{AbsPath, Effect, Severity};

/// How deep texts may hold programs that hold texts (`sh -c "sh -c …"`).
const MAX_TEXT_DEPTH: usize = 6;

/// Nobody reads more warnings than these; what binds is always kept.
const MAX_WARNINGS: usize = 32;

/// More parts than this and nobody can look them through.
const MAX_PARTS: usize = 2_000;

/// What has been found so far.
pub(super) struct Walk<'a> {
    pub(super) workspace: &'a Workspace,
    /// The directory in which the line starts.
    pub(super) start: &'a AbsPath,
    pub(super) found: Analysis,
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
    pub(super) bound: HashMap<String, Arg>,
    /// How many turns the loops around have, multiplied.
    pub(super) turns: usize,
    /// How many texts we are inside of.
    texts: usize,
    /// The text could not be read: what is found only has to be matched, not shown.
    pub(super) brief: bool,
    /// How many wrappers we are inside of.
    pub(super) wrappers: usize,
    /// How many commands have been guessed at, and how deep in guesses we are.
    pub(super) shadows: usize,
    pub(super) shadow_depth: usize,
    /// Every place that sets a variable.
    pub(super) variables: VariableTable,
    /// The values of variables that are certain where the walk is.
    pub(super) known: KnownValues,
}

/// Where a command stands.
#[derive(Clone)]
pub(super) struct Place<'b> {
    pub(super) bodies: &'b [Body],
    pub(super) dirs: WorkingDirs,
    pub(super) background: bool,
    /// Its input is the output of another command.
    pub(super) piped: bool,
    pub(super) run_by: Option<usize>,
    /// A wrapper executes it, so that a builtin's name means the program file of that name.
    pub(super) executed: bool,
}

/// Where the shell is after a command, by its outcome.
struct Outcome {
    success: WorkingDirs,
    failure: WorkingDirs,
}

impl Outcome {
    fn same(dirs: WorkingDirs) -> Self {
        Self { failure: dirs.clone(), success: dirs }
    }

    fn either(&self) -> WorkingDirs {
        self.success.or(&self.failure)
    }
}

impl<'a> Walk<'a> {
    pub(super) fn new(workspace: &'a Workspace, start: &'a AbsPath) -> Self {
        let found = Analysis { parts: Vec::new(), dangers: Vec::new(), doubt: None, plain_syntax: false };
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
            turns: 1,
            texts: 0,
            brief: false,
            wrappers: 0,
            shadows: 0,
            shadow_depth: 0,
            variables: VariableTable::default(),
            known: KnownValues::new(),
        }
    }

    /// Visits what may not run, runs more than once, or runs in a shell of its own: what it sets is not certain later.
    fn scoped<T>(&mut self, visit: impl FnOnce(&mut Self) -> T) -> T {
        let known = self.known.clone();
        let outcome = visit(self);
        self.known = known;
        outcome
    }

    /// Visits a whole program that starts in the given place.
    pub(super) fn program(&mut self, program: &Program, place: &Place<'_>) {
        let mut place = Place { bodies: &program.bodies, ..place.clone() };
        let variables = std::mem::replace(&mut self.variables, VariableTable::of(program));
        let known = std::mem::take(&mut self.known);
        self.list(&program.list, &mut place);
        self.variables = variables;
        self.known = known;
    }

    /// Visits a text that a command would run as a program.
    pub(super) fn text(&mut self, text: &str, place: &Place<'_>) {
        if self.texts >= MAX_TEXT_DEPTH {
            self.doubt(DoubtKind::TooDeep, "programs in texts are nested too deeply");
            return;
        }
        self.texts += 1;
        // Another shell does not know the variables of this one.
        let bound = std::mem::take(&mut self.bound);
        match reader::read(text) {
            Ok(program) => self.program(&program, place),
            Err(fault) => {
                self.doubt(fault.kind, fault.what);
                scan::scan(self, text, place);
            }
        }
        self.bound = bound;
        self.texts -= 1;
    }

    pub(super) fn doubt(&mut self, kind: DoubtKind, what: &str) {
        if self.found.doubt.is_none() {
            self.found.doubt = Some(CommandDoubt { kind, text: what.to_owned() });
        }
    }

    pub(super) fn warn(&mut self, kind: DangerKind, severity: Severity, text: impl FnOnce() -> String) {
        if self.found.dangers.len() < MAX_WARNINGS {
            let text = text();
            self.danger(CommandDanger {
                kind,
                severity,
                phase: Phase::Ask,
                standing: Standing::Advisory,
                text,
            });
        }
    }

    pub(super) fn danger(&mut self, danger: CommandDanger) {
        if !self.found.dangers.contains(&danger) {
            self.found.dangers.push(danger);
        }
    }

    pub(super) fn push(&mut self, part: Part) -> usize {
        if self.found.parts.len() >= MAX_PARTS {
            self.doubt(DoubtKind::TooMany, "the line has too many commands");
        }
        self.found.parts.push(part);
        self.found.parts.len() - 1
    }

    /// Last look at the whole: what a variable holds at one place may be evaluated at another.
    pub(super) fn finish(mut self, plain_syntax: bool) -> Analysis {
        if self.evaluated.intersection(&self.not_numbers).next().is_some() {
            self.doubt(DoubtKind::Unclear, "arithmetic evaluates a value that may be no number");
        }
        self.found.plain_syntax = plain_syntax && self.found.doubt.is_none();
        self.found
    }

    fn list(&mut self, list: &List, place: &mut Place<'_>) -> Outcome {
        let mut outcome = Outcome::same(place.dirs.clone());
        for item in &list.0 {
            place.dirs = outcome.either();
            outcome = self.and_or(item, place);
        }
        outcome
    }

    fn and_or(&mut self, item: &AndOr, place: &Place<'_>) -> Outcome {
        let mut place = place.clone();
        let before = place.dirs.clone();
        place.background |= item.background;
        let known = item.background.then(|| self.known.clone());
        let mut outcome = self.pipeline(&item.first, &place);
        let known = known.unwrap_or_else(|| self.known.clone());
        for (joint, pipeline) in &item.rest {
            place.dirs = match joint {
                AndOrOperator::And => outcome.success.clone(),
                AndOrOperator::Or => outcome.failure.clone(),
            };
            let next = self.pipeline(pipeline, &place);
            outcome = match joint {
                AndOrOperator::And => {
                    Outcome { failure: outcome.failure.or(&next.failure), success: next.success }
                }
                AndOrOperator::Or => {
                    Outcome { success: outcome.success.or(&next.success), failure: next.failure }
                }
            };
        }
        self.known = known;
        if item.background { Outcome::same(before) } else { outcome }
    }

    fn pipeline(&mut self, pipeline: &BashPipeline, place: &Place<'_>) -> Outcome {
        if let [command] = pipeline.commands.as_slice() {
            let outcome = self.command(command, place);
            return if pipeline.negated {
                Outcome { success: outcome.failure, failure: outcome.success }
            } else {
                outcome
            };
        }
        let first = self.found.parts.len();
        for (position, command) in pipeline.commands.iter().enumerate() {
            let stage = Place { piped: place.piped || position > 0, ..place.clone() };
            self.scoped(|walk| walk.command(command, &stage));
        }
        self.warn_of_fetch_into_shell(first);
        // Each stage is a shell of its own.
        Outcome::same(place.dirs.clone())
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
            self.warn(DangerKind::NetworkPipeToShell, Severity::Critical, || text);
        }
    }

    fn command(&mut self, command: &Command, place: &Place<'_>) -> Outcome {
        match command {
            Command::Simple(simple) => self.simple(simple, place),
            Command::Compound(compound, redirects) => {
                let redirected = self.redirects(redirects, place);
                if redirected.unknown || redirected.reveals || !redirected.effects.is_empty() {
                    self.bare("a redirected group".to_owned(), redirected, true, place);
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
                if matches!(compound, Compound::Group(_)) {
                    return self.compound(compound, &mut inner);
                }
                self.scoped(|walk| walk.compound(compound, &mut inner))
            }
            Command::Function { name, body } => {
                self.warn(DangerKind::ShellState, Severity::High, || {
                    format!("`{name}` is defined as a function")
                });
                let mut part = super::part::empty(format!("{name}()"), place);
                part.deny_texts.push(part.text.clone());
                self.push(part);
                // It may be called from anywhere; it is never allowed, but what it does here is still known.
                self.scoped(|walk| walk.command(body, place));
                Outcome::same(place.dirs.clone())
            }
        }
    }

    fn compound(&mut self, compound: &Compound, place: &mut Place<'_>) -> Outcome {
        match compound {
            Compound::Group(list) => self.list(list, place),
            Compound::Subshell(list) => {
                let before = place.dirs.clone();
                self.list(list, place);
                Outcome::same(before)
            }
            Compound::If { arms, otherwise } => {
                let mut after: Option<WorkingDirs> = None;
                let mut join = |outcome: WorkingDirs| {
                    after = Some(after.as_ref().map_or(outcome.clone(), |dirs| dirs.or(&outcome)))
                };
                for (condition, body) in arms {
                    let tested = self.list(condition, place);
                    let mut inner = Place { dirs: tested.success, ..place.clone() };
                    join(self.scoped(|walk| walk.list(body, &mut inner)).either());
                    place.dirs = tested.failure;
                }
                match otherwise {
                    Some(body) => join(self.list(body, place).either()),
                    None => join(place.dirs.clone()),
                }
                Outcome::same(after.unwrap_or_else(WorkingDirs::unknown))
            }
            Compound::While { condition, body } => {
                self.loops(&[condition, body], place);
                let tested = self.list(condition, place);
                let mut inner = Place { dirs: tested.success.clone(), ..place.clone() };
                let after = self.list(body, &mut inner).either();
                Outcome::same(tested.either().or(&after))
            }
            Compound::For { name, words, body } => {
                let mut values = Vec::new();
                for word in words {
                    self.pieces(&word.pieces, place);
                    self.expand(word, &mut values);
                }
                self.variable(name, &values, place);
                self.know(name, &values);
                self.loops(&[body], place);
                let before = place.dirs.clone();
                let mut after = before.clone();
                // With few values that are known, every turn is looked at by itself.
                let turns = self.loop_iterations(name, &values);
                let turns_before = self.turns;
                self.turns = turns_before.saturating_mul(turns.len());
                for value in turns {
                    self.bound.extend(value.map(|value| (name.clone(), value)));
                    place.dirs = before.clone();
                    after = after.or(&self.list(body, place).either());
                    self.bound.remove(name);
                }
                self.turns = turns_before;
                Outcome::same(after)
            }
            Compound::Case { subject, arms } => {
                self.pieces(&subject.pieces, place);
                let before = place.dirs.clone();
                let mut after = before.clone();
                for (patterns, body) in arms {
                    for pattern in patterns {
                        self.pieces(&pattern.pieces, place);
                    }
                    let mut inner = Place { dirs: before.clone(), ..place.clone() };
                    let end = self.scoped(|walk| walk.list(body, &mut inner)).either();
                    after = after.or(&end);
                }
                Outcome::same(after)
            }
            Compound::Test(words) => {
                self.test(words, place);
                Outcome::same(place.dirs.clone())
            }
            Compound::Arithmetic(pieces) => {
                self.arithmetic(pieces, place);
                Outcome::same(place.dirs.clone())
            }
            Compound::ArithmeticFor(pieces, body) => {
                self.note_loop_counter(pieces);
                self.arithmetic(pieces, place);
                self.loops(&[body], place);
                let before = place.dirs.clone();
                let after = self.list(body, place).either();
                Outcome::same(before.or(&after))
            }
        }
    }

    /// A loop that changes directory may be anywhere from its second turn on.
    fn loops(&mut self, bodies: &[&List], place: &mut Place<'_>) {
        if bodies.iter().any(|body| moves(body)) {
            place.dirs = WorkingDirs::unknown();
        }
    }

    /// Visits the commands inside pieces of words. Every word of a line comes through here, so what evaluates a
    /// value is found wherever it stands.
    pub(super) fn pieces(&mut self, pieces: &[Piece], place: &Place<'_>) {
        self.visit(pieces, place);
        let mut arg = Arg::default();
        arg.evaluates = expand::evaluation(pieces, &mut arg.evaluated);
        if self.evaluates(&arg) {
            let mut part = super::part::empty("an expansion that evaluates a value".to_owned(), place);
            part.unknown_effects = true;
            self.push(part);
        }
    }

    fn visit(&mut self, pieces: &[Piece], place: &Place<'_>) {
        for piece in pieces {
            match piece {
                Piece::Literal { .. } => {}
                Piece::Parameter { arithmetic, operands, .. } => {
                    for operand in arithmetic.iter().chain(operands) {
                        self.visit(operand, place);
                    }
                }
                Piece::Arithmetic { pieces } => self.visit(pieces, place),
                Piece::Command { list, .. } => {
                    if !list.0.is_empty() {
                        let text = "the output of a command becomes part of another".to_owned();
                        self.warn(DangerKind::CommandSubstitution, Severity::Medium, || text);
                    }
                    // It has the standard input of the command that it stands in.
                    self.scoped(|walk| walk.list(list, &mut place.clone()));
                }
                Piece::Process { list } => {
                    self.scoped(|walk| walk.list(list, &mut Place { piped: true, ..place.clone() }));
                }
            }
        }
    }

    fn expand(&mut self, word: &Word, out: &mut Vec<Arg>) {
        if let Some(value) = self.bound_value(word) {
            out.push(value);
            return;
        }
        let first = out.len();
        if expand::expand(word, out).is_none() {
            self.doubt(DoubtKind::TooMany, "braces stand for too many words");
            out.push(Arg::literal(word.source.clone()));
        }
        if let [arg] = out.get_mut(first..).unwrap_or_default() {
            self.note_unsplit_number(arg);
        }
    }

    fn simple(&mut self, simple: &Simple, place: &Place<'_>) -> Outcome {
        for assignment in &simple.assignments {
            self.visit_assignment(assignment, place);
        }
        let mut args = Vec::new();
        for word in &simple.words {
            self.pieces(&word.pieces, place);
            self.expand(word, &mut args);
        }
        for arg in &mut args {
            self.substitute(arg);
        }
        let redirected = self.redirects(&simple.redirects, place);
        for assignment in &simple.assignments {
            let number = assignment.subscript.is_none() && assign::is_number(&value_of(assignment));
            self.note_value(&assignment.name, number && !assignment.source.contains("+="));
        }
        self.note_builtin(&args);
        let spelled = simple.spelled.join(" ");
        let outcome = self.moved(&args, place);
        if args.is_empty() {
            let values: Vec<(&Assignment, Arg)> =
                simple.assignments.iter().map(|assignment| (assignment, value_of(assignment))).collect();
            let harmless = values.iter().all(|(assignment, value)| {
                let name = &assignment.name;
                let plain = assign::is_local(name, value) || assign::is_harmless(name, value);
                assignment.subscript.is_none()
                    && if assignment.array { is_literal_array(assignment) } else { plain }
            });
            for (assignment, value) in &values {
                if assignment.subscript.is_none() && !assignment.array {
                    self.know(&assignment.name, std::slice::from_ref(value));
                }
            }
            if harmless {
                self.set_here.extend(values.iter().map(|(assignment, _)| assignment.name.clone()));
            } else {
                for (assignment, _) in &values {
                    self.warn(DangerKind::Environment, Severity::Medium, || {
                        format!("`{}` is set for what follows", assignment.name)
                    });
                }
            }
            // A value from a command is text; it only must not go to a name that steers something.
            let local = values.iter().all(|(assignment, value)| {
                assignment.subscript.is_none()
                    && (assign::is_local(&assignment.name, &Arg::literal("x"))
                        || assign::is_neutral(&assignment.name))
                    && (value.live.is_some() || assign::is_inert(value))
                    && !self.evaluates(value)
            });
            let only: Vec<Arg> = values.iter().map(|(_, value)| value.clone()).collect();
            let remembered = local && self.remembers(&only);
            if local && remembered && !harmless {
                for (assignment, value) in &values {
                    let names =
                        if assign::is_number(value) { &mut self.set_here } else { &mut self.text_here };
                    names.insert(assignment.name.clone());
                }
            }
            let index = self.bare(spelled, redirected, harmless || local, place);
            if !harmless
                && !remembered
                && let Some(part) = self.found.parts.get_mut(index)
            {
                part.read_only = false;
            }
            return outcome;
        }
        if self.note_read_builtin(&simple.assignments, &args) {
            self.bare(spelled, redirected, true, place);
            return outcome;
        }
        let assignments: Vec<(&str, Arg)> = simple
            .assignments
            .iter()
            .map(|assignment| (assignment.name.as_str(), value_of(assignment)))
            .collect();
        self.part(spelled, &assignments, args, redirected, place);
        outcome
    }

    fn visit_assignment(&mut self, assignment: &Assignment, place: &Place<'_>) {
        for value in &assignment.values {
            self.pieces(&value.pieces, place);
        }
        if let Some(subscript) = &assignment.subscript {
            self.pieces(subscript, place);
        }
    }

    /// Where the shell is after a simple command.
    fn moved(&self, args: &[Arg], place: &Place<'_>) -> Outcome {
        let mut words = args;
        while let Some((first, rest)) = words.split_first() {
            match first.text.as_str() {
                "command" | "builtin" => words = rest,
                "cd" => {
                    return Outcome {
                        success: place.dirs.after_cd(rest, self.workspace),
                        failure: place.dirs.clone(),
                    };
                }
                "pushd" | "popd" | "eval" | "source" | "." | "trap" => {
                    return Outcome::same(WorkingDirs::unknown());
                }
                _ if first.live.is_some() => return Outcome::same(WorkingDirs::unknown()),
                _ => break,
            }
        }
        Outcome::same(place.dirs.clone())
    }
}

/// An array of texts, none of which is put at a place of its own.
fn is_literal_array(assignment: &Assignment) -> bool {
    assignment.values.iter().all(|word| {
        let value = expand::single(&word.pieces, &word.source);
        assign::is_local(&assignment.name, &value) && !value.tilde && !word.source.starts_with('[')
    })
}

/// Whether a list may change the directory of the shell that runs it.
fn moves(list: &List) -> bool {
    fn command(command: &Command) -> bool {
        match command {
            Command::Simple(simple) => simple.words.iter().take(3).any(|word| {
                matches!(
                    word.source.trim_matches(['"', '\'', '\\']),
                    "cd" | "pushd" | "popd" | "eval" | "source" | "." | "trap"
                ) || word.source.contains(['$', '\\', '"', '\''])
                    && std::ptr::eq(word, simple.words.first().unwrap_or(word))
            }),
            Command::Compound(compound, _) => match compound {
                Compound::Group(list) => moves(list),
                Compound::Subshell(_) | Compound::Test(_) | Compound::Arithmetic(_) => false,
                Compound::If { arms, otherwise } => {
                    arms.iter().any(|(condition, body)| moves(condition) || moves(body))
                        || otherwise.as_ref().is_some_and(moves)
                }
                Compound::While { condition, body } => moves(condition) || moves(body),
                Compound::For { body, .. } | Compound::ArithmeticFor(_, body) => moves(body),
                Compound::Case { arms, .. } => arms.iter().any(|(_, body)| moves(body)),
            },
            Command::Function { .. } => false,
        }
    }
    list.0.iter().any(|item| {
        std::iter::once(&item.first)
            .chain(item.rest.iter().map(|(_, pipeline)| pipeline))
            .any(|pipeline| pipeline.commands.iter().any(command))
    })
}
