//! The context of one call: where it happens, why it is made, which rules were in force, how long it may take.
//!
//! Everything here is fixed when the call arrives. What a call collects on its way is in the
//! [`RecordBuilder`](crate::record_builder::RecordBuilder).

use crate::call_options::CallOptions;
use crate::gate::{Gate, GateSnapshot};
use crate::session::Session;
use std::future::Future;
use std::sync::Arc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use toolgate_policy::{LayerRules, Policy};
use toolgate_proto::{AbsPath, CallId, Code, Refusal, Stage, ToolCall, Workspace};

/// Why a call is made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum CallPurpose {
    /// A model or a user wants its effects.
    #[default]
    Action,
    /// A hook or an approver asks a tool about another call. The input quotes that call, so paths in it are not taken
    /// for what the tool touches.
    Consultation {
        /// The call that is asked about; of nested consultations the outermost one.
        about: CallId,
        /// How many approval prompts are open around this call.
        prompt_depth: usize,
        /// A hook makes it, or a call around it.
        is_inside_hook: bool,
    },
}

/// Where a call happens, as tools and hooks see it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallContext {
    /// The session.
    pub session: Session,
    /// The workspace of the session when the call arrived.
    pub workspace: Arc<Workspace>,
    /// Why the call is made.
    pub purpose: CallPurpose,
}

impl CallContext {
    /// The context of a call that the session makes now.
    pub fn of(session: &Session) -> Self {
        Self { session: session.clone(), workspace: session.workspace(), purpose: CallPurpose::Action }
    }

    /// An absolute path for one from an input: absolute already, below home with `~/`, or relative to the working
    /// directory.
    pub fn absolute_path(&self, given: &str) -> AbsPath {
        match (given.strip_prefix("~/"), &self.workspace.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.workspace.cwd.join(given),
        }
    }

    /// The call that the session made: `id` itself, or the one that it is a consultation about.
    pub fn root_call<'a>(&'a self, id: &'a CallId) -> &'a CallId {
        match &self.purpose {
            CallPurpose::Action => id,
            CallPurpose::Consultation { about, .. } => about,
        }
    }

    /// Whether the call asks a tool about another call.
    pub fn is_consultation(&self) -> bool {
        matches!(self.purpose, CallPurpose::Consultation { .. })
    }

    /// The purpose of a call that asks a tool about the call `id`, made from this context.
    pub(crate) fn consultation(&self, id: &CallId, open_prompts: usize, by_hook: bool) -> CallPurpose {
        CallPurpose::Consultation {
            about: self.root_call(id).clone(),
            prompt_depth: self.prompt_depth() + open_prompts,
            is_inside_hook: by_hook || self.is_inside_hook(),
        }
    }

    /// Whether a hook makes this call, or a call around it: a hook must not run for calls that it makes itself.
    pub fn is_inside_hook(&self) -> bool {
        matches!(self.purpose, CallPurpose::Consultation { is_inside_hook: true, .. })
    }

    /// How many approval prompts are open around this call.
    pub(crate) fn prompt_depth(&self) -> usize {
        match &self.purpose {
            CallPurpose::Action => 0,
            CallPurpose::Consultation { prompt_depth, .. } => *prompt_depth,
        }
    }
}

/// The rules that judge a call, and the rules of the gate that they were made from.
#[derive(Clone)]
pub(crate) struct CallPolicy {
    /// With the call's own rules, and as limited by its session.
    pub(crate) effective: Arc<Policy>,
    /// Tells whether the gate has other rules by now.
    of_gate: Arc<Policy>,
}

/// What the stages of one call share. Immutable: a stage that needs another policy or deadline says so in its result.
pub(crate) struct PipelineContext<'g> {
    pub(crate) gate: &'g Gate,
    /// Tools, rules, hooks and approvers as they were when the call arrived.
    pub(crate) snapshot: GateSnapshot,
    pub(crate) call: &'g ToolCall,
    pub(crate) call_context: CallContext,
    /// Ends the call; a child of the caller's token.
    pub(crate) cancel: CancellationToken,
    /// When the caller wants the call to be over.
    pub(crate) deadline: Option<Instant>,
    /// The caller wants a refusal in place of a question.
    pub(crate) never_asks: bool,
    /// No further call of the session follows.
    pub(crate) is_last_call: bool,
    /// Rules of this call beside those of the gate.
    extra_rules: Option<LayerRules>,
    /// The rules of the gate when the call arrived.
    gate_policy: Arc<Policy>,
}

impl<'g> PipelineContext<'g> {
    /// The context of a call that arrives now. Rules that changed outside are taken over first.
    pub(crate) fn new(gate: &'g Gate, session: &Session, call: &'g ToolCall, options: &CallOptions) -> Self {
        gate.refresh();
        let mut snapshot = gate.current();
        let gate_policy = Arc::clone(&snapshot.policy);
        snapshot.policy = add_rules(gate, options.extra_rules.as_ref(), snapshot.policy);
        Self {
            gate,
            extra_rules: options.extra_rules.clone(),
            gate_policy,
            snapshot: snapshot.limited_to(session),
            call,
            call_context: CallContext { purpose: options.purpose.clone(), ..CallContext::of(session) },
            cancel: options.cancel.child_token(),
            deadline: options.timeout.map(|timeout| Instant::now() + timeout),
            never_asks: options.never_asks,
            is_last_call: options.is_last_call,
        }
    }

    /// The rules of the snapshot as they apply to the session now: a call that waited for `EnterPlanMode` is judged in
    /// plan mode.
    pub(crate) fn effective_policy(&self) -> CallPolicy {
        let effective = self.call_context.session.effective_policy(Arc::clone(&self.snapshot.policy));
        CallPolicy { effective, of_gate: Arc::clone(&self.gate_policy) }
    }

    /// The rules in force now, if they are others than those that `policy` was made from.
    pub(crate) fn newer_policy(&self, policy: &CallPolicy) -> Option<CallPolicy> {
        let of_gate = self.gate.policy();
        if Arc::ptr_eq(&of_gate, &policy.of_gate) {
            return None;
        }
        let rules = add_rules(self.gate, self.extra_rules.as_ref(), Arc::clone(&of_gate));
        Some(CallPolicy { effective: self.call_context.session.effective_policy(rules), of_gate })
    }

    /// Refuses a call that is cancelled or past its deadline.
    pub(crate) fn check_running(&self, stage: Stage) -> Result<(), Refusal> {
        if self.cancel.is_cancelled() {
            return Err(cancelled_refusal().at_stage(stage));
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(deadline_refusal().at_stage(stage));
        }
        Ok(())
    }

    /// Waits for a part of a stage, but not past a cancellation or the deadline.
    pub(crate) async fn await_unless_stopped<T>(
        &self,
        stage: Stage,
        work: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        tokio::select! {
            biased;
            refusal = self.wait_until_stopped(self.deadline) => Err(refusal.at_stage(stage)),
            done = work => done,
        }
    }

    /// Ends when the call is cancelled or `deadline` has passed.
    pub(crate) async fn wait_until_stopped(&self, deadline: Option<Instant>) -> Refusal {
        match deadline {
            Some(deadline) => tokio::select! {
                () = self.cancel.cancelled() => cancelled_refusal(),
                () = sleep_until(deadline) => deadline_refusal(),
            },
            None => {
                self.cancel.cancelled().await;
                cancelled_refusal()
            }
        }
    }
}

/// The rules of the gate with the call's own ones.
fn add_rules(gate: &Gate, extra: Option<&LayerRules>, of_gate: Arc<Policy>) -> Arc<Policy> {
    match extra {
        Some(rules) => gate.compile_with(rules),
        None => of_gate,
    }
}

/// The refusal of a call that was cancelled.
fn cancelled_refusal() -> Refusal {
    Refusal::new(Code::Cancelled, "the call was cancelled")
}

/// The refusal of a call whose deadline has passed.
fn deadline_refusal() -> Refusal {
    Refusal::new(Code::DeadlinePassed, "the call ran out of time")
}
