//! Only a clear yes is a yes.

use std::sync::Arc;
use toolgate_gate::Answer;
use toolgate_proto::Code;
use toolgate_testkit::{Conduct, FakeApprover, approver_laws};

#[tokio::test]
async fn each_way_of_not_saying_yes_is_a_no() {
    for (conduct, yes, code) in [
        (Conduct::Answers(Answer::Once), true, None),
        (Conduct::Answers(Answer::No { message: None }), false, Some(Code::Declined)),
        (Conduct::Answers(Answer::Pass), false, Some(Code::NobodyToAsk)),
        (Conduct::Silent, false, Some(Code::ApprovalTimedOut)),
        (Conduct::Crashes, false, Some(Code::ApprovalLost)),
        // A rule that was not offered is not granted, but the call itself was approved.
        (Conduct::Answers(Answer::Session { rule: "Bash(*)".into() }), true, None),
    ] {
        assert_eq!(approver_laws(Arc::new(FakeApprover(conduct.clone())), yes).await, code, "{conduct:?}");
    }
}

#[tokio::test]
async fn a_revised_input_is_checked_and_judged_again() {
    let revised = serde_json::json!({ "text": 5 }).as_object().unwrap().clone();
    let conduct = Conduct::Answers(Answer::Revise { input: revised });
    let code = approver_laws(Arc::new(FakeApprover(conduct)), false).await;
    assert_eq!(code, Some(Code::InvalidInput));
    // An approver that revises for ever is stopped.
    let revised = serde_json::json!({ "text": "y" }).as_object().unwrap().clone();
    let conduct = Conduct::Answers(Answer::Revise { input: revised });
    let code = approver_laws(Arc::new(FakeApprover(conduct)), false).await;
    assert_eq!(code, Some(Code::Declined));
}
