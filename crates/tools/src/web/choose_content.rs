//! Which part of a page is its content.
//!
//! Readability is best on articles, and throws away a fifth of a reference page; a page's own landmark (`main`) is best on
//! reference pages, and carries the furniture of news pages.
//! So the landmark is used where the page was made by a documentation generator, or where Readability found next to nothing.

use dom_query::{Document, NodeRef};
use dom_smoothie::{Config, Readability};

/// Words in `<meta name="generator">` of programs that write reference pages.
const DOCUMENTATION_GENERATORS: &[&str] = &[
    "rustdoc",
    "mdbook",
    "sphinx",
    "docutils",
    "docusaurus",
    "mkdocs",
    "vitepress",
    "vuepress",
    "doxygen",
    "javadoc",
    "docbook",
    "asciidoctor",
    "antora",
    "gitbook",
    "docfx",
    "yard",
    "typedoc",
    "hexo-docs",
    "nextra",
    "starlight",
];
/// Landmarks of documentation pages that do not name their generator, most telling first.
const DOCUMENTATION_LANDMARKS: &[&str] = &[
    "section#main-content",
    "div#docContent",
    "div.body[role=main]",
    "div#apicontent",
    "div#content.manpage",
    "div.document div.body",
    "article.md-content__inner",
    "main article.theme-doc-markdown",
    "main .markdown-body",
];
/// Generators whose pages are the content and a few parts with known names, without a landmark. Readability drops the
/// name and the synopsis of such a page.
const PLAIN_GENERATORS: &[&str] = &["docbook", "asciidoc"];
/// An article of fewer characters is no article; the landmark is used instead.
const MIN_ARTICLE_CHARS: usize = 200;
/// At most this part of the landmark's text may be links.
const MAX_LANDMARK_LINK_SHARE: f64 = 0.4;

/// The content of a page.
pub(super) struct ChosenContent {
    /// The part of the page, as a document of its own.
    pub(super) document: Document,
    /// Its title.
    pub(super) title: String,
}

/// Chooses the content of a page whose hidden parts are removed.
pub(super) fn choose_content(document: &Document, url: Option<&str>) -> ChosenContent {
    let title = page_title(document);
    if let Some(landmark) = documentation_landmark(document) {
        return ChosenContent { document: fragment_of(&landmark), title };
    }
    let landmark = landmark(document);
    let article = extract_article(document, url);
    let (article_title, article) = match article {
        Some((title, article)) => (title, Some(article)),
        None => (String::new(), None),
    };
    let title = if title.is_empty() { article_title } else { title };
    let article_length = article.as_ref().map_or(0, |article| article.root().normalized_char_count());
    if let Some(landmark) = &landmark {
        let length = landmark.normalized_char_count();
        let gains = article_length < MIN_ARTICLE_CHARS && length > article_length;
        if length > 0 && gains && link_share(landmark, length) < MAX_LANDMARK_LINK_SHARE {
            return ChosenContent { document: fragment_of(landmark), title };
        }
    }
    let whole = || document.body().map_or_else(|| document.clone(), |body| fragment_of(&body));
    ChosenContent { document: article.filter(|_| article_length > 0).unwrap_or_else(whole), title }
}

/// A part of a page as a document of its own, without its navigation.
fn fragment_of(node: &NodeRef<'_>) -> Document {
    let fragment = node.to_fragment();
    for furniture in [
        "nav",
        "[role=navigation]",
        "[role=search]",
        ".headerlink",
        "a.anchor",
        "a.doc-anchor",
        "summary.hideme",
        ".sidebar-logo",
        ".navheader",
        ".navfooter",
        "#footer",
        "#toc",
    ] {
        fragment.select(furniture).remove();
    }
    fragment
}

/// The article that Readability finds, with its title.
fn extract_article(document: &Document, url: Option<&str>) -> Option<(String, Document)> {
    let config = Config { keep_classes: true, ..Config::default() };
    let mut readability = Readability::with_document(document.clone(), url, Some(config)).ok()?;
    let article = readability.parse().ok()?;
    Some((article.title, Document::fragment(article.content)))
}

/// The page's title on one line.
fn page_title(document: &Document) -> String {
    let title = document.select_single("title").text();
    title.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The content of a page that a documentation generator wrote.
fn documentation_landmark(document: &Document) -> Option<NodeRef<'_>> {
    let generator = document.select_single("meta[name=generator]");
    let generator = generator.attr("content").unwrap_or_default().to_ascii_lowercase();
    let is_generated = DOCUMENTATION_GENERATORS.iter().any(|name| generator.contains(name))
        || document
            .select_single("body.rustdoc, div.sphinxsidebar, .sphinx-version, #mdbook-content")
            .exists();
    // Most pages have none of them, which one walk over the tree tells.
    let is_marked = document.select_single(&DOCUMENTATION_LANDMARKS.join(", ")).exists();
    let landmarks = if is_marked { DOCUMENTATION_LANDMARKS } else { &[] };
    let named = landmarks.iter().find_map(|selector| {
        let found = document.select_single(selector);
        found.nodes().first().copied()
    });
    named
        .or_else(|| landmark(document).filter(|_| is_generated))
        .or_else(|| document.body().filter(|_| PLAIN_GENERATORS.iter().any(|name| generator.contains(name))))
        .filter(|node| node.normalized_char_count() > 0)
}

/// The landmark of the main content, if the page has exactly one.
fn landmark(document: &Document) -> Option<NodeRef<'_>> {
    for selector in ["main", "[role=main]"] {
        let found = document.select(selector);
        if let [only] = found.nodes() {
            return Some(*only);
        }
    }
    None
}

/// Which part of the text is in links.
fn link_share(node: &NodeRef<'_>, length: usize) -> f64 {
    let links: usize = node.find(&["a"]).iter().map(NodeRef::normalized_char_count).sum();
    links as f64 / length.max(1) as f64
}
