//! A fetch as it really goes: the addresses that names resolve to, and the redirects that servers send.

use super::{AddressClass, FetchTarget, address_class};
use crate::decide::Policy;
use crate::raw::RuleAction;
use std::net::IpAddr;
use toolgate_proto::{Code, VerdictReason};

/// Most redirects that are followed.
pub const MAX_REDIRECTS: usize = 5;

/// One request of a chain: where it goes, and what its name resolved to.
#[derive(Debug, Clone, Copy)]
pub struct RedirectHop<'a> {
    /// The address; for a redirect the `Location`, which may be relative to the hop before.
    pub location: &'a str,
    /// Every address that would be connected to. Empty means that the name has none.
    pub addresses: &'a [IpAddr],
}

/// Why a chain of requests may not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchObjection {
    /// Whether a person may be asked, or it is refused.
    pub action: RuleAction,
    /// Why.
    pub reason: VerdictReason,
}

impl FetchObjection {
    fn refuse(text: String) -> Box<Self> {
        Box::new(Self { action: RuleAction::Deny, reason: VerdictReason::new(Code::Fetch, text) })
    }

    fn ask(text: String) -> Box<Self> {
        Box::new(Self { action: RuleAction::Ask, reason: VerdictReason::new(Code::NobodyToAsk, text) })
    }
}

impl Policy {
    /// Judges a chain of requests. The first hop is one that [`Policy::decide`] has allowed, or a person has.
    ///
    /// `Ok` means that every hop may be made: each address is public or named, each redirect stays with a host that
    /// is granted, and the chain is short.
    pub fn vet_chain(&self, hops: &[RedirectHop<'_>]) -> Result<(), Box<FetchObjection>> {
        if hops.len() > MAX_REDIRECTS + 1 {
            return Err(FetchObjection::refuse(format!("there are more than {MAX_REDIRECTS} redirects")));
        }
        let mut before: Option<FetchTarget> = None;
        for hop in hops {
            let target = match &before {
                None => FetchTarget::parse(hop.location),
                Some(before) => Self::resolve_redirect(before, hop.location),
            };
            let target = match target {
                Ok(target) => target,
                Err(why) => return Err(FetchObjection::refuse(why)),
            };
            if let Some(before) = &before {
                self.vet_redirect(before, &target)?;
            }
            self.vet_addresses(&target, hop.addresses)?;
            before = Some(target);
        }
        Ok(())
    }

    /// A `Location` is resolved like any reference, but judged as the text that was sent.
    fn resolve_redirect(before: &FetchTarget, location: &str) -> Result<FetchTarget, String> {
        match FetchTarget::parse(location) {
            Ok(target) => Ok(target),
            Err(why) => match url::Url::parse(location) {
                Err(url::ParseError::RelativeUrlWithoutBase) => {
                    let joined = before.url.join(location).map_err(|error| error.to_string())?;
                    FetchTarget::parse(joined.as_str())
                }
                Ok(_) | Err(_) => Err(why),
            },
        }
    }

    fn vet_redirect(&self, before: &FetchTarget, target: &FetchTarget) -> Result<(), Box<FetchObjection>> {
        if let Some(odd) = target.oddities.first() {
            return Err(FetchObjection::ask(format!("it redirects to `{}`: {odd}", target.url)));
        }
        if before.url.scheme() == "https" && target.url.scheme() == "http" {
            return Err(FetchObjection::ask(format!("it redirects to `{}`, without encryption", target.url)));
        }
        if before.host == target.host && before.port == target.port {
            return Ok(());
        }
        match self.judge_target(target) {
            (RuleAction::Allow, _) => Ok(()),
            (action @ (RuleAction::Ask | RuleAction::Deny), reason) => {
                let text = format!("it redirects to `{}`: {}", target.url, reason.text);
                Err(Box::new(FetchObjection { action, reason: VerdictReason { text, ..reason } }))
            }
        }
    }

    fn vet_addresses(&self, target: &FetchTarget, addresses: &[IpAddr]) -> Result<(), Box<FetchObjection>> {
        let host = target.host_text();
        if addresses.is_empty() {
            return Err(FetchObjection::refuse(format!("`{host}` has no address")));
        }
        if self.is_named_private_host(&target.host) {
            return Ok(());
        }
        for address in addresses {
            let class = address_class(*address);
            if class != AddressClass::Public {
                return Err(FetchObjection::refuse(format!("`{host}` leads to {address}, {class}")));
            }
        }
        Ok(())
    }
}
