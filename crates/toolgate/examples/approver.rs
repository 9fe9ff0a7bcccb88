//! An approver: a component that answers when policy asks.
//!
//! Run with `cargo run --package toolgate --example approver`.

use toolgate::{ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, Code, RiskLevel, Toolgate};

/// Approves what carries little risk, and passes the rest on to the next approver. There is none here.
struct LowRiskOnly;

impl Approver for LowRiskOnly {
    fn name(&self) -> &str {
        "low-risk-only"
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        let low = request.question.risk == RiskLevel::Low;
        Box::pin(std::future::ready(if low { ApprovalAnswer::Once } else { ApprovalAnswer::Pass }))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `/dev` lies outside the workspace, so reading there asks; listing it carries little risk.
    let toolgate = Toolgate::builder("/usr").approver(LowRiskOnly).build()?;
    let outcome = toolgate.call("call_1", "ls", r#"{"path": "/dev"}"#).await;
    assert!(outcome.result.is_ok());
    assert_eq!(outcome.record.approval.map(|approval| approval.by).as_deref(), Some("low-risk-only"));

    let without_approver = Toolgate::builder("/usr").build()?;
    let outcome = without_approver.call("call_2", "ls", r#"{"path": "/dev"}"#).await;
    assert_eq!(outcome.result.err().map(|refusal| refusal.code), Some(Code::ApprovalUnavailable));
    Ok(())
}
