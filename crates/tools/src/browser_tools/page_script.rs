//! Scripts that find elements. They run in a world of their own: the page sees their effects, and cannot change what they
//! call.

use super::session_page::{HeldPage, within};
use crate::web::clean_line;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use toolgate_proto::{Code, Refusal};

/// Finds an element by `selector` or `text`, scrolls to it and describes it; `null` if there is none.
const FIND_SCRIPT: &str = r#"
(wanted) => {
  const shown = e => { const r = e.getBoundingClientRect(); return r.width > 0 && r.height > 0; };
  const label = e => (e.innerText || e.value || e.getAttribute('aria-label') || e.title || '').trim();
  let found = null;
  if (wanted.selector) {
    const all = [...document.querySelectorAll(wanted.selector)];
    found = all.find(shown) || all[0] || null;
  } else {
    const all = [...document.querySelectorAll('a,button,input,select,textarea,summary,label,[role],[onclick],[tabindex]')].filter(shown);
    found = all.find(e => label(e) === wanted.text) || all.find(e => label(e).includes(wanted.text)) || null;
  }
  if (!found) return null;
  found.scrollIntoView({ block: 'center', inline: 'center' });
  if (wanted.focus) { found.focus(); if (typeof found.select === 'function') found.select(); }
  const r = found.getBoundingClientRect();
  const words = ['name', 'id', 'autocomplete', 'placeholder', 'aria-label'].map(n => found.getAttribute(n) || '').join(' ');
  return {
    x: r.x + r.width / 2, y: r.y + r.height / 2, is_shown: shown(found), tag: found.tagName.toLowerCase(),
    is_field: found.matches('input,textarea,[contenteditable]'),
    is_secret: found.matches('input[type=password]') || /passw|passphrase|pwd|one-time-code|\botp\b|cc-number|cc-csc/i.test(words),
  };
}"#;

/// Lists what can be clicked and typed into.
const LIST_SCRIPT: &str = r#"
(most) => {
  const shown = e => { const r = e.getBoundingClientRect(); return r.width > 0 && r.height > 0; };
  const path = e => {
    if (e.id && document.querySelectorAll('#' + CSS.escape(e.id)).length === 1) return '#' + CSS.escape(e.id);
    const name = e.getAttribute('name');
    if (name) { const s = e.tagName.toLowerCase() + '[name="' + CSS.escape(name) + '"]'; if (document.querySelectorAll(s).length === 1) return s; }
    const parts = [];
    for (let at = e; at && at !== document.documentElement && parts.length < 8; at = at.parentElement) {
      const same = [...(at.parentElement ? at.parentElement.children : [])].filter(o => o.tagName === at.tagName);
      parts.unshift(at.tagName.toLowerCase() + (same.length > 1 ? ':nth-of-type(' + (same.indexOf(at) + 1) + ')' : ''));
    }
    return parts.join(' > ');
  };
  return [...document.querySelectorAll('button,input:not([type=hidden]),select,textarea,summary,[role=button],[contenteditable]')]
    .filter(shown).slice(0, most).map(e => ({
      kind: e.tagName.toLowerCase() + (e.type ? ' ' + e.type : ''), selector: path(e),
      label: (e.innerText || e.getAttribute('aria-label') || e.getAttribute('placeholder') || e.getAttribute('name') || '').trim().slice(0, 80),
    }));
}"#;

/// Whether a text or an element is there.
const THERE_SCRIPT: &str = r#"
(wanted) => wanted.selector ? !!document.querySelector(wanted.selector)
  : !!document.body && document.body.innerText.includes(wanted.text)"#;

/// The most elements that are listed.
const MAX_LISTED_ELEMENTS: usize = 60;
/// How often a page is asked whether something is there.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// An element of the page.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct FoundElement {
    /// The middle of it in the window.
    pub(super) x: f64,
    /// The middle of it in the window.
    pub(super) y: f64,
    /// It has a size.
    pub(super) is_shown: bool,
    /// Its kind.
    pub(super) tag: String,
    /// Text can be typed into it.
    pub(super) is_field: bool,
    /// It takes a password or another secret.
    pub(super) is_secret: bool,
}

/// Something that can be clicked or typed into.
#[derive(Debug, Clone, Deserialize)]
struct ListedElement {
    /// Its kind.
    kind: String,
    /// How to name it in a call.
    selector: String,
    /// What it is called.
    label: String,
}

/// Finds an element by a CSS selector, or by the text on it.
pub(super) async fn find_element(
    held: &HeldPage<'_>,
    selector: Option<&str>,
    text: Option<&str>,
    with_focus: bool,
) -> Result<FoundElement, Refusal> {
    let wanted = json!({ "selector": selector, "text": text, "focus": with_focus });
    let found = run_page_script(held, FIND_SCRIPT, &wanted).await?;
    let named = selector.or(text).unwrap_or_default();
    let missing = || {
        Refusal::new(Code::Fetch, format!("the page has no element `{}`", clean_line(named)))
            .hint("read the page to see what it has, or wait for the element")
    };
    let found: FoundElement = serde_json::from_value(found).map_err(|_| missing())?;
    if !found.is_shown {
        return Err(Refusal::new(Code::Fetch, format!("the element `{}` is not shown", clean_line(named)))
            .hint("wait until it is there, or click what shows it"));
    }
    Ok(found)
}

/// What can be clicked and typed into, one per line.
pub(super) async fn list_elements(held: &HeldPage<'_>) -> Result<Vec<String>, Refusal> {
    let listed = run_page_script(held, LIST_SCRIPT, &json!(MAX_LISTED_ELEMENTS)).await?;
    let listed: Vec<ListedElement> = serde_json::from_value(listed).unwrap_or_default();
    let line = |element: &ListedElement| {
        let (kind, selector) = (clean_line(&element.kind), clean_line(&element.selector));
        format!("- {kind} `{selector}` {}", clean_line(&element.label)).trim_end().to_owned()
    };
    Ok(listed.iter().map(line).collect())
}

/// Waits until a text or an element is there; whether it came in time.
pub(super) async fn wait_until_there(
    held: &HeldPage<'_>,
    selector: Option<&str>,
    text: Option<&str>,
    limit: Duration,
) -> Result<bool, Refusal> {
    let deadline = tokio::time::Instant::now() + limit;
    let wanted = json!({ "selector": selector, "text": text });
    loop {
        if run_page_script(held, THERE_SCRIPT, &wanted).await? == Value::Bool(true) {
            return Ok(true);
        }
        if tokio::time::Instant::now() >= deadline {
            return Ok(false);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Runs a function with an argument in a world of its own.
async fn run_page_script(held: &HeldPage<'_>, function: &str, argument: &Value) -> Result<Value, Refusal> {
    within(held.page()?.run_function(function, argument)).await
}
