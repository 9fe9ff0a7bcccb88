//! Tables of case files: their cells, and which of them list cases.
//!
//! A table is read as GitHub displays it: with or without bars at the ends of its lines, and with its columns in any
//! order. One that is almost a table with cases is an error, because its cases would never run, and the file would pass.

use super::{VERDICTS, WEIGHTS};
use toolgate_proto::find_intended_name;

/// What the rows of a table with cases are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CaseKind {
    /// Calls and verdicts.
    Calls,
    /// Rules and problems.
    Rules,
}

impl CaseKind {
    /// Both, in the order in which headings are compared with them.
    const ALL: [Self; 2] = [Self::Calls, Self::Rules];

    /// The headings of the column with the cases and of that with what they must get.
    pub(super) fn headings(self) -> [&'static str; 2] {
        match self {
            Self::Calls => ["call", "verdict"],
            Self::Rules => ["rule", "problem"],
        }
    }
}

/// What a table is, by its headings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TableKind {
    /// Cases, in these columns, from 0.
    Cases {
        /// What they are.
        kind: CaseKind,
        /// The column with the call or the rule.
        subject: usize,
        /// The column with what it must get.
        expected: usize,
    },
    /// Headings that are almost those of calls.
    AlmostCalls,
    /// Prose, unless a row looks like a case.
    Prose(ProseHeadings),
}

/// The headings of a table that is no table with cases by them alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProseHeadings {
    /// One is almost `call`, such as `calls` or `tool`.
    NearCall,
    /// One is `verdict`, or almost.
    NearVerdict,
    /// Others.
    Other,
}

impl TableKind {
    /// The kind of a table with these headings.
    pub(super) fn of(headings: &[String]) -> Self {
        let words: Vec<String> = headings.iter().map(|heading| plain_word(heading)).collect();
        let find = |word: &str| words.iter().position(|other| other == word);
        for kind in CaseKind::ALL {
            let [subject, expected] = kind.headings();
            if let (Some(subject), Some(expected)) = (find(subject), find(expected)) {
                return Self::Cases { kind, subject, expected };
            }
        }
        // The second column has any heading if the first one says what the rows are.
        for kind in CaseKind::ALL {
            if find(kind.headings()[0]) == Some(0) {
                return Self::Cases { kind, subject: 0, expected: 1 };
            }
        }
        // `tool` is what a call begins with; `role` is almost `rule`, so a heading alone makes no table of rules.
        let is_near_call = |word: &String| {
            matches!(word.as_str(), "tool" | "tools") || strsim::damerau_levenshtein(word, "call") <= 1
        };
        let is_near_verdict =
            |word: &String| word == "verdict" || find_intended_name(word, ["verdict"]).is_some();
        match (words.iter().any(is_near_call), words.iter().any(is_near_verdict)) {
            (true, true) => Self::AlmostCalls,
            (true, false) => Self::Prose(ProseHeadings::NearCall),
            (false, true) => Self::Prose(ProseHeadings::NearVerdict),
            (false, false) => Self::Prose(ProseHeadings::Other),
        }
    }
}

impl ProseHeadings {
    /// What a row of a table with these headings looks like, if it looks like a case.
    pub(super) fn find_case(self, cells: &[String]) -> Option<CaseKind> {
        let is_call = |cell: &str| match (self, code_span_text(cell)) {
            (_, None) | (Self::Other, _) => false,
            (Self::NearCall, Some(_)) => true,
            (Self::NearVerdict, Some(code)) => is_call_form(code),
        };
        find_case(cells, is_call)
    }
}

/// What a line outside of every table looks like, if it looks like a row with a case.
pub(super) fn find_stray_case(cells: &[String]) -> Option<CaseKind> {
    find_case(cells, |cell| code_span_text(cell).is_some())
}

/// What a row looks like: a case in one cell, and in another what it must get.
fn find_case(cells: &[String], is_call: impl Fn(&str) -> bool) -> Option<CaseKind> {
    let has_pair = |is_subject: &dyn Fn(&str) -> bool, expected: &[&str]| {
        let mut subjects = cells.iter().enumerate().filter(|(_, cell)| is_subject(cell));
        subjects.any(|(index, _)| {
            let mut others = cells.iter().enumerate().filter(|(other, _)| *other != index);
            others.any(|(_, cell)| expected.contains(&plain_word(cell).as_str()))
        })
    };
    if has_pair(&is_rule, &WEIGHTS) {
        return Some(CaseKind::Rules);
    }
    has_pair(&is_call, &VERDICTS).then_some(CaseKind::Calls)
}

/// Whether a cell is a rule with its list: deny `Bash(rm *)`.
fn is_rule(cell: &str) -> bool {
    let parts = cell.split_once(' ');
    parts.is_some_and(|(list, rule)| {
        VERDICTS.contains(&plain_word(list).as_str()) && code_span_text(rule.trim()).is_some()
    })
}

/// Whether code looks like a call, and not like a word that a table of another kind explains, such as the name of a mode.
fn is_call_form(code: &str) -> bool {
    code.contains([' ', '{']) || code.starts_with("mcp__") || code.starts_with(char::is_uppercase)
}

/// The cells of a line; `None` if it has no bar. A bar in a cell is written `\|`.
pub(super) fn split_cells(line: &str) -> Option<Vec<String>> {
    let line = line.trim();
    let mut cells = vec![String::new()];
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some('|')) => {
                chars.next();
                cells.last_mut()?.push('|');
            }
            ('|', _) => cells.push(String::new()),
            _ => cells.last_mut()?.push(c),
        }
    }
    if cells.len() == 1 {
        return None;
    }
    // A bar at an end of the line separates nothing.
    if line.starts_with('|') {
        cells.remove(0);
    }
    if cells.last().is_some_and(String::is_empty) {
        cells.pop();
    }
    (!cells.is_empty()).then(|| cells.into_iter().map(|cell| cell.trim().to_owned()).collect())
}

/// Whether a line separates the headings of a table from its rows: `|---|:--|`.
pub(super) fn is_delimiter_line(line: &str) -> bool {
    split_cells(line).is_some_and(|cells| is_delimiter_row(&cells))
}

/// Whether these are the cells of such a line.
pub(super) fn is_delimiter_row(cells: &[String]) -> bool {
    cells.iter().all(|cell| {
        let dashes = cell.strip_prefix(':').unwrap_or(cell);
        let dashes = dashes.strip_suffix(':').unwrap_or(dashes);
        !dashes.is_empty() && dashes.chars().all(|c| c == '-')
    })
}

/// A word without the emphasis and the colon around it, in lower case: `**Call:**` is `call`.
pub(super) fn plain_word(cell: &str) -> String {
    let is_mark = |c: char| matches!(c, '*' | '_' | '`' | '~' | ':') || c.is_whitespace();
    cell.trim_matches(is_mark).to_lowercase()
}

/// The text of a Markdown code span; with two backticks on each side it may contain one.
pub(super) fn code_span_text(cell: &str) -> Option<&str> {
    let double = cell.strip_prefix("``").and_then(|text| text.strip_suffix("``"));
    double.or_else(|| cell.strip_prefix('`')?.strip_suffix('`')).map(str::trim)
}
