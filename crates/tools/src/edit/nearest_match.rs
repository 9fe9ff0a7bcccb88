//! What was probably meant by text that is not there.
//!
//! The usual near misses are tried one by one: the text and the file are both made simpler (no trailing blanks, one
//! kind of quote, …) and compared again.
//! The first simplification under which they meet is the difference, and can be named.
//! Only if there is none, the most similar lines are looked for.

/// The nearest region of a file and what is different there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NearestMatch {
    /// First and last line, from 1.
    pub(crate) lines: (usize, usize),
    /// What differs, for the model.
    pub(crate) difference: String,
}

/// Beyond this nobody waits for a hint.
const MAX_SEARCHED_BYTES: usize = 4 * 1024 * 1024;
const MAX_COMPARED_LINES: usize = 20_000;
const MAX_LINE_CHARS: usize = 300;
const MIN_SIMILARITY: f64 = 0.6;

type LineNormalizer = fn(&str) -> String;
/// Names the difference between what is there and what was wanted.
type DifferenceDescriber = fn(&str, &str) -> String;

/// Finds the nearest region.
pub(crate) fn find_nearest(text: &[u8], wanted: &str) -> Option<NearestMatch> {
    if text.len() > MAX_SEARCHED_BYTES || wanted.trim().is_empty() {
        return None;
    }
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.split('\n').collect();
    if let Some(without) = strip_line_numbers(wanted)
        && let Some(place) = find_normalized(&lines, &without, trim_line_end)
    {
        return Some(new_match(
            place,
            "the text has the line numbers of Read before its lines; leave them out",
        ));
    }
    let steps: [(LineNormalizer, DifferenceDescriber); 5] = [
        (trim_line_end, |_, _| "blanks at the end of lines differ".to_owned()),
        (normalize_indent, describe_indent_difference),
        (normalize_quotes, |_, _| "quotes or dashes differ: one side has typographic ones".to_owned()),
        (normalize_blanks, |_, _| "blanks inside or around lines differ".to_owned()),
        (normalize_case, |_, _| "upper and lower case differ".to_owned()),
    ];
    for (simplify, words) in steps {
        if let Some(place) = find_normalized(&lines, wanted, simplify) {
            let there = lines.get(place.0..=place.1).unwrap_or_default().join("\n");
            return Some(new_match(place, &words(&there, wanted)));
        }
    }
    let unescaped = wanted.replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\"");
    if unescaped != wanted
        && let Some(place) = find_normalized(&lines, &unescaped, trim_line_end)
    {
        return Some(new_match(
            place,
            "the text is escaped once too often: `\\n`, `\\t` or `\\\"` stand where the characters are meant",
        ));
    }
    find_most_similar(&lines, wanted)
}

fn new_match(place: (usize, usize), difference: &str) -> NearestMatch {
    NearestMatch { lines: (place.0 + 1, place.1 + 1), difference: difference.to_owned() }
}

/// The window of lines in which the simplified text stands, whole lines or a part of one.
fn find_normalized(lines: &[&str], wanted: &str, simplify: LineNormalizer) -> Option<(usize, usize)> {
    let wanted: Vec<String> = wanted.split('\n').map(simplify).collect();
    let wanted = match wanted.as_slice() {
        // A line end at the end of the text asks for nothing on the next line.
        [rest @ .., last] if last.is_empty() && !rest.is_empty() => rest,
        all => all,
    };
    let (first, rest) = wanted.split_first()?;
    let simple: Vec<String> = lines.iter().map(|line| simplify(line)).collect();
    for (at, line) in simple.iter().enumerate() {
        let fits =
            if rest.is_empty() { line.contains(first.as_str()) } else { line.ends_with(first.as_str()) };
        if !fits {
            continue;
        }
        let window = simple.get(at + 1..at + 1 + rest.len());
        let same = window.is_some_and(|window| {
            window.iter().zip(rest).enumerate().all(|(index, (line, wanted))| {
                if index + 1 == rest.len() { line.starts_with(wanted.as_str()) } else { line == wanted }
            })
        });
        if same {
            return Some((at, at + rest.len()));
        }
    }
    None
}

fn trim_line_end(line: &str) -> String {
    line.trim_end().to_owned()
}

fn normalize_indent(line: &str) -> String {
    let line = line.trim_end();
    let body = line.trim_start();
    if body.len() == line.len() { body.to_owned() } else { format!(" {body}") }
}

fn normalize_blanks(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn normalize_quotes(line: &str) -> String {
    let plain = line.trim_end().chars().map(|c| match c {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{2032}' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{2033}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{202f}' => ' ',
        other => other,
    });
    plain.collect()
}

fn normalize_case(line: &str) -> String {
    normalize_blanks(line).to_lowercase()
}

fn describe_indent_difference(there: &str, wanted: &str) -> String {
    let tabs = |text: &str| text.split('\n').any(|line| line.starts_with('\t'));
    let blanks = |text: &str| text.split('\n').any(|line| line.starts_with(' '));
    match (tabs(there), blanks(wanted)) {
        (true, true) => "the file indents with tabs, the text with spaces".to_owned(),
        _ if tabs(wanted) && blanks(there) => "the file indents with spaces, the text with tabs".to_owned(),
        _ => "the indentation differs".to_owned(),
    }
}

/// The text without `   12→` or `   12<tab>` before each line, where each line has that.
fn strip_line_numbers(wanted: &str) -> Option<String> {
    let mut out = Vec::new();
    for line in wanted.split('\n').filter(|line| !line.is_empty()) {
        let rest = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = line.trim_start().len() - rest.len();
        let rest = rest.strip_prefix(['\t', '→']).filter(|_| digits > 0)?;
        out.push(rest);
    }
    (!out.is_empty()).then(|| out.join("\n"))
}

/// The lines that look most like the text's most telling one.
fn find_most_similar(lines: &[&str], wanted: &str) -> Option<NearestMatch> {
    let wanted_lines: Vec<&str> = wanted.trim_end_matches('\n').split('\n').collect();
    let (telling_at, telling) =
        wanted_lines.iter().enumerate().max_by_key(|(_, line)| line.trim().len().min(MAX_LINE_CHARS))?;
    let telling = truncate_line(telling.trim());
    let (likeness, at) = lines
        .iter()
        .take(MAX_COMPARED_LINES)
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(at, line)| (strsim::normalized_levenshtein(truncate_line(line.trim()), telling), at))
        .max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)))?;
    if likeness < MIN_SIMILARITY {
        return None;
    }
    let first = at.saturating_sub(telling_at);
    let last = (first + wanted_lines.len() - 1).min(lines.len() - 1).max(at);
    let differs = lines
        .get(first..=last)
        .unwrap_or_default()
        .iter()
        .zip(&wanted_lines)
        .position(|(line, wanted)| line.trim_end() != wanted.trim_end())
        .unwrap_or(0);
    let there = lines.get(first + differs).copied().unwrap_or_default();
    let asked = wanted_lines.get(differs).copied().unwrap_or_default();
    let difference = format!(
        "line {} is `{}` in the file, and `{}` in the text",
        first + differs + 1,
        truncate_line(there.trim_end()),
        truncate_line(asked.trim_end()),
    );
    Some(NearestMatch { lines: (first + 1, last + 1), difference })
}

fn truncate_line(line: &str) -> &str {
    match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((at, _)) => line.get(..at).unwrap_or(line),
        None => line,
    }
}

/// Lines of a text with their numbers, some more on each side.
pub(crate) fn excerpt(text: &[u8], lines: (usize, usize)) -> String {
    const CONTEXT_LINES: usize = 2;
    const MAX_EXCERPT_LINES: usize = 40;
    let text = String::from_utf8_lossy(text);
    let first = lines.0.saturating_sub(CONTEXT_LINES).max(1);
    let count = (lines.1 + CONTEXT_LINES + 1 - first).min(MAX_EXCERPT_LINES);
    let numbered = text.split('\n').enumerate().skip(first - 1).take(count);
    numbered
        .map(|(at, line)| format!("{:>6}\t{}", at + 1, truncate_line(line.trim_end_matches('\r'))))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "fn one() {\n\tlet a = 1;\n\tlet b = \"two\";\n}\n\nfn two() {   \n    call(a, b);\n}\n";

    fn check(wanted: &str, lines: (usize, usize), words: &str) {
        let near = find_nearest(FILE.as_bytes(), wanted).unwrap();
        assert_eq!(near.lines, lines, "{near:?}");
        assert!(near.difference.contains(words), "{near:?}");
    }

    #[test]
    fn the_usual_near_misses_are_named() {
        check("    let a = 1;\n    let b", (2, 3), "the file indents with tabs, the text with spaces");
        check("fn two() {\n\tcall(a, b);", (6, 7), "the file indents with spaces, the text with tabs");
        check("fn two() {\n    call(a, b);", (6, 7), "blanks at the end of lines");
        check("let b = “two”;", (3, 3), "quotes");
        check("     2\t\tlet a = 1;\n     3\t\tlet b = \"two\";\n", (2, 3), "line numbers of Read");
        check("call( a, b );", (7, 7), "line 7 is");
        check("CALL(a,  b);", (7, 7), "upper and lower case");
        check("let  a  =  1;", (2, 2), "blanks inside");
        check("fn one() {\\n\\tlet a = 1;", (1, 2), "escaped once too often");
        check("let b = \"three\";", (3, 3), "line 3 is `\tlet b = \"two\";` in the file");
    }

    #[test]
    fn nothing_is_made_up() {
        assert_eq!(find_nearest(FILE.as_bytes(), "something else altogether, not here"), None);
        assert_eq!(find_nearest(b"", "x"), None);
    }
}
