//! The laws of asking: only a clear yes is a yes.

use crate::fakes::{ProbeBehaviour, ProbeTool, session_in};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use toolgate_gate::{ApprovalAnswer, ApprovalRequest, Approver, CallOptions, Gate, GateParts};
use toolgate_proto::{AbsPath, Code, SourceId, ToolCall};

/// How a [`FakeApprover`] behaves.
#[derive(Debug, Clone, PartialEq)]
pub enum ApproverBehaviour {
    /// Answers at once.
    Answers(ApprovalAnswer),
    /// Never answers.
    Silent,
    /// Crashes.
    Crashes,
}

/// Somebody who answers as the test wants.
pub struct FakeApprover(pub ApproverBehaviour);

impl Approver for FakeApprover {
    fn name(&self) -> &str {
        "fake"
    }

    #[expect(clippy::panic, reason = "that is what this fake is for")]
    fn ask<'a>(&'a self, _request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async {
            match &self.0 {
                ApproverBehaviour::Answers(answer) => answer.clone(),
                ApproverBehaviour::Silent => std::future::pending().await,
                ApproverBehaviour::Crashes => panic!("told to crash"),
            }
        })
    }
}

/// Asks through `approver` whether a probe may run, and tells how that ended: the code of the refusal, or none where
/// it ran. Panics where the probe ran without a yes, or a yes did not run it once.
#[expect(clippy::panic, reason = "a broken law must fail the test")]
pub async fn check_approver_laws(approver: Arc<dyn Approver>, says_yes: bool) -> Option<Code> {
    let root = AbsPath::root();
    let gate = Gate::new(
        GateParts::default().with_approvers(vec![approver]).with_approval_timeout(Duration::from_millis(20)),
    );
    let probe = ProbeTool::new("probe", ProbeBehaviour::Succeed);
    if let Err(error) = gate.register(SourceId::Sdk, probe.clone()) {
        panic!("{error}");
    }
    let call = ToolCall::new("c", "probe", r#"{"text":"x"}"#);
    let closed = gate.call(&session_in(&root), call, CallOptions::default()).await;
    if probe.runs() != usize::from(says_yes) {
        panic!("ran {} times, though the answer was {says_yes}", probe.runs());
    }
    closed.result.err().map(|refusal| refusal.code)
}
