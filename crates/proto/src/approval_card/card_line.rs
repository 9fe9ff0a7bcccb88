//! Lays a card out as rows of text.
//!
//! Tool, risk, reason and warnings come first and are always there. Commands, effects, arguments and the diff share the
//! rows that are left: each gets a fair share, and what does not fit loses its middle, because the dangerous part of a
//! text is often at its end. Padding is counted instead of shown, so no text can push another out of view.

use super::{ApprovalCard, DESCRIPTION_FIELD};
use crate::{RiskLevel, escape_invisible, fit_line, fit_text};
use std::fmt;
use unicode_width::UnicodeWidthChar;

/// Columns of a label without the blanks around it.
const MIN_NAME_COLUMNS: usize = 9;
/// Columns of the blanks around a label.
const MIN_BLANK_COLUMNS: usize = 3;
/// The narrowest text: a terminal of fewer columns wraps the rows itself.
const MIN_TEXT_COLUMNS: usize = 20;
/// Rows of the action, of the reason and of each warning.
const MAX_TITLE_ROWS: usize = 4;
/// Rows of the reason; a longer one is truncated where the rest of the card needs the rows.
const MAX_REASON_ROWS: usize = 3;
/// Characters of a path or a command that a reason or a warning quotes; the title or the commands show all of it.
const MAX_QUOTE_CHARS: usize = 60;
/// Rows of one warning.
const MAX_WARNING_ROWS: usize = 2;
/// Warnings that are shown; the rest is counted.
const MAX_WARNINGS: usize = 4;
/// Rows for everything else, however small the screen is.
const MIN_BODY_ROWS: usize = 3;
/// Characters of the model's own description.
const MAX_DESCRIPTION_CHARS: usize = 160;
/// Columns of the name of an argument.
const MAX_NAME_COLUMNS: usize = 16;
/// Before each row of a diff.
const DIFF_PREFIX: &str = "    ";
/// Columns between tab stops.
const DEFAULT_TAB_COLUMNS: usize = 4;
/// Indentation of a line of a diff that is shown as it is.
const MAX_INDENT_CHARS: usize = 120;

/// How many rows the parts of a head take at most.
#[derive(Debug, Clone, Copy)]
struct HeadLimits {
    /// Rows of the title.
    title_rows: usize,
    /// Rows of the reason.
    reason_rows: usize,
    /// Warnings.
    warnings: usize,
    /// Rows of each warning.
    warning_rows: usize,
}

impl HeadLimits {
    /// What leaves room for a body.
    const USUAL: Self = Self {
        title_rows: MAX_TITLE_ROWS,
        reason_rows: MAX_REASON_ROWS,
        warnings: MAX_WARNINGS,
        warning_rows: MAX_WARNING_ROWS,
    };
    /// Every part is whole.
    const NONE: Self = Self {
        title_rows: usize::MAX,
        reason_rows: usize::MAX,
        warnings: usize::MAX,
        warning_rows: usize::MAX,
    };
}

/// The room for a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CardSize {
    /// Columns of a row.
    pub width: usize,
    /// Rows in all.
    pub height: usize,
}

impl CardSize {
    /// As many rows as it takes.
    pub fn unlimited(width: usize) -> Self {
        Self { width, height: usize::MAX }
    }
}

/// One row of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CardLine {
    /// What the row shows, for its color.
    pub kind: CardLineKind,
    /// The label or the indentation before the text.
    pub prefix: String,
    /// The text, escaped and at most as wide as the card.
    pub text: String,
}

/// What a row of a card shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardLineKind {
    /// The tool and what it wants to do.
    Title,
    /// How much damage the call can do.
    Risk(RiskLevel),
    /// Why an approval is needed.
    Reason,
    /// A danger.
    Warning,
    /// A command, an effect or an argument.
    Body,
    /// The name of a file in a diff.
    DiffFile,
    /// The position of a change in a diff.
    DiffHunk,
    /// An added line of a diff.
    DiffAdded,
    /// A removed line of a diff.
    DiffRemoved,
    /// An unchanged line of a diff.
    DiffContext,
    /// How much was left out here.
    Omission,
}

impl fmt::Display for CardLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.prefix, self.text)
    }
}

impl ApprovalCard {
    /// The rows of the card. A row of the kind [`CardLineKind::Omission`] says that something does not fit.
    pub fn render(&self, size: CardSize) -> Vec<CardLine> {
        let (commands, others) = (self.command_sections(size.width), self.other_sections(size));
        let body: usize = commands.iter().chain(&others).map(Vec::len).sum();
        let mut rows = self.render_head(size);
        // Rows that neither needs show the end of the reason: it says what to do.
        let spare = size.height.saturating_sub(rows.len().saturating_add(body));
        if spare > 0 {
            rows = self.render_widest_head(size, body, spare);
        }
        let room = size.height.saturating_sub(rows.len()).max(MIN_BODY_ROWS);
        rows.extend(fit_sections(commands, others, room));
        rows
    }

    /// The card as text, for channels without rows of their own.
    pub fn to_text(&self, size: CardSize) -> String {
        let rows: Vec<String> = self.render(size).iter().map(ToString::to_string).collect();
        rows.join("\n")
    }

    /// What is always shown: title, risk, reason and warnings.
    pub fn render_head(&self, size: CardSize) -> Vec<CardLine> {
        let is_limited = size.height != usize::MAX;
        self.render_limited_head(size, if is_limited { HeadLimits::USUAL } else { HeadLimits::NONE })
    }

    /// The whole head, if it fits on the card with the rows of the body, else one with as much more of the reason as there
    /// are spare rows.
    fn render_widest_head(&self, size: CardSize, body: usize, spare: usize) -> Vec<CardLine> {
        let whole = self.render_limited_head(size, HeadLimits::NONE);
        if whole.len().saturating_add(body) <= size.height {
            return whole;
        }
        let reason_rows = MAX_REASON_ROWS.saturating_add(spare);
        self.render_limited_head(size, HeadLimits { reason_rows, ..HeadLimits::USUAL })
    }

    /// The head with so many rows of each part.
    fn render_limited_head(&self, size: CardSize, limits: HeadLimits) -> Vec<CardLine> {
        let limited = size.height != usize::MAX;
        let label = |kind, name: &str, text: &str| self.labelled(kind, name, text, size.width);
        let title = format!("{} wants to {}", self.tool, self.action);
        let wrapped = wrap_columns(&fit_line(&title, usize::MAX), size.width);
        let title = wrapped.into_iter().map(|text| CardLine {
            kind: CardLineKind::Title,
            prefix: String::new(),
            text,
        });
        let mut rows = cut_middle(title.collect(), limits.title_rows);
        rows.extend(label(CardLineKind::Risk(self.risk), "risk", &self.risk.to_string()));
        let reason = self.shorten(&self.reason.to_string());
        let reason = if limited { cut_quotes(&reason) } else { reason };
        let reason = fit_line(&reason, usize::MAX);
        rows.extend(cut_middle(label(CardLineKind::Reason, "reason", &reason), limits.reason_rows));
        let most = limits.warnings;
        // The row that would count one more warning shows it instead.
        let most = if self.warnings.len() == most.saturating_add(1) { self.warnings.len() } else { most };
        for warning in self.warnings.iter().take(most) {
            let text = self.shorten(&warning.text);
            let text = if limited { cut_quotes(&text) } else { text };
            let text = fit_line(&text, usize::MAX);
            let row = label(CardLineKind::Warning, "warning", &text);
            rows.extend(cut_middle(row, limits.warning_rows));
        }
        let more = self.warnings.len().saturating_sub(most);
        if more > 0 {
            rows.push(omission(format!("… {more} more warnings")));
        }
        rows
    }

    /// Columns before the text of a labelled row: all texts begin in one column, whatever the arguments are called.
    pub fn label_columns(&self) -> usize {
        let names = self.arguments.iter().map(|argument| columns_of(&shown_name(&argument.name)));
        names.max().unwrap_or(0).max(MIN_NAME_COLUMNS) + MIN_BLANK_COLUMNS
    }

    /// A reason or a warning, with "it" for what the title says and "command 2" for what stands below.
    fn shorten(&self, text: &str) -> String {
        let mut text = text.to_owned();
        let object = self.action.split_once(' ').map_or("", |(_, object)| object);
        if !object.is_empty() {
            let quoted = if object.starts_with('`') { object.to_owned() } else { format!("`{object}`") };
            text = text.replace(&quoted, "it");
        }
        let shown = self.shown_commands();
        for (index, command) in shown.iter().enumerate().filter(|(_, command)| !command.is_empty()) {
            let name = if shown.len() == 1 { "it".to_owned() } else { format!("command {}", index + 1) };
            text = text.replace(&format!("`{command}`"), &name);
        }
        text
    }

    /// The rows of a text behind its label.
    fn labelled(&self, kind: CardLineKind, label: &str, text: &str, width: usize) -> Vec<CardLine> {
        let columns = self.label_columns();
        let padding = " ".repeat(columns.saturating_sub(columns_of(label) + 2));
        let label = format!("  {label}{padding}");
        let lines = text.split('\n').flat_map(|line| wrap_columns(line, width.saturating_sub(columns)));
        let prefix = |index: usize| if index == 0 { label.clone() } else { " ".repeat(columns) };
        lines.enumerate().map(|(index, text)| CardLine { kind, prefix: prefix(index), text }).collect()
    }

    /// The commands of a line, each a section of its own.
    fn command_sections(&self, width: usize) -> Vec<Vec<CardLine>> {
        let body = |label: &str, text: &str| self.labelled(CardLineKind::Body, label, text, width);
        if let [command] = self.commands.as_slice() {
            return vec![body("command", &fit_text(command, usize::MAX))];
        }
        let commands = self.commands.iter().enumerate().map(|(index, command)| {
            let label = if index == 0 { "commands" } else { "" };
            body(label, &format!("{}. {}", index + 1, fit_text(command, usize::MAX)))
        });
        commands.filter(|section| !section.is_empty()).collect()
    }

    /// What stands below the commands: effects, arguments, the diff, and why no rule is offered.
    fn other_sections(&self, size: CardSize) -> Vec<Vec<CardLine>> {
        let (width, limited) = (size.width, size.height != usize::MAX);
        let body = |label: &str, text: &str| self.labelled(CardLineKind::Body, label, text, width);
        let mut sections: Vec<Vec<CardLine>> = Vec::new();
        let effects = self.effects.iter().enumerate().flat_map(|(index, effect)| {
            let label = if index == 0 { "effects" } else { "" };
            body(label, &fit_line(effect, usize::MAX))
        });
        sections.push(effects.collect());
        for argument in &self.arguments {
            let text = if limited && argument.name == DESCRIPTION_FIELD {
                fit_line(&argument.text, MAX_DESCRIPTION_CHARS)
            } else {
                // The line feed at the end of a text would be an empty row.
                let text = argument.text.strip_suffix('\n').unwrap_or(&argument.text);
                fit_text(text, usize::MAX)
            };
            sections.push(body(&shown_name(&argument.name), &text));
        }
        sections.extend(self.diff.as_ref().map(|diff| self.diff_rows(diff, width)));
        if let Some(reason) = &self.no_rule_reason {
            sections.push(body("rule", &format!("none is offered: {}", fit_line(reason, usize::MAX))));
        }
        sections.retain(|section| !section.is_empty());
        sections
    }

    /// The rows of a unified diff. The name of a file that the action says already is left out.
    fn diff_rows(&self, diff: &str, width: usize) -> Vec<CardLine> {
        let is_said = |line: &str| match line.split_once(['/']) {
            Some(("--- a" | "+++ b", path)) => self.action.contains(path),
            Some(_) | None => false,
        };
        let name_new = |line| if line == "--- /dev/null" { "--- new file" } else { line };
        let lines = diff.lines().filter(|line| !is_said(line)).map(name_new);
        lines.flat_map(|line| diff_line_rows(line, width)).collect()
    }
}

/// Cuts sections so that all together take at most `room` rows. What the call does goes before what its arguments say of
/// it: a description must not push a command off the card.
fn fit_sections(
    mut commands: Vec<Vec<CardLine>>,
    mut others: Vec<Vec<CardLine>>,
    room: usize,
) -> Vec<CardLine> {
    keep_ends(&mut commands, room - usize::from(!others.is_empty()));
    keep_ends(&mut others, room - commands.len());
    let mut sections = commands;
    sections.append(&mut others);
    let shares = share_rows(&sections, room);
    sections.into_iter().zip(shares).flat_map(|(section, share)| cut_middle(section, share)).collect()
}

/// Drops sections of the middle until there are at most `max`, one of which counts the others: the dangerous command of a
/// line is often its last.
fn keep_ends(sections: &mut Vec<Vec<CardLine>>, max: usize) {
    if sections.len() <= max {
        return;
    }
    let kept = max.saturating_sub(1);
    let dropped = sections.len() - kept;
    let last = sections.split_off(sections.len() - kept / 2);
    sections.truncate(kept - kept / 2);
    sections.push(vec![omission(format!("… {dropped} parts left out …"))]);
    sections.extend(last);
}

/// A fair share of rows for each section: what a small one does not need goes to the larger ones.
fn share_rows(sections: &[Vec<CardLine>], room: usize) -> Vec<usize> {
    let mut by_size: Vec<(usize, usize)> = sections.iter().map(Vec::len).enumerate().collect();
    by_size.sort_by_key(|(_, len)| *len);
    let mut shares = vec![0; sections.len()];
    let (mut left, mut waiting) = (room, sections.len());
    for (index, len) in by_size {
        let share = len.min(left / waiting.max(1));
        if let Some(slot) = shares.get_mut(index) {
            *slot = share;
        }
        left -= share;
        waiting -= 1;
    }
    shares
}

/// At most `max` rows: the first and the last ones, and how many are left out between them.
fn cut_middle(mut rows: Vec<CardLine>, max: usize) -> Vec<CardLine> {
    let omitted = rows.len().saturating_sub(max.saturating_sub(1));
    if rows.len() <= max {
        return rows;
    }
    if max <= 1 {
        rows.truncate(1);
        for row in &mut rows {
            let more = format!(" … {omitted} more lines");
            let columns = columns_of(&row.text).max(MIN_TEXT_COLUMNS).saturating_sub(columns_of(&more));
            row.text = format!("{}{more}", truncate_columns(&row.text, columns));
            row.kind = CardLineKind::Omission;
        }
        return rows;
    }
    // With three rows or more the end is shown too: a reason says there what is wrong.
    let tail = ((max - 1) / 3).max(usize::from(max > 2));
    let last = rows.split_off(rows.len() - tail);
    rows.truncate(max - 1 - tail);
    let mut left_out = omission(format!("… {omitted} lines left out …"));
    // Below the rows of a diff, which begin further to the left than other texts.
    if let Some(row) = rows.last().filter(|row| row.prefix == DIFF_PREFIX) {
        left_out.prefix.clone_from(&row.prefix);
    }
    rows.push(left_out);
    rows.extend(last);
    rows
}

/// A text whose quoted paths and commands lose their middle if they are long: what is said of them must stay visible.
fn cut_quotes(text: &str) -> String {
    let cut = |(index, part): (usize, &str)| {
        let chars: Vec<char> = part.chars().collect();
        match (index % 2 == 1, chars.len().checked_sub(MAX_QUOTE_CHARS)) {
            (true, Some(1..)) => {
                let (head, rest) = chars.split_at(MAX_QUOTE_CHARS / 2);
                let (_, tail) = rest.split_at(rest.len() - MAX_QUOTE_CHARS / 2);
                let (head, tail): (String, String) = (head.iter().collect(), tail.iter().collect());
                format!("{head}…{tail}")
            }
            _ => part.to_owned(),
        }
    };
    text.split('`').enumerate().map(cut).collect::<Vec<_>>().join("`")
}

/// The row that says how much was left out.
fn omission(text: String) -> CardLine {
    let prefix = " ".repeat(MIN_NAME_COLUMNS + MIN_BLANK_COLUMNS);
    CardLine { kind: CardLineKind::Omission, prefix, text }
}

/// The name of an argument as its label.
fn shown_name(name: &str) -> String {
    truncate_columns(&fit_line(name, usize::MAX), MAX_NAME_COLUMNS)
}

/// The rows of one line of a diff.
fn diff_line_rows(line: &str, width: usize) -> Vec<CardLine> {
    let kind = match line.as_bytes() {
        [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => CardLineKind::DiffFile,
        [b'+', ..] => CardLineKind::DiffAdded,
        [b'-', ..] => CardLineKind::DiffRemoved,
        [b'@', b'@', ..] => CardLineKind::DiffHunk,
        _ => CardLineKind::DiffContext,
    };
    let indent = line.chars().take(MAX_INDENT_CHARS).take_while(|c| " \t+-".contains(*c)).count();
    let (indent, rest) = line.split_at(indent);
    let text = format!("{}{}", escape_invisible(indent), fit_text(rest, usize::MAX));
    let rows = wrap_columns(&text.replace('\n', " "), width.saturating_sub(DIFF_PREFIX.len()));
    rows.into_iter().map(|text| CardLine { kind, prefix: DIFF_PREFIX.to_owned(), text }).collect()
}

/// Breaks a line into rows of at most `columns`, but at least 20, after a blank where there is one near the end of the
/// row, else after a slash of a path.
pub fn wrap_columns(line: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(MIN_TEXT_COLUMNS);
    let mut rows = Vec::new();
    let (mut row, mut used) = (String::new(), 0);
    for c in line.chars() {
        let (text, wide) = match c {
            '\t' => (" ", DEFAULT_TAB_COLUMNS - used % DEFAULT_TAB_COLUMNS),
            _ => ("", c.width().unwrap_or(0)),
        };
        if used + wide > columns {
            let rest = split_near_end(&mut row, columns);
            rows.push(std::mem::replace(&mut row, rest));
            used = columns_of(&row);
        }
        if text.is_empty() {
            row.push(c);
        } else {
            row.push_str(&text.repeat(wide));
        }
        used += wide;
    }
    rows.push(row);
    rows
}

/// Cuts a full row after its last blank, else after its last slash, if that leaves most of it, and returns what goes to
/// the next row.
fn split_near_end(row: &mut String, columns: usize) -> String {
    let is_near_end = |at: &usize| row.len() - at <= columns / 4;
    let found = [' ', '/'].into_iter().find_map(|mark| row.rfind(mark).filter(is_near_end));
    found.map(|at| row.split_off(at + 1)).unwrap_or_default()
}

/// The columns that a text without tabs takes.
pub fn columns_of(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// The beginning of a text, in at most so many columns.
fn truncate_columns(text: &str, columns: usize) -> String {
    if columns_of(text) <= columns {
        return text.to_owned();
    }
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used < columns
    };
    let head: String = text.chars().take_while(fits).collect();
    format!("{head}…")
}
