//! The option oracle: no combination of options and operands of a reader that needs no approval writes a file, runs
//! another program or reveals a secret.
//!
//! The options come from the `--help` of each installed program: alone, in clusters, abbreviated, with values attached
//! or in the next word, before and after operands. Real bash runs the lines that need no approval with the real
//! programs; every other program in `PATH` is a stub that logs that it was started.

use super::random_numbers::{SeededRandom, setting};
use super::simple_policy::{line as command_line, path};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use toolgate_policy::Workspace;
use toolgate_proto::{Effect, PathScope};
use toolgate_shell_syntax::{CommandAnalysis, analyse};

/// Programs with an option table or a grammar. Those that are not installed are skipped.
const READERS: &str = "cat tac head tail wc nl cut paste tr sort uniq comm join fold fmt expand unexpand rev od hexdump \
    xxd strings base64 base32 md5sum sha1sum sha256sum b2sum cksum sum column diff cmp iconv shuf seq factor expr \
    numfmt tsort ls dir vdir stat file du df tree realpath readlink basename dirname namei which whereis grep egrep \
    fgrep rg fd ag eza bat uname arch nproc whoami logname tty groups users uptime hostname id who free lscpu lsblk \
    getconf locale cal pgrep pidof date ps echo printf test true pwd type sed awk find jq tar unzip gzip bzip2 xz zcat \
    bzcat xzcat zipinfo nm readelf objdump size dpkg dpkg-query ss xargs printenv man";

/// Programs that an option of a reader might start.
const STUBS: &str = "touch evil sh pr less more pager vi vim editor cp mv rm tee split csplit dd curl wget ssh nc python3 \
    perl ruby node make gcc ld git zip zstd lzop compress lpr mail ed patch install ln mkdir chmod chown tput stty \
    mktemp sudo env nohup timeout bash";

const OPERANDS: &[&str] = &[
    "a.txt",
    "b.txt",
    "src",
    "src/main.rs",
    ".",
    "sub",
    "data.csv",
    "pkg.json",
    "a.tar",
    "a.gz",
    "a.zip",
    "a.o",
    "new.txt",
    "*.txt",
    "src/*",
    "'c d.txt'",
    "-",
    "resp",
    "@resp",
    "'{print}'",
    "s/a/b/",
    "'w new.txt'",
    "x",
    "1",
    "2",
    "p",
    ".a",
    "+%F",
    "*",
    "[+-]*",
    "+*",
    "-newer",
    "-samefile",
    "-name",
    "-print",
    "-delete",
    "-exec",
    "';'",
    "{}",
    "+",
    "$?",
    "\"$(pwd)\"",
    "{a,b}.txt",
    "new{1,2}",
];

const VALUES: &[&str] = &[
    "1",
    "2",
    "a.txt",
    "new.txt",
    "new.txt",
    "resp",
    "evil",
    "touch",
    "'touch new.txt'",
    "sh",
    "exec=evil",
    "/dev/null",
    "always",
    "auto",
    "never",
    "x",
    ",",
    "=",
    "full",
    "recurse",
    "OUTSIDE",
    "OUTSIDE",
    "../out",
    "../out/secret",
    "../out/secret",
    ".env",
    ".env",
    "0",
    "-1",
    "all",
    "name",
    "sub",
    "@resp",
    "@../out/secret",
    "'%n'",
    "evil.so",
    "utf-8",
    "a",
    "A",
    "d",
    "none",
    "first",
    "+1",
    "1,2",
    "1-2",
    "./evil",
    "mode",
    "links",
    "warn",
    "*",
    "[+-]*",
];

/// The options of a program according to its help.
struct OptionsFromHelp {
    /// The name of the program.
    program: String,
    /// The letters of its short options.
    short: Vec<char>,
    /// The names of its long options.
    long: Vec<String>,
}

fn options_of(program: &str) -> OptionsFromHelp {
    let ask = |argument: &str| {
        let output = Command::new("timeout")
            .args(["2", program, argument])
            .env("PAGER", "cat")
            .stdin(Stdio::null())
            .output()
            .map(|output| [output.stdout, output.stderr].concat())
            .unwrap_or_default();
        String::from_utf8_lossy(&output).into_owned()
    };
    let text = match program {
        "echo" | "printf" | "test" | "true" | "pwd" | "type" => String::new(),
        "man" => "-P -H -w -k -f -a -l --pager=x --html=x".to_owned(),
        _ => ask("--help"),
    };
    let mut short: Vec<char> = Vec::new();
    let mut long: Vec<String> = Vec::new();
    for word in text.split(|character: char| character.is_whitespace() || ",|[]()<>".contains(character)) {
        if let Some(name) = word.strip_prefix("--") {
            let name: String =
                name.chars().take_while(|sign| sign.is_ascii_alphanumeric() || *sign == '-').collect();
            if name.len() > 1 && !long.contains(&name) && !matches!(name.as_str(), "follow" | "retry") {
                long.push(name);
            }
        } else if let Some(letter) = word.strip_prefix('-').and_then(|rest| rest.chars().next())
            && letter.is_ascii_alphanumeric()
            && !short.contains(&letter)
        {
            short.push(letter);
        }
    }
    // A program that never ends would only cost its timeout.
    let endless: &[char] = match program {
        "tail" => &['f', 'F', 's'],
        "free" => &['s', 'c'],
        "ss" => &['E'],
        _ => &[],
    };
    short.retain(|letter| !endless.contains(letter));
    OptionsFromHelp { program: program.to_owned(), short, long }
}

fn word(random: &mut SeededRandom, options: &OptionsFromHelp) -> String {
    let letter = |random: &mut SeededRandom| {
        if options.short.is_empty() || random.one_in(12) {
            char::from(b'a' + random.below(26) as u8)
        } else {
            options.short[random.below(options.short.len())]
        }
    };
    match random.below(16) {
        0..=2 => format!("-{}", letter(random)),
        3 => format!("-{}{}", letter(random), letter(random)),
        4 => format!("-{}{}{}", letter(random), letter(random), letter(random)),
        5 => format!("-{}{}", letter(random), random.pick(VALUES)),
        6 => format!("-{} {}", letter(random), random.pick(VALUES)),
        7..=9 if !options.long.is_empty() => {
            let name = &options.long[random.below(options.long.len())];
            let shown =
                if random.one_in(4) { &name[..name.len().min(random.below(name.len()) + 1)] } else { name };
            match random.below(3) {
                0 => format!("--{shown}"),
                1 => format!("--{shown}={}", random.pick(VALUES)),
                _ => format!("--{shown} {}", random.pick(VALUES)),
            }
        }
        10 => random.pick(&["--", "-", "--help", "--version", "-1", "-5", "+3"]).to_owned(),
        11 => random.pick(VALUES).to_owned(),
        _ => random.pick(OPERANDS).to_owned(),
    }
}

fn combination(random: &mut SeededRandom, programs: &[OptionsFromHelp]) -> String {
    let options = &programs[random.below(programs.len())];
    let mut words = vec![options.program.clone()];
    for _ in 0..random.below(5) + 1 {
        words.push(word(random, options));
    }
    if options.program == "xargs" {
        let inner = &programs[random.below(programs.len())];
        words.push(inner.program.clone());
        words.push(word(random, inner));
        return format!("printf 'a.txt -onew.txt --output=new.txt @resp' | {}", words.join(" "));
    }
    match random.below(12) {
        0 => format!("cat a.txt | {}", words.join(" ")),
        1 => format!("{} < a.txt", words.join(" ")),
        2 => format!("for f in *.txt; do {} \"$f\"; done", words.join(" ")),
        3 => format!("find . -name '*.txt' -exec {} {{}} +", words.join(" ")),
        _ => words.join(" "),
    }
}

/// Every option and every pair of short options of every program, with a file outside of the workspace as its value or
/// as an operand: where a table is wrong about which options have a value, one of them shows the file.
fn sweep(programs: &[OptionsFromHelp]) -> Vec<String> {
    let letters: Vec<char> = ('a'..='z').chain('A'..='Z').chain('0'..='9').collect();
    let mut lines = Vec::new();
    for OptionsFromHelp { program, long, .. } in programs.iter().filter(|options| options.program != "xargs")
    {
        for first in &letters {
            lines.push(format!("{program} -{first} OUTSIDE"));
            lines.push(format!("{program} -{first} MARKED OUTSIDE"));
            for second in &letters {
                lines.push(format!("{program} -{first}{second} OUTSIDE"));
                lines.push(format!("{program} -{first} -{second} OUTSIDE"));
            }
        }
        for name in long {
            lines.push(format!("{program} --{name} OUTSIDE"));
            lines.push(format!("{program} --{name} MARKED OUTSIDE"));
            lines.push(format!("{program} --{name}=1 MARKED OUTSIDE"));
        }
    }
    lines
}

/// The state of a file by which a change is detected: length, modification time, inode and mode.
type FileState = (u64, i64, i64, u64, u32);

/// A temporary directory tree in which lines run.
struct OptionTree {
    /// The directory that contains the workspace, the stubs, and a secret outside of the workspace.
    root: PathBuf,
    /// The files before any line ran.
    tree: BTreeMap<PathBuf, FileState>,
}

/// The text of the secret files, which no output may contain.
const SECRET: &str = "MARKED-SECRET-7f3a";

impl OptionTree {
    fn new(root: PathBuf, readers: &[OptionsFromHelp]) -> Self {
        let work = root.join("ws");
        for directory in ["ws/src", "ws/sub", "out", "bin", "tmp"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        for (name, text) in [
            ("ws/a.txt", "a b c\nfoo 1\nbar 2\n"),
            ("ws/b.txt", "a b c\nfoo 2\n"),
            ("ws/c d.txt", "blank\n"),
            ("ws/src/main.rs", "fn main() {}\n"),
            ("ws/sub/deep.txt", "deep\n"),
            ("ws/data.csv", "k,v\n1,2\n"),
            ("ws/pkg.json", "{\"a\": 1}\n"),
            ("ws/resp", "--output=new.txt\n-o new.txt\n../out/secret\n"),
            // Names that are options and actions where a pattern matches them.
            ("ws/+", "1\n"),
            ("ws/-delete", "2\n"),
            ("ws/-onew.txt", "3\n"),
            ("ws/--output=new.txt", "4\n"),
            ("ws/evil", "#!/bin/sh\necho evil >> \"$STUB_LOG\"\n"),
        ] {
            fs::write(root.join(name), text).unwrap();
        }
        fs::write(work.join(".env"), format!("{SECRET}-inside\n")).unwrap();
        fs::write(root.join("out/secret"), format!("{SECRET}-outside\n")).unwrap();
        for (program, args) in [
            ("tar", &["-cf", "a.tar", "a.txt"][..]),
            ("gzip", &["-k", "data.csv"]),
            ("cp", &["/bin/true", "a.o"]),
        ] {
            let status = Command::new(program).args(args).current_dir(&work).status().unwrap();
            assert!(status.success());
        }
        let _ = fs::rename(work.join("data.csv.gz"), work.join("a.gz"));
        fs::set_permissions(work.join("evil"), fs::Permissions::from_mode(0o755)).unwrap();
        for name in STUBS.split_whitespace() {
            let stub = root.join("bin").join(name);
            fs::write(&stub, format!("#!/bin/sh\necho {name} >> \"$STUB_LOG\"\n")).unwrap();
            fs::set_permissions(&stub, fs::Permissions::from_mode(0o755)).unwrap();
        }
        for reader in readers {
            if let Some(real) = installed(&reader.program) {
                symlink(real, root.join("bin").join(&reader.program)).unwrap();
            }
        }
        let mut scratch = Self { root, tree: BTreeMap::new() };
        scratch.tree = scratch.snapshot();
        scratch
    }

    fn snapshot(&self) -> BTreeMap<PathBuf, FileState> {
        let mut found = BTreeMap::new();
        let mut left = vec![self.root.join("ws"), self.root.join("out")];
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(&directory).unwrap() {
                let path = entry.unwrap().path();
                let state = fs::symlink_metadata(&path).unwrap();
                if state.is_dir() {
                    left.push(path.clone());
                }
                found.insert(
                    path,
                    (state.len(), state.mtime(), state.mtime_nsec(), state.ino(), state.mode()),
                );
            }
        }
        found
    }

    /// Runs a line; returns its output, and the stubs that were started.
    fn run(&self, text: &str) -> (Vec<u8>, String) {
        let (output, log) = (self.root.join("tmp/output"), self.root.join("tmp/stubs"));
        let file = fs::File::create(&output).unwrap();
        let mut child = Command::new("/bin/bash")
            .args(["--norc", "--noprofile", "-c"])
            .arg("ulimit -f 4096; ulimit -t 3; exec /bin/bash --norc --noprofile -c \"$1\"")
            .args(["bash", text])
            .env_clear()
            .env("PATH", self.root.join("bin"))
            .env("HOME", self.root.join("tmp"))
            .env("TMPDIR", self.root.join("tmp"))
            .env("PAGER", "cat")
            .env("STUB_LOG", &log)
            .current_dir(self.root.join("ws"))
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .process_group(0)
            .spawn()
            .unwrap();
        let started = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if started.elapsed() > Duration::from_secs(2) {
                // It has not been reaped, so that its process id still names it and its process group.
                let group = format!("-{}", child.id());
                let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
                let _ = child.wait();
                break;
            }
            std::thread::sleep(Duration::from_micros(300));
        }
        let printed = fs::read(&output).unwrap_or_default();
        let stubs = fs::read_to_string(&log).unwrap_or_default();
        let _ = fs::remove_file(&log);
        (printed, stubs)
    }
}

fn installed(program: &str) -> Option<PathBuf> {
    ["/usr/bin", "/bin", "/usr/sbin", "/sbin"]
        .iter()
        .map(|dir| Path::new(dir).join(program))
        .find(|path| path.exists())
}

/// Whether a line only reads, and only in the workspace.
fn passes(analysis: &CommandAnalysis, workspace: &Workspace) -> bool {
    analysis.doubt.is_none()
        && analysis.parts.iter().all(|part| {
            part.reads_if_bounded()
                && part.option_globs.is_empty()
                && part.effects.iter().all(|inferred| match &inferred.effect {
                    Effect::Read { path, .. } => {
                        let path = path.lexical();
                        path.is_under(&workspace.cwd) && path.file_name().is_none_or(|name| name != ".env")
                    }
                    _ => false,
                })
        })
}

#[test]
fn no_option_combination_of_a_reader_writes_runs_or_reveals() {
    let cases = setting("TOOLGATE_OPTION_CASES", 500);
    let mut random = SeededRandom::new(setting("TOOLGATE_ORACLE_SEED", 1) ^ 0x0b7_1045);
    let readers: Vec<OptionsFromHelp> = READERS
        .split_whitespace()
        .filter(|program| installed(program).is_some() || matches!(*program, "type"))
        .map(options_of)
        .collect();
    let directory = tempfile::tempdir().unwrap();
    let mut scratch = OptionTree::new(directory.path().join("s0"), &readers);
    let (mut ran, mut unknown) = (0_u64, 0_u64);
    let mut wrong = Vec::new();
    let swept = if setting("TOOLGATE_OPTION_SWEEP", 0) > 0 { sweep(&readers) } else { Vec::new() };
    let all = swept.len();
    let lines = swept.into_iter().chain((0..cases).map(|_| combination(&mut random, &readers)));
    for (number, line) in lines.enumerate() {
        let secret = scratch.root.join("out/secret");
        let text = line.replace("OUTSIDE", secret.to_str().unwrap());
        let here = path(scratch.root.join("ws").to_str().unwrap());
        let workspace = Workspace::new(here.clone());
        let mut line = command_line(&text);
        line.cwd = here;
        let analysis = analyse(&line, &workspace);
        if !passes(&analysis, &workspace) {
            continue;
        }
        ran += 1;
        let reads_unknown = analysis.parts.iter().any(|part| part.reads_unknown_paths);
        unknown += u64::from(reads_unknown);
        let (printed, stubs) = scratch.run(&text);
        let shows = |mark: &str| printed.windows(mark.len()).any(|window| window == mark.as_bytes());
        let wide = reads_unknown
            || analysis.parts.iter().flat_map(|part| &part.effects).any(|inferred| {
                inferred.glob.is_some()
                    || matches!(inferred.effect, Effect::Read { scope: PathScope::Tree, .. })
            });
        // The sandbox limits which files an unknown word can name.
        if !reads_unknown && shows(&format!("{SECRET}-outside"))
            || !wide && shows(&format!("{SECRET}-inside"))
        {
            wrong.push(format!("{text:?} shows a secret"));
        }
        let listed: Vec<&str> = analysis
            .parts
            .iter()
            .flat_map(|part| {
                part.program.as_deref().into_iter().chain(part.helpers.iter().map(String::as_str))
            })
            .collect();
        let started: Vec<&str> = stubs.lines().filter(|stub| !listed.contains(stub)).collect();
        if !started.is_empty() {
            wrong.push(format!("{text:?} starts {started:?}"));
        }
        let after = scratch.snapshot();
        if after != scratch.tree {
            let names: Vec<String> = after
                .iter()
                .filter(|(name, state)| scratch.tree.get(*name) != Some(state))
                .map(|(name, _)| name)
                .chain(scratch.tree.keys().filter(|name| !after.contains_key(*name)))
                .map(|name| name.strip_prefix(&scratch.root).unwrap().display().to_string())
                .collect();
            wrong.push(format!("{text:?} changes {names:?}"));
            scratch = OptionTree::new(directory.path().join(format!("s{number}")), &readers);
        }
    }
    println!(
        "{all} single options and pairs, {cases} combinations, of {} programs, {ran} passed and ran, {unknown} of them with unknown words, {} wrong",
        readers.len(),
        wrong.len()
    );
    assert!(wrong.is_empty(), "{} of {ran} lines did more than read\n{}", wrong.len(), wrong.join("\n"));
}
