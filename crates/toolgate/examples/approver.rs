//! An approver of your own: whoever can answer "may it?".
//!
//! Run with `cargo run --package toolgate --example approver`.

use futures_util::future::BoxFuture;
use toolgate::{ApprovalAnswer, ApprovalRequest, Approver, Code, Toolgate};

/// Says yes to whatever carries little risk, and leaves the rest to the next approver. There is none here.
struct LowRiskOnly;

impl Approver for LowRiskOnly {
    fn name(&self) -> &str {
        "low-risk-only"
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        let low = request.question.risk == toolgate_proto::RiskLevel::Low;
        Box::pin(std::future::ready(if low { ApprovalAnswer::Once } else { ApprovalAnswer::Pass }))
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // `/dev` lies outside the workspace, so reading there asks; listing it carries little risk.
    let toolgate = Toolgate::builder("/usr").approver(LowRiskOnly).build()?;
    let closed = toolgate.call("call_1", "ls", r#"{"path": "/dev"}"#).await;
    assert!(closed.result.is_ok());
    assert_eq!(closed.record.approval.map(|approval| approval.by).as_deref(), Some("low-risk-only"));

    let nobody = Toolgate::builder("/usr").build()?;
    let closed = nobody.call("call_2", "ls", r#"{"path": "/dev"}"#).await;
    assert_eq!(closed.result.err().map(|refusal| refusal.code), Some(Code::NobodyToAsk));
    Ok(())
}
