//! `toolgate check --redirect`: what would become of redirects that a server sends to a fetch, hop by hop.

use super::CliError;
use super::output::{CliOutput, paint, style};
use serde_json::{Value, json};
use toolgate::Toolgate;
use toolgate::render::escape_invisible;
use toolgate_policy::url::RedirectDecision;

/// One redirect and the decision about it.
pub(crate) struct CheckedRedirect {
    /// As it was given.
    location: String,
    /// What would become of it.
    decision: RedirectDecision,
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

    /// Whether it is refused.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.decision, RedirectDecision::Refuse(_))
    }
}

/// Judges redirects one after another, from the URL of a call. The first that is not followed ends the chain.
pub(crate) fn check_redirects(
    toolgate: &Toolgate,
    input: &str,
    locations: &[String],
) -> Vec<CheckedRedirect> {
    let input: Value = serde_json::from_str(input).unwrap_or_default();
    let mut from = input.get("url").and_then(Value::as_str).unwrap_or_default().to_owned();
    let policy = toolgate.gate().policy();
    let mut checked = Vec::new();
    for location in locations {
        let decision = policy.judge_redirect(&from, location);
        let next = match &decision {
            RedirectDecision::Follow(url) => Some(url.clone()),
            RedirectDecision::OtherHost(_) | RedirectDecision::Refuse(_) => None,
        };
        checked.push(CheckedRedirect { location: location.clone(), decision });
        match next {
            Some(next) => from = next,
            None => break,
        }
    }
    checked
}

/// The redirects for programs.
pub(crate) fn redirects_json(checked: &[CheckedRedirect]) -> Value {
    let entry = |redirect: &CheckedRedirect| {
        let (action, text) = redirect.parts();
        json!({ "location": redirect.location, "action": action, "text": text })
    };
    checked.iter().map(entry).collect()
}

/// The redirects for people.
pub(crate) fn explain_redirects(checked: &[CheckedRedirect], out: &mut CliOutput) -> Result<(), CliError> {
    if checked.is_empty() {
        return Ok(());
    }
    out.print_line(&paint(style::FAINT, "  redirects"))?;
    for redirect in checked {
        let (word, text) = redirect.parts();
        let shown = match word {
            "report" => format!("{text}  (another host: reported to the model, not followed)"),
            _ => text.to_owned(),
        };
        let colour = style::verdict(if word == "report" {
            "ask"
        } else if word == "follow" {
            "allow"
        } else {
            "deny"
        });
        out.print_line(&format!(
            "    {}  {}",
            paint(colour, &format!("{word:6}")),
            escape_invisible(&shown)
        ))?;
    }
    Ok(())
}
