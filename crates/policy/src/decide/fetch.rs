//! Fetches: by a tool, by a command, and by redirects and connections behind the filtering proxy.

use super::Policy;
use super::evaluation::{PolicyEvaluation, ToolWideGrant};
use super::objection::{ObjectionKind, ObjectionRemedy, PolicyCheck};
use super::paths::AccessOrigin;
use crate::compile::CompiledPolicy;
use crate::raw::RuleAction;
use crate::rule::domain::{DomainHit, DomainIndex, DomainPorts};
use crate::rule::syntax;
use crate::url::{AddressClass, FetchTarget};
use toolgate_proto::host_pattern::host_address;
use toolgate_proto::{Code, Mode, RiskLevel, RuleSuggestion, VerdictReason};
use toolgate_shell_syntax::CommandPart;

impl Policy {
    /// Judges a host by rules and settings, whatever the spelling of its URL: for redirects, and for the connections of
    /// a command that runs behind the filtering proxy.
    pub fn judge_target(&self, target: &FetchTarget) -> (RuleAction, VerdictReason) {
        let compiled = &*self.compiled;
        if let Some(reason) = host_denial(compiled, target).or_else(|| private_host_denial(compiled, target))
        {
            return (RuleAction::Deny, reason);
        }
        let host = target.host_text();
        if let Some(hit) = find_restricting_rule(&compiled.ask.domains, target) {
            let text = format!("a rule requires approval for host `{host}`");
            let reason = VerdictReason::new(Code::ApprovalUnavailable, text);
            return (RuleAction::Ask, with_rule(compiled, reason, hit.id));
        }
        let bare = compiled.find_allow(|allow| allow.tools.find_name("WebFetch")).map(ToolWideGrant::Rule);
        match host_allow_reason(compiled, target, bare) {
            Some(reason) => (RuleAction::Allow, VerdictReason::new(Code::DeniedByRule, reason.text)),
            None => {
                let text = format!("no rule allows host `{host}`");
                (RuleAction::Ask, VerdictReason::new(Code::ApprovalUnavailable, text))
            }
        }
    }

    /// The rule or setting that denies a host, even if another rule allows it.
    pub fn target_denial(&self, target: &FetchTarget) -> Option<VerdictReason> {
        host_denial(&self.compiled, target)
    }

    /// Whether the user named a private host: in `allowPrivate`, or in an allow rule that spells it out.
    pub fn is_named_private_host(&self, target: &FetchTarget) -> bool {
        is_named_private_host(&self.compiled, target)
    }
}

/// See [`Policy::is_named_private_host`].
fn is_named_private_host(compiled: &CompiledPolicy, target: &FetchTarget) -> bool {
    let names_port = |hit: &DomainHit| match hit.ports {
        DomainPorts::Usual | DomainPorts::Every => true,
        DomainPorts::Only(port) => port == target.port,
    };
    let names = |index: &DomainIndex| index.hits(&target.host).any(|hit| hit.named && names_port(&hit));
    let is_allowed = || compiled.allow_rules().any(|allow| names(&allow.index.domains));
    names(&compiled.fetch.private) || (target.private_class().is_some() && is_allowed())
}

/// The hit of the rule that comes first, whose text messages show.
fn first_hit(hits: impl Iterator<Item = DomainHit>) -> Option<DomainHit> {
    hits.min_by_key(|hit| hit.id)
}

/// The same reason with the rule behind it.
fn with_rule(compiled: &CompiledPolicy, reason: VerdictReason, id: u32) -> VerdictReason {
    reason.with_rule(compiled.reference(id))
}

/// The first deny or ask rule for a host. A rule without a port restricts every port.
fn find_restricting_rule(index: &DomainIndex, target: &FetchTarget) -> Option<DomainHit> {
    first_hit(index.hits(&target.host).filter(|hit| match hit.ports {
        DomainPorts::Usual | DomainPorts::Every => true,
        DomainPorts::Only(port) => port == target.port,
    }))
}

/// A deny rule or an entry of `blockedDomains`.
fn host_denial(compiled: &CompiledPolicy, target: &FetchTarget) -> Option<VerdictReason> {
    let host = target.host_text();
    if let Some(hit) = find_restricting_rule(&compiled.deny.domains, target) {
        let reason = VerdictReason::new(Code::DeniedByRule, format!("host `{host}` is denied by a rule"));
        return Some(with_rule(compiled, reason, hit.id));
    }
    find_restricting_rule(&compiled.fetch.blocked, target).map(|_| {
        let text = format!("host `{host}` is denied by the setting `blockedDomains`");
        VerdictReason::new(Code::DeniedByRule, text)
    })
}

/// A private host that the user did not name: a fetch of it could be a server-side request forgery (SSRF).
fn private_host_denial(compiled: &CompiledPolicy, target: &FetchTarget) -> Option<VerdictReason> {
    let class = target.private_class()?;
    if is_named_private_host(compiled, target) {
        return None;
    }
    let text = format!("host `{}` is {class}, and no allow rule names it", target.host_text());
    Some(VerdictReason::new(Code::DeniedByRule, text))
}

/// Why a host may be fetched from.
pub(crate) struct HostAllowReason {
    /// The text that a judgement shows.
    pub(crate) text: &'static str,
    /// The allow rule, if a rule is the reason.
    pub(crate) rule: Option<u32>,
}

/// What allows a host and its port. A host with look-alike characters must be spelled out by a rule.
fn host_allow_reason(
    compiled: &CompiledPolicy,
    target: &FetchTarget,
    grant: Option<ToolWideGrant>,
) -> Option<HostAllowReason> {
    let has_usual_port = matches!(target.port, 80 | 443);
    let allows = |hit: &DomainHit| {
        let allows_port = match hit.ports {
            // A rule that names a private host means the server that runs there, on whichever port.
            DomainPorts::Usual => has_usual_port || (hit.named && target.private_class().is_some()),
            DomainPorts::Only(port) => port == target.port,
            DomainPorts::Every => true,
        };
        // An unnamed hit is a pattern with a wildcard, which grants names only (`HostPattern::grants`).
        allows_port && (hit.named || !target.confusable && host_address(&target.host).is_none())
    };
    let find = |index: &DomainIndex| first_hit(index.hits(&target.host).filter(allows));
    if let Some(hit) = compiled.allow_rules().find_map(|allow| find(&allow.index.domains)) {
        return Some(HostAllowReason { text: "a rule allows the host", rule: Some(hit.id) });
    }
    if find(&compiled.fetch.allowed).is_some() {
        let text = "the setting `allowedDomains` allows the host";
        return Some(HostAllowReason { text, rule: None });
    }
    if !has_usual_port || target.confusable {
        return None;
    }
    if compiled.fetch.auto_approve_https && target.url.scheme() == "https" && target.port == 443 {
        let text = "the setting `autoApproveHttps` allows public hosts over https";
        return Some(HostAllowReason { text, rule: None });
    }
    Some(match grant? {
        ToolWideGrant::Rule(id) => HostAllowReason { text: "a rule allows every host", rule: Some(id) },
        ToolWideGrant::Book => HostAllowReason { text: "the policy book allows the tool", rule: None },
    })
}

/// The rule for a host and its port.
fn domain_rule(target: &FetchTarget) -> RuleSuggestion {
    let host = target.host_text();
    let has_usual_port = matches!(target.port, 80 | 443);
    let named = if has_usual_port { host } else { format!("{host}:{}", target.port) };
    RuleSuggestion::new(syntax::write_rule("WebFetch", &format!("domain:{named}")))
}

impl PolicyEvaluation<'_> {
    /// Checks a fetch that a tool declared.
    pub(crate) fn check_fetch(&mut self, url: &str) {
        let target = match FetchTarget::parse(url) {
            Ok(target) => target,
            Err(problem) => {
                let reason = VerdictReason::new(Code::Fetch, problem);
                self.add_objection(ObjectionKind::Deny, PolicyCheck::Risks, reason);
                return;
            }
        };
        let compiled = self.compiled;
        self.check_host_denial(&target);
        if let Some(reason) = private_host_denial(compiled, &target) {
            self.add_objection(ObjectionKind::Deny, PolicyCheck::Risks, reason);
            self.set_remedy(ObjectionRemedy::AllowRules(vec![domain_rule(&target)]));
        }
        self.check_host_ask_rules(&target);
        for oddity in &target.oddities {
            self.add_warning("url_spelling", RiskLevel::High, oddity.clone());
            self.ask_about_risk(ObjectionKind::Explicit, oddity.clone());
        }
        if target.confusable {
            let text = format!("host `{}` contains characters that look like others", target.host_text());
            self.add_warning("confusable_host", RiskLevel::High, text);
        }
        let bare = compiled.find_allow(|allow| allow.tools.find_name("WebFetch")).map(ToolWideGrant::Rule);
        match host_allow_reason(compiled, &target, self.grant.or(bare)) {
            Some(reason) => self.add_allow_reason(reason.text, reason.rule),
            None => {
                let host = target.host_text();
                let has_usual_port = matches!(target.port, 80 | 443);
                let named = if has_usual_port { host } else { format!("{host}:{}", target.port) };
                self.add_uncovered_objection(
                    format!("no rule allows fetching from `{named}`"),
                    Some(domain_rule(&target)),
                );
            }
        }
    }

    /// Deny rules and `blockedDomains` for the host.
    fn check_host_denial(&mut self, target: &FetchTarget) {
        if let Some(reason) = host_denial(self.compiled, target) {
            let is_setting = reason.rule.is_none();
            self.add_objection(ObjectionKind::Deny, PolicyCheck::DenyRules, reason);
            if is_setting {
                let host = target.host_text();
                let key = format!("preApproval.blockedDomains.{host}");
                let place = self.compiled.raw.setting_places.clause(&key);
                let text = format!("remove `{host}` from `preApproval.blockedDomains`{place}");
                self.set_remedy(ObjectionRemedy::Setting(text));
            }
        }
    }

    /// Ask rules for the host.
    fn check_host_ask_rules(&mut self, target: &FetchTarget) {
        if let Some(hit) = find_restricting_rule(&self.compiled.ask.domains, target) {
            self.ask_by_rule(format_args!("host `{}`", target.host_text()), hit.id);
        }
    }

    /// Checks a fetch that the analysis inferred from the words of a command. A rule for the command covers it, except
    /// for deny and ask rules on the host, and for metadata services: a command that a rule allows in general must not
    /// read the credentials of a cloud machine.
    pub(crate) fn check_inferred_fetch(
        &mut self,
        url: &str,
        part: &CommandPart,
        origin: AccessOrigin,
        rule: Option<u32>,
    ) {
        let target = FetchTarget::parse(url).or_else(|_| FetchTarget::parse(&format!("http://{url}")));
        let Ok(target) = target else {
            if origin == AccessOrigin::Redirect || origin == AccessOrigin::Command {
                let text = format!("the command would connect to `{url}`, which has no valid host");
                self.add_uncovered_objection(text, None);
            }
            return;
        };
        self.check_host_denial(&target);
        self.check_host_ask_rules(&target);
        let host = target.host_text();
        let is_spelled_out =
            rule.and_then(|id| self.compiled.rule_entry(id)).is_some_and(|rule| rule.text.contains(&host));
        let is_metadata =
            matches!(target.private_class(), Some(AddressClass::Metadata | AddressClass::LinkLocal));
        if is_metadata && !is_spelled_out {
            let text = format!("the command would connect to `{host}`, a metadata or link-local address");
            self.add_warning("metadata_service", RiskLevel::Critical, text.clone());
            self.ask_about_risk(ObjectionKind::Explicit, text);
            // The prompt does not offer it, because one answer is not meant for good here; advice names it.
            let exact = self.suggest_command_rule(part).filter(|suggestion| suggestion.rule.contains(&host));
            if let Some(exact) = exact {
                self.set_remedy(ObjectionRemedy::AllowRules(vec![exact]));
            }
        }
        if origin == AccessOrigin::Redirect && self.mode != Mode::Bypass {
            self.add_uncovered_objection(format!("a redirect would connect to `{host}`"), None);
        }
    }
}
