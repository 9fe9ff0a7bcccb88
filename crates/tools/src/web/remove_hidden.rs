//! What is done to a page's tree before anything is read from it: its size is measured, and what a reader would not see is
//! removed.
//!
//! Hidden text is the usual way of prompt injection: instructions for models in a page that looks harmless.
//! Text in the colour of its background, or hidden by a style sheet, is not found here: that takes a browser.

use super::markdown_inline::is_dropped;
use super::markdown_writer::is_block;
use dom_query::{Document, NodeRef};

/// The size of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TreeSize {
    /// How many nodes.
    pub(super) nodes: usize,
    /// How deep they are nested.
    pub(super) depth: usize,
}

/// The next node in document order, without recursion. `depth` follows.
fn next_node<'a>(node: &NodeRef<'a>, depth: &mut usize) -> Option<NodeRef<'a>> {
    if let Some(child) = node.first_child() {
        *depth += 1;
        return Some(child);
    }
    let mut at = *node;
    loop {
        if let Some(sibling) = at.next_sibling() {
            return Some(sibling);
        }
        at = at.parent()?;
        *depth = depth.saturating_sub(1);
    }
}

/// Measures a tree without recursion: it may be deeper than the stack.
pub(super) fn measure_tree(document: &Document) -> TreeSize {
    let mut size = TreeSize { nodes: 0, depth: 0 };
    let (mut at, mut depth) = (Some(document.root()), 0);
    while let Some(node) = at {
        size.nodes += 1;
        size.depth = size.depth.max(depth);
        at = next_node(&node, &mut depth);
    }
    size
}

/// Removes scripts, comments and what is hidden.
pub(super) fn remove_hidden(document: &Document) {
    let mut hidden = Vec::new();
    let (mut at, mut depth) = (Some(document.root()), 0);
    while let Some(node) = at {
        if node.is_comment() || (node.is_element() && is_hidden(&node)) {
            hidden.push(node);
        }
        at = next_node(&node, &mut depth);
    }
    for node in hidden {
        node.remove_from_parent();
    }
}

/// Whether an element is not shown, as far as its own attributes tell.
fn is_hidden(node: &NodeRef<'_>) -> bool {
    let Some(name) = node.node_name() else { return false };
    if matches!(&*name, "script" | "style" | "template" | "noscript" | "object" | "embed") {
        // Readability reads the page's own description of itself from a script of this type.
        let is_description = &*name == "script"
            && node.attr("type").is_some_and(|kind| kind.eq_ignore_ascii_case("application/ld+json"));
        return !is_description;
    }
    // Pages hide their body until a script has run.
    if matches!(&*name, "html" | "body") {
        return false;
    }
    let Some(element) = node.element_ref() else { return false };
    element.attrs.iter().any(|attr| match &*attr.name.local {
        "hidden" => !attr.value.eq_ignore_ascii_case("until-found"),
        "aria-hidden" => attr.value.trim().eq_ignore_ascii_case("true"),
        "style" => is_hiding_style(&attr.value),
        _ => false,
    })
}

/// Whether an inline style hides its element.
pub(super) fn is_hiding_style(style: &str) -> bool {
    let style = style.to_ascii_lowercase();
    let mut is_positioned = false;
    let mut is_far_out = false;
    for declaration in style.split(';') {
        let Some((property, value)) = declaration.split_once(':') else { continue };
        let value = value.trim().trim_end_matches("!important").trim();
        let number = || {
            let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
            digits.trim().parse::<f64>().ok()
        };
        match property.trim() {
            "display" if value == "none" => return true,
            "visibility" if matches!(value, "hidden" | "collapse") => return true,
            "font-size" | "opacity" if number() == Some(0.0) => return true,
            "color" if value == "transparent" => return true,
            "position" => is_positioned = matches!(value, "absolute" | "fixed"),
            "left" | "top" | "right" => is_far_out |= number().is_some_and(|place| place <= -999.0),
            "text-indent" if number().is_some_and(|indent| indent <= -999.0) => return true,
            _ => {}
        }
    }
    is_positioned && is_far_out
}

/// The text of a tree of any depth, a line per block. For pages that are too deep for anything else.
pub(super) fn flat_text(document: &Document, max_bytes: usize) -> String {
    let mut out = String::new();
    let (mut at, mut depth) = (document.body().or_else(|| Some(document.root())), 0);
    while let Some(node) = at {
        if out.len() > max_bytes {
            break;
        }
        if node.is_text() {
            let text = node.text();
            let is_code_of_page =
                node.parent().and_then(|parent| parent.node_name()).is_some_and(|name| is_dropped(&name));
            if !is_code_of_page {
                for word in text.split_whitespace() {
                    if !out.is_empty() && !out.ends_with('\n') {
                        out.push(' ');
                    }
                    out.push_str(word);
                }
            }
        } else if node.is_element()
            && !out.is_empty()
            && !out.ends_with('\n')
            && node.node_name().is_some_and(|name| is_block(&name) || &*name == "br")
        {
            out.push('\n');
        }
        at = next_node(&node, &mut depth);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_elements_are_known_by_their_attributes() {
        for style in [
            "display:none",
            "color: red; DISPLAY : none !important",
            "visibility: hidden",
            "font-size:0",
            "font-size:0px",
            "opacity:0.0",
            "position:absolute; left:-9999px",
            "text-indent: -9999em",
        ] {
            assert!(is_hiding_style(style), "{style}");
        }
        for style in
            ["display:block", "opacity:.5", "font-size:10px", "left:-9999px", "color:#000", "", ":", "a:b:c"]
        {
            assert!(!is_hiding_style(style), "{style}");
        }
    }

    #[test]
    fn depth_is_measured_without_recursion() {
        let document = Document::from("<div>".repeat(1_000));
        assert!(measure_tree(&document).depth >= 1_000);
        assert_eq!(flat_text(&Document::from("<p>a<p>b <b>c</b>"), 1_000), "a\nb c");
    }
}
