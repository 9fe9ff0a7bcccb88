//! The source of the tool, and the end of its servers.

use crate::launch_options::{LaunchOptions, LspSandbox, StartPermission};
use crate::lsp_tool::LspTool;
use crate::server_entry::LspServerEntry;
use crate::server_pool::{PoolOptions, ServerPool};
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use toolgate_gate::{Gate, RegisterError, Source, SourceTools};
use toolgate_proto::{AbsPath, Code, Refusal, SourceId};

/// Brings the tool behind a gate. Closing the source ends every server.
pub struct LspSource {
    name: &'static str,
    pool: Arc<ServerPool>,
    /// For the calls that the tool makes.
    source_tools: Arc<OnceLock<Arc<SourceTools>>>,
}

impl LspSource {
    /// The source of the tool with this name: `LSP`, or `lsp` in the plain toolset.
    pub fn new(name: &'static str, pool: Arc<ServerPool>) -> Self {
        Self { name, pool, source_tools: Arc::default() }
    }
}

/// Registers the tool if a server is installed: without one it could only refuse, and would take room in every prompt.
fn register_if_installed(
    name: &'static str,
    pool: &Arc<ServerPool>,
    source_tools: &Arc<OnceLock<Arc<SourceTools>>>,
    tools: &SourceTools,
) -> Result<(), RegisterError> {
    match pool.has_installed() {
        true => {
            tools.register(LspTool { name, pool: Arc::clone(pool), source_tools: Arc::clone(source_tools) })
        }
        false => Ok(()),
    }
}

impl Source for LspSource {
    fn id(&self) -> SourceId {
        SourceId::Builtin
    }

    fn tools(&self, tools: &SourceTools) -> Result<(), RegisterError> {
        register_if_installed(self.name, &self.pool, &self.source_tools, tools)
    }

    fn start(&self, tools: &Arc<SourceTools>) -> Result<(), RegisterError> {
        let _ = self.source_tools.set(Arc::clone(tools));
        let (name, pool) = (self.name, Arc::downgrade(&self.pool));
        let (tools, source_tools) = (Arc::downgrade(tools), Arc::downgrade(&self.source_tools));
        self.pool.set_change_callback(move || {
            let (Some(pool), Some(tools), Some(source_tools)) =
                (pool.upgrade(), tools.upgrade(), source_tools.upgrade())
            else {
                return;
            };
            // A tool that cannot be registered stays as it is; the next change tries again.
            let _ = tools.replace_all(|tools| register_if_installed(name, &pool, &source_tools, tools));
        });
        Ok(())
    }

    /// Without a server the tool is not there, and the nearest name would be that of another tool (`ls`).
    fn expects_tool(&self, name: &str) -> Option<SourceId> {
        name.eq_ignore_ascii_case(self.name).then(|| self.id())
    }

    fn wait_for_tool<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Refusal>> {
        let refusal = (!self.pool.has_installed()).then(|| {
            let reason = format!("there is no tool `{name}` here, because no language server is installed");
            Refusal::new(Code::UnknownTool, reason).hint(
                "use Grep or another search; the user can run `toolgate lsp`, which says how to install one",
            )
        });
        Box::pin(std::future::ready(refusal))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.pool.close())
    }
}

/// Lets no server start.
struct NoServers;

impl StartPermission for NoServers {
    fn check_start(&self, entry: &LspServerEntry) -> Result<Option<LspSandbox>, String> {
        Err(format!("`{}` cannot be started by a check", entry.name))
    }
}

/// Registers the tool without servers, in a gate that judges calls and runs none: there it is known also where no server is
/// installed.
pub fn register_without_servers(name: &'static str, gate: &Gate) -> Result<(), RegisterError> {
    let launch = LaunchOptions::new(BTreeMap::new(), AbsPath::root(), Arc::new(NoServers));
    let pool = ServerPool::new(PoolOptions::new(Vec::new(), launch));
    gate.register(SourceId::Builtin, LspTool { name, pool, source_tools: Arc::default() })
}
