//! Which proxy of the environment a connection of the sandbox goes through: the one that `WebFetch` would use.

use std::collections::BTreeMap;
use toolgate_process::UpstreamChoice;

/// The variables of an environment that choose proxies.
pub(crate) fn proxy_variables(environment: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let is_choice = |name: &str| name.to_ascii_lowercase().ends_with("_proxy");
    let chosen = environment.iter().filter(|(name, _)| is_choice(name));
    chosen.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The choice by an environment.
#[cfg(feature = "web")]
pub(crate) fn choose_upstream(environment: &BTreeMap<String, String>) -> UpstreamChoice {
    let table = toolgate_net::web::ProxyTable::from_environment(environment);
    Box::new(move |query| {
        let table = table.as_ref().map_err(Clone::clone)?;
        let found = table.find(query.scheme, query.host, query.addresses);
        Ok(found.map(|proxy| toolgate_process::UpstreamProxy {
            host: proxy.host.clone(),
            port: proxy.port,
            authorization: proxy.authorization.clone(),
        }))
    })
}

/// Without the web tools there is no table of proxies, and every connection is direct.
#[cfg(not(feature = "web"))]
pub(crate) fn choose_upstream(_environment: &BTreeMap<String, String>) -> UpstreamChoice {
    Box::new(|_| Ok(None))
}
