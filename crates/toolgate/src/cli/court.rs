//! Judging many calls under many settings, in one process.
//!
//! Compiled policies and sessions are kept between calls, since a test suite uses few of them for many calls.

use super::Failure;
use super::world::World;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use toolgate::enforcement::enforcement;
use toolgate::settings::{Settings, SettingsOptions};
use toolgate::{AbsPath, Judgement, Mode, Policy, Refusal, Session, ToolCall, Toolgate, paper};
use toolgate_gate::judge_intended;
use toolgate_policy::{Problem, RawPolicy, Weight};
use toolgate_proto::{Principal, Workspace};
use toolgate_tools::Surroundings;

/// Policies kept at most; more distinct settings are merely slower.
const MOST_KEPT: usize = 1_000;

/// What was compiled from one block of settings; or why it cannot be used.
pub(crate) type Compiled = Result<(Policy, Vec<Problem>), String>;

/// Judges calls without running any.
pub(crate) struct BatchChecker<'w> {
    world: &'w World,
    toolgate: Toolgate,
    policies: HashMap<(Option<String>, AbsPath, Option<Mode>), Arc<Compiled>>,
    sessions: HashMap<AbsPath, Session>,
}

/// What came of a call.
pub(crate) enum BatchCheckOutcome {
    /// It was judged.
    Judged(Box<Judgement>),
    /// It never came to that: no such tool, or no valid input.
    Refused(Refusal),
    /// The settings cannot be used, so everything is denied: they may have held a deny rule.
    Unusable(String),
}

impl<'w> BatchChecker<'w> {
    pub(crate) fn new(world: &'w World) -> Result<Self, Failure> {
        let toolgate = world.builder()?.build()?;
        Ok(Self { world, toolgate, policies: HashMap::new(), sessions: HashMap::new() })
    }

    /// Judges one call. Settings that are not given are those of the whole run.
    pub(crate) fn judge(
        &mut self,
        call: &ToolCall,
        settings: Option<&Value>,
        cwd: &AbsPath,
        mode: Option<Mode>,
    ) -> BatchCheckOutcome {
        let session = self.session(cwd);
        let compiled = self.compiled(settings, cwd, mode);
        let policy = match compiled.as_ref() {
            Ok((policy, _)) => policy,
            Err(problem) => return BatchCheckOutcome::Unusable(problem.clone()),
        };
        match paper::intend(self.toolgate.gate(), &session, call) {
            Ok(intended) => {
                BatchCheckOutcome::Judged(Box::new(judge_intended(policy, &session.workspace(), &intended)))
            }
            Err(refusal) => BatchCheckOutcome::Refused(refusal),
        }
    }

    fn session(&mut self, cwd: &AbsPath) -> Session {
        if let Some(session) = self.sessions.get(cwd) {
            return session.clone();
        }
        let real = toolgate_os::resolve(cwd).real;
        let base = self.toolgate.session().workspace();
        let mut roots = vec![real.clone()];
        roots.extend(base.roots.iter().skip(1).cloned());
        let workspace = Workspace { cwd: real, roots, home: base.home.clone() };
        let principal = Principal { edge: "cli".to_owned(), name: None };
        let session = Session::new("check".into(), principal, workspace);
        self.sessions.insert(cwd.clone(), session.clone());
        session
    }

    /// The policy that a block of settings gives.
    pub(crate) fn compiled(
        &mut self,
        settings: Option<&Value>,
        cwd: &AbsPath,
        mode: Option<Mode>,
    ) -> Arc<Compiled> {
        let mode = mode.or(self.world.mode());
        let key = (settings.map(Value::to_string), cwd.clone(), mode);
        if let Some(kept) = self.policies.get(&key) {
            return Arc::clone(kept);
        }
        let compiled = Arc::new(match &key.0 {
            Some(settings) => compile(settings, cwd, mode),
            None => {
                let mut raw = RawPolicy::clone(&self.toolgate.policy());
                raw.mode = mode.unwrap_or(raw.mode);
                Ok(raw.compile())
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
    let mut surroundings = Surroundings::default();
    settings.surround(&mut surroundings);
    let mut raw = settings.policy(mode);
    raw.enforcement = enforcement(&surroundings);
    let (policy, problems) = raw.compile();
    match problems.iter().find(|problem| problem.weight == Weight::Fatal) {
        Some(problem) => Err(problem.to_string()),
        None => Ok((policy, problems)),
    }
}
