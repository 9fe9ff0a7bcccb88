//! Finds the region of a file that a text to replace probably meant, and names the difference.
//!
//! Frequent mistakes are tried in order: text and file are both normalized (trailing whitespace removed, quotes
//! unified, …) and compared again.
//! The first normalization under which they match is the difference.
//! Only if none matches does the search fall back to the lines with the smallest edit distance.

/// The nearest region of a file, and how it differs from the text to replace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NearestMatch {
    /// The first and the last line, from 1.
    pub(crate) lines: (usize, usize),
    /// The difference, in words for the model.
    pub(crate) difference: String,
}

/// In a larger file the search is skipped: a hint is not worth seconds.
const MAX_SEARCHED_BYTES: usize = 4 * 1024 * 1024;
/// Lines whose edit distance is computed, which takes quadratic time in the length of a line.
const MAX_COMPARED_LINES: usize = 20_000;
/// Characters of a line that are compared and shown.
const MAX_LINE_CHARS: usize = 300;
/// Lines that are less similar (normalized Levenshtein) are no match.
const MIN_SIMILARITY: f64 = 0.6;
/// Lines around the region in an excerpt.
const CONTEXT_LINES: usize = 2;
/// Lines of one excerpt; a long region would repeat much of the file in the error message.
const MAX_EXCERPT_LINES: usize = 40;

/// Removes one kind of difference from a line.
type LineNormalizer = fn(&str) -> String;
/// Names the difference between the file's region and the text to replace.
type DifferenceDescriber = fn(&str, &str) -> String;

/// Finds the nearest region; `None` if nothing is similar enough.
pub(crate) fn find_nearest(text: &[u8], wanted: &str) -> Option<NearestMatch> {
    if text.len() > MAX_SEARCHED_BYTES || wanted.trim().is_empty() {
        return None;
    }
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.split('\n').collect();
    if let Some(stripped) = strip_line_numbers(wanted)
        && let Some(region) = find_normalized(&lines, &stripped, trim_line_end)
    {
        return Some(new_match(region, "the text includes the line numbers of Read; leave them out"));
    }
    let steps: [(LineNormalizer, DifferenceDescriber); 5] = [
        (trim_line_end, |_, _| "trailing whitespace differs".to_owned()),
        (normalize_indent, describe_indent_difference),
        (normalize_quotes, |_, _| "quotes or dashes differ: one side has typographic ones".to_owned()),
        (normalize_whitespace, |_, _| "whitespace inside or around lines differs".to_owned()),
        (normalize_case, |_, _| "upper and lower case differ".to_owned()),
    ];
    for (normalize, describe) in steps {
        if let Some(region) = find_normalized(&lines, wanted, normalize) {
            let found = lines.get(region.0..=region.1).unwrap_or_default().join("\n");
            return Some(new_match(region, &describe(&found, wanted)));
        }
    }
    let unescaped = wanted.replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\"");
    if unescaped != wanted
        && let Some(region) = find_normalized(&lines, &unescaped, trim_line_end)
    {
        return Some(new_match(
            region,
            "the text is escaped once too often: it has `\\n`, `\\t` or `\\\"` instead of the characters",
        ));
    }
    find_most_similar(&lines, wanted)
}

/// `region` counts lines from 0.
fn new_match(region: (usize, usize), difference: &str) -> NearestMatch {
    NearestMatch { lines: (region.0 + 1, region.1 + 1), difference: difference.to_owned() }
}

/// The first region of lines that contains the normalized text. The text may start and end inside a line.
fn find_normalized(lines: &[&str], wanted: &str, normalize: LineNormalizer) -> Option<(usize, usize)> {
    let wanted: Vec<String> = wanted.split('\n').map(normalize).collect();
    let wanted = match wanted.as_slice() {
        // A final line end requires nothing of the next line.
        [rest @ .., last] if last.is_empty() && !rest.is_empty() => rest,
        all => all,
    };
    let (first, rest) = wanted.split_first()?;
    let normalized: Vec<String> = lines.iter().map(|line| normalize(line)).collect();
    for (start, line) in normalized.iter().enumerate() {
        let first_matches =
            if rest.is_empty() { line.contains(first.as_str()) } else { line.ends_with(first.as_str()) };
        if !first_matches {
            continue;
        }
        let window = normalized.get(start + 1..start + 1 + rest.len());
        let rest_matches = window.is_some_and(|window| {
            window.iter().zip(rest).enumerate().all(|(index, (line, wanted))| {
                if index + 1 == rest.len() { line.starts_with(wanted.as_str()) } else { line == wanted }
            })
        });
        if rest_matches {
            return Some((start, start + rest.len()));
        }
    }
    None
}

/// Removes trailing whitespace.
fn trim_line_end(line: &str) -> String {
    line.trim_end().to_owned()
}

/// Reduces any indentation to one space, so that a line without one still differs.
fn normalize_indent(line: &str) -> String {
    let line = line.trim_end();
    let body = line.trim_start();
    if body.len() == line.len() { body.to_owned() } else { format!(" {body}") }
}

/// Reduces every run of whitespace to one space.
fn normalize_whitespace(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Replaces typographic quotes, dashes and spaces, which models and editors convert, with their ASCII forms.
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

/// The text in lower case with normalized whitespace: the weakest match that is tried.
fn normalize_case(line: &str) -> String {
    normalize_whitespace(line).to_lowercase()
}

/// Says which side indents with tabs and which with spaces, if that is the difference.
fn describe_indent_difference(found: &str, wanted: &str) -> String {
    let has_tabs = |text: &str| text.split('\n').any(|line| line.starts_with('\t'));
    let has_spaces = |text: &str| text.split('\n').any(|line| line.starts_with(' '));
    match (has_tabs(found), has_spaces(wanted)) {
        (true, true) => "the file indents with tabs, the text with spaces".to_owned(),
        _ if has_tabs(wanted) && has_spaces(found) => {
            "the file indents with spaces, the text with tabs".to_owned()
        }
        _ => "the indentation differs".to_owned(),
    }
}

/// The text without the `   12→` or `   12<tab>` that a `Read` result has before each line; `None` unless every line
/// has it.
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

/// The region around the line that is most similar to the longest line of the text. Comparing every pair of lines would
/// take quadratic time, and the longest line is the most specific.
fn find_most_similar(lines: &[&str], wanted: &str) -> Option<NearestMatch> {
    let wanted_lines: Vec<&str> = wanted.trim_end_matches('\n').split('\n').collect();
    let (longest_index, longest) =
        wanted_lines.iter().enumerate().max_by_key(|(_, line)| line.trim().len().min(MAX_LINE_CHARS))?;
    let longest = truncate_line(longest.trim());
    let (similarity, nearest) = lines
        .iter()
        .take(MAX_COMPARED_LINES)
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(index, line)| (strsim::normalized_levenshtein(truncate_line(line.trim()), longest), index))
        .max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)))?;
    if similarity < MIN_SIMILARITY {
        return None;
    }
    let first = nearest.saturating_sub(longest_index);
    let last = (first + wanted_lines.len() - 1).min(lines.len() - 1).max(nearest);
    let differing = lines
        .get(first..=last)
        .unwrap_or_default()
        .iter()
        .zip(&wanted_lines)
        .position(|(line, wanted)| line.trim_end() != wanted.trim_end())
        .unwrap_or(0);
    let in_file = lines.get(first + differing).copied().unwrap_or_default();
    let in_text = wanted_lines.get(differing).copied().unwrap_or_default();
    let difference = format!(
        "line {} is `{}` in the file, and `{}` in the text",
        first + differing + 1,
        truncate_line(in_file.trim_end()),
        truncate_line(in_text.trim_end()),
    );
    Some(NearestMatch { lines: (first + 1, last + 1), difference })
}

/// Truncates at a character boundary, so that a minified line does not fill the message.
fn truncate_line(line: &str) -> &str {
    match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((at, _)) => line.get(..at).unwrap_or(line),
        None => line,
    }
}

/// A region with line numbers and some context lines.
pub(crate) fn excerpt(text: &[u8], lines: (usize, usize)) -> String {
    let text = String::from_utf8_lossy(text);
    let first = lines.0.saturating_sub(CONTEXT_LINES).max(1);
    let count = (lines.1 + CONTEXT_LINES + 1 - first).min(MAX_EXCERPT_LINES);
    let numbered = text.split('\n').enumerate().skip(first - 1).take(count);
    numbered
        .map(|(index, line)| format!("{:>6}\t{}", index + 1, truncate_line(line.trim_end_matches('\r'))))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "fn one() {\n\tlet a = 1;\n\tlet b = \"two\";\n}\n\nfn two() {   \n    call(a, b);\n}\n";

    fn check(wanted: &str, lines: (usize, usize), difference: &str) {
        let nearest = find_nearest(FILE.as_bytes(), wanted).unwrap();
        assert_eq!(nearest.lines, lines, "{nearest:?}");
        assert!(nearest.difference.contains(difference), "{nearest:?}");
    }

    #[test]
    fn frequent_mistakes_are_named() {
        check("    let a = 1;\n    let b", (2, 3), "the file indents with tabs, the text with spaces");
        check("fn two() {\n\tcall(a, b);", (6, 7), "the file indents with spaces, the text with tabs");
        check("fn two() {\n    call(a, b);", (6, 7), "trailing whitespace");
        check("let b = “two”;", (3, 3), "quotes");
        check("     2\t\tlet a = 1;\n     3\t\tlet b = \"two\";\n", (2, 3), "line numbers of Read");
        check("call( a, b );", (7, 7), "line 7 is");
        check("CALL(a,  b);", (7, 7), "upper and lower case");
        check("let  a  =  1;", (2, 2), "whitespace inside");
        check("fn one() {\\n\\tlet a = 1;", (1, 2), "escaped once too often");
        check("let b = \"three\";", (3, 3), "line 3 is `\tlet b = \"two\";` in the file");
    }

    #[test]
    fn an_unrelated_text_has_no_nearest_match() {
        assert_eq!(find_nearest(FILE.as_bytes(), "something else altogether, not here"), None);
        assert_eq!(find_nearest(b"", "x"), None);
    }
}
