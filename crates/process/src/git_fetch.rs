//! Fetching a git repository so that nothing runs that the repository or its address chose.
//!
//! The repository is fetched into an empty one of our own and checked out there. Hooks, filters, credential helpers and
//! file system monitors are configured outside of what a fetch transfers, and the user's and the system's configuration
//! are not read. Submodules are not fetched. Transports that run a program (`ext::`) are off.

use crate::hook_process::{HookCommand, HookProcessError, HookProgram, run_hook};
use std::collections::BTreeMap;
use std::time::Duration;
use toolgate_files::DEFAULT_SEARCH_PATH;
use toolgate_proto::AbsPath;

/// How long one step may take.
const GIT_TIMEOUT: Duration = Duration::from_secs(300);
/// How many characters of git's own message are shown.
const MAX_MESSAGE_CHARS: usize = 400;
/// Variables of the user that git needs to reach a server.
const PASSED_VARIABLES: [&str; 9] = [
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "SSH_AUTH_SOCK",
];
/// Configuration of every step. What a repository can bring along is inert; this keeps it so.
const GIT_CONFIG: [&str; 12] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.protectNTFS=true",
    "core.protectHFS=true",
    "credential.helper=",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "protocol.allow=never",
    "protocol.https.allow=always",
    "protocol.ssh.allow=always",
    "gc.auto=0",
];

/// A repository to fetch.
#[derive(Debug, Clone)]
pub struct GitFetch<'a> {
    /// Its address: `https://`, `ssh://`, `user@host:path`, or `file://` if [`GitFetch::allows_files`] says so.
    pub url: &'a str,
    /// The branch, tag or commit; absent means the default branch.
    pub reference: Option<&'a str>,
    /// Whether it may be on this machine.
    pub allows_files: bool,
    /// A directory that exists and is empty.
    pub target: &'a AbsPath,
    /// The user's environment, of which only what reaches a server is passed on.
    pub env: &'a BTreeMap<String, String>,
}

/// Whether an address is one that git may be given; the error says why not.
pub fn check_git_url(url: &str, allows_files: bool) -> Result<(), String> {
    let is_scp = || {
        let (host, path) = url.split_once(':').unwrap_or((url, ""));
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '@' | '.' | '-' | '_');
        host.contains('@') && !host.starts_with('-') && host.chars().all(fits) && !path.is_empty()
    };
    // Of `ssh://user@host/path` and `https://user@host/path`.
    let (user, host) = match url.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or_default())
    {
        Some(authority) => authority.rsplit_once('@').unwrap_or(("", authority)),
        None => ("", url),
    };
    let has_odd_characters = url.chars().any(|c| c.is_control() || c.is_whitespace());
    let is_known = ["https://", "ssh://"].iter().any(|scheme| url.starts_with(scheme)) || is_scp();
    match url {
        _ if has_odd_characters || url.contains("::") || url.starts_with('-') => {
            Err("it is not the address of a repository".to_owned())
        }
        _ if url.starts_with("file://") && allows_files => Ok(()),
        _ if url.starts_with("file://") => Err("it names a repository on this machine".to_owned()),
        _ if host.is_empty() || host.starts_with('-') || user.starts_with('-') => {
            Err("its host is not the name of a machine".to_owned())
        }
        // It would be stored with the plugin, and shown with it.
        _ if user.contains(':') => Err("it has a password in it; use its ssh address and a key".to_owned()),
        _ if is_known => Ok(()),
        _ if url.starts_with("http://") || url.starts_with("git://") => {
            Err("anyone on the way could change what it gives; use its https:// or ssh:// address".to_owned())
        }
        _ => Err("use an address that begins with https:// or ssh://".to_owned()),
    }
}

/// Fetches a repository without its history, and returns the commit.
pub async fn fetch_git(fetch: &GitFetch<'_>) -> Result<String, String> {
    check_git_url(fetch.url, fetch.allows_files)?;
    let reference = fetch.reference.unwrap_or("HEAD");
    if reference.is_empty() || reference.starts_with('-') || reference.contains([' ', ':', '\n']) {
        return Err(format!("`{}` is not a branch, tag or commit", reference.escape_debug()));
    }
    run_git(fetch, &["init", "--quiet", "--template=", "."]).await?;
    let options = ["fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules"];
    run_git(fetch, &[&options[..], &["--", fetch.url, reference]].concat()).await?;
    run_git(fetch, &["checkout", "--quiet", "--detach", "FETCH_HEAD"]).await?;
    let commit = run_git(fetch, &["rev-parse", "HEAD"]).await?;
    Ok(commit.trim().to_owned())
}

/// Runs one step in the target, and returns what it printed.
async fn run_git(fetch: &GitFetch<'_>, args: &[&str]) -> Result<String, String> {
    let files = if fetch.allows_files { "protocol.file.allow=always" } else { "protocol.file.allow=never" };
    let mut all: Vec<String> = Vec::new();
    for setting in GIT_CONFIG.into_iter().chain([files]) {
        all.extend(["-c".to_owned(), setting.to_owned()]);
    }
    all.extend(args.iter().map(|arg| (*arg).to_owned()));
    let command = HookCommand {
        program: HookProgram::Exec { program: "git".to_owned(), args: all },
        cwd: fetch.target.clone(),
        env: git_environment(fetch),
        stdin: Vec::new(),
        timeout: GIT_TIMEOUT,
        fault: None,
    };
    let output = run_hook(command).await.map_err(|problem| match problem {
        HookProcessError::Missing(_) => "git is not installed".to_owned(),
        HookProcessError::TimedOut => format!("git took longer than {} seconds", GIT_TIMEOUT.as_secs()),
        HookProcessError::NotStarted(why) | HookProcessError::Broken(why) => format!("git failed: {why}"),
        HookProcessError::TooMuchOutput => "git printed too much".to_owned(),
    })?;
    if output.code == Some(0) {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    let shown: String = message.trim().chars().take(MAX_MESSAGE_CHARS).collect();
    let advice = find_advice(&message).map(|advice| format!("; {advice}")).unwrap_or_default();
    Err(format!("git failed: {}{advice}", shown.replace('\n', "; ")))
}

/// What to do about a failure, by git's message in English.
fn find_advice(message: &str) -> Option<&'static str> {
    let known = [
        (
            "could not read Username",
            "there is no such repository, or it needs a sign-in: use its ssh address, with a key in your agent",
        ),
        ("Authentication failed", "use its ssh address, with a key in your agent"),
        ("Permission denied (publickey", "add a key that the server knows to your ssh agent"),
        ("Host key verification failed", "connect to the host with ssh once, and check its key"),
        (
            "certificate",
            "SSL_CERT_FILE names the certificates that are trusted, if the server has one of your own",
        ),
        ("Could not resolve host", "check the address and the network"),
    ];
    known.iter().find(|(part, _)| message.contains(part)).map(|(_, advice)| *advice)
}

/// The whole environment of git.
fn git_environment(fetch: &GitFetch<'_>) -> Vec<(String, String)> {
    let path = fetch.env.get("PATH").map_or(DEFAULT_SEARCH_PATH, String::as_str);
    let mut env: Vec<(String, String)> = [
        ("PATH", path),
        ("LC_ALL", "C"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_ATTR_NOSYSTEM", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_ASKPASS", "/bin/false"),
        ("SSH_ASKPASS", "/bin/false"),
        ("GIT_SSH_COMMAND", "ssh -oBatchMode=yes"),
        ("GIT_LFS_SKIP_SMUDGE", "1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec();
    // Keeps git from looking for a repository in the directories above.
    if let Some(parent) = fetch.target.parent() {
        env.push(("GIT_CEILING_DIRECTORIES".to_owned(), parent.to_string()));
    }
    // Git looks for certificates in variables of its own, whatever TLS library it was built with.
    for (own, others) in [
        ("GIT_SSL_CAINFO", ["GIT_SSL_CAINFO", "SSL_CERT_FILE"]),
        ("GIT_SSL_CAPATH", ["GIT_SSL_CAPATH", "SSL_CERT_DIR"]),
    ] {
        if let Some(value) = others.iter().find_map(|name| fetch.env.get(*name)) {
            env.push((own.to_owned(), value.clone()));
        }
    }
    for name in PASSED_VARIABLES {
        if let Some(value) = fetch.env.get(name) {
            env.push((name.to_owned(), value.clone()));
        }
    }
    env
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn git(dir: &Path, args: &[&str]) {
        let done = std::process::Command::new("git")
            .args(["-c", "user.name=n", "-c", "user.email=e@example.com"])
            .args(args)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .current_dir(dir)
            .output()
            .unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    #[test]
    fn addresses_that_run_a_program_or_name_files_are_refused() {
        for url in ["https://example.com/r.git", "ssh://git@example.com/r", "git@example.com:o/r.git"] {
            assert_eq!(check_git_url(url, false), Ok(()), "{url}");
        }
        for url in [
            "ext::sh -c id",
            "ext::id",
            "--upload-pack=id",
            "/etc",
            "../r",
            "http://example.com/r",
            "git://example.com/r",
            "file:///etc",
            "-oProxyCommand=id@h:x",
            "https://a b",
            "https://user:secret@example.com/r",
            "https://",
            "ssh://-oProxyCommand=id/r",
            "ssh://-oProxyCommand=id@h/r",
            "ssh://git@-oProxyCommand=id/r",
        ] {
            assert!(check_git_url(url, false).is_err(), "{url}");
        }
        assert_eq!(check_git_url("file:///tmp/r", true), Ok(()));
    }

    #[tokio::test]
    async fn a_repository_is_fetched_and_runs_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (source, marker) = (root.join("source"), root.join("ran"));
        std::fs::create_dir(&source).unwrap();
        git(&source, &["init", "--quiet", "-b", "main"]);
        std::fs::write(source.join("a.txt"), "one\n").unwrap();
        // Each of these would run a program in a repository that reads the configuration that comes with it.
        std::fs::write(source.join(".gitattributes"), "*.txt filter=evil diff=evil\n").unwrap();
        std::fs::write(source.join(".gitconfig"), "[core]\n\tfsmonitor = touch ran\n").unwrap();
        let hook = source.join(".git/hooks/post-checkout");
        std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
        std::fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", marker.display())).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", source.join("link")).unwrap();
        git(&source, &["add", "."]);
        git(&source, &["commit", "--quiet", "-m", "one"]);
        git(&source, &["config", "uploadpack.packObjectsHook", &format!("touch {}", marker.display())]);
        git(&source, &["tag", "v1"]);
        std::fs::write(source.join("a.txt"), "two\n").unwrap();
        git(&source, &["commit", "--quiet", "-a", "-m", "two"]);

        let url = format!("file://{}", source.display());
        let env = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
        for (name, reference, content) in [("t1", None, "two\n"), ("t2", Some("v1"), "one\n")] {
            let target = AbsPath::new(root.join(name)).unwrap();
            std::fs::create_dir(target.as_path()).unwrap();
            let fetch = GitFetch { url: &url, reference, allows_files: true, target: &target, env: &env };
            let commit = fetch_git(&fetch).await.unwrap();
            assert_eq!(commit.len(), 40);
            assert_eq!(std::fs::read_to_string(target.join("a.txt").as_path()).unwrap(), content);
        }
        assert!(!marker.exists(), "a program of the repository ran");
        let target = AbsPath::new(root.join("t3")).unwrap();
        std::fs::create_dir(target.as_path()).unwrap();
        for (url, reference, allows_files) in [
            (url.as_str(), Some("no-such"), true),
            (url.as_str(), Some("--help"), true),
            (url.as_str(), None, false),
        ] {
            let fetch = GitFetch { url, reference, allows_files, target: &target, env: &env };
            assert!(fetch_git(&fetch).await.is_err(), "{url} {reference:?}");
        }
    }
}
