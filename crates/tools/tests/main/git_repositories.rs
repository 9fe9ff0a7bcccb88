//! TestRepository git repositories: every setting and layout by which a repository makes git run a program or show a file from
//! outside.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The text of every file outside the workspace.
pub(super) const SECRET: &str = "OUTSIDE-7f3a91";

/// A deterministic random number generator (splitmix64).
pub(super) struct SeededRng(u64);

impl SeededRng {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) >> 33).unwrap() % bound
    }

    fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }
}

/// The directory of a test: programs that record that they ran, files outside the workspace, and template repositories.
pub(super) struct GitFixture {
    pub(super) dir: PathBuf,
}

/// One repository, and the directory in which a command starts.
pub(super) struct TestRepository {
    pub(super) workspace: PathBuf,
    pub(super) cwd: PathBuf,
    pub(super) features: Vec<&'static str>,
}

/// Configuration keys that name a program, by section.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("core", &["fsmonitor", "pager", "editor", "sshCommand", "askPass", "gitProxy", "alternateRefsCommand"]),
    ("diff", &["external"]),
    ("diff \"d\"", &["command", "textconv"]),
    ("diff \"t\"", &["textconv"]),
    ("filter \"f\"", &["clean", "smudge", "process"]),
    ("filter \"g\"", &["clean", "smudge"]),
    ("merge \"m\"", &["driver"]),
    ("gpg", &["program"]),
    ("gpg \"openpgp\"", &["program"]),
    ("gpg \"ssh\"", &["program", "defaultKeyCommand"]),
    ("gpg \"x509\"", &["program"]),
    ("interactive", &["diffFilter"]),
    ("credential", &["helper"]),
    ("credential \"https://example.com\"", &["helper"]),
    ("sequence", &["editor"]),
    ("uploadpack", &["packObjectsHook"]),
    ("remote \"origin\"", &["uploadpack", "receivepack"]),
    ("trailer \"x\"", &["command", "cmd"]),
    ("difftool \"x\"", &["cmd", "path"]),
    ("mergetool \"x\"", &["cmd", "path"]),
    ("browser \"x\"", &["cmd", "path"]),
    ("man \"x\"", &["cmd", "path"]),
    ("tar \"tgz\"", &["command"]),
    ("hook \"x\"", &["command"]),
    ("sendemail", &["toCmd", "ccCmd", "smtpServer"]),
    ("instaweb", &["httpd", "browser"]),
    ("imap", &["tunnel"]),
    ("gc", &["recentObjectsHook"]),
];

/// Settings that make git use those programs.
const SWITCHES: &str = "[log]\n\tshowSignature = true\n\tdiffMerges = remerge\n\tmailmap = true\n\
    [merge]\n\tdefault = m\n[diff]\n\tsubmodule = diff\n\tignoreSubmodules = none\n\ttool = x\n\
    [status]\n\tsubmoduleSummary = true\n[submodule]\n\trecurse = true\n[gpg]\n\tformat = openpgp\n\
    [filter \"f\"]\n\trequired = true\n[help]\n\tformat = web\n\tbrowser = x\n[man]\n\tviewer = x\n\
    [stash]\n\tshowPatch = true\n\tshowIncludeUntracked = true\n[format]\n\tpretty = \"%h %G? %GS %an %s\"\n\
    [diff \"t\"]\n\tcachetextconv = true\n[protocol]\n\tallow = always\n[protocol \"ext\"]\n\tallow = always\n\
    [core]\n\tuntrackedCache = true\n\tpreloadIndex = false\n";

const HOOKS: &[&str] = &[
    "pre-commit",
    "post-index-change",
    "reference-transaction",
    "post-checkout",
    "fsmonitor-watchman",
    "pre-auto-gc",
    "post-merge",
    "query-watchman",
];

impl GitFixture {
    pub(super) fn new(dir: PathBuf) -> Self {
        let fixture = Self { dir };
        for name in ["stubs", "outside", "home", "templates"] {
            fs::create_dir(fixture.dir.join(name)).unwrap();
        }
        fixture.outside();
        fixture.template("plain", &[]);
        fixture.template("sha256", &["--object-format=sha256"]);
        fixture
    }

    /// The path of a program that records that it ran.
    fn stub(&self, name: &str) -> String {
        let name: String =
            name.chars().map(|character| if character.is_alphanumeric() { character } else { '_' }).collect();
        let path = self.dir.join("stubs").join(&name);
        if !path.exists() {
            let text = format!(
                "#!/bin/sh\necho {name} >> {}\ntimeout 2 cat 2>/dev/null\n",
                self.run_log().display()
            );
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        path.display().to_string()
    }

    /// The file in which programs record that they ran.
    pub(super) fn run_log(&self) -> PathBuf {
        self.dir.join("ran")
    }

    fn outside(&self) {
        let outside = self.dir.join("outside");
        for name in ["secret.txt", "ignore", "order", "deep/secret.txt"] {
            fs::create_dir_all(outside.join(name).parent().unwrap()).unwrap();
            fs::write(outside.join(name), format!("{SECRET}\n*{SECRET}*\nnew.[{SECRET}t]xt\n")).unwrap();
        }
        fs::write(outside.join("mailmap"), format!("{SECRET} <new@x> <ann@example.com>\n")).unwrap();
        fs::write(
            outside.join("secret.cfg"),
            format!("[client]\n\tpassword = {SECRET}\n[user]\n\tname = {SECRET}\n"),
        )
        .unwrap();
        fs::write(outside.join("attributes"), "* diff=t filter=g\n").unwrap();
        let repo = outside.join("repo");
        fs::create_dir(&repo).unwrap();
        git(&repo, &["init", "-q", "-b", "main"]);
        fs::write(repo.join("private.txt"), format!("{SECRET}\n")).unwrap();
        git(&repo, &["add", "."]);
        git(&repo, &["commit", "-qm", SECRET]);
    }

    /// A repository with merges, a stash, tags, notes, a signed commit, and files that have changed.
    fn template(&self, name: &str, options: &[&str]) {
        let repo = self.dir.join("templates").join(name);
        fs::create_dir(&repo).unwrap();
        git(&repo, &[&["init", "-q", "-b", "main"], options].concat());
        fs::create_dir_all(repo.join("src")).unwrap();
        for (file, text) in [("a.txt", "one\ntwo\n"), ("b.txt", "b\n"), ("src/main.rs", "fn main() {}\n")] {
            fs::write(repo.join(file), text).unwrap();
        }
        git(&repo, &["add", "."]);
        git(&repo, &["commit", "-qm", "one"]);
        git(&repo, &["tag", "-a", "v1", "-m", "tagged"]);
        git(&repo, &["checkout", "-qb", "topic"]);
        fs::write(repo.join("a.txt"), "one\ntopic\n").unwrap();
        git(&repo, &["commit", "-qam", "topic"]);
        git(&repo, &["checkout", "-q", "main"]);
        fs::write(repo.join("a.txt"), "one\nmain\n").unwrap();
        git(&repo, &["commit", "-qam", "two"]);
        git(&repo, &["merge", "-q", "-s", "ours", "-m", "merged", "topic"]);
        git(&repo, &["notes", "add", "-m", "note"]);
        fs::write(repo.join("b.txt"), "stashed\n").unwrap();
        git(&repo, &["stash", "-q"]);
        // A commit with a signature.
        let body = read_git(&repo, &["cat-file", "commit", "HEAD"]);
        let (head, message) = body.split_once("\n\n").unwrap();
        let signed = format!(
            "{head}\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n aaaa\n -----END PGP SIGNATURE-----\n\n{message}"
        );
        fs::write(repo.join(".git/signed"), signed).unwrap();
        let name = read_git(&repo, &["hash-object", "-t", "commit", "-w", ".git/signed"]);
        git(&repo, &["update-ref", "refs/heads/main", name.trim()]);
        fs::remove_file(repo.join(".git/signed")).unwrap();
        fs::write(repo.join("a.txt"), "one\nchanged\n").unwrap();
        fs::write(repo.join("new.txt"), "new\n").unwrap();
    }

    /// A configuration in which every key names a different program.
    fn programs(&self, prefix: &str) -> String {
        let mut text = String::new();
        for (section, keys) in PROGRAMS {
            text.push_str(&format!("[{section}]\n"));
            for key in *keys {
                text.push_str(&format!("\t{key} = {}\n", self.stub(&format!("{prefix}_{section}_{key}"))));
            }
        }
        let hooks = self.dir.join("stubs/hooks");
        if !hooks.exists() {
            fs::create_dir(&hooks).unwrap();
            let stub = self.stub("hook");
            for hook in HOOKS {
                fs::copy(&stub, hooks.join(hook)).unwrap();
            }
        }
        text.push_str(&format!("[core]\n\thooksPath = {}\n", hooks.display()));
        for reader in ["status", "log", "diff", "show", "blame", "help", "annotate"] {
            let stub = self.stub(&format!("{prefix}_pager_{reader}"));
            text.push_str(&format!("[pager]\n\t{reader} = {stub}\n[alias]\n\t{reader} = !{stub}\n"));
        }
        text + SWITCHES
    }

    /// Settings with paths outside the workspace.
    fn paths(&self) -> String {
        let outside = self.dir.join("outside");
        let outside = outside.display();
        format!(
            "[core]\n\texcludesFile = {outside}/ignore\n\tattributesFile = {outside}/attributes\n\
             [mailmap]\n\tfile = {outside}/mailmap\n\
             [diff]\n\torderFile = {outside}/order\n[commit]\n\ttemplate = {outside}/secret.txt\n\
             [gpg \"ssh\"]\n\tallowedSignersFile = {outside}/secret.txt\n[format]\n\tsignatureFile = {outside}/secret.txt\n"
        )
    }

    /// Writes the user's own configuration, with or without programs.
    pub(super) fn write_user_config(&self, programs: bool) {
        let mut text = "[user]\n\tname = ann\n\temail = ann@example.com\n".to_owned();
        if programs {
            text.push_str(&self.programs("user"));
        }
        fs::write(self.dir.join("home/.gitconfig"), text).unwrap();
    }

    /// Repositories that are not repository.
    pub(super) fn ordinary(&self) -> Vec<TestRepository> {
        let at = |workspace: PathBuf, cwd: PathBuf, feature| TestRepository {
            workspace,
            cwd,
            features: vec![feature],
        };
        let plain = self.dir.join("templates/plain");
        let linked = self.dir.join("linked");
        git(&plain, &["worktree", "add", "-q", "--detach", &linked.display().to_string()]);
        fs::write(linked.join("a.txt"), "changed\n").unwrap();
        let relative = self.dir.join("ordinary");
        copy(&self.dir.join("templates/sha256"), &relative);
        append(
            &relative.join(".git/config"),
            "[blame]\n\tignoreRevsFile = .ignored\n[include]\n\tpath = ../team.cfg\n",
        );
        fs::write(relative.join(".ignored"), "# none\n").unwrap();
        fs::write(relative.join("team.cfg"), "[log]\n\tdate = short\n").unwrap();
        let empty = self.dir.join("empty");
        fs::create_dir(&empty).unwrap();
        fs::write(empty.join("a.txt"), "a\n").unwrap();
        fs::write(empty.join("b.txt"), "b\n").unwrap();
        vec![
            at(plain.clone(), plain.clone(), "plain"),
            at(plain.clone(), plain.join("src"), "below the top"),
            at(linked.clone(), linked, "a linked worktree"),
            at(relative.clone(), relative, "a configuration of the team's, and other object names"),
            at(empty.clone(), empty, "no repository"),
        ]
    }

    /// A repository with every hostile setting at once.
    pub(super) fn all_at_once(&self) -> TestRepository {
        let workspace = self.dir.join("all");
        copy(&self.dir.join("templates/plain"), &workspace);
        let mut repository =
            TestRepository { cwd: workspace.clone(), workspace: workspace.clone(), features: vec!["plain"] };
        self.submodule_of(&mut repository, 0);
        fs::write(workspace.join("b.txt"), "changed\n").unwrap();
        fs::write(workspace.join("src/main.rs"), "changed\n").unwrap();
        fs::create_dir_all(workspace.join(".git/info")).unwrap();
        fs::write(
            workspace.join(".git/info/attributes"),
            "a.txt filter=f merge=m\nb.txt diff=t\n*.rs filter=g\n",
        )
        .unwrap();
        append(&workspace.join(".git/config"), &(self.programs("repo") + &self.paths()));
        repository
    }

    /// Creates one repository with a random selection of features.
    pub(super) fn repository(&self, number: usize, rng: &mut SeededRng) -> TestRepository {
        let workspace = self.dir.join(format!("ws{number}"));
        let template = if rng.one_in(8) { "sha256" } else { "plain" };
        copy(&self.dir.join("templates").join(template), &workspace);
        let mut repository =
            TestRepository { cwd: workspace.clone(), workspace: workspace.clone(), features: vec![template] };
        let git_dir = workspace.join(".git");
        let config = git_dir.join("config");
        let programs = self.programs("repo");
        // The place of the configuration that names the programs.
        match rng.below(8) {
            0 => {
                repository.features.push("included");
                fs::write(git_dir.join("evil.inc"), &programs).unwrap();
                append(&config, "[include]\n\tpath = evil.inc\n");
            }
            1 => {
                repository.features.push("included on a condition");
                fs::write(workspace.join("evil.inc"), &programs).unwrap();
                let condition = ["gitdir:/", "onbranch:main", "onbranch:**"][rng.below(3)];
                append(&config, &format!("[includeIf \"{condition}\"]\n\tpath = ../evil.inc\n"));
            }
            2 => {
                repository.features.push("configuration of the worktree");
                append(
                    &config,
                    "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n",
                );
                if template == "sha256" {
                    append(&config, "[extensions]\n\tobjectFormat = sha256\n");
                }
                fs::write(git_dir.join("config.worktree"), &programs).unwrap();
            }
            3 => {
                repository.features.push("byte order mark and carriage returns");
                let text = fs::read_to_string(&config).unwrap() + &programs;
                fs::write(&config, format!("\u{feff}{}", text.replace('\n', "\r\n"))).unwrap();
            }
            4 => {
                repository.features.push("odd spelling");
                let text = programs
                    .replace("[diff \"d\"]", "[DIFF.d]")
                    .replace("[filter \"f\"]", "[FiLtEr   \"f\"]")
                    .replace(" = ", " =\\\n ")
                    .replace("\t", "");
                append(&config, &text);
            }
            _ => append(&config, &programs),
        }
        // Attributes that use the programs.
        let attributes =
            ["* filter=f diff=d merge=m\n", "* filter=g diff=t\n", "*.txt diff=t\n*.rs diff=d\n"]
                [rng.below(3)];
        match rng.below(4) {
            0 => {
                repository.features.push("attributes of the repository");
                fs::create_dir_all(git_dir.join("info")).unwrap();
                fs::write(git_dir.join("info/attributes"), attributes).unwrap();
            }
            1 => {
                repository.features.push("attributes of the worktree");
                fs::write(workspace.join(".gitattributes"), attributes).unwrap();
            }
            2 => {
                repository.features.push("attributes everywhere");
                fs::create_dir_all(git_dir.join("info")).unwrap();
                fs::write(git_dir.join("info/attributes"), attributes).unwrap();
                fs::write(workspace.join(".gitattributes"), attributes).unwrap();
                fs::write(workspace.join("src/.gitattributes"), attributes).unwrap();
            }
            _ => {}
        }
        fs::create_dir_all(git_dir.join("hooks")).unwrap();
        for hook in HOOKS {
            fs::copy(self.stub("hook"), git_dir.join("hooks").join(hook)).unwrap();
        }
        if rng.one_in(2) {
            repository.features.push("settings that name files outside");
            append(&config, &self.paths());
        }
        if rng.one_in(3) {
            self.submodule(&mut repository, rng);
        }
        if rng.one_in(4) {
            repository.features.push("partial clone");
            append(
                &config,
                &format!(
                    "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n\
                     [remote \"origin\"]\n\tpromisor = true\n\turl = {}\n",
                    if rng.one_in(2) {
                        format!("\"ext::{} %S\"", self.stub("remote_ext"))
                    } else {
                        self.dir.join("outside/repo").display().to_string()
                    }
                ),
            );
            let missing =
                read_git(&self.dir.join("templates").join(template), &["rev-parse", "HEAD~1:b.txt"]);
            let missing = missing.trim();
            let _ = fs::remove_file(git_dir.join("objects").join(&missing[..2]).join(&missing[2..]));
        }
        if rng.one_in(6) {
            repository.features.push("a directory of the index that is a symlink");
            fs::create_dir_all(workspace.join("deep")).unwrap();
            fs::write(workspace.join("deep/secret.txt"), "harmless\n").unwrap();
            bare_git(&workspace, &["add", "deep/secret.txt"]);
            fs::remove_dir_all(workspace.join("deep")).unwrap();
            symlink(self.dir.join("outside/deep"), workspace.join("deep")).unwrap();
        }
        if rng.one_in(4) {
            self.layout(&mut repository, rng);
        } else if rng.one_in(4) {
            repository.features.push("a directory below the top");
            repository.cwd = workspace.join("src");
        }
        repository
    }

    /// Moves a part of the repository elsewhere.
    fn layout(&self, repository: &mut TestRepository, rng: &mut SeededRng) {
        let workspace = &repository.workspace;
        let outside = self.dir.join("outside");
        let git_dir = workspace.join(".git");
        let config = git_dir.join("config");
        let feature = match rng.below(14) {
            0 => {
                fs::rename(&git_dir, workspace.join("kept")).unwrap();
                fs::write(&git_dir, format!("gitdir: {}\n", outside.join("repo/.git").display())).unwrap();
                "a `.git` file that leads outside"
            }
            1 => {
                fs::rename(&git_dir, workspace.join("kept")).unwrap();
                fs::write(&git_dir, "gitdir: kept\n").unwrap();
                "a `.git` file that leads inside"
            }
            2 => {
                fs::rename(&git_dir, workspace.join("kept")).unwrap();
                symlink(outside.join("repo/.git"), &git_dir).unwrap();
                "a `.git` symlink that leads outside"
            }
            3 => {
                fs::write(git_dir.join("commondir"), format!("{}\n", outside.join("repo/.git").display()))
                    .unwrap();
                "`commondir`"
            }
            4 => {
                append(&config, &format!("[core]\n\tworktree = {}\n", outside.display()));
                "`core.worktree`"
            }
            5 => {
                fs::write(
                    git_dir.join("objects/info/alternates"),
                    format!("{}\n", outside.join("repo/.git/objects").display()),
                )
                .unwrap();
                let head = fs::read_to_string(outside.join("repo/.git/refs/heads/main")).unwrap();
                fs::write(git_dir.join("refs/heads/theirs"), head).unwrap();
                "alternates"
            }
            6 => {
                append(&config, &format!("[include]\n\tpath = {}\n", outside.join("secret.cfg").display()));
                "an include from outside"
            }
            7 => {
                symlink(outside.join("secret.cfg"), workspace.join("linked.cfg")).unwrap();
                append(&config, "[include]\n\tpath = ../linked.cfg\n");
                "an include through a symlink"
            }
            8 => {
                let _ = fs::remove_file(git_dir.join("info/exclude"));
                fs::create_dir_all(git_dir.join("info")).unwrap();
                symlink(outside.join("ignore"), git_dir.join("info/exclude")).unwrap();
                "`info/exclude` that leads outside"
            }
            9 => {
                append(&config, &"# a comment without meaning\n".repeat(60_000));
                "a huge configuration"
            }
            10 => {
                copy(&git_dir, &workspace.join("bare.git"));
                append(&workspace.join("bare.git/config"), "[core]\n\tbare = true\n");
                repository.cwd = workspace.join("bare.git");
                "an embedded bare repository"
            }
            11 => {
                append(
                    &config,
                    &format!("[blame]\n\tignoreRevsFile = {}\n", outside.join("secret.txt").display()),
                );
                "`blame.ignoreRevsFile` outside"
            }
            12 => {
                repository.cwd = git_dir.clone();
                "a start inside `.git`"
            }
            _ => {
                let main = self.dir.join(format!("{}-main", workspace.file_name().unwrap().display()));
                fs::rename(workspace, &main).unwrap();
                let here = workspace.display().to_string();
                bare_git(&main, &["worktree", "add", "-q", "--detach", "--no-checkout", &here]);
                if workspace.exists() {
                    bare_git(workspace, &["reset", "-q"]);
                    fs::write(workspace.join("a.txt"), "changed\n").unwrap();
                } else {
                    fs::rename(&main, workspace).unwrap();
                }
                "a linked worktree"
            }
        };
        repository.features.push(feature);
    }

    /// A submodule whose own configuration names programs.
    fn submodule(&self, repository: &mut TestRepository, rng: &mut SeededRng) {
        self.submodule_of(repository, rng.below(3));
    }

    fn submodule_of(&self, repository: &mut TestRepository, kind: usize) {
        let workspace = &repository.workspace;
        let sub = workspace.join("sub");
        copy(&self.dir.join("templates/plain"), &sub);
        // With names that the superproject does not have.
        let programs = self.programs("submodule").replace("filter \"g\"", "filter \"sg\"");
        append(&sub.join(".git/config"), &programs.replace("diff \"t\"", "diff \"st\""));
        append(&sub.join(".git/config"), &self.paths());
        fs::create_dir_all(sub.join(".git/info")).unwrap();
        fs::write(sub.join(".git/info/attributes"), "* filter=sg diff=st\n").unwrap();
        fs::write(sub.join(".gitattributes"), "* filter=sg diff=st\n").unwrap();
        let modules = "[submodule \"weird name\"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n";
        let head = read_git(&self.dir.join("templates/plain"), &["rev-parse", "HEAD~1"]);
        let entry = format!("160000,{},sub", head.trim());
        bare_git(workspace, &["update-index", "--add", "--cacheinfo", &entry]);
        match kind {
            0 => {
                repository.features.push("a submodule");
                fs::write(workspace.join(".gitmodules"), modules).unwrap();
            }
            1 => {
                repository.features.push("a submodule of the index alone");
                fs::write(workspace.join(".gitmodules"), modules).unwrap();
                bare_git(workspace, &["add", ".gitmodules"]);
                fs::remove_file(workspace.join(".gitmodules")).unwrap();
            }
            _ => repository.features.push("a submodule without a name"),
        }
    }
}

fn append(file: &Path, text: &str) {
    let whole = fs::read_to_string(file).unwrap_or_default() + text;
    fs::write(file, whole).unwrap();
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
}

/// Runs git before anything hostile is configured.
fn git(dir: &Path, args: &[&str]) {
    read_git(dir, args);
}

fn read_git(dir: &Path, args: &[&str]) -> String {
    let done = command(dir).args(args).output().unwrap();
    assert!(done.status.success(), "{args:?} {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// Runs git in a repository that is already repository, with its settings overridden. It may fail.
fn bare_git(dir: &Path, args: &[&str]) {
    let mut off = vec!["core.fsmonitor=false", "core.hooksPath=/dev/null", "core.attributesFile=/dev/null"];
    off.extend(["filter.f.process=", "filter.f.clean=", "filter.f.smudge=", "filter.f.required=false"]);
    off.extend(["filter.g.clean=", "filter.g.smudge="]);
    let off = off.into_iter().flat_map(|setting| ["-c", setting]);
    let mut command = command(dir);
    command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "none");
    let _ = command.args(off).args(args).output().unwrap();
}

fn command(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(dir).stdin(Stdio::null()).env_clear();
    command.env("PATH", std::env::var("PATH").unwrap()).env("HOME", dir).env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "ann").env(format!("GIT_{who}_EMAIL"), "ann@example.com");
    }
    command
}
