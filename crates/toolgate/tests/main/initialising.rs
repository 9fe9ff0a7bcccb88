//! `toolgate init`: a starter policy for each kind of project, which passes its own test.

use super::cli_fixture::CliFixture;

/// A project: its files, what is found, and a command that its policy allows.
type ProjectCase = (&'static [(&'static str, &'static str)], &'static str, &'static str);

const PROJECTS: &[ProjectCase] = &[
    (
        &[
            ("package.json", r#"{"scripts": {"test": "x", "lint": "x", "deploy": "x"}}"#),
            ("pnpm-lock.yaml", ""),
        ],
        "JavaScript (pnpm)",
        "pnpm run lint --fix",
    ),
    (
        &[("package.json", r#"{"packageManager": "pnpm@9", "scripts": {"test": "x"}}"#), ("yarn.lock", "")],
        "JavaScript (pnpm)",
        "pnpm test",
    ),
    (&[("pom.xml", "<project/>")], "Java (maven)", "mvn test -q"),
    (&[("pom.xml", "<project/>"), ("mvnw", "")], "Java (maven)", "./mvnw verify"),
    (&[("build.gradle", "")], "Java or Kotlin (gradle)", "gradle build"),
    (&[("build.gradle.kts", ""), ("gradlew", "")], "Java or Kotlin (gradle)", "./gradlew test"),
    (&[("composer.json", r#"{"scripts": {"test": "x"}}"#)], "PHP (composer)", "composer run test"),
    (&[("Gemfile", "")], "Ruby (bundler)", "bundle exec rspec"),
    (&[("App.csproj", "<Project/>")], ".NET (dotnet)", "dotnet test --no-build"),
    (&[("deno.json", "{}")], "JavaScript (deno)", "deno test"),
    (&[("mix.exs", "")], "Elixir (mix)", "mix test"),
    (&[("Cargo.toml", "[package]\n")], "Rust (cargo)", "cargo test --workspace"),
    (&[("pyproject.toml", ""), ("uv.lock", "")], "Python (uv)", "uv run pytest -q"),
    (&[("go.mod", "module x\n")], "Go", "go test ./..."),
    (&[("Makefile", "test: a b\n\tx\nVAR := test\ndeploy:\n")], "make", "make test"),
];

#[test]
fn each_project_gets_a_policy_that_passes_its_own_test() {
    for (files, kind, command) in PROJECTS {
        let fixture = CliFixture::new();
        for (name, text) in *files {
            fixture.write(name, text);
        }
        fixture.write(".gitignore", "target");
        let output = fixture.run(&["init"]);
        assert_eq!(output.code, 0, "{kind}: {}", output.stderr);
        assert!(output.stdout.contains(&format!("found: {kind}")), "{}", output.stdout);
        let next: Vec<&str> = output.stdout.lines().skip_while(|line| *line != "next:").skip(1).collect();
        assert_eq!(next.len(), 3, "{}", output.stdout);
        assert_eq!(
            std::fs::read_to_string(fixture.path(".gitignore")).unwrap(),
            "target\n.toolgate/settings.local.json\n"
        );
        let lint = fixture.run(&["--trust-workspace", "policy", "lint"]);
        assert_eq!(lint.code, 0, "{kind}: {}", lint.stdout);
        assert_eq!(fixture.run(&["trust", "add", "--yes"]).code, 0);
        let test = fixture.run(&["policy", "test"]);
        assert_eq!(test.code, 0, "{kind}: {}{}", test.stdout, test.stderr);
        for (command, code) in [
            (*command, 0),
            ("git push --force origin main", 3),
            ("git push origin main --force", 3),
            ("git push -f", 3),
            ("git push origin main -f", 3),
            ("git push origin +main", 3),
            ("git push origin main", 4),
            ("curl https://x.test", 4),
        ] {
            let input = serde_json::json!({ "command": command }).to_string();
            let check = fixture.run(&["check", "Bash", &input]);
            assert_eq!(check.code, code, "{kind}: {command}: {}", check.stdout);
        }
    }
}

/// The first test of a newcomer who has not trusted the project yet: the failure says what is missing.
#[test]
fn a_policy_test_before_trust_says_why_allow_rules_do_not_count() {
    let fixture = CliFixture::new();
    fixture.write("Cargo.toml", "[package]\n");
    assert_eq!(fixture.run(&["init"]).code, 0);
    let output = fixture.run(&["policy", "test"]);
    assert_eq!(output.code, 1, "{}", output.stdout);
    assert!(output.stderr.contains("toolgate trust add"), "{}{}", output.stdout, output.stderr);
    let output = fixture.run(&["--trust-workspace", "policy", "test"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{}", output.stdout);
}

#[test]
fn existing_files_are_kept_and_a_dry_run_writes_nothing() {
    let fixture = CliFixture::new();
    let output = fixture.run(&["init", "--dry-run"]);
    assert!(output.stdout.contains("// Never runs."), "{}", output.stdout);
    assert!(!fixture.path(".toolgate").exists() && !fixture.path(".gitignore").exists());
    let file = fixture.write(".toolgate/settings.json", "{}");
    let output = fixture.run(&["init"]);
    assert!(output.stderr.contains("exists and is kept"), "{}", output.stderr);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{}");
    let output = fixture.run(&["--json", "init", "--force"]);
    let value: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(value["written"], serde_json::json!([".toolgate/settings.json", ".toolgate/policy.md"]));
    // Others of the project can read the files.
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(
        std::fs::metadata(fixture.path(".toolgate/policy.md")).unwrap().permissions().mode() & 0o444,
        0o444
    );
}
