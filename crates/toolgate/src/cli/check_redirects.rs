//! `toolgate check --redirect` and `--resolve`: what would become of a fetch, hop by hop: of redirects that a server sends,
//! and of the addresses that each host resolves to.

use super::CliError;
use super::output::{CliOutput, paint, style};
use serde_json::{Value, json};
use std::net::IpAddr;
use toolgate::Toolgate;
use toolgate::render::escape_invisible;
use toolgate_policy::url::{MAX_REDIRECTS, RedirectDecision, address_class};

/// The hops of a fetch, as far as they can be told without fetching.
#[derive(Default)]
pub(crate) struct CheckedHops {
    /// The redirects, in their order, and what would become of each.
    redirects: Vec<CheckedRedirect>,
    /// The addresses of the host of each request.
    hosts: Vec<CheckedHost>,
}

/// One redirect and the decision about it.
struct CheckedRedirect {
    /// As it was given.
    location: String,
    /// What would become of it.
    decision: RedirectDecision,
}

/// The addresses of the host of one request.
struct CheckedHost {
    /// The URL of the request.
    url: String,
    /// What its host resolves to.
    addresses: Vec<IpAddr>,
    /// Why none of them may be connected to; `None` if the request is made.
    objection: Option<String>,
}

impl CheckedRedirect {
    /// The word, and the URL or the reason.
    fn parts(&self) -> (&'static str, &str) {
        match &self.decision {
            RedirectDecision::Follow(url) => ("follow", url),
            RedirectDecision::OtherHost(url) => ("report", url),
            RedirectDecision::Refuse(reason) => ("deny", reason),
        }
    }
}

impl CheckedHost {
    /// Whether the request would be made.
    fn action(&self) -> &'static str {
        if self.objection.is_some() { "deny" } else { "allow" }
    }

    /// The addresses with their classes, or the reason against them.
    fn describe(&self) -> String {
        let known = |address: &IpAddr| format!("{address} ({})", address_class(*address));
        match &self.objection {
            Some(objection) => objection.clone(),
            None => self.addresses.iter().map(known).collect::<Vec<_>>().join(", "),
        }
    }
}

impl CheckedHops {
    /// Whether a hop is refused.
    pub(crate) fn is_refused(&self) -> bool {
        let is_refused =
            |redirect: &CheckedRedirect| matches!(redirect.decision, RedirectDecision::Refuse(_));
        self.redirects.iter().any(is_refused) || self.hosts.iter().any(|host| host.objection.is_some())
    }

    /// The hops for programs, as fields of the judgement.
    pub(crate) fn to_fields(&self) -> Vec<(String, Value)> {
        let redirect = |redirect: &CheckedRedirect| {
            let (action, text) = redirect.parts();
            json!({ "location": redirect.location, "action": action, "text": text })
        };
        let host = |host: &CheckedHost| json!({ "url": host.url, "addresses": host.addresses, "action": host.action(), "text": host.describe() });
        let mut fields = Vec::new();
        if !self.redirects.is_empty() {
            fields.push(("redirects".to_owned(), self.redirects.iter().map(redirect).collect()));
        }
        if !self.hosts.is_empty() {
            fields.push(("hosts".to_owned(), self.hosts.iter().map(host).collect()));
        }
        fields
    }

    /// The hops for people.
    pub(crate) fn explain(&self, out: &mut CliOutput) -> Result<(), CliError> {
        if !self.redirects.is_empty() {
            out.print_line(&paint(style::FAINT, "  redirects"))?;
        }
        for redirect in &self.redirects {
            let (word, text) = redirect.parts();
            let (colour, note) = match word {
                "report" => ("ask", "  (another host: reported to the model, not followed)"),
                "follow" => ("allow", ""),
                _ => ("deny", ""),
            };
            print_hop(colour, word, &format!("{text}{note}"), out)?;
        }
        if !self.hosts.is_empty() {
            out.print_line(&paint(style::FAINT, "  addresses"))?;
        }
        for host in &self.hosts {
            print_hop(host.action(), host.action(), &format!("{}  {}", host.url, host.describe()), out)?;
        }
        Ok(())
    }
}

/// Prints one hop.
fn print_hop(verdict: &str, word: &str, text: &str, out: &mut CliOutput) -> Result<(), CliError> {
    let word = paint(style::verdict(verdict), &format!("{word:6}"));
    out.print_line(&format!("    {word}  {}", escape_invisible(text)))?;
    Ok(())
}

/// Judges the hops of a fetch from the URL of a call. The first redirect that is not followed ends the chain.
pub(crate) fn check_hops(
    toolgate: &Toolgate,
    input: &str,
    locations: &[String],
    with_addresses: bool,
) -> Result<CheckedHops, CliError> {
    let input: Value = serde_json::from_str(input).unwrap_or_default();
    let mut checked = CheckedHops::default();
    if locations.is_empty() && !with_addresses {
        return Ok(checked);
    }
    let Some(url) = input.get("url").and_then(Value::as_str) else {
        let problem = "`--redirect` and `--resolve` are for calls with a `url`";
        return Err(CliError::Usage(problem.to_owned()));
    };
    let policy = toolgate.gate().policy();
    let mut from = requested_url(url);
    let mut requested = vec![from.clone()];
    for location in locations {
        let mut decision = policy.judge_redirect(&from, location);
        if requested.len() > MAX_REDIRECTS && matches!(decision, RedirectDecision::Follow(_)) {
            decision =
                RedirectDecision::Refuse(format!("more than {MAX_REDIRECTS} redirects are not followed"));
        }
        let next = match &decision {
            RedirectDecision::Follow(url) => Some(url.clone()),
            RedirectDecision::OtherHost(_) | RedirectDecision::Refuse(_) => None,
        };
        checked.redirects.push(CheckedRedirect { location: location.clone(), decision });
        match next {
            Some(next) => {
                requested.push(next.clone());
                from = next;
            }
            None => break,
        }
    }
    if with_addresses {
        for url in requested {
            let addresses = resolve_host(&url)?;
            let objection = policy.check_addresses(&url, &addresses).err();
            let is_refused = objection.is_some();
            checked.hosts.push(CheckedHost { url, addresses, objection });
            if is_refused {
                break;
            }
        }
    }
    Ok(checked)
}

/// The addresses of the host of a URL, looked up as a fetch does. None if it has none.
#[cfg(feature = "web")]
fn resolve_host(url: &str) -> Result<Vec<IpAddr>, CliError> {
    use toolgate_net::web::{NameResolver, SystemResolver};
    use toolgate_policy::url::FetchTarget;
    let Ok(target) = FetchTarget::parse(url) else { return Ok(Vec::new()) };
    if let Some(address) = toolgate_proto::host_pattern::host_address(&target.host) {
        return Ok(vec![address]);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(SystemResolver.resolve(&target.host.to_string())).unwrap_or_default())
}

/// Without the web tools nothing is fetched.
#[cfg(not(feature = "web"))]
fn resolve_host(_: &str) -> Result<Vec<IpAddr>, CliError> {
    Err(CliError::Usage("this build has no web tools, so it resolves no hosts".to_owned()))
}

/// The URL that is requested for one that was given.
#[cfg(feature = "web")]
fn requested_url(url: &str) -> String {
    toolgate_tools::upgrade_scheme(url)
}

/// Without the web tools, as it was given.
#[cfg(not(feature = "web"))]
fn requested_url(url: &str) -> String {
    url.to_owned()
}
