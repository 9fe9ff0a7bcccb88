//! Rules for hosts that were not known when the call was judged.
//!
//! A command behind the filtering proxy names its hosts while it runs. The proxy asks here about each.

use std::net::IpAddr;
use std::sync::Arc;
use toolgate_policy::url::FetchTarget;
pub use toolgate_policy::url::RedirectDecision;
use toolgate_policy::{Policy, RuleAction};

/// The rules for hosts, as they were when the call was judged.
#[derive(Clone)]
pub struct HostRules {
    policy: Arc<Policy>,
}

/// The verdict on one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostVerdict {
    /// A rule allows it.
    Allowed {
        /// The user named it as a host that is not public, so it may have a private address.
        is_named_private: bool,
    },
    /// A rule or a list denies it, whatever else was granted; the reason as text.
    Denied(String),
    /// No rule allows it, or the user would have to be asked.
    Undecided,
}

impl HostRules {
    /// The rules for hosts of this policy.
    pub(crate) fn new(policy: Arc<Policy>) -> Self {
        Self { policy }
    }

    /// The verdict on a host: a name or an address.
    pub fn check_host(&self, host: &str, port: u16) -> HostVerdict {
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let scheme = if port == 80 { "http" } else { "https" };
        let target = match FetchTarget::parse(&format!("{scheme}://{host}:{port}/")) {
            Ok(target) => target,
            Err(problem) => return HostVerdict::Denied(problem),
        };
        if let Some(reason) = self.policy.target_denial(&target) {
            return HostVerdict::Denied(reason.text);
        }
        match self.policy.judge_target(&target).0 {
            RuleAction::Allow => {
                HostVerdict::Allowed { is_named_private: self.policy.is_named_private_host(&target) }
            }
            RuleAction::Ask | RuleAction::Deny => HostVerdict::Undecided,
        }
    }

    /// Judges a redirect that a server sent to a fetch tool, by its text.
    pub fn judge_redirect(&self, from: &str, location: &str) -> RedirectDecision {
        self.policy.judge_redirect(from, location)
    }

    /// Checks every address that the host of a URL resolved to. An error is the reason.
    pub fn check_addresses(&self, url: &str, addresses: &[IpAddr]) -> Result<(), String> {
        self.policy.check_addresses(url, addresses)
    }

    /// Whether both are the same rules.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.policy, &other.policy)
    }
}

impl std::fmt::Debug for HostRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostRules").finish_non_exhaustive()
    }
}
