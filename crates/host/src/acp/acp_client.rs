//! The editor's side of one session.

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ClientCapabilities, ContentBlock, ContentChunk, SessionId, SessionNotification, SessionUpdate,
    TextContent,
};
use agent_client_protocol::{Client, JsonRpcRequest};
use std::sync::Arc;

/// The editor, for one session. Clones share the connection.
#[derive(Debug, Clone)]
pub struct AcpClient {
    /// The connection, which all sessions share.
    connection: ConnectionTo<Client>,
    /// The session that everything sent here is about.
    session: SessionId,
    /// What the editor can do.
    capabilities: Arc<ClientCapabilities>,
}

impl AcpClient {
    /// The editor, for a session.
    pub(crate) fn new(
        connection: ConnectionTo<Client>,
        session: impl Into<SessionId>,
        capabilities: Arc<ClientCapabilities>,
    ) -> Self {
        Self { connection, session: session.into(), capabilities }
    }

    /// The id of the session.
    pub fn session_id(&self) -> &str {
        &self.session.0
    }

    /// The session, as messages carry it.
    pub(crate) fn session(&self) -> SessionId {
        self.session.clone()
    }

    /// What the editor can do.
    pub(crate) fn capabilities(&self) -> &ClientCapabilities {
        &self.capabilities
    }

    /// Sends an update.
    pub(crate) fn update(&self, update: SessionUpdate) {
        // An error means that the editor is gone; the end of the connection shows that.
        let _ = self.connection.send_notification(SessionNotification::new(self.session(), update));
    }

    /// Sends a piece of the agent's answer.
    pub(crate) fn send_text(&self, text: impl Into<String>) {
        self.update(SessionUpdate::AgentMessageChunk(text_chunk(text)));
    }

    /// Sends a request and waits for the answer. Dropping the future withdraws the request.
    pub(crate) async fn request<R: JsonRpcRequest>(&self, request: R) -> Result<R::Response, String> {
        let answer = self.connection.send_request(request).block_task().await;
        answer.map_err(|error| error.message)
    }
}

/// A piece of text.
pub(crate) fn text_chunk(text: impl Into<String>) -> ContentChunk {
    ContentChunk::new(ContentBlock::Text(TextContent::new(text)))
}
