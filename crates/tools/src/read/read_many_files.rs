//! `read_many_files`: several files at once.

use super::page::{PageRequest, read_page};
use super::{MAX_RESULT_CHARS, page_refusal};
use crate::file_refusal::{file_refusal, missing_file_refusal};
use crate::read_state::ReadState;
use globset::GlobBuilder;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use toolgate_files::{FileProblem, GrantedFiles, available_cores, run_blocking, try_spawn_scoped};
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{AbsPath, CallResult, Code, Effect, EntryKind, Intent, Output, PathScope, Refusal};

/// Characters of everything.
const MAX_TOTAL_CHARS: usize = 500_000;
/// Files that patterns may stand for.
const MAX_FILES: usize = 2_000;
/// Entries that are looked at for one pattern.
const MAX_VISITED_ENTRIES: usize = 100_000;
const MAX_READ_THREADS: usize = 8;

/// The tool.
pub(crate) struct ReadManyFilesTool;

/// Input of [`ReadManyFilesTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadManyFilesInput {
    /// Paths and patterns (`src/**/*.rs`), absolute or from the working directory.
    #[schemars(length(min = 1))]
    paths: Vec<String>,
}

impl Tool for ReadManyFilesTool {
    type Input = ReadManyFilesInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "read_many_files",
            "Reads several text files at once, each under a line `=== path ===`, in the order asked for; one that \
             cannot be read says why. `paths` may hold patterns such as `src/**/*.rs`, which find no files whose \
             name starts with a dot unless they name it.",
        )
        .read_only();
        spec.title = "Read several files".to_owned();
        spec.family = Some("Read".to_owned());
        spec.max_result_chars = MAX_TOTAL_CHARS + 100_000;
        spec.input_examples = vec![json!({ "paths": ["Cargo.toml", "src/**/*.rs"] })];
        spec
    }

    fn intent(&self, input: &ReadManyFilesInput, scene: &CallContext) -> Intent {
        let mut effects = Vec::new();
        for given in &input.paths {
            let path = scene.absolute_path(given);
            if let Some(base) = pattern_base(&path) {
                effects.push(Effect::Read { path: base, scope: PathScope::Tree });
            }
            effects.push(Effect::Read { path, scope: PathScope::Entry });
        }
        let count = input.paths.len();
        let files = if count == 1 { "1 path".to_owned() } else { format!("{count} paths") };
        Intent::new(format!("read {files}"), effects)
    }

    async fn run(&self, input: ReadManyFilesInput, cleared: Cleared) -> CallResult {
        let work = move || read_many(&input, &cleared);
        match run_blocking(work).await {
            Ok(done) => done,
            Err(problem) => Err(Refusal::new(Code::FileRead, problem.to_string())),
        }
    }
}

/// The directory below which a pattern is looked for. `None` where the path is no pattern.
fn pattern_base(path: &AbsPath) -> Option<AbsPath> {
    let is_live = |name: &[u8]| name.iter().any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'{'));
    if !is_live(path.as_path().as_os_str().as_encoded_bytes()) {
        return None;
    }
    let names = path.as_path().components();
    let base = names.take_while(|name| !is_live(name.as_os_str().as_encoded_bytes()));
    AbsPath::new(base.collect::<std::path::PathBuf>()).ok()
}

/// One file of the answer.
struct RequestedFile {
    shown: String,
    path: AbsPath,
}

fn read_many(input: &ReadManyFilesInput, cleared: &Cleared) -> CallResult {
    let mut items = Vec::new();
    let mut notes = Vec::new();
    for given in &input.paths {
        let path = cleared.context().absolute_path(given);
        match pattern_base(&path) {
            // A name with brackets in it may be just that.
            Some(base) if cleared.files().open(&path).is_err() => {
                expand_pattern(given, &path, &base, cleared, &mut items, &mut notes)?;
            }
            _ => items.push(RequestedFile { shown: given.clone(), path }),
        }
    }
    let results = read_all(&items, cleared);
    let mut text = String::new();
    let mut failed = 0;
    let mut left_out = 0;
    for (item, result) in items.iter().zip(&results) {
        let error;
        let body = match result {
            Ok(body) => body,
            Err(refusal) => {
                failed += 1;
                error = format!("Error: {} [{}]", refusal.reason, refusal.kind);
                &error
            }
        };
        if text.len() + body.len() > MAX_TOTAL_CHARS && !text.is_empty() {
            left_out += 1;
            continue;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("=== {} ===\n{body}\n", item.shown));
    }
    if left_out > 0 {
        notes.push(format!("the result is full: {left_out} files are left out; read them by themselves"));
    }
    for note in notes {
        text.push_str(&format!("\n[{note}]"));
    }
    let count = items.len();
    let output = Output::text(text).display(format!("read {} of {count} files", count - failed));
    let files: Vec<_> = items
        .iter()
        .zip(&results)
        .map(|(item, result)| json!({ "path": item.path, "error": result.as_ref().err().map(|it| &it.kind) }))
        .collect();
    Ok(output.structured(json!({ "files": files })))
}

/// Reads all of them, some at a time; the order stays.
fn read_all(items: &[RequestedFile], cleared: &Cleared) -> Vec<Result<String, Refusal>> {
    let state = ReadState::of(&cleared.context().session);
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<String, Refusal>)>> = Mutex::new(Vec::with_capacity(items.len()));
    let work = || {
        let mut mine = Vec::new();
        while let Some((index, item)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            items.get(index).map(|item| (index, item))
        } {
            mine.push((index, read_one(item, cleared, &state)));
        }
        done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(mine);
    };
    // Threads cost more than a few small files.
    let threads = if items.len() < 16 { 1 } else { MAX_READ_THREADS.min(available_cores() * 2) };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            try_spawn_scoped(scope, work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

fn read_one(item: &RequestedFile, cleared: &Cleared, state: &ReadState) -> Result<String, Refusal> {
    let (files, path) = (cleared.files(), &item.path);
    let wanted = PageRequest { first: 1, count: u64::MAX, line_chars: None, bytes: MAX_RESULT_CHARS };
    let opened = files.real_path(path).and_then(|real| Ok((real, files.open_with_fingerprint(path)?)));
    let (real, opened) = match opened {
        Ok(opened) => opened,
        Err(FileProblem::Missing) => return Err(missing_file_refusal(files, path)),
        Err(problem) => return Err(file_refusal(path, &problem, Code::FileRead)),
    };
    if cleared.terms().unreadable.iter().any(|denied| real.is_under(denied)) {
        return Err(Refusal::new(Code::DeniedByRule, format!("a rule denies reading `{path}`")));
    }
    let page = read_page(opened, &real, wanted, state, &|| cleared.cancel().is_cancelled());
    let page = page.map_err(|problem| page_refusal(path, problem, 1))?;
    let mut text = page.raw_text(u64::MAX);
    if page.full || page.cut {
        let next = page.lines.len() + 1;
        text.push_str(&format!("\n[there is more: read the file by itself from line {next}]"));
    }
    Ok(text)
}

/// The files that a pattern stands for, in name order.
fn expand_pattern(
    given: &str,
    path: &AbsPath,
    base: &AbsPath,
    cleared: &Cleared,
    items: &mut Vec<RequestedFile>,
    notes: &mut Vec<String>,
) -> Result<(), Refusal> {
    let pattern = path.as_path().strip_prefix(base.as_path()).unwrap_or(path.as_path());
    let pattern = pattern.to_string_lossy();
    let glob = GlobBuilder::new(&pattern)
        .literal_separator(true)
        .build()
        .map_err(|error| Refusal::new(Code::Glob, format!("`{given}` is no pattern: {}", error.kind())))?;
    let real =
        cleared.files().real_path(base).map_err(|problem| file_refusal(base, &problem, Code::FileRead))?;
    let mut walk = ReadManyWalk {
        files: cleared.files(),
        glob: glob.compile_matcher(),
        dots: pattern.split('/').any(|part| part.starts_with('.')),
        base: &real,
        found: Vec::new(),
        visited: 0,
    };
    walk.walk_directory(&real, Path::new(""));
    let over = walk.visited >= MAX_VISITED_ENTRIES;
    let (withheld, found): (Vec<AbsPath>, Vec<AbsPath>) =
        walk.found.into_iter().partition(|path| cleared.files().may_hold_secrets(path));
    if let Some(first) = withheld.first() {
        let (count, files) = (withheld.len(), if withheld.len() == 1 { "file" } else { "files" });
        notes.push(format!(
            "withheld from `{given}`: {count} {files} that may hold secrets, such as `{first}`; name it by itself to be asked about it"
        ));
    }
    if found.is_empty() && withheld.is_empty() {
        notes.push(format!("no file matches `{given}`"));
    }
    if over || items.len() + found.len() > MAX_FILES {
        notes.push(format!("`{given}` stands for too many files; only the first are here"));
    }
    let cwd = &cleared.context().workspace.cwd;
    for path in found.into_iter().take(MAX_FILES.saturating_sub(items.len())) {
        let shown = match path.as_path().strip_prefix(cwd.as_path()) {
            Ok(short) if !Path::new(given).is_absolute() => short.display().to_string(),
            _ => path.to_string(),
        };
        items.push(RequestedFile { shown, path });
    }
    Ok(())
}

struct ReadManyWalk<'a> {
    files: &'a GrantedFiles,
    glob: globset::GlobMatcher,
    dots: bool,
    base: &'a AbsPath,
    found: Vec<AbsPath>,
    visited: usize,
}

impl ReadManyWalk<'_> {
    fn walk_directory(&mut self, at: &AbsPath, below: &Path) {
        for entry in self.files.list(at).unwrap_or_default() {
            self.visited += 1;
            if self.visited >= MAX_VISITED_ENTRIES || self.found.len() > MAX_FILES {
                return;
            }
            let hidden = entry.name.as_encoded_bytes().starts_with(b".");
            if entry.is_symlink || entry.name == ".git" || (hidden && !self.dots) {
                continue;
            }
            let relative = below.join(&entry.name);
            match entry.kind {
                EntryKind::Directory => self.walk_directory(&at.join(&entry.name), &relative),
                EntryKind::File if self.glob.is_match(&relative) => {
                    self.found.push(self.base.join(&relative))
                }
                EntryKind::File | EntryKind::Special | EntryKind::Missing => {}
            }
        }
    }
}
