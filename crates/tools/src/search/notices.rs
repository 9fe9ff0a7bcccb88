//! Notices below the results of a search: what it could not show.

use super::PathFormatter;
use toolgate_proto::format_nonzero_count;
use toolgate_search::SkippedSummary;

/// Entries that policy withheld and entries that could not be read, in brackets, one line each. Without them an empty
/// result would mean that nothing is there.
pub(crate) fn search_notices(skipped: &SkippedSummary, paths: &PathFormatter) -> Vec<String> {
    let mut notices = Vec::new();
    let withheld: Vec<_> = [
        format_nonzero_count(skipped.withheld_directories, "directory", "directories"),
        format_nonzero_count(skipped.withheld_files, "file", "files"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !withheld.is_empty() {
        notices.push(format!("[{} withheld by policy]", withheld.join(" and ")));
    }
    if let (Some(entries), Some((path, problem))) =
        (format_nonzero_count(skipped.unreadable, "entry", "entries"), &skipped.first_unreadable)
    {
        notices.push(format!(
            "[{entries} could not be read, the first is `{}`: {problem}]",
            paths.format_path(path)
        ));
    }
    notices
}
