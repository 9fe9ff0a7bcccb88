//! What `Glob`, `Grep` and `ls` share: running a search off the async thread, and rendering its results.
//!
//! The search itself is in `toolgate-search`; the modules here turn its results into pages of lines with paths that are
//! short and unambiguous.

mod notices;
mod path_formatter;
mod refusal;
mod result_page;
mod run_search;

pub(crate) use notices::search_notices;
pub(crate) use path_formatter::{PathFormatter, escape_name};
pub(crate) use refusal::{search_refusal, selection_refusal};
pub(crate) use result_page::{ResultPage, result_limit};
pub(crate) use run_search::run_search;
