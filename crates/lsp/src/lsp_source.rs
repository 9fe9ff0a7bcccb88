//! The source of the tool, and the end of its servers.

use crate::lsp_tool::LspTool;
use crate::server_pool::ServerPool;
use futures_util::future::BoxFuture;
use std::sync::{Arc, OnceLock};
use toolgate_gate::{RegisterError, Source, SourceTools};
use toolgate_proto::SourceId;

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

impl Source for LspSource {
    fn id(&self) -> SourceId {
        SourceId::Builtin
    }

    fn tools(&self, tools: &SourceTools) -> Result<(), RegisterError> {
        // Without a server the tool could only refuse, and would take room in every prompt.
        if self.pool.has_installed() {
            tools.register(LspTool {
                name: self.name,
                pool: Arc::clone(&self.pool),
                source_tools: Arc::clone(&self.source_tools),
            })?;
        }
        Ok(())
    }

    fn start(&self, tools: &Arc<SourceTools>) -> Result<(), RegisterError> {
        let _ = self.source_tools.set(Arc::clone(tools));
        Ok(())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.pool.close())
    }
}
