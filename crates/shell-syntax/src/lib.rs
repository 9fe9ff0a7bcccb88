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

#![forbid(unsafe_code)]
#![deny(clippy::wildcard_enum_match_arm)]

mod analysis;
mod command_part;
mod conditions;
mod edits;
mod executed_programs;
mod expand;
mod grammars;
mod guesses;
mod lookup;
mod network;
mod option_tables;
mod parser;
mod plain_syntax;
mod redirects;
mod removal;
mod runners;
mod scan;
mod syntax;
mod text_check;
mod variable_safety;
mod variable_table;
mod variable_tracking;
mod visitor;
mod working_dirs;
mod wrappers;

pub use analysis::{
    CommandAnalysis, CommandDanger, CommandDoubt, CommandPart, CommandWord, DangerKind, DangerResponse,
    DangerStanding, DoubtKind, EffectOrigin, InferredEffect, ShellExpansionKind,
};

use toolgate_proto::Workspace;
use toolgate_proto::{CommandLine, RiskLevel, ShellKind};
use visitor::{AnalysisVisitor, CommandContext};
use working_dirs::WorkingDirs;

/// The subcommands of git that pass without a question in the forms in which they only read.
pub fn git_readers() -> Vec<&'static str> {
    option_tables::git::readers()
}

/// Finds every simple command of a command line, and what each would do.
pub fn analyse(line: &CommandLine, workspace: &Workspace) -> CommandAnalysis {
    let mut walk = AnalysisVisitor::new(workspace, &line.cwd);
    let place = CommandContext {
        bodies: &[],
        dirs: WorkingDirs::single(line.cwd.clone()),
        background: false,
        piped: false,
        run_by: None,
        executed: false,
    };
    if line.shell != ShellKind::Bash {
        walk.record_doubt(DoubtKind::OtherShell, "another shell than bash will read it");
    }
    match text_check::check_text(&line.text) {
        Some(doubt) => {
            if doubt.kind == DoubtKind::InvisibleText {
                walk.warn(DangerKind::InvisibleText, RiskLevel::High, || doubt.text.clone());
            }
            walk.record_doubt(doubt.kind, &doubt.text);
            scan::scan_unparsed(&mut walk, &line.text, &place);
        }
        None => match parser::parse_bash(&line.text) {
            Ok(program) => walk.visit_program(&program, &place),
            Err(fault) => {
                walk.record_doubt(fault.kind, fault.what);
                scan::scan_unparsed(&mut walk, &line.text, &place);
            }
        },
    }
    walk.finish(plain_syntax::is_plain(&line.text))
}
