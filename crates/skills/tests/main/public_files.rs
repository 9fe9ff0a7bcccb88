//! Every public file is read, or reported with its line; none is dropped silently.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toolgate_skills::{
    AgentFile, AgentFileOrigin, CapabilityProblem, CapabilitySeverity, OutputStyle, PluginManifest,
    PluginMarketplace, SkillDefinition, SkillFileKind,
};

/// How many files of a kind there are, and what became of them.
#[derive(Debug, Default, PartialEq, Eq)]
struct KindCount {
    files: usize,
    /// Read without more than notes.
    clean: usize,
    /// Read, but not in every respect as written.
    warned: usize,
    /// Not usable, and reported with a line.
    refused: usize,
}

fn count(files: usize, clean: usize, warned: usize, refused: usize) -> KindCount {
    KindCount { files, clean, warned, refused }
}

/// The kind of a file by its place, as agents find it.
fn kind_of(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    let is_below = |folder: &str| path.parent().is_some_and(|dir| dir.iter().any(|part| part == folder));
    Some(match name {
        "SKILL.md" => "skill",
        "plugin.json" => "manifest",
        "marketplace.json" => "marketplace",
        "hooks.json" => "hooks",
        ".mcp.json" => "servers",
        _ if !name.ends_with(".md") => return None,
        _ if is_below("output-styles") => "style",
        _ if is_below("commands") => "command",
        _ if is_below("agents") => "agent",
        _ => return None,
    })
}

/// Reads a file. Returns whether there is a value, and the problems.
fn read_file(kind: &str, bytes: &[u8], stem: &str) -> (bool, Vec<CapabilityProblem>) {
    match kind {
        "skill" => (true, SkillDefinition::read(bytes, SkillFileKind::Skill).1),
        "command" => (true, SkillDefinition::read(bytes, SkillFileKind::Command).1),
        "style" => (true, OutputStyle::read(bytes, stem).1),
        "agent" => {
            let (agent, problems) = AgentFile::read(bytes, stem, AgentFileOrigin::Settings);
            (agent.is_some(), problems)
        }
        "manifest" => {
            let (manifest, problems) = PluginManifest::read(bytes);
            (manifest.is_some(), problems)
        }
        "marketplace" => {
            let (market, problems) = PluginMarketplace::read(bytes);
            (market.is_some(), problems)
        }
        _ => match toolgate_skills::read_component_json(bytes) {
            Ok(_) => (true, Vec::new()),
            Err(problem) => (false, vec![problem]),
        },
    }
}

fn collect_files(dir: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() && !path.is_symlink() {
            collect_files(&path, files);
        } else if path.is_file() {
            files.push(path);
        }
    }
}

/// Reads every file below a directory; a file without a value and without an error is a failure.
fn read_all(root: &Path, show: bool) -> BTreeMap<&'static str, KindCount> {
    let mut files = Vec::new();
    collect_files(root, &mut files);
    let mut counts: BTreeMap<&'static str, KindCount> = BTreeMap::new();
    for path in files {
        let Some(kind) = kind_of(path.strip_prefix(root).unwrap()) else { continue };
        let bytes = std::fs::read(&path).unwrap();
        let stem = path.file_stem().unwrap().to_string_lossy();
        let (has_value, problems) = read_file(kind, &bytes, &stem);
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
        for problem in &problems {
            assert!((1..=lines).contains(&problem.line), "{}: {problem}", path.display());
            if show && problem.severity > CapabilitySeverity::Note {
                println!("{}:{problem}", path.display());
            }
        }
        let worst = problems.iter().map(|problem| problem.severity).max();
        assert!(
            has_value || worst == Some(CapabilitySeverity::Error),
            "{} was dropped silently",
            path.display()
        );
        let kind = counts.entry(kind).or_default();
        kind.files += 1;
        match (has_value, worst) {
            (false, _) => kind.refused += 1,
            (true, None | Some(CapabilitySeverity::Note)) => kind.clean += 1,
            (true, Some(CapabilitySeverity::Warning | CapabilitySeverity::Error)) => kind.warned += 1,
        }
    }
    counts
}

#[test]
fn every_public_file_is_read_or_reported() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let counts = read_all(&root, false);
    let wanted = BTreeMap::from([
        ("agent", count(46, 38, 2, 6)),
        ("command", count(75, 70, 5, 0)),
        ("hooks", count(10, 10, 0, 0)),
        ("manifest", count(17, 17, 0, 0)),
        ("marketplace", count(8, 7, 1, 0)),
        ("servers", count(8, 8, 0, 0)),
        ("skill", count(57, 57, 0, 0)),
        ("style", count(3, 3, 0, 0)),
    ]);
    assert_eq!(counts, wanted);
    assert!(counts.values().map(|kind| kind.files).sum::<usize>() >= 120);
}

/// For whole repositories: `TOOLGATE_SKILL_CORPUS=DIR cargo test -p toolgate-skills --test main corpus -- --nocapture`.
#[test]
fn every_file_of_a_corpus_is_read_or_reported() {
    let Ok(root) = std::env::var("TOOLGATE_SKILL_CORPUS") else { return };
    let started = std::time::Instant::now();
    let counts = read_all(Path::new(&root), true);
    println!("{counts:#?}\n{:?}", started.elapsed());
}
