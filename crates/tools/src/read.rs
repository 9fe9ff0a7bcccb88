//! `Read` and `read_file`: the text of a file.

use crate::file_words::{missing, refusal};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::io::{BufRead, BufReader};
use toolgate_gate::{Cleared, Scene, Spec, Tool};
use toolgate_os::FileProblem;
use toolgate_proto::{AbsPath, CallResult, Code, Effect, Intent, Output, Refusal, Scope};

/// Lines given where no limit is asked for.
const DEFAULT_LINES: u64 = 2_000;
/// Characters of a line that are given; the rest is cut.
const MOST_LINE_CHARS: usize = 2_000;
/// Characters of a whole result.
const MOST_CHARS: usize = 100_000;

/// The claude face: absolute path, offset and limit, numbered lines.
pub(crate) struct Read;

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
}

impl Tool for Read {
    type Input = ReadInput;

    fn spec(&self) -> Spec {
        let mut spec = Spec::new(
            "Read",
            "Reads a text file and gives its lines with their numbers, as `cat -n` does. The path must be absolute. \
             Up to 2000 lines are given unless `limit` says otherwise; go on with `offset`. Lines longer than 2000 \
             characters are cut. Read a file before you change it.",
        )
        .read_only();
        spec.title = "Read file".to_owned();
        spec.max_result_chars = MOST_CHARS;
        spec.input_examples =
            vec![json!({ "file_path": "/project/src/main.rs", "offset": 100, "limit": 50 })];
        spec
    }

    fn check(&self, input: &ReadInput) -> Result<(), Refusal> {
        if AbsPath::new(&input.file_path).is_err() && !input.file_path.starts_with("~/") {
            return Err(Refusal::new(
                Code::BadArgument,
                format!("`/file_path` must be an absolute path, got `{}`", input.file_path),
            )
            .hint("put the workspace directory before it"));
        }
        Ok(())
    }

    fn intent(&self, input: &ReadInput, scene: &Scene) -> Intent {
        reading(scene.path(&input.file_path))
    }

    async fn run(&self, input: ReadInput, cleared: Cleared) -> CallResult {
        let path = cleared.scene().path(&input.file_path);
        let first = input.offset.unwrap_or(1).max(1);
        let page = read_page(&cleared, &path, first, input.limit.unwrap_or(DEFAULT_LINES))?;
        let mut text = String::new();
        for (index, line) in page.lines.iter().enumerate() {
            text.push_str(&format!("{:>6}\t{line}\n", first + index as u64));
        }
        text.push_str(&page.notice("offset"));
        Ok(page.output(text, &path))
    }
}

/// The plain face: a range of lines, given as they are.
pub(crate) struct ReadFile;

/// Input of [`ReadFile`].
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

impl Tool for ReadFile {
    type Input = ReadFileInput;

    fn spec(&self) -> Spec {
        let mut spec = Spec::new(
            "read_file",
            "Reads a text file, whole or from `startLine` to `endLine`, and gives its text as it is.",
        )
        .read_only();
        spec.title = "Read file".to_owned();
        spec.family = Some("Read".to_owned());
        spec.max_result_chars = MOST_CHARS;
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

    fn intent(&self, input: &ReadFileInput, scene: &Scene) -> Intent {
        reading(scene.path(&input.path))
    }

    async fn run(&self, input: ReadFileInput, cleared: Cleared) -> CallResult {
        let path = cleared.scene().path(&input.path);
        let first = input.start_line.unwrap_or(1);
        let count = input.end_line.map_or(u64::MAX, |end| end - first + 1);
        let page = read_page(&cleared, &path, first, count)?;
        let mut text = page.lines.join("\n");
        if page.ends_with_newline && page.reached_end && !page.lines.is_empty() {
            text.push('\n');
        }
        if page.cut_by_size {
            text.push_str(&page.notice("startLine"));
        }
        Ok(page.output(text, &path))
    }
}

fn reading(path: AbsPath) -> Intent {
    Intent::new(format!("read {path}"), [Effect::Read { path, scope: Scope::Entry }])
}

/// Some lines of a file.
struct Page {
    first: u64,
    lines: Vec<String>,
    /// The last line of the file is among them, or the file is empty.
    reached_end: bool,
    /// The file ends in a line end.
    ends_with_newline: bool,
    /// The result would have been too large.
    cut_by_size: bool,
}

impl Page {
    fn notice(&self, field: &str) -> String {
        if self.lines.is_empty() {
            return "[the file is empty]".to_owned();
        }
        if self.reached_end {
            return String::new();
        }
        let next = self.first + self.lines.len() as u64;
        format!("[there is more: go on with `{field}` {next}]")
    }

    fn output(&self, text: String, path: &AbsPath) -> Output {
        let count = self.lines.len();
        let lines = if count == 1 { "1 line".to_owned() } else { format!("{count} lines") };
        let structured = json!({
            "type": "text",
            "file": {
                "filePath": path,
                "content": self.lines.join("\n"),
                "numLines": count,
                "startLine": self.first,
            },
        });
        Output::text(text).display(format!("read {lines} of {path}")).structured(structured)
    }
}

fn read_page(cleared: &Cleared, path: &AbsPath, first: u64, count: u64) -> Result<Page, Refusal> {
    let file = match cleared.files().open(path) {
        Ok(file) => file,
        Err(FileProblem::Missing) => return Err(missing(cleared.files(), path)),
        Err(problem) => return Err(refusal(path, &problem, Code::FileRead)),
    };
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let mut page =
        Page { first, lines: Vec::new(), reached_end: false, ends_with_newline: false, cut_by_size: false };
    let mut number = 0;
    let mut chars = 0;
    let mut bytes = Vec::new();
    loop {
        if cleared.cancel().is_cancelled() {
            return Err(Refusal::new(Code::Cancelled, "the read was cancelled"));
        }
        bytes.clear();
        let got = reader
            .read_until(b'\n', &mut bytes)
            .map_err(|error| refusal(path, &FileProblem::from(error), Code::FileRead))?;
        if got == 0 {
            page.reached_end = true;
            break;
        }
        number += 1;
        if bytes.contains(&0) {
            return Err(Refusal::new(Code::BinaryFile, format!("`{path}` is a binary file, not text")));
        }
        page.ends_with_newline = bytes.last() == Some(&b'\n');
        if number < first {
            continue;
        }
        if page.lines.len() as u64 >= count {
            break;
        }
        let line = shown(&bytes);
        chars += line.len() + 8;
        if chars > MOST_CHARS && !page.lines.is_empty() {
            page.cut_by_size = true;
            break;
        }
        page.lines.push(line);
    }
    if page.lines.is_empty() && number > 0 {
        return Err(Refusal::new(
            Code::PastEnd,
            format!("`{path}` has {number} lines, so there is no line {first}"),
        ));
    }
    Ok(page)
}

/// A line for the model: without its end, cut where it is very long.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_suffix('\n').unwrap_or(&text);
    match text.char_indices().nth(MOST_LINE_CHARS) {
        Some((cut, _)) => {
            let kept = text.get(..cut).unwrap_or(text);
            format!("{kept}… [{} more characters]", text.chars().count() - MOST_LINE_CHARS)
        }
        None => text.to_owned(),
    }
}
