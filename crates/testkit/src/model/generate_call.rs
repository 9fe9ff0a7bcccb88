//! Random calls. The pools of paths and hosts are small, so that calls and rules meet often.

use super::command::{GeneratedCommand, GeneratedCommandLine, GeneratedSimpleCommand};
use super::generated_call::{GeneratedCall, GeneratedEffect, GeneratedUrl};
use super::rng::SplitMixRng;
use serde_json::{Map, Value, json};
use toolgate_policy::RuleAction;

/// Paths that need no quoting in a shell.
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

/// Hosts, public and private, and two that look like others.
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

/// Generates a call of a random tool, with the opinions of hooks.
pub(super) fn generate_call(rng: &mut SplitMixRng) -> GeneratedCall {
    let mut input = Map::new();
    let mut also = Vec::new();
    let (tool, effect) = match rng.random_below(20) {
        0..=2 => {
            let (tool, field, line) = match rng.random_one_in(3) {
                true => ("read_file", "path", "startLine"),
                false => ("Read", "file_path", "offset"),
            };
            if rng.random_one_in(4) {
                input.insert(line.into(), generate_number(rng));
            }
            if tool != "Read" {
                also.push("Read");
            }
            (tool, generate_file_call(rng, &mut input, field, GeneratedEffect::Read))
        }
        3 => ("Grep", generate_file_call(rng, &mut input, "path", GeneratedEffect::ReadTree)),
        4..=6 => {
            let (tool, family) = match rng.random_below(6) {
                0 | 1 => ("Write", "Write"),
                2 => ("write_file", "Write"),
                3 => ("edit_file", "Edit"),
                _ => ("Edit", "Edit"),
            };
            let text = rng.pick(&["a secret", "plain"]);
            match tool {
                "Edit" => drop(input.insert("new_string".into(), json!(text))),
                "edit_file" => {
                    drop(input.insert("edits".into(), json!([{ "target": "x", "replacement": text }])))
                }
                _ => {}
            }
            if tool != family {
                also.push(family);
            }
            let field = if tool == family { "file_path" } else { "path" };
            (tool, generate_file_call(rng, &mut input, field, GeneratedEffect::Write))
        }
        7..=13 => {
            let (tool, effect) = generate_shell_call(rng, &mut input);
            if tool != "Bash" {
                also.push("Bash");
            }
            (tool, effect)
        }
        14 | 15 => {
            let address = generate_url(rng);
            input.insert("url".into(), json!(address.text()));
            ("WebFetch", GeneratedEffect::Fetch(address))
        }
        16 => match rng.random_below(4) {
            0 => ("WebSearch", GeneratedEffect::WebSearch("words".to_owned())),
            1 => ("TodoWrite", GeneratedEffect::State),
            2 => ("TaskStop", GeneratedEffect::Opaque),
            _ => ("Unknown", GeneratedEffect::Opaque),
        },
        17 => {
            also.push("Task");
            generate_agent_call(rng, &mut input)
        }
        18 => {
            let (name, args) = match rng.random_below(4) {
                0 => ("review", None),
                1 => ("review", Some("12")),
                2 => ("rev", Some("1")),
                _ => ("reviewer", None),
            };
            input.insert("skill".into(), json!(name));
            ("Skill", GeneratedEffect::Skill(name.to_owned(), args.map(str::to_owned)))
        }
        _ => generate_remote_call(rng, &mut input),
    };
    let opinions = match rng.random_below(12) {
        0 => vec![RuleAction::Allow],
        1 => vec![RuleAction::Ask, RuleAction::Allow],
        2 if rng.random_one_in(3) => vec![RuleAction::Deny],
        _ => Vec::new(),
    };
    GeneratedCall { tool, also, effect, input, opinions, needs_user: rng.random_one_in(40) }
}

/// A call of a tool that reads or writes one path; `input` gets the path as `field`.
fn generate_file_call(
    rng: &mut SplitMixRng,
    input: &mut Map<String, Value>,
    field: &str,
    effect: fn(String) -> GeneratedEffect,
) -> GeneratedEffect {
    let spelled = rng.pick(PATH_POOL);
    let path = super::command::to_absolute(spelled);
    // The tools that have the field `path` also take a path that begins in the working directory.
    let is_relative = field == "path" && !spelled.starts_with('~') && rng.random_one_in(2);
    input.insert(field.to_owned(), json!(if is_relative { spelled } else { &path }));
    effect(path)
}

/// A number, sometimes in an unusual spelling.
fn generate_number(rng: &mut SplitMixRng) -> Value {
    let text =
        rng.pick(&["2", "2.0", "0.2e1", "2.5", "-1", "-1.0", "1e3", "1000", "600000", "6e5", "-0.0", "0"]);
    serde_json::from_str(text).unwrap_or_default()
}

/// A call of a tool that runs a command line.
fn generate_shell_call(
    rng: &mut SplitMixRng,
    input: &mut Map<String, Value>,
) -> (&'static str, GeneratedEffect) {
    let line = generate_command_line(rng, 2);
    input.insert("command".into(), json!(line.text()));
    let (tool, background, timeout) = match rng.random_below(8) {
        0 => ("Monitor", "run_in_background", "timeout_ms"),
        1 | 2 => ("shell", "background", "timeout"),
        _ => ("Bash", "run_in_background", "timeout"),
    };
    if rng.random_one_in(6) {
        input.insert(background.into(), json!(rng.random_one_in(2)));
    }
    if rng.random_one_in(6) {
        input.insert(timeout.into(), generate_number(rng));
    }
    (tool, GeneratedEffect::Exec(line))
}

/// A call that starts an agent.
fn generate_agent_call(
    rng: &mut SplitMixRng,
    input: &mut Map<String, Value>,
) -> (&'static str, GeneratedEffect) {
    let agent = rng.pick(&["Explore", "Plan", "explore"]);
    input.insert("subagent_type".into(), json!(agent));
    if rng.random_one_in(2) {
        input.insert("model".into(), json!(rng.pick(&["big", "bigger", "small"])));
    }
    ("Agent", GeneratedEffect::Delegate(agent.to_owned()))
}

/// A call of a tool of an MCP server.
fn generate_remote_call(
    rng: &mut SplitMixRng,
    input: &mut Map<String, Value>,
) -> (&'static str, GeneratedEffect) {
    let (tool, server, name) = match rng.random_below(5) {
        0 | 1 => ("mcp__gh__get_issue", "gh", "get_issue"),
        2 => ("mcp__gh__delete", "gh", "delete"),
        3 => ("mcp__fs__read", "fs", "read"),
        _ => ("mcp__ghx__get_issue", "ghx", "get_issue"),
    };
    let path = rng.random_one_in(2).then(|| rng.pick(PATH_POOL)).filter(|path| path.contains('/'));
    if let Some(path) = path {
        input.insert("path".into(), json!(path));
    }
    if rng.random_one_in(2) {
        input.insert("n".into(), generate_number(rng));
    }
    if rng.random_one_in(2) {
        let value = rng.pick(&[
            "\"evil\"",
            "[\"evil\"]",
            "[\"so \\\"evil\\\"\",2.0]",
            "{\"a\":1,\"b\":2}",
            "{\"b\":2.0,\"a\":1.0}",
            "{\"evil\":null}",
            "null",
            "[]",
        ]);
        input.insert("z".into(), serde_json::from_str(value).unwrap_or_default());
    }
    let effect = GeneratedEffect::Remote {
        server: server.to_owned(),
        tool: name.to_owned(),
        path: path.map(str::to_owned),
    };
    (tool, effect)
}

/// Picks a URL, sometimes with an explicit port: default and other ports are judged differently.
fn generate_url(rng: &mut SplitMixRng) -> GeneratedUrl {
    let port = match rng.random_below(6) {
        0 => Some(8443),
        1 => Some(443),
        _ => None,
    };
    GeneratedUrl { secure: !rng.random_one_in(4), host: rng.pick(HOST_POOL), port }
}

/// A list of commands; `depth` is how deep lists may be nested.
fn generate_command_line(rng: &mut SplitMixRng, depth: usize) -> GeneratedCommandLine {
    let count = if rng.random_one_in(2) { 1 } else { 1 + rng.random_below(3) };
    let items = (0..count)
        .map(|_| (generate_command(rng, depth), rng.pick(&[" && ", "; ", " || ", "\n", " | ", " & "])))
        .collect();
    GeneratedCommandLine { items }
}

/// Generates a simple command, or rarely a compound one while `depth` allows it.
fn generate_command(rng: &mut SplitMixRng, depth: usize) -> GeneratedCommand {
    if depth == 0 || !rng.random_one_in(5) {
        return GeneratedCommand::Simple(generate_simple_command(rng));
    }
    let inner = generate_command_line(rng, depth - 1);
    match rng.random_below(5) {
        4 => GeneratedCommand::BashCommand(inner),
        0 => GeneratedCommand::Subshell(inner),
        1 => GeneratedCommand::Group(inner),
        2 => GeneratedCommand::If(inner),
        _ => GeneratedCommand::EchoSubstitution(inner),
    }
}

/// A simple command, sometimes with quotes, a wrapper, a variable and redirects.
fn generate_simple_command(rng: &mut SplitMixRng) -> GeneratedSimpleCommand {
    let mut simple = generate_program(rng);
    if rng.random_one_in(4) {
        simple.quoting = 1 + rng.random_below(3);
    }
    if rng.random_one_in(6) {
        simple.wrapper = Some(rng.pick(&["timeout 5", "nohup", "nice", "time"]));
    }
    if rng.random_one_in(8) {
        simple.assignment = Some(rng.pick(&["FOO=bar", "NODE_ENV=test", "LD_PRELOAD=x"]));
    }
    if rng.random_one_in(6) {
        let target = if rng.random_one_in(4) { "/dev/null" } else { rng.pick(PATH_POOL) };
        simple.output = Some(target.to_owned());
    }
    if rng.random_one_in(12) {
        simple.input = Some(rng.pick(PATH_POOL).to_owned());
    }
    simple
}

/// A program and its arguments.
fn generate_program(rng: &mut SplitMixRng) -> GeneratedSimpleCommand {
    let command = GeneratedSimpleCommand::of;
    let path = |rng: &mut SplitMixRng| rng.pick(PATH_POOL);
    match rng.random_below(16) {
        0 | 1 => command(&["npm", rng.pick(&["test", "run", "run ci", "t ci now", "install"])]),
        2 => command(&["make", rng.pick(&["test", "install"])]),
        3 => command(&["git", rng.pick(&["push", "push origin main", "pull origin main"])]),
        4 => command(&["git", "status"]),
        5 => command(&["echo", rng.pick(&["hi", "npm test", "main"])]),
        6 | 7 => command(&[rng.pick(&["cat", "wc", "head"]), path(rng)]),
        8 => command(&["ls"]),
        9 => command(&["ls", path(rng)]),
        10 => command(&["cp", path(rng), path(rng)]),
        11 => command(&["touch", path(rng)]),
        12 => command(&["mkdir", path(rng)]),
        13 => command(&["rm", path(rng)]),
        14 => {
            let address = generate_url(rng);
            GeneratedSimpleCommand { address: Some(address.clone()), ..command(&["curl", &address.text()]) }
        }
        _ => command(&["npmx"]),
    }
}
