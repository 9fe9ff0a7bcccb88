//! Pages of search results: whole lines, limited in number and in size.

use toolgate_search::ResultLimit;

/// Bytes of results that a search collects at most. Far more than a page shows, so that totals are usually known.
const MAX_COLLECTED_BYTES: usize = 4 * 1024 * 1024;
/// Upper bound of one result line with its path. Skipped results get this much each, so that they do not use up the
/// bytes of the page after them.
const MAX_LINE_BYTES: usize = 16 * 1024;

/// What a search must collect for a page: one result beyond its end, which shows that there are more.
pub(crate) fn result_limit(offset: usize, limit: usize) -> ResultLimit {
    ResultLimit {
        units: offset.saturating_add(limit).saturating_add(1),
        bytes: MAX_COLLECTED_BYTES.saturating_add(offset.saturating_mul(MAX_LINE_BYTES)),
    }
}

/// Consecutive lines of a result.
#[derive(Debug, Default)]
pub(crate) struct ResultPage {
    /// The lines, joined with line feeds.
    pub(crate) text: String,
    /// The number of lines in `text`.
    pub(crate) shown: usize,
    /// More lines exist, and the next one did not fit into the size limit.
    cut_by_size: bool,
    /// More lines exist than the caller asked for.
    cut_by_limit: bool,
}

impl ResultPage {
    /// Skips `offset` lines and takes as many as `limit` and `max_chars` allow, but at least one, so that following
    /// pages always makes progress. Lines are never split: the next page starts where this one ends.
    pub(crate) fn from_lines(
        lines: impl Iterator<Item = String>,
        offset: usize,
        limit: usize,
        max_chars: usize,
    ) -> Self {
        let mut page = Self::default();
        let mut chars = 0;
        for line in lines.skip(offset) {
            if page.shown == limit {
                page.cut_by_limit = true;
                break;
            }
            chars += line.chars().count() + 1;
            if chars > max_chars && page.shown > 0 {
                page.cut_by_size = true;
                break;
            }
            if page.shown > 0 {
                page.text.push('\n');
            }
            page.text.push_str(&line);
            page.shown += 1;
        }
        page
    }

    /// Whether lines follow after this page.
    pub(crate) fn has_more(&self) -> bool {
        self.cut_by_limit || self.cut_by_size
    }

    /// How to get the next page, if there is one. Every search tool names the field `offset`.
    pub(crate) fn continuation_notice(
        &self,
        noun: &str,
        offset: usize,
        total: Option<u64>,
    ) -> Option<String> {
        let total = total.map_or_else(String::new, |total| format!(" of {total}"));
        let next = offset + self.shown;
        self.has_more().then(|| {
            format!("[{noun} {} to {next}{total}; more follow: continue with `offset` {next}]", offset + 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_pages_have_no_gap_and_no_repetition() {
        let lines = || (0..10).map(|number| format!("line {number}"));
        for (limit, max_chars) in [(3, 1000), (10, 20), (100, 15), (1, 1)] {
            let (mut offset, mut all) = (0, Vec::new());
            loop {
                let page = ResultPage::from_lines(lines(), offset, limit, max_chars);
                all.push(page.text.clone());
                offset += page.shown;
                if !page.has_more() {
                    break;
                }
            }
            assert_eq!(all.join("\n"), lines().collect::<Vec<_>>().join("\n"));
        }
    }
}
