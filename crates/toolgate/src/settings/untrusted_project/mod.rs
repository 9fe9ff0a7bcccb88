//! Property test: an untrusted project grants nothing. No verdict, right or setting is less strict with its files than
//! without them.
//!
//! Settings of every key are drawn at random. `TOOLGATE_SETTINGS_CASES` is the number of cases and
//! `TOOLGATE_SETTINGS_SEED` the seed.

mod compare_outcomes;
mod settings_generator;

use super::merge::{KeyRule, insert_at, key_rules, value_at};
use super::{LoadedSettings, SettingSource, SettingsOptions};
use crate::hooks::plan_hooks;
use crate::mcp_servers::{DiscoveredServers, ServerDiscoveryOptions};
use crate::{AbsPath, Toolgate, unregistered_tool};
use compare_outcomes::compare_outcomes;
use serde_json::{Map, Value, json};
use settings_generator::SettingsGenerator;
use std::collections::BTreeSet;
use toolgate_gate::IntendedCall;
use toolgate_policy::{IntentSurvey, PathFacts, Policy, Workspace};
use toolgate_proto::{Mode, ToolCall};
use toolgate_tools::ShellConfig;

/// How many cases are drawn by default; `cargo xtask settings-law` draws more.
const DEFAULT_CASE_COUNT: u64 = 2_000;

/// Calls that together reach every check of the policy.
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

/// Everything that settings decide about calls.
struct SettingsOutcome {
    /// The loaded files.
    settings: LoadedSettings,
    /// The compiled policy.
    policy: Policy,
    /// The configuration of commands.
    shell_config: ShellConfig,
    /// The active hooks with their files.
    hooks: Vec<String>,
    /// The URLs and variables that HTTP hooks may use.
    hook_lists: (Vec<Vec<String>>, Vec<String>),
    /// The servers that start without approval.
    servers: Vec<String>,
}

/// The outcome of settings, or `None` if they are unusable: then every call is refused, which nothing exceeds.
fn outcome(options: &SettingsOptions, given: Option<Mode>) -> Option<SettingsOutcome> {
    let settings = LoadedSettings::load(options).unwrap();
    let (policy, problems) = settings.policy(given).compile();
    if problems.iter().any(|problem| problem.weight == toolgate_policy::ProblemSeverity::Fatal) {
        return None;
    }
    let mut shell_config = ShellConfig::default();
    settings.apply_to_shell_config(&mut shell_config);
    let hooks = plan_hooks(&settings).0.iter().map(|hook| format!("{} {hook:?}", hook.file)).collect();
    let hook_lists =
        (settings.http_hook_urls(), settings.http_hook_variables(&["TOKEN".to_owned(), "A".to_owned()]));
    let mut discovery = ServerDiscoveryOptions::new(options.root.clone());
    discovery.config_dir = options.config_dir.clone();
    let servers = DiscoveredServers::discover(&discovery, &settings).unwrap().servers;
    let servers = servers
        .iter()
        .filter(|server| server.trusted)
        .map(|server| format!("{} {} {}", server.name, server.origin, server.launch_digest()))
        .collect();
    Some(SettingsOutcome { settings, policy, shell_config, hooks, hook_lists, servers })
}

/// A test call with the facts about its paths, which do not depend on settings.
struct SettingsTestCall {
    /// The tool, the input and the intent.
    intended: IntendedCall,
    /// The paths of the intent.
    survey: IntentSurvey,
    /// The resolved paths.
    facts: PathFacts,
}

/// The directories of the test: a workspace, the user's configuration, managed settings and state.
struct PropertyTestDirs {
    /// The real path of the temporary directory.
    base: AbsPath,
}

impl PropertyTestDirs {
    /// Creates the directories, some files, and the server lists of the project and the user.
    fn create(dir: &tempfile::TempDir) -> Self {
        let dirs = Self { base: AbsPath::new(dir.path().canonicalize().unwrap()).unwrap() };
        for name in ["ws/src", "ws/.toolgate", "ws/.claude", "config", "managed", "state"] {
            std::fs::create_dir_all(dirs.path(name).as_path()).unwrap();
        }
        for name in ["ws/src/a.rs", "ws/.env", "ws/guard.sh"] {
            std::fs::write(dirs.path(name).as_path(), "x").unwrap();
        }
        let project_servers = json!({ "p": { "command": "true" }, "guard": { "command": "evil" } });
        dirs.write("ws/.mcp.json", &json!({ "mcpServers": project_servers }));
        dirs.write("config/mcp.json", &json!({ "mcpServers": { "guard": { "command": "true" } } }));
        dirs
    }

    /// A path in the temporary directory.
    fn path(&self, name: &str) -> AbsPath {
        self.base.join(name)
    }

    /// Writes JSON to a file.
    fn write(&self, name: &str, value: &Value) {
        std::fs::write(self.path(name).as_path(), value.to_string()).unwrap();
    }

    /// The options with which all settings are read.
    fn options(&self) -> SettingsOptions {
        let mut options = SettingsOptions::new(self.path("ws"));
        options.config_dir = Some(self.path("config"));
        options.state_dir = Some(self.path("state"));
        options.managed_dirs = vec![self.path("managed")];
        options
    }
}

/// The calls of [`CALLS`] with absolute paths.
fn build_calls(root: &AbsPath, workspace: &Workspace) -> Vec<SettingsTestCall> {
    let toolgate = Toolgate::builder(root.as_path()).build().unwrap();
    CALLS
        .iter()
        .map(|(name, input)| {
            let input =
                input.replace("\"src/", &format!("\"{root}/src/")).replace("\".", &format!("\"{root}/."));
            let call = ToolCall::new("c", *name, input);
            let intended = unregistered_tool::intend(toolgate.gate(), toolgate.session(), &call)
                .unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
            let survey = toolgate.gate().policy().survey(&intended.intent, workspace);
            let mut facts = PathFacts::none();
            toolgate_files::resolve_all(&survey.paths).into_iter().for_each(|fact| facts.insert(fact));
            SettingsTestCall { intended, survey, facts }
        })
        .collect()
}

/// The number in this environment variable; `default` if it is not set. A value that is no number must not shorten a run.
#[expect(clippy::disallowed_methods, reason = "the length of a test is no input of the library")]
fn read_number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[test]
fn with_an_untrusted_project_nothing_is_freer_than_without_it() {
    let cases = read_number("TOOLGATE_SETTINGS_CASES", DEFAULT_CASE_COUNT);
    let seed = read_number("TOOLGATE_SETTINGS_SEED", 1);
    let dir = tempfile::tempdir().unwrap();
    let dirs = PropertyTestDirs::create(&dir);
    let mut options = dirs.options();
    let root = options.root.clone();
    let workspace = Workspace::new(root.clone());
    let calls = build_calls(&root, &workspace);
    let mut drawn: [BTreeSet<String>; 2] = Default::default();
    let (mut judged, mut unusable) = (0, 0);
    for case in 0..cases {
        let mut draw = SettingsGenerator(seed.wrapping_mul(1 << 32).wrapping_add(case));
        let chance = 2 + draw.below(30);
        let user = draw.settings(chance, &mut drawn[0]);
        let managed = if draw.one_in(4) { draw.settings(40, &mut BTreeSet::new()) } else { json!({}) };
        let project = draw.settings(chance, &mut drawn[1]);
        let local = if draw.one_in(3) { draw.settings(20, &mut drawn[1]) } else { json!({}) };
        let mode = draw.one_in(6).then(|| Mode::ALL[draw.below(Mode::ALL.len())]);
        dirs.write("config/settings.json", &user);
        dirs.write("managed/managed-settings.json", &managed);
        dirs.write("ws/.toolgate/settings.json", &project);
        dirs.write("ws/.claude/settings.local.json", &local);
        options.extra = draw.one_in(6).then(|| draw.settings(40, &mut BTreeSet::new()).to_string());
        let without_project = SettingsOptions { sources: vec![SettingSource::User], ..options.clone() };
        let (Some(with), Some(without)) = (outcome(&options, mode), outcome(&without_project, mode)) else {
            unusable += 1;
            continue;
        };
        judged += 1;
        if let Some(what) = compare_outcomes(&with, &without, &workspace, &calls, &mut draw) {
            panic!(
                "case {case} of seed {seed}, mode {mode:?}: {what}\nuser {user}\nmanaged {managed}\ncommand line \
                 {:?}\nproject {project}\nlocal {local}",
                options.extra
            );
        }
    }
    assert!(judged > unusable, "most cases must be judged: {judged} were, {unusable} were not");
    for drawn in &drawn {
        let missing: Vec<String> =
            key_rules().iter().map(KeyRule::name).filter(|key| !drawn.contains(key)).collect();
        assert!(missing.is_empty(), "never drawn: {missing:?}");
    }
    eprintln!("{judged} cases, {} kinds of calls, {unusable} with unusable settings", calls.len());
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
