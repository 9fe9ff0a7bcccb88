//! Random settings. The pools of rules are small, so that rules, paths and commands meet often.

use super::generated_call::{GeneratedLayer, GeneratedSettings};
use super::rng::SplitMixRng;
use serde_json::{Value, json};
use toolgate_policy::Layer;
use toolgate_proto::Mode;

/// Rules of every kind, for the three lists of a layer.
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
    "Bash(background:true)",
    "shell(run_in_background:true)",
    "Bash(timeout:600000)",
    "shell(timeout:6e5)",
    "Bash(timeout:2*)",
    "Bash(npm:* test)",
    "Monitor",
    "shell",
    "Read",
    "Read(offset:2)",
    "Read(startLine:2.0)",
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
    "Edit(new_string:*secret*)",
    "Edit(edits:*secret*)",
    "edit_file(edits:*plain*)",
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
    "mcp__gh(n:2)",
    "mcp__gh__get_issue(n:-1.0)",
    "mcp__gh(n:1e3)",
    "mcp__*__read(n:0)",
    "mcp__fs(n:2*)",
    "mcp__gh(z:*evil*)",
    "mcp__gh(z:*so \"evil\"*)",
    "mcp__gh__*(z:{\"b\":2,\"a\":1.0})",
    "mcp__fs__read(z:[\"evil\"])",
    "mcp__gh(z:null)",
    "*",
    "Web*",
    "TaskStop",
    "KillShell",
    "TodoWrite",
    "Write",
    "Grep",
    "Unknown",
    "Write(docs/**)",
    "Write(*.lock)",
    "MultiEdit(src/**)",
    "NotebookEdit(//outside/**)",
    "Grep(src/**)",
    "Glob(private/**)",
    "LS(docs)",
];

/// Texts that are not rules. They are rare, because one in a deny list makes the policy deny everything.
const MALFORMED_RULES: &[&str] = &["Bash(npm *", "Bash()", "bash(ls)", "mcp__gh__get_issue(x)"];

/// Modes, the default one more often than the others.
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

/// Generates settings of one to three layers.
pub(super) fn generate_settings(rng: &mut SplitMixRng) -> GeneratedSettings {
    let layers = (0..1 + rng.random_below(3)).map(|_| generate_layer(rng)).collect();
    let mode = if rng.random_one_in(30) {
        Mode::Deny
    } else {
        MODE_POOL.get(rng.random_below(7)).copied().unwrap_or_default()
    };
    GeneratedSettings {
        layers,
        mode,
        managed_only: rng.random_one_in(12),
        no_bypass: rng.random_one_in(8),
        disabled: if rng.random_one_in(16) {
            vec![rng.pick(&["WebFetch", "Bash", "Agent", "mcp__gh__delete"])]
        } else {
            vec![]
        },
        free_readers: !rng.random_one_in(5),
        book: rng.random_one_in(3).then(|| generate_book(rng)),
        approved_hosts: if rng.random_one_in(6) {
            vec![rng.pick(&["example.com", "*.example.com"])]
        } else {
            vec![]
        },
        blocked_hosts: if rng.random_one_in(8) {
            vec![rng.pick(&["evil.test", "*.example.com"])]
        } else {
            vec![]
        },
        approve_https: rng.random_one_in(10),
    }
}

/// Generates one layer of rules. Malformed rules are rare, because one of them can deny every call of a policy.
fn generate_layer(rng: &mut SplitMixRng) -> GeneratedLayer {
    let (allow, ask, deny) = (rng.random_below(8), rng.random_below(4), rng.random_below(4));
    let mut list = |count: usize| -> Vec<String> {
        (0..count)
            .map(|_| if rng.random_one_in(400) { rng.pick(MALFORMED_RULES) } else { rng.pick(RULE_POOL) })
            .map(str::to_owned)
            .collect()
    };
    let (allow, ask, deny) = (list(allow), list(ask), list(deny));
    let layers = [Layer::Managed, Layer::Cli, Layer::Session, Layer::Local, Layer::Project, Layer::User];
    GeneratedLayer {
        layer: layers.get(rng.random_below(layers.len())).copied().unwrap_or(Layer::Project),
        trusted: !rng.random_one_in(8),
        allow,
        ask,
        deny,
    }
}

/// Generates a policy book. The default action `deny` is rare, because it denies every call that no rule matches.
fn generate_book(rng: &mut SplitMixRng) -> Value {
    let rules: Vec<Value> = (0..rng.random_below(4))
        .map(|_| {
            let conditions: Vec<Value> = (0..rng.random_below(3)).map(|_| generate_condition(rng)).collect();
            json!({
                "tool": rng.pick(&["Bash", "Bash", "Read", "Write", "*", "mcp__gh__get_issue", "WebFetch", "Agent",
                    "shell", "read_file", "write_file", "Edit", "edit_file", "mcp__gh", "mcp__gh__*", "mcp__*",
                    "mcp__*__get_*"]),
                "action": rng.pick(&["allow", "ask", "deny"]),
                "conditions": conditions,
            })
        })
        .collect();
    match rng.random_below(5) {
        0 => json!({ "rules": rules, "defaultAction": "ask" }),
        1 => json!({ "rules": rules, "defaultAction": "allow" }),
        2 if rng.random_one_in(3) => json!({ "rules": rules, "defaultAction": "deny" }),
        _ => json!({ "rules": rules }),
    }
}

/// Generates a condition; its regular expressions are those that the model evaluates by hand.
fn generate_condition(rng: &mut SplitMixRng) -> Value {
    let (operator, value) = match rng.random_below(14) {
        0 => ("equals", json!("npm test")),
        1 => ("contains", json!(["main", "src/"])),
        2 => ("startsWith", json!("npm")),
        3 => ("matches", json!("^npm (test|run)$")),
        4 => ("matches", json!("src/.*s$")),
        5 => ("matches", json!("[0-9]+")),
        6 => ("equals", json!(["2.0", "1e3", "-1"])),
        7 => ("equals", json!(["2", "600000", "0"])),
        8 => ("contains", json!(["evil", "secret"])),
        9 => ("contains", json!(".0")),
        10 => ("equals", json!(["{ \"b\": 2, \"a\": 1.0 }", "[\"evil\"]", "null"])),
        11 => ("startsWith", json!(["/ws/src/", "/ws/docs/", "/outside/", "[", "{\"a\":1"])),
        12 => ("startsWith", json!(["src/", "docs", "~/notes/", "/home/u/", "out/"])),
        _ => ("equals", json!("true")),
    };
    let param = rng.pick(&[
        "command",
        "command",
        "file_path",
        "file_path",
        "url",
        "model",
        "run_in_background",
        "background",
        "timeout",
        "path",
        "path",
        "directory",
        "offset",
        "startLine",
        "new_string",
        "edits",
        "n",
        "z",
    ]);
    json!({ "param": param, "operator": operator, "value": value })
}
