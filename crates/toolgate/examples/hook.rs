//! A hook of your own: it sees every call before it is judged, and may object.
//!
//! Run with `cargo run --package toolgate --example hook`.

use futures_util::future::BoxFuture;
use toolgate::{Code, Hook, HookAnswer, HookCall, HookEvent, HookFailure, Toolgate};
use toolgate_proto::ToolIdentity;

/// Keeps models out of one file.
struct NoLockFile;

impl Hook for NoLockFile {
    fn name(&self) -> &str {
        "no-lock-file"
    }

    fn handles(&self, moment: HookEvent, _tool: &ToolIdentity) -> bool {
        moment == HookEvent::PreToolUse
    }

    fn handle_call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        let path = call.input.get("file_path").and_then(|path| path.as_str()).unwrap_or_default();
        let answer = if path.ends_with("/Cargo.lock") {
            HookAnswer::deny("the lock file is long and tells you nothing; read Cargo.toml")
        } else {
            HookAnswer::empty()
        };
        Box::pin(std::future::ready(Ok(answer)))
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let toolgate = Toolgate::builder("/").hook(NoLockFile).build()?;
    let closed = toolgate.call("call_1", "Read", r#"{"file_path": "/project/Cargo.lock"}"#).await;
    let Err(refusal) = closed.result else { anyhow::bail!("the hook was not heard") };
    assert_eq!(refusal.code, Code::HookDenied);
    Ok(())
}
