//! The property of approvals: only an explicit yes lets a call run.

use crate::probe_tool::{ProbeBehaviour, ProbeTool, session_in};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use toolgate_gate::{ApprovalAnswer, ApprovalRequest, Approver, CallOptions, Gate, GateParts};
use toolgate_proto::{AbsPath, Code, SourceId, ToolCall};

/// How a [`FakeApprover`] behaves.
#[derive(Debug, Clone, PartialEq)]
pub enum ApproverBehaviour {
    /// Answers immediately.
    Answers(ApprovalAnswer),
    /// Never answers.
    Silent,
    /// Panics instead of answering.
    Crashes,
}

/// An approver that behaves as the test wants.
pub struct FakeApprover(pub ApproverBehaviour);

impl Approver for FakeApprover {
    fn name(&self) -> &str {
        "fake"
    }

    #[expect(clippy::panic, reason = "the behaviour that the test asked for")]
    fn ask<'a>(&'a self, _request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async {
            match &self.0 {
                ApproverBehaviour::Answers(answer) => answer.clone(),
                ApproverBehaviour::Silent => std::future::pending().await,
                ApproverBehaviour::Crashes => panic!("the approver was asked to crash"),
            }
        })
    }
}

/// Calls a probe that needs an approval of `approver`. Returns the code of the refusal, or `None` if the probe ran.
/// Panics if the probe ran without a yes, or did not run exactly once after a yes.
#[expect(clippy::panic, reason = "a violation must fail the test")]
pub async fn check_approval_properties(approver: Arc<dyn Approver>, says_yes: bool) -> Option<Code> {
    let root = AbsPath::root();
    let gate = Gate::new(
        GateParts::default().with_approvers(vec![approver]).with_approval_timeout(Duration::from_millis(20)),
    );
    let probe = ProbeTool::new("probe", ProbeBehaviour::Succeed);
    if let Err(error) = gate.register(SourceId::Sdk, probe.clone()) {
        panic!("{error}");
    }
    let call = ToolCall::new("c", "probe", r#"{"text":"x"}"#);
    let outcome = gate.call(&session_in(&root), call, CallOptions::default()).await;
    if probe.runs() != usize::from(says_yes) {
        panic!("the probe ran {} times, and a yes was {says_yes}", probe.runs());
    }
    outcome.result.err().map(|refusal| refusal.code)
}
