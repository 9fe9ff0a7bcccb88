//! Reaching servers over HTTP.

use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use std::collections::{BTreeMap, HashMap};
use toolgate_os::{HttpClient, http_client};

/// A transport to an address, with these headers on every request.
pub(crate) fn transport(
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<StreamableHttpClientTransport<HttpClient>, String> {
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let name =
            http::HeaderName::try_from(name).map_err(|_| format!("`{name}` is no name of a header"))?;
        let mut value = http::HeaderValue::try_from(value)
            .map_err(|_| format!("the value of the header `{name}` cannot be sent"))?;
        value.set_sensitive(true);
        custom.insert(name, value);
    }
    let client = http_client().map_err(|error| format!("no HTTP client: {error}"))?;
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(custom)
        .reinit_on_expired_session(true);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}
