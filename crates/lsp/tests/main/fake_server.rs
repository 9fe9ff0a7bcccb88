//! A gate with the tool, and a fake server behind it that behaves as a test wants.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use toolgate_gate::{AttachedSource, Gate, GateParts};
use toolgate_lsp::{
    EditDiagnostics, LaunchOptions, LspSandbox, LspServerEntry, LspSource, PoolOptions, ServerPool,
    StartPermission,
};
use toolgate_proto::{AbsPath, Output, Refusal};
use toolgate_testkit::GateFixture;

/// The fake server, a program for Python.
const FAKE_SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake_server.py");

/// A gate, its directory and the servers.
pub(crate) struct FakeFixture {
    pub(crate) fixture: GateFixture,
    pub(crate) pool: Arc<ServerPool>,
    source: AttachedSource,
}

/// What a test changes about the fixture.
pub(crate) struct FakeOptions {
    pub(crate) parts: GateParts,
    pub(crate) change_entry: fn(&mut LspServerEntry),
    pub(crate) change_pool: fn(&mut PoolOptions),
    pub(crate) permission: TestPermission,
}

/// Whether servers may start in a test.
#[derive(Clone, Copy)]
pub(crate) enum TestPermission {
    /// With the rights of the user.
    Unsandboxed,
    /// In the default sandbox.
    Sandboxed,
    /// Not at all.
    Refused,
}

impl StartPermission for TestPermission {
    fn check_start(&self, _: &LspServerEntry) -> Result<Option<LspSandbox>, String> {
        match self {
            Self::Unsandboxed => Ok(None),
            Self::Sandboxed => Ok(Some(LspSandbox::default())),
            Self::Refused => Err("this project is not trusted".to_owned()),
        }
    }
}

impl Default for FakeOptions {
    fn default() -> Self {
        Self {
            parts: GateParts::default(),
            change_entry: |_| {},
            change_pool: |_| {},
            permission: TestPermission::Unsandboxed,
        }
    }
}

/// The environment that finds Python.
pub(crate) fn test_environment() -> BTreeMap<String, String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let home = std::env::var("HOME").unwrap_or_default();
    BTreeMap::from([("PATH".to_owned(), path), ("HOME".to_owned(), home)])
}

impl FakeFixture {
    pub(crate) fn new(behaviour: &str) -> Self {
        Self::with(behaviour, FakeOptions::default())
    }

    pub(crate) fn with(behaviour: &str, options: FakeOptions) -> Self {
        let mut entry = LspServerEntry::new("fake", "python3");
        entry.args = vec![FAKE_SERVER.to_owned(), behaviour.to_owned()];
        entry.languages = BTreeMap::from([(".fake".to_owned(), "fake".to_owned())]);
        entry.startup_timeout = Duration::from_secs(20);
        entry.shutdown_timeout = Duration::from_millis(500);
        (options.change_entry)(&mut entry);
        let permission = Arc::new(options.permission);
        let temp_dir = AbsPath::new(std::env::temp_dir()).unwrap();
        let launch = LaunchOptions::new(test_environment(), temp_dir, permission);
        let mut pool_options = PoolOptions::new(vec![entry], launch);
        pool_options.ready_timeout = Duration::from_secs(2);
        (options.change_pool)(&mut pool_options);
        let pool = ServerPool::new(pool_options);
        let mut parts = options.parts;
        let hook = Arc::new(EditDiagnostics::default());
        hook.connect(Arc::clone(&pool));
        parts.hooks.push(hook);
        let gate = Arc::new(Gate::new(parts));
        let source = gate.add_source(LspSource::new("LSP", Arc::clone(&pool))).unwrap();
        let fixture = GateFixture::new(gate).unwrap();
        Self { fixture, pool, source }
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.fixture.root.join(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.fixture.root.join(name)).unwrap()
    }

    /// Calls the tool about `a.fake`.
    pub(crate) async fn ask(&self, operation: &str, rest: Value) -> Result<Output, Refusal> {
        let mut input = json!({ "operation": operation, "filePath": "a.fake" });
        for (name, value) in rest.as_object().into_iter().flatten() {
            input[name] = value.clone();
        }
        self.fixture.call("LSP", &input).await
    }

    /// Asks for the references of `target` on the first line.
    pub(crate) async fn references(&self) -> Result<Output, Refusal> {
        self.ask("findReferences", json!({ "line": 1, "symbol": "target" })).await
    }

    /// The process of the server.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.pool.status().first()?.instances.first()?.pid
    }

    /// Ends the servers as the end of toolgate does.
    pub(crate) async fn close(&self) {
        self.source.close().await;
    }
}

/// Whether a process runs.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    stat.unwrap_or_default().rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Waits until a process is gone.
pub(crate) async fn wait_gone(pid: u32) {
    for _ in 0..6_000 {
        if !is_alive(pid) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("process {pid} is still there");
}

/// How many processes have this directory as their working directory.
pub(crate) fn processes_in(directory: &AbsPath) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter(|entry| {
            std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == directory.as_path())
        })
        .count()
}
