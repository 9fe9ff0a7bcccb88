//! `read_many_files`: read several text files in one call. Both toolsets use the same tool.
//!
//! One call instead of many saves the model a turn per file, and the gate a judgement per call.
//! A file that cannot be read is reported in its place and does not fail the call.
//! Globs withhold files that may hold secrets: a glob does not show that the model wants that file, an exact path does.

use super::MAX_RESULT_CHARS;
use super::expand_pattern::{expand_pattern, pattern_base};
use super::file_read_handle::page_refusal;
use super::page::PageRequest;
use super::read_page::read_page;
use crate::file_refusal::{file_refusal, missing_file_refusal};
use crate::read_state::ReadState;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use toolgate_files::{FileProblem, available_cores, run_blocking, try_spawn_scoped};
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{AbsPath, CallResult, Code, Effect, Intent, Output, PathScope, Refusal, format_count};

/// Characters of all files together.
const MAX_TOTAL_CHARS: usize = 500_000;
/// Files that one call reads.
pub(super) const MAX_FILES: usize = 2_000;
/// Upper limit for reader threads on machines with many cores.
const MAX_READ_THREADS: usize = 8;
/// Fewer files are read on one thread: starting threads would take longer.
const MIN_PARALLEL_FILE_COUNT: usize = 16;

/// Reads several files, each under a header line with its path.
pub(crate) struct ReadManyFilesTool;

/// Input of [`ReadManyFilesTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadManyFilesInput {
    /// Paths and globs (`src/**/*.rs`), absolute or relative to the working directory.
    #[schemars(length(min = 1))]
    paths: Vec<String>,
}

impl Tool for ReadManyFilesTool {
    type Input = ReadManyFilesInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "read_many_files",
            "Reads several text files at once, each under a line `=== path ===`, in the requested order; for a file that \
             cannot be read it shows the error. `paths` may contain globs such as `src/**/*.rs`, which do not match \
             names that start with a dot unless the glob does.",
        )
        .read_only();
        spec.title = "Read several files".to_owned();
        spec.family = Some("Read".to_owned());
        spec.max_result_chars = MAX_TOTAL_CHARS + 100_000;
        spec.input_examples = vec![json!({ "paths": ["Cargo.toml", "src/**/*.rs"] })];
        spec
    }

    /// Declares each path, and for a glob also the tree below its literal prefix. A path with glob characters is
    /// declared both ways, because a file may have that exact name.
    fn intent(&self, input: &ReadManyFilesInput, context: &CallContext) -> Intent {
        let mut effects = Vec::new();
        for given in &input.paths {
            let path = context.absolute_path(given);
            if let Some(base) = pattern_base(&path) {
                effects.push(Effect::Read { path: base, scope: PathScope::Tree });
            }
            effects.push(Effect::Read { path, scope: PathScope::Entry });
        }
        let count = format_count(input.paths.len() as u64, "path", "paths");
        Intent::new(format!("read {count}"), effects)
    }

    /// Reads on the blocking pool, since thousands of reads would stall an async worker thread.
    async fn run(&self, input: ReadManyFilesInput, cleared: Cleared) -> CallResult {
        let work = move || read_many(&input, &cleared);
        match run_blocking(work).await {
            Ok(result) => result,
            Err(problem) => Err(Refusal::new(Code::FileRead, problem.to_string())),
        }
    }
}

/// One file of the result.
pub(super) struct RequestedFile {
    /// The path in the header: as given, or relative to the working directory if a glob matched it.
    pub(super) shown: String,
    /// The absolute path, which the call declared itself or as part of a tree.
    pub(super) path: AbsPath,
}

/// Expands the globs, reads all files and renders them in the requested order.
fn read_many(input: &ReadManyFilesInput, cleared: &Cleared) -> CallResult {
    let mut files = Vec::new();
    let mut notes = Vec::new();
    for given in &input.paths {
        let path = cleared.context().absolute_path(given);
        match pattern_base(&path) {
            // A file may have brackets in its name: an existing file is not a pattern.
            Some(base) if cleared.files().open(&path).is_err() => {
                expand_pattern(given, &path, &base, cleared, &mut files, &mut notes)?;
            }
            _ => files.push(RequestedFile { shown: given.clone(), path }),
        }
    }
    let results = read_all(&files, cleared);
    let (mut text, omitted) = render_files(&files, &results);
    if omitted > 0 {
        notes.push(format!(
            "the result is full: {} omitted; read them separately",
            format_count(omitted as u64, "file is", "files are")
        ));
    }
    for note in notes {
        text.push_str(&format!("\n[{note}]"));
    }
    let count = files.len();
    let read_count = results.iter().filter(|result| result.is_ok()).count();
    let output = Output::text(text).display(format!("read {read_count} of {count} files"));
    let structured: Vec<_> = files
        .iter()
        .zip(&results)
        .map(|(file, result)| json!({ "path": file.path, "error": result.as_ref().err().map(|it| &it.kind) }))
        .collect();
    Ok(output.structured(json!({ "files": structured })))
}

/// The files that fit into a result, at least one, and the number of those that do not.
fn render_files(files: &[RequestedFile], results: &[Result<String, Refusal>]) -> (String, usize) {
    let mut text = String::new();
    let mut omitted = 0;
    for (file, result) in files.iter().zip(results) {
        let error;
        let body = match result {
            Ok(body) => body,
            Err(refusal) => {
                error = format!("Error: {} [{}]", refusal.reason, refusal.kind);
                &error
            }
        };
        if text.len() + body.len() > MAX_TOTAL_CHARS && !text.is_empty() {
            omitted += 1;
            continue;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("=== {} ===\n{body}\n", file.shown));
    }
    (text, omitted)
}

/// Reads all files on several threads. The results are in the order of `files`.
fn read_all(files: &[RequestedFile], cleared: &Cleared) -> Vec<Result<String, Refusal>> {
    let state = ReadState::of(&cleared.context().session);
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, Result<String, Refusal>)>> = Mutex::new(Vec::with_capacity(files.len()));
    let work = || {
        let mut own_results = Vec::new();
        while let Some((index, file)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            files.get(index).map(|file| (index, file))
        } {
            own_results.push((index, read_one(file, cleared, &state)));
        }
        results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(own_results);
    };
    let threads = if files.len() < MIN_PARALLEL_FILE_COUNT {
        1
    } else {
        // Twice the cores, because a thread that waits for the disk leaves its core idle.
        MAX_READ_THREADS.min(available_cores() * 2)
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            try_spawn_scoped(scope, work);
        }
        work();
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// The text of one file. A file inside a tree that was granted may still be denied by a rule, which is checked here.
fn read_one(file: &RequestedFile, cleared: &Cleared, state: &ReadState) -> Result<String, Refusal> {
    let (files, path) = (cleared.files(), &file.path);
    let request = PageRequest { first: 1, count: u64::MAX, line_chars: None, bytes: MAX_RESULT_CHARS };
    let opened = files.real_path(path).and_then(|real| Ok((real, files.open_with_fingerprint(path)?)));
    let (real, opened) = match opened {
        Ok(opened) => opened,
        Err(FileProblem::Missing) => return Err(missing_file_refusal(files, path)),
        Err(problem) => return Err(file_refusal(path, &problem, Code::FileRead)),
    };
    if cleared.terms().unreadable.iter().any(|denied| real.is_under(denied)) {
        return Err(Refusal::new(Code::DeniedByRule, format!("reading `{path}` is denied by a rule")));
    }
    let page = read_page(opened, &real, request, state, &|| cleared.cancel().is_cancelled());
    let page = page.map_err(|problem| page_refusal(path, problem, 1))?;
    let mut text = page.raw_text(u64::MAX);
    if page.full || page.truncated_line {
        let next = page.lines.len() + 1;
        text.push_str(&format!("\n[truncated: read this file separately from line {next}]"));
    }
    Ok(text)
}
