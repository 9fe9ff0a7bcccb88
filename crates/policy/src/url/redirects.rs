//! Redirects of a fetch: every hop is checked like the first request, with the addresses that its host resolves to.

use super::{FetchTarget, address_class};
use crate::decide::Policy;
use crate::raw::RuleAction;
use std::net::IpAddr;
use toolgate_proto::address::may_connect;
use toolgate_proto::{Code, VerdictReason};

/// How many redirects are followed.
pub const MAX_REDIRECTS: usize = 5;

/// One request of a redirect chain, with the addresses that its host resolved to.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct RedirectHop<'a> {
    /// The URL; for a redirect the `Location` header, which may be relative to the hop before.
    pub location: &'a str,
    /// Every address that could be connected to. Empty means that the name does not resolve.
    pub addresses: &'a [IpAddr],
}

impl<'a> RedirectHop<'a> {
    /// Creates a request with the addresses of its host.
    pub fn new(location: &'a str, addresses: &'a [IpAddr]) -> Self {
        Self { location, addresses }
    }
}

/// Why a redirect chain may not continue.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchObjection {
    /// Whether an approver may allow it, or it is denied.
    pub action: RuleAction,
    /// The text and code that the refusal or the question shows.
    pub reason: VerdictReason,
}

impl FetchObjection {
    /// A denial that no approver can lift.
    fn refuse(text: String) -> Box<Self> {
        Box::new(Self { action: RuleAction::Deny, reason: VerdictReason::new(Code::Fetch, text) })
    }

    /// A question for an approver.
    fn ask(text: String) -> Box<Self> {
        Box::new(Self {
            action: RuleAction::Ask,
            reason: VerdictReason::new(Code::ApprovalUnavailable, text),
        })
    }
}

/// What becomes of a redirect that a server sends to a fetch tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedirectDecision {
    /// It stays at the same host, so it is followed, to this URL.
    Follow(String),
    /// It leads to another host that no rule denies. The tool reports this URL instead of following it: the model may fetch
    /// it by a call of its own, which is judged like any other.
    OtherHost(String),
    /// It is refused; the reason.
    Refuse(String),
}

impl Policy {
    /// Judges a redirect by its text, before its host is resolved.
    pub fn judge_redirect(&self, from: &str, location: &str) -> RedirectDecision {
        let before = match FetchTarget::parse(from) {
            Ok(before) => before,
            Err(problem) => return RedirectDecision::Refuse(problem),
        };
        let refuse = |problem: &str| {
            // The target is the server's text, so it is shown without control characters and not at any length.
            let shown: String = location.chars().filter(|c| !c.is_control()).take(200).collect();
            RedirectDecision::Refuse(format!("`{}` redirects to `{shown}`: {problem}", before.url))
        };
        let target = match Self::resolve_redirect(&before, location) {
            Ok(target) => target,
            Err(problem) => return refuse(&problem),
        };
        if let Some(oddity) = target.oddities.first() {
            return refuse(oddity);
        }
        if before.url.scheme() == "https" && target.url.scheme() == "http" {
            return refuse("this would leave encryption");
        }
        let is_allowed = match self.judge_target(&target) {
            (RuleAction::Deny, reason) => return refuse(&reason.text),
            (RuleAction::Allow, _) => true,
            (RuleAction::Ask, _) => false,
        };
        let is_same_port = before.port == target.port || is_upgrade(&before, &target) || is_allowed;
        if before.host == target.host && is_same_port {
            return RedirectDecision::Follow(target.url.to_string());
        }
        RedirectDecision::OtherHost(target.url.to_string())
    }

    /// Checks every address that the host of a URL resolved to. An error is the reason.
    pub fn check_addresses(&self, url: &str, addresses: &[IpAddr]) -> Result<(), String> {
        let target = FetchTarget::parse(url)?;
        self.vet_addresses(&target, addresses).map_err(|objection| objection.reason.text)
    }

    /// Checks a chain of requests whose first hop was allowed, by [`Policy::decide`] or by an approver.
    ///
    /// `Ok` means that every hop may be requested: each address is public or its host is named by the user, each
    /// redirect goes to an allowed host, and the chain is not too long.
    pub fn vet_chain(&self, hops: &[RedirectHop<'_>]) -> Result<(), Box<FetchObjection>> {
        if hops.len() > MAX_REDIRECTS + 1 {
            return Err(FetchObjection::refuse(format!(
                "the server sent more than {MAX_REDIRECTS} redirects"
            )));
        }
        let mut before: Option<FetchTarget> = None;
        for hop in hops {
            let target = match &before {
                None => FetchTarget::parse(hop.location),
                Some(before) => Self::resolve_redirect(before, hop.location),
            };
            let target = match target {
                Ok(target) => target,
                Err(problem) => return Err(FetchObjection::refuse(problem)),
            };
            if let Some(before) = &before {
                self.vet_redirect(before, &target)?;
            }
            self.vet_addresses(&target, hop.addresses)?;
            before = Some(target);
        }
        Ok(())
    }

    /// Resolves a `Location`. An absolute one is parsed as sent, so that unusual spellings in it are still noticed.
    fn resolve_redirect(before: &FetchTarget, location: &str) -> Result<FetchTarget, String> {
        match FetchTarget::parse(location) {
            Ok(target) => Ok(target),
            Err(problem) => match url::Url::parse(location) {
                Err(url::ParseError::RelativeUrlWithoutBase) => {
                    let joined = before.url.join(location).map_err(|error| error.to_string())?;
                    FetchTarget::parse(joined.as_str())
                }
                Ok(_) | Err(_) => Err(problem),
            },
        }
    }

    /// Checks one redirect: its spelling, the change of scheme, and the new host.
    fn vet_redirect(&self, before: &FetchTarget, target: &FetchTarget) -> Result<(), Box<FetchObjection>> {
        if let Some(oddity) = target.oddities.first() {
            return Err(FetchObjection::ask(format!("the server redirects to `{}`: {oddity}", target.url)));
        }
        if before.url.scheme() == "https" && target.url.scheme() == "http" {
            let text = format!("the server redirects from https to `{}`, without encryption", target.url);
            return Err(FetchObjection::ask(text));
        }
        if before.host == target.host && (before.port == target.port || is_upgrade(before, target)) {
            return match self.target_denial(target) {
                Some(reason) => Err(Box::new(FetchObjection { action: RuleAction::Deny, reason })),
                None => Ok(()),
            };
        }
        match self.judge_target(target) {
            (RuleAction::Allow, _) => Ok(()),
            (action @ (RuleAction::Ask | RuleAction::Deny), mut reason) => {
                reason.text = format!("the server redirects to `{}`: {}", target.url, reason.text);
                Err(Box::new(FetchObjection { action, reason }))
            }
        }
    }

    /// Checks every address that a host resolved to: one private address among public ones is enough for DNS rebinding.
    fn vet_addresses(&self, target: &FetchTarget, addresses: &[IpAddr]) -> Result<(), Box<FetchObjection>> {
        let host = target.host_text();
        if addresses.is_empty() {
            return Err(FetchObjection::refuse(format!("host `{host}` does not resolve to an address")));
        }
        let is_named = self.is_named_private_host(target);
        for address in addresses {
            if !may_connect(&target.host, is_named, *address) {
                let class = address_class(*address);
                return Err(FetchObjection::refuse(format!("host `{host}` resolves to {address}, {class}")));
            }
        }
        Ok(())
    }
}

/// Whether a redirect changes only from http to https, both at their usual ports.
fn is_upgrade(before: &FetchTarget, target: &FetchTarget) -> bool {
    (before.url.scheme(), before.port) == ("http", 80) && (target.url.scheme(), target.port) == ("https", 443)
}
