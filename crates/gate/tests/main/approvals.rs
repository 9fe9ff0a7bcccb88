//! Only a clear yes is a yes.

use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use toolgate_gate::{ApprovalAnswer, ApprovalRequest, Approver};
use toolgate_proto::Code;
use toolgate_testkit::{ApproverBehaviour, FakeApprover, check_approval_properties};

/// Wants another input each time.
struct Restless(AtomicUsize);

impl Approver for Restless {
    fn name(&self) -> &str {
        "restless"
    }

    fn ask<'a>(&'a self, _request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        let text = self.0.fetch_add(1, Ordering::SeqCst).to_string();
        let input = serde_json::json!({ "text": text }).as_object().unwrap().clone();
        Box::pin(std::future::ready(ApprovalAnswer::Revise { input }))
    }
}

#[tokio::test]
async fn each_way_of_not_saying_yes_is_a_no() {
    for (conduct, yes, code) in [
        (ApproverBehaviour::Answers(ApprovalAnswer::Once), true, None),
        (ApproverBehaviour::Answers(ApprovalAnswer::No { message: None }), false, Some(Code::Declined)),
        (ApproverBehaviour::Answers(ApprovalAnswer::Pass), false, Some(Code::ApprovalUnavailable)),
        (ApproverBehaviour::Silent, false, Some(Code::ApprovalTimedOut)),
        (ApproverBehaviour::Crashes, false, Some(Code::ApprovalLost)),
        // A rule that was not offered is not granted, but the call itself was approved.
        (
            ApproverBehaviour::Answers(ApprovalAnswer::Lost { why: "gone".into() }),
            false,
            Some(Code::ApprovalLost),
        ),
        (ApproverBehaviour::Answers(ApprovalAnswer::Always { rules: vec!["Bash(*)".into()] }), true, None),
        (ApproverBehaviour::Answers(ApprovalAnswer::Session { rules: vec!["Bash(*)".into()] }), true, None),
    ] {
        assert_eq!(
            check_approval_properties(Arc::new(FakeApprover(conduct.clone())), yes).await,
            code,
            "{conduct:?}"
        );
    }
}

#[tokio::test]
async fn a_revised_input_is_checked_and_judged_again() {
    let revised = serde_json::json!({ "text": 5 }).as_object().unwrap().clone();
    let conduct = ApproverBehaviour::Answers(ApprovalAnswer::Revise { input: revised });
    let code = check_approval_properties(Arc::new(FakeApprover(conduct)), false).await;
    assert_eq!(code, Some(Code::InvalidInput));
    // Asked again about what it asked for, an approver that repeats itself approves.
    let revised = serde_json::json!({ "text": "y" }).as_object().unwrap().clone();
    let conduct = ApproverBehaviour::Answers(ApprovalAnswer::Revise { input: revised });
    assert_eq!(check_approval_properties(Arc::new(FakeApprover(conduct)), true).await, None);
    // One that changes its mind for ever is stopped.
    let code = check_approval_properties(Arc::new(Restless(AtomicUsize::new(0))), false).await;
    assert_eq!(code, Some(Code::Declined));
}
