//! Truncation of results that are too large for a model, and the file that keeps the whole.
//!
//! The whole result is put into a file of the session's private folder, once, and named in the text; the model reads
//! on there.
//! Pictures and structured content count as well.
//! Nothing is left out without saying how much.

use crate::session::Session;
use crate::tool::ToolSpec;
use serde_json::Value;
use std::io;
use toolgate_files::SpillStore;
use toolgate_proto::{CallId, CallResult, OutcomeRecord, Output, OutputBlock, format_count};

use crate::call_options::CallOutcome;

/// Which part of a result that is too large is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeptPart {
    /// The start: for files and lists.
    #[default]
    Start,
    /// The end: for logs.
    End,
    /// Half of each: for the output of commands.
    Both,
}

/// How much of a text is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextLimits {
    /// Most characters.
    pub chars: usize,
    /// Most lines.
    pub lines: usize,
}

/// A text of which something was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TruncatedText<'t> {
    /// What is kept of the start.
    pub start: &'t str,
    /// What is kept of the end.
    pub end: &'t str,
    /// Characters left out between the two.
    pub omitted_chars: usize,
    /// Lines left out between the two, counting one that was cut in two.
    pub omitted_lines: usize,
}

/// An image costs about as much as this many characters of text, whatever its size.
const IMAGE_COST_CHARS: usize = 6_000;
/// Providers refuse images with more base64 than this.
const MAX_IMAGE_BASE64_BYTES: usize = 5 * 1024 * 1024;
/// At least this much of a text is shown, however small the budget.
const MIN_TEXT_CHARS: usize = 1_000;

/// Truncates a text to its limits, on character boundaries. `None` where it fits.
pub fn truncate_text(text: &str, keep: KeptPart, limits: TextLimits) -> Option<TruncatedText<'_>> {
    // A text of few bytes has few characters and few lines.
    if text.len() <= limits.chars && text.len() < limits.lines {
        return None;
    }
    let chars = text.chars().count();
    let lines = line_count(text);
    if chars <= limits.chars && lines <= limits.lines {
        return None;
    }
    let (start, end) = match keep {
        KeptPart::Start => (head(text, limits), ""),
        KeptPart::End => ("", tail(text, limits)),
        KeptPart::Both => {
            let half = TextLimits { chars: limits.chars.div_ceil(2), lines: limits.lines.div_ceil(2) };
            let start = head(text, half);
            let rest = text.get(start.len()..).unwrap_or_default();
            let left = TextLimits {
                chars: limits.chars.saturating_sub(start.chars().count()),
                lines: limits.lines.saturating_sub(line_count(start)),
            };
            (start, tail(rest, left))
        }
    };
    let middle = text.get(start.len()..text.len() - end.len()).unwrap_or_default();
    Some(TruncatedText {
        start,
        end,
        omitted_chars: middle.chars().count(),
        omitted_lines: line_count(middle),
    })
}

/// The longest start within the limits, without half a line where that costs little.
fn head(text: &str, limits: TextLimits) -> &str {
    let by_lines = match text.match_indices('\n').nth(limits.lines.saturating_sub(1)) {
        Some((end, _)) if limits.lines > 0 => end + 1,
        Some(_) => 0,
        None if limits.lines == 0 => 0,
        None => text.len(),
    };
    let by_chars = text.char_indices().nth(limits.chars).map_or(text.len(), |(end, _)| end);
    if by_lines <= by_chars {
        return text.get(..by_lines).unwrap_or_default();
    }
    let kept = text.get(..by_chars).unwrap_or_default();
    match kept.rfind('\n') {
        Some(end) if kept.len() - end <= kept.len() / 8 => kept.get(..=end).unwrap_or_default(),
        Some(_) | None => kept,
    }
}

/// The longest end within the limits, without half a line where that costs little.
fn tail(text: &str, limits: TextLimits) -> &str {
    if limits.chars == 0 || limits.lines == 0 {
        return "";
    }
    // A line end that ends the text ends its last line; it starts no other.
    let body = text.strip_suffix('\n').unwrap_or(text);
    let by_lines = body.rmatch_indices('\n').nth(limits.lines - 1).map_or(0, |(start, _)| start + 1);
    let by_chars = text.char_indices().rev().nth(limits.chars - 1).map_or(0, |(start, _)| start);
    if by_lines >= by_chars {
        return text.get(by_lines..).unwrap_or_default();
    }
    let kept = text.get(by_chars..).unwrap_or_default();
    match kept.find('\n') {
        Some(end) if end < kept.len() / 8 => kept.get(end + 1..).unwrap_or_default(),
        Some(_) | None => kept,
    }
}

/// The number of lines, as an editor counts them.
fn line_count(text: &str) -> usize {
    text.lines().count()
}

impl TruncatedText<'_> {
    /// The text with a notice where something is missing. `rest` says where the whole is.
    pub fn with_notice(&self, rest: &str) -> String {
        let Self { start, end, omitted_chars, omitted_lines } = self;
        let chars = format_count(*omitted_chars as u64, "character", "characters");
        let lines = format_count(*omitted_lines as u64, "line", "lines");
        let verb = if *omitted_chars == 1 { "was" } else { "were" };
        let notice = format!("[{chars} in {lines} {verb} left out here; {rest}]");
        let mut out = String::with_capacity(start.len() + notice.len() + end.len() + 4);
        out.push_str(start);
        if !start.is_empty() && !start.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(&notice);
        if !end.is_empty() {
            out.push('\n');
            out.push_str(end);
        }
        out
    }
}

/// Where results are kept, and of which call.
#[derive(Clone, Copy)]
pub(crate) struct SpillTarget<'a> {
    pub(crate) spill: Option<&'a SpillStore>,
    pub(crate) session: &'a Session,
    pub(crate) call: &'a CallId,
}

impl SpillTarget<'_> {
    /// Keeps something whole. What to say of it, and where it is.
    fn save(&self, ending: &str, content: &[u8]) -> (String, Option<String>) {
        let Some(spill) = self.spill else { return ("ask for less at once to see it".to_owned(), None) };
        match spill.store(self.session.id().as_str(), self.call.as_str(), ending, content) {
            Ok(path) => (spill_hint(&path.to_string()), Some(path.to_string())),
            Err(error) => (format!("it could not be kept ({error}); ask for less at once to see it"), None),
        }
    }
}

/// Where the whole output is, and how to read it.
fn spill_hint(path: &str) -> String {
    format!("the whole is in `{path}`: read it there in parts, with an offset and a limit, or search it")
}

/// Truncates the output of a tool. Returns the path of the whole output, if it was too large.
pub(crate) fn truncate_output(
    output: &mut Output,
    spec: &ToolSpec,
    store: SpillTarget<'_>,
) -> Option<String> {
    let limits =
        TextLimits { chars: spec.max_result_chars, lines: spec.max_result_lines.unwrap_or(usize::MAX) };
    let pictures = truncate_images(&mut output.content, limits.chars, store);
    let left = TextLimits {
        chars: limits.chars.saturating_sub(pictures.chars).max(MIN_TEXT_CHARS.min(limits.chars)),
        ..limits
    };
    let text = truncate_text_blocks(&mut output.content, spec.keep, left, store);
    let structured = truncate_structured(output, limits.chars, store);
    text.or(pictures.kept).or(structured)
}

/// What became of the images of an output.
struct ImageTruncation {
    /// What the ones that stay cost.
    chars: usize,
    /// Where the first that does not stay is.
    kept: Option<String>,
}

/// Replaces the images that exceed the limit by a note that names their file.
fn truncate_images(content: &mut [OutputBlock], max_chars: usize, store: SpillTarget<'_>) -> ImageTruncation {
    let mut pictures = ImageTruncation { chars: 0, kept: None };
    for block in content {
        let OutputBlock::Image { media_type, data } = block else { continue };
        // The first is always shown: a tool that returns an image was asked for one.
        let fits = pictures.chars == 0 || pictures.chars + IMAGE_COST_CHARS <= max_chars;
        if fits && data.len() <= MAX_IMAGE_BASE64_BYTES {
            pictures.chars += IMAGE_COST_CHARS;
            continue;
        }
        let (said, kept) = store.save("base64", data.as_bytes());
        let text = format!("[a picture ({media_type}, {} bytes in base64) was left out; {said}]", data.len());
        *block = OutputBlock::Text { text };
        pictures.kept = pictures.kept.or(kept);
    }
    pictures
}

/// Truncates the text of an output, all blocks together. Returns the path of the whole text, if it was too long.
fn truncate_text_blocks(
    content: &mut Vec<OutputBlock>,
    keep: KeptPart,
    limits: TextLimits,
    store: SpillTarget<'_>,
) -> Option<String> {
    let mut texts = content.iter().filter_map(|block| match block {
        OutputBlock::Text { text } => Some(text.as_str()),
        OutputBlock::Image { .. }
        | OutputBlock::Audio { .. }
        | OutputBlock::Resource { .. }
        | OutputBlock::Embedded { .. }
        | _ => None,
    });
    let first = texts.next()?;
    let joined;
    let whole = match texts.next() {
        None => first,
        Some(second) => {
            let mut all = vec![first, second];
            all.extend(texts);
            joined = all.join("\n");
            &joined
        }
    };
    let cut = truncate_text(whole, keep, limits)?;
    let (said, kept) = store.save("txt", whole.as_bytes());
    let shown = cut.with_notice(&said);
    replace_texts(content, shown);
    kept
}

/// One text in the place of the first; the others go.
fn replace_texts(content: &mut Vec<OutputBlock>, shown: String) {
    let mut shown = Some(shown);
    content.retain_mut(|block| match block {
        OutputBlock::Text { text } => match shown.take() {
            Some(shown) => {
                *text = shown;
                true
            }
            None => false,
        },
        OutputBlock::Image { .. }
        | OutputBlock::Audio { .. }
        | OutputBlock::Resource { .. }
        | OutputBlock::Embedded { .. }
        | _ => true,
    });
}

/// The structured form goes to programs, which cannot use half of it: it is whole, or in a file.
fn truncate_structured(output: &mut Output, max_chars: usize, store: SpillTarget<'_>) -> Option<String> {
    let structured = output.structured.as_ref()?;
    // JSON of the same content is somewhat longer than its text.
    let most = max_chars.saturating_mul(2).max(IMAGE_COST_CHARS);
    if max_json_bytes(structured) <= most {
        return None;
    }
    let bytes = json_bytes(structured);
    if bytes <= most {
        return None;
    }
    let value = output.structured.take()?;
    let (said, kept) = store.save("json", value.to_string().as_bytes());
    let text = format!("[the structured form ({bytes} bytes of JSON) was left out; {said}]");
    output.content.push(OutputBlock::Text { text });
    kept
}

/// No fewer bytes than the value has as JSON, without writing it: a character becomes six at most.
fn max_json_bytes(value: &Value) -> usize {
    let text = |text: &str| text.len().saturating_mul(6) + 4;
    match value {
        Value::Null | Value::Bool(_) => 6,
        Value::Number(_) => 40,
        Value::String(string) => text(string),
        Value::Array(items) => items.iter().map(max_json_bytes).fold(2, usize::saturating_add),
        Value::Object(fields) => {
            let sizes = fields.iter().map(|(name, value)| text(name) + max_json_bytes(value));
            sizes.fold(2, usize::saturating_add)
        }
    }
}

/// The length of a value as compact JSON, without allocating the text.
fn json_bytes(value: &Value) -> usize {
    struct JsonByteCounter(usize);
    impl io::Write for JsonByteCounter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = JsonByteCounter(0);
    // Counting cannot fail, and neither can writing a value that is JSON.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// Truncates the largest results of a batch so that all together fit its budget.
pub(crate) fn truncate_batch(
    calls: &mut [CallOutcome],
    budget: usize,
    spill: Option<&SpillStore>,
    session: &Session,
) {
    let sizes: Vec<usize> = calls.iter().map(|closed| text_chars(&closed.result)).collect();
    let Some(most) = fair_share(&sizes, budget) else { return };
    for (closed, chars) in calls.iter_mut().zip(sizes) {
        if chars <= most {
            continue;
        }
        let store = SpillTarget { spill, session, call: &closed.record.call };
        let output = match &mut closed.result {
            Ok(output) => output,
            Err(refusal) => match &mut refusal.partial {
                Some(partial) => partial,
                None => continue,
            },
        };
        let limits = TextLimits { chars: most, lines: usize::MAX };
        let before = match &mut closed.record.outcome {
            OutcomeRecord::Done { spilled, .. } => spilled,
            OutcomeRecord::Refused { .. }
            | OutcomeRecord::Failed { .. }
            | OutcomeRecord::Cancelled { .. } => &mut None,
        };
        match before {
            // It was kept whole when it was cut the first time.
            Some(path) => {
                let whole = output.model_text();
                if let Some(cut) = truncate_text(&whole, KeptPart::Both, limits) {
                    let shown = cut.with_notice(&format!("the batch is large; {}", spill_hint(path)));
                    replace_texts(&mut output.content, shown);
                }
            }
            None => *before = truncate_text_blocks(&mut output.content, KeptPart::Both, limits, store),
        }
    }
}

/// The largest size to which each can be truncated so that all fit. `None` where they fit as they are.
fn fair_share(sizes: &[usize], budget: usize) -> Option<usize> {
    if sizes.iter().sum::<usize>() <= budget {
        return None;
    }
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    let mut left = budget;
    for (index, size) in sorted.iter().enumerate() {
        let share = left / (sorted.len() - index);
        if *size > share {
            return Some(share.max(MIN_TEXT_CHARS));
        }
        left -= size;
    }
    None
}

/// The characters of text in a result, also in the partial output of a refusal.
fn text_chars(result: &CallResult) -> usize {
    let output = match result {
        Ok(output) => Some(output),
        Err(refusal) => refusal.partial.as_deref(),
    };
    let blocks = output.into_iter().flat_map(|output| &output.content);
    blocks
        .map(|block| match block {
            OutputBlock::Text { text } => text.chars().count(),
            OutputBlock::Resource { uri, .. } => uri.len(),
            OutputBlock::Image { .. } | OutputBlock::Audio { .. } | OutputBlock::Embedded { .. } | _ => {
                IMAGE_COST_CHARS
            }
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_fair_to_the_small() {
        assert_eq!(fair_share(&[10, 20, 30], 60), None);
        assert_eq!(fair_share(&[500, 20_000, 30_000], 20_500), Some(10_000));
        assert_eq!(fair_share(&[5_000; 4], 10), Some(MIN_TEXT_CHARS));
        assert_eq!(fair_share(&[], 0), None);
    }
}
