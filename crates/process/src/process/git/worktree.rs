//! Git worktrees, made and removed without running anything that the repository names.
//!
//! Every worktree is in one folder of the main checkout, [`WORKTREE_FOLDER`], and on a branch of its own. git runs with
//! the overrides of a command that only reads: no hooks, no filters, no file system monitor, no attributes, no transport,
//! neither the system's nor the user's configuration.

use super::overrides::{READ_ONLY_SETTINGS, base_settings, override_repository_settings};
use super::query::{GitQuery, MAX_CONFIG_BYTES, find_git, kill_git, parse_config_entries};
use super::repository::{GitRepository, canonicalize};
use super::{CONFIG_LIST_ARGS, as_variables, empty_tree, query_environment, to_owned_pairs};
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use toolgate_proto::{AbsPath, GitUse, fit_line};

/// The folder of worktrees in the main checkout.
pub const WORKTREE_FOLDER: &str = ".worktrees";
/// What the names of their branches begin with.
const BRANCH_PREFIX: &str = "worktree-";
/// Characters of a name.
const MAX_NAME_CHARS: usize = 64;
/// How long git may take to check out or to compare a large repository.
const GIT_TIMEOUT: Duration = Duration::from_secs(120);
/// How often a running git is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Bytes of output that are read.
const MAX_OUTPUT_BYTES: u64 = 8 << 20;
/// Characters of git's message in ours.
const MAX_MESSAGE_CHARS: usize = 300;

/// The worktrees of one repository.
#[derive(Debug)]
pub struct GitWorktrees {
    git: PathBuf,
    top: AbsPath,
    environment: BTreeMap<String, String>,
}

/// A worktree in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GitWorktree {
    /// Its name in the folder.
    pub name: String,
    /// Its directory.
    pub path: AbsPath,
    /// The branch that was made for it.
    pub branch: String,
}

/// What would be lost with a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WorktreeChanges {
    /// Files that are changed, or new and not ignored.
    pub files: usize,
    /// Commits that no other branch, tag or remote branch has.
    pub commits: usize,
}

impl WorktreeChanges {
    /// Whether nothing would be lost.
    pub fn is_empty(self) -> bool {
        self.files == 0 && self.commits == 0
    }
}

impl GitWorktrees {
    /// The repository of a directory. `path` is the `PATH` in which git is found. The error says why there is none.
    pub fn discover(cwd: &AbsPath, path: &str) -> Result<Self, String> {
        let cwd = canonicalize(cwd.as_path()).ok_or_else(|| format!("`{cwd}` is not a directory"))?;
        let here =
            GitRepository::discover(&cwd)?.ok_or_else(|| format!("`{cwd}` is in no git repository"))?;
        let top = here.common_dir.parent().filter(|_| here.common_dir.as_path().ends_with(".git"));
        let top =
            top.ok_or("the repository has no checkout of its own, so it has no folder for worktrees")?;
        let main = GitRepository::discover(&top)?.filter(|main| main.git_dir == here.common_dir);
        let main = main.ok_or_else(|| format!("`{top}` is not the main checkout of the repository"))?;
        if let Some(why) = main.layout_problem(std::slice::from_ref(&top)) {
            return Err(why);
        }
        let git = find_git(path).ok_or("git is not installed")?;
        let mut environment = query_environment(&BTreeMap::from([("PATH".to_owned(), path.to_owned())]));
        let listed = GitQuery::start(&git, CONFIG_LIST_ARGS, &top, &environment, ("", MAX_CONFIG_BYTES))
            .and_then(GitQuery::finish)
            .filter(|listed| listed.success)
            .and_then(|listed| parse_config_entries(&listed.output));
        let rows = listed.ok_or("its configuration cannot be read")?;
        if let Some(why) = main.config_problem(&rows, std::slice::from_ref(&top)) {
            return Err(why);
        }
        let mut settings = base_settings();
        settings.extend(override_repository_settings(&rows, GitUse::Reads));
        settings.extend(to_owned_pairs(READ_ONLY_SETTINGS));
        environment.extend(as_variables(&settings));
        environment.insert("GIT_CONFIG_GLOBAL".to_owned(), "/dev/null".to_owned());
        environment.insert("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned());
        // Without attributes no filter applies, even if the configuration changes between the query and the run.
        environment.insert("GIT_ATTR_SOURCE".to_owned(), empty_tree(&rows).to_owned());
        Ok(Self { git, top, environment })
    }

    /// The main checkout.
    pub fn top(&self) -> &AbsPath {
        &self.top
    }

    /// The directory of a worktree of a name; the error says why the name cannot be used.
    pub fn path_of(&self, name: &str) -> Result<AbsPath, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let fits = !name.is_empty()
            && name.len() <= MAX_NAME_CHARS
            && name.chars().all(is_plain)
            && !name.starts_with(['.', '-'])
            && !name.ends_with(['.', '-'])
            && !name.contains("..")
            && !name.ends_with(".lock");
        match fits {
            true => Ok(self.top.join(WORKTREE_FOLDER).join(name)),
            false => Err(format!(
                "`{}` cannot be the name of a worktree; use letters, digits, `-`, `_` and `.`",
                fit_line(name, MAX_NAME_CHARS)
            )),
        }
    }

    /// Makes a worktree of the last commit, on a new branch, and locks it.
    pub fn add(&self, name: &str) -> Result<GitWorktree, String> {
        let path = self.path_of(name)?;
        self.check_folder(&path)?;
        let folder = self.top.join(WORKTREE_FOLDER);
        toolgate_files::make_private_dir(&folder).map_err(|error| format!("`{folder}`: {error}"))?;
        // The folder ignores itself, so that it is not in the way of `git status` and never committed.
        let ignore = folder.join(".gitignore");
        if toolgate_files::read_file_stamp(&ignore) == toolgate_files::FileStamp::Absent {
            toolgate_files::write_private_file(&ignore, b"*\n")
                .map_err(|error| format!("`{ignore}`: {error}"))?;
        }
        let branch = format!("{BRANCH_PREFIX}{name}");
        let text = path.to_string();
        let _lock = self.lock_folder();
        let lock = ["--lock", "--reason", "in use by an agent"];
        let args =
            [&["worktree", "add", "--quiet"][..], &lock, &["-b", &branch, "--", &text, "HEAD"]].concat();
        self.run(&self.top, &args)?;
        self.check_folder(&path)?;
        Ok(GitWorktree { name: name.to_owned(), path, branch })
    }

    /// A worktree that exists in the folder. One that git does not list is refused, and so is one elsewhere.
    pub fn find(&self, path: &AbsPath) -> Result<GitWorktree, String> {
        let folder = self.top.join(WORKTREE_FOLDER);
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.parent().as_ref() != Some(&folder) || self.path_of(name)? != *path {
            return Err(format!("`{path}` is not a worktree in `{folder}`"));
        }
        self.check_folder(path)?;
        let is_there = toolgate_files::read_file_stamp(&folder) != toolgate_files::FileStamp::Absent;
        let _lock = is_there.then(|| self.lock_folder());
        let listed = self.run(&self.top, &["worktree", "list", "--porcelain", "-z"])?;
        let mut branch = None;
        let mut is_meant = false;
        for line in listed.split('\0') {
            if let Some(listed) = line.strip_prefix("worktree ") {
                is_meant = listed == path.to_string();
            } else if let Some(name) = line.strip_prefix("branch refs/heads/").filter(|_| is_meant) {
                branch = Some(name.to_owned());
            }
        }
        // One on another branch, or on none, was changed by hand and belongs to the user.
        match branch.filter(|branch| *branch == format!("{BRANCH_PREFIX}{name}")) {
            Some(branch) => Ok(GitWorktree { name: name.to_owned(), path: path.clone(), branch }),
            None => Err(format!("`{path}` is not a worktree on the branch `{BRANCH_PREFIX}{name}`")),
        }
    }

    /// What would be lost with a worktree.
    pub fn changes(&self, worktree: &GitWorktree) -> Result<WorktreeChanges, String> {
        self.check_folder(&worktree.path)?;
        let status =
            self.run(&worktree.path, &["status", "--porcelain", "-z", "--untracked-files=normal"])?;
        let own = format!("--exclude={}", worktree.branch);
        let args = ["rev-list", "--count", "HEAD", "--not", &own, "--branches", "--tags", "--remotes"];
        let commits = self.run(&worktree.path, &args)?;
        let commits = commits.trim().parse().map_err(|_| "git did not count the commits".to_owned())?;
        Ok(WorktreeChanges { files: status.split_terminator('\0').count(), commits })
    }

    /// Lets git remove and move it again, and leaves it where it is.
    pub fn unlock(&self, worktree: &GitWorktree) -> Result<(), String> {
        self.run(&self.top, &["worktree", "unlock", &worktree.path.to_string()]).map(|_| ())
    }

    /// Removes a worktree and its branch, with everything in them.
    pub fn remove(&self, worktree: &GitWorktree) -> Result<(), String> {
        self.check_folder(&worktree.path)?;
        let _lock = self.lock_folder();
        // Twice: a locked one too.
        self.run(&self.top, &["worktree", "remove", "--force", "--force", &worktree.path.to_string()])?;
        self.run(&self.top, &["branch", "--quiet", "-D", "--", &worktree.branch]).map(|_| ())
    }

    /// One git at a time makes, lists or removes worktrees, of all processes: each reads the files of all worktrees, and
    /// fails at those that another is just writing. After a while, as beside the checkout of a large repository, it goes on
    /// without the lock: then it may fail, and nothing is lost.
    fn lock_folder(&self) -> Option<toolgate_files::StateFileLock> {
        toolgate_files::lock_state_file(&self.top.join(WORKTREE_FOLDER).join(".worktrees")).ok()
    }

    /// A symlink must not lead git out of the folder.
    fn check_folder(&self, path: &AbsPath) -> Result<(), String> {
        match toolgate_files::resolve(path).real == *path {
            true => Ok(()),
            false => Err(format!("the path `{path}` contains a symlink")),
        }
    }

    /// Runs git, and returns what it printed. The error is its message.
    fn run(&self, cwd: &AbsPath, args: &[&str]) -> Result<String, String> {
        let mut command = Command::new(&self.git);
        command.args(args).current_dir(cwd.as_path()).env_clear().envs(&self.environment);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().map_err(|error| format!("git could not be started: {error}"))?;
        let (output, messages) = (child.stdout.take(), child.stderr.take());
        let output = std::thread::spawn(move || read_all(output));
        let messages = std::thread::spawn(move || read_all(messages));
        let started = Instant::now();
        let status = loop {
            match child.try_wait().map_err(|error| error.to_string())? {
                Some(status) => break status,
                None if started.elapsed() > GIT_TIMEOUT => {
                    kill_git(&child);
                    let _ = child.wait();
                    return Err(format!("git took longer than {} seconds", GIT_TIMEOUT.as_secs()));
                }
                None => std::thread::sleep(POLL_INTERVAL),
            }
        };
        let output = output.join().unwrap_or_default();
        let messages = messages.join().unwrap_or_default();
        match status.success() {
            true => Ok(String::from_utf8_lossy(&output).into_owned()),
            false => {
                let message = String::from_utf8_lossy(&messages).trim().to_owned();
                Err(format!("git failed: {}", fit_line(&message, MAX_MESSAGE_CHARS)))
            }
        }
    }
}

/// Reads a pipe up to the limit. What is beyond it is read too, so that git does not block.
fn read_all(pipe: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        let _ = pipe.by_ref().take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes);
        let _ = std::io::copy(&mut pipe, &mut std::io::sink());
    }
    bytes
}
