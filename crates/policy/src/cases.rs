//! Markdown files that are manual and test in one.
//!
//! A file holds prose, fenced blocks marked `json settings`, and tables. A table whose first column is headed `call`
//! lists calls and the verdicts expected under the settings above it; one headed `rule` lists rules and the problems
//! that loading them reports. Everything else is prose. This module only reads the form: what the settings mean and
//! what a call would do is for whoever runs the file.

use serde_json::Value;

/// One block of settings with the rows that belong to it.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseSection {
    /// The nearest heading above.
    pub heading: String,
    /// The settings, as JSON.
    pub settings: Value,
    /// The calls, in order.
    pub calls: Vec<CallRow>,
    /// The rules and their problems, in order.
    pub rules: Vec<RuleRow>,
}

/// A call and what must come of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRow {
    /// The tool's name.
    pub tool: String,
    /// The rest of the cell: a JSON object, or the value of the tool's main field.
    pub input: String,
    /// `allow`, `ask` or `deny`, in lower case.
    pub verdict: String,
    /// The line in the file, from 1.
    pub line: usize,
}

/// A rule and what loading it must report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleRow {
    /// The list it stands in: `allow`, `ask` or `deny`.
    pub action: String,
    /// The rule.
    pub rule: String,
    /// `fatal`, `warning`, `note` or `fine`, in lower case.
    pub weight: String,
    /// The line in the file, from 1.
    pub line: usize,
}

/// What a table is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CaseTableKind {
    Calls,
    Rules,
    Prose,
}

/// Reads a file. An error names the line and what is wrong there.
pub fn parse(text: &str) -> Result<Vec<CaseSection>, String> {
    let mut sections: Vec<CaseSection> = Vec::new();
    let mut heading = String::new();
    let mut block: Option<(bool, usize, String)> = None;
    let mut table: Option<CaseTableKind> = None;
    for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        if let Some(fence) = line.trim_start().strip_prefix("```") {
            match block.take() {
                None => block = Some((fence.trim() == "json settings", at, String::new())),
                Some((true, start, json)) => {
                    let settings = serde_json::from_str(&json)
                        .map_err(|error| format!("line {start}: the settings are not valid JSON: {error}"))?;
                    let heading = heading.clone();
                    sections.push(CaseSection { heading, settings, calls: Vec::new(), rules: Vec::new() });
                }
                Some((false, _, _)) => {}
            }
            continue;
        }
        if let Some((_, _, json)) = &mut block {
            json.push_str(line);
            json.push('\n');
            continue;
        }
        if let Some(text) = line.strip_prefix('#') {
            heading = text.trim_start_matches('#').trim().to_owned();
        }
        let Some(cells) = table_cells(line) else {
            table = None;
            continue;
        };
        let first = cells.first().map(String::as_str).unwrap_or_default();
        let Some(kind) = table else {
            table = Some(match first {
                "call" => CaseTableKind::Calls,
                "rule" => CaseTableKind::Rules,
                _ => CaseTableKind::Prose,
            });
            continue;
        };
        if kind == CaseTableKind::Prose || first.chars().all(|c| matches!(c, '-' | ':')) {
            continue;
        }
        let section = sections.last_mut().ok_or(format!("line {at}: no settings stand above this table"))?;
        let second = cells.get(1).map(|cell| cell.to_lowercase()).unwrap_or_default();
        match kind {
            CaseTableKind::Calls => {
                if !matches!(second.as_str(), "allow" | "ask" | "deny") {
                    return Err(format!("line {at}: `{second}` is no verdict"));
                }
                let call =
                    code_span_text(first).ok_or(format!("line {at}: the call is not written as code"))?;
                let (tool, input) = call.split_once(' ').unwrap_or((call, ""));
                let (tool, input) = (tool.to_owned(), input.trim().to_owned());
                section.calls.push(CallRow { tool, input, verdict: second, line: at });
            }
            CaseTableKind::Rules => {
                if !matches!(second.as_str(), "fatal" | "warning" | "note" | "fine") {
                    return Err(format!("line {at}: `{second}` is no weight of a problem"));
                }
                let (action, rule) = first.split_once(' ').ok_or(format!("line {at}: no list is named"))?;
                let rule = code_span_text(rule.trim())
                    .ok_or(format!("line {at}: the rule is not written as code"))?;
                let (action, rule) = (action.to_owned(), rule.to_owned());
                section.rules.push(RuleRow { action, rule, weight: second, line: at });
            }
            CaseTableKind::Prose => {}
        }
    }
    match block {
        Some((_, start, _)) => Err(format!("line {start}: the block is not closed")),
        None => Ok(sections),
    }
}

/// The cells of a table row. A bar in a cell is written `\|`.
fn table_cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let mut cells = vec![String::new()];
    let mut chars = inner.chars().peekable();
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
    Some(cells.into_iter().map(|cell| cell.trim().to_owned()).collect())
}

/// The text of a code span; two backticks on each side allow one inside.
fn code_span_text(cell: &str) -> Option<&str> {
    let double = cell.strip_prefix("``").and_then(|text| text.strip_suffix("``"));
    double.or_else(|| cell.strip_prefix('`')?.strip_suffix('`')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read() {
        let text = "# T\nprose\n\n```json settings\n{\"a\": 1}\n```\n\n| call | verdict | why |\n|---|---|---|\n\
                    | `Bash a \\| b` | DENY | x |\n| `Read` | allow |\n\n| rule | problem |\n|---|---|\n\
                    | deny `Bash()` | fatal |\n\n| other | table |\n|---|---|\n| x | y |\n";
        let sections = parse(text).unwrap();
        assert_eq!(sections.len(), 1);
        assert_eq!(sections[0].heading, "T");
        assert_eq!(sections[0].calls[0].input, "a | b");
        assert_eq!(sections[0].calls[0].verdict, "deny");
        assert_eq!(sections[0].calls[1].line, 11);
        assert_eq!(sections[0].rules[0].rule, "Bash()");
    }

    #[test]
    fn what_cannot_be_run_is_an_error() {
        for text in [
            "| call | verdict |\n|---|---|\n| `Bash x` | allow |\n",
            "```json settings\n{\n```\n",
            "```json settings\n{}\n```\n| call | verdict |\n|---|---|\n| `Bash x` | maybe |\n",
            "```json settings\n{}\n```\n| call | verdict |\n|---|---|\n| Bash x | allow |\n",
            "```json settings\n",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
