//! The effect oracle: a line that the analysis reports as read-only changes no file.
//!
//! Lines are random combinations of readers, options and scripts. Real bash runs those that need no approval in a
//! temporary directory tree, which must be the same afterwards.

use super::programs::bash;
use super::random_numbers::{SeededRandom, setting};
use super::simple_policy::{line as command_line, path};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use toolgate_policy::Workspace;
use toolgate_shell_syntax::{CommandPart, analyse};

const FILES: &[&str] = &[
    "a.txt",
    "b.txt",
    "src/main.rs",
    "src",
    ".",
    "data.csv",
    "pkg.json",
    "a.tar",
    "-x",
    "new.txt",
    "src/*.rs",
    "*.txt",
    "sub/deep.txt",
    "in.hex",
    "'c d.txt'",
];

const PROGRAMS: &str = "cat tac head tail wc nl cut paste tr sort uniq comm join fold fmt expand unexpand rev od hexdump xxd \
    strings base64 md5sum sha256sum cksum column diff cmp iconv shuf seq numfmt tsort ls stat file du df \
    tree realpath readlink basename dirname namei which grep egrep fgrep rg uname id who date ps echo \
    printf test [ pwd cd type true command sed awk find jq tar unzip gzip git env xargs tee touch split \
    csplit set export read mapfile umask hash let shopt expr factor hostname locale getconf zcat xz dd \
    cp mkdir";

const LONG: &str = "--output --output=new.txt --outp=new.txt --in-place --expression=p --compress-program=touch \
    --files0-from=a.txt --help --version --recursive --all --color=always --null --lines=2 --bytes=3 \
    --unique --reverse --key=1 --pre=touch --to-command=touch --checkpoint=1 \
    --checkpoint-action=exec=touch --list --file=a.tar --create --extract --delete --no-index --stat \
    --name-only --ext-diff --textconv --oneline --cached --format=%H --show-current --set=now \
    --reference=a.txt --compile --fromfile --temporary-directory=. --regexp-extended --quiet --separate \
    --null-input --arg --slurpfile --rawfile --args --tab --paginate --from-file=a.txt --count \
    --exec=touch --max-depth=1 --time --exclude=x --apparent-size --debug --sandbox --posix";

const GIT: &str = "status diff log show branch tag remote stash reflog worktree submodule notes config symbolic-ref \
    rev-parse ls-files ls-tree describe merge-base cat-file name-rev for-each-ref show-ref shortlog \
    blame grep rev-list count-objects check-ignore add commit checkout reset clean gc hash-object \
    update-ref -c -C --no-pager -p show-branch var archive bundle apply format-patch range-diff cherry \
    whatchanged diff-tree diff-index diff-files version fsck prune pack-refs bisect restore";

const GIT_WORDS: &str = "HEAD HEAD~1 main -a -v -d -D -m x --list -l list show drop push expire --all --get user.name --unset \
    --add v1 -n 1 -1 -- a.txt src -p --stat -s -b --output=new.txt --output new.txt -O -w -f --short get \
    set add remove -q --contains --merged --format=%(refname) --edit -e -c -C --create-reflog \
    --set-upstream-to=x --unset-upstream --textconv --batch -t -S -G --global --local init update prune \
    rename set-url get-url origin exists delete refs/heads/y --delete --force -u --show-current --dirty";

fn letters(random: &mut SeededRandom) -> String {
    let all: Vec<char> = ('a'..='z').chain('A'..='Z').chain('0'..='9').collect();
    let cluster: String = (0..=random.below(3)).map(|_| all[random.below(all.len())]).collect();
    format!("-{cluster}")
}

fn sed_script(random: &mut SeededRandom) -> String {
    let pieces = [
        "s/a/b/",
        "s/a/b/w new.txt",
        "s#a#b#g",
        "p",
        "w new.txt",
        "1",
        "$",
        "/a/",
        "/[]/",
        "/[/]/",
        "[[:alpha:]/]",
        ",",
        ";",
        "\n",
        "{",
        "}",
        "!",
        "e touch new.txt",
        "s/x/touch new.txt/e",
        "y/a/b/",
        "r a.txt",
        "R a.txt",
        "W new.txt",
        "d",
        "q",
        "n",
        "N",
        "b",
        "t",
        ":x",
        "a text",
        "i\\",
        "#",
        " ",
        "\\",
        "s/[]/x/;#]/y/w new.txt",
        "=",
        "l",
        "z",
        "F",
        "\\,a,",
        "I",
        "g",
        "0~2",
        "+1",
        "M",
        "]",
        "[",
    ];
    (0..=random.below(5)).map(|_| pieces[random.below(pieces.len())]).collect()
}

fn awk_program(random: &mut SeededRandom) -> String {
    let pieces = [
        "{print}",
        "{print $1}",
        "{print > \"new.txt\"}",
        "{print >> \"new.txt\"}",
        "{print | \"cat > new.txt\"}",
        "/a/",
        "/[]/]/",
        "/\"/",
        "\"",
        "{",
        "}",
        "(",
        ")",
        "system(\"touch new.txt\")",
        "print",
        " ",
        ";",
        "\"touch new.txt\" | getline",
        "$1",
        ">",
        "> \"new.txt\"",
        "1",
        "NR==1",
        "BEGIN",
        "END",
        "a",
        "/",
        "||",
        "&&",
        "|",
        "\\",
        "#",
        "\n",
        "x[1]",
        "]",
        "[",
        "if (1)",
        "==",
        "printf \"x\"",
        "length",
        ",",
        "!",
    ];
    (0..=random.below(6)).map(|_| pieces[random.below(pieces.len())]).collect()
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn simple(random: &mut SeededRandom) -> String {
    let program = random.word(PROGRAMS);
    let mut words = vec![program.to_owned()];
    if program == "git" {
        words.push(random.word(GIT).to_owned());
        if random.one_in(6) {
            words.push(random.word(GIT).to_owned());
        }
    }
    for _ in 0..random.below(5) {
        let word = match program {
            "git" if !random.one_in(5) => random.word(GIT_WORDS).to_owned(),
            "sed" if random.one_in(2) => quoted(&sed_script(random)),
            "awk" if random.one_in(2) => quoted(&awk_program(random)),
            "jq" if random.one_in(2) => random
                .pick(&[".", "'.a'", "'env'", "'.b | keys'", "'input'", "'$__loc__'", "'@sh'"])
                .to_owned(),
            "find" if random.one_in(2) => random
                .pick(&[
                    "-name",
                    "'*.txt'",
                    "-type",
                    "f",
                    "-delete",
                    "-exec",
                    "touch",
                    "new.txt",
                    "';'",
                    "+",
                    "-fprint",
                    "-print",
                    "-printf",
                    "'%p'",
                    "-fls",
                    "-newer",
                    "-o",
                    "'('",
                    "')'",
                    "!",
                    "-ok",
                    "-size",
                    "+1k",
                    "-maxdepth",
                    "1",
                    "-fprintf",
                ])
                .to_owned(),
            "tar" if random.one_in(2) => random
                .pick(&[
                    "tf", "-tf", "-tvf", "xf", "-xf", "cf", "-cf", "a.tar", "new.tar", "-t", "-x", "-f",
                    "-C", "sub", "--list", "-tO", "-I", "touch",
                ])
                .to_owned(),
            "date" if random.one_in(2) => {
                random.pick(&["+%F", "-u", "-d", "now", "-r", "010100002030", "-R"]).to_owned()
            }
            "[" if random.one_in(4) => "]".to_owned(),
            _ => match random.below(10) {
                0 => random.word(LONG).to_owned(),
                1 | 2 => letters(random),
                3 => "--".to_owned(),
                4 => random
                    .pick(&[
                        "2",
                        "a",
                        "'x y'",
                        "+1",
                        "$?",
                        "\"$(pwd)\"",
                        "{a.txt,new.txt}",
                        "$x",
                        "\"$x\"",
                        "~",
                    ])
                    .to_owned(),
                _ => random.pick(FILES).to_owned(),
            },
        };
        words.push(word);
    }
    if program == "[" && !random.one_in(4) {
        words.push("]".to_owned());
    }
    if random.one_in(10) {
        words.push(
            random
                .pick(&[
                    "> new.txt",
                    "2>/dev/null",
                    "< a.txt",
                    "<<< x",
                    "2>&1",
                    ">| a.txt",
                    "&> new.txt",
                    ">& new.txt",
                    "<> new.txt",
                    "> /dev/null",
                ])
                .to_owned(),
        );
    }
    words.join(" ")
}

fn line(random: &mut SeededRandom) -> String {
    let mut text = simple(random);
    if random.one_in(3) {
        text.push_str(random.pick(&[" | ", " && ", "; ", " || ", "\n"]));
        text.push_str(&simple(random));
    }
    match random.below(20) {
        0 => format!("echo \"$({text})\""),
        1 => format!("({text})"),
        2 => format!("for x in a b; do {text}; done"),
        3 => format!("cd src && {text}"),
        4 => format!("LC_ALL=C {text}"),
        5 => format!("diff <({text}) a.txt"),
        _ => text,
    }
}

fn fixture(root: &Path) {
    fs::create_dir_all(root.join("src")).unwrap();
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::create_dir_all(root.join("tmp")).unwrap();
    for (name, text) in [
        ("a.txt", "a b c\nfoo 1\nbar 2\nx y z\n"),
        ("b.txt", "a b c\nfoo 2\n"),
        ("c d.txt", "blank\n"),
        ("src/main.rs", "fn main() {\n    println!(\"x\");\n}\n"),
        ("sub/deep.txt", "deep\n"),
        ("data.csv", "k,v\n1,2\n3,4\n"),
        ("pkg.json", "{\"a\": 1, \"b\": {\"c\": [1, 2]}}\n"),
        ("in.hex", "00000000: 6162 630a  abc.\n"),
        (".gitconfig", "[user]\n\tname = ann\n\temail = ann@example.com\n"),
    ] {
        fs::write(root.join(name), text).unwrap();
    }
    let run = |program: &str, args: &[&str]| {
        let status = Command::new(program)
            .args(args)
            .env("HOME", root)
            .current_dir(root)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "{program} {args:?}");
    };
    run("tar", &["-cf", "a.tar", "a.txt", "b.txt"]);
    run("git", &["init", "-q", "-b", "main"]);
    run("git", &["add", "a.txt", "src"]);
    run("git", &["commit", "-qm", "one"]);
    run("git", &["tag", "v0"]);
    fs::write(root.join("a.txt"), "a b c\nfoo 1\nbar 3\nx y z\n").unwrap();
    run("git", &["add", "b.txt"]);
    run("git", &["commit", "-qm", "two"]);
}

/// Everything below a directory: mode, owner and content.
fn snapshot(root: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let entry = entry.unwrap();
            let metadata = fs::symlink_metadata(entry.path()).unwrap();
            let content = if metadata.is_file() { fs::read(entry.path()).unwrap() } else { Vec::new() };
            if metadata.is_dir() {
                left.push(entry.path());
            }
            found.insert(entry.path(), (metadata.permissions().mode() ^ metadata.uid(), content));
        }
    }
    found
}

fn run(root: &Path, text: &str) {
    let temporary = root.join("tmp");
    // The last four are those that the runtime sets for git readers.
    let variables = [
        ("PATH", Path::new("/usr/local/bin:/usr/bin:/bin")),
        ("HOME", root),
        ("TMPDIR", &temporary),
        ("GIT_OPTIONAL_LOCKS", Path::new("0")),
        ("GIT_PAGER", Path::new("cat")),
        ("PAGER", Path::new("cat")),
        ("GIT_TERMINAL_PROMPT", Path::new("0")),
    ];
    bash(text, root, &variables);
}

#[test]
fn read_only_lines_change_nothing() {
    let cases = setting("TOOLGATE_ORACLE_CASES", 300);
    let mut random = SeededRandom::new(setting("TOOLGATE_ORACLE_SEED", 1) ^ 0x5eed);
    let directory = tempfile::tempdir().unwrap();
    let mut root = directory.path().join("ws0");
    fs::create_dir(&root).unwrap();
    fixture(&root);
    let mut before = snapshot(&root);
    let (mut ran, mut made) = (0, 0_u64);
    let mut wrong = Vec::new();
    while ran < cases {
        made += 1;
        let text = line(&mut random);
        let here = path(root.to_str().unwrap());
        let workspace = Workspace::new(here.clone()).with_home(here.clone());
        let mut command = command_line(&text);
        command.cwd = here;
        let analysis = analyse(&command, &workspace);
        let only_reads = |part: &CommandPart| part.reads_if_bounded() && part.option_globs.is_empty();
        if analysis.doubt.is_some() || !analysis.parts.iter().all(only_reads) {
            continue;
        }
        ran += 1;
        run(&root, &text);
        let after = snapshot(&root);
        if after != before {
            let changed: Vec<String> = after
                .iter()
                .filter(|(name, state)| before.get(*name) != Some(state))
                .map(|(name, _)| name)
                .chain(before.keys().filter(|name| !after.contains_key(*name)))
                .map(|name| name.strip_prefix(&root).unwrap().display().to_string())
                .collect();
            wrong.push(format!("{text:?} changed {changed:?}"));
            root = directory.path().join(format!("ws{ran}"));
            fs::create_dir(&root).unwrap();
            fixture(&root);
            before = snapshot(&root);
        }
    }
    println!("{ran} read-only lines of {made} ran");
    assert!(
        wrong.is_empty(),
        "{} of {ran} read-only lines changed something\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Two directories are compared file by file without `-r` too, and `-N` shows whole files of one.
#[test]
fn diff_reads_every_file_of_the_directories_it_compares() {
    use toolgate_proto::{Effect, PathScope};
    let root = path("/w");
    let workspace = Workspace::new(root);
    for text in ["diff a b", "diff -N a .", "diff --unidirectional-new-file missing .", "diff -r a b"] {
        let analysis = analyse(&command_line(text), &workspace);
        let effects: Vec<_> = analysis.parts.iter().flat_map(|part| &part.effects).collect();
        assert_eq!(effects.len(), 2, "{text}");
        for inferred in effects {
            assert!(
                matches!(inferred.effect, Effect::Read { scope: PathScope::Tree, .. }),
                "{text}: {inferred:?}"
            );
        }
    }
}
