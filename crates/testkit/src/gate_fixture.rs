//! A real gate in front of a real directory, for tests that call tools as an agent does.

use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;
use toolgate_gate::{CallOptions, CallOutcome, Gate, GateParts, Session};
use toolgate_proto::{AbsPath, Output, Principal, Refusal, ToolCall, Workspace};

/// A directory and a gate, with a session whose only root is the directory.
pub struct GateFixture {
    /// Removes the directory when the fixture is dropped; `None` if the directory existed before.
    _dir: Option<TempDir>,
    /// The directory, symlinks resolved.
    pub root: AbsPath,
    /// The gate; several fixtures may share one.
    pub gate: Arc<Gate>,
    /// The session of all calls.
    pub session: Session,
    /// The number of calls so far, for their ids.
    calls: AtomicU64,
}

/// A gate without rules, with the tools that `register` adds.
pub fn plain_gate(register: impl FnOnce(&Gate)) -> Arc<Gate> {
    let gate = Gate::new(GateParts::default());
    register(&gate);
    Arc::new(gate)
}

impl GateFixture {
    /// Creates an empty temporary directory.
    pub fn new(gate: Arc<Gate>) -> std::io::Result<Self> {
        let dir = tempfile::tempdir()?;
        let root = dir.path().to_path_buf();
        Ok(Self { _dir: Some(dir), ..Self::at(&root, gate)? })
    }

    /// Uses a directory that exists.
    pub fn at(root: &Path, gate: Arc<Gate>) -> std::io::Result<Self> {
        #[expect(clippy::disallowed_methods, reason = "tests use real files")]
        let root = AbsPath::new(root.canonicalize()?).map_err(std::io::Error::other)?;
        let workspace = Workspace::new(root.clone());
        let principal = Principal::new("test");
        let session = Session::new("test".into(), principal, workspace);
        Ok(Self { _dir: None, root, gate, session, calls: AtomicU64::new(0) })
    }

    /// Calls a tool with default options.
    pub async fn call(&self, tool: &str, input: &Value) -> Result<Output, Refusal> {
        self.call_with(tool, input, CallOptions::default()).await.result
    }

    /// Calls a tool with options, and returns the record of the call as well.
    pub async fn call_with(&self, tool: &str, input: &Value, options: CallOptions) -> CallOutcome {
        let id = format!("call_{}", self.calls.fetch_add(1, Ordering::Relaxed));
        self.gate.call(&self.session, ToolCall::new(id.as_str(), tool, input.to_string()), options).await
    }
}
