//! HTML as Markdown, block by block.
//!
//! Written here and not taken from a library: those that were measured lose table rows, definition lists or the language of
//! code, or overflow the stack.
//! The tree's depth is limited before the writer sees it, so plain recursion is safe.

use super::markdown_inline::{InlineText, bracket_target, has_image, is_dropped, longest_run};
use super::markdown_table::write_markdown_table;
use dom_query::NodeRef;
use url::Url;

/// Lists and quotes that are nested deeper are not indented further: each level would repeat its mark on every line.
const MAX_INDENT_LEVELS: usize = 12;
/// Links of one code block that are listed behind it.
const MAX_CODE_LINKS: usize = 100;

/// Writes Markdown, or plain text.
#[derive(Debug, Clone, Copy)]
pub(super) struct MarkdownWriter<'a> {
    /// What relative links start from.
    pub(super) base: Option<&'a Url>,
    /// Text without marks and link targets.
    pub(super) is_plain: bool,
}

/// The blocks of a document, in order.
type BlockTexts = Vec<String>;

impl MarkdownWriter<'_> {
    /// The content of a node.
    pub(super) fn write_document(&self, node: &NodeRef<'_>) -> String {
        self.write_children(node, 0).join("\n\n")
    }

    /// One node itself.
    pub(super) fn write_node(&self, node: &NodeRef<'_>) -> String {
        let mut blocks = BlockTexts::new();
        let mut inline = InlineText::default();
        self.write_part(node, 0, &mut inline, &mut blocks);
        flush_inline(&mut inline, &mut blocks);
        blocks.join("\n\n")
    }

    /// The blocks of the children of a node. `level` counts the lists and quotes around it.
    pub(super) fn write_children(&self, node: &NodeRef<'_>, level: usize) -> BlockTexts {
        let mut blocks = BlockTexts::new();
        let mut inline = InlineText::default();
        for child in node.children_it(false) {
            self.write_part(&child, level, &mut inline, &mut blocks);
        }
        flush_inline(&mut inline, &mut blocks);
        blocks
    }

    /// One child: a block of its own, or a part of the paragraph that is being written.
    fn write_part(&self, node: &NodeRef<'_>, level: usize, inline: &mut InlineText, blocks: &mut BlockTexts) {
        let name = match node.node_name() {
            Some(name) if node.is_element() => name,
            _ => {
                if node.is_text() {
                    self.write_inline(node, inline);
                }
                return;
            }
        };
        let name = &*name;
        if is_dropped(name) {
            return;
        }
        if !is_block(name) && !has_block(node) {
            self.write_inline(node, inline);
            return;
        }
        flush_inline(inline, blocks);
        self.write_block(node, name, level, blocks);
    }

    /// One block by the name of its element.
    fn write_block(&self, node: &NodeRef<'_>, name: &str, level: usize, blocks: &mut BlockTexts) {
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let text = self.inline_line(node);
                let depth = name.get(1..).and_then(|digit| digit.parse().ok()).unwrap_or(1);
                if !text.is_empty() {
                    let marks = if self.is_plain { String::new() } else { format!("{} ", "#".repeat(depth)) };
                    blocks.push(format!("{marks}{text}"));
                }
            }
            "pre" | "listing" | "xmp" => {
                blocks.extend(self.write_code_block(node));
                blocks.extend(self.write_code_links(node));
            }
            "ul" | "ol" | "menu" | "dir" => blocks.extend(self.write_list(node, name == "ol", level)),
            "blockquote" => {
                let inner = self.write_children(node, level + 1);
                let is_marked = !self.is_plain && level < MAX_INDENT_LEVELS;
                if is_marked { quote_blocks(inner, blocks) } else { blocks.extend(inner) }
            }
            "table" => blocks.extend(write_markdown_table(self, node, level)),
            "hr" if !self.is_plain => blocks.push("---".to_owned()),
            "dl" => blocks.extend(self.write_definitions(node, level)),
            // One with a heading is the heading of its section, as in pages of rustdoc.
            "summary" if !self.is_plain && !has_heading(node) => {
                let text = self.inline_line(node);
                if !text.is_empty() {
                    blocks.push(format!("**{text}**"));
                }
            }
            "a" => self.write_block_link(node, level, blocks),
            _ => blocks.extend(self.write_children(node, level)),
        }
    }

    /// A link around blocks: the first heading or text in it carries the link, or its picture if there is no text.
    fn write_block_link(&self, node: &NodeRef<'_>, level: usize, blocks: &mut BlockTexts) {
        let mut inner = self.write_children(node, level);
        let target = node.attr("href").and_then(|href| self.link_target(&href)).filter(|_| !self.is_plain);
        if let Some(target) = target {
            let target = bracket_target(&target);
            let at = inner
                .iter()
                .position(|block| is_linkable(block) && !block.starts_with("!["))
                .or_else(|| inner.iter().position(|block| is_linkable(block)));
            match at.and_then(|at| inner.get_mut(at)) {
                Some(block) => *block = link_first_line(block, &target),
                None if has_image(node) => inner.push(format!("[image]({target})")),
                None => {}
            }
        }
        blocks.extend(inner);
    }

    /// A list, with its items numbered from `start`.
    fn write_list(&self, node: &NodeRef<'_>, is_ordered: bool, level: usize) -> Option<String> {
        let start = node.attr("start").and_then(|start| start.trim().parse::<i64>().ok()).unwrap_or(1);
        let mut lines = Vec::new();
        let mut number = start.max(0);
        let mut is_loose = false;
        for child in node.children_it(false) {
            if !child.is_element() {
                // Text between the items is not valid, and shown all the same.
                let text = child.text();
                if child.is_text() && !text.trim().is_empty() {
                    lines.push(text.trim().to_owned());
                }
                continue;
            }
            let is_item = child.node_name().is_some_and(|name| &*name == "li");
            let blocks = if is_item {
                self.write_children(&child, level + 1)
            } else {
                single(self.write_node(&child))
            };
            if blocks.is_empty() {
                continue;
            }
            let mark = match (is_item, self.is_plain, is_ordered) {
                (false, ..) => String::new(),
                (true, _, true) => format!("{number}. "),
                (true, _, false) => "- ".to_owned(),
            };
            number += i64::from(is_item);
            is_loose |= blocks.iter().any(|block| block.contains("\n\n"));
            lines.push(write_item(&blocks, &mark, level));
        }
        (!lines.is_empty()).then(|| lines.join(if is_loose { "\n\n" } else { "\n" }))
    }

    /// A definition list: terms in bold, definitions behind a colon.
    fn write_definitions(&self, node: &NodeRef<'_>, level: usize) -> BlockTexts {
        let mut blocks: BlockTexts = Vec::new();
        for child in node.children_it(false).filter(NodeRef::is_element) {
            let name = child.node_name().unwrap_or_default();
            match &*name {
                "dt" => {
                    let inner = self.write_children(&child, level).join(" ");
                    let is_short = !self.is_plain && !inner.contains(['\n', '*']);
                    blocks.push(if is_short && !inner.is_empty() { format!("**{inner}**") } else { inner });
                }
                "dd" => {
                    let inner = self.write_children(&child, level + 1).join("\n\n");
                    let is_marked = !self.is_plain && level < MAX_INDENT_LEVELS;
                    let text = if is_marked { write_item(&single(inner), ": ", level) } else { inner };
                    match blocks.last_mut() {
                        Some(term) if term.starts_with("**") && !term.contains("\n\n") => {
                            term.push('\n');
                            term.push_str(&text);
                        }
                        _ => blocks.push(text),
                    }
                }
                // Groups of terms and definitions.
                "div" => blocks.extend(self.write_definitions(&child, level)),
                _ => blocks.push(self.write_node(&child)),
            }
        }
        blocks.retain(|block| !block.trim().is_empty());
        blocks
    }

    /// Code between fences, with its language.
    fn write_code_block(&self, node: &NodeRef<'_>) -> Option<String> {
        let mut code = String::new();
        collect_code(node, &mut code);
        let code = code.trim_matches('\n').trim_end();
        if code.trim().is_empty() {
            return None;
        }
        if self.is_plain {
            return Some(code.to_owned());
        }
        let fence = "`".repeat(longest_run(code, '`').max(2) + 1);
        Some(format!("{fence}{}\n{code}\n{fence}", code_language(node).unwrap_or_default()))
    }

    /// The links of a code block, which cannot be written inside it; each once.
    fn write_code_links(&self, node: &NodeRef<'_>) -> Option<String> {
        let mut links: Vec<String> = Vec::new();
        for link in node.descendants_it().filter(|inner| inner.node_name().is_some_and(|name| &*name == "a"))
        {
            let target = link.attr("href").and_then(|href| self.link_target(&href));
            let label = self.inline_line(&link);
            if let Some(target) = target.filter(|target| !target.starts_with('#') && !label.is_empty()) {
                let link =
                    format!("[{}]({})", label.replace(['[', ']'], " ").trim(), bracket_target(&target));
                if links.len() < MAX_CODE_LINKS && !links.contains(&link) {
                    links.push(link);
                }
            }
        }
        (!self.is_plain && !links.is_empty()).then(|| format!("Links: {}", links.join(", ")))
    }

    /// An absolute link target; `None` for one that is no address of the web.
    pub(super) fn link_target(&self, href: &str) -> Option<String> {
        let href = href.trim();
        if href.is_empty() {
            return None;
        }
        if href.starts_with('#') {
            return Some(href.chars().filter(|c| !c.is_whitespace()).collect());
        }
        let url = match self.base {
            Some(base) => base.join(href).ok()?,
            None => Url::parse(href).ok()?,
        };
        matches!(url.scheme(), "http" | "https" | "mailto" | "tel" | "ftp").then(|| url.to_string())
    }
}

/// Ends the paragraph that is being written.
fn flush_inline(inline: &mut InlineText, blocks: &mut BlockTexts) {
    let text = std::mem::take(inline).finish();
    if !text.is_empty() {
        blocks.push(escape_start(text));
    }
}

/// A paragraph that begins like a heading, a quote or a list is none.
fn escape_start(text: String) -> String {
    let is_mark = |mark: &str| text.strip_prefix(mark).is_some_and(|rest| rest.starts_with(' '));
    let heading = text.trim_start_matches('#');
    let looks_like_heading = heading.len() < text.len() && heading.starts_with(' ');
    if looks_like_heading || ["-", "+", "*", ">"].into_iter().any(is_mark) {
        return format!("\\{text}");
    }
    // A number with a full stop.
    let after = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.len() - after.len();
    match (text.get(..digits), after.get(1..)) {
        (Some(number), Some(rest))
            if (1..=9).contains(&digits) && after.starts_with(['.', ')']) && rest.starts_with(' ') =>
        {
            format!("{number}\\{after}")
        }
        _ => text,
    }
}

/// Quotes blocks, except for code: it is copied from a page, and the marks of the quote would be copied with it.
fn quote_blocks(inner: BlockTexts, blocks: &mut BlockTexts) {
    let mut quoted = BlockTexts::new();
    let end_quote = |quoted: &mut BlockTexts, blocks: &mut BlockTexts| {
        if !quoted.is_empty() {
            blocks.push(prefix_lines(&std::mem::take(quoted).join("\n\n"), "> ", ">"));
        }
    };
    for block in inner {
        if is_code_block(&block) {
            end_quote(&mut quoted, blocks);
            blocks.push(block);
        } else {
            quoted.push(block);
        }
    }
    end_quote(&mut quoted, blocks);
}

/// Whether a block is code between fences, and not a paragraph that begins with code in a line.
fn is_code_block(block: &str) -> bool {
    block.starts_with("```") && block.contains('\n')
}

/// Whether a link can be written around the first line of a block: it is not code or a table, has no link, and its
/// brackets match.
fn is_linkable(block: &str) -> bool {
    let line = block.lines().next().unwrap_or_default();
    let mut open = 0_usize;
    for c in line.chars() {
        match c {
            '[' => open += 1,
            ']' if open == 0 => return false,
            ']' => open -= 1,
            _ => {}
        }
    }
    let has_link = line.matches("](").count() > line.matches("![").count();
    open == 0 && !has_link && !is_code_block(block) && !line.starts_with("| ") && line != "---"
}

/// Makes the first line of a block a link, behind the marks of a heading, a quote or a list.
fn link_first_line(block: &str, target: &str) -> String {
    let (line, rest) = block.split_at_checked(block.find('\n').unwrap_or(block.len())).unwrap_or((block, ""));
    let mut label = line;
    loop {
        let number = label.trim_start_matches(|c: char| c.is_ascii_digit());
        let numbered = number.strip_prefix(". ").filter(|_| number.len() < label.len());
        let marked = label.trim_start_matches('#').strip_prefix(' ').filter(|_| label.starts_with('#'));
        let listed = label.strip_prefix("- ").or_else(|| label.strip_prefix("> "));
        match numbered.or(marked).or(listed) {
            Some(behind) => label = behind,
            None => break,
        }
    }
    let marks = line.strip_suffix(label).unwrap_or_default();
    format!("{marks}[{label}]({target}){rest}")
}

/// One block, unless it is empty.
fn single(block: String) -> BlockTexts {
    if block.trim().is_empty() { Vec::new() } else { vec![block] }
}

/// The blocks of an item behind its mark. Blocks after the first are indented to it.
fn write_item(blocks: &[String], mark: &str, level: usize) -> String {
    let indent = if level < MAX_INDENT_LEVELS { " ".repeat(mark.len()) } else { String::new() };
    let mut out = String::new();
    let mut is_first_line = true;
    for (index, block) in blocks.iter().enumerate() {
        if index > 0 {
            let is_list = block.starts_with("- ") || block.starts_with("1. ");
            out.push_str(if is_list { "\n" } else { "\n\n" });
        }
        for (line_number, line) in block.split('\n').enumerate() {
            if line_number > 0 {
                out.push('\n');
            }
            if is_first_line {
                out.push_str(mark);
                is_first_line = false;
            } else if !line.is_empty() {
                out.push_str(&indent);
            }
            out.push_str(line);
        }
    }
    out
}

/// Puts a mark before each line.
fn prefix_lines(text: &str, mark: &str, bare_mark: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 20);
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            out.push('\n');
        }
        out.push_str(if line.is_empty() { bare_mark } else { mark });
        out.push_str(line);
    }
    out
}

/// Code as it is shown: line breaks kept, `<br>` is one.
fn collect_code(node: &NodeRef<'_>, out: &mut String) {
    for child in node.children_it(false) {
        if child.is_text() {
            out.push_str(&child.text());
            continue;
        }
        let Some(name) = child.node_name() else { continue };
        match &*name {
            "br" => out.push('\n'),
            "script" | "style" | "button" | "svg" => {}
            name => {
                let is_line = matches!(name, "div" | "p" | "li" | "tr");
                if is_line && !out.is_empty() && !out.ends_with('\n') {
                    out.push('\n');
                }
                collect_code(&child, out);
                if is_line && !out.ends_with('\n') {
                    out.push('\n');
                }
            }
        }
    }
}

/// The language of a code block, from the classes that highlighters use, on it, in it or around it.
fn code_language(node: &NodeRef<'_>) -> Option<String> {
    let inner = node.children_it(false).find(|child| child.node_name().is_some_and(|name| &*name == "code"));
    let outer = node.parent();
    let places = [inner, Some(*node), outer.and_then(|outer| outer.parent()), outer];
    for place in places.into_iter().flatten() {
        let classes = place.class().unwrap_or_default();
        let named = classes.split_whitespace().find_map(|class| {
            ["language-", "lang-", "highlight-source-", "brush:", "highlight-"]
                .into_iter()
                .find_map(|mark| class.strip_prefix(mark))
        });
        let language =
            named.map(str::to_owned).or_else(|| place.attr("data-lang").map(|lang| lang.to_string()));
        let is_plain = |language: &String| {
            let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '#' | '-' | '_' | '.');
            !language.is_empty() && language.len() <= 20 && language.chars().all(is_name)
        };
        let language = language.map(|language| language.trim_end_matches("-linenos").to_owned());
        if let Some(language) = language.filter(is_plain) {
            return (!matches!(language.as_str(), "default" | "none" | "plaintext" | "text"))
                .then_some(language);
        }
        if classes.split_whitespace().any(|class| class == "rust") {
            return Some("rust".to_owned());
        }
    }
    None
}

/// Whether an element is laid out as a block.
pub(super) fn is_block(name: &str) -> bool {
    matches!(
        name,
        "address"
            | "article"
            | "aside"
            | "blockquote"
            | "body"
            | "center"
            | "dd"
            | "details"
            | "dialog"
            | "dir"
            | "div"
            | "dl"
            | "dt"
            | "fieldset"
            | "figcaption"
            | "figure"
            | "footer"
            | "form"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "header"
            | "hgroup"
            | "hr"
            | "html"
            | "legend"
            | "li"
            | "listing"
            | "main"
            | "menu"
            | "nav"
            | "ol"
            | "p"
            | "pre"
            | "search"
            | "section"
            | "summary"
            | "table"
            | "tbody"
            | "td"
            | "tfoot"
            | "th"
            | "thead"
            | "tr"
            | "ul"
            | "xmp"
            | "caption"
            | "optgroup"
            | "option"
    )
}

/// Whether an element contains a heading.
fn has_heading(node: &NodeRef<'_>) -> bool {
    let is_heading = |name: &str| matches!(name, "h1" | "h2" | "h3" | "h4" | "h5" | "h6");
    node.descendants_it()
        .take(200)
        .any(|inner| inner.is_element() && inner.node_name().is_some_and(|name| is_heading(&name)))
}

/// Whether an inline element contains a block. Looks at the first descendants only, so that it stays cheap.
fn has_block(node: &NodeRef<'_>) -> bool {
    node.descendants_it()
        .take(200)
        .any(|inner| inner.is_element() && inner.node_name().is_some_and(|name| is_block(&name)))
}
