//! Checks any text as an HTML page: it is converted to every form, and nothing hidden is shown.

use toolgate_tools::{PageForm, convert_page};

/// Checks that the conversion ends, and that a paragraph that is hidden stays so whatever stands around it.
pub(crate) fn check(text: &str) {
    for form in [PageForm::Markdown, PageForm::Text, PageForm::Html] {
        let _ = convert_page(text, Some("https://a.example/b"), form, None);
        let _ = convert_page(text, None, form, Some("p, td"));
    }
    let page = format!("<p hidden>xHIDDENx</p>{text}");
    let shown = convert_page(&page, None, PageForm::Markdown, None).text;
    assert!(text.contains("xHIDDENx") || !shown.contains("xHIDDENx"), "a hidden paragraph is shown");
}
