//! What a command line can touch, as far as its analysis tells: for locks and records, not for permission.
//!
//! A footprint may be wider than what the command does, never narrower: calls overlap on the strength of it.

use crate::decide::{IntentSurvey, SurveyedCommand};
use toolgate_proto::{AbsPath, Effect, PathScope};
use toolgate_shell_syntax::CommandPart;

/// What a command line can touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandFootprint {
    /// It cannot be known: the line must run beside no other call.
    Unknown,
    /// These reads and writes, and nothing else.
    Known {
        /// Reads and writes of paths; of a pattern the directory that its literal part names, as a tree.
        effects: Vec<Effect>,
        /// It only reads, but which files is decided while it runs.
        reads_anything: bool,
    },
}

/// Builtins that move the working directory of the session, and with it what later calls mean.
const DIRECTORY_BUILTINS: [&str; 3] = ["cd", "pushd", "popd"];

impl IntentSurvey {
    /// The reads, writes and fetches that were inferred from command lines, without repetition.
    pub fn distinct_effects(&self) -> Vec<Effect> {
        let mut found: Vec<Effect> = Vec::new();
        for inferred in self.inferred_effects() {
            if !found.contains(&inferred.effect) {
                found.push(inferred.effect.clone());
            }
        }
        found
    }
}

impl SurveyedCommand {
    /// What the command line can touch.
    pub fn footprint(&self) -> CommandFootprint {
        if self.analysis.doubt.is_some() {
            return CommandFootprint::Unknown;
        }
        let (mut effects, mut reads_anything) = (Vec::new(), false);
        for part in &self.analysis.parts {
            if !is_bounded(part) {
                return CommandFootprint::Unknown;
            }
            // git reads its repository, wherever that is.
            reads_anything |= part.reads_unknown_paths || part.runs_git();
            let mut names_a_read = false;
            for inferred in &part.effects {
                match &inferred.effect {
                    Effect::Read { path, scope } => {
                        names_a_read = true;
                        let scope = if inferred.glob.is_some() { PathScope::Tree } else { *scope };
                        effects.push(Effect::Read { path: path.clone(), scope });
                    }
                    Effect::Write { .. } if inferred.glob.is_none() => effects.push(inferred.effect.clone()),
                    Effect::Write { .. }
                    | Effect::Exec { .. }
                    | Effect::Fetch { .. }
                    | Effect::Search { .. }
                    | Effect::Delegate { .. }
                    | Effect::Skill { .. }
                    | Effect::Remote { .. }
                    | Effect::Ask
                    | Effect::State { .. }
                    | Effect::Opaque => return CommandFootprint::Unknown,
                }
            }
            // A reader without operands reads where it stands (`ls`); commands that change files name all they touch.
            if !names_a_read && !part.file_edit {
                effects.push(read_tree(&self.line.cwd));
            }
        }
        CommandFootprint::Known { effects, reads_anything }
    }
}

/// Whether everything that a simple command touches is in its effects, or only read.
fn is_bounded(part: &CommandPart) -> bool {
    let moves = part.program.as_deref().is_some_and(|program| DIRECTORY_BUILTINS.contains(&program));
    let runs_nothing = part.allow_text.as_deref() == Some("");
    !moves && !part.background && !part.unknown_effects && (part.read_only || part.file_edit || runs_nothing)
}

/// The effect of reading everything below a directory.
fn read_tree(path: &AbsPath) -> Effect {
    Effect::Read { path: path.clone(), scope: PathScope::Tree }
}
