//! `toolgate check --batch`: many calls, one process.
//!
//! Each line may bring its own settings, directory and mode.
//! Compiled policies and sessions are kept between lines, since a test suite uses few of them for many calls.

use super::out::Out;
use super::world::World;
use super::{Exit, Failure};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use toolgate::settings::{Settings, SettingsOptions};
use toolgate::{AbsPath, Mode, Policy, Session, ToolCall, Toolgate, paper};
use toolgate_gate::judge_intended;
use toolgate_policy::Weight;
use toolgate_proto::{Principal, Workspace, json::Limits, json::parse_object};

/// Policies kept at most; a file with more distinct settings is merely slower.
const MOST_KEPT: usize = 1_000;

pub(crate) fn run(world: &World, file: &str, out: &mut Out) -> Result<Exit, Failure> {
    let toolgate = world.builder()?.build()?;
    let mut batch = Batch { world, toolgate, policies: HashMap::new(), sessions: HashMap::new() };
    let reader: Box<dyn Read> = if file == "-" {
        Box::new(std::io::stdin())
    } else {
        let path = world.ambient.path(file);
        Box::new(
            toolgate_os::open_named_file(&path)
                .map_err(|problem| Failure::Usage(format!("{path}: {problem}")))?,
        )
    };
    let mut unreadable = 0usize;
    for (index, line) in BufReader::with_capacity(256 * 1024, reader).lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let answer = batch.answer(&line).unwrap_or_else(|message| {
            unreadable += 1;
            json!({ "id": index + 1, "verdict": "deny", "reason": message, "error": true })
        });
        out.line(&answer.to_string())?;
    }
    out.flush()?;
    Ok(if unreadable > 0 { Exit::Usage } else { Exit::Ok })
}

struct Batch<'w> {
    world: &'w World,
    toolgate: Toolgate,
    policies: HashMap<(Option<String>, AbsPath, Option<Mode>), Arc<Compiled>>,
    sessions: HashMap<AbsPath, Session>,
}

/// Settings, ready to judge by; or why they cannot be used.
type Compiled = Result<Policy, String>;

impl Batch<'_> {
    /// The answer to one line. An error is one of the line itself.
    fn answer(&mut self, line: &str) -> Result<Value, String> {
        let mut fields = parse_object(line, Limits::CALL).map_err(|problem| problem.to_string())?;
        let id = fields.remove("id").unwrap_or(Value::Null);
        let tool = text(&mut fields, "tool")?.ok_or("`tool` is missing")?;
        let input = fields.remove("input").unwrap_or_else(|| json!({}));
        let cwd = match text(&mut fields, "cwd")? {
            Some(cwd) => self.world.cwd().join(cwd),
            None => self.world.cwd(),
        };
        let mode = match text(&mut fields, "mode")? {
            Some(mode) => Some(mode.parse::<Mode>().map_err(|problem| problem.to_string())?),
            None => self.world.mode(),
        };
        let settings = fields.remove("settings");
        if let Some(unknown) = fields.keys().next() {
            return Err(format!(
                "`{unknown}` is no field of a line; there are id, tool, input, settings, cwd, mode"
            ));
        }
        let session = self.session(&cwd);
        let compiled = self.policy(settings.as_ref(), &cwd, mode);
        let policy = match compiled.as_ref() {
            Ok(policy) => policy,
            // Settings that cannot be used deny: they may have held a deny rule.
            Err(problem) => return Ok(json!({ "id": id, "verdict": "deny", "reason": problem })),
        };
        let call = ToolCall::new("check", tool, input.to_string());
        let judgement = match paper::intend(self.toolgate.gate(), &session, &call) {
            Ok(intended) => judge_intended(policy, &session.workspace(), &intended),
            Err(refusal) => {
                return Ok(json!({
                    "id": id, "verdict": "deny", "reason": refusal.reason, "code": refusal.code,
                    "hint": refusal.hint,
                }));
            }
        };
        let reason = judgement.verdict.reason();
        let mut answer = Map::new();
        answer.insert("id".into(), id);
        answer.insert("verdict".into(), json!(judgement.verdict.word()));
        answer.insert("reason".into(), json!(reason.to_string()));
        if let Some(rule) = &reason.rule {
            answer.insert("rule".into(), json!(rule));
        }
        answer.insert("risk".into(), json!(judgement.risk));
        if let Some(flip) = &judgement.flip {
            answer.insert("flip".into(), json!(flip));
        }
        Ok(Value::Object(answer))
    }

    fn session(&mut self, cwd: &AbsPath) -> Session {
        if let Some(session) = self.sessions.get(cwd) {
            return session.clone();
        }
        let fact = toolgate_os::resolve(cwd);
        let base = self.toolgate.session().workspace();
        let mut roots = vec![fact.real.clone()];
        roots.extend(base.roots.iter().skip(1).cloned());
        let workspace = Workspace { cwd: fact.real, roots, home: base.home.clone() };
        let principal = Principal { edge: "cli".to_owned(), name: None };
        let session = Session::new("batch".into(), principal, workspace);
        self.sessions.insert(cwd.clone(), session.clone());
        session
    }

    fn policy(&mut self, settings: Option<&Value>, cwd: &AbsPath, mode: Option<Mode>) -> Arc<Compiled> {
        let key = (settings.map(Value::to_string), cwd.clone(), mode);
        if let Some(kept) = self.policies.get(&key) {
            return Arc::clone(kept);
        }
        let compiled = Arc::new(match &key.0 {
            Some(settings) => compile(settings, cwd, mode),
            // The line brings none: what was typed and found for the whole run counts.
            None => {
                let mut raw = toolgate_policy::RawPolicy::clone(&self.toolgate.policy());
                raw.mode = mode.unwrap_or(raw.mode);
                Ok(raw.compile().0)
            }
        });
        if self.policies.len() >= MOST_KEPT {
            self.policies.clear();
        }
        self.policies.insert(key, Arc::clone(&compiled));
        compiled
    }
}

fn compile(settings: &str, cwd: &AbsPath, mode: Option<Mode>) -> Compiled {
    let mut options = SettingsOptions::new(cwd.clone());
    options.managed_dirs = Vec::new();
    options.sources = Vec::new();
    options.extra = Some(settings.to_owned());
    let settings = Settings::load(&options).map_err(|error| error.to_string())?;
    let (policy, problems) = settings.policy(mode).compile();
    match problems.iter().find(|problem| problem.weight == Weight::Fatal) {
        Some(problem) => Err(problem.to_string()),
        None => Ok(policy),
    }
}

fn text(fields: &mut Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match fields.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => {
            Err(format!("`{key}` is {}, but must be a string", toolgate_proto::json::describe(&other)))
        }
    }
}
