//! A look at HTML before it is parsed, in one pass: how deep it is nested and how many attributes its tags have, and its text
//! if that is too much.
//!
//! Parsers of HTML walk the stack of open elements for each tag, and the attributes before it for each attribute, so both
//! cost time by their square.

use super::markdown_writer::is_block;
use super::remove_hidden::is_hiding_style;

/// Elements that are empty, or that end where the next of their kind begins.
const UNNESTED: &[&str] = &[
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track",
    "wbr", "p", "li", "dt", "dd", "tr", "td", "th", "tbody", "thead", "tfoot", "option", "html", "body",
    "head",
];

/// One tag.
struct HtmlTag<'a> {
    /// Its name in lower case.
    name: String,
    /// It closes an element.
    is_end: bool,
    /// What stands behind the name.
    attributes: &'a str,
}

/// Splits HTML into its texts and tags, and calls `text` and `tag` for them. Comments and the content of scripts are left
/// out.
fn scan<'a>(html: &'a str, mut text: impl FnMut(&'a str), mut tag: impl FnMut(HtmlTag<'a>)) {
    let mut rest = html;
    while let Some((before, after)) = rest.split_once('<') {
        text(before);
        if let Some(comment) = after.strip_prefix("!--") {
            rest = comment.split_once("-->").map_or("", |(_, rest)| rest);
            continue;
        }
        let is_end = after.starts_with('/');
        let named = after.strip_prefix('/').unwrap_or(after);
        if !named.starts_with(|c: char| c.is_ascii_alphabetic() || c == '!' || c == '?') {
            text("<");
            rest = after;
            continue;
        }
        let (inside, behind) = named.split_once('>').unwrap_or((named, ""));
        let end = inside.find(|c: char| c.is_ascii_whitespace() || c == '/').unwrap_or(inside.len());
        let (name, attributes) = inside.split_at_checked(end).unwrap_or((inside, ""));
        let name = name.to_ascii_lowercase();
        rest = behind;
        if !is_end && matches!(name.as_str(), "script" | "style" | "template" | "noscript" | "textarea") {
            rest = skip_element(behind, &name);
            continue;
        }
        tag(HtmlTag { name, is_end, attributes });
    }
    text(rest);
}

/// What follows the end tag of an element.
fn skip_element<'a>(html: &'a str, name: &str) -> &'a str {
    let mut rest = html;
    while let Some((_, after)) = rest.split_once("</") {
        let is_same = after.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name));
        if is_same {
            return after.split_once('>').map_or("", |(_, rest)| rest);
        }
        rest = after;
    }
    ""
}

/// About how much work a page is for a parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MarkupCost {
    /// How deep the elements are nested.
    pub(super) depth: usize,
    /// The most attributes of one tag.
    pub(super) attributes: usize,
    /// How many tags there are.
    pub(super) tags: usize,
}

/// Estimates the work without a parser.
pub(super) fn estimate_cost(html: &str) -> MarkupCost {
    let (mut depth, mut deepest, mut attributes, mut tags) = (0_usize, 0, 0, 0);
    scan(
        html,
        |_| (),
        |tag| {
            tags += 1;
            attributes = attributes.max(count_attributes(tag.attributes));
            if UNNESTED.contains(&tag.name.as_str()) || tag.attributes.ends_with('/') {
                return;
            }
            depth = if tag.is_end { depth.saturating_sub(1) } else { depth + 1 };
            deepest = deepest.max(depth);
        },
    );
    MarkupCost { depth: deepest, attributes, tags }
}

/// About how many attributes a tag has: words outside quotes.
fn count_attributes(attributes: &str) -> usize {
    let (mut count, mut quote, mut is_in_word) = (0, None, false);
    for c in attributes.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, c) if c.is_ascii_whitespace() => is_in_word = false,
            (None, _) => {
                count += usize::from(!is_in_word);
                is_in_word = true;
            }
        }
    }
    count
}

/// The text between the tags, without that of hidden elements. Where an element is not closed, what follows it is taken to
/// be in it.
pub(super) fn strip_tags(html: &str, max_bytes: usize) -> String {
    let out = std::cell::RefCell::new(String::new());
    let hidden: std::cell::RefCell<Option<(String, usize)>> = std::cell::RefCell::new(None);
    let add_text = |text: &str| {
        let mut out = out.borrow_mut();
        if hidden.borrow().is_some() || out.len() > max_bytes {
            return;
        }
        for word in text.split_whitespace() {
            if !out.is_empty() && !out.ends_with('\n') {
                out.push(' ');
            }
            out.push_str(word);
        }
    };
    let see_tag = |tag: HtmlTag<'_>| {
        if is_block(&tag.name) {
            let mut out = out.borrow_mut();
            if !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
            }
        }
        let mut hidden = hidden.borrow_mut();
        match &mut *hidden {
            Some((name, open)) if *name == tag.name => {
                *open = if tag.is_end { open.saturating_sub(1) } else { *open + 1 };
                if *open == 0 {
                    *hidden = None;
                }
            }
            Some(_) => {}
            None if !tag.is_end && is_hiding_tag(tag.attributes) => *hidden = Some((tag.name, 1)),
            None => {}
        }
    };
    scan(html, add_text, see_tag);
    out.into_inner()
}

/// Whether the attributes of a tag hide its element.
fn is_hiding_tag(attributes: &str) -> bool {
    let attributes = attributes.to_ascii_lowercase();
    let style = attributes
        .split_once("style")
        .map_or("", |(_, style)| style.trim_start_matches(['=', ' ', '"', '\'']));
    let style = style.split(['"', '\'']).next().unwrap_or_default();
    attributes.split_ascii_whitespace().any(|word| word == "hidden" || word.starts_with("hidden="))
        || attributes.replace(['"', '\''], "").contains("aria-hidden=true")
        || is_hiding_style(style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_estimated_and_ordinary_pages_are_shallow() {
        let depth = |html: &str| estimate_cost(html).depth;
        assert!(depth(&"<b>".repeat(5_000)) >= 5_000);
        assert!(depth(&"<ul><li>".repeat(5_000)) >= 5_000);
        assert!(depth(&"<p>a<br>b<li>c<img src=x/><a href=/y>z</a>".repeat(5_000)) < 5);
        assert_eq!(depth("<script>'<b><b><b>'</script><!-- <b><b> --><b>x</b>"), 1);
        assert_eq!(estimate_cost("<p a=1 b='x y z' c>").attributes, 3);
        assert!(estimate_cost(&format!("<p {}>", "a=1 ".repeat(5_000))).attributes >= 5_000);
    }

    #[test]
    fn texts_are_kept_and_hidden_ones_are_not() {
        let html = "<div>a<p hidden>H1</p>b<p style='display:none'>H2</p><!-- H3 --><script>H4</script>1 < 2</div>\
                    <div aria-hidden='true'><div>H5</div>H6</div>c";
        assert_eq!(strip_tags(html, 1_000), "a\nb\n1 < 2\nc");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_scanned(html in "(<[a-z]{1,5}( [a-z]+=[^>]{0,9})?>|</[a-z]{1,5}>|<!--|-->|<script>|.){0,60}") {
            let _ = (estimate_cost(&html), strip_tags(&html, 10_000));
        }
    }
}
