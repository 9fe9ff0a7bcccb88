//! Case files: Markdown that is documentation and test at once.
//!
//! A case file contains prose, fenced blocks marked `json settings` or `jsonc settings`, and tables. A table with the
//! columns `call` and `verdict` lists calls with the verdicts expected under the settings above it, or under the settings
//! in force if there are none above it; one with `rule` and `problem` lists rules with the problems that compiling them
//! reports. Everything else is prose, except what is almost one of these: that is an error, because a case that is not
//! read would never fail. This module only parses the file: the caller reads and compiles the settings, and makes the
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

mod tables;

use crate::find_intended_name;
use serde_json::Value;
use std::fmt;
use tables::{
    CaseKind, TableKind, code_span_text, find_stray_case, is_delimiter_line, is_delimiter_row, plain_word,
    split_cells,
};

/// The info strings of blocks with settings.
const SETTINGS_MARKS: [&str; 2] = ["json settings", "jsonc settings"];
/// The verdicts of a row with a call, which are also the lists of rules.
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
    /// The rest of the cell: a JSON object, or the value of the tool's main field (the short form).
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

/// A table that the next line may belong to.
struct OpenTable {
    /// What its rows are.
    kind: TableKind,
    /// The line with its headings, from 1.
    start: usize,
    /// The headings as written, for messages.
    headings: String,
}

/// A fenced block that is not closed yet.
struct OpenCodeBlock {
    /// It is marked `json settings`.
    is_settings: bool,
    /// The character of its fence, and how many of them there are: only such a fence closes it.
    fence: (char, usize),
    /// The line where it begins, from 1.
    start: usize,
    /// Its lines so far.
    text: String,
}

/// A quote that is not ended yet.
struct OpenQuote<'t> {
    /// The line where it begins, from 1.
    start: usize,
    /// Its lines so far, without their marks.
    lines: Vec<&'t str>,
}

/// The state of the parser between two lines.
struct CaseParser<'t, R> {
    /// Reads the text of a block with settings; an error has its line in the block. `None` in a quote, where no case can
    /// be: a quote shows what another text says.
    read_settings: Option<R>,
    /// The sections found so far; table rows belong to the last one.
    sections: Vec<CaseSection>,
    /// The nearest heading above.
    heading: String,
    /// The fenced block that the next line is in.
    block: Option<OpenCodeBlock>,
    /// The quote that the next line may belong to.
    quote: Option<OpenQuote<'t>>,
    /// The table that the next line is in.
    table: Option<OpenTable>,
    /// A table with cases is above, and neither a heading nor a block nor another table after it.
    is_below_cases: bool,
    /// The lines that cannot be used.
    problems: Vec<CaseFileProblem>,
}

/// Parses a file. `read_settings` reads the text of a block with settings, and gives the line in the block with an error.
/// The error is every line that cannot be used, because one that was left out would be a case that never runs.
pub fn parse<R: Fn(&str) -> Result<Value, (usize, String)>>(
    text: &str,
    read_settings: R,
) -> Result<Vec<CaseSection>, Vec<CaseFileProblem>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines: Vec<&str> = text.lines().collect();
    let mut parser = CaseParser::new(Some(read_settings));
    parser.add_lines(1, &lines);
    if let Some(block) = &parser.block {
        parser.problems.push(problem(block.start, "the block is not closed"));
    }
    parser.problems.sort_by_key(|problem| problem.line);
    if parser.problems.is_empty() { Ok(parser.sections) } else { Err(parser.problems) }
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

/// The fence that a line begins with: its character, how many of them there are, and the rest of the line.
fn split_fence(line: &str) -> Option<((char, usize), &str)> {
    const MIN_FENCE_CHARS: usize = 3;
    let line = line.trim_start();
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let info = line.trim_start_matches(mark);
    let count = line.len() - info.len();
    // With a backtick behind it, it is a code span in a line of text.
    let is_fence = count >= MIN_FENCE_CHARS && !(mark == '`' && info.contains('`'));
    is_fence.then_some(((mark, count), info))
}

/// A line without the marks of list items before its text: a table or a block can begin behind them.
fn strip_list_marks(line: &str) -> &str {
    let mut text = line.trim_start();
    loop {
        let digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
        let behind = match digits.len() < text.len() {
            true => digits.strip_prefix(['.', ')']),
            false => text.strip_prefix(['-', '*', '+']),
        };
        match behind.and_then(|behind| behind.strip_prefix(' ')) {
            Some(behind) => text = behind.trim_start(),
            None => return text,
        }
    }
}

impl<'t, R: Fn(&str) -> Result<Value, (usize, String)>> CaseParser<'t, R> {
    /// A parser before its first line.
    fn new(read_settings: Option<R>) -> Self {
        Self {
            read_settings,
            sections: Vec::new(),
            heading: String::new(),
            block: None,
            quote: None,
            table: None,
            is_below_cases: false,
            problems: Vec::new(),
        }
    }

    /// Parses these lines; the first has this number.
    fn add_lines(&mut self, first: usize, lines: &[&'t str]) {
        for (index, line) in lines.iter().enumerate() {
            let next = lines.get(index + 1).copied().unwrap_or_default();
            let added = self.add_line(first + index, line, next);
            self.problems.extend(added.err());
        }
        self.end_quote();
    }

    /// Parses one line, with its number from 1 and the line below it.
    fn add_line(&mut self, number: usize, line: &'t str, next: &str) -> Result<(), CaseFileProblem> {
        if self.block.is_some() {
            return self.add_block_line(number, line);
        }
        let text = strip_list_marks(line);
        if text.starts_with('>') && self.read_settings.is_some() {
            self.table = None;
            let quote = self.quote.get_or_insert_with(|| OpenQuote { start: number, lines: Vec::new() });
            // All marks at once: a quote in a quote has no cases either.
            quote.lines.push(text.trim_start_matches(['>', ' ']));
            return Ok(());
        }
        self.end_quote();
        if let Some((fence, info)) = split_fence(text) {
            (self.table, self.is_below_cases) = (None, false);
            return self.open_block(number, fence, info);
        }
        if let Some(text) = line.strip_prefix('#') {
            self.heading = text.trim_start_matches('#').trim().to_owned();
            (self.table, self.is_below_cases) = (None, false);
            return Ok(());
        }
        let is_list_item = text.len() < line.trim_start().len();
        let cells = split_cells(text);
        let open = self.table.take().filter(|_| !is_list_item);
        match (open, cells) {
            (Some(table), Some(cells)) => self.add_row(number, table, &cells),
            (None, Some(cells)) => self.begin_table(number, text, &cells, is_delimiter_line(next)),
            (Some(table), None) if matches!(table.kind, TableKind::Cases { .. }) => {
                // Text ends the table. A call alone is a row without its verdict.
                match code_span_text(text.trim()) {
                    Some(_) => self.add_row(number, table, &[text.trim().to_owned()]),
                    None => Ok(()),
                }
            }
            (_, None) => Ok(()),
        }
    }

    /// Searches the quote that ends here for cases, which are not read.
    fn end_quote(&mut self) {
        let Some(quote) = self.quote.take() else { return };
        let mut inner = CaseParser::<R>::new(None);
        inner.add_lines(quote.start, &quote.lines);
        self.problems.append(&mut inner.problems);
    }

    /// Begins a block.
    fn open_block(&mut self, number: usize, fence: (char, usize), info: &str) -> Result<(), CaseFileProblem> {
        let mark = is_settings_mark(number, info);
        let is_settings = mark == Ok(true) && self.read_settings.is_some();
        self.block = Some(OpenCodeBlock { is_settings, fence, start: number, text: String::new() });
        if mark? && !is_settings {
            return Err(problem(number, "settings in a quote are not read; remove the `>` of these lines"));
        }
        Ok(())
    }

    /// A line of a block, or the fence that closes it.
    fn add_block_line(&mut self, number: usize, line: &str) -> Result<(), CaseFileProblem> {
        let Some(mut block) = self.block.take() else { return Ok(()) };
        let (mark, count) = block.fence;
        match split_fence(line).filter(|((other, length), _)| *other == mark && *length >= count) {
            Some((_, info)) if info.trim().is_empty() => self.close_block(&block),
            // Markdown takes this line as text of the block above, so its settings would not be read.
            Some((fence, info)) if is_settings_mark(number, info) != Ok(false) => {
                drop(self.open_block(number, fence, info));
                Err(problem(block.start, format!("the block is not closed above line {number}")))
            }
            _ => {
                block.text.push_str(line);
                block.text.push('\n');
                self.block = Some(block);
                Ok(())
            }
        }
    }

    /// A block of settings begins a section.
    fn close_block(&mut self, block: &OpenCodeBlock) -> Result<(), CaseFileProblem> {
        let Some(read_settings) = self.read_settings.as_ref().filter(|_| block.is_settings) else {
            return Ok(());
        };
        match read_settings(&block.text) {
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

    /// A line with bars below no table: the headings of one, or text.
    fn begin_table(
        &mut self,
        line: usize,
        text: &str,
        cells: &[String],
        is_delimited: bool,
    ) -> Result<(), CaseFileProblem> {
        let mut kind = TableKind::of(cells);
        let has_bar = text.starts_with('|');
        let is_below_cases = std::mem::take(&mut self.is_below_cases);
        let mut begun = Ok(());
        if let TableKind::Cases { kind: case, .. } = kind {
            let words: Vec<String> = cells.iter().map(|cell| plain_word(cell)).collect();
            // Bars at the ends make a table of these headings without the line below them: more is read than displayed.
            let is_cut = !has_bar && !is_delimited;
            if is_cut && words != case.headings() {
                return Ok(());
            }
            if self.read_settings.is_none() {
                begun = Err(problem(line, "a table in a quote is not read; remove the `>` of these lines"));
            } else if is_cut {
                begun = Err(problem(line, "the line `---|---` is missing below the headings"));
            }
            if begun.is_err() {
                // The rows need no problem of their own.
                kind = TableKind::AlmostCalls;
            }
        } else if !is_delimited {
            self.is_below_cases = is_below_cases;
            return match find_stray_case(cells) {
                None if !(has_bar && is_below_cases) => Ok(()),
                _ => Err(problem(
                    line,
                    "the row is below no headings, so it is not read; remove the lines between it and its table, or \
                     repeat the headings",
                )),
            };
        }
        self.is_below_cases = matches!(kind, TableKind::Cases { .. });
        let headings = cells.iter().map(|cell| format!("`{cell}`")).collect::<Vec<_>>().join(" and ");
        let table = OpenTable { kind, start: line, headings };
        if begun.is_ok() && table.kind == TableKind::AlmostCalls {
            begun = Err(table.almost_problem(CaseKind::Calls));
        }
        self.table = Some(table);
        begun
    }

    /// A row of a table, which stays open.
    fn add_row(
        &mut self,
        line: usize,
        mut table: OpenTable,
        cells: &[String],
    ) -> Result<(), CaseFileProblem> {
        let mut added = Ok(());
        if !is_delimiter_row(cells) && cells.iter().any(|cell| !cell.is_empty()) {
            match &table.kind {
                TableKind::Cases { kind, subject, expected } => {
                    let cell = |column: usize| cells.get(column).map(String::as_str).unwrap_or_default();
                    let expected_word = plain_word(cell(*expected));
                    added = self.add_case(line, *kind, cell(*subject), expected_word);
                }
                TableKind::Prose(headings) => {
                    if let Some(kind) = headings.find_case(cells) {
                        added = Err(table.almost_problem(kind));
                        // Reported once for the table.
                        table.kind = TableKind::AlmostCalls;
                    }
                }
                TableKind::AlmostCalls => {}
            }
        }
        self.table = Some(table);
        added
    }

    /// A case of the last section.
    fn add_case(
        &mut self,
        line: usize,
        kind: CaseKind,
        cell: &str,
        expected: String,
    ) -> Result<(), CaseFileProblem> {
        if self.sections.is_empty() {
            self.begin_section(None);
        }
        let Some(section) = self.sections.last_mut() else { return Ok(()) };
        match kind {
            CaseKind::Calls => section.calls.push(CallRow::parse(line, cell, expected)?),
            CaseKind::Rules => section.rules.push(RuleRow::parse(line, cell, expected)?),
        }
        Ok(())
    }
}

impl OpenTable {
    /// The problem of a table that looks like one with cases, and is not read as one.
    fn almost_problem(&self, kind: CaseKind) -> CaseFileProblem {
        let [subject, expected] = kind.headings();
        let message = format!(
            "the table looks like one of {subject}s, but its columns are headed {}, so it is not read; write \
             `{subject}` and `{expected}`",
            self.headings
        );
        problem(self.start, message)
    }
}

impl CallRow {
    /// Parses the cells of a row in a table of calls.
    fn parse(line: usize, cell: &str, verdict: String) -> Result<Self, CaseFileProblem> {
        check_word(line, &verdict, "verdict", &VERDICTS)?;
        let call = code_span_text(cell).ok_or(problem(line, "the call is not written as code"))?;
        let (tool, input) = call.split_once(' ').unwrap_or((call, ""));
        Ok(Self { tool: tool.to_owned(), input: input.trim().to_owned(), verdict, line })
    }
}

impl RuleRow {
    /// Parses the cells of a row in a table of rules.
    fn parse(line: usize, cell: &str, weight: String) -> Result<Self, CaseFileProblem> {
        check_word(line, &weight, "weight of a problem", &WEIGHTS)?;
        let missing =
            || problem(line, "the list of the rule is missing; write it before the rule: deny `Read(.env)`");
        if code_span_text(cell).is_some() {
            return Err(missing());
        }
        let (action, rule) = cell.split_once(' ').ok_or_else(missing)?;
        let rule = code_span_text(rule.trim()).ok_or(problem(line, "the rule is not written as code"))?;
        let action = plain_word(action);
        check_word(line, &action, "list of rules", &VERDICTS)?;
        Ok(Self { action, rule: rule.to_owned(), weight, line })
    }
}

/// Refuses a word that is none of these, and names the one that was meant, or all of them.
fn check_word(line: usize, word: &str, what: &str, known: &[&str]) -> Result<(), CaseFileProblem> {
    if known.contains(&word) {
        return Ok(());
    }
    let advice = match find_intended_name(word, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("use {}", known.join(", ")),
    };
    Err(problem(line, format!("`{word}` is not a {what}; {advice}")))
}

#[cfg(test)]
mod tests;
