//! Finds out what a bash command line would do, without running it.
//!
//! [`analyse`] takes the exact text that bash would get, parses it, and lists every simple command in it: in lists and
//! pipelines, in substitutions, subshells, function bodies and here-documents, behind wrappers such as `env` and
//! `timeout`, in the shell code of `sh -c`, and in the command of `find -exec`.
//! The result is a [`CommandAnalysis`]. Each command is a [`CommandPart`] with the spellings that rules are matched
//! against, and the reads, writes and fetches that follow from its words, its redirects and what is known of its
//! program. Dangers that a user should see are [`CommandDanger`]s.
//!
//! ```
//! use toolgate_proto::{AbsPath, CommandLine, Effect, ShellKind, Workspace};
//!
//! let cwd = AbsPath::root().join("project");
//! let workspace = Workspace::new(cwd.clone());
//! let text = "grep -rn TODO src | sort > notes.txt".to_owned();
//! let line = CommandLine::new(text, ShellKind::Bash, cwd.clone());
//!
//! let analysis = toolgate_shell_syntax::analyse(&line, &workspace);
//! assert!(analysis.doubt.is_none());
//! assert_eq!(analysis.programs(), ["grep", "sort"]);
//! // `sort` itself only reads, but its redirect writes a file.
//! let sort = &analysis.parts[1];
//! assert!(sort.read_only);
//! assert!(matches!(&sort.effects[0].effect, Effect::Write { path, .. } if *path == cwd.join("notes.txt")));
//! ```
//!
//! # How a line is analysed
//!
//! `text_check` rejects invisible characters, `parser` builds a syntax tree (`bash_program`), `visitor` visits every
//! command of the tree, and `expand` turns words into arguments. `simple_command` unwraps a command, and
//! `analyse_program` looks its program up in `option_tables`, `grammars`, `edits` and `network`. `working_dirs`
//! resolves names to paths. A text that cannot be parsed goes through `scan`, so that deny and ask rules still match
//! it.
//!
//! # What it does not do
//!
//! It never guesses in favour of a command. A line that it does not understand for certain gets a [`CommandDoubt`], and
//! a command of which something is not known gets no [`CommandPart::allow_text`], so that no allow rule covers it.
//! It reads no file and follows no symlink: the paths in its effects are the ones that the words name.
//! It makes no decision: the policy crate compares the analysis with rules.
//! It parses bash only; a command line for another shell is doubted.
//! It is pure and total: every input has a result, and hostile input gets it quickly.

#![forbid(unsafe_code)]
#![deny(clippy::wildcard_enum_match_arm)]

mod analyse_git;
mod analyse_program;
mod analysis;
mod apply_program_use;
mod bash_program;
mod brace_expansion;
mod command_part;
mod edits;
mod evaluated_names;
mod executed_programs;
mod expand;
mod grammars;
mod harmless_variables;
mod known_values;
mod network;
mod option_tables;
mod parser;
mod plain_syntax;
mod redirects;
mod removal;
mod removal_values;
mod runners;
mod scan;
mod shell_arg;
mod simple_command;
mod text_check;
mod variable_table;
mod variable_tracker;
mod visit_compound;
mod visit_simple;
mod visit_test;
mod visitor;
mod word_list;
mod working_dirs;
mod wrappers;

pub use analysis::{
    CommandAnalysis, CommandDanger, CommandDoubt, CommandPart, CommandWord, DangerKind, DangerResponse,
    DangerStanding, DoubtKind, EffectOrigin, InferredEffect, ShellExpansionKind,
};

use toolgate_proto::{CommandLine, RiskLevel, ShellKind, Workspace};
use visitor::{AnalysisVisitor, CommandContext};
use working_dirs::WorkingDirs;

/// The subcommands of git that are read-only in some form, on the terms that the runtime sets for git.
pub fn git_readers() -> Vec<&'static str> {
    option_tables::git::git_readers()
}

/// The options with which a subcommand of git is known to only read: letters as `-x`, long options as `--name`, with `=`
/// if the next word is the value, `?` if a value is attached, and `<` if the value is a file.
///
/// A test compares them with git itself.
pub fn git_reader_options(name: &str) -> Vec<String> {
    option_tables::git::git_reader_options(name)
}

/// Finds every simple command of a command line, and what each of them would do.
///
/// The directory of `line` is where it starts; `workspace` resolves `~`, and bounds the repository that git may show.
pub fn analyse(line: &CommandLine, workspace: &Workspace) -> CommandAnalysis {
    let mut visitor = AnalysisVisitor::new(workspace, &line.cwd);
    let context = CommandContext {
        here_documents: &[],
        dirs: WorkingDirs::single(line.cwd.clone()),
        background: false,
        piped: false,
        run_by: None,
        executed: false,
    };
    if line.shell != ShellKind::Bash {
        visitor.record_doubt(DoubtKind::OtherShell, "it runs in a shell other than bash");
    }
    match text_check::check_text(&line.text) {
        Some(doubt) => {
            if doubt.kind == DoubtKind::InvisibleText {
                visitor.warn(DangerKind::InvisibleText, RiskLevel::High, || doubt.text.clone());
            }
            visitor.record_doubt(doubt.kind, &doubt.text);
            scan::scan_unparsed(&mut visitor, &line.text, &context);
        }
        None => match parser::parse_bash(&line.text) {
            Ok(program) => visitor.visit_program(&program, &context),
            Err(error) => {
                visitor.record_doubt(error.kind, error.message);
                scan::scan_unparsed(&mut visitor, &line.text, &context);
            }
        },
    }
    visitor.finish(plain_syntax::is_plain_syntax(&line.text))
}
