//! A page as text for a model.

use super::choose_content::choose_content;
use super::markdown_writer::MarkdownWriter;
use super::remove_hidden::{flat_text, measure_tree, remove_hidden};
use super::scan_html::{estimate_cost, strip_tags};
use dom_query::{Document, Matcher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use url::Url;

/// A page that is nested deeper is read as flat text: the libraries recurse.
const MAX_TREE_DEPTH: usize = 256;
/// A page that seems to be nested deeper is not even parsed.
const MAX_PARSED_DEPTH: usize = 2_000;
/// A page with a tag of more attributes is not parsed either.
const MAX_PARSED_ATTRIBUTES: usize = 1_000;
/// Nor is one with more tags.
const MAX_PARSED_TAGS: usize = 150_000;
/// A page with more nodes is not searched for its article.
const MAX_ARTICLE_NODES: usize = 60_000;
/// A page with more nodes is read as flat text.
const MAX_TREE_NODES: usize = 400_000;
/// Bytes of flat text.
const MAX_FLAT_BYTES: usize = 2_000_000;
/// Bytes of HTML in which the article is searched; the search takes time by the square of some pages' text.
const MAX_ARTICLE_BYTES: usize = 3_000_000;
/// The stack of the thread that converts.
const STACK_BYTES: usize = 16 << 20;

/// The form of a page's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageForm {
    /// Markdown of the content.
    Markdown,
    /// Text of the content without marks.
    Text,
    /// HTML of the content.
    Html,
}

/// A page as text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PageText {
    /// The title, if the page has one.
    pub title: String,
    /// The text.
    pub text: String,
}

/// Whether a text is a CSS selector.
pub fn is_selector(text: &str) -> bool {
    !text.trim().is_empty() && Matcher::new(text).is_ok()
}

/// Converts a page. Total: any text gives a result, and a page that defeats the libraries is read as flat text.
///
/// With a selector, the elements that match it are converted, and nothing else.
pub fn convert_page(html: &str, url: Option<&str>, form: PageForm, selector: Option<&str>) -> PageText {
    let work = || {
        let cost = estimate_cost(html);
        let is_costly = cost.attributes > MAX_PARSED_ATTRIBUTES || cost.tags > MAX_PARSED_TAGS;
        if cost.depth > MAX_PARSED_DEPTH || is_costly {
            return PageText { title: String::new(), text: strip_tags(html, MAX_FLAT_BYTES) };
        }
        let document = Document::from(html);
        let size = measure_tree(&document);
        remove_hidden(&document);
        if size.depth > MAX_TREE_DEPTH || size.nodes > MAX_TREE_NODES {
            return PageText { title: String::new(), text: flat_text(&document, MAX_FLAT_BYTES) };
        }
        let base = page_base(&document, url);
        let is_large = size.nodes > MAX_ARTICLE_NODES || html.len() > MAX_ARTICLE_BYTES;
        convert_document(&document, (url, base.as_ref()), form, selector, is_large)
    };
    // Parsers of hostile text run apart: with a stack for deep trees, and where a panic ends only the conversion.
    let run = || catch_unwind(AssertUnwindSafe(work)).ok();
    let converted = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run).ok()?;
        thread.join().ok().flatten()
    });
    converted.unwrap_or_default()
}

/// Converts a tree that is neither too deep nor too large.
fn convert_document(
    document: &Document,
    (url, base): (Option<&str>, Option<&Url>),
    form: PageForm,
    selector: Option<&str>,
    is_large: bool,
) -> PageText {
    let writer = MarkdownWriter { base, is_plain: form == PageForm::Text };
    if let Some(selector) = selector {
        return PageText { title: String::new(), text: select_text(document, &writer, form, selector) };
    }
    if is_large {
        let body = document.body().unwrap_or_else(|| document.root());
        let text = match form {
            PageForm::Markdown | PageForm::Text => writer.write_document(&body),
            PageForm::Html => body.inner_html().to_string(),
        };
        return PageText { title: String::new(), text };
    }
    // Readability looks for `<base>` itself.
    let chosen = choose_content(document, url);
    let text = match form {
        PageForm::Markdown | PageForm::Text => writer.write_document(&chosen.document.root()),
        PageForm::Html => chosen.document.html().to_string(),
    };
    PageText { title: chosen.title, text }
}

/// The elements that match, in order. One inside another that matches is not repeated.
fn select_text(document: &Document, writer: &MarkdownWriter<'_>, form: PageForm, selector: &str) -> String {
    let Ok(matcher) = Matcher::new(selector) else { return String::new() };
    let found = document.select_matcher(&matcher);
    let nodes = found.nodes();
    let mut parts = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for node in nodes {
        let is_inside = node.ancestors_it(None).any(|outer| seen.contains(&outer.id));
        seen.insert(node.id);
        if is_inside {
            continue;
        }
        let part = match form {
            PageForm::Markdown | PageForm::Text => writer.write_node(node),
            PageForm::Html => node.html().to_string(),
        };
        if !part.trim().is_empty() {
            parts.push(part);
        }
    }
    parts.join("\n\n")
}

/// What relative links start from: `<base>` if it is an address of the web, else the page's own URL.
fn page_base(document: &Document, url: Option<&str>) -> Option<Url> {
    let own = url.and_then(|url| Url::parse(url).ok());
    let given = document.select_single("base[href]");
    let given = given.attr("href").and_then(|href| match &own {
        Some(own) => own.join(href.trim()).ok(),
        None => Url::parse(href.trim()).ok(),
    });
    given.filter(|base| matches!(base.scheme(), "http" | "https")).or(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn markdown(html: &str) -> String {
        convert_page(html, Some("https://site.example/dir/page"), PageForm::Markdown, Some("body")).text
    }

    #[test]
    fn elements_become_their_markdown() {
        for (html, expected) in [
            ("<h2>A  <em>b</em></h2><p>c\n d</p>", "## A *b*\n\nc d"),
            ("<p>a<b> b </b>c</p>", "a **b** c"),
            ("<p><a href='x?a=1&amp;b=2'> l </a>.</p>", "[l](https://site.example/dir/x?a=1&b=2) ."),
            ("<p><a href='javascript:x()'>js</a> <a href='data:text/html,x'>d</a></p>", "js d"),
            ("<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>", "- a\n  - b\n- c"),
            ("<ol start=3><li>a</li><li><p>b</p><p>c</p></li></ol>", "3. a\n4. b\n\n   c"),
            ("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n>\n> b"),
            ("<pre><code class='language-rust'>fn a() {}\n</code></pre>", "```rust\nfn a() {}\n```"),
            ("<p>use <code>a`b</code></p>", "use ``a`b``"),
            ("<dl><dt>t</dt><dd>d</dd><dd>e</dd></dl>", "**t**\n: d\n: e"),
            (
                "<table><tr><th>a<th>b</tr><tr><td>1<br>2<td>3|4</tr></table>",
                "| a | b |\n| --- | --- |\n| 1<br>2 | 3\\|4 |",
            ),
            (
                "<table><tr><td colspan=2>a</tr><tr><td>b<td>c</tr></table>",
                "| a |  |\n| --- | --- |\n| b | c |",
            ),
            ("<p>snake_case *x* <tag> 1 < 2 # a</p>", "snake_case \\*x\\* 1 < 2 # a"),
            ("<p># a</p><p>- b</p>", "\\# a\n\n\\- b"),
            ("<img alt='a pic' src='/i.png'><img src='/j.png'>", "![a pic](https://site.example/i.png)"),
            ("<details><summary>s</summary><p>t</p></details>", "**s**\n\nt"),
            ("<details><summary><h4>fn a&lt;T>()</h4></summary><p>t</p></details>", "#### fn a&lt;T>()\n\nt"),
            ("<a href='/x'><h3>t</h3><p>u</p></a>", "### [t](https://site.example/x)\n\nu"),
            (
                "<p>a <a href='/x'><img src='/i.png'></a> <a href='/y'></a></p>",
                "a [image](https://site.example/x)",
            ),
            (
                "<p><a href='/x?a=1&amp;section=2&amp;b=3'>l</a></p>",
                "[l](https://site.example/x?a=1&amp;section=2&b=3)",
            ),
            ("<p>1. a</p><p>2024 b</p><p>3.5</p>", "1\\. a\n\n2024 b\n\n3.5"),
            ("<p>* a</p><p>a * b</p>", "\\* a\n\na * b"),
            ("<p><em>a</em><em>b</em> <em>c</em></p>", "*ab* *c*"),
            ("<blockquote><pre>a\nb</pre></blockquote>", "```\na\nb\n```"),
            (
                "<blockquote><p>a</p><p>b</p><pre>c\nd</pre><p>e</p></blockquote>",
                "> a\n>\n> b\n\n```\nc\nd\n```\n\n> e",
            ),
            ("<blockquote><code>``</code> a</blockquote>", "> ``` `` ``` a"),
            ("<a href='/x'><div><img src='/i.png'></div></a>", "[image](https://site.example/x)"),
            (
                "<a href='/x'><div><img alt='i' src='/i.png'></div></a>",
                "[![i](https://site.example/i.png)](https://site.example/x)",
            ),
            (
                "<a href='/x'><div><img alt='i' src='/i.png'></div><p>t [1]</p></a>",
                "![i](https://site.example/i.png)\n\n[t [1]](https://site.example/x)",
            ),
            ("<a href='/x'><ul><li>a</li><li>b</li></ul></a>", "- [a](https://site.example/x)\n- b"),
            ("<a href='/x'><ol><li><h3>a</h3></li></ol></a>", "1. ### [a](https://site.example/x)"),
            (
                "<table><tr><td>a<ul><li>b</li><li>c</li></ul>d<td><p>e</p><p>f</p></tr><tr><td>1<td>2</tr></table>",
                "| a<br>- b<br>- c<br>d | e<br>f |\n| --- | --- |\n| 1 | 2 |",
            ),
            (
                "<pre>see <a href='/x'>x</a>, <a href='/x'>x</a> and <a href='#y'>y</a></pre>",
                "```\nsee x, x and y\n```\n\nLinks: [x](https://site.example/x)",
            ),
        ] {
            assert_eq!(markdown(html), expected, "{html}");
        }
    }

    #[test]
    fn name_and_synopsis_of_a_reference_page_are_kept() {
        for (generator, top, end) in [
            ("DocBook XSL Stylesheets", "<div class=navheader>Prev</div>", "<div class=navfooter>Next</div>"),
            ("AsciiDoc 10.2.0", "<div id=toc>Contents</div>", "<div id=footer>Last updated</div>"),
        ] {
            let text = "Words of a description that is long enough to be an article. ".repeat(20);
            let html = format!(
                "<head><meta name=generator content='{generator}'><title>SELECT</title></head><body>{top}\
                 <div><h2>SELECT</h2><p>retrieve rows</p></div><div><h2>Synopsis</h2><pre>SELECT x</pre></div>\
                 <div><h2>Description</h2><p>{text}</p></div>{end}</body>"
            );
            let page = convert_page(&html, None, PageForm::Markdown, None);
            let start =
                "## SELECT\n\nretrieve rows\n\n## Synopsis\n\n```\nSELECT x\n```\n\n## Description\n\nWords";
            assert!(
                page.text.starts_with(start) && page.text.ends_with("article."),
                "{generator}: {}",
                page.text
            );
            assert_eq!(page.title, "SELECT");
        }
    }

    #[test]
    fn nothing_hidden_is_shown() {
        let html = "<main><p>VISIBLE</p><p hidden>H1</p><p style='display:none'>H2</p><p aria-hidden=true>H4</p><!-- H5 -->\
                    <template>H6</template><script>H7</script><noscript>H9</noscript></main>";
        for form in [PageForm::Markdown, PageForm::Text, PageForm::Html] {
            for selector in [None, Some("main")] {
                let text = convert_page(html, None, form, selector).text;
                assert!(text.contains("VISIBLE") && !text.contains('H'), "{form:?} {selector:?}: {text}");
            }
        }
    }

    #[test]
    fn nesting_bombs_are_survived() {
        for unit in
            ["<div>", "<ul><li>", "<b>", "<table><tr><td>", "<blockquote>", "<font>", "<span>", "<dl><dd>"]
        {
            for depth in [200, 20_000] {
                let html = format!("<h1>Deep</h1>{}leaf text", unit.repeat(depth));
                let text = convert_page(&html, None, PageForm::Markdown, None).text;
                assert!(text.contains("leaf text"), "{unit} {depth}: {}", text.len());
                assert!(text.len() < 1_000_000, "{unit} {depth}: {}", text.len());
            }
        }
    }

    #[test]
    fn only_a_selector_is_one() {
        assert!(is_selector(".pick") && is_selector("main > p:first-child, #x"));
        assert!(!is_selector(":::") && !is_selector("") && !is_selector("a["));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { cases: 256, ..Default::default() })]
        #[test]
        fn any_text_is_converted(html in "(<[a-z]{1,5}( [a-z]+=[^>]{0,9})?>|</[a-z]{1,5}>|&[a-z#0-9]{1,5};|.){0,60}") {
            for form in [PageForm::Markdown, PageForm::Text, PageForm::Html] {
                let _ = convert_page(&html, Some("https://a.example/"), form, None);
            }
        }
    }
}
