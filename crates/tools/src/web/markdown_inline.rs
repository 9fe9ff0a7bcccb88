//! Inline content as Markdown: text with its whitespace collapsed, links, emphasis, code.

use super::markdown_writer::MarkdownWriter;
use dom_query::NodeRef;

/// Inline Markdown while it is written.
#[derive(Debug, Default)]
pub(super) struct InlineText {
    /// What is written so far.
    text: String,
    /// A space is due before the next word.
    wants_space: bool,
    /// The mark of the emphasis that ends where the text ends at this length.
    ended_mark: Option<(usize, &'static str)>,
}

impl InlineText {
    /// Adds text as HTML has it: runs of whitespace are one space.
    fn push_text(&mut self, text: &str, escape: bool) {
        for (index, word) in text.split(|c: char| c.is_ascii_whitespace()).enumerate() {
            self.wants_space |= index > 0;
            if word.is_empty() {
                continue;
            }
            self.write_space();
            if escape {
                escape_into(word, &mut self.text);
            } else {
                self.text.push_str(word);
            }
        }
    }

    /// Adds finished Markdown, with the space that is due.
    pub(super) fn push_markdown(&mut self, markdown: &str) {
        if !markdown.is_empty() {
            self.write_space();
            self.text.push_str(markdown);
        }
    }

    /// Adds emphasis. Two that touch become one: `*a**b*` is not read as two.
    fn push_marked(&mut self, text: &str, mark: &'static str) {
        let continues = !self.wants_space && self.ended_mark == Some((self.text.len(), mark));
        if continues {
            self.text.truncate(self.text.len() - mark.len());
        } else {
            self.write_space();
            self.text.push_str(mark);
        }
        self.text.push_str(text);
        self.text.push_str(mark);
        self.ended_mark = Some((self.text.len(), mark));
    }

    /// Adds a word boundary.
    pub(super) fn push_space(&mut self) {
        self.wants_space = true;
    }

    /// Ends a line, unless none has begun.
    fn end_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.push_break();
        }
    }

    /// Adds a line break.
    fn push_break(&mut self) {
        self.text.push('\n');
        self.wants_space = false;
    }

    /// Writes the space that is due.
    fn write_space(&mut self) {
        if self.wants_space && !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push(' ');
        }
        self.wants_space = false;
    }

    /// The text, and whether a space is due behind it.
    fn into_parts(self) -> (String, bool) {
        (self.text, self.wants_space)
    }

    /// The text without spaces and line breaks around it.
    pub(super) fn finish(self) -> String {
        let trimmed = self.text.trim_matches(['\n', ' ']);
        if trimmed.len() == self.text.len() { self.text } else { trimmed.to_owned() }
    }
}

impl MarkdownWriter<'_> {
    /// Writes a node that is not a block.
    pub(super) fn write_inline(&self, node: &NodeRef<'_>, out: &mut InlineText) {
        if node.is_text() {
            out.push_text(&node.text(), !self.is_plain);
            return;
        }
        let Some(name) = node.node_name() else { return };
        match &*name {
            "br" => out.push_break(),
            "a" => self.write_link(node, out),
            "strong" | "b" => self.write_marked(node, "**", out),
            "em" | "i" => self.write_marked(node, "*", out),
            "del" | "s" | "strike" => self.write_marked(node, "~~", out),
            "code" | "kbd" | "samp" | "tt" => self.write_code(node, out),
            "img" => self.write_image(node, out),
            "math" => out.push_markdown(&math_text(node)),
            "wbr" => {}
            // As in the cell of a table, where only line breaks tell items and paragraphs apart.
            "li" | "p" => {
                out.end_line();
                if &*name == "li" && !self.is_plain && !node.text().trim().is_empty() {
                    out.push_markdown("- ");
                }
                for child in node.children_it(false) {
                    self.write_inline(&child, out);
                }
                out.end_line();
            }
            name if is_dropped(name) => {}
            name => {
                // A block inside inline content: its text, apart from its neighbours.
                let is_block = super::markdown_writer::is_block(name);
                if is_block {
                    out.push_space();
                }
                for child in node.children_it(false) {
                    self.write_inline(&child, out);
                }
                if is_block {
                    out.push_space();
                }
            }
        }
    }

    /// The inline content of a node on one line.
    pub(super) fn inline_line(&self, node: &NodeRef<'_>) -> String {
        let mut out = InlineText::default();
        for child in node.children_it(false) {
            self.write_inline(&child, &mut out);
        }
        out.finish().replace('\n', " ")
    }

    /// A link. Without a target on the web, its label.
    fn write_link(&self, node: &NodeRef<'_>, out: &mut InlineText) {
        let mut label = InlineText::default();
        label.push_space();
        for child in node.children_it(false) {
            self.write_inline(&child, &mut label);
        }
        // Spaces inside the label move outside.
        let begins_with_space = node.text().starts_with(|c: char| c.is_ascii_whitespace());
        let (label, ends_with_space) = label.into_parts();
        let label = label.trim().replace('\n', " ");
        if begins_with_space {
            out.push_space();
        }
        let target = node.attr("href").and_then(|href| self.link_target(&href));
        // A picture that leads somewhere is more than decoration, even without a text.
        let label =
            if label.is_empty() && !self.is_plain && has_image(node) { "image".to_owned() } else { label };
        match target {
            _ if label.is_empty() => {}
            None if label == "image" => {}
            Some(target) if !self.is_plain => {
                out.push_markdown(&format!("[{label}]({})", bracket_target(&target)));
            }
            Some(_) | None => out.push_markdown(&label),
        }
        if ends_with_space {
            out.push_space();
        }
    }

    /// Emphasis. Its marks must touch the words, so spaces move outside.
    fn write_marked(&self, node: &NodeRef<'_>, mark: &'static str, out: &mut InlineText) {
        let mut inner = InlineText::default();
        for child in node.children_it(false) {
            self.write_inline(&child, &mut inner);
        }
        let begins_with_space = node.text().starts_with(|c: char| c.is_ascii_whitespace());
        let (text, ends_with_space) = inner.into_parts();
        let text = text.trim();
        if begins_with_space {
            out.push_space();
        }
        if !text.is_empty() {
            let is_marked = self.is_plain || text.contains('\n') || text.starts_with(mark);
            if is_marked {
                out.push_markdown(text);
            } else {
                out.push_marked(text, mark);
            }
        }
        if ends_with_space {
            out.push_space();
        }
    }

    /// Code in a line, with more backticks around it than there are in it.
    fn write_code(&self, node: &NodeRef<'_>, out: &mut InlineText) {
        let text = node.text();
        let mut code = InlineText::default();
        code.push_text(&text, false);
        let (code, ends_with_space) = code.into_parts();
        if text.starts_with(|c: char| c.is_ascii_whitespace()) {
            out.push_space();
        }
        if !code.is_empty() {
            if self.is_plain {
                out.push_markdown(&code);
            } else {
                let fence = "`".repeat(longest_run(&code, '`') + 1);
                let pad = if code.starts_with('`') || code.ends_with('`') { " " } else { "" };
                out.push_markdown(&format!("{fence}{pad}{code}{pad}{fence}"));
            }
        }
        if ends_with_space {
            out.push_space();
        }
    }

    /// An image with a text is kept as a link to it; one without is decoration.
    fn write_image(&self, node: &NodeRef<'_>, out: &mut InlineText) {
        let alt = node.attr("alt").unwrap_or_default();
        let alt: String = alt.split_whitespace().collect::<Vec<_>>().join(" ");
        if alt.is_empty() || self.is_plain {
            return;
        }
        let target = node.attr("src").and_then(|src| self.link_target(&src));
        if let Some(target) = target {
            let alt = alt.replace(['[', ']'], " ");
            out.push_markdown(&format!("![{alt}]({})", bracket_target(&target)));
        }
    }
}

/// TeX, if the formula carries it, else its text.
fn math_text(node: &NodeRef<'_>) -> String {
    let tex = node.attr("alttext").map(|text| text.to_string());
    match tex.filter(|tex| !tex.is_empty()) {
        Some(tex) => format!("${}$", tex.trim()),
        None => node.text().split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

/// Elements that are controls or pictures, without text for a reader.
pub(super) fn is_dropped(name: &str) -> bool {
    matches!(
        name,
        "script"
            | "style"
            | "noscript"
            | "template"
            | "head"
            | "svg"
            | "input"
            | "select"
            | "button"
            | "textarea"
            | "iframe"
            | "object"
            | "embed"
            | "canvas"
            | "audio"
            | "video"
            | "map"
            | "area"
            | "link"
            | "meta"
            | "title"
    )
}

/// Whether a link shows a picture.
pub(super) fn has_image(node: &NodeRef<'_>) -> bool {
    node.descendants_it().take(50).any(|inner| inner.node_name().is_some_and(|name| &*name == "img"))
}

/// Names of characters that HTML reads without a semicolon: `&section=1` would become `§ion=1` in many programs.
const LEGACY_ENTITIES: &[&str] = &[
    "amp", "cent", "copy", "curren", "deg", "divide", "gt", "laquo", "lt", "macr", "micro", "middot", "not",
    "ordf", "ordm", "para", "plusmn", "pound", "quot", "raquo", "reg", "sect", "shy", "sup", "times", "uml",
    "yen",
];

/// A link target that cannot end its own parentheses, and in which no parameter is read as a character.
pub(super) fn bracket_target(target: &str) -> String {
    let mut safe = String::with_capacity(target.len());
    for (index, part) in target.split('&').enumerate() {
        if index > 0 {
            let is_entity = LEGACY_ENTITIES.iter().any(|name| part.starts_with(name));
            safe.push_str(if is_entity { "&amp;" } else { "&" });
        }
        safe.push_str(part);
    }
    if safe.contains(['(', ')', ' ']) { format!("<{safe}>") } else { safe }
}

/// The length of the longest run of a character.
pub(super) fn longest_run(text: &str, mark: char) -> usize {
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == mark { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// Escapes what Markdown would take for markup, and no more: a backslash is a token that a model pays for.
fn escape_into(word: &str, out: &mut String) {
    let mut chars = word.chars().peekable();
    let mut before: Option<char> = out.chars().next_back().filter(|c| !c.is_whitespace());
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let needs_escape = match c {
            '*' | '_' => {
                let touches = before.is_some() || next.is_some();
                touches && !(c == '_' && is_word(before) && is_word(next))
            }
            '`' => true,
            '\\' => next.is_some_and(|c| c.is_ascii_punctuation()),
            '<' if next.is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')) => {
                // Not a backslash: a renderer that does not know it would take what follows for a tag.
                out.push_str("&lt;");
                before = Some(c);
                continue;
            }
            ']' => next == Some('('),
            _ => false,
        };
        if needs_escape {
            out.push('\\');
        }
        out.push(c);
        before = Some(c);
    }
}
