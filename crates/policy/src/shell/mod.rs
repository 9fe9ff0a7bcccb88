//! What a shell command line would do, found out without running it.
//!
//! [`analyse`] takes the exact text that bash would get and lists every simple command in it, wherever it stands:
//! in lists and pipelines, in substitutions, subshells, function bodies and here-documents, behind wrappers such as
//! `env` and `timeout`, in the payload of `sh -c` and of `find -exec`.
//! Each becomes a [`Part`] with the spellings that rules are matched against and the reads, writes and fetches that
//! can be told from its words.
//!
//! The analysis never guesses in favour of the command.
//! What cannot be read for certain is a [`CommandDoubt`] about the whole line; what cannot be told of one command leaves it
//! without [`Part::allow_text`], so that no allow rule covers it.
//! It is pure and total: no file is looked at, every input ends in an answer, and hostile input ends quickly.
//!
//! The way of a line: `screen` looks at its characters, `reader` makes a tree of it, `walk` visits every command of
//! the tree, `expand` turns words into arguments, `part` unwraps them and looks the program up in `table`,
//! `grammars` and `edits`, and `dirs` turns names into paths.

mod analysis;
mod assign;
mod conditions;
mod dirs;
mod edits;
mod expand;
mod grammars;
mod guesses;
mod lookup;
mod network;
mod part;
mod plain;
mod programs;
mod reader;
mod redirects;
mod removal;
mod runners;
mod scan;
mod screen;
mod syntax;
mod table;
mod values;
mod variables;
mod walk;
mod wrappers;

pub use analysis::{
    Analysis, CommandDanger, CommandDoubt, DangerKind, DoubtKind, InferredEffect, Live, Origin, Part, Phase,
    Standing, Word,
};

use crate::facts::Workspace;
use dirs::WorkingDirs;
use toolgate_proto::{CommandLine, Severity, Shell};
use walk::{Place, Walk};

/// The subcommands of git that pass without a question in the forms in which they only read.
pub fn git_readers() -> Vec<&'static str> {
    table::git::readers()
}

/// Finds every simple command of a command line, and what each would do.
pub fn analyse(line: &CommandLine, workspace: &Workspace) -> Analysis {
    let mut walk = Walk::new(workspace, &line.cwd);
    let place = Place {
        bodies: &[],
        dirs: WorkingDirs::one(line.cwd.clone()),
        background: false,
        piped: false,
        run_by: None,
        executed: false,
    };
    if line.shell != Shell::Bash {
        walk.doubt(DoubtKind::OtherShell, "another shell than bash will read it");
    }
    match screen::screen(&line.text) {
        Some(doubt) => {
            if doubt.kind == DoubtKind::InvisibleText {
                walk.warn(DangerKind::InvisibleText, Severity::High, || doubt.text.clone());
            }
            walk.doubt(doubt.kind, &doubt.text);
            scan::scan(&mut walk, &line.text, &place);
        }
        None => match reader::read(&line.text) {
            Ok(program) => walk.program(&program, &place),
            Err(fault) => {
                walk.doubt(fault.kind, fault.what);
                scan::scan(&mut walk, &line.text, &place);
            }
        },
    }
    walk.finish(plain::is_plain(&line.text))
}
