//! Policies and calls made up by chance, from pools so small that they meet.

use super::command::{GeneratedCommand, GeneratedCommandLine, GeneratedSimpleCommand};
use super::rng::SplitMixRng;
use super::scenario::{GeneratedCall, GeneratedEffect, GeneratedLayer, GeneratedSettings, GeneratedUrl};
use serde_json::{Map, Value, json};
use toolgate_policy::{Layer, RuleAction};
use toolgate_proto::Mode;

const RULE_POOL: &[&str] = &[
    "Bash",
    "Bash(*)",
    "Bash(npm *)",
    "Bash(npm test)",
    "Bash(npm run *)",
    "Bash(npm run:*)",
    "Bash(npm*)",
    "Bash(* test)",
    "Bash(npm * ci)",
    "Bash(npm * ci *)",
    "Bash(make test)",
    "Bash(make *)",
    "Bash(git *)",
    "Bash(git push *)",
    "Bash(git push origin main)",
    "Bash(git status)",
    "Bash(git * main)",
    "Bash(echo *)",
    "Bash(cat *)",
    "Bash(cat .env)",
    "Bash(cat src/*)",
    "Bash(cat /etc/hostname)",
    "Bash(cp *)",
    "Bash(cp src/*)",
    "Bash(rm *)",
    "Bash(rm src/a.rs)",
    "Bash(touch *)",
    "Bash(mkdir *)",
    "Bash(curl *)",
    "Bash(curl https://example.com/*)",
    "Bash(curl:*)",
    "Bash(timeout *)",
    "Bash(nohup npm *)",
    "Bash(FOO=bar *)",
    "Bash(ls *)",
    "Bash(ls*)",
    "Bash(run_in_background:true)",
    "Bash(npm:* test)",
    "Monitor",
    "shell",
    "Read",
    "Read(src/**)",
    "Read(./src/**)",
    "Read(/src/**)",
    "Read(src/*.rs)",
    "Read(.env)",
    "Read(sub/.env)",
    "Read(**/.env)",
    "Read(//etc/**)",
    "Read(//outside/**)",
    "Read(~/notes/**)",
    "Read(private/**)",
    "Read(*.rs)",
    "Read(docs)",
    "Read(docs/*)",
    "Read(**)",
    "Read(//**)",
    "Read(SRC/**)",
    "Read(a?.rs)",
    "Read(//ws/src/a.rs)",
    "Read(out/**)",
    "Read(src/**/deep/*.rs)",
    "Edit",
    "Edit(src/**)",
    "Edit(/src/**)",
    "Edit(docs/**)",
    "Edit(*.md)",
    "Edit(.env)",
    "Edit(//outside/**)",
    "Edit(~/**)",
    "Edit(//extra/**)",
    "Edit(**)",
    "Edit(.git/**)",
    "Edit(in/**)",
    "Edit(private/**)",
    "Edit(*.lock)",
    "Edit(src/a.rs)",
    "WebFetch",
    "WebFetch(domain:example.com)",
    "WebFetch(domain:*.example.com)",
    "WebFetch(domain:example.*)",
    "WebFetch(domain:localhost)",
    "WebFetch(domain:10.0.0.7)",
    "WebFetch(domain:example.com:8443)",
    "WebFetch(domain:a*.example.com)",
    "WebFetch(domain:EXAMPLE.com)",
    "WebFetch(domain:evil.test)",
    "WebSearch",
    "Agent",
    "Task",
    "Agent(Explore)",
    "Task(Explore)",
    "Agent(model:big)",
    "Agent(model:b*)",
    "Agent(Plan)",
    "Skill",
    "Skill(review)",
    "Skill(review *)",
    "Skill(rev *)",
    "mcp__gh",
    "mcp__gh__get_*",
    "mcp__gh__get_issue",
    "mcp__gh__*",
    "mcp__fs__read",
    "mcp__*",
    "mcp__*__get_*",
    "mcp__*__read",
    "mcp__g",
    "*",
    "Web*",
    "TaskStop",
    "KillShell",
    "TodoWrite",
    "Write",
    "Grep",
    "Unknown",
    "Write(docs/**)",
    "Grep(src/**)",
];

/// Rules that cannot be read: rare, because one of them may end the whole policy.
const MALFORMED_RULES: &[&str] = &["Bash(npm *", "Bash()", "bash(ls)", "mcp__gh__get_issue(x)"];

const PATH_POOL: &[&str] = &[
    "src/a.rs",
    "src/ab.rs",
    "src/deep/b.rs",
    "src/x/deep/b.rs",
    "SRC/a.rs",
    "src",
    "docs/a.md",
    "docs/key",
    "docs",
    "in/a.rs",
    "out/a.rs",
    "hop",
    "store/config",
    "private/key",
    "lib/private/key",
    "lib/src/a.rs",
    ".env",
    "sub/.env",
    "src/.env",
    ".ENV",
    "a.md",
    "Cargo.lock",
    ".git/config",
    "sub/.GIT/config",
    ".vscode/settings.json",
    "/etc/hostname",
    "/outside/a.rs",
    "/outside/back/a.rs",
    "/extra/a.rs",
    "~/notes/a.md",
    "~/.bashrc",
    "~/.claude/x",
    "../outside/a.rs",
    "src/../private/key",
    "src/shared.rs",
    "/proc/self/environ",
    "/ws2/src/a.rs",
    "ab.rs",
];

/// Paths that a command may be given without a word of their own being odd to a shell.
const HOST_POOL: &[&str] = &[
    "example.com",
    "EXAMPLE.com",
    "a.example.com",
    "a.b.example.com",
    "example.org",
    "evil.test",
    "localhost",
    "127.0.0.1",
    "10.0.0.7",
    "169.254.169.254",
    "notexample.com",
    "example.com.evil.test",
];

const MODE_POOL: [Mode; 8] = [
    Mode::Default,
    Mode::Default,
    Mode::Default,
    Mode::Plan,
    Mode::AcceptEdits,
    Mode::DontAsk,
    Mode::Bypass,
    Mode::Deny,
];

/// Settings.
pub(super) fn generate_settings(dice: &mut SplitMixRng) -> GeneratedSettings {
    let layers = (0..1 + dice.random_below(3)).map(|_| generate_layer(dice)).collect();
    let mode = if dice.random_one_in(30) {
        Mode::Deny
    } else {
        MODE_POOL.get(dice.random_below(7)).copied().unwrap_or_default()
    };
    GeneratedSettings {
        layers,
        mode,
        managed_only: dice.random_one_in(12),
        no_bypass: dice.random_one_in(8),
        disabled: if dice.random_one_in(16) {
            vec![dice.pick(&["WebFetch", "Bash", "Agent", "mcp__gh__delete"])]
        } else {
            vec![]
        },
        free_readers: !dice.random_one_in(5),
        book: dice.random_one_in(3).then(|| generate_book(dice)),
        approved_hosts: if dice.random_one_in(6) {
            vec![dice.pick(&["example.com", "*.example.com"])]
        } else {
            vec![]
        },
        blocked_hosts: if dice.random_one_in(8) {
            vec![dice.pick(&["evil.test", "*.example.com"])]
        } else {
            vec![]
        },
        approve_https: dice.random_one_in(10),
    }
}

fn generate_layer(dice: &mut SplitMixRng) -> GeneratedLayer {
    let (allow, ask, deny) = (dice.random_below(8), dice.random_below(4), dice.random_below(4));
    let mut list = |count: usize| -> Vec<String> {
        (0..count)
            .map(|_| if dice.random_one_in(400) { dice.pick(MALFORMED_RULES) } else { dice.pick(RULE_POOL) })
            .map(str::to_owned)
            .collect()
    };
    let (allow, ask, deny) = (list(allow), list(ask), list(deny));
    let layers = [Layer::Managed, Layer::Cli, Layer::Session, Layer::Local, Layer::Project, Layer::User];
    GeneratedLayer {
        layer: layers.get(dice.random_below(layers.len())).copied().unwrap_or(Layer::Project),
        trusted: !dice.random_one_in(8),
        allow,
        ask,
        deny,
    }
}

fn generate_book(dice: &mut SplitMixRng) -> Value {
    let rules: Vec<Value> = (0..dice.random_below(4))
        .map(|_| {
            let conditions: Vec<Value> = (0..dice.random_below(3)).map(|_| generate_condition(dice)).collect();
            json!({
                "tool": dice.pick(&["Bash", "Bash", "Read", "Write", "*", "mcp__gh__get_issue", "WebFetch", "Agent"]),
                "action": dice.pick(&["allow", "ask", "deny"]),
                "conditions": conditions,
            })
        })
        .collect();
    match dice.random_below(5) {
        0 => json!({ "rules": rules, "defaultAction": "ask" }),
        1 => json!({ "rules": rules, "defaultAction": "allow" }),
        2 if dice.random_one_in(3) => json!({ "rules": rules, "defaultAction": "deny" }),
        _ => json!({ "rules": rules }),
    }
}

fn generate_condition(dice: &mut SplitMixRng) -> Value {
    let (operator, value) = match dice.random_below(7) {
        0 => ("equals", json!("npm test")),
        1 => ("contains", json!(["main", "src/"])),
        2 => ("startsWith", json!("npm")),
        3 => ("matches", json!("^npm (test|run)$")),
        4 => ("matches", json!("src/.*s$")),
        5 => ("matches", json!("[0-9]+")),
        _ => ("equals", json!("true")),
    };
    let param = dice.pick(&["command", "command", "file_path", "url", "model", "run_in_background", "path"]);
    json!({ "param": param, "operator": operator, "value": value })
}

/// A call.
pub(super) fn generate_call(dice: &mut SplitMixRng) -> GeneratedCall {
    let mut input = Map::new();
    let mut also = Vec::new();
    let (tool, deed) = match dice.random_below(20) {
        0..=2 => {
            let path = generate_path(dice);
            input.insert("file_path".into(), json!(path));
            ("Read", GeneratedEffect::Read(path))
        }
        3 => {
            let path = generate_path(dice);
            input.insert("path".into(), json!(path));
            ("Grep", GeneratedEffect::ReadTree(path))
        }
        4..=6 => {
            let path = generate_path(dice);
            input.insert("file_path".into(), json!(path));
            (if dice.random_one_in(2) { "Write" } else { "Edit" }, GeneratedEffect::Write(path))
        }
        7..=13 => {
            let line = generate_command_line(dice, 2);
            input.insert("command".into(), json!(line.text()));
            if dice.random_one_in(6) {
                input.insert("run_in_background".into(), json!(dice.random_one_in(2)));
            }
            let tool = match dice.random_below(8) {
                0 => "Monitor",
                1 => "shell",
                _ => "Bash",
            };
            if tool != "Bash" {
                also.push("Bash");
            }
            (tool, GeneratedEffect::Exec(line))
        }
        14 | 15 => {
            let address = generate_url(dice);
            input.insert("url".into(), json!(address.text()));
            ("WebFetch", GeneratedEffect::Fetch(address))
        }
        16 => match dice.random_below(4) {
            0 => ("WebSearch", GeneratedEffect::WebSearch("words".to_owned())),
            1 => ("TodoWrite", GeneratedEffect::State),
            2 => ("TaskStop", GeneratedEffect::Opaque),
            _ => ("Unknown", GeneratedEffect::Opaque),
        },
        17 => {
            let agent = dice.pick(&["Explore", "Plan", "explore"]);
            input.insert("subagent_type".into(), json!(agent));
            if dice.random_one_in(2) {
                input.insert("model".into(), json!(dice.pick(&["big", "bigger", "small"])));
            }
            also.push("Task");
            ("Agent", GeneratedEffect::Delegate(agent.to_owned()))
        }
        18 => {
            let (name, args) = match dice.random_below(4) {
                0 => ("review", None),
                1 => ("review", Some("12")),
                2 => ("rev", Some("1")),
                _ => ("reviewer", None),
            };
            input.insert("skill".into(), json!(name));
            ("Skill", GeneratedEffect::Skill(name.to_owned(), args.map(str::to_owned)))
        }
        _ => {
            let (tool, server, name) = match dice.random_below(5) {
                0 | 1 => ("mcp__gh__get_issue", "gh", "get_issue"),
                2 => ("mcp__gh__delete", "gh", "delete"),
                3 => ("mcp__fs__read", "fs", "read"),
                _ => ("mcp__ghx__get_issue", "ghx", "get_issue"),
            };
            let path = dice.random_one_in(2).then(|| dice.pick(PATH_POOL)).filter(|path| path.contains('/'));
            if let Some(path) = path {
                input.insert("path".into(), json!(path));
            }
            let deed = GeneratedEffect::Remote {
                server: server.to_owned(),
                tool: name.to_owned(),
                path: path.map(str::to_owned),
            };
            (tool, deed)
        }
    };
    let opinions = match dice.random_below(12) {
        0 => vec![RuleAction::Allow],
        1 => vec![RuleAction::Ask, RuleAction::Allow],
        2 if dice.random_one_in(3) => vec![RuleAction::Deny],
        _ => Vec::new(),
    };
    GeneratedCall { tool, also, effect: deed, input, opinions, needs_person: dice.random_one_in(40) }
}

fn generate_path(dice: &mut SplitMixRng) -> String {
    super::command::to_absolute(dice.pick(PATH_POOL))
}

fn generate_url(dice: &mut SplitMixRng) -> GeneratedUrl {
    let port = match dice.random_below(6) {
        0 => Some(8443),
        1 => Some(443),
        _ => None,
    };
    GeneratedUrl { secure: !dice.random_one_in(4), host: dice.pick(HOST_POOL), port }
}

fn generate_command_line(dice: &mut SplitMixRng, depth: usize) -> GeneratedCommandLine {
    let count = if dice.random_one_in(2) { 1 } else { 1 + dice.random_below(3) };
    let items = (0..count)
        .map(|_| (generate_command(dice, depth), dice.pick(&[" && ", "; ", " || ", "\n", " | ", " & "])))
        .collect();
    GeneratedCommandLine { items }
}

fn generate_command(dice: &mut SplitMixRng, depth: usize) -> GeneratedCommand {
    if depth == 0 || !dice.random_one_in(5) {
        return GeneratedCommand::Simple(generate_simple_command(dice));
    }
    let inner = generate_command_line(dice, depth - 1);
    match dice.random_below(5) {
        4 => GeneratedCommand::BashCommand(inner),
        0 => GeneratedCommand::Subshell(inner),
        1 => GeneratedCommand::Group(inner),
        2 => GeneratedCommand::If(inner),
        _ => GeneratedCommand::EchoSubstitution(inner),
    }
}

fn generate_simple_command(dice: &mut SplitMixRng) -> GeneratedSimpleCommand {
    let path = |dice: &mut SplitMixRng| dice.pick(PATH_POOL);
    let mut simple = match dice.random_below(16) {
        0 | 1 => {
            GeneratedSimpleCommand::of(&["npm", dice.pick(&["test", "run", "run ci", "t ci now", "install"])])
        }
        2 => GeneratedSimpleCommand::of(&["make", dice.pick(&["test", "install"])]),
        3 => {
            GeneratedSimpleCommand::of(&["git", dice.pick(&["push", "push origin main", "pull origin main"])])
        }
        4 => GeneratedSimpleCommand::of(&["git", "status"]),
        5 => GeneratedSimpleCommand::of(&["echo", dice.pick(&["hi", "npm test", "main"])]),
        6 | 7 => GeneratedSimpleCommand::of(&[dice.pick(&["cat", "wc", "head"]), path(dice)]),
        8 => GeneratedSimpleCommand::of(&["ls"]),
        9 => GeneratedSimpleCommand::of(&["ls", path(dice)]),
        10 => GeneratedSimpleCommand::of(&["cp", path(dice), path(dice)]),
        11 => GeneratedSimpleCommand::of(&["touch", path(dice)]),
        12 => GeneratedSimpleCommand::of(&["mkdir", path(dice)]),
        13 => GeneratedSimpleCommand::of(&["rm", path(dice)]),
        14 => {
            let address = generate_url(dice);
            GeneratedSimpleCommand {
                address: Some(address.clone()),
                ..GeneratedSimpleCommand::of(&["curl", &address.text()])
            }
        }
        _ => GeneratedSimpleCommand::of(&["npmx"]),
    };
    if dice.random_one_in(4) {
        simple.quoting = 1 + dice.random_below(3);
    }
    if dice.random_one_in(6) {
        simple.wrapper = Some(dice.pick(&["timeout 5", "nohup", "nice", "time"]));
    }
    if dice.random_one_in(8) {
        simple.assignment = Some(dice.pick(&["FOO=bar", "NODE_ENV=test", "LD_PRELOAD=x"]));
    }
    if dice.random_one_in(6) {
        simple.output = Some(if dice.random_one_in(4) { "/dev/null" } else { path(dice) }.to_owned());
    }
    if dice.random_one_in(12) {
        simple.input = Some(path(dice).to_owned());
    }
    simple
}
