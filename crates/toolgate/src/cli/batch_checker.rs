//! Judging many calls under many settings, in one process.
//!
//! Compiled policies and sessions are kept between calls, since a test suite uses few of them for many calls.

use super::CliError;
use super::context::CliContext;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use toolgate::enforcement::enforcement;
use toolgate::settings::{LoadedSettings, SettingsOptions};
use toolgate::{AbsPath, Judgement, Mode, Policy, Refusal, Session, ToolCall, Toolgate, unregistered_tool};
use toolgate_gate::judge_intended;
use toolgate_policy::{ProblemSeverity, RawPolicy, RuleProblem};
use toolgate_proto::{Principal, Workspace};
use toolgate_tools::ShellConfig;

/// Policies kept at most; more distinct settings are merely slower.
const MAX_CACHED_POLICIES: usize = 1_000;

/// What was compiled from one block of settings; or why it cannot be used.
pub(crate) type SettingsCompileResult = Result<(Policy, Vec<RuleProblem>), String>;

/// Judges calls without running any.
pub(crate) struct BatchChecker<'w> {
    context: &'w CliContext,
    toolgate: Toolgate,
    policies: HashMap<(Option<String>, AbsPath, Option<Mode>), Arc<SettingsCompileResult>>,
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
    pub(crate) fn new(world: &'w CliContext) -> Result<Self, CliError> {
        let toolgate = world.builder()?.build()?;
        Ok(Self { context: world, toolgate, policies: HashMap::new(), sessions: HashMap::new() })
    }

    /// Judges one call. Settings that are not given are those of the whole run.
    pub(crate) fn judge(
        &mut self,
        call: &ToolCall,
        settings: Option<&Value>,
        cwd: &AbsPath,
        mode: Option<Mode>,
    ) -> BatchCheckOutcome {
        let session = self.session_for(cwd);
        let compiled = self.compiled_policy(settings, cwd, mode);
        let policy = match compiled.as_ref() {
            Ok((policy, _)) => policy,
            Err(problem) => return BatchCheckOutcome::Unusable(problem.clone()),
        };
        match unregistered_tool::intend(self.toolgate.gate(), &session, call) {
            Ok(intended) => {
                BatchCheckOutcome::Judged(Box::new(judge_intended(policy, &session.workspace(), &intended)))
            }
            Err(refusal) => BatchCheckOutcome::Refused(refusal),
        }
    }

    fn session_for(&mut self, cwd: &AbsPath) -> Session {
        if let Some(session) = self.sessions.get(cwd) {
            return session.clone();
        }
        let real = toolgate_files::resolve(cwd).real;
        let base = self.toolgate.session().workspace();
        let mut roots = vec![real.clone()];
        roots.extend(base.roots.iter().skip(1).cloned());
        let workspace = Workspace { cwd: real, roots, home: base.home.clone() };
        let principal = Principal::new("cli");
        let session = Session::new("check".into(), principal, workspace);
        self.sessions.insert(cwd.clone(), session.clone());
        session
    }

    /// The policy that a block of settings gives.
    pub(crate) fn compiled_policy(
        &mut self,
        settings: Option<&Value>,
        cwd: &AbsPath,
        mode: Option<Mode>,
    ) -> Arc<SettingsCompileResult> {
        let mode = mode.or(self.context.mode());
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
        if self.policies.len() >= MAX_CACHED_POLICIES {
            self.policies.clear();
        }
        self.policies.insert(key, Arc::clone(&compiled));
        compiled
    }
}

fn compile(settings: &str, cwd: &AbsPath, mode: Option<Mode>) -> SettingsCompileResult {
    let mut options = SettingsOptions::new(cwd.clone());
    options.managed_dirs = Vec::new();
    options.sources = Vec::new();
    options.extra = Some(settings.to_owned());
    let settings = LoadedSettings::load(&options).map_err(|error| error.to_string())?;
    let mut surroundings = ShellConfig::default();
    settings.apply_to_shell_config(&mut surroundings);
    let mut raw = settings.policy(mode);
    raw.enforcement = enforcement(&surroundings);
    let (policy, problems) = raw.compile();
    match problems.iter().find(|problem| problem.weight == ProblemSeverity::Fatal) {
        Some(problem) => Err(problem.to_string()),
        None => Ok((policy, problems)),
    }
}
