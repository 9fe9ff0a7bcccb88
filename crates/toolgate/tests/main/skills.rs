//! `toolgate skill`: which skills there are, which one counts, and what is wrong with them.

use super::cli_fixture::CliFixture;
use serde_json::Value;
use std::time::{Duration, Instant};
use toolgate::AbsPath;
use toolgate::settings::SettingsOptions;
use toolgate::skills::{CapabilityPlaces, CapabilityScope, SkillCatalog};

fn skill(description: &str) -> String {
    format!("---\ndescription: {description}\n---\nText of it.\n")
}

fn list_skills(fixture: &CliFixture, args: &[&str]) -> Value {
    let run = fixture.run(&[&["--json", "skill", "list"], args].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    serde_json::from_str(&run.stdout).unwrap()
}

fn names(value: &Value) -> Vec<(&str, &str)> {
    let text = |skill: &'_ Value, key: &str| skill[key].as_str().map(str::to_owned).unwrap().leak() as &str;
    value.as_array().unwrap().iter().map(|skill| (text(skill, "name"), text(skill, "scope"))).collect()
}

#[test]
fn the_strongest_place_defines_a_skill_and_a_skill_counts_more_than_a_command() {
    let fixture = CliFixture::new();
    let home = |name: &str, text: &str| {
        let path = fixture.beside("home").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    home(".claude/skills/both/SKILL.md", &skill("personal"));
    home(".claude/commands/mine.md", "Do it.");
    fixture.write(".claude/skills/both/SKILL.md", &skill("project"));
    fixture.write(".claude/skills/mine/SKILL.md", &skill("a skill"));
    fixture.write(".claude/commands/deep/er.md", "Deeper.");
    fixture.write(".agents/skills/other/SKILL.md", &skill("other"));
    fixture.write(".claude/agents/helper.md", "---\nname: helper\ndescription: helps\n---\nPrompt.");
    fixture.write(".claude/output-styles/terse.md", "Be terse.");
    let listed = list_skills(&fixture, &["--all"]);
    assert_eq!(
        names(&listed["skills"]),
        [("both", "personal"), ("deep:er", "project"), ("mine", "project"), ("other", "project")]
    );
    assert_eq!(names(&listed["replaced"]), [("both", "project"), ("mine", "personal")]);
    assert_eq!(listed["agents"][0]["name"], "helper");
    assert_eq!(listed["outputStyles"][0]["name"], "terse");
    let listed = list_skills(&fixture, &["--setting-sources", "user"]);
    assert_eq!(names(&listed["skills"]), [("both", "personal"), ("mine", "personal")]);
    assert_eq!(fixture.run(&["skill", "show", "er"]).code, 0, "a short name is enough");
}

#[test]
fn places_go_up_to_the_root_of_the_repository_and_no_further() {
    let fixture = CliFixture::new();
    for (dir, name) in [("", "outside"), ("repo/", "top"), ("repo/a/", "middle"), ("repo/a/b/", "below")] {
        fixture.write(&format!("{dir}.claude/skills/{name}/SKILL.md"), &skill(name));
    }
    std::fs::create_dir(fixture.path("repo/.git")).unwrap();
    let listed = list_skills(&fixture, &["--cwd", "repo/a"]);
    assert_eq!(names(&listed["skills"]), [("middle", "project"), ("top", "project")]);
}

#[test]
fn nothing_is_dropped_silently() {
    let fixture = CliFixture::new();
    fixture.write(".claude/skills/broken/SKILL.md", "---\ndescription: a: b\n---\nx");
    fixture.write(".claude/skills/empty/notes.txt", "");
    fixture.write(".claude/skills/plain.md", "x");
    fixture.write(".claude/skills/r\u{435}view/SKILL.md", &skill("looks like review"));
    fixture.write(".claude/agents/nameless.md", "---\ndescription: d\n---\n");
    // A plugin among the skills, with and without a skill at its top.
    for name in ["bundle", "guard"] {
        fixture.write(&format!(".claude/skills/{name}/.claude-plugin/plugin.json"), r#"{"name":"x"}"#);
    }
    fixture.write(".claude/skills/guard/SKILL.md", &skill("guards"));
    let secret = fixture.beside("secret.txt");
    std::fs::write(&secret, "the secret").unwrap();
    std::fs::create_dir_all(fixture.path(".claude/skills/leak")).unwrap();
    std::os::unix::fs::symlink(&secret, fixture.path(".claude/skills/leak/SKILL.md")).unwrap();
    std::os::unix::fs::symlink("broken", fixture.path(".claude/skills/same")).unwrap();
    let run = fixture.run(&["skill", "lint", "--notes"]);
    assert_eq!(run.code, 1, "{}", run.stdout);
    for wanted in [
        "broken/SKILL.md:2: warning: the front matter is not YAML",
        "skills/empty:1: note: the directory has no file",
        "skills/plain.md:1: warning: a skill is a directory",
        "skills/bundle:1: warning: this directory is a plugin; its other parts are used once it is installed with",
        "skills/guard/SKILL.md:1: warning: this directory is a plugin",
        "error: the file is not used: the name `r\\u{435}view`",
        "agents/nameless.md:1: error: this file is not an agent: it has no `name`",
        "leak/SKILL.md:1: error: the file is not used, because it leads out of",
        "same/SKILL.md:1: warning: another path leads to the same file",
    ] {
        assert!(run.stdout.contains(wanted), "{wanted}\n{}", run.stdout);
    }
    assert!(!run.stdout.contains("the secret"));
    assert_eq!(names(&list_skills(&fixture, &[])["skills"]), [("broken", "project"), ("guard", "project")]);
    let whole = fixture.run(&["skill", "lint", ".claude/skills/broken"]);
    assert_eq!((whole.code, whole.stdout.lines().count()), (0, 1), "{}", whole.stdout);
}

#[test]
fn show_says_what_a_skill_asks_for_and_what_the_rules_say_about_its_commands() {
    let fixture = CliFixture::new();
    let text = "---\ndescription: d\nallowed-tools: Bash(make *)\ndisable-model-invocation: true\n---\n\
                One: !`ls`\nTwo: !`make $0`\n";
    fixture.write(".claude/skills/build/SKILL.md", text);
    let run = fixture.run(&["skill", "show", "build", "--disallowed-tools", "Bash(make *)"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for wanted in [
        "only you, as /build",
        "Bash(make *) until the turn ends",
        "line 6        ALLOW  ls",
        "line 7        DENY  make $0",
    ] {
        assert!(run.stdout.contains(wanted), "{wanted}\n{}", run.stdout);
    }
    assert_eq!(fixture.run(&["skill", "show", "none"]).code, 2);
}

#[test]
fn only_what_changed_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let root = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(".claude/skills").join(name).join("SKILL.md");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("a", &skill("first"));
    write("b", &skill("first"));
    let mut options = SettingsOptions::new(root);
    options.managed_dirs.clear();
    let places = CapabilityPlaces::of_settings(&options, &[]);
    assert_eq!(places.places[0].scope, CapabilityScope::Project);
    let description =
        |catalog: &SkillCatalog, name: &str| catalog.find_skill(name).unwrap().definition.description.clone();
    let first = SkillCatalog::load(&places, None);
    write("a", &skill("second"));
    write("c", &skill("new"));
    std::fs::remove_dir_all(dir.path().join(".claude/skills/b")).unwrap();
    let second = SkillCatalog::load(&places, Some(&first));
    assert_eq!(
        (description(&second, "a"), description(&second, "c")),
        ("second".to_owned(), "new".to_owned())
    );
    assert!(second.find_skill("b").is_none());
    // Once its time stamp is certain, a file that did not change is not read again.
    let deadline = Instant::now() + Duration::from_secs(300);
    let mut last = second;
    loop {
        let next = SkillCatalog::load(&places, Some(&last));
        if std::sync::Arc::ptr_eq(last.find_skill("a").unwrap(), next.find_skill("a").unwrap()) {
            break;
        }
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(20));
        last = next;
    }
}
