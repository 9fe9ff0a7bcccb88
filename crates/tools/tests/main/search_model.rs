//! Random trees, and a slow and obvious reference model of what a search must find in them.
//!
//! The model uses none of the libraries that the tools use: it matches globs and ignore files by recursion over
//! characters, and reads the tree with the standard library.

use proptest::prelude::*;
use proptest::sample::select;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use toolgate_gate::Gate;
use toolgate_testkit::{GateFixture, plain_gate};
use toolgate_tools::{Toolset, register};

/// A directory entry to create.
#[derive(Clone)]
pub(crate) enum TreeNode {
    File(&'static [u8], Vec<u8>),
    Directory(&'static [u8], Vec<TreeNode>),
    Link(&'static [u8], &'static str),
    Pipe(&'static [u8]),
}

impl std::fmt::Debug for TreeNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(name, content) => write!(f, "{}={}", name.escape_ascii(), content.escape_ascii()),
            Self::Directory(name, below) => write!(f, "{}/{below:?}", name.escape_ascii()),
            Self::Link(name, target) => write!(f, "{} -> {target}", name.escape_ascii()),
            Self::Pipe(name) => write!(f, "{}|", name.escape_ascii()),
        }
    }
}

const FILE_NAMES: &[&[u8]] = &[
    b"a.rs",
    b"b.rs",
    b"Main.RS",
    b"c.txt",
    b"d.log",
    b"x y.txt",
    b"[z].txt",
    b"-n",
    b".envrc",
    b".hidden.rs",
    b"\xc3\xa9.md",
    b"bad\xff.txt",
    b"bad\xfe.txt",
    b"new\nline.txt",
    b"*.rs",
    b"build",
];
const DIRECTORY_NAMES: &[&[u8]] = &[
    b"src",
    b"a",
    b"build",
    b"deep",
    b".config",
    b"node_modules",
    b"with space",
    b"d\xffir",
    b"a.rs.d",
    b".git",
];
const LINK_NAMES: &[&[u8]] = &[b"link.rs", b"out"];
const IGNORE_NAMES: &[&[u8]] = &[b".gitignore", b".ignore"];
const IGNORE_LINES: &[&str] = &[
    "*.log",
    "build",
    "build/",
    "/a.rs",
    "src/b.rs",
    "!b.rs",
    "!*.log",
    "# a comment",
    "**/deep",
    "c.*",
    "/src",
    "a/",
    ".envrc",
    "!.hidden.rs",
    "deep/**",
    "[ab].rs",
    "x y.txt",
    "\\!odd",
    "",
    "*.rs",
    "!Main.RS",
    "é.md",
];
const LINES: &[&[u8]] = &[
    b"hello world",
    b"Hello World",
    b"fn main() {",
    b"interface{}",
    b"",
    b"   indented needle",
    b"NEEDLE",
    b"needle needle",
    b"caf\xc3\xa9",
    b"broken \xff\xfe",
    b"a.b",
    b"tail\r",
];

fn content() -> impl Strategy<Value = Vec<u8>> {
    (prop::collection::vec(select(LINES), 0..6), any::<bool>(), prop::option::weighted(0.08, 0..40usize))
        .prop_map(|(lines, newline, nul)| {
            let mut bytes = lines.join(&b"\n"[..]);
            if newline && !bytes.is_empty() {
                bytes.push(b'\n');
            }
            if let Some(at) = nul {
                let at = at.min(bytes.len());
                bytes.insert(at, 0);
            }
            bytes
        })
}

fn ignore_file() -> impl Strategy<Value = TreeNode> {
    (select(IGNORE_NAMES), prop::collection::vec(select(IGNORE_LINES), 1..4))
        .prop_map(|(name, lines)| TreeNode::File(name, lines.join("\n").into_bytes()))
}

/// Trees with nested ignore files, hidden files, symlinks, pipes, unusual names and names with invalid UTF-8.
pub(crate) fn tree() -> impl Strategy<Value = Vec<TreeNode>> {
    let leaf = prop_oneof![
        8 => (select(FILE_NAMES), content()).prop_map(|(name, content)| TreeNode::File(name, content)),
        2 => ignore_file(),
        1 => (select(LINK_NAMES), select(&["a.rs", "..", "/etc/passwd", "missing", "src"]))
            .prop_map(|(name, target)| TreeNode::Link(name, target)),
        1 => Just(TreeNode::Pipe(b"pipe.rs")),
    ];
    let node = leaf.prop_recursive(3, 24, 6, |inner| {
        (select(DIRECTORY_NAMES), prop::collection::vec(inner, 0..6))
            .prop_map(|(name, below)| TreeNode::Directory(name, below))
    });
    prop::collection::vec(node, 0..8)
}

/// Creates a tree. Of two entries with the same name the first is created.
pub(crate) fn create_tree(at: &Path, nodes: &[TreeNode]) {
    for node in nodes {
        let (TreeNode::File(name, _)
        | TreeNode::Directory(name, _)
        | TreeNode::Link(name, _)
        | TreeNode::Pipe(name)) = node;
        let path = at.join(OsStr::from_bytes(name));
        if path.symlink_metadata().is_ok() {
            continue;
        }
        match node {
            TreeNode::File(_, content) => fs::write(&path, content).unwrap(),
            TreeNode::Directory(_, below) => {
                fs::create_dir(&path).unwrap();
                create_tree(&path, below);
            }
            TreeNode::Link(_, target) => std::os::unix::fs::symlink(target, &path).unwrap(),
            TreeNode::Pipe(_) => {
                let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
                rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
            }
        }
    }
}

/// The gate of a toolset, created once and shared: only the directories differ between cases.
pub(crate) fn gate(toolset: Toolset) -> Arc<Gate> {
    static GATES: [OnceLock<Arc<Gate>>; 2] = [OnceLock::new(), OnceLock::new()];
    let gate = &GATES[usize::from(toolset == Toolset::Plain)];
    Arc::clone(gate.get_or_init(|| plain_gate(|gate| register(gate, toolset).unwrap())))
}

/// A workspace with this tree and the tools of a toolset.
pub(crate) fn fixture(nodes: &[TreeNode], toolset: Toolset) -> GateFixture {
    let fixture = GateFixture::new(gate(toolset)).unwrap();
    create_tree(fixture.root.as_path(), nodes);
    fixture
}

/// An entry of the tree as the model sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelEntry {
    /// The components of the path below the root.
    pub(crate) names: Vec<Vec<u8>>,
    /// The type letter of `ls`.
    pub(crate) kind: char,
    pub(crate) hidden: bool,
    pub(crate) ignored: bool,
    pub(crate) content: Vec<u8>,
}

impl ModelEntry {
    pub(crate) fn path(&self) -> Vec<u8> {
        self.names.join(&b'/')
    }

    pub(crate) fn shown(&self) -> String {
        escape_path(&self.path())
    }

    pub(crate) fn is_file(&self) -> bool {
        self.kind == '-'
    }

    /// Whether a parent directory has this name.
    pub(crate) fn inside(&self, name: &str) -> bool {
        self.names[..self.names.len() - 1].iter().any(|on_way| on_way == name.as_bytes())
    }
}

/// Every entry below a root, in the order of names, each directory before its content.
pub(crate) fn list_with_model(root: &Path) -> Vec<ModelEntry> {
    let mut seen = Vec::new();
    visit(root, &Vec::new(), false, false, &[], &mut seen);
    seen
}

/// One ignore file: its kind, the depth of its directory, and its lines.
#[derive(Clone)]
struct GeneratedIgnoreFile {
    kind: usize,
    depth: usize,
    lines: Vec<Vec<u8>>,
}

fn visit(
    at: &Path,
    names: &[Vec<u8>],
    hidden: bool,
    ignored: bool,
    above: &[GeneratedIgnoreFile],
    seen: &mut Vec<ModelEntry>,
) {
    let mut files = above.to_vec();
    for (kind, name) in [".ignore", ".gitignore"].iter().enumerate() {
        let path = at.join(name);
        if path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
            let lines = fs::read(path).unwrap().split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            files.push(GeneratedIgnoreFile { kind, depth: names.len(), lines });
        }
    }
    let mut entries: Vec<_> = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    entries.sort();
    for name in entries {
        let path = at.join(&name);
        let metadata = path.symlink_metadata().unwrap();
        let mut names = names.to_vec();
        names.push(name.as_bytes().to_vec());
        let is_dir = metadata.is_dir();
        let entry = ModelEntry {
            kind: if is_dir {
                'd'
            } else if metadata.is_file() {
                '-'
            } else if metadata.file_type().is_symlink() {
                'l'
            } else {
                '?'
            },
            hidden: hidden || name.as_bytes().starts_with(b"."),
            ignored: ignored || ignored_by(&files, &names, is_dir),
            content: if metadata.is_file() { fs::read(&path).unwrap() } else { Vec::new() },
            names: names.clone(),
        };
        let (hidden, ignored) = (entry.hidden, entry.ignored);
        seen.push(entry);
        if is_dir {
            visit(&path, &names, hidden, ignored, &files, seen);
        }
    }
}

/// `.ignore` takes precedence over `.gitignore`, a deeper file over a higher one, and a later line over an earlier one.
fn ignored_by(files: &[GeneratedIgnoreFile], names: &[Vec<u8>], is_dir: bool) -> bool {
    for kind in [0, 1] {
        for file in files.iter().rev().filter(|file| file.kind == kind) {
            for line in file.lines.iter().rev() {
                if let Some(verdict) = line_verdict(line, &names[file.depth..], is_dir) {
                    return verdict;
                }
            }
        }
    }
    false
}

fn line_verdict(line: &[u8], names: &[Vec<u8>], is_dir: bool) -> Option<bool> {
    let mut line = line;
    if line.is_empty() || line.starts_with(b"#") {
        return None;
    }
    let mut verdict = true;
    if let Some(rest) = line.strip_prefix(b"!") {
        (line, verdict) = (rest, false);
    }
    if let Some(rest) = line.strip_prefix(b"\\!") {
        // An escaped `!` is literal; no random name contains one.
        let _ = rest;
        return None;
    }
    if let Some(rest) = line.strip_suffix(b"/") {
        if !is_dir {
            return None;
        }
        line = rest;
    }
    let anchored = line.contains(&b'/');
    let line = line.strip_prefix(b"/").unwrap_or(line);
    let mut pattern: Vec<&[u8]> = line.split(|byte| *byte == b'/').collect();
    if !anchored {
        pattern.insert(0, b"**");
    }
    // A pattern that ends in `/**` matches the content of a directory, not the directory itself.
    if pattern.len() > 1 && pattern.last() == Some(&&b"**"[..]) {
        pattern.push(b"*");
    }
    let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    path_matches(&pattern, &names).then_some(verdict)
}

/// Whether a glob matches a path, component by component.
pub(crate) fn glob_matches(pattern: &str, names: &[Vec<u8>]) -> bool {
    let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    expand_braces(pattern).iter().any(|pattern| {
        let pattern: Vec<&[u8]> = pattern.split('/').map(str::as_bytes).collect();
        path_matches(&pattern, &names)
    })
}

/// Expands `a{b,c}` to `ab` and `ac`.
fn expand_braces(pattern: &str) -> Vec<String> {
    let Some((before, rest)) = pattern.split_once('{') else { return vec![pattern.to_owned()] };
    let (options, after) = rest.split_once('}').unwrap();
    options.split(',').flat_map(|option| expand_braces(&format!("{before}{option}{after}"))).collect()
}

fn path_matches(pattern: &[&[u8]], names: &[&[u8]]) -> bool {
    match (pattern, names) {
        ([b"**"], names) => !names.is_empty(),
        ([b"**", rest @ ..], names) => (0..=names.len()).any(|skip| path_matches(rest, &names[skip..])),
        ([first, rest @ ..], [name, others @ ..]) => name_matches(first, name) && path_matches(rest, others),
        ([], []) => true,
        _ => false,
    }
}

fn name_matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], name) => (0..=name.len()).any(|skip| name_matches(rest, &name[skip..])),
        ([b'?', rest @ ..], name) => {
            // One character, which may have several bytes.
            let first = name.utf8_chunks().next();
            let len = first.map_or(0, |chunk| chunk.valid().chars().next().map_or(1, char::len_utf8));
            len > 0 && name_matches(rest, &name[len..])
        }
        ([b'[', rest @ ..], [letter, name @ ..]) => {
            let end = rest.iter().position(|byte| *byte == b']').unwrap();
            let (class, rest) = (&rest[..end], &rest[end + 1..]);
            let (negated, class) = match class.strip_prefix(b"!") {
                Some(class) => (true, class),
                None => (false, class),
            };
            let inside = match class {
                [from, b'-', to] => (from..=to).contains(&letter),
                class => class.contains(letter),
            };
            inside != negated && name_matches(rest, name)
        }
        ([first, rest @ ..], [letter, name @ ..]) => first == letter && name_matches(rest, name),
        _ => false,
    }
}

/// A path on one line, escaped as the tools do.
pub(crate) fn escape_path(path: &[u8]) -> String {
    let mut escape_path = String::new();
    for chunk in path.utf8_chunks() {
        escape_path.push_str(&chunk.valid().replace('\n', "\\n"));
        for byte in chunk.invalid() {
            escape_path.push_str(&format!("\\x{byte:02x}"));
        }
    }
    escape_path
}

#[test]
fn the_model_matches_globs() {
    let names = |path: &str| path.split('/').map(|name| name.as_bytes().to_vec()).collect::<Vec<_>>();
    for (pattern, path, expected) in [
        ("*.rs", "a.rs", true),
        ("*.rs", "d/a.rs", false),
        ("**/*.rs", "d/e/a.rs", true),
        ("**/*.rs", "a.rs", true),
        ("d/**", "d/e/f", true),
        ("d/**", "d", false),
        ("[a-c].{rs,txt}", "b.txt", true),
        ("[!a].rs", "a.rs", false),
        ("?.md", "é.md", true),
    ] {
        assert_eq!(glob_matches(pattern, &names(path)), expected, "{pattern} {path}");
    }
}
