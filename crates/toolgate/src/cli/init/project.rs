//! What kind of project a directory holds, and the rules that suit it.

use super::{CliError, read};
use serde_json::Value;
use std::fmt::Write;
use toolgate::AbsPath;

/// Scripts and make targets that only check or build; others may deploy or delete.
const HARMLESS_TASKS: [&str; 10] =
    ["test", "tests", "lint", "build", "check", "typecheck", "type-check", "format", "fmt", "coverage"];

/// A kind of project whose commands are always the same.
struct ProjectKind {
    /// Files that tell it, in the root of the project; a name that begins with `*` is the end of a name.
    files: &'static [&'static str],
    /// Its name, for messages.
    name: &'static str,
    /// The program, and the script in the root that stands for it where there is one.
    program: (&'static str, Option<&'static str>),
    /// What the program builds and checks.
    builds: &'static [&'static str],
    /// Commands that fetch new code of others.
    fetches: &'static [&'static str],
    /// Commands that publish a release.
    publishes: &'static [&'static str],
}

/// The kinds that need no look into their files.
const PROJECT_KINDS: [ProjectKind; 7] = [
    ProjectKind {
        files: &["Cargo.toml"],
        name: "Rust (cargo)",
        program: ("cargo", None),
        builds: &["build", "check", "test", "clippy", "fmt"],
        fetches: &["add", "install"],
        publishes: &["publish"],
    },
    ProjectKind {
        files: &["pom.xml"],
        name: "Java (maven)",
        program: ("mvn", Some("mvnw")),
        builds: &["compile", "test", "verify", "package"],
        fetches: &["dependency:get"],
        // Several goals can stand on one line.
        publishes: &["deploy", "* deploy", "release:perform", "* release:perform"],
    },
    ProjectKind {
        files: &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"],
        name: "Java or Kotlin (gradle)",
        program: ("gradle", Some("gradlew")),
        builds: &["assemble", "build", "check", "test"],
        fetches: &["wrapper"],
        publishes: &["publish", "* publish"],
    },
    ProjectKind {
        files: &["Gemfile"],
        name: "Ruby (bundler)",
        program: ("bundle", None),
        builds: &["exec rspec", "exec rake test", "exec rubocop"],
        fetches: &["add", "install", "update"],
        publishes: &["exec rake release"],
    },
    ProjectKind {
        files: &["*.sln", "*.slnx", "*.csproj", "*.fsproj", "*.vbproj"],
        name: ".NET (dotnet)",
        program: ("dotnet", None),
        builds: &["build", "test", "format"],
        fetches: &["add", "package add", "tool install"],
        publishes: &["nuget push"],
    },
    ProjectKind {
        files: &["deno.json", "deno.jsonc"],
        name: "JavaScript (deno)",
        program: ("deno", None),
        builds: &["check", "fmt", "lint", "test"],
        fetches: &["add", "install"],
        publishes: &["publish"],
    },
    ProjectKind {
        files: &["mix.exs"],
        name: "Elixir (mix)",
        program: ("mix", None),
        builds: &["compile", "format", "test"],
        fetches: &["deps.get", "deps.update"],
        publishes: &["hex.publish"],
    },
];

/// One rule with its list, and the reason as a comment.
struct StarterRule {
    /// `allow`, `ask` or `deny`.
    action: &'static str,
    /// The rule.
    rule: String,
    /// Why, for the comment.
    why: &'static str,
}

/// What was found in the directory.
pub(super) struct DetectedProject {
    /// Languages and package managers, for messages.
    pub(super) kinds: Vec<String>,
    /// A command for the user to try.
    pub(super) example_check: String,
    /// The rules, in the order of the file.
    rules: Vec<StarterRule>,
    /// A command that the rules allow, and one that they deny, for the cases.
    allowed_command: Option<String>,
}

impl DetectedProject {
    /// Recognises the project by the files in its root.
    pub(super) fn detect(root: &AbsPath) -> Result<Self, CliError> {
        let mut project = Self {
            kinds: Vec::new(),
            example_check: String::new(),
            rules: Vec::new(),
            allowed_command: None,
        };
        let has = |name: &str| {
            toolgate_files::read_file_stamp(&root.join(name)) != toolgate_files::FileStamp::Absent
        };
        if let Some(text) = read(&root.join("package.json"))? {
            project.add_node(&text, &has);
        }
        if has("pyproject.toml") || has("requirements.txt") || has("setup.py") {
            project.add_python(&has);
        }
        if has("go.mod") {
            project.add_kind("Go");
            project.add_commands(&["go build", "go test", "go vet", "gofmt -l"]);
            project.add("ask", "Bash(go get *)", "new code of others");
        }
        if let Some(text) = read(&root.join("composer.json"))? {
            project.add_composer(&text);
        }
        for kind in &PROJECT_KINDS {
            let is_there = |name: &&str| match name.strip_prefix('*') {
                Some(suffix) => {
                    toolgate_files::list_names_with_suffix(root, suffix).is_ok_and(|it| !it.is_empty())
                }
                None => has(name),
            };
            if kind.files.iter().any(is_there) {
                project.add_project_kind(kind, &has);
            }
        }
        if let Some(text) = read(&root.join("Makefile"))? {
            project.add_kind("make");
            let targets = make_targets(&text);
            for task in HARMLESS_TASKS.iter().filter(|task| targets.iter().any(|target| target == *task)) {
                project.add_exact(format!("make {task}"));
            }
        }
        project.add_general();
        let command = project.allowed_command.as_deref().unwrap_or("git status");
        project.example_check = format!("toolgate check Bash '{{\"command\":\"{command}\"}}'");
        Ok(project)
    }

    /// A project with `package.json`: the scripts that it has, for the package manager that it or its lock file names.
    fn add_node(&mut self, text: &str, has: &dyn Fn(&str) -> bool) {
        let package: Value = serde_json::from_str(text).unwrap_or_default();
        // `pnpm@9.1.0`: corepack runs this one, whatever lock files are there.
        let named = package.get("packageManager").and_then(Value::as_str);
        let named = named.and_then(|named| named.split('@').next());
        let manager = match named {
            Some("pnpm") => "pnpm",
            Some("yarn") => "yarn",
            Some("bun") => "bun",
            Some("npm") => "npm",
            _ if has("pnpm-lock.yaml") => "pnpm",
            _ if has("yarn.lock") => "yarn",
            _ if has("bun.lock") || has("bun.lockb") => "bun",
            _ => "npm",
        };
        self.add_kind(&format!("JavaScript ({manager})"));
        let scripts = package.get("scripts").and_then(Value::as_object);
        for task in HARMLESS_TASKS.iter().filter(|task| scripts.is_some_and(|it| it.contains_key(**task))) {
            self.add_commands(&[&format!("{manager} run {task}")]);
        }
        if scripts.is_some_and(|scripts| scripts.contains_key("test")) {
            self.add_commands(&[&format!("{manager} test")]);
        }
        let install = if manager == "npm" { "install" } else { "add" };
        self.add("ask", &format!("Bash({manager} {install} *)"), "new code of others");
        self.add("deny", &format!("Bash({manager} publish *)"), "releases are made by people");
    }

    /// A PHP project: the scripts that it has.
    fn add_composer(&mut self, text: &str) {
        self.add_kind("PHP (composer)");
        let package: Value = serde_json::from_str(text).unwrap_or_default();
        let scripts = package.get("scripts").and_then(Value::as_object);
        for task in HARMLESS_TASKS.iter().filter(|task| scripts.is_some_and(|it| it.contains_key(**task))) {
            self.add_commands(&[&format!("composer run {task}"), &format!("composer {task}")]);
        }
        self.add_commands(&["vendor/bin/phpunit", "composer validate"]);
        for command in ["require", "install", "update"] {
            self.add("ask", &format!("Bash(composer {command} *)"), "new code of others");
        }
    }

    /// A kind of project whose commands are always the same.
    fn add_project_kind(&mut self, kind: &ProjectKind, has: &dyn Fn(&str) -> bool) {
        self.add_kind(kind.name);
        let program = match kind.program {
            (_, Some(script)) if has(script) => format!("./{script}"),
            (program, _) => program.to_owned(),
        };
        for command in kind.builds {
            self.add_commands(&[&format!("{program} {command}")]);
        }
        for command in kind.fetches {
            self.add("ask", &format!("Bash({program} {command} *)"), "new code of others");
        }
        for command in kind.publishes {
            self.add("deny", &format!("Bash({program} {command} *)"), "releases are made by people");
        }
    }

    /// A Python project, by its package manager.
    fn add_python(&mut self, has: &dyn Fn(&str) -> bool) {
        let (manager, runner) = match () {
            () if has("uv.lock") => ("uv", "uv run "),
            () if has("poetry.lock") => ("poetry", "poetry run "),
            () => ("pip", ""),
        };
        self.add_kind(&format!("Python ({manager})"));
        let tools = ["pytest", "ruff check", "mypy"];
        self.add_commands(&tools.map(|tool| format!("{runner}{tool}")).each_ref().map(String::as_str));
        let install = if manager == "pip" { "pip install" } else { &format!("{manager} add") };
        self.add("ask", &format!("Bash({install} *)"), "new code of others");
        self.add("deny", "Bash(twine upload *)", "releases are made by people");
    }

    /// Rules for every project.
    fn add_general(&mut self) {
        self.add("allow", "Bash(git add *)", "prepare a commit");
        self.add("allow", "Bash(git commit *)", "commits can be taken back");
        self.add("ask", "Bash(git push *)", "leaves this machine");
        for option in ["--force", "-f"] {
            self.add("deny", &format!("Bash(git push {option} *)"), "loses the work of others");
            self.add(
                "deny",
                &format!("Bash(git push * {option} *)"),
                "the same, with the option at another place",
            );
        }
        self.add("deny", "Bash(git push * +*)", "a branch with a plus sign is pushed by force");
        self.add("deny", "Read(.env)", "secrets, for every tool and command");
        self.add("deny", "Read(.env.*)", "secrets, for every tool and command");
        self.add("deny", "Read(*.pem)", "keys");
    }

    /// Records a detected kind of project, which `toolgate init` reports to the user.
    fn add_kind(&mut self, kind: &str) {
        self.kinds.push(kind.to_owned());
    }

    /// Appends a starter rule. The reason becomes the comment beside the rule, so that the user can judge whether to
    /// keep it.
    fn add(&mut self, action: &'static str, rule: &str, why: &'static str) {
        self.rules.push(StarterRule { action, rule: rule.to_owned(), why });
    }

    /// Allow rules for commands with any arguments.
    fn add_commands(&mut self, commands: &[&str]) {
        for command in commands {
            self.allowed_command.get_or_insert_with(|| (*command).to_owned());
            self.add("allow", &format!("Bash({command} *)"), "builds and checks");
        }
    }

    /// An allow rule for exactly this command.
    fn add_exact(&mut self, command: String) {
        self.add("allow", &format!("Bash({command})"), "builds and checks");
        self.allowed_command.get_or_insert(command);
    }

    /// The settings file, with comments.
    pub(super) fn render_settings(&self) -> String {
        let mut out = String::from(
            "{\n  // Rules of this project, made by `toolgate init`. A deny beats an ask, an ask beats an allow, and what no\n  \
             // rule covers asks. Reading inside the project needs no rule.\n  \
             // Check a change with `toolgate policy lint` and `toolgate policy test`.\n  \"permissions\": {\n",
        );
        let lists = [
            ("allow", "Runs without a question, once you trust this project (`toolgate trust add`)."),
            ("ask", "Always asks."),
            (
                "deny",
                "Never runs. A command that is spelled otherwise is not this one; it asks, unless a rule allows it.",
            ),
        ];
        for (index, (action, meaning)) in lists.iter().enumerate() {
            let rules: Vec<&StarterRule> = self.rules.iter().filter(|rule| rule.action == *action).collect();
            let _ = writeln!(out, "    // {meaning}\n    \"{action}\": [");
            for (index, rule) in rules.iter().enumerate() {
                let comma = if index + 1 < rules.len() { "," } else { "" };
                let text = Value::String(rule.rule.clone());
                let _ = writeln!(out, "      {text}{comma} // {}", rule.why);
            }
            let _ = writeln!(out, "    ]{}", if index + 1 < lists.len() { "," } else { "" });
        }
        out.push_str("  }\n}\n");
        out
    }

    /// The test of the settings, as a case file for the rules in force.
    pub(super) fn render_cases(&self) -> String {
        let mut out = String::from(
            "# What our rules should do\n\n\
             `toolgate policy test` compares this table with the settings in force.\n\n\
             | call | verdict | why |\n|---|---|---|\n",
        );
        if let Some(command) = &self.allowed_command {
            let _ = writeln!(out, "| `Bash {command}` | allow | builds and checks |");
        }
        out.push_str(
            "| `Bash git push` | ASK | leaves this machine |\n\
             | `Bash git push --force origin main` | DENY | loses the work of others |\n\
             | `Bash git push origin main -f` | DENY | the same |\n\
             | `Read .env` | DENY | secrets |\n\
             | `Bash cat .env` | DENY | also by a command |\n",
        );
        out
    }
}

/// The targets of a makefile: names at the beginning of a line, before a colon.
fn make_targets(text: &str) -> Vec<&str> {
    let name = |line: &str| line.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(target, rest)| !target.is_empty() && name(target) && !rest.starts_with('='))
        .map(|(target, _)| target)
        .collect()
}
