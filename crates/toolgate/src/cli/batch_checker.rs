//! The batch checker of `toolgate check --batch` and `toolgate policy test`: it judges many calls, each with its own
//! settings, in one process.
//!
//! Compiled policies and sessions are cached: a test suite uses few of them for many calls, and compiling the policy
//! again for each call would take most of the time.

use super::CliError;
use super::context::CliContext;
use super::mcp::register_resource_tools;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use toolgate::enforcement::enforcement;
use toolgate::settings::{LoadedSettings, SettingsOptions, SettingsProblem};
use toolgate::{
    AbsPath, BuildError, Judgement, Mode, Policy, Refusal, Session, ToolCall, Toolgate, unregistered_tool,
};
use toolgate_gate::judge_intended;
use toolgate_policy::{ProblemSeverity, RawPolicy, RuleProblem};
use toolgate_proto::{Principal, Workspace};
use toolgate_tools::ShellConfig;

/// How many compiled policies are cached. When the cache is full it is emptied, which costs time and no memory.
const MAX_CACHED_POLICIES: usize = 1_000;

/// The policy compiled from one settings object, or why the object is unusable.
pub(crate) type SettingsCompileResult = Result<CheckedPolicy, UnusableSettings>;

/// Why settings cannot be used.
#[derive(Debug, Clone)]
pub(crate) struct UnusableSettings {
    /// The place and the problem.
    pub(crate) reason: String,
    /// What to do about it.
    pub(crate) hint: String,
}

impl fmt::Display for UnusableSettings {
    /// Formats both in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.reason, self.hint)
    }
}

impl From<SettingsProblem> for UnusableSettings {
    /// Separates the hint from the problem and its place.
    fn from(mut problem: SettingsProblem) -> Self {
        let hint = std::mem::take(&mut problem.fix);
        Self { reason: problem.to_string(), hint }
    }
}

impl From<BuildError> for UnusableSettings {
    /// Separates the hint where the error has one.
    fn from(error: BuildError) -> Self {
        let text = error.to_string();
        let (reason, hint) = text.split_once("\n  hint: ").unwrap_or((&text, "correct the settings"));
        Self { reason: reason.to_owned(), hint: hint.to_owned() }
    }
}

/// A compiled policy with what a check needs beside it.
pub(crate) struct CheckedPolicy {
    /// The policy.
    policy: Policy,
    /// The problems of its rules.
    pub(crate) problems: Vec<RuleProblem>,
    /// Directories that the settings add to the workspace.
    directories: Vec<AbsPath>,
    /// Why every call is refused under these settings, whatever the policy says of it.
    call_refusal: Option<String>,
    /// The hooks of settings that bring some, in a gate of their own.
    hooks: Option<Toolgate>,
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
        /// Why the call would be refused whatever policy says of it, if that is known.
        call_refusal: Option<String>,
    },
    /// The call was refused before policy: unknown tool or invalid input.
    Refused(Refusal),
    /// The settings are unusable, so the call is denied: they may have contained a deny rule.
    Unusable(UnusableSettings),
}

impl<'w> BatchChecker<'w> {
    /// A checker whose default settings are those of the command line.
    pub(crate) fn new(context: &'w CliContext) -> Result<Self, CliError> {
        let toolgate = context.builder()?.build()?;
        register_resource_tools(context, &toolgate)?;
        Ok(Self { context, toolgate, policies: HashMap::new(), sessions: HashMap::new() })
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
        let checked = match compiled.as_ref() {
            Ok(checked) => checked,
            Err(problem) => return BatchCheckOutcome::Unusable(problem.clone()),
        };
        let session = self.session_for(cwd, &checked.directories);
        match unregistered_tool::intend(self.toolgate.gate(), &session, call) {
            Ok(intended) => {
                let hooks = match settings {
                    None => Some(self.toolgate.gate()),
                    Some(_) => checked.hooks.as_ref().map(Toolgate::gate),
                };
                let unasked_hooks = hooks.map(|gate| gate.screening_hooks(&session, &intended.tool));
                let hook_refusal = || hooks?.foresee_hook_refusal(&session, &intended);
                let call_refusal = checked.call_refusal.clone();
                BatchCheckOutcome::Judged {
                    call_refusal: call_refusal.or_else(|| hook_refusal().map(|refusal| refusal.to_string())),
                    unasked_hooks: unasked_hooks.unwrap_or_default(),
                    judgement: Box::new(judge_intended(&checked.policy, &session.workspace(), &intended)),
                }
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
        let workspace = Workspace::new(real).with_roots(roots).with_home(base.home.clone());
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
            Some(settings) => compile(self.context, settings, cwd, mode),
            None => {
                let mut raw = RawPolicy::clone(&self.toolgate.policy());
                raw.mode = mode.unwrap_or(raw.mode);
                let (policy, problems) = raw.compile();
                let call_refusal =
                    self.context.find_refusal_of_all_calls(&self.toolgate.settings(), policy.mode());
                // The directories of these settings are roots of the session already.
                Ok(CheckedPolicy { policy, problems, directories: Vec::new(), call_refusal, hooks: None })
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
fn compile(
    context: &CliContext,
    settings: &str,
    cwd: &AbsPath,
    mode: Option<Mode>,
) -> Result<CheckedPolicy, UnusableSettings> {
    let mut options = SettingsOptions::new(cwd.clone());
    options.managed_dirs = Vec::new();
    options.sources = Vec::new();
    options.extra = Some(settings.to_owned());
    let settings = LoadedSettings::load(&options).map_err(SettingsProblem::from)?;
    let mut shell_config = ShellConfig::default();
    settings.apply_to_shell_config(&mut shell_config);
    let directories = settings.additional_directories();
    let mut raw = settings.policy(mode);
    raw.enforcement = enforcement(&shell_config);
    let (policy, problems) = raw.compile();
    if let Some(problem) = problems.iter().find(|problem| problem.weight == ProblemSeverity::Fatal) {
        return Err(SettingsProblem::from(problem.clone()).into());
    }
    // Only for these, because building a gate takes longer than judging a call.
    let has_hooks = settings.files.iter().any(|file| !file.values.hooks.is_empty());
    let hooks = match has_hooks {
        true => Some(Toolgate::builder(cwd.as_path()).settings(options).build()?),
        false => None,
    };
    let call_refusal = context.find_refusal_of_all_calls(&settings, policy.mode());
    Ok(CheckedPolicy { policy, problems, directories, call_refusal, hooks })
}
