//! The corpus of known bypasses: every case that is a policy decision is judged, the others are counted with the reason.

use super::fake_workspace::{FakeWorkspace, Node, abs, action, identity, raw_policy};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::IpAddr;
use toolgate_policy::url::{FetchTarget, RedirectHop};
use toolgate_policy::{HookOpinion, Policy, RawPolicy, RuleAction, mcp_names};
use toolgate_proto::{
    Effect, Intent, PathScope, SourceId, ToolIdentity, ToolName, WriteKind, json as strict_json,
};

/// The outcome of a case.
enum CaseOutcome {
    /// Policy decides it: the action and the reason.
    Judged(RuleAction, String),
    /// Another component is responsible for it, named here.
    Deferred(&'static str),
}

use CaseOutcome::{Deferred, Judged};

/// The outcomes of one corpus file.
#[derive(Default)]
struct CorpusTally {
    judged: usize,
    /// Allowed, although the case must not be.
    wrongly_allowed: Vec<String>,
    /// Asked about, although the case must be denied.
    not_denied: Vec<String>,
    strict: usize,
    must_allow: usize,
    /// Asked about, although the case must be allowed.
    asked: Vec<String>,
    deferred: BTreeMap<&'static str, Vec<String>>,
}

fn run(text: &str, judge: impl Fn(&Value, &Value) -> CaseOutcome) -> CorpusTally {
    let mut tally = CorpusTally::default();
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let id = case["id"].as_str().unwrap();
        match judge(&case["input"], &case["policy"]) {
            Deferred(why) => tally.deferred.entry(why).or_default().push(id.to_owned()),
            Judged(action, reason) => {
                tally.judged += 1;
                let short: String = case["input"].to_string().chars().take(90).collect();
                let outcome = format!("{id} {action}: {short}: {reason}");
                if case["expect"] == "allow" {
                    tally.must_allow += 1;
                    if action != RuleAction::Allow {
                        tally.asked.push(outcome);
                    }
                } else {
                    if action == RuleAction::Allow {
                        tally.wrongly_allowed.push(outcome.clone());
                    }
                    if case["strict"] == "deny" {
                        tally.strict += 1;
                        if action != RuleAction::Deny {
                            tally.not_denied.push(outcome);
                        }
                    }
                }
            }
        }
    }
    tally
}

fn report(name: &str, tally: &CorpusTally) {
    println!(
        "{name}: {} judged; {} wrongly allowed; {} of {} strict cases denied; {} of {} must-allow cases asked",
        tally.judged,
        tally.wrongly_allowed.len(),
        tally.strict - tally.not_denied.len(),
        tally.strict,
        tally.asked.len(),
        tally.must_allow,
    );
    for (why, ids) in &tally.deferred {
        println!("  deferred ({why}): {} {}", ids.len(), ids.join(" "));
    }
    for outcome in &tally.asked {
        println!("  asked: {outcome}");
    }
    assert!(tally.wrongly_allowed.is_empty(), "{name} wrongly allows:\n{}", tally.wrongly_allowed.join("\n"));
    assert!(tally.not_denied.is_empty(), "{name} does not deny:\n{}", tally.not_denied.join("\n"));
    assert!(
        tally.asked.len() * 100 <= tally.must_allow,
        "{name} asks needlessly:\n{}",
        tally.asked.join("\n")
    );
}

fn judged(judgement: &toolgate_policy::Judgement) -> CaseOutcome {
    Judged(action(judgement), judgement.verdict.reason().to_string())
}

fn settings(policy: &Value, world: &FakeWorkspace) -> RawPolicy {
    let mut raw = raw_policy(policy, world);
    let list = |name: &str| -> Vec<String> {
        policy[name].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    raw.auto_allow_read_only_commands = policy["readonly_auto"] == true;
    raw.protected_names = list("protected");
    raw.sensitive = list("sensitive");
    raw.fetch.allow_private = list("allow_private");
    raw
}

fn policy_of(policy: &Value, world: &FakeWorkspace) -> Policy {
    settings(policy, world).compile().0
}

#[test]
fn shell_cases() {
    let tally = run(include_str!("../corpus/shell.jsonl"), judge_shell);
    report("shell", &tally);
}

#[test]
fn shell_round_2_cases() {
    let mut tally = run(include_str!("../corpus/shell-round2.jsonl"), judge_shell);
    let is_open = |outcome: &String| OPEN_CASES.iter().any(|id| outcome.starts_with(&format!("{id} ")));
    for list in [&mut tally.wrongly_allowed, &mut tally.asked] {
        let (known, rest): (Vec<String>, Vec<String>) = list.drain(..).partition(is_open);
        known.iter().for_each(|outcome| println!("  open: {outcome}"));
        *list = rest;
    }
    report("shell, second round", &tally);
}

/// Cases with a wrong outcome that is known.
const OPEN_CASES: &[&str] = &[];

fn judge_shell(input: &Value, policy: &Value) -> CaseOutcome {
    let world = with_files(FakeWorkspace::new("/ws"), &policy["fs"]);
    let mut call = json!({ "command": input });
    if let Some(shell) = policy.get("shell") {
        call["shell"] = shell.clone();
    }
    judged(&world.judge(&policy_of(policy, &world), "Bash", &call))
}

/// The workspace with the symlinks and special files of a case.
fn with_files(mut world: FakeWorkspace, files: &Value) -> FakeWorkspace {
    for node in files.as_array().into_iter().flatten() {
        let path = node["path"].as_str().unwrap();
        let node = match node["kind"].as_str().unwrap() {
            "symlink" => Node::Link(node["to"].as_str().unwrap().to_owned()),
            "hardlink" => Node::Shared,
            "fifo" | "socket" => Node::Special,
            "absent" => continue,
            other => panic!("{other}"),
        };
        world = world.with(path, node);
    }
    world
}

#[test]
fn path_cases() {
    let tally = run(include_str!("../corpus/paths.jsonl"), judge_path);
    report("paths", &tally);
}

fn judge_path(input: &Value, policy: &Value) -> CaseOutcome {
    if policy.get("race").is_some() {
        return Deferred(
            "the file changes between check and use: the files crate opens the resolved path without symlinks",
        );
    }
    let windows = policy["platform"] == "windows";
    let spell = |text: &str| {
        let drive = text.as_bytes().get(1) == Some(&b':');
        match (windows, drive) {
            (true, true) => format!("/{}", text.replace('\\', "/")),
            (true, false) => text.replace('\\', "/"),
            (false, _) => text.to_owned(),
        }
    };
    let root = spell(policy["root"].as_str().unwrap());
    let mut world = with_files(FakeWorkspace::new(&root), &policy["fs"]);
    // A session resolves its root when it starts.
    let real = world.resolve(&abs(&root)).real;
    world.workspace.cwd = real.clone();
    world.workspace.roots = vec![real];
    let text = spell(input.as_str().unwrap());
    if text.is_empty() {
        return Judged(RuleAction::Deny, "an empty path is refused by the tool".to_owned());
    }
    let path = world.path(&text);
    let read = |scope| Effect::Read { path: path.clone(), scope };
    let (tool, effects) = match policy["op"].as_str().unwrap() {
        "read" | "git_add" => ("Read", vec![read(PathScope::Entry)]),
        "list" => ("LS", vec![read(PathScope::Entry)]),
        "write" => ("Write", vec![Effect::Write { path: path.clone(), kind: WriteKind::Put }]),
        "edit" => ("Edit", vec![Effect::Write { path: path.clone(), kind: WriteKind::Edit }]),
        "glob" => {
            let literal =
                text.split('/').take_while(|name| !name.contains('*')).collect::<Vec<_>>().join("/");
            ("Glob", vec![Effect::Read { path: world.path(&literal), scope: PathScope::Tree }])
        }
        // toolgate's search follows no symlinks; one that does cannot declare what it reads.
        "grep" if policy["follow_symlinks"] == true => ("Grep", vec![read(PathScope::Tree), Effect::Opaque]),
        "grep" => ("Grep", vec![read(PathScope::Tree)]),
        "git_diff_ref" => {
            let root = world.workspace.cwd.clone();
            ("Read", vec![Effect::Read { path: root, scope: PathScope::Tree }])
        }
        other => panic!("{other}"),
    };
    let intent = Intent::new("touch a path", effects);
    let policy = policy_of(policy, &world);
    judged(&world.judge_intent(&policy, &identity(tool), &Map::new(), &intent, &[]))
}

#[test]
fn url_cases() {
    let tally = run(include_str!("../corpus/urls.jsonl"), judge_url);
    report("urls", &tally);
}

fn judge_url(input: &Value, settings: &Value) -> CaseOutcome {
    let world = FakeWorkspace::new("/ws");
    let policy = policy_of(settings, &world);
    let judgement = world.judge(&policy, "WebFetch", &json!({ "url": input }));
    if action(&judgement) != RuleAction::Allow {
        return judged(&judgement);
    }
    let mut locations = vec![input.as_str().unwrap()];
    locations.extend(settings["redirects"].as_array().into_iter().flatten().filter_map(Value::as_str));
    // Every lookup of a name is judged: the connection may use the answer of any of them.
    for look_up in 0..2 {
        let addresses: Vec<Vec<IpAddr>> =
            locations.iter().map(|location| resolve(location, &settings["resolve"], look_up)).collect();
        let hops: Vec<RedirectHop<'_>> = locations
            .iter()
            .zip(&addresses)
            .map(|(location, addresses)| RedirectHop::new(location, addresses))
            .collect();
        if let Err(objection) = policy.vet_chain(&hops) {
            return Judged(objection.action, objection.reason.to_string());
        }
    }
    judged(&judgement)
}

fn resolve(location: &str, table: &Value, look_up: usize) -> Vec<IpAddr> {
    let host = match FetchTarget::parse(location) {
        Ok(target) => target.host_text(),
        Err(_) => return Vec::new(),
    };
    if let Ok(address) = host.trim_matches(['[', ']']).parse() {
        return vec![address];
    }
    let Some(answers) = table[host.as_str()].as_array() else {
        return vec!["93.184.216.34".parse().unwrap()];
    };
    let answers = match answers.get(look_up).or(answers.last()) {
        Some(Value::Array(answers)) => answers,
        _ => answers,
    };
    answers.iter().map(|answer| answer.as_str().unwrap().parse().unwrap()).collect()
}

#[test]
fn misc_cases() {
    let tally = run(include_str!("../corpus/misc.jsonl"), judge_misc);
    report("misc", &tally);
    assert!(tally.judged >= 50, "only {} cases are judged", tally.judged);
}

const SCHEMA: &str = "the schema rejects it: gate, stage validate";
const HOOK: &str = "a hook without a valid answer: gate, stage screen";
const EXECUTION: &str = "detected when it runs: process and tools";
const MCP: &str = "checks of the MCP client and server";
const TRUST: &str = "trust and hooks of a project: toolgate, settings";
const SETTLE: &str = "the answer of an approver: gate, stage settle";

fn judge_misc(input: &Value, policy: &Value) -> CaseOutcome {
    let world = FakeWorkspace::new("/ws");
    let compiled = policy_of(policy, &world);
    let call = |call: &Value| judged(&world.judge(&compiled, call["tool"].as_str().unwrap(), &call["input"]));
    match input["kind"].as_str().unwrap() {
        "tool_call" => {
            if let Some(visible) = policy.get("visible")
                && !visible.as_array().unwrap().contains(&input["tool"])
            {
                return Deferred("the tool is not visible: gate, stage resolve");
            }
            call(input)
        }
        "tool_call_raw" => {
            let raw = input["raw_json"].as_str().unwrap();
            match strict_json::parse_object(raw, strict_json::JsonLimits::CALL) {
                Err(problem) => Judged(RuleAction::Deny, problem.to_string()),
                Ok(fields) if fits_schema(&fields) => {
                    call(&json!({ "tool": input["tool"], "input": fields }))
                }
                Ok(_) => Deferred(SCHEMA),
            }
        }
        "policy_text" => match strict_json::parse_object(
            input["raw_json"].as_str().unwrap(),
            strict_json::JsonLimits::SETTINGS,
        ) {
            Err(problem) => Judged(RuleAction::Deny, problem.to_string()),
            Ok(settings) => {
                let compiled = policy_of(&Value::Object(settings), &world);
                let then = &input["then"];
                judged(&world.judge(&compiled, then["tool"].as_str().unwrap(), &then["input"]))
            }
        },
        "hook" => judge_hook(input, policy, &world, &compiled),
        "mcp_call" => {
            let (server, tool) = (input["server"].as_str().unwrap(), input["tool"].as_str().unwrap());
            judge_remote(&world, &compiled, server, tool)
        }
        "mcp_register" => {
            let names = input["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
            let pairs: Vec<(&str, &str)> =
                names.map(|name| name.trim_start_matches("mcp__").split_once("__").unwrap()).collect();
            let refused = !mcp_names::find_name_collisions(pairs).is_empty();
            Judged(if refused { RuleAction::Deny } else { RuleAction::Allow }, "registration".to_owned())
        }
        "mcp_list_changed" if input["now"].get("annotations").is_some() => {
            judge_remote(&world, &compiled, "srv", input["now"]["tool"].as_str().unwrap())
        }
        "project_settings" if input["then"].get("tool").is_some() => {
            let text = strict_json::parse(input["text"].as_str().unwrap(), strict_json::JsonLimits::SETTINGS)
                .unwrap();
            let mut raw = settings(policy, &world);
            let mut project = raw_policy(&text, &world).layers.remove(0);
            project.trusted = input["trusted"] == true;
            raw.layers.push(project);
            let then = &input["then"];
            judged(&world.judge(&raw.compile().0, then["tool"].as_str().unwrap(), &then["input"]))
        }
        "git_config" if input["trusted"] == true => call(&input["then"]),
        "confirmation" => match input["reply"].get("updatedInput") {
            // An input that an approver changed is judged again.
            Some(updated) => call(&json!({ "tool": "Bash", "input": updated })),
            None => Deferred(SETTLE),
        },
        "archive" => {
            let entries = input["entries"].as_array().unwrap().iter();
            let writes: Vec<Effect> = entries
                .map(|entry| Effect::Write {
                    path: world.path(entry.as_str().unwrap()),
                    kind: WriteKind::Put,
                })
                .collect();
            let intent = Intent::new("extract an archive", writes);
            judged(&world.judge_intent(&compiled, &identity("Write"), &Map::new(), &intent, &[]))
        }
        "mcp_list_changed" | "mcp_tool_def" | "mcp_oauth" | "http_request" => Deferred(MCP),
        "project_settings" | "git_config" => Deferred(TRUST),
        "sandbox_network" | "output" | "audit_field" | "child_env" | "regex" | "glob" => Deferred(EXECUTION),
        other => panic!("{other}"),
    }
}

/// A simple version of the schemas of the tools that the corpus calls.
fn fits_schema(fields: &Map<String, Value>) -> bool {
    fields.iter().all(|(name, value)| match name.as_str() {
        "command" | "path" => value.is_string(),
        "timeout" | "offset" | "limit" => value.is_u64(),
        _ => false,
    })
}

fn judge_remote(world: &FakeWorkspace, policy: &Policy, server: &str, tool: &str) -> CaseOutcome {
    let identity = ToolIdentity::new(
        ToolName::new(mcp_names::mcp_tool_name(server, tool)),
        SourceId::Mcp { server: server.to_owned(), tool: tool.to_owned() },
    )
    .with_read_only(true);
    let remote = Effect::Remote { server: server.to_owned(), tool: tool.to_owned() };
    let intent = Intent::new("call another server", [remote]);
    judged(&world.judge_intent(policy, &identity, &Map::new(), &intent, &[]))
}

fn judge_hook(input: &Value, policy: &Value, world: &FakeWorkspace, compiled: &Policy) -> CaseOutcome {
    let (tool, mut call) = (input["call"]["tool"].as_str().unwrap(), input["call"]["input"].clone());
    let outcomes = match &input["outcome"] {
        Value::Array(outcomes) => outcomes.clone(),
        one => vec![one.clone()],
    };
    let mut opinions = Vec::new();
    let mut compiled = compiled.clone();
    for outcome in outcomes {
        if input.get("matcher").is_some_and(|matcher| matcher != tool) {
            continue;
        }
        let opinion = |action| HookOpinion::new("h", action);
        match outcome["exit"].as_i64() {
            Some(2) => opinions.push(opinion(RuleAction::Deny)),
            Some(0) => {
                let Ok(answer) = serde_json::from_str::<Value>(outcome["stdout"].as_str().unwrap_or("{}"))
                else {
                    return Deferred(HOOK);
                };
                match answer["decision"].as_str() {
                    Some("allow") => opinions.push(opinion(RuleAction::Allow)),
                    Some(_) => return Deferred(HOOK),
                    None => {}
                }
                if let Some(updated) = answer.get("updatedInput") {
                    call = updated.clone();
                }
                if let Some(mode) = answer["setMode"].as_str() {
                    // A hook cannot change the mode; even if it could, managed settings would still disable bypass.
                    compiled = compiled.with_mode(mode.parse().unwrap());
                    opinions.clear();
                }
            }
            _ if policy["hook_required"] == true => return Deferred(HOOK),
            _ => {}
        }
    }
    judged(&world.judge_with(&compiled, tool, &call, &opinions))
}
