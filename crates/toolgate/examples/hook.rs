//! A hook: it sees every call before policy judges it, and may object.
//!
//! Run with `cargo run --package toolgate --example hook`.

use toolgate::{BoxFuture, Code, Hook, HookAnswer, HookCall, HookEvent, HookFailure, ToolIdentity, Toolgate};

/// Keeps models from reading one file.
struct NoLockFile;

impl Hook for NoLockFile {
    fn name(&self) -> &str {
        "no-lock-file"
    }

    fn handles(&self, event: HookEvent, _tool: &ToolIdentity) -> bool {
        event == HookEvent::PreToolUse
    }

    fn handle_call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        let path = call.input.get("file_path").and_then(|path| path.as_str()).unwrap_or_default();
        let answer = if path.ends_with("/Cargo.lock") {
            HookAnswer::deny("the lock file is generated; read Cargo.toml")
        } else {
            HookAnswer::empty()
        };
        Box::pin(std::future::ready(Ok(answer)))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let toolgate = Toolgate::builder("/").hook(NoLockFile).build()?;
    let outcome = toolgate.call("call_1", "Read", r#"{"file_path": "/project/Cargo.lock"}"#).await;
    let Err(refusal) = outcome.result else { return Err("the hook did not run".into()) };
    assert_eq!(refusal.code, Code::HookDenied);
    Ok(())
}
