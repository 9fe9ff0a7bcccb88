//! `Read` and `read_file`: what is in a file.

mod image;
mod line_index;
mod notebook;
mod page;
#[cfg(feature = "pdf")]
mod pdf;
mod read_many_files;

use crate::file_refusal::{check_absolute, file_refusal, missing_file_refusal};
use crate::read_state::ReadState;
use crate::text_encoding::{LineEndings, TextDecodeError};
pub(crate) use line_index::LineIndex;
use page::{FilePage, PageError, PageRequest, read_page};
pub(crate) use read_many_files::ReadManyFilesTool;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::fmt::Write;
use std::fs::File;
use toolgate_files::{FileFingerprint, FileProblem, run_blocking};
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{
    AbsPath, CallResult, Code, Effect, Intent, Output, PathScope, Refusal, SessionModifier,
};

/// Lines given where no limit is asked for.
const DEFAULT_LINE_LIMIT: u64 = 2_000;
/// Characters of a line that are given; the rest is cut.
const MAX_LINE_CHARS: usize = 2_000;
/// Characters of a whole result.
const MAX_RESULT_CHARS: usize = 100_000;
/// Up to this size a file is read without going to another thread, which would take longer than the read.
const MAX_INLINE_READ_BYTES: u64 = 256 * 1024;

/// The claude face: absolute path, offset and limit, numbered lines.
pub(crate) struct ReadTool;

/// Input of [`Read`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadInput {
    /// The absolute path of the file.
    file_path: String,
    /// The line to start at, from 1.
    #[schemars(range(min = 0))]
    offset: Option<u64>,
    /// How many lines to give; 2000 where absent.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// Which pages of a PDF: `3`, `1-5` or `10-`; at most 20 at once.
    pages: Option<String>,
}

impl Tool for ReadTool {
    type Input = ReadInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "Read",
            "Reads a file as numbered lines, 2000 of them unless `limit` says otherwise; go on with `offset`. \
             Lines over 2000 characters are cut. Images (PNG, JPEG, GIF, WebP) are shown, notebooks are given by \
             cell with their outputs, PDF files by page. Read a file before you change it.",
        )
        .read_only();
        spec.title = "Read file".to_owned();
        spec.max_result_chars = MAX_RESULT_CHARS + 4_000;
        spec.input_examples =
            vec![json!({ "file_path": "/project/src/main.rs", "offset": 100, "limit": 50 })];
        spec
    }

    fn check(&self, input: &ReadInput) -> Result<(), Refusal> {
        check_absolute("file_path", &input.file_path)
    }

    fn intent(&self, input: &ReadInput, scene: &CallContext) -> Intent {
        read_intent(scene.absolute_path(&input.file_path))
    }

    async fn run(&self, input: ReadInput, cleared: Cleared) -> CallResult {
        let path = cleared.context().absolute_path(&input.file_path);
        let opened = FileReadHandle::new(&cleared, &path)?;
        if let Some(picture) = image::read_image(&opened).await? {
            return Ok(picture);
        }
        if has_extension(&path, "ipynb") && input.offset.is_none() && input.limit.is_none() {
            return notebook::read_notebook(opened).await;
        }
        if has_extension(&path, "pdf") || input.pages.is_some() {
            return read_pdf(opened, input.pages.as_deref()).await;
        }
        let wanted = PageRequest {
            first: input.offset.unwrap_or(1).max(1),
            count: input.limit.unwrap_or(DEFAULT_LINE_LIMIT),
            line_chars: Some(MAX_LINE_CHARS),
            bytes: MAX_RESULT_CHARS,
        };
        let page = opened.read_page(wanted).await?;
        let mut text = String::with_capacity(page.lines.text().len() + 8 * (page.lines.len() + 1));
        let crlf = page.line_ends == LineEndings::Crlf;
        let mut number = LineNumber::new(wanted.first);
        for line in page.lines.iter() {
            text.push_str(number.as_str());
            number.increment();
            text.push('\t');
            text.push_str(if crlf { line.strip_suffix('\r').unwrap_or(line) } else { line });
            text.push('\n');
        }
        for note in page.notes("offset") {
            let _ = writeln!(text, "[{note}]");
        }
        Ok(page.output(text, &path))
    }
}

/// The plain face: a range of lines, given as they are.
pub(crate) struct ReadFileTool;

/// Input of [`ReadFileTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadFileInput {
    /// The path of the file, absolute or from the working directory.
    path: String,
    /// The first line to give, from 1.
    #[serde(rename = "startLine")]
    #[schemars(range(min = 1))]
    start_line: Option<u64>,
    /// The last line to give.
    #[serde(rename = "endLine")]
    #[schemars(range(min = 1))]
    end_line: Option<u64>,
}

impl Tool for ReadFileTool {
    type Input = ReadFileInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "read_file",
            "Reads a file, whole or from `startLine` to `endLine`, and gives its text as it is. Images (PNG, JPEG, \
             GIF, WebP) are shown.",
        )
        .read_only();
        spec.title = "Read file".to_owned();
        spec.family = Some("Read".to_owned());
        spec.max_result_chars = MAX_RESULT_CHARS + 4_000;
        spec.input_examples = vec![json!({ "path": "src/main.rs", "startLine": 100, "endLine": 150 })];
        spec
    }

    fn check(&self, input: &ReadFileInput) -> Result<(), Refusal> {
        match (input.start_line, input.end_line) {
            (Some(start), Some(end)) if end < start => Err(Refusal::new(
                Code::BadArgument,
                format!("`/endLine` ({end}) lies before `/startLine` ({start})"),
            )),
            _ => Ok(()),
        }
    }

    fn intent(&self, input: &ReadFileInput, scene: &CallContext) -> Intent {
        read_intent(scene.absolute_path(&input.path))
    }

    async fn run(&self, input: ReadFileInput, cleared: Cleared) -> CallResult {
        let path = cleared.context().absolute_path(&input.path);
        let opened = FileReadHandle::new(&cleared, &path)?;
        if let Some(picture) = image::read_image(&opened).await? {
            return Ok(picture);
        }
        let first = input.start_line.unwrap_or(1);
        let count = input.end_line.map_or(u64::MAX, |end| (end + 1).saturating_sub(first));
        let page =
            opened.read_page(PageRequest { first, count, line_chars: None, bytes: MAX_RESULT_CHARS }).await?;
        let text = page.raw_text(count);
        let mut output = page.output(text, &path);
        for note in page.notes("startLine") {
            // The text stays exactly what is in the file; what is to be said about it stands apart.
            if page.full || page.cut || page.lossy {
                output.content.push(toolgate_proto::OutputBlock::Text { text: format!("[{note}]") });
            }
        }
        Ok(output)
    }
}

/// A line's number as `cat -n` shows it: six wide, to the right. It counts in its own digits, because formatting a
/// number costs more than finding its line.
struct LineNumber {
    digits: [u8; 20],
    width: usize,
}

impl LineNumber {
    fn new(first: u64) -> Self {
        let mut digits = [b' '; 20];
        let text = first.to_string();
        for (digit, from) in digits.iter_mut().rev().zip(text.bytes().rev()) {
            *digit = from;
        }
        Self { digits, width: text.len() }
    }

    fn as_str(&self) -> &str {
        let start = self.digits.len() - self.width.max(6);
        self.digits.get(start..).and_then(|digits| std::str::from_utf8(digits).ok()).unwrap_or_default()
    }

    fn increment(&mut self) {
        for digit in self.digits.iter_mut().rev() {
            match *digit {
                b'9' => *digit = b'0',
                b' ' => {
                    *digit = b'1';
                    self.width += 1;
                    return;
                }
                _ => {
                    *digit += 1;
                    return;
                }
            }
        }
    }
}

fn read_intent(path: AbsPath) -> Intent {
    Intent::new(format!("read {path}"), [Effect::Read { path, scope: PathScope::Entry }])
}

fn has_extension(path: &AbsPath, extension: &str) -> bool {
    path.as_path().extension().is_some_and(|it| it.eq_ignore_ascii_case(extension))
}

/// A file that is open for reading, and the call that opened it.
struct FileReadHandle<'c> {
    cleared: &'c Cleared,
    path: AbsPath,
    real: AbsPath,
    file: File,
    mark: FileFingerprint,
}

impl<'c> FileReadHandle<'c> {
    fn new(cleared: &'c Cleared, path: &AbsPath) -> Result<Self, Refusal> {
        let files = cleared.files();
        let opened = files.real_path(path).and_then(|real| Ok((real, files.open_with_fingerprint(path)?)));
        match opened {
            Ok((real, (file, mark))) => Ok(Self { cleared, path: path.clone(), real, file, mark }),
            Err(FileProblem::Missing) => Err(missing_file_refusal(files, path)),
            Err(problem) => Err(file_refusal(path, &problem, Code::FileRead)),
        }
    }

    async fn read_page(self, wanted: PageRequest) -> Result<FilePage, Refusal> {
        let Self { cleared, path, real, file, mark } = self;
        let state = ReadState::of(&cleared.context().session);
        let cancel = cleared.cancel().clone();
        let work = move || read_page((file, mark), &real, wanted, &state, &|| cancel.is_cancelled());
        let page = if mark.bytes <= MAX_INLINE_READ_BYTES {
            work()
        } else {
            run_blocking(work).await.map_err(|problem| file_refusal(&path, &problem, Code::FileRead))?
        };
        page.map_err(|problem| page_refusal(&path, problem, wanted.first))
    }

    /// All bytes of the file, where it is not larger than this.
    async fn read_bytes(
        self,
        most: u64,
        too_large: impl FnOnce(&AbsPath) -> Refusal,
    ) -> Result<(Vec<u8>, AbsPath), Refusal> {
        if self.mark.bytes > most {
            return Err(too_large(&self.path));
        }
        let path = self.path;
        let file = self.file;
        let read = run_blocking(move || {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut std::io::Read::take(file, most), &mut bytes)?;
            Ok(bytes)
        });
        let read = read.await.and_then(|read: std::io::Result<Vec<u8>>| Ok(read?));
        match read {
            Ok(bytes) => Ok((bytes, path)),
            Err(problem) => Err(file_refusal(&path, &problem, Code::FileRead)),
        }
    }
}

fn page_refusal(path: &AbsPath, problem: PageError, first: u64) -> Refusal {
    match problem {
        PageError::File(problem) => file_refusal(path, &problem, Code::FileRead),
        PageError::NotText(TextDecodeError::Binary) => {
            Refusal::new(Code::BinaryFile, format!("`{path}` is a binary file, not text"))
        }
        PageError::NotText(TextDecodeError::BrokenUtf16) => {
            Refusal::new(Code::BinaryFile, format!("`{path}` is marked as UTF-16 text but is not valid"))
        }
        PageError::PastEnd(total) => {
            let lines = if total == 1 { "1 line".to_owned() } else { format!("{total} lines") };
            Refusal::new(Code::PastEnd, format!("`{path}` has {lines}, so there is no line {first}"))
        }
        PageError::Cancelled => Refusal::new(Code::Cancelled, "the read was cancelled"),
    }
}

impl FilePage {
    /// The text as it is in the file. A range that ends before the file does has no line end at its end.
    fn raw_text(&self, count: u64) -> String {
        let mut text = self.lines.text().to_owned();
        if self.ends && self.reached_end && (self.lines.len() as u64) < count {
            text.push('\n');
        }
        text
    }

    /// What is worth knowing beside the text.
    fn notes(&self, field: &str) -> Vec<String> {
        let mut notes = Vec::new();
        if self.lines.is_empty() {
            notes.push("the file is empty".to_owned());
        }
        if !self.reached_end {
            let next = self.first + self.lines.len() as u64;
            let of = self.total.map(|total| format!(" of {total} lines")).unwrap_or_default();
            let why = if self.full { "the result is full" } else { "there is more" };
            notes.push(format!("{why}: this is only a part{of}; go on with `{field}` {next}"));
        }
        if self.cut {
            notes.push("long lines are cut, so this counts as a partial view".to_owned());
        }
        if let Some(name) = self.encoding.name() {
            notes.push(format!("the file is {name}; edits keep that"));
        }
        match self.line_ends {
            LineEndings::Lf => {}
            LineEndings::Crlf => notes.push("lines end in CRLF; edits keep that".to_owned()),
            LineEndings::Mixed => notes.push("some lines end in CRLF and some in LF".to_owned()),
        }
        if self.lossy {
            notes.push("bytes that are no UTF-8 are shown as �; edits elsewhere leave them alone".to_owned());
        }
        notes
    }

    fn output(&self, text: String, path: &AbsPath) -> Output {
        let count = self.lines.len();
        let lines = if count == 1 { "1 line".to_owned() } else { format!("{count} lines") };
        let output = Output::text(text).display(format!("read {lines} of {path}"));
        let output = output.structured(self.structured(path));
        match self.hash {
            Some(hash) => output.modifier(SessionModifier::FileRead {
                path: self.real.clone(),
                hash: hash.to_string(),
                whole: self.is_whole(),
            }),
            None => output,
        }
    }

    fn structured(&self, path: &AbsPath) -> serde_json::Value {
        let mut file = json!({
            "filePath": path,
            "content": self.lines.text(),
            "numLines": self.lines.len(),
            "startLine": self.first,
            "totalLines": self.total,
        });
        if let (true, Some(file)) = (self.full, file.as_object_mut()) {
            file.insert("truncatedByTokenCap".to_owned(), json!(true));
        }
        json!({ "type": "text", "file": file })
    }
}

#[cfg(feature = "pdf")]
async fn read_pdf(opened: FileReadHandle<'_>, pages: Option<&str>) -> CallResult {
    pdf::read_pages(opened, pages).await
}

#[cfg(not(feature = "pdf"))]
async fn read_pdf(opened: FileReadHandle<'_>, _pages: Option<&str>) -> CallResult {
    Err(Refusal::new(
        Code::BinaryFile,
        format!("`{}` is a PDF file, and this build of toolgate cannot read those", opened.path),
    )
    .hint("turn it into text first, for example with `pdftotext`"))
}

#[cfg(test)]
mod tests {
    use super::LineNumber;

    #[test]
    fn numbers_are_shown_as_cat_shows_them() {
        for first in [0, 1, 9, 10, 12_345, 99_990, 999_990, u64::MAX - 20] {
            let mut number = LineNumber::new(first);
            for expected in (first..).take(20) {
                assert_eq!(number.as_str(), format!("{expected:>6}"));
                number.increment();
            }
        }
    }
}
