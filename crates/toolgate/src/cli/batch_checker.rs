//! The batch checker of `toolgate check --batch` and `toolgate policy test`: it judges many calls, each with its own
//! settings, in one process.
//!
//! Compiled policies and sessions are cached: a test suite uses few of them for many calls, and compiling the policy
//! again for each call would take most of the time.

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

/// How many compiled policies are cached. When the cache is full it is emptied, which costs time and no memory.
const MAX_CACHED_POLICIES: usize = 1_000;

/// The policy compiled from one settings object, or why the object is unusable.
pub(crate) type SettingsCompileResult = Result<CheckedPolicy, String>;

/// A compiled policy with what a check needs beside it.
pub(crate) struct CheckedPolicy {
    /// The policy.
    policy: Policy,
    /// The problems of its rules.
    pub(crate) problems: Vec<RuleProblem>,
    /// Directories that the settings add to the workspace.
    directories: Vec<AbsPath>,
}

/// Judges calls without running them.
pub(crate) struct BatchChecker<'w> {
    /// The command line, for its default mode.
    context: &'w CliContext,
    /// Knows the registered tools, and the settings for calls that bring none.
    toolgate: Toolgate,
    /// Compiled policies by settings, working directory and mode.
    policies: HashMap<(Option<String>, AbsPath, Option<Mode>), Arc<SettingsCompileResult>>,
    /// Sessions by working directory and additional directories.
    sessions: HashMap<(AbsPath, Vec<AbsPath>), Session>,
}

/// The result of checking one call.
pub(crate) enum BatchCheckOutcome {
    /// Policy judged the call.
    Judged {
        /// The judgement.
        judgement: Box<Judgement>,
        /// The PreToolUse hooks that a call would run, which may decide otherwise.
        unasked_hooks: Vec<String>,
    },
    /// The call was refused before policy: unknown tool or invalid input.
    Refused(Refusal),
    /// The settings are unusable, so the call is denied: they may have contained a deny rule.
    Unusable(String),
}

impl<'w> BatchChecker<'w> {
    /// A checker whose default settings are those of the command line.
    pub(crate) fn new(context: &'w CliContext) -> Result<Self, CliError> {
        let toolgate = context.builder()?.build()?;
        Ok(Self { context, toolgate, policies: HashMap::new(), sessions: HashMap::new() })
    }

    /// Why calls are refused in the mode of the command line and its settings, if they are.
    pub(crate) fn bypass_refusal(&self) -> Option<&'static str> {
        self.context.bypass_refusal(&self.toolgate)
    }

    /// What the settings of the command line leave without effect, and why.
    pub(crate) fn notes(&self) -> Vec<String> {
        let (notes, _) = self.toolgate.notes();
        notes.iter().map(ToString::to_string).collect()
    }

    /// Judges one call. Without `settings`, those of the command line apply.
    pub(crate) fn judge(
        &mut self,
        call: &ToolCall,
        settings: Option<&Value>,
        cwd: &AbsPath,
        mode: Option<Mode>,
    ) -> BatchCheckOutcome {
        let compiled = self.compiled_policy(settings, cwd, mode);
        let (policy, directories) = match compiled.as_ref() {
            Ok(checked) => (&checked.policy, &checked.directories),
            Err(problem) => return BatchCheckOutcome::Unusable(problem.clone()),
        };
        let session = self.session_for(cwd, directories);
        match unregistered_tool::intend(self.toolgate.gate(), &session, call) {
            Ok(intended) => {
                let unasked_hooks = match settings {
                    None => self.toolgate.gate().screening_hooks(&session, &intended.tool),
                    Some(settings) => screening_hooks_of(settings),
                };
                let judgement = Box::new(judge_intended(policy, &session.workspace(), &intended));
                BatchCheckOutcome::Judged { judgement, unasked_hooks }
            }
            Err(refusal) => BatchCheckOutcome::Refused(refusal),
        }
    }

    /// The session whose workspace is `cwd` and the additional directories.
    fn session_for(&mut self, cwd: &AbsPath, directories: &[AbsPath]) -> Session {
        let key = (cwd.clone(), directories.to_vec());
        if let Some(session) = self.sessions.get(&key) {
            return session.clone();
        }
        let real = toolgate_files::resolve(cwd).real;
        let base = self.toolgate.session().workspace();
        let mut roots = vec![real.clone()];
        roots.extend(base.roots.iter().skip(1).cloned());
        roots.extend(directories.iter().map(|dir| toolgate_files::resolve(dir).real));
        let workspace = Workspace { cwd: real, roots, home: base.home.clone() };
        let principal = Principal::new("cli");
        let session = Session::new("check".into(), principal, workspace);
        self.sessions.insert(key, session.clone());
        session
    }

    /// The policy compiled from a settings object, from the cache if possible.
    pub(crate) fn compiled_policy(
        &mut self,
        settings: Option<&Value>,
        cwd: &AbsPath,
        mode: Option<Mode>,
    ) -> Arc<SettingsCompileResult> {
        let mode = mode.or(self.context.mode());
        let key = (settings.map(Value::to_string), cwd.clone(), mode);
        if let Some(cached) = self.policies.get(&key) {
            return Arc::clone(cached);
        }
        let compiled = Arc::new(match &key.0 {
            Some(settings) => compile(settings, cwd, mode),
            None => {
                let mut raw = RawPolicy::clone(&self.toolgate.policy());
                raw.mode = mode.unwrap_or(raw.mode);
                let (policy, problems) = raw.compile();
                // The directories of these settings are roots of the session already.
                Ok(CheckedPolicy { policy, problems, directories: Vec::new() })
            }
        });
        if self.policies.len() >= MAX_CACHED_POLICIES {
            self.policies.clear();
        }
        self.policies.insert(key, Arc::clone(&compiled));
        compiled
    }
}

/// Compiles a settings object alone, without the managed, user and project files: a case must not depend on the machine.
fn compile(settings: &str, cwd: &AbsPath, mode: Option<Mode>) -> SettingsCompileResult {
    let mut options = SettingsOptions::new(cwd.clone());
    options.managed_dirs = Vec::new();
    options.sources = Vec::new();
    options.extra = Some(settings.to_owned());
    let settings = LoadedSettings::load(&options).map_err(|error| error.to_string())?;
    let mut shell_config = ShellConfig::default();
    settings.apply_to_shell_config(&mut shell_config);
    let directories = settings.additional_directories();
    let mut raw = settings.policy(mode);
    raw.enforcement = enforcement(&shell_config);
    let (policy, problems) = raw.compile();
    match problems.iter().find(|problem| problem.weight == ProblemSeverity::Fatal) {
        Some(problem) => Err(problem.to_string()),
        None => Ok(CheckedPolicy { policy, problems, directories }),
    }
}

/// The commands of the PreToolUse hooks in a settings object. Their matchers are left aside: more hooks than would run are
/// better than a verdict that looks certain.
fn screening_hooks_of(settings: &Value) -> Vec<String> {
    let groups = settings.get("hooks").and_then(|hooks| hooks.get("PreToolUse")).and_then(Value::as_array);
    let handlers = groups.into_iter().flatten().filter_map(|group| group.get("hooks")?.as_array()).flatten();
    let name = |handler: &Value| {
        let named = ["command", "url", "tool"].iter().find_map(|key| handler.get(key)?.as_str());
        named.unwrap_or("hook").to_owned()
    };
    handlers.map(name).collect()
}
