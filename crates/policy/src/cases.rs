//! Case files: Markdown that is documentation and test at once.
//!
//! A case file contains prose, fenced blocks marked `json settings`, and tables. A table whose first column is headed
//! `call` lists calls with the verdicts expected under the settings above it, or under the settings in force if there are
//! none above it; one headed `rule` lists rules with the problems that compiling them reports. Everything else is prose. This module only parses the file: the caller compiles
//! the settings and makes the calls (`toolgate policy test`).
//!
//! ````
//! let text = r#"
//! ```json settings
//! { "permissions": { "allow": ["Bash(make *)"] } }
//! ```
//!
//! | call | verdict |
//! |---|---|
//! | `Bash make test` | allow |
//! "#;
//! let sections = toolgate_policy::cases::parse(text).unwrap();
//! assert_eq!(sections[0].calls[0].input, "make test");
//! ````

use serde_json::Value;

/// One block of settings with the rows of the tables below it.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseSection {
    /// The nearest heading above.
    pub heading: String,
    /// The settings as JSON, in the form of a settings file; `None` means the settings in force.
    pub settings: Option<Value>,
    /// The rows of its `call` tables, in order.
    pub calls: Vec<CallRow>,
    /// The rows of its `rule` tables, in order.
    pub rules: Vec<RuleRow>,
}

/// A call and its expected verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRow {
    /// The tool's name.
    pub tool: String,
    /// The rest of the cell: a JSON object, or the value of the tool's principal field.
    pub input: String,
    /// `allow`, `ask` or `deny`, in lower case.
    pub verdict: String,
    /// The line in the file, from 1.
    pub line: usize,
}

/// A rule and the problem that compiling it must report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleRow {
    /// The list that it belongs to: `allow`, `ask` or `deny`.
    pub action: String,
    /// The text of the rule.
    pub rule: String,
    /// `fatal`, `warning`, `note` or `fine`, in lower case.
    pub weight: String,
    /// The line in the file, from 1.
    pub line: usize,
}

/// The kind of a table, by the heading of its first column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CaseTableKind {
    /// `call`: calls and verdicts.
    Calls,
    /// `rule`: rules and problems.
    Rules,
    /// Any other table.
    Prose,
}

/// A fenced block that is not closed yet.
struct OpenCodeBlock {
    /// It is marked `json settings`.
    is_settings: bool,
    /// The line where it begins, from 1.
    start: usize,
    /// Its lines so far.
    text: String,
}

/// The state of the parser between two lines.
#[derive(Default)]
struct CaseParser {
    /// The sections found so far; table rows belong to the last one.
    sections: Vec<CaseSection>,
    /// The nearest heading above.
    heading: String,
    /// The fenced block that the next line is in.
    block: Option<OpenCodeBlock>,
    /// The table that the next line is in.
    table: Option<CaseTableKind>,
}

/// Parses a file. An error names the line and what is wrong there.
pub fn parse(text: &str) -> Result<Vec<CaseSection>, String> {
    let mut parser = CaseParser::default();
    for (index, line) in text.lines().enumerate() {
        parser.add_line(index + 1, line)?;
    }
    match parser.block {
        Some(block) => Err(format!("line {}: the block is not closed", block.start)),
        None => Ok(parser.sections),
    }
}

impl CaseParser {
    /// Parses one line, counted from 1.
    fn add_line(&mut self, number: usize, line: &str) -> Result<(), String> {
        if let Some(fence) = line.trim_start().strip_prefix("```") {
            return match self.block.take() {
                None => {
                    let is_settings = fence.trim() == "json settings";
                    self.block = Some(OpenCodeBlock { is_settings, start: number, text: String::new() });
                    Ok(())
                }
                Some(block) => self.close_block(&block),
            };
        }
        if let Some(block) = &mut self.block {
            block.text.push_str(line);
            block.text.push('\n');
            return Ok(());
        }
        if let Some(text) = line.strip_prefix('#') {
            self.heading = text.trim_start_matches('#').trim().to_owned();
        }
        match table_cells(line) {
            Some(cells) => self.add_table_line(number, &cells),
            None => {
                self.table = None;
                Ok(())
            }
        }
    }

    /// A block of settings begins a section.
    fn close_block(&mut self, block: &OpenCodeBlock) -> Result<(), String> {
        if block.is_settings {
            let settings = serde_json::from_str(&block.text)
                .map_err(|error| format!("line {}: the settings are not valid JSON: {error}", block.start))?;
            self.begin_section(Some(settings));
        }
        Ok(())
    }

    /// Rows belong to the section that begins here.
    fn begin_section(&mut self, settings: Option<Value>) {
        let heading = self.heading.clone();
        self.sections.push(CaseSection { heading, settings, calls: Vec::new(), rules: Vec::new() });
    }

    /// The heading, the separator or a row of a table.
    fn add_table_line(&mut self, line: usize, cells: &[String]) -> Result<(), String> {
        let first = cells.first().map(String::as_str).unwrap_or_default();
        let Some(kind) = self.table else {
            self.table = Some(match first.to_lowercase().as_str() {
                "call" => CaseTableKind::Calls,
                "rule" => CaseTableKind::Rules,
                _ => CaseTableKind::Prose,
            });
            return Ok(());
        };
        if kind == CaseTableKind::Prose || first.chars().all(|c| matches!(c, '-' | ':')) {
            return Ok(());
        }
        if self.sections.is_empty() {
            self.begin_section(None);
        }
        let Some(section) = self.sections.last_mut() else { return Ok(()) };
        let second = cells.get(1).map(|cell| cell.to_lowercase()).unwrap_or_default();
        match kind {
            CaseTableKind::Calls => section.calls.push(CallRow::parse(line, first, second)?),
            CaseTableKind::Rules => section.rules.push(RuleRow::parse(line, first, second)?),
            CaseTableKind::Prose => {}
        }
        Ok(())
    }
}

impl CallRow {
    /// Parses the cells of a row in a `call` table.
    fn parse(line: usize, cell: &str, verdict: String) -> Result<Self, String> {
        if !matches!(verdict.as_str(), "allow" | "ask" | "deny") {
            return Err(format!("line {line}: `{verdict}` is not a verdict"));
        }
        let call = code_span_text(cell).ok_or(format!("line {line}: the call is not written as code"))?;
        let (tool, input) = call.split_once(' ').unwrap_or((call, ""));
        Ok(Self { tool: tool.to_owned(), input: input.trim().to_owned(), verdict, line })
    }
}

impl RuleRow {
    /// Parses the cells of a row in a `rule` table.
    fn parse(line: usize, cell: &str, weight: String) -> Result<Self, String> {
        if !matches!(weight.as_str(), "fatal" | "warning" | "note" | "fine") {
            return Err(format!("line {line}: `{weight}` is not the weight of a problem"));
        }
        let (action, rule) =
            cell.split_once(' ').ok_or(format!("line {line}: the list of the rule is missing"))?;
        let rule =
            code_span_text(rule.trim()).ok_or(format!("line {line}: the rule is not written as code"))?;
        Ok(Self { action: action.to_owned(), rule: rule.to_owned(), weight, line })
    }
}

/// The cells of a table row; `None` if the line is not one. A bar in a cell is written `\|`.
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

/// The text of a Markdown code span; with two backticks on each side it may contain one.
fn code_span_text(cell: &str) -> Option<&str> {
    let double = cell.strip_prefix("``").and_then(|text| text.strip_suffix("``"));
    double.or_else(|| cell.strip_prefix('`')?.strip_suffix('`')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_file_is_parsed() {
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
        let live = parse("| call | verdict |\n|---|---|\n| `Bash x` | allow |\n").unwrap();
        assert_eq!((live[0].settings.clone(), live[0].calls.len()), (None, 1));
    }

    #[test]
    fn a_file_that_cannot_be_run_is_an_error() {
        for text in [
            "```json settings\n{\n```\n",
            "```json settings\n{}\n```\n| call | verdict |\n|---|---|\n| `Bash x` | maybe |\n",
            "```json settings\n{}\n```\n| call | verdict |\n|---|---|\n| Bash x | allow |\n",
            "```json settings\n",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
