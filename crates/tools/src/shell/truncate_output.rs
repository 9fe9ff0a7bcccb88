//! Truncation of long command output: its beginning and its end, cut between lines.

use toolgate_process::{OutputSnapshot, to_plain_text};

/// The output as a model sees it: complete if it has at most `max_bytes`, otherwise half of that from each end. The end
/// usually has the error, and the beginning shows what ran.
pub(super) fn truncate_output(captured: &OutputSnapshot, max_bytes: usize) -> String {
    let (head, tail) = (to_plain_text(&captured.head), to_plain_text(&captured.tail));
    let fits = captured.omitted_bytes() == 0 && head.len() + tail.len() <= max_bytes;
    if fits {
        return head + &tail;
    }
    let available = head.len() + tail.len();
    let start = truncate_to_head(&head, max_bytes / 2).to_owned();
    let end = truncate_to_tail(&format!("{head}{tail}"), max_bytes / 2).to_owned();
    let omitted = captured.omitted_bytes() + available.saturating_sub(start.len() + end.len()) as u64;
    let file_note = match (&captured.file, &captured.problem) {
        (Some(file), _) => format!("; the complete output is in {file}"),
        (None, Some(problem)) => format!("; the complete output could not be saved: {problem}"),
        (None, None) => String::new(),
    };
    format!("{start}\n[… {omitted} bytes not shown{file_note} …]\n{end}")
}

/// At most `max_bytes` from the start, up to the end of a line if there is one.
fn truncate_to_head(text: &str, max_bytes: usize) -> &str {
    let head = text.get(..text.floor_char_boundary(max_bytes)).unwrap_or_default();
    head.rfind('\n').and_then(|end| head.get(..end)).unwrap_or(head)
}

/// At most `max_bytes` from the end, from the start of a line if there is one.
fn truncate_to_tail(text: &str, max_bytes: usize) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(max_bytes));
    let tail = text.get(start..).unwrap_or_default();
    tail.find('\n').and_then(|end| tail.get(end + 1..)).filter(|rest| !rest.is_empty()).unwrap_or(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_output_is_truncated_at_line_ends_and_the_omitted_bytes_are_counted() {
        let lines: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let (head, tail) = lines.as_bytes().split_at(400);
        let captured = OutputSnapshot {
            head: head.to_vec(),
            tail: tail.to_vec(),
            total: lines.len() as u64,
            ..OutputSnapshot::default()
        };
        let shown = truncate_output(&captured, 100);
        assert!(shown.starts_with("line 0\nline 1\n") && shown.ends_with("line 99\n"), "{shown}");
        assert!(shown.contains("bytes not shown"));
        assert_eq!(truncate_output(&captured, 10_000), lines);
    }
}
