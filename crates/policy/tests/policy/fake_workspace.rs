//! A fake workspace: a file system in memory, and the effects that the built-in tools would declare.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use toolgate_policy::{
    Enforcement, EntryKind, HookOpinion, IntentSurvey, Judgement, Layer, LayerRules, PathFact, PathFacts,
    Policy, PolicyRequest, RawBook, RawPolicy, RuleAction, RuleProblem, ShellGlob, Workspace,
};
use toolgate_proto::{
    AbsPath, CommandLine, Effect, Intent, PathScope, ShellKind, SourceId, ToolIdentity, ToolName, Verdict,
    WriteKind,
};

/// An entry of the fake file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    /// A symlink with its target.
    Link(String),
    /// A directory.
    Directory,
    /// A device, pipe or socket.
    Special,
    /// A file with more than one hard link.
    Shared,
}

/// A workspace with a fake file system; every path that is not listed is missing.
#[derive(Debug, Clone)]
pub(crate) struct FakeWorkspace {
    /// The entries, by absolute path.
    pub(crate) nodes: BTreeMap<String, Node>,
    /// The directories of the session.
    pub(crate) workspace: Workspace,
}

pub(crate) fn abs(path: &str) -> AbsPath {
    AbsPath::new(path).unwrap_or_else(|error| panic!("{error}"))
}

impl FakeWorkspace {
    pub(crate) fn new(root: &str) -> Self {
        let workspace = Workspace::new(abs(root)).with_home(abs("/home/u"));
        Self { nodes: BTreeMap::new(), workspace }
    }

    pub(crate) fn with(mut self, path: &str, node: Node) -> Self {
        self.nodes.insert(path.to_owned(), node);
        self
    }

    /// Resolves symlinks and `..` name by name, as a kernel does.
    pub(crate) fn resolve(&self, asked: &AbsPath) -> PathFact {
        let mut links = Vec::new();
        let mut problem = None;
        let mut todo: Vec<String> = names(asked.as_path().to_str().unwrap());
        todo.reverse();
        let mut real: Vec<String> = Vec::new();
        let mut steps = 0;
        while let Some(name) = todo.pop() {
            steps += 1;
            if steps > 200 {
                problem = Some("too many symlinks".to_owned());
                break;
            }
            if name == ".." {
                real.pop();
                continue;
            }
            real.push(name);
            let here = format!("/{}", real.join("/"));
            if let Some(Node::Link(to)) = self.nodes.get(&here) {
                links.push(abs(&here));
                real.pop();
                if to.starts_with('/') {
                    real.clear();
                }
                let mut target = names(to);
                target.reverse();
                todo.extend(target);
            }
        }
        let here = format!("/{}", real.join("/"));
        let node = self.nodes.get(&here);
        let kind = match node {
            Some(Node::Special) => EntryKind::Special,
            Some(Node::Directory) => EntryKind::Directory,
            Some(Node::Shared) => EntryKind::File,
            Some(Node::Link(_)) | None if here.starts_with("/dev/") => EntryKind::Special,
            Some(Node::Link(_)) | None => EntryKind::Missing,
        };
        let hard_linked = node == Some(&Node::Shared);
        PathFact::new(asked.clone(), abs(&here), kind)
            .with_links(links)
            .with_hard_linked(hard_linked)
            .with_problem(problem)
    }

    pub(crate) fn facts(&self, survey: &IntentSurvey) -> PathFacts {
        let mut facts = PathFacts::none();
        for path in &survey.paths {
            facts.insert(self.resolve(path));
        }
        for glob in &survey.globs {
            let matches = ShellGlob::parse(glob).map(|glob| self.expand(&glob)).unwrap_or_default();
            for path in &matches {
                facts.insert(self.resolve(path));
            }
            facts.insert_glob(glob.clone(), matches);
        }
        facts
    }

    /// The listed paths that a glob matches.
    fn expand(&self, glob: &ShellGlob) -> Vec<AbsPath> {
        // Each path so far, and whether a wildcard matched a listed entry on the way.
        let mut found = vec![(String::new(), false)];
        for depth in 0..glob.depth() {
            let mut next = Vec::new();
            for (directory, is_listed) in &found {
                if let Some(name) = glob.literal(depth) {
                    next.push((format!("{directory}/{name}"), *is_listed));
                }
                for path in self.nodes.keys() {
                    let name = path.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/'));
                    let name = name.filter(|name| !name.contains('/') && glob.literal(depth).is_none());
                    if let Some(name) = name.filter(|name| glob.matches_name(depth, name)) {
                        next.push((format!("{directory}/{name}"), true));
                    }
                }
            }
            found = next;
        }
        found.into_iter().filter(|(_, is_listed)| *is_listed).map(|(path, _)| abs(&path)).collect()
    }

    /// Judges one call.
    pub(crate) fn judge(&self, policy: &Policy, tool: &str, input: &Value) -> Judgement {
        self.judge_with(policy, tool, input, &[])
    }

    pub(crate) fn judge_with(
        &self,
        policy: &Policy,
        tool: &str,
        input: &Value,
        opinions: &[HookOpinion],
    ) -> Judgement {
        let identity = identity(tool);
        let input = input.as_object().cloned().unwrap_or_default();
        let intent = self.intent(&identity, &input);
        self.judge_intent(policy, &identity, &input, &intent, opinions)
    }

    pub(crate) fn judge_intent(
        &self,
        policy: &Policy,
        tool: &ToolIdentity,
        input: &Map<String, Value>,
        intent: &Intent,
        opinions: &[HookOpinion],
    ) -> Judgement {
        let survey = policy.survey_call(input, intent, &self.workspace);
        let facts = self.facts(&survey);
        let workspace = &self.workspace;
        policy.decide(&PolicyRequest {
            tool,
            input,
            intent,
            survey: &survey,
            workspace,
            facts: &facts,
            opinions,
        })
    }

    pub(crate) fn path(&self, text: &str) -> AbsPath {
        match (text.strip_prefix("~/"), &self.workspace.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.workspace.cwd.join(text),
        }
    }

    /// The intent that the built-in tool of this name would declare.
    pub(crate) fn intent(&self, tool: &ToolIdentity, input: &Map<String, Value>) -> Intent {
        let text = |names: &[&str]| names.iter().find_map(|name| input.get(*name)?.as_str()).unwrap_or("");
        let path = || self.path(text(&["file_path", "path", "notebook_path"]));
        let effect = match tool.name.as_str() {
            "Read" => Effect::Read { path: path(), scope: PathScope::Entry },
            "LS" => Effect::Read { path: path(), scope: PathScope::Entry },
            "Grep" | "Glob" | "LSP" => Effect::Read { path: path(), scope: PathScope::Tree },
            "Write" => Effect::Write { path: path(), kind: WriteKind::Put },
            "Edit" | "MultiEdit" | "NotebookEdit" => Effect::Write { path: path(), kind: WriteKind::Edit },
            "Bash" | "Monitor" | "PowerShell" => Effect::Exec {
                command: CommandLine::new(
                    text(&["command"]).to_owned(),
                    match (tool.name.as_str(), input.get("shell").and_then(Value::as_str)) {
                        ("PowerShell", _) | (_, Some("zsh")) => ShellKind::Other,
                        _ => ShellKind::Bash,
                    },
                    self.path(text(&["cwd"])),
                )
                .with_unsandboxed(input.get("dangerouslyDisableSandbox") == Some(&json!(true))),
            },
            "WebFetch" => Effect::Fetch { url: text(&["url"]).to_owned() },
            "WebSearch" => Effect::Search { query: text(&["query"]).to_owned() },
            "Agent" => Effect::Delegate { agent: text(&["subagent_type", "agent_type"]).to_owned() },
            "Skill" => Effect::Skill {
                name: text(&["skill", "name"]).to_owned(),
                args: input.get("args").and_then(Value::as_str).map(str::to_owned),
            },
            "AskUserQuestion" => Effect::Ask,
            "TodoWrite" => Effect::State { name: "todos".to_owned() },
            _ => match &tool.source {
                SourceId::Mcp { server, tool } => {
                    Effect::Remote { server: server.clone(), tool: tool.clone() }
                }
                _ => Effect::Opaque,
            },
        };
        Intent::new(format!("call {}", tool.name), [effect])
    }
}

fn names(path: &str) -> Vec<String> {
    path.split('/').filter(|name| !name.is_empty() && *name != ".").map(str::to_owned).collect()
}

/// The identity of a tool by its name. `mcp__a__b` is tool `b` of server `a`.
pub(crate) fn identity(tool: &str) -> ToolIdentity {
    let source = match tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
        Some((server, tool)) => SourceId::Mcp { server: server.to_owned(), tool: tool.to_owned() },
        None => SourceId::Builtin,
    };
    ToolIdentity::new(ToolName::new(tool), source)
        .with_also(match tool {
            "Agent" => vec!["Task".to_owned()],
            "Monitor" => vec!["Bash".to_owned()],
            _ => Vec::new(),
        })
        .with_read_only(matches!(tool, "Read" | "LS" | "Grep" | "Glob"))
}

/// The input of a call that is written as one line: JSON, or the value of the tool's principal field.
pub(crate) fn input_of(tool: &str, text: &str) -> Value {
    if text == "{}" || text.starts_with("{\"") {
        return serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    let field = match tool {
        "Bash" | "Monitor" | "PowerShell" => "command",
        "WebFetch" => "url",
        "WebSearch" => "query",
        "Agent" => "subagent_type",
        "NotebookEdit" => "notebook_path",
        "Skill" => {
            let (skill, args) = text.split_once(' ').map_or((text, None), |(name, args)| (name, Some(args)));
            return match args {
                Some(args) => json!({ "skill": skill, "args": args }),
                None => json!({ "skill": skill }),
            };
        }
        _ => "file_path",
    };
    if text.is_empty() { json!({}) } else { json!({ field: text }) }
}

/// Reads `{"permissions": {…}, "policy": {…}, "mode": …}` as the settings reader does.
pub(crate) fn raw_policy(settings: &Value, world: &FakeWorkspace) -> RawPolicy {
    let layer = match settings["layer"].as_str() {
        Some("user") => Layer::User,
        Some("managed") => Layer::Managed,
        Some("local") => Layer::Local,
        Some("session") => Layer::Session,
        _ => Layer::Project,
    };
    let anchor = if layer == Layer::User { abs("/home/u/.claude") } else { world.workspace.cwd.clone() };
    let mut rules = LayerRules::new(layer, anchor);
    let list = |name: &str| -> Vec<String> {
        let own = settings["permissions"][name].as_array().or_else(|| settings[name].as_array());
        own.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    rules.allow = list("allow").into_iter().map(Into::into).collect();
    rules.ask = list("ask").into_iter().map(Into::into).collect();
    rules.deny = list("deny").into_iter().map(Into::into).collect();
    let mode = settings["mode"].as_str().or_else(|| settings["permissions"]["defaultMode"].as_str());
    let flag = |pointer: &str| settings.pointer(pointer).and_then(Value::as_bool);
    let mut raw = RawPolicy::default()
        .with_layers(vec![rules])
        .with_mode(mode.map_or_else(Default::default, |mode| mode.parse().unwrap()))
        .with_enforcement(Enforcement::Kernel);
    raw.auto_allow_read_only_commands = flag("/permissions/autoAllowReadOnlyCommands").unwrap_or(true);
    if let Some(managed) = settings.get("managed") {
        raw.managed = serde_json::from_value(managed.clone()).unwrap();
    }
    if let Some(fetch) = settings.get("preApproval") {
        raw.fetch = serde_json::from_value(fetch.clone()).unwrap();
    }
    if let Some(book) = settings.get("policy") {
        raw.books.push(RawBook::new(layer, book.clone()));
    }
    raw
}

pub(crate) fn compile(settings: &Value, world: &FakeWorkspace) -> (Policy, Vec<RuleProblem>) {
    raw_policy(settings, world).compile()
}

/// The judgement about one call under these settings, in an empty workspace `/ws`.
pub(crate) fn judge(settings: &Value, tool: &str, text: &str) -> Judgement {
    let world = FakeWorkspace::new("/ws");
    world.judge(&compile(settings, &world).0, tool, &input_of(tool, text))
}

/// The verdict in one word.
pub(crate) fn word(judgement: &Judgement) -> &'static str {
    judgement.verdict.as_str()
}

pub(crate) fn action(judgement: &Judgement) -> RuleAction {
    match judgement.verdict {
        Verdict::Allow(_) => RuleAction::Allow,
        Verdict::Ask(_) => RuleAction::Ask,
        Verdict::Deny(_) => RuleAction::Deny,
    }
}
