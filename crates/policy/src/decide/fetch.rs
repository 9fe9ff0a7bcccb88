//! Fetches: by a tool, and by a command.

use super::Policy;
use super::evaluation::{ObjectionKind, PolicyCheck, PolicyEvaluation, ToolWideGrant};
use super::paths::AccessOrigin;
use crate::compile::CompiledPolicy;
use crate::raw::RuleAction;
use crate::rule::domain::{DomainHit, DomainIndex, DomainPorts};
use crate::rule::grammar;
use crate::url::{AddressClass, FetchTarget};
use toolgate_proto::host_pattern::{Host, host_address};
use toolgate_proto::{Code, Mode, RiskLevel, VerdictReason};

impl Policy {
    /// What rules and settings say of a host, leaving aside how its address is spelled: for redirects, and for the
    /// connections of a command that runs behind the filtering proxy.
    pub fn judge_target(&self, target: &FetchTarget) -> (RuleAction, VerdictReason) {
        let compiled = &*self.compiled;
        if let Some(reason) = host_denial(compiled, target).or_else(|| private_host_denial(compiled, target))
        {
            return (RuleAction::Deny, reason);
        }
        if let Some(hit) = find_restricting_rule(&compiled.ask.domains, target) {
            let reason =
                VerdictReason::new(Code::NobodyToAsk, "a rule wants a person to be asked about the host");
            return (RuleAction::Ask, with_rule(compiled, reason, hit.id));
        }
        let bare = compiled.allow.tools.find_name("WebFetch").map(ToolWideGrant::Rule);
        match host_allow_reason(compiled, target, bare) {
            Some(ground) => (RuleAction::Allow, VerdictReason::new(Code::DeniedByRule, ground.text)),
            None => (
                RuleAction::Ask,
                VerdictReason::new(Code::NobodyToAsk, format!("no rule allows `{}`", target.host_text())),
            ),
        }
    }

    /// The rule or list that denies a host, whatever else would grant it.
    pub fn target_denial(&self, target: &FetchTarget) -> Option<VerdictReason> {
        host_denial(&self.compiled, target)
    }

    /// Whether a private host was named by the person: by a setting, or by an allow rule that spells it.
    pub(crate) fn is_named_private_host(&self, host: &Host<String>) -> bool {
        is_named_private_host(&self.compiled, host)
    }
}

fn is_named_private_host(compiled: &CompiledPolicy, host: &Host<String>) -> bool {
    compiled.fetch.private.contains(host)
        || (crate::url::host_class(host).is_some() && compiled.allow.domains.hits(host).any(|hit| hit.named))
}

fn first_hit(hits: impl Iterator<Item = DomainHit>) -> Option<DomainHit> {
    hits.min_by_key(|hit| hit.id)
}

fn with_rule(compiled: &CompiledPolicy, reason: VerdictReason, id: u32) -> VerdictReason {
    VerdictReason { rule: compiled.reference(id), ..reason }
}

/// The first rule of a list that holds back a host: all of its ports, or the one that the rule names.
fn find_restricting_rule(index: &DomainIndex, target: &FetchTarget) -> Option<DomainHit> {
    first_hit(index.hits(&target.host).filter(|hit| match hit.ports {
        DomainPorts::Usual | DomainPorts::Every => true,
        DomainPorts::Only(port) => port == target.port,
    }))
}

/// A deny rule or the blocked list.
fn host_denial(compiled: &CompiledPolicy, target: &FetchTarget) -> Option<VerdictReason> {
    let host = target.host_text();
    if let Some(hit) = find_restricting_rule(&compiled.deny.domains, target) {
        let reason = VerdictReason::new(Code::DeniedByRule, format!("a rule denies `{host}`"));
        return Some(with_rule(compiled, reason, hit.id));
    }
    let blocked = find_restricting_rule(&compiled.fetch.blocked, target);
    blocked.map(|_| VerdictReason::new(Code::DeniedByRule, format!("`{host}` is blocked")))
}

fn private_host_denial(compiled: &CompiledPolicy, target: &FetchTarget) -> Option<VerdictReason> {
    let class = target.private_class()?;
    if is_named_private_host(compiled, &target.host) {
        return None;
    }
    let text = format!("`{}` is {class}, and no rule names it", target.host_text());
    Some(VerdictReason::new(Code::DeniedByRule, text))
}

/// Why a host may be fetched from.
pub(crate) struct HostAllowReason {
    pub(crate) text: String,
    pub(crate) rule: Option<u32>,
}

/// What allows a host, port included. A host that reads like another one must be spelled by a rule.
fn host_allow_reason(
    compiled: &CompiledPolicy,
    target: &FetchTarget,
    grant: Option<ToolWideGrant>,
) -> Option<HostAllowReason> {
    let usual = matches!(target.port, 80 | 443);
    let fits = |hit: &DomainHit| {
        let port = match hit.ports {
            // Whoever names a private host means the server that runs there, whichever port it has.
            DomainPorts::Usual => usual || (hit.named && target.private_class().is_some()),
            DomainPorts::Only(port) => port == target.port,
            DomainPorts::Every => true,
        };
        // An unnamed hit is a pattern with a wildcard, which grants names only (`HostPattern::grants`).
        port && (hit.named || !target.confusable && host_address(&target.host).is_none())
    };
    let hit = |index: &DomainIndex| first_hit(index.hits(&target.host).filter(fits));
    if let Some(hit) = hit(&compiled.allow.domains) {
        return Some(HostAllowReason { text: "a rule allows the host".to_owned(), rule: Some(hit.id) });
    }
    if hit(&compiled.fetch.allowed).is_some() {
        return Some(HostAllowReason { text: "the host is approved in advance".to_owned(), rule: None });
    }
    if !usual || target.confusable {
        return None;
    }
    if compiled.fetch.auto_approve_https && target.url.scheme() == "https" && target.port == 443 {
        return Some(HostAllowReason { text: "public hosts are approved over https".to_owned(), rule: None });
    }
    match grant? {
        ToolWideGrant::Rule(id) => {
            Some(HostAllowReason { text: "a rule allows every host".to_owned(), rule: Some(id) })
        }
        ToolWideGrant::Book => {
            Some(HostAllowReason { text: "the policy book allows the tool".to_owned(), rule: None })
        }
    }
}

impl PolicyEvaluation<'_> {
    /// A fetch by a tool.
    pub(crate) fn check_fetch(&mut self, url: &str) {
        let target = match FetchTarget::parse(url) {
            Ok(target) => target,
            Err(why) => {
                self.add_objection(
                    ObjectionKind::Deny,
                    PolicyCheck::Risks,
                    VerdictReason::new(Code::Fetch, why),
                );
                return;
            }
        };
        let compiled = self.compiled;
        if let Some(reason) = host_denial(compiled, &target) {
            self.add_objection(ObjectionKind::Deny, PolicyCheck::DenyRules, reason);
        }
        if let Some(reason) = private_host_denial(compiled, &target) {
            self.add_objection(ObjectionKind::Deny, PolicyCheck::Risks, reason);
        }
        self.ask_about_host(&target);
        for odd in &target.oddities {
            self.add_warning("url_spelling", RiskLevel::High, odd.clone());
            self.add_objection(
                ObjectionKind::Explicit,
                PolicyCheck::Risks,
                VerdictReason::new(Code::NobodyToAsk, odd.clone()),
            );
        }
        if target.confusable {
            let text = format!("`{}` reads like another host", target.host_text());
            self.add_warning("confusable_host", RiskLevel::High, text);
        }
        let bare = compiled.allow.tools.find_name("WebFetch").map(ToolWideGrant::Rule);
        match host_allow_reason(compiled, &target, self.grant.or(bare)) {
            Some(ground) => self.add_allow_reason(ground.text, ground.rule),
            None => {
                let host = target.host_text();
                let usual = matches!(target.port, 80 | 443);
                let named = if usual { host.clone() } else { format!("{host}:{}", target.port) };
                self.add_uncovered_objection(
                    format!("no rule allows to fetch from `{named}`"),
                    Some(grammar::write_rule("WebFetch", &format!("domain:{named}"))),
                );
            }
        }
    }

    fn ask_about_host(&mut self, target: &FetchTarget) {
        if let Some(hit) = find_restricting_rule(&self.compiled.ask.domains, target) {
            let text = format!("a rule wants a person to be asked about `{}`", target.host_text());
            self.add_rule_objection(
                ObjectionKind::Explicit,
                PolicyCheck::AskRules,
                Code::NobodyToAsk,
                text,
                hit.id,
            );
        }
    }

    /// A fetch that follows from the words of a command. A rule for the command covers it, but for deny and ask rules
    /// on the host and for metadata services, which no command needs by accident.
    pub(crate) fn check_inferred_fetch(&mut self, url: &str, via: AccessOrigin, rule: Option<u32>) {
        let target = FetchTarget::parse(url).or_else(|_| FetchTarget::parse(&format!("http://{url}")));
        let Ok(target) = target else {
            if via == AccessOrigin::Redirect || via == AccessOrigin::Command {
                self.add_uncovered_objection(format!("the command reaches `{url}`"), None);
            }
            return;
        };
        if let Some(reason) = host_denial(self.compiled, &target) {
            self.add_objection(ObjectionKind::Deny, PolicyCheck::DenyRules, reason);
        }
        self.ask_about_host(&target);
        let host = target.host_text();
        let spelled =
            rule.and_then(|id| self.compiled.rule_entry(id)).is_some_and(|rule| rule.text.contains(&host));
        let metadata =
            matches!(target.private_class(), Some(AddressClass::Metadata | AddressClass::LinkLocal));
        if metadata && !spelled {
            let text = format!("the command reaches `{host}`, a metadata service");
            self.add_warning("metadata_service", RiskLevel::Critical, text.clone());
            self.add_objection(
                ObjectionKind::Explicit,
                PolicyCheck::Risks,
                VerdictReason::new(Code::NobodyToAsk, text),
            );
        }
        if via == AccessOrigin::Redirect && self.mode != Mode::Bypass {
            self.add_uncovered_objection(format!("a redirect reaches `{host}`"), None);
        }
    }
}
