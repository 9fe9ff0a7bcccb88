//! A workspace on real files, with a gate, a session and a journal.

use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use toolgate_files::{ContentCheck, Journal, JournalLimits};
use toolgate_gate::{CallOptions, Gate, GateParts, Session};
use toolgate_policy::RawPolicy;
use toolgate_proto::{AbsPath, CallResult, Mode, Principal, Refusal, ToolCall, Workspace};
use toolgate_tools::{Toolset, register};

/// Both toolsets over one workspace.
pub(crate) struct FileFixture {
    /// The workspace directory.
    pub(crate) top: AbsPath,
    pub(crate) gate: Gate,
    pub(crate) session: Session,
    pub(crate) journal: Arc<Journal>,
    calls: AtomicUsize,
    runtime: tokio::runtime::Runtime,
    _dir: Option<tempfile::TempDir>,
}

impl FileFixture {
    pub(crate) fn new() -> Self {
        Self::with(Mode::Bypass, Vec::new())
    }

    pub(crate) fn with(mode: Mode, checks: Vec<Arc<dyn ContentCheck>>) -> Self {
        Self::within(tempfile::tempdir().unwrap(), mode, checks)
    }

    /// In a temporary directory, which is removed with the fixture.
    pub(crate) fn within(dir: tempfile::TempDir, mode: Mode, checks: Vec<Arc<dyn ContentCheck>>) -> Self {
        let mut fixture = Self::at(dir.path(), mode, checks);
        fixture._dir = Some(dir);
        fixture
    }

    /// In a directory that may have content and a journal of an earlier fixture.
    pub(crate) fn at(dir: &Path, mode: Mode, content_checks: Vec<Arc<dyn ContentCheck>>) -> Self {
        let outer = AbsPath::new(dir.canonicalize().unwrap()).unwrap();
        let top = outer.join("ws");
        std::fs::create_dir_all(&top).unwrap();
        let journal = Arc::new(Journal::open(&outer.join("state"), JournalLimits::default()).unwrap());
        let gate = Gate::new(
            GateParts::default()
                .with_policy(RawPolicy::default().with_mode(mode))
                .with_journal(Arc::clone(&journal))
                .with_content_checks(content_checks),
        );
        register(&gate, Toolset::Claude).unwrap();
        register(&gate, Toolset::Plain).unwrap();
        let session = session(&top, "one");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { top, gate, session, journal, calls: AtomicUsize::new(0), runtime, _dir: None }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.top.join(name).to_string()
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }

    pub(crate) fn call(&self, tool: &str, input: Value) -> CallResult {
        self.call_in(&self.session, tool, input)
    }

    pub(crate) fn call_in(&self, session: &Session, tool: &str, input: Value) -> CallResult {
        let id = format!("call-{}", self.calls.fetch_add(1, Ordering::Relaxed));
        self.call_as(session, &id, tool, input)
    }

    pub(crate) fn call_as(&self, session: &Session, id: &str, tool: &str, input: Value) -> CallResult {
        let call = ToolCall::new(id, tool, input.to_string());
        self.runtime.block_on(self.gate.call(session, call, CallOptions::default())).result
    }

    /// The text that the model reads; panics if the call is refused.
    pub(crate) fn call_text(&self, tool: &str, input: Value) -> String {
        self.call(tool, input).unwrap_or_else(|refusal| panic!("{tool}: {refusal:?}")).model_text()
    }

    /// The refusal of a call; panics if the call succeeds.
    pub(crate) fn call_refusal(&self, tool: &str, input: Value) -> Refusal {
        match self.call(tool, input) {
            Ok(output) => panic!("{tool} was expected to be refused, and returned {}", output.model_text()),
            Err(refusal) => refusal,
        }
    }
}

/// A temporary directory in memory if the system has one: tests with thousands of cases should not wait for the disk.
pub(crate) fn memory_dir() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

pub(crate) fn session(top: &AbsPath, id: &str) -> Session {
    let workspace = Workspace::new(top.clone());
    Session::new(id.into(), Principal::new("test"), workspace)
}

/// Temporary files of toolgate below a directory, which a completed call has removed.
pub(crate) fn leftover_files(top: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(top).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name().to_string_lossy().starts_with(".toolgate-") {
            found.push(entry.path());
        }
        if entry.file_type().unwrap().is_dir() {
            found.extend(leftover_files(&entry.path()));
        }
    }
    found
}
