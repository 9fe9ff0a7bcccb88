//! Fetches: by a tool, and by a command.

use super::Policy;
use super::case::{Case, Force, Grant, Stage};
use super::paths::AccessOrigin;
use crate::compile::Compiled;
use crate::raw::Action;
use crate::rule::domain::{DomainHit, DomainIndex, DomainPorts};
use crate::rule::grammar;
use crate::url::{AddressClass, Target};
use toolgate_proto::{Code, Mode, Reason, Severity};
use url::Host;

impl Policy {
    /// What rules and settings say of a host, leaving aside how its address is spelled: for redirects, and for the
    /// connections of a command that runs behind the filtering proxy.
    pub fn judge_target(&self, target: &Target) -> (Action, Reason) {
        let compiled = &*self.compiled;
        if let Some(reason) = host_denial(compiled, target).or_else(|| private_host_denial(compiled, target))
        {
            return (Action::Deny, reason);
        }
        if let Some(hit) = find_restricting_rule(&compiled.ask.domains, target) {
            let reason = Reason::new(Code::NobodyToAsk, "a rule wants a person to be asked about the host");
            return (Action::Ask, with_rule(compiled, reason, hit.id));
        }
        let bare = compiled.allow.tools.find_name("WebFetch").map(Grant::Rule);
        match host_allow_reason(compiled, target, bare) {
            Some(ground) => (Action::Allow, Reason::new(Code::DeniedByRule, ground.text)),
            None => (
                Action::Ask,
                Reason::new(Code::NobodyToAsk, format!("no rule allows `{}`", target.host_text())),
            ),
        }
    }

    /// The rule or list that denies a host, whatever else would grant it.
    pub fn target_denial(&self, target: &Target) -> Option<Reason> {
        host_denial(&self.compiled, target)
    }

    /// Whether a private host was named by the person: by a setting, or by an allow rule that spells it.
    pub(crate) fn names_private(&self, host: &Host<String>) -> bool {
        names_private(&self.compiled, host)
    }
}

fn names_private(compiled: &Compiled, host: &Host<String>) -> bool {
    compiled.fetch.private.contains(host)
        || (crate::url::host_class(host).is_some() && compiled.allow.domains.hits(host).any(|hit| hit.named))
}

fn first(hits: impl Iterator<Item = DomainHit>) -> Option<DomainHit> {
    hits.min_by_key(|hit| hit.id)
}

fn with_rule(compiled: &Compiled, reason: Reason, id: u32) -> Reason {
    Reason { rule: compiled.reference(id), ..reason }
}

/// The first rule of a list that holds back a host: all of its ports, or the one that the rule names.
fn find_restricting_rule(index: &DomainIndex, target: &Target) -> Option<DomainHit> {
    first(index.hits(&target.host).filter(|hit| match hit.ports {
        DomainPorts::Usual | DomainPorts::Every => true,
        DomainPorts::Only(port) => port == target.port,
    }))
}

/// A deny rule or the blocked list.
fn host_denial(compiled: &Compiled, target: &Target) -> Option<Reason> {
    let host = target.host_text();
    if let Some(hit) = find_restricting_rule(&compiled.deny.domains, target) {
        let reason = Reason::new(Code::DeniedByRule, format!("a rule denies `{host}`"));
        return Some(with_rule(compiled, reason, hit.id));
    }
    let blocked = find_restricting_rule(&compiled.fetch.blocked, target);
    blocked.map(|_| Reason::new(Code::DeniedByRule, format!("`{host}` is blocked")))
}

fn private_host_denial(compiled: &Compiled, target: &Target) -> Option<Reason> {
    let class = target.private()?;
    if names_private(compiled, &target.host) {
        return None;
    }
    let text = format!("`{}` is {class}, and no rule names it", target.host_text());
    Some(Reason::new(Code::DeniedByRule, text))
}

/// Why a host may be fetched from.
pub(crate) struct Ground {
    pub(crate) text: String,
    pub(crate) rule: Option<u32>,
}

/// What allows a host, port included. A host that reads like another one must be spelled by a rule.
fn host_allow_reason(compiled: &Compiled, target: &Target, grant: Option<Grant>) -> Option<Ground> {
    let usual = matches!(target.port, 80 | 443);
    let fits = |hit: &DomainHit| {
        let port = match hit.ports {
            // Whoever names a private host means the server that runs there, whichever port it has.
            DomainPorts::Usual => usual || (hit.named && target.private().is_some()),
            DomainPorts::Only(port) => port == target.port,
            DomainPorts::Every => true,
        };
        port && (hit.named || !target.confusable)
    };
    let hit = |index: &DomainIndex| first(index.hits(&target.host).filter(fits));
    if let Some(hit) = hit(&compiled.allow.domains) {
        return Some(Ground { text: "a rule allows the host".to_owned(), rule: Some(hit.id) });
    }
    if hit(&compiled.fetch.allowed).is_some() {
        return Some(Ground { text: "the host is approved in advance".to_owned(), rule: None });
    }
    if !usual || target.confusable {
        return None;
    }
    if compiled.fetch.auto_approve_https && target.url.scheme() == "https" && target.port == 443 {
        return Some(Ground { text: "public hosts are approved over https".to_owned(), rule: None });
    }
    match grant? {
        Grant::Rule(id) => Some(Ground { text: "a rule allows every host".to_owned(), rule: Some(id) }),
        Grant::Book => Some(Ground { text: "the policy book allows the tool".to_owned(), rule: None }),
    }
}

impl Case<'_> {
    /// A fetch by a tool.
    pub(crate) fn check_fetch(&mut self, url: &str) {
        let target = match Target::parse(url) {
            Ok(target) => target,
            Err(why) => {
                self.object(Force::Deny, Stage::Risks, Reason::new(Code::Fetch, why));
                return;
            }
        };
        let compiled = self.compiled;
        if let Some(reason) = host_denial(compiled, &target) {
            self.object(Force::Deny, Stage::DenyRules, reason);
        }
        if let Some(reason) = private_host_denial(compiled, &target) {
            self.object(Force::Deny, Stage::Risks, reason);
        }
        self.ask_about_host(&target);
        for odd in &target.oddities {
            self.warn("url_spelling", Severity::High, odd.clone());
            self.object(Force::Explicit, Stage::Risks, Reason::new(Code::NobodyToAsk, odd.clone()));
        }
        if target.confusable {
            let text = format!("`{}` reads like another host", target.host_text());
            self.warn("confusable_host", Severity::High, text);
        }
        let bare = compiled.allow.tools.find_name("WebFetch").map(Grant::Rule);
        match host_allow_reason(compiled, &target, self.grant.or(bare)) {
            Some(ground) => self.ground(ground.text, ground.rule),
            None => {
                let host = target.host_text();
                let usual = matches!(target.port, 80 | 443);
                let named = if usual { host.clone() } else { format!("{host}:{}", target.port) };
                self.uncovered(
                    format!("no rule allows to fetch from `{named}`"),
                    Some(grammar::write("WebFetch", &format!("domain:{named}"))),
                );
            }
        }
    }

    fn ask_about_host(&mut self, target: &Target) {
        if let Some(hit) = find_restricting_rule(&self.compiled.ask.domains, target) {
            let text = format!("a rule wants a person to be asked about `{}`", target.host_text());
            self.add_rule_objection(Force::Explicit, Stage::AskRules, Code::NobodyToAsk, text, hit.id);
        }
    }

    /// A fetch that follows from the words of a command. A rule for the command covers it, but for deny and ask rules
    /// on the host and for metadata services, which no command needs by accident.
    pub(crate) fn check_inferred_fetch(&mut self, url: &str, via: AccessOrigin, rule: Option<u32>) {
        let target = Target::parse(url).or_else(|_| Target::parse(&format!("http://{url}")));
        let Ok(target) = target else {
            if via == AccessOrigin::Redirect || via == AccessOrigin::Command {
                self.uncovered(format!("the command reaches `{url}`"), None);
            }
            return;
        };
        if let Some(reason) = host_denial(self.compiled, &target) {
            self.object(Force::Deny, Stage::DenyRules, reason);
        }
        self.ask_about_host(&target);
        let host = target.host_text();
        let spelled =
            rule.and_then(|id| self.compiled.written(id)).is_some_and(|rule| rule.text.contains(&host));
        let metadata = matches!(target.private(), Some(AddressClass::Metadata | AddressClass::LinkLocal));
        if metadata && !spelled {
            let text = format!("the command reaches `{host}`, a metadata service");
            self.warn("metadata_service", Severity::Critical, text.clone());
            self.object(Force::Explicit, Stage::Risks, Reason::new(Code::NobodyToAsk, text));
        }
        if via == AccessOrigin::Redirect && self.mode != Mode::Bypass {
            self.uncovered(format!("a redirect reaches `{host}`"), None);
        }
    }
}
