//! Queries to git: bounded in time and size, with only the given environment variables.

use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use toolgate_files::SearchPath;
use toolgate_proto::AbsPath;

/// The most bytes of configuration that are read.
pub(super) const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// The most bytes of an index listing: the names of more than half a million files.
pub(super) const MAX_INDEX_BYTES: u64 = 32 << 20;

/// How long a query may take. A configuration that includes a named pipe would block for ever.
const QUERY_TIMEOUT: Duration = Duration::from_secs(3);

/// One entry of the effective configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GitConfigEntry {
    /// It comes from the repository: `config`, `config.worktree`, or a file that one of them includes.
    pub(super) of_repository: bool,
    /// The file it comes from, as git names it.
    pub(super) origin: String,
    /// The section in lower case.
    pub(super) section: String,
    /// The subsection, as spelled.
    pub(super) subsection: Option<String>,
    /// The variable in lower case.
    pub(super) variable: String,
    /// The value; a variable without one is true.
    pub(super) value: String,
}

impl GitConfigEntry {
    /// The full key.
    pub(super) fn key(&self) -> String {
        match &self.subsection {
            Some(subsection) => format!("{}.{subsection}.{}", self.section, self.variable),
            None => format!("{}.{}", self.section, self.variable),
        }
    }
}

/// A running git process, and the thread that reads its output.
pub(super) struct GitQuery {
    child: Child,
    /// The whole output, or `None` if it is too long; sent by the reading thread.
    answer: Receiver<Option<Vec<u8>>>,
    /// For the timeout, which includes the start.
    started: Instant,
}

/// The result of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GitQueryOutput {
    /// git exited with 0.
    pub(super) success: bool,
    /// Its standard output.
    pub(super) output: Vec<u8>,
}

impl GitQuery {
    /// Starts git in a directory, with a short text as its input.
    pub(super) fn start(
        program: &PathBuf,
        args: &[&str],
        cwd: &AbsPath,
        environment: &BTreeMap<String, String>,
        (input, max_bytes): (&str, u64),
    ) -> Option<Self> {
        let mut command = Command::new(program);
        command.args(args).current_dir(cwd.as_path()).env_clear().envs(environment);
        let stdin = if input.is_empty() { Stdio::null() } else { Stdio::piped() };
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut child = command.spawn().ok()?;
        if let Some(mut stdin) = child.stdin.take() {
            // If git exits early, its output shows that.
            let _ = stdin.write_all(input.as_bytes());
        }
        let output = child.stdout.take();
        let (send, answer) = channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = output.map(|output| output.take(max_bytes + 1).read_to_end(&mut bytes));
            let complete = matches!(read, Some(Ok(_))) && bytes.len() as u64 <= max_bytes;
            let _ = send.send(complete.then_some(bytes));
        });
        Some(Self { child, answer, started: Instant::now() })
    }

    /// Waits for the output; `None` if it was too long or took too long.
    pub(super) fn finish(mut self) -> Option<GitQueryOutput> {
        let left = QUERY_TIMEOUT.saturating_sub(self.started.elapsed());
        let output = self.answer.recv_timeout(left).ok().flatten();
        if output.is_none() {
            kill_git(&self.child);
        }
        let status = self.child.wait().ok()?;
        Some(GitQueryOutput { success: status.success(), output: output? })
    }
}

/// A query that is given up, such as one beside another that failed, leaves no process: git may wait for ever, for a pipe
/// that the configuration includes for example.
impl Drop for GitQuery {
    fn drop(&mut self) {
        // One that was waited for is gone, and its id may be that of another process.
        if let Ok(None) = self.child.try_wait() {
            kill_git(&self.child);
            let _ = self.child.wait();
        }
    }
}

/// Kills a git that runs in a process group of its own, with the processes that it started. The child must not have been
/// waited for.
pub(super) fn kill_git(child: &Child) {
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
}

/// The git that a command would execute: the first one that can be.
pub(super) fn find_git(path: &str) -> Option<PathBuf> {
    SearchPath::open(path).find_programs("git").next().map(|program| program.as_path().to_owned())
}

/// Parses the output of `git config -z --list --show-scope --show-origin`; `None` if it has another format.
pub(super) fn parse_config_entries(output: &[u8]) -> Option<Vec<GitConfigEntry>> {
    let text = std::str::from_utf8(output).ok()?;
    let mut fields = text.split_terminator('\0');
    let mut rows = Vec::new();
    while let Some(scope) = fields.next() {
        let (origin, entry) = (fields.next()?, fields.next()?);
        let of_repository = match scope {
            "local" | "worktree" => true,
            "system" | "global" => false,
            // The overrides of the query itself.
            "command" => continue,
            _ => return None,
        };
        let (key, value) = entry.split_once('\n').unwrap_or((entry, "true"));
        let (section, rest) = key.split_once('.')?;
        let (subsection, variable) = match rest.rsplit_once('.') {
            Some((subsection, variable)) => (Some(subsection.to_owned()), variable),
            None => (None, rest),
        };
        rows.push(GitConfigEntry {
            of_repository,
            origin: origin.to_owned(),
            section: section.to_ascii_lowercase(),
            subsection,
            variable: variable.to_ascii_lowercase(),
            value: value.to_owned(),
        });
    }
    Some(rows)
}

/// Parses the submodule names from `git config -z --name-only --list` of a `.gitmodules`; `None` if one is not UTF-8.
pub(super) fn parse_submodules(output: &[u8]) -> Option<Vec<String>> {
    let text = std::str::from_utf8(output).ok()?;
    let mut names: Vec<String> = text
        .split_terminator('\0')
        .filter_map(|key| key.strip_prefix("submodule."))
        .filter_map(|rest| rest.rsplit_once('.'))
        .map(|(name, _)| name.to_owned())
        .collect();
    names.dedup();
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_parsed_with_scope_subsection_and_missing_values() {
        let output = b"global\0file:/h/.gitconfig\0user.name\nann\0local\0file:.git/config\0diff.We.ird.textconv\nx\ny\0\
                       worktree\0file:.git/config.worktree\0core.bare\0";
        let rows = parse_config_entries(output).unwrap();
        let found: Vec<(bool, String, &str)> =
            rows.iter().map(|row| (row.of_repository, row.key(), row.value.as_str())).collect();
        assert_eq!(
            found,
            [
                (false, "user.name".to_owned(), "ann"),
                (true, "diff.We.ird.textconv".to_owned(), "x\ny"),
                (true, "core.bare".to_owned(), "true"),
            ]
        );
        assert_eq!(rows[1].subsection.as_deref(), Some("We.ird"));
    }

    #[test]
    fn other_formats_are_refused() {
        for output in [&b"local\0file:x"[..], b"elsewhere\0file:x\0a.b\nc\0", b"local\0file:x\0\xff.b\nc\0"] {
            assert_eq!(parse_config_entries(output), None);
        }
    }
}
