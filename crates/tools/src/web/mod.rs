//! The web: what `WebFetch` and `WebSearch` share.
//!
//! Pages are fetched by `toolgate-net`, which asks the rules of the call about every hop and every address.
//! Here they become text: hidden parts removed, the content chosen and written as Markdown, marked as untrusted.

mod browser;
mod charset;
mod choose_content;
mod fetch_page;
mod markdown_inline;
mod markdown_table;
mod markdown_writer;
mod page_content;
mod page_text;
mod remove_hidden;
mod scan_html;
mod search_service;
mod search_web;
mod untrusted_text;
mod web_config;
mod web_state;

pub(crate) use browser::{
    BrowserHosts, BrowserLaunch, BrowserPage, CaptureFormat, CaptureWindow, CapturedImage, LocalPage,
    PageView, ViewRequest, ViewSource, view_page,
};
pub use fetch_page::upgrade_scheme;
pub(crate) use fetch_page::{WebPageRequest, check_robots, fetch_page, open_socket};
pub use page_text::{PageForm, PageText, convert_page, is_selector};
pub(crate) use search_service::SearchQuery;
pub use search_service::SearchService;
pub(crate) use search_web::{search_service, search_web};
pub(crate) use untrusted_text::{clean_line, clean_text, clean_title, wrap_untrusted_page};
pub use web_config::{PageModel, SearchConfig, WebConfig};
pub(crate) use web_state::WebState;

use toolgate_gate::Session;

/// Sets how the web tools of a session work.
pub fn set_web_config(session: &Session, config: WebConfig) {
    session.state::<WebState>().set_config(config);
}

/// Tells the web tools of a session about text that the user wrote: with
/// [`WebConfig::only_named_urls`], its URLs may be fetched.
pub fn note_user_text(session: &Session, text: &str) {
    session.state::<WebState>().note_urls(text);
}
