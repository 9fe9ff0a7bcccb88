//! Compiles the host lists of [`FetchSettings`].

use crate::compile::invalid_rule_severity;
use crate::raw::{RuleAction, RuleProblem};
use crate::rule::domain::{DomainIndex, DomainPattern, intended_host};
use crate::setting_places::SettingPlaces;
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
    pub(crate) fn compile(
        settings: &FetchSettings,
        places: &SettingPlaces,
        problems: &mut Vec<RuleProblem>,
    ) -> Self {
        let mut out = Self { auto_approve_https: settings.auto_approve_https, ..Self::default() };
        let mut add_hosts = |list: HostList, hosts: &[String], into: &mut DomainIndex| {
            for host in hosts {
                match DomainPattern::parse_host(host) {
                    Ok(pattern) if list.takes_patterns || !host.contains('*') => into.add(0, pattern),
                    Ok(_) => problems.push(list.problem(host, "a pattern names no single host", places)),
                    Err(message) => problems.push(list.problem(host, &message, places)),
                }
            }
        };
        let allow = HostList { key: "allowedDomains", action: RuleAction::Allow, takes_patterns: true };
        add_hosts(allow, &settings.allowed_domains, &mut out.allowed);
        let block = HostList { key: "blockedDomains", action: RuleAction::Deny, takes_patterns: true };
        add_hosts(block, &settings.blocked_domains, &mut out.blocked);
        let private = HostList { key: "allowPrivate", action: RuleAction::Allow, takes_patterns: false };
        add_hosts(private, &settings.allow_private, &mut out.private);
        out
    }
}

/// One of the host lists of `preApproval`.
#[derive(Debug, Clone, Copy)]
struct HostList {
    /// Its key.
    key: &'static str,
    /// What an entry does.
    action: RuleAction,
    /// Whether an entry may contain `*`.
    takes_patterns: bool,
}

impl HostList {
    /// The problem of an entry, which has no rule text of its own, at its place.
    fn problem(self, host: &str, message: &str, places: &SettingPlaces) -> RuleProblem {
        let key = format!("preApproval.{}", self.key);
        let place = places.get(&format!("{key}.{host}"));
        let rule = RuleRef::new(
            host,
            self.action.to_string(),
            place.map_or_else(|| "settings".to_owned(), |place| place.layer.to_string()),
        )
        .with_place(place.and_then(|place| place.file.clone()), place.and_then(|place| place.line));
        let meant = intended_host(host).filter(|meant| self.takes_patterns || !meant.contains('*'));
        let fix = match meant {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if self.takes_patterns => {
                "write a host, such as `example.com` or `*.example.com`".to_owned()
            }
            None => "write a host name or an IP address, such as `127.0.0.1:8080`".to_owned(),
        };
        let weight = invalid_rule_severity(self.action);
        RuleProblem { rule, weight, message: format!("in `{key}`: {message}"), fix }
    }
}
