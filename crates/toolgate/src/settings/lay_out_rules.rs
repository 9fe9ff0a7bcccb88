//! The layout of a list of rules: one on each line, none twice, with every comment.
//!
//! The list is written anew from its text, because the syntax tree of the parser removes a comment together with the rule
//! beside it.

use std::ops::Range;

/// A rule in the text of a file.
pub(super) struct PlacedRule {
    /// Its bytes in the text, with the quotes.
    pub(super) range: Range<usize>,
    /// Its usual spelling.
    pub(super) rule: String,
}

/// A rule with its comments.
#[derive(Default)]
struct RuleLine<'t> {
    /// An empty line was before it.
    is_apart: bool,
    /// Comments on lines of their own before it.
    above: Vec<&'t str>,
    /// Comments on its line before it.
    before: Vec<&'t str>,
    /// The rule.
    rule: &'t str,
    /// Comments on its line after it.
    after: Vec<&'t str>,
}

/// What is between two rules.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GapPart<'t> {
    Comment(&'t str),
    Comma,
    LineEnd,
}

/// The new text of a list between its brackets, both included; `None` if the list can stay but for the spelling of its
/// rules. `list` are its bytes in the text.
pub(super) fn lay_out_rules(text: &str, list: &Range<usize>, rules: &[PlacedRule]) -> Option<String> {
    let gaps = find_gaps(text, list, rules)?;
    let is_repeated = |(index, placed): (usize, &PlacedRule)| {
        rules.iter().take(index).any(|earlier| earlier.rule == placed.rule)
    };
    let has_lines = gaps.iter().all(|gap| gap.contains(&GapPart::LineEnd));
    let has_repeated = rules.iter().enumerate().any(is_repeated);
    if !has_repeated && (rules.len() <= 1 || has_lines) {
        return None;
    }
    let (lines, below) = collect_lines(rules, &gaps);
    let lines = merge_repeated(lines);
    let has_trailing_comma = gaps.last().is_some_and(|gap| gap.contains(&GapPart::Comma));
    if let ([only], true, false) = (lines.as_slice(), below.is_empty(), has_lines)
        && only.above.is_empty()
    {
        let parts = only.before.iter().chain([&only.rule]).chain(&only.after);
        // A comment until the end of the line would hide the bracket.
        if !only.after.iter().any(|comment| comment.starts_with("//")) {
            return Some(format!("[{}]", parts.copied().collect::<Vec<_>>().join(" ")));
        }
    }
    Some(write_lines(&lines, &below, has_trailing_comma, &IndentStyle::of(text, list.start)))
}

/// What is before each rule, and after the last; `None` if a place is not in the text.
fn find_gaps<'t>(text: &'t str, list: &Range<usize>, rules: &[PlacedRule]) -> Option<Vec<Vec<GapPart<'t>>>> {
    let starts = std::iter::once(list.start + 1).chain(rules.iter().map(|placed| placed.range.end));
    let ends = rules.iter().map(|placed| placed.range.start).chain([list.end.checked_sub(1)?]);
    starts.zip(ends).map(|(start, end)| Some(split_gap(text.get(start..end)?))).collect()
}

/// The comments, commas and line ends of a text without rules.
fn split_gap(mut rest: &str) -> Vec<GapPart<'_>> {
    let mut parts = Vec::new();
    while let Some(first) = rest.chars().next() {
        let len = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else {
            first.len_utf8()
        };
        let (part, others) = rest.split_at(len);
        match first {
            '/' => parts.push(GapPart::Comment(part.trim_end())),
            ',' => parts.push(GapPart::Comma),
            '\n' => parts.push(GapPart::LineEnd),
            _ => {}
        }
        rest = others;
    }
    parts
}

/// Each rule with its comments, and the comments after the last.
fn collect_lines<'t>(
    rules: &'t [PlacedRule],
    gaps: &[Vec<GapPart<'t>>],
) -> (Vec<RuleLine<'t>>, Vec<&'t str>) {
    let mut lines: Vec<RuleLine<'t>> = Vec::new();
    let mut next = RuleLine::default();
    for (index, gap) in gaps.iter().enumerate() {
        let first_line_end = gap.iter().position(|part| *part == GapPart::LineEnd);
        let comma = gap.iter().position(|part| *part == GapPart::Comma);
        let mut line_ends = 0usize;
        for (at, part) in gap.iter().enumerate() {
            match part {
                GapPart::Comma => {}
                GapPart::LineEnd => line_ends += 1,
                GapPart::Comment(comment) => {
                    let ends_line = first_line_end.is_some_and(|end| at < end);
                    let is_last = index + 1 == gaps.len();
                    let is_behind = ends_line || comma.is_some_and(|comma| at < comma);
                    match lines.last_mut() {
                        Some(before) if line_ends == 0 && (is_behind || is_last) => {
                            before.after.push(comment)
                        }
                        _ if first_line_end.is_some() => next.above.push(comment),
                        _ => next.before.push(comment),
                    }
                    next.is_apart |= line_ends > 1;
                    line_ends = line_ends.min(1);
                }
            }
        }
        next.is_apart |= line_ends > 1 && index > 0;
        if let Some(placed) = rules.get(index) {
            next.rule = &placed.rule;
            lines.push(std::mem::take(&mut next));
        }
    }
    next.above.append(&mut next.before);
    (lines, next.above)
}

/// The first of equal rules, with the comments of all.
fn merge_repeated(lines: Vec<RuleLine<'_>>) -> Vec<RuleLine<'_>> {
    let mut merged: Vec<RuleLine<'_>> = Vec::new();
    for line in lines {
        match merged.iter_mut().find(|kept| kept.rule == line.rule) {
            Some(kept) => kept.above.extend(line.above.into_iter().chain(line.before).chain(line.after)),
            None => merged.push(line),
        }
    }
    merged
}

/// The line ends and the indentation of a list.
struct IndentStyle<'t> {
    line_end: &'static str,
    outer: &'t str,
    inner: String,
}

impl<'t> IndentStyle<'t> {
    /// That of a list that begins at this byte.
    fn of(text: &'t str, start: usize) -> Self {
        let indent_of = |line: &'t str| line.split_at(line.len() - line.trim_start().len()).0;
        let before = text.get(..start).unwrap_or_default();
        let outer = indent_of(before.rsplit('\n').next().unwrap_or_default());
        // One level is the difference to the nearest line above with less indentation.
        let above = before.rsplit('\n').skip(1).filter(|line| !line.trim().is_empty()).map(indent_of);
        let step = above.filter_map(|indent| outer.strip_prefix(indent)).find(|step| !step.is_empty());
        let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        Self { line_end, outer, inner: format!("{outer}{}", step.unwrap_or("  ")) }
    }
}

/// The list with one rule on each line.
fn write_lines(
    lines: &[RuleLine<'_>],
    below: &[&str],
    has_trailing_comma: bool,
    style: &IndentStyle<'_>,
) -> String {
    let IndentStyle { line_end, outer, inner } = style;
    let mut out = "[".to_owned();
    for (index, line) in lines.iter().enumerate() {
        if line.is_apart {
            out.push_str(line_end);
        }
        for comment in &line.above {
            out.push_str(&format!("{line_end}{inner}{comment}"));
        }
        let comma = if index + 1 < lines.len() || has_trailing_comma { "," } else { "" };
        let rule = format!("{}{comma}", line.rule);
        let parts: Vec<&str> =
            line.before.iter().copied().chain([rule.as_str()]).chain(line.after.iter().copied()).collect();
        out.push_str(&format!("{line_end}{inner}{}", parts.join(" ")));
    }
    for comment in below {
        out.push_str(&format!("{line_end}{inner}{comment}"));
    }
    out.push_str(&format!("{line_end}{outer}]"));
    out
}
