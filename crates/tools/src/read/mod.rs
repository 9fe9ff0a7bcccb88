//! `Read` and `read_file`: read a text file, an image, a notebook or a PDF file.
//!
//! `Read` numbers the lines, which later calls refer to, and truncates long ones.
//! `read_file` returns the text verbatim, so that an edit can copy any part of it.
//!
//! Every read is recorded in the session's read state, with whether all of the file was shown.
//! `Write` and `Edit` rely on it: a truncated line or a partial page does not count as having read the whole file.

mod expand_pattern;
mod file_read_handle;
mod image;
mod line_collector;
mod line_index;
mod line_number;
mod notebook;
mod page;
#[cfg(feature = "pdf")]
mod pdf;
mod read_many_files;
mod read_page;
mod render_page;

use crate::file_refusal::check_absolute;
use file_read_handle::FileReadHandle;
#[cfg(feature = "web")]
pub(crate) use image::{MAX_IMAGE_BYTES, MAX_SIDE_PIXELS, render_image};
pub(crate) use line_index::LineIndex;
use page::PageRequest;
#[cfg(all(feature = "web", feature = "pdf"))]
pub(crate) use pdf::render_pdf;
pub(crate) use read_many_files::ReadManyFilesTool;
use render_page::render_page;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::fmt::Write;
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{AbsPath, CallResult, Code, Effect, Intent, OutputBlock, PathScope, Refusal};

/// Lines that `Read` returns without `limit`.
const DEFAULT_LINE_LIMIT: u64 = 2_000;
/// Characters of a line that `Read` returns; the rest is truncated.
const MAX_LINE_CHARS: usize = 2_000;
/// Characters of one file in a result.
const MAX_RESULT_CHARS: usize = 100_000;

/// The adapter of the claude toolset: absolute path, offset and limit, numbered lines.
pub(crate) struct ReadTool;

/// Input of [`ReadTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadInput {
    /// The absolute path of the file.
    file_path: String,
    /// The line to start at, from 1.
    #[schemars(range(min = 0))]
    offset: Option<u64>,
    /// The number of lines; default 2000.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// The pages of a PDF: `3`, `1-5` or `10-`; at most 20 at once.
    pages: Option<String>,
}

impl Tool for ReadTool {
    type Input = ReadInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "Read",
            "Reads a file as numbered lines, by default the first 2000; continue with `offset`. Lines over 2000 \
             characters are truncated. Images (PNG, JPEG, GIF, WebP) are shown, notebooks are returned by cell with \
             their outputs, PDF files by page. Read a file before you change it.",
        )
        .read_only();
        spec.title = "Read file".to_owned();
        spec.aliases = vec!["FileRead".to_owned()];
        spec.max_result_chars = MAX_RESULT_CHARS + 4_000;
        spec.input_examples =
            vec![json!({ "file_path": "/project/src/main.rs", "offset": 100, "limit": 50 })];
        spec
    }

    fn check(&self, input: &ReadInput) -> Result<(), Refusal> {
        check_absolute("file_path", &input.file_path)
    }

    fn intent(&self, input: &ReadInput, context: &CallContext) -> Intent {
        read_intent(context.absolute_path(&input.file_path))
    }

    /// Chooses the reader by content for images and by extension for notebooks and PDF files. A notebook with `offset`
    /// or `limit` is read as plain JSON text.
    async fn run(&self, input: ReadInput, cleared: Cleared) -> CallResult {
        let path = cleared.context().absolute_path(&input.file_path);
        let file = FileReadHandle::open(&cleared, &path)?;
        if let Some(output) = image::read_image(&file).await? {
            return Ok(output);
        }
        if has_extension(&path, "ipynb") && input.offset.is_none() && input.limit.is_none() {
            return notebook::read_notebook(file).await;
        }
        if has_extension(&path, "pdf") || input.pages.is_some() {
            return read_pdf(file, input.pages.as_deref()).await;
        }
        let request = PageRequest {
            first: input.offset.unwrap_or(1).max(1),
            count: input.limit.unwrap_or(DEFAULT_LINE_LIMIT),
            line_chars: Some(MAX_LINE_CHARS),
            bytes: MAX_RESULT_CHARS,
        };
        let page = file.read_page(request).await?;
        let mut text = page.numbered_text();
        for note in page.notes("offset") {
            let _ = writeln!(text, "[{note}]");
        }
        Ok(render_page(&page, text, &path))
    }
}

/// The adapter of the plain toolset: a range of lines, returned verbatim.
pub(crate) struct ReadFileTool;

/// Input of [`ReadFileTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadFileInput {
    /// The path of the file, absolute or relative to the working directory.
    path: String,
    /// The first line to return, from 1.
    #[serde(rename = "startLine")]
    #[schemars(range(min = 1))]
    start_line: Option<u64>,
    /// The last line to return.
    #[serde(rename = "endLine")]
    #[schemars(range(min = 1))]
    end_line: Option<u64>,
}

impl Tool for ReadFileTool {
    type Input = ReadFileInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "read_file",
            "Reads a file, whole or from `startLine` to `endLine`, and returns its text verbatim. Images (PNG, JPEG, \
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
                format!("`endLine` ({end}) is before `startLine` ({start})"),
            )),
            _ => Ok(()),
        }
    }

    fn intent(&self, input: &ReadFileInput, context: &CallContext) -> Intent {
        read_intent(context.absolute_path(&input.path))
    }

    /// Returns the exact text of the lines, without line numbers, so that it can serve as an edit target.
    async fn run(&self, input: ReadFileInput, cleared: Cleared) -> CallResult {
        let path = cleared.context().absolute_path(&input.path);
        let file = FileReadHandle::open(&cleared, &path)?;
        if let Some(output) = image::read_image(&file).await? {
            return Ok(output);
        }
        let first = input.start_line.unwrap_or(1);
        let count = input.end_line.map_or(u64::MAX, |end| (end + 1).saturating_sub(first));
        let request = PageRequest { first, count, line_chars: None, bytes: MAX_RESULT_CHARS };
        let page = file.read_page(request).await?;
        let text = page.raw_text(count);
        let mut output = render_page(&page, text, &path);
        // Notes are blocks of their own, so that the first block is exactly the text of the file. Encodings and line
        // endings need no note: the text is verbatim.
        if page.full || page.truncated_line || page.lossy {
            for note in page.notes("startLine") {
                output.content.push(OutputBlock::Text { text: format!("[{note}]") });
            }
        }
        Ok(output)
    }
}

/// The effect: reading one file.
fn read_intent(path: AbsPath) -> Intent {
    Intent::new(format!("read {path}"), [Effect::Read { path, scope: PathScope::Entry }])
}

/// Whether the file name has an extension, in upper or lower case.
fn has_extension(path: &AbsPath, extension: &str) -> bool {
    path.as_path().extension().is_some_and(|it| it.eq_ignore_ascii_case(extension))
}

/// Reads pages of a PDF file with the optional extractor.
#[cfg(feature = "pdf")]
async fn read_pdf(file: FileReadHandle<'_>, pages: Option<&str>) -> CallResult {
    pdf::read_pages(file, pages).await
}

/// Refuses PDF files in builds without the `pdf` feature, with a hint to convert them.
#[cfg(not(feature = "pdf"))]
async fn read_pdf(file: FileReadHandle<'_>, _pages: Option<&str>) -> CallResult {
    Err(Refusal::new(
        Code::BinaryFile,
        format!("`{}` is a PDF file, which this build of toolgate cannot read", file.path),
    )
    .hint("convert it to text first, for example with `pdftotext`"))
}
