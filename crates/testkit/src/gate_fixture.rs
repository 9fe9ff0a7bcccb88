//! A real gate over a real directory, for tests that call tools the way an agent does.

use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;
use toolgate_gate::{CallOptions, CallOutcome, Gate, GateParts, Session};
use toolgate_proto::{AbsPath, Output, Principal, Refusal, ToolCall, Workspace};

/// A directory with a gate in front of it.
pub struct GateFixture {
    /// Removed with the workplace; none where the directory was there before.
    _dir: Option<TempDir>,
    /// The directory, links resolved: the only root of the session.
    pub root: AbsPath,
    /// The gate.
    pub gate: Arc<Gate>,
    /// The session that works there.
    pub session: Session,
    calls: AtomicU64,
}

/// A gate with no rules and the tools that `register` adds.
pub fn plain_gate(register: impl FnOnce(&Gate)) -> Arc<Gate> {
    let gate = Gate::new(GateParts::default());
    register(&gate);
    Arc::new(gate)
}

impl GateFixture {
    /// An empty directory. A gate may serve many of them.
    pub fn new(gate: Arc<Gate>) -> std::io::Result<Self> {
        let dir = tempfile::tempdir()?;
        let root = dir.path().to_path_buf();
        Ok(Self { _dir: Some(dir), ..Self::at(&root, gate)? })
    }

    /// The same for a directory that is there.
    pub fn at(root: &Path, gate: Arc<Gate>) -> std::io::Result<Self> {
        #[expect(clippy::disallowed_methods, reason = "tests are made of real files")]
        let root = AbsPath::new(root.canonicalize()?).map_err(std::io::Error::other)?;
        let workspace = Workspace { cwd: root.clone(), roots: vec![root.clone()], home: None };
        let principal = Principal::new("test");
        let session = Session::new("test".into(), principal, workspace);
        Ok(Self { _dir: None, root, gate, session, calls: AtomicU64::new(0) })
    }

    /// Calls a tool.
    pub async fn call(&self, tool: &str, input: &Value) -> Result<Output, Refusal> {
        self.call_with(tool, input, CallOptions::default()).await.result
    }

    /// Calls a tool under limits, and gives all that is left of the call.
    pub async fn call_with(&self, tool: &str, input: &Value, limits: CallOptions) -> CallOutcome {
        let id = format!("call_{}", self.calls.fetch_add(1, Ordering::Relaxed));
        self.gate.call(&self.session, ToolCall::new(id.as_str(), tool, input.to_string()), limits).await
    }
}
