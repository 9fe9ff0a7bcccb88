//! The law of settings: with an untrusted project nothing is freer than without it.
//!
//! Settings of every key are drawn from the schema by the table of merge rules, so that a new key is drawn as well.
//! `TOOLGATE_SETTINGS_CASES` says how many cases are tried, `TOOLGATE_SETTINGS_SEED` where drawing starts.

use super::merge::{KeyRule, insert_at, key_rules, value_at};
use super::schema::settings_schema;
use super::{LoadedSettings, SettingSource, SettingsOptions};
use crate::hooks::plan_hooks;
use crate::mcp_servers::{DiscoveredServers, ServerDiscoveryOptions};
use crate::{AbsPath, Toolgate, unregistered_tool};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use toolgate_gate::IntendedCall;
use toolgate_policy::{HookOpinion, IntentSurvey, PathFacts, Policy, PolicyRequest, RuleAction, Workspace};
use toolgate_process::sandbox::ProcessLimits;
use toolgate_proto::{
    CommandRights, GitUse, Mode, NetworkAccess, PathScope, Terms, ToolCall, Verdict, WriteRight,
};
use toolgate_tools::{SandboxSettings, ShellConfig};

const CASES: u64 = 2_000;

/// Calls that between them meet every stage of the judgement.
const CALLS: &[(&str, &str)] = &[
    ("Read", r#"{"file_path":"src/a.rs"}"#),
    ("Read", r#"{"file_path":".env"}"#),
    ("Read", r#"{"file_path":"/etc/hosts"}"#),
    ("Write", r#"{"file_path":"src/new.rs","content":"x"}"#),
    ("Write", r#"{"file_path":"/opt/x","content":"x"}"#),
    ("Write", r#"{"file_path":".claude/settings.json","content":"{}"}"#),
    ("Bash", r#"{"command":"ls src"}"#),
    ("Bash", r#"{"command":"cat .env"}"#),
    ("Bash", r#"{"command":"npm test"}"#),
    ("Bash", r#"{"command":"rm src/a.rs"}"#),
    ("Bash", r#"{"command":"npm test && curl https://a.example/x"}"#),
    ("Bash", r#"{"command":"npm test","dangerouslyDisableSandbox":true}"#),
    ("Bash", r#"{"command":"ls $(date)"}"#),
    ("WebFetch", r#"{"url":"https://a.example/x","prompt":"p"}"#),
    ("WebFetch", r#"{"url":"http://127.0.0.1/x","prompt":"p"}"#),
    ("WebSearch", r#"{"query":"x"}"#),
    ("mcp__guard__check", r#"{"text":"x"}"#),
    ("Agent", r#"{"prompt":"x","description":"d","mode":"acceptEdits"}"#),
];

struct SettingsGenerator(u64);

impl SettingsGenerator {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }

    fn texts(&mut self, from: &[&str]) -> Value {
        (0..self.below(4)).map(|_| json!(self.of(from))).collect()
    }

    /// A value for a key: from words that mean something there, else by the schema's type.
    fn value(&mut self, key: &KeyRule) -> Value {
        const RULES: &[&str] = &[
            "Bash",
            "Bash(ls *)",
            "Bash(npm test)",
            "Bash(npm *)",
            "Bash(rm *)",
            "Bash(curl *)",
            "Read",
            "Read(.env)",
            "Read(//etc/**)",
            "Edit",
            "Edit(src/**)",
            "Edit(/**)",
            "Write",
            "WebFetch",
            "WebFetch(domain:a.example)",
            "WebFetch(domain:127.0.0.1)",
            "WebSearch",
            "mcp__guard",
            "mcp__guard__check",
            "Agent",
            "Edit(//opt/**)",
        ];
        const HOSTS: &[&str] = &["a.example", "*.example", "*", "127.0.0.1", "b.example"];
        const PATHS: &[&str] = &["src", "/opt", "~/x", "//etc", "/", "."];
        let name = key.name();
        match name.as_str() {
            "permissions.allow" | "permissions.ask" | "permissions.deny" => self.texts(RULES),
            "permissions.defaultMode" => json!(Mode::ALL[self.below(Mode::ALL.len())].as_str()),
            "disabledTools" | "managed.disabledTools" => self.texts(&["Bash", "Read", "mcp__guard__check"]),
            "policy" => self.book(),
            "hooks" => self.hooks(),
            "mcpServers" | "managedMcpServers" => {
                json!({ self.of(&["guard", "x"]): { "command": self.of(&["true", "false"]) } })
            }
            "env" => json!({ self.of(&["PATH", "A", "TOKEN"]): self.of(&["/evil", "1"]) }),
            _ if name.to_ascii_lowercase().ends_with("domains") || name == "preApproval.allowPrivate" => {
                self.texts(HOSTS)
            }
            _ if name.starts_with("sandbox.filesystem")
                || name.ends_with("Directories") && !name.contains("block") =>
            {
                self.texts(PATHS)
            }
            "sandbox.environment.pass" => self.texts(&["A", "*", "TOKEN"]),
            "enabledMcpjsonServers" | "disabledMcpjsonServers" => self.texts(&["p", "guard"]),
            "allowedHttpHookUrls" => self.texts(&["http://127.0.0.1/*", "http://localhost:1/*", "*"]),
            "httpHookAllowedEnvVars" => self.texts(&["TOKEN", "A"]),
            _ => {
                let path: Vec<String> = key.path.clone();
                let schema = path.iter().fold(settings_schema(), |schema, name| &schema["properties"][name]);
                self.by_schema(schema)
            }
        }
    }

    fn by_schema(&mut self, schema: &Value) -> Value {
        if let Some(options) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
            let options: Vec<&Value> = options.iter().filter(|option| option["type"] != "null").collect();
            let option = options[self.below(options.len())];
            return self.by_schema(option);
        }
        if let Some(words) = schema.get("enum").and_then(Value::as_array) {
            return words[self.below(words.len())].clone();
        }
        if let Some(one) = schema.get("const") {
            return one.clone();
        }
        let kinds: Vec<&str> = match &schema["type"] {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => {
                kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null").collect()
            }
            _ => return [json!(true), json!("5m"), json!({ "a": 1 })][self.below(3)].clone(),
        };
        match kinds[self.below(kinds.len())] {
            "boolean" => json!(self.one_in(2)),
            "integer" | "number" => {
                let least = schema.get("minimum").and_then(Value::as_u64).unwrap_or(0);
                json!(least + self.next() % 1000)
            }
            "array" => (0..self.below(3)).map(|_| self.by_schema(&schema["items"])).collect(),
            "object" => {
                let mut out = Map::new();
                for (name, below) in schema.get("properties").and_then(Value::as_object).into_iter().flatten()
                {
                    if self.one_in(2) {
                        out.insert(name.clone(), self.by_schema(below));
                    }
                }
                if schema.get("properties").is_none() {
                    let below = &schema["additionalProperties"];
                    out.insert(self.of(&["a", "b"]).to_owned(), self.by_schema(below));
                }
                Value::Object(out)
            }
            _ => json!(self.of(&["a", "Bash", "/opt", "a.example"])),
        }
    }

    fn book(&mut self) -> Value {
        let mut book = Map::new();
        if !self.one_in(3) {
            book.insert("defaultAction".to_owned(), json!(self.of(&["allow", "ask", "deny"])));
        }
        let rules = (0..self.below(4)).map(|_| {
            let mut rule = json!({
                "tool": self.of(&["*", "Bash", "Read", "Write", "WebFetch", "mcp__guard__check"]),
                "action": self.of(&["allow", "ask", "deny"]),
                "risk": self.of(&["low", "high"]),
            });
            if self.one_in(2) {
                let said = self.of(&["npm", "ls", "x"]);
                rule["conditions"] = json!([{ "param": "command", "operator": "contains", "value": said }]);
            }
            rule
        });
        book.insert("rules".to_owned(), rules.collect());
        Value::Object(book)
    }

    fn hooks(&mut self) -> Value {
        let handler = match self.below(3) {
            0 => json!({ "type": "command", "command": self.of(&["exit 2", "./guard.sh", "touch ran"]) }),
            1 => json!({ "type": "http", "url": "http://127.0.0.1:1/x", "onFailure": "continue",
                         "headers": { "A": "$TOKEN" }, "allowedEnvVars": ["TOKEN"] }),
            _ => json!({ "type": "mcp_tool", "server": "guard", "tool": "check" }),
        };
        json!({ self.of(&["PreToolUse", "PermissionRequest"]): [{ "matcher": self.of(&["Bash", "*"]), "hooks": [handler] }] })
    }

    /// Settings with some keys, each noted.
    fn settings(&mut self, chance: usize, drawn: &mut BTreeSet<String>) -> Value {
        let mut out = Map::new();
        for key in key_rules() {
            if self.one_in(chance) {
                insert_at(&mut out, &key.path, self.value(key));
                drawn.insert(key.name());
            }
        }
        Value::Object(out)
    }
}

/// Everything that a call meets.
struct SettingsOutcome {
    settings: LoadedSettings,
    policy: Policy,
    surroundings: ShellConfig,
    hooks: Vec<String>,
    hook_lists: (Vec<Vec<String>>, Vec<String>),
    servers: Vec<String>,
}

fn outcome(options: &SettingsOptions, given: Option<Mode>) -> Option<SettingsOutcome> {
    let settings = LoadedSettings::load(options).unwrap();
    // What cannot be read stops everything, which nothing is stricter than.
    let (policy, problems) = settings.policy(given).compile();
    if problems.iter().any(|problem| problem.weight == toolgate_policy::ProblemSeverity::Fatal) {
        return None;
    }
    let mut surroundings = ShellConfig::default();
    settings.apply_to_shell_config(&mut surroundings);
    let hooks = plan_hooks(&settings).0.iter().map(|hook| format!("{} {hook:?}", hook.file)).collect();
    let hook_lists =
        (settings.http_hook_urls(), settings.http_hook_variables(&["TOKEN".to_owned(), "A".to_owned()]));
    let options = ServerDiscoveryOptions {
        root: options.root.clone(),
        home: None,
        config_dir: options.config_dir.clone(),
        given: Vec::new(),
        given_base: options.root.clone(),
        strict: false,
        trust_workspace: false,
        env: BTreeMap::new(),
    };
    let servers = DiscoveredServers::discover(&options, &settings).unwrap().servers;
    let servers = servers
        .iter()
        .filter(|server| server.trusted)
        .map(|server| format!("{} {} {}", server.name, server.origin, server.launch_digest()))
        .collect();
    Some(SettingsOutcome { settings, policy, surroundings, hooks, hook_lists, servers })
}

fn rank(verdict: &Verdict, silent: bool) -> u8 {
    match verdict {
        Verdict::Allow(_) => 0,
        Verdict::Ask(_) if silent => 2,
        Verdict::Ask(_) => 1,
        Verdict::Deny(_) => 2,
    }
}

fn is_within<T: PartialEq>(few: &[T], many: &[T]) -> bool {
    few.iter().all(|one| many.contains(one))
}

/// Whether one right to write includes another: the same entry, or a tree that it lies in.
fn covers(one: &WriteRight, other: &WriteRight) -> bool {
    one == other || one.scope == PathScope::Tree && other.path.is_under(&one.path)
}

/// What the terms with the project free beyond those without it.
fn freer_terms(with: &Terms, without: &Terms) -> Option<&'static str> {
    let Terms { reason: _, unsandboxed, rights, protected, unreadable, network, git } = with;
    let CommandRights { level, read, write, execute, named, git_data } = rights;
    let before = &without.rights;
    let listed = |with: bool, without: bool| with || !without;
    let reach = match (network, &without.network) {
        (NetworkAccess::None, _) | (_, NetworkAccess::Full) => true,
        (NetworkAccess::Hosts(with), NetworkAccess::Hosts(without)) => is_within(with, without),
        (NetworkAccess::Hosts(_) | NetworkAccess::Full, _) => false,
    };
    [
        ("unsandboxed", !*unsandboxed || without.unsandboxed),
        ("level", *level <= before.level),
        ("read", listed(read.is_some(), before.read.is_some())),
        ("write", write.iter().all(|right| before.write.iter().any(|other| covers(other, right)))),
        ("execute", listed(execute.is_some(), before.execute.is_some())),
        ("named", is_within(named, &before.named)),
        ("git data", !*git_data || before.git_data),
        ("git", *git == without.git || git.usage != GitUse::Granted),
        ("protected", is_within(&without.protected, protected)),
        ("unreadable", is_within(&without.unreadable, unreadable)),
        ("network", reach),
    ]
    .into_iter()
    .find(|(_, holds)| !holds)
    .map(|(what, _)| what)
}

/// What the surroundings of commands with the project free beyond those without it. A field that is not compared does
/// not compile.
fn freer_surroundings(with: &ShellConfig, without: &ShellConfig) -> Option<&'static str> {
    let ShellConfig {
        environment,
        pass,
        set,
        temp_dir,
        output_dir,
        git,
        max_output_bytes: most_output,
        max_shown_bytes: shown_output,
        on_timeout,
        grace,
        max_background_tasks: most_tasks,
        sandbox,
    } = with;
    let SandboxSettings {
        enabled,
        required,
        allow_unsandboxed,
        writable,
        protected,
        unreadable,
        hosts,
        denied_hosts,
        local_binding,
        sockets,
        backend,
        limits: ProcessLimits { memory, processes, file_size, cpu_seconds },
    } = sandbox;
    let before = &without.sandbox;
    let smaller = |with: Option<u64>, without: Option<u64>| match (with, without) {
        (_, None) => true,
        (Some(with), Some(without)) => with <= without,
        (None, Some(_)) => false,
    };
    let same = *environment == without.environment
        && *temp_dir == without.temp_dir
        && *output_dir == without.output_dir
        && *git == without.git
        && *most_output == without.max_output_bytes
        && *shown_output == without.max_shown_bytes
        && *on_timeout == without.on_timeout
        && *grace == without.grace
        && *most_tasks == without.max_background_tasks;
    [
        ("the shell's settings", same),
        ("sandbox.environment.pass", is_within(pass, &without.pass)),
        ("env", *set == without.set),
        ("sandbox.enabled", *enabled || !before.enabled),
        ("sandbox.required", *required || !before.required),
        ("sandbox.allowUnsandboxedCommands", !*allow_unsandboxed || before.allow_unsandboxed),
        ("sandbox.filesystem.allowWrite", is_within(writable, &before.writable)),
        ("sandbox.filesystem.denyWrite", is_within(&before.protected, protected)),
        ("sandbox.filesystem.denyRead", is_within(&before.unreadable, unreadable)),
        ("sandbox.network.allowedDomains", is_within(hosts, &before.hosts)),
        ("sandbox.network.deniedDomains", is_within(&before.denied_hosts, denied_hosts)),
        ("sandbox.network.allowLocalBinding", !*local_binding || before.local_binding),
        ("sandbox.network.allowUnixSockets", is_within(sockets, &before.sockets)),
        ("sandbox.backend", *backend == before.backend),
        ("sandbox.limits.memoryBytes", smaller(*memory, before.limits.memory)),
        ("sandbox.limits.processes", smaller(*processes, before.limits.processes)),
        ("sandbox.limits.fileSizeBytes", smaller(*file_size, before.limits.file_size)),
        ("sandbox.limits.cpuSeconds", smaller(*cpu_seconds, before.limits.cpu_seconds)),
    ]
    .into_iter()
    .find(|(_, holds)| !holds)
    .map(|(what, _)| what)
}

/// A call, and what is known of the files it names.
struct SettingsTestCall {
    intended: IntendedCall,
    survey: IntentSurvey,
    facts: PathFacts,
}

fn judge(
    outcome: &SettingsOutcome,
    workspace: &Workspace,
    asked: &SettingsTestCall,
    opinions: &[HookOpinion],
) -> Verdict {
    let SettingsTestCall { intended: IntendedCall { tool, input, intent }, survey, facts } = asked;
    outcome.policy.decide(&PolicyRequest { tool, input, intent, survey, workspace, facts, opinions }).verdict
}

/// What is freer with the project than without it.
fn freer(
    with: &SettingsOutcome,
    without: &SettingsOutcome,
    workspace: &Workspace,
    calls: &[SettingsTestCall],
    draw: &mut SettingsGenerator,
) -> Option<String> {
    let silent = |outcome: &SettingsOutcome| outcome.settings.denies_instead_of_asking();
    let opinion = |action| HookOpinion { by: "hook".to_owned(), action, reason: None };
    for asked in calls {
        // A third of the calls in each case, with or without a hook that consents: many cases are worth more.
        let opinions = match draw.below(6) {
            0 => vec![],
            1 => vec![opinion(RuleAction::Allow)],
            _ => continue,
        };
        let name = || format!("{} {}", asked.intended.tool.name, Value::Object(asked.intended.input.clone()));
        let now = judge(with, workspace, asked, &opinions);
        let before = judge(without, workspace, asked, &opinions);
        if rank(&now, silent(with)) < rank(&before, silent(without)) {
            return Some(format!("{}: {} where it was {}", name(), now.as_str(), before.as_str()));
        }
        if let (Verdict::Allow(now), Verdict::Allow(before)) = (&now, &before)
            && let Some(what) = freer_terms(now, before)
        {
            return Some(format!("{}: its terms are freer in {what}", name()));
        }
    }
    if let Some(what) = freer_surroundings(&with.surroundings, &without.surroundings) {
        return Some(what.to_owned());
    }
    // A project may keep back what it names itself.
    let own = |outcome: &SettingsOutcome| -> Vec<String> {
        outcome.servers.iter().filter(|server| !server.contains("/.mcp.json ")).cloned().collect()
    };
    let dirs = (with.settings.additional_directories(), without.settings.additional_directories());
    let hidden = (with.settings.disabled_tools(), without.settings.disabled_tools());
    [
        ("additional directories", is_within(&dirs.0, &dirs.1)),
        ("disabled tools", is_within(&hidden.1, &hidden.0)),
        ("hooks", with.hooks == without.hooks),
        ("addresses and variables of hooks", with.hook_lists == without.hook_lists),
        ("servers that start unasked", is_within(&with.servers, &without.servers)),
        ("the user's servers", is_within(&own(without), &own(with))),
        ("environment", with.settings.env() == without.settings.env()),
    ]
    .into_iter()
    .find(|(_, holds)| !holds)
    .map(|(what, _)| what.to_owned())
}

#[test]
fn with_an_untrusted_project_nothing_is_freer_than_without_it() {
    // Read when the test is built: a library looks at no environment when it runs.
    let number = |given: Option<&str>, or: u64| given.and_then(|it| it.parse().ok()).unwrap_or(or);
    let cases = number(option_env!("TOOLGATE_SETTINGS_CASES"), CASES);
    let seed = number(option_env!("TOOLGATE_SETTINGS_SEED"), 1);
    let dir = tempfile::tempdir().unwrap();
    let base = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
    let place = |name: &str| base.join(name);
    for name in ["ws/src", "ws/.toolgate", "ws/.claude", "config", "managed", "state"] {
        std::fs::create_dir_all(place(name).as_path()).unwrap();
    }
    for name in ["ws/src/a.rs", "ws/.env", "ws/guard.sh"] {
        std::fs::write(place(name).as_path(), "x").unwrap();
    }
    let root = place("ws");
    let mut options = SettingsOptions::new(root.clone());
    options.config_dir = Some(place("config"));
    options.state_dir = Some(place("state"));
    options.managed_dirs = vec![place("managed")];
    let alone = SettingsOptions { sources: vec![SettingSource::User], ..options.clone() };

    let toolgate = Toolgate::builder(root.as_path()).build().unwrap();
    let workspace = Workspace { cwd: root.clone(), roots: vec![root.clone()], home: None };
    let calls: Vec<SettingsTestCall> = CALLS
        .iter()
        .map(|(name, input)| {
            let input =
                input.replace("\"src/", &format!("\"{root}/src/")).replace("\".", &format!("\"{root}/."));
            let call = ToolCall::new("c", *name, input);
            let intended = unregistered_tool::intend(toolgate.gate(), toolgate.session(), &call)
                .unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
            let survey = toolgate.gate().policy().survey(&intended.intent, &workspace);
            let mut facts = PathFacts::none();
            toolgate_files::resolve_all(&survey.paths).into_iter().for_each(|fact| facts.insert(fact));
            SettingsTestCall { intended, survey, facts }
        })
        .collect();

    let mut drawn: [BTreeSet<String>; 2] = Default::default();
    let write = |path: &str, value: &Value| std::fs::write(place(path).as_path(), value.to_string()).unwrap();
    write(
        "ws/.mcp.json",
        &json!({ "mcpServers": { "p": { "command": "true" }, "guard": { "command": "evil" } } }),
    );
    write("config/mcp.json", &json!({ "mcpServers": { "guard": { "command": "true" } } }));
    let (mut judged, mut stopped) = (0, 0);
    for case in 0..cases {
        let mut draw = SettingsGenerator(seed.wrapping_mul(1 << 32).wrapping_add(case));
        let chance = 2 + draw.below(30);
        let user = draw.settings(chance, &mut drawn[0]);
        let managed = if draw.one_in(4) { draw.settings(40, &mut BTreeSet::new()) } else { json!({}) };
        let project = draw.settings(chance, &mut drawn[1]);
        let local = if draw.one_in(3) { draw.settings(20, &mut drawn[1]) } else { json!({}) };
        let given = draw.one_in(6).then(|| Mode::ALL[draw.below(Mode::ALL.len())]);
        write("config/settings.json", &user);
        write("managed/managed-settings.json", &managed);
        write("ws/.toolgate/settings.json", &project);
        write("ws/.claude/settings.local.json", &local);
        options.extra = draw.one_in(6).then(|| draw.settings(40, &mut BTreeSet::new()).to_string());
        let alone = SettingsOptions { extra: options.extra.clone(), ..alone.clone() };
        let (Some(with), Some(without)) = (outcome(&options, given), outcome(&alone, given)) else {
            stopped += 1;
            continue;
        };
        judged += 1;
        if let Some(what) = freer(&with, &without, &workspace, &calls, &mut draw) {
            panic!(
                "case {case} of seed {seed}, mode {given:?}: {what}\nuser {user}\nmanaged {managed}\ncommand line \
                 {:?}\nproject {project}\nlocal {local}",
                options.extra
            );
        }
    }
    assert!(judged > stopped, "most cases must be judged: {judged} were, {stopped} were not");
    for drawn in &drawn {
        let missing: Vec<String> =
            key_rules().iter().map(KeyRule::name).filter(|key| !drawn.contains(key)).collect();
        assert!(missing.is_empty(), "never drawn: {missing:?}");
    }
    eprintln!(
        "{judged} cases, {} kinds of calls, {stopped} stopped by settings that cannot be used",
        calls.len()
    );
}

#[test]
fn a_drawn_key_is_at_its_place() {
    let mut draw = SettingsGenerator(7);
    for key in key_rules() {
        let mut out = Map::new();
        insert_at(&mut out, &key.path, draw.value(key));
        assert!(value_at(&Value::Object(out), &key.path).is_some(), "{}", key.name());
    }
}
