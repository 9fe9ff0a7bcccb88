//! How long loading takes with 4 000 skills: all files read, and nothing changed. The limits are 400 ms and 20 ms.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a benchmark makes its own files and fails loudly"
)]

use divan::Bencher;
use std::time::Duration;
use tempfile::TempDir;
use toolgate::AbsPath;
use toolgate::settings::SettingsOptions;
use toolgate::skills::{CapabilityPlaces, LiveSkills, SkillCatalog, SkillOptions};

const SKILLS: usize = 4_000;

fn main() {
    divan::main();
}

fn make_skills() -> (TempDir, CapabilityPlaces) {
    let dir = tempfile::tempdir().unwrap();
    let text = "Some text of the skill that says what to do.\n".repeat(40);
    for index in 0..SKILLS {
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

#[divan::bench]
fn read_4000_skills(bencher: Bencher) {
    let (_dir, places) = make_skills();
    bencher.bench(|| SkillCatalog::load(&places, None).skills().count());
}

#[divan::bench]
fn reload_4000_unchanged_skills(bencher: Bencher) {
    let (_dir, places) = make_skills();
    let loaded = SkillCatalog::load(&places, None);
    bencher.bench(|| SkillCatalog::load(&places, Some(&loaded)).skills().count());
}

#[divan::bench]
fn list_4000_skills(bencher: Bencher) {
    let (_dir, places) = make_skills();
    let skills = LiveSkills::new(SkillOptions::new(places));
    let catalog = skills.loaded();
    bencher.bench(|| skills.listing(&catalog).text.len());
}
