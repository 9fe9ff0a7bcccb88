//! Compiles the host lists of [`FetchSettings`].

use crate::compile::invalid_rule_severity;
use crate::lint;
use crate::raw::{RuleAction, RuleProblem};
use crate::rule::domain::{DomainIndex, DomainPattern};
use crate::url::FetchSettings;
use toolgate_proto::RuleRef;

/// [`FetchSettings`], compiled.
#[derive(Debug, Clone, Default)]
pub(crate) struct CompiledFetchSettings {
    /// Hosts that need no rule.
    pub(crate) allowed: DomainIndex,
    /// Hosts that are denied.
    pub(crate) blocked: DomainIndex,
    /// Every public host needs no rule over https.
    pub(crate) auto_approve_https: bool,
    /// Private hosts that are named, so that they are not denied as private.
    pub(crate) private: DomainIndex,
}

impl CompiledFetchSettings {
    /// Parses the host lists. An invalid entry of `blockedDomains` is fatal like an invalid deny rule.
    pub(crate) fn compile(settings: &FetchSettings, problems: &mut Vec<RuleProblem>) -> Self {
        let mut out = Self { auto_approve_https: settings.auto_approve_https, ..Self::default() };
        let mut add_hosts = |hosts: &[String], action: RuleAction, into: &mut DomainIndex| {
            for host in hosts {
                match DomainPattern::parse(&format!("domain:{host}")) {
                    Ok(pattern) => into.add(0, pattern),
                    Err(bad) => {
                        problems.push(RuleProblem {
                            rule: host_list_reference(host, action),
                            weight: invalid_rule_severity(action),
                            message: bad.message,
                            fix: bad.fix,
                        });
                    }
                }
            }
        };
        add_hosts(&settings.allowed_domains, RuleAction::Allow, &mut out.allowed);
        add_hosts(&settings.blocked_domains, RuleAction::Deny, &mut out.blocked);
        for host in &settings.allow_private {
            match DomainPattern::parse(&format!("domain:{host}")) {
                Ok(pattern) if !host.contains('*') => out.private.add(0, pattern),
                Ok(_) | Err(_) => problems.push(lint::warning(
                    host_list_reference(host, RuleAction::Allow),
                    "this is not a host name or an IP address",
                    "write a host name or an IP address, with a port if only that one is meant",
                )),
            }
        }
        out
    }
}

/// The reference to an entry of a host list, which has no rule text of its own.
fn host_list_reference(host: &str, action: RuleAction) -> RuleRef {
    RuleRef {
        text: host.to_owned(),
        action: action.to_string(),
        layer: "settings".to_owned(),
        file: None,
        line: None,
    }
}
