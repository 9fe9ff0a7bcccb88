//! Case files: Markdown that is documentation and test at once.
//!
//! A case file contains prose, fenced blocks marked `json settings` or `jsonc settings`, and tables. A table whose first
//! column is headed `call` lists calls with the verdicts expected under the settings above it, or under the settings in
//! force if there are none above it; one headed `rule` lists rules with the problems that compiling them reports.
//! Everything else is prose. This module only parses the file: the caller reads and compiles the settings, and makes the
//! calls (`toolgate policy test`).
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
//! let read = |text: &str| serde_json::from_str(text).map_err(|error| (error.line(), error.to_string()));
//! let sections = toolgate_policy::cases::parse(text, read).unwrap();
//! assert_eq!(sections[0].calls[0].input, "make test");
//! ````

use crate::find_intended_name;
use serde_json::Value;
use std::fmt;

/// The info strings of blocks with settings.
const SETTINGS_MARKS: [&str; 2] = ["json settings", "jsonc settings"];
/// The verdicts of a row with a call.
const VERDICTS: [&str; 3] = ["allow", "ask", "deny"];
/// The severities of a row with a rule.
const WEIGHTS: [&str; 4] = ["fatal", "warning", "note", "fine"];

/// A line that makes a case file unusable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseFileProblem {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what to write.
    pub message: String,
}

impl fmt::Display for CaseFileProblem {
    /// Formats as `line: message`, to follow the name of the file and a colon.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.message)
    }
}

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
struct CaseParser<R> {
    /// Reads the text of a block with settings; an error has its line in the block.
    read_settings: R,
    /// The sections found so far; table rows belong to the last one.
    sections: Vec<CaseSection>,
    /// The nearest heading above.
    heading: String,
    /// The fenced block that the next line is in.
    block: Option<OpenCodeBlock>,
    /// The table that the next line is in.
    table: Option<CaseTableKind>,
}

/// Parses a file. `read_settings` reads the text of a block with settings, and gives the line in the block with an error.
/// The error is every line that cannot be used, because one that was left out would be a case that never runs.
pub fn parse<R: Fn(&str) -> Result<Value, (usize, String)>>(
    text: &str,
    read_settings: R,
) -> Result<Vec<CaseSection>, Vec<CaseFileProblem>> {
    let mut parser =
        CaseParser { read_settings, sections: Vec::new(), heading: String::new(), block: None, table: None };
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        problems.extend(parser.add_line(index + 1, line).err());
    }
    if let Some(block) = parser.block {
        problems.push(problem(block.start, "the block is not closed"));
    }
    if problems.is_empty() { Ok(parser.sections) } else { Err(problems) }
}

/// A problem with these fields.
fn problem(line: usize, message: impl Into<String>) -> CaseFileProblem {
    CaseFileProblem { line, message: message.into() }
}

/// Whether the info string of a block marks settings. One that almost does is an error: its settings would not be read,
/// and the cases below it would pass or fail under others.
fn is_settings_mark(line: usize, info: &str) -> Result<bool, CaseFileProblem> {
    let words: Vec<&str> = info.split_whitespace().collect();
    let written = words.join(" ");
    if SETTINGS_MARKS.contains(&written.as_str()) {
        return Ok(true);
    }
    let is_near_word = |word: &str| word == "settings" || find_intended_name(word, ["settings"]).is_some();
    if words.iter().any(|word| is_near_word(word)) || find_intended_name(&written, SETTINGS_MARKS).is_some() {
        let marks = SETTINGS_MARKS.map(|mark| format!("`{mark}`")).join(" or ");
        return Err(problem(
            line,
            format!("the block is marked `{written}`, so it is not read; write {marks}"),
        ));
    }
    Ok(false)
}

impl<R: Fn(&str) -> Result<Value, (usize, String)>> CaseParser<R> {
    /// Parses one line, counted from 1.
    fn add_line(&mut self, number: usize, line: &str) -> Result<(), CaseFileProblem> {
        if let Some(fence) = line.trim_start().strip_prefix("```") {
            return match self.block.take() {
                None => {
                    let mark = is_settings_mark(number, fence);
                    let is_settings = mark == Ok(true);
                    self.block = Some(OpenCodeBlock { is_settings, start: number, text: String::new() });
                    mark.map(drop)
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
    fn close_block(&mut self, block: &OpenCodeBlock) -> Result<(), CaseFileProblem> {
        if !block.is_settings {
            return Ok(());
        }
        match (self.read_settings)(&block.text) {
            Ok(settings) => {
                self.begin_section(Some(settings));
                Ok(())
            }
            Err((line, message)) => Err(problem(block.start + line, format!("the settings: {message}"))),
        }
    }

    /// Rows belong to the section that begins here.
    fn begin_section(&mut self, settings: Option<Value>) {
        let heading = self.heading.clone();
        self.sections.push(CaseSection { heading, settings, calls: Vec::new(), rules: Vec::new() });
    }

    /// The heading, the separator or a row of a table.
    fn add_table_line(&mut self, line: usize, cells: &[String]) -> Result<(), CaseFileProblem> {
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
    fn parse(line: usize, cell: &str, verdict: String) -> Result<Self, CaseFileProblem> {
        check_word(line, &verdict, "verdict", &VERDICTS)?;
        let call = code_span_text(cell).ok_or(problem(line, "the call is not written as code"))?;
        let (tool, input) = call.split_once(' ').unwrap_or((call, ""));
        Ok(Self { tool: tool.to_owned(), input: input.trim().to_owned(), verdict, line })
    }
}

impl RuleRow {
    /// Parses the cells of a row in a `rule` table.
    fn parse(line: usize, cell: &str, weight: String) -> Result<Self, CaseFileProblem> {
        check_word(line, &weight, "weight of a problem", &WEIGHTS)?;
        let (action, rule) = cell.split_once(' ').ok_or(problem(line, "the list of the rule is missing"))?;
        let rule = code_span_text(rule.trim()).ok_or(problem(line, "the rule is not written as code"))?;
        Ok(Self { action: action.to_owned(), rule: rule.to_owned(), weight, line })
    }
}

/// Refuses a word that is none of these, and names them.
fn check_word(line: usize, word: &str, what: &str, known: &[&str]) -> Result<(), CaseFileProblem> {
    if known.contains(&word) {
        return Ok(());
    }
    Err(problem(line, format!("`{word}` is not a {what}; use {}", known.join(", "))))
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

    fn parse(text: &str) -> Result<Vec<CaseSection>, Vec<CaseFileProblem>> {
        super::parse(text, |text| {
            serde_json::from_str(text).map_err(|error| (error.line(), error.to_string()))
        })
    }

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

    #[test]
    fn a_block_is_marked_as_settings_or_its_mark_is_no_mistake() {
        for (mark, is_settings) in [
            ("json settings", true),
            (" jsonc  settings", true),
            ("json", false),
            ("", false),
            ("text", false),
        ] {
            let sections = parse(&format!("```{mark}\n{{}}\n```\n")).unwrap();
            assert_eq!(sections.len(), usize::from(is_settings), "{mark}");
        }
        for mark in
            ["json setings", "settings", "JSON Settings", "json5 settings", "jsonsettings", "json-settings"]
        {
            let problems = parse(&format!("# T\n```{mark}\n{{}}\n```\n")).unwrap_err();
            assert_eq!(problems.len(), 1, "{mark}");
            assert!(
                problems[0].line == 2 && problems[0].message.contains("`jsonc settings`"),
                "{problems:?}"
            );
        }
    }

    #[test]
    fn every_line_that_cannot_be_used_is_named() {
        let text =
            "| call | verdict |\n|---|---|\n| `ls` | allowed |\n| `ls` | ask |\n| ls | deny |\n| `ls` | |\n";
        let problems = parse(text).unwrap_err();
        assert_eq!(problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [3, 5, 6]);
        assert_eq!(problems[0].message, "`allowed` is not a verdict; use allow, ask, deny");
    }
}
