//! The list of a server's tools, with limits for a server that never ends it.

use super::connection::OpenConnection;
use rmcp::model::PaginatedRequestParams;
use rmcp::service::ServiceError;

/// More tools than this from one server are not taken.
const MAX_TOOLS_PER_SERVER: usize = 512;
/// More pages than this are not asked for.
const MAX_LIST_PAGES: usize = 64;

/// Why there is no list.
pub(super) enum ToolListError {
    /// The request failed; it may have been an authorization challenge.
    Request(ServiceError),
    /// The list was answered and breaks a limit.
    Invalid(String),
}

/// Reads all pages of the tool list. A repeated cursor ends the list; the limits stop a server that never ends it.
pub(super) async fn list_tools(live: &OpenConnection) -> Result<Vec<rmcp::model::Tool>, ToolListError> {
    let mut tools = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_LIST_PAGES {
        let page = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let page = live.peer.list_tools(Some(page)).await.map_err(ToolListError::Request)?;
        tools.extend(page.tools);
        if tools.len() > MAX_TOOLS_PER_SERVER {
            return Err(ToolListError::Invalid(format!("it has more than {MAX_TOOLS_PER_SERVER} tools")));
        }
        match page.next_cursor {
            Some(next) if Some(&next) != cursor.as_ref() => cursor = Some(next),
            _ => return Ok(tools),
        }
    }
    Err(ToolListError::Invalid("the list does not end".to_owned()))
}
