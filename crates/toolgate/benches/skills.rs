//! How long skills and plugins take, each figure beside its bar: `cargo bench --package toolgate --bench skills`.
//!
//! With `--quick` everything is tried with a tenth of the files, to see that it works.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a benchmark prints, makes its own files and fails loudly"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use toolgate::AbsPath;
use toolgate::settings::SettingsOptions;
use toolgate::skills::{
    CapabilityPlaces, DEFAULT_LISTING_CHARS, LiveSkills, SkillCatalog, SkillDefinition, SkillFileKind,
    SkillOptions, SkillTemplate, TemplateValues,
};
use toolgate_files::{StampWatch, read_file_stamp};

/// Texts that are near what the readers look for, each repeated to 100 KB.
const HOSTILE_PIECES: [&str; 16] = [
    "${",
    "$ARGUMENTS[",
    "!`",
    " !`a",
    "```\n",
    "~~~\n```!\n",
    " @a",
    "\\$",
    "---\n",
    "a: ",
    "- ",
    "[",
    "{\"a\":",
    "a: &a\n",
    "<<: *a\n",
    "\"",
];

fn main() {
    let is_quick = std::env::args().any(|arg| arg == "--quick");
    // Started by `cargo test`, it only shows that it works.
    let is_quick = is_quick || !std::env::args().any(|arg| arg == "--bench");
    let skills = if is_quick { 400 } else { 4_000 };
    let (_dir, places) = make_skills(skills);
    let rounds = if is_quick { 3 } else { 15 };
    let cold = median(rounds, || SkillCatalog::load(&places, None).skills().count());
    print(&format!("load {skills} skills, nothing known"), cold, Duration::from_millis(400));
    let loaded = Arc::new(SkillCatalog::load(&places, None));
    let warm = median(rounds, || SkillCatalog::reload(&loaded, &places).skills().count());
    print(&format!("load {skills} skills, nothing changed"), warm, Duration::from_millis(20));
    let read = median(rounds, || SkillCatalog::load(&places, Some(&loaded)).skills().count());
    print(&format!("load {skills} skills, one changed"), read, Duration::from_millis(20));
    let live = LiveSkills::new(SkillOptions::new(places));
    let listing = live.listing(&live.loaded());
    let chars = listing.text.chars().count();
    println!(
        "listing of {skills} skills: {chars} characters (bar {DEFAULT_LISTING_CHARS}), {}",
        listing.missing_line().unwrap()
    );
    assert!(chars <= DEFAULT_LISTING_CHARS);
    read_hostile_texts(if is_quick { 10_000 } else { 100_000 });
    watch_plugin_files(if is_quick { 100 } else { 1_000 });
}

/// Prints a time beside its bar.
fn print(what: &str, took: Duration, bar: Duration) {
    println!("{what}: {:.2} ms (bar {} ms)", took.as_secs_f64() * 1e3, bar.as_millis());
}

/// The median time of a few rounds.
fn median<T>(rounds: usize, mut work: impl FnMut() -> T) -> Duration {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let started = Instant::now();
            std::hint::black_box(work());
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn make_skills(count: usize) -> (TempDir, CapabilityPlaces) {
    let dir = tempfile::tempdir().unwrap();
    let text = "Some text of the skill that says what to do.\n".repeat(40);
    for index in 0..count {
        let skill = dir.path().join(format!(".claude/skills/skill-{index:04}"));
        std::fs::create_dir_all(&skill).unwrap();
        let header = format!(
            "name: skill-{index:04}\ndescription: Does the thing number {index} when nothing else fits"
        );
        std::fs::write(
            skill.join("SKILL.md"),
            format!("---\n{header}\nallowed-tools: Read, Bash(git log:*)\n---\n{text}"),
        )
        .unwrap();
    }
    let mut settings = SettingsOptions::new(AbsPath::new(dir.path().canonicalize().unwrap()).unwrap());
    settings.managed_dirs.clear();
    let places = CapabilityPlaces::of_settings(&settings, &[]);
    // Until then a second write could have the same time stamp, and files are read again.
    std::thread::sleep(Duration::from_millis(100));
    (dir, places)
}

/// The longest time that any hostile text takes to be read and filled in.
fn read_hostile_texts(size: usize) {
    let names: String = (0..size / 20).map(|n| format!("n{n} ")).collect();
    let heads = ["", "---\n", "---\ndescription: d\n---\n", &format!("---\narguments: {names}\n---\n")];
    let mut worst = (Duration::ZERO, "");
    for piece in HOSTILE_PIECES {
        for head in heads {
            let text = format!("{head}{}", piece.repeat((size - head.len().min(size)) / piece.len()));
            let took = median(3, || {
                let (skill, _) = SkillDefinition::read(text.as_bytes(), SkillFileKind::Skill);
                let template = SkillTemplate::parse(&skill.body, &skill.argument_names);
                template.fill(&TemplateValues::new("a 'b c' $0"))
            });
            worst = worst.max((took, piece));
        }
    }
    let (took, piece) = worst;
    print(&format!("read {size} hostile bytes, at worst ({piece:?})"), took, Duration::from_millis(50));
}

/// What each call pays for the files of installed plugins: watched, and with a look at each.
fn watch_plugin_files(count: usize) {
    let dir = tempfile::tempdir().unwrap();
    let root = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
    for index in 0..count {
        let folder = root.join(format!("skills/s{}", index / 10));
        std::fs::create_dir_all(folder.as_path()).unwrap();
        std::fs::write(folder.join(format!("f{index}")).as_path(), "text").unwrap();
    }
    std::thread::sleep(Duration::from_millis(100));
    let stamps = |index: usize| {
        let path = root.join(format!("skills/s{}/f{index}", index / 10));
        (path.clone(), read_file_stamp(&path))
    };
    let stamps: Vec<_> = (0..count).map(stamps).collect();
    let looked = median(101, || stamps.iter().all(|(path, then)| read_file_stamp(path) == *then));
    let watch = StampWatch::new(stamps, i128::from(toolgate_files::now_millis()) * 1_000_000);
    (0..5).for_each(|_| assert!(!watch.has_changed()));
    let watched = median(1_001, || watch.has_changed());
    println!(
        "{count} files of plugins before a call: {:.1} µs watched, {:.1} µs with a look at each ({:.0} times)",
        watched.as_secs_f64() * 1e6,
        looked.as_secs_f64() * 1e6,
        looked.as_secs_f64() / watched.as_secs_f64().max(1e-9)
    );
}
