//! Which hosts a page may reach: the one that the call was granted, and those that rules allow.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use toolgate_gate::{HostRules, HostVerdict};
use toolgate_process::HostDecision;

/// The decision about hosts, shared with the proxy. Each call of a session puts its own rules in.
#[derive(Clone, Default)]
pub(crate) struct BrowserHosts {
    /// Behind a lock, because the proxy asks from its own threads.
    inner: Arc<Mutex<HostGrants>>,
}

/// What is behind the lock. Without rules nothing is allowed.
#[derive(Default)]
struct HostGrants {
    /// The rules of the call that runs.
    rules: Option<HostRules>,
    /// Hosts and ports of URLs that calls were granted.
    granted: BTreeSet<(String, u16)>,
}

impl BrowserHosts {
    /// Takes the rules of a call.
    pub(crate) fn set_rules(&self, rules: &HostRules) {
        self.lock().rules = Some(rules.clone());
    }

    /// Grants the host and port of a URL that a call was granted.
    pub(crate) fn grant_url(&self, url: &str) {
        let Ok(url) = url::Url::parse(url) else { return };
        if let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) {
            self.lock().granted.insert((plain_host(host), port));
        }
    }

    /// The decision about a host, for the proxy. A denial of the rules comes before a grant.
    pub(super) fn decide(&self, host: &str, port: u16) -> HostDecision {
        let grants = self.lock();
        let Some(rules) = &grants.rules else { return HostDecision::NoMatch };
        match rules.check_host(host, port) {
            HostVerdict::Allowed { is_named_private } => HostDecision::Allow { is_named_private },
            HostVerdict::Denied(reason) => HostDecision::Deny(reason),
            HostVerdict::Undecided if grants.granted.contains(&(plain_host(host), port)) => {
                HostDecision::Allow { is_named_private: false }
            }
            HostVerdict::Undecided => HostDecision::NoMatch,
        }
    }

    /// The grants; a panic of another thread cannot leave them half changed.
    fn lock(&self) -> MutexGuard<'_, HostGrants> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A host in one spelling: without the brackets of an IPv6 address, in lower case.
fn plain_host(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches([']', '.']).to_ascii_lowercase()
}
