//! Refusals of a replacement that matched nowhere or in several places, with the lines that the model needs to correct
//! its call.

use super::nearest_match;
use super::replacement::{FailedReplacement, ReplacementError, TextReplacement};
use toolgate_proto::{AbsPath, Code, Output, Refusal};

/// Occurrences that the refusal of an ambiguous text lists.
const MAX_LISTED_OCCURRENCE_COUNT: usize = 20;

/// The refusal for the first replacement that failed.
pub(super) fn replacement_refusal(
    path: &AbsPath,
    replacements: &[TextReplacement],
    failed: &FailedReplacement,
) -> Refusal {
    let prefix = match replacements.len() {
        1 => String::new(),
        count => format!("edit {} of {count}: ", failed.index + 1),
    };
    match &failed.error {
        ReplacementError::Ambiguous(lines) => ambiguous_refusal(path, &prefix, lines, &failed.text),
        ReplacementError::NotFound => {
            let old = replacements.get(failed.index).map_or("", |replacement| replacement.old.as_str());
            not_found_refusal(path, &prefix, old, &failed.text)
        }
    }
}

/// Lists the lines of the occurrences, so that the model can extend its text or give a line hint.
fn ambiguous_refusal(path: &AbsPath, prefix: &str, lines: &[u64], text: &[u8]) -> Refusal {
    let mut numbers: Vec<u64> = lines.to_vec();
    numbers.dedup();
    let omitted = if numbers.len() > MAX_LISTED_OCCURRENCE_COUNT { ", …" } else { "" };
    let noun = if numbers.len() == 1 { "line" } else { "lines" };
    numbers.truncate(MAX_LISTED_OCCURRENCE_COUNT);
    let listed: Vec<String> = numbers.iter().map(u64::to_string).collect();
    let text = String::from_utf8_lossy(text);
    let occurrences: Vec<String> = text
        .split('\n')
        .enumerate()
        .map(|(index, line)| (index as u64 + 1, line))
        .filter(|(number, _)| numbers.contains(number))
        .map(|(number, line)| format!("{number:>6}\t{}", line.trim_end()))
        .collect();
    Refusal::new(
        Code::EditTargetAmbiguous,
        format!(
            "{prefix}the text to replace is in `{path}` {} times, at {noun} {}{omitted}",
            lines.len(),
            listed.join(", "),
        ),
    )
    .with_partial(Output::text(occurrences.join("\n")))
}

/// Names the difference to the nearest region and shows that region, if there is one.
fn not_found_refusal(path: &AbsPath, prefix: &str, old: &str, text: &[u8]) -> Refusal {
    let reason = format!("{prefix}the text to replace is not in `{path}`");
    match nearest_match::find_nearest(text, old) {
        Some(nearest) => {
            let excerpt = nearest_match::excerpt(text, nearest.lines);
            Refusal::new(Code::EditTargetNotFound, format!("{reason}; {}", nearest.difference))
                .with_partial(Output::text(format!("nearest match:\n{excerpt}")))
        }
        None => Refusal::new(Code::EditTargetNotFound, reason),
    }
}
