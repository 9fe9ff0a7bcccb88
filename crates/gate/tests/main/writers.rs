//! Small real tools that change files, for the sequential equivalence of batches. Each lets others run in the middle of its work.

use schemars::JsonSchema;
use serde::Deserialize;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::task::yield_now;
use toolgate_gate::{CallContext, Cleared, FnTool, Gate, ToolSpec};
use toolgate_proto::{
    AbsPath, CallResult, Code, Effect, Intent, Output, PathScope, Refusal, SourceId, WriteKind,
};

/// How many calls of a session are inside a tool, and how many were at once, at most. It belongs to the session, because
/// other tests of the process use the same tools.
#[derive(Default)]
pub(super) struct Overlap {
    now: AtomicUsize,
    pub(super) most: AtomicUsize,
}

/// Counts a call while it is inside its tool.
struct Inside(Arc<Overlap>);

impl Inside {
    fn enter(cleared: &Cleared) -> Self {
        let overlap = cleared.context().session.state::<Overlap>();
        let now = overlap.now.fetch_add(1, Ordering::SeqCst) + 1;
        overlap.most.fetch_max(now, Ordering::SeqCst);
        Self(overlap)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct One {
    path: String,
    text: Option<String>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Two {
    from: String,
    to: String,
}

/// What `note` remembers.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

pub(super) const NAMES: [&str; 9] =
    ["put", "append", "remove", "copy", "total", "link", "rename", "cd", "note"];

pub(super) fn register(gate: &Gate) {
    let write = |kind: WriteKind| {
        move |input: &One, context: &CallContext| {
            Intent::new("change", [Effect::Write { path: context.absolute_path(&input.path), kind }])
        }
    };
    let sdk = || SourceId::Sdk;
    gate.register(sdk(), FnTool::new(ToolSpec::new("put", "p"), put).intent(write(WriteKind::Put))).unwrap();
    gate.register(sdk(), FnTool::new(ToolSpec::new("append", "a"), append).intent(write(WriteKind::Edit)))
        .unwrap();
    gate.register(sdk(), FnTool::new(ToolSpec::new("remove", "r"), remove).intent(write(WriteKind::Delete)))
        .unwrap();
    let copying = |input: &Two, context: &CallContext| {
        let read = Effect::Read { path: context.absolute_path(&input.from), scope: PathScope::Entry };
        let write = Effect::Write { path: context.absolute_path(&input.to), kind: WriteKind::Put };
        Intent::new("copy", [read, write])
    };
    gate.register(sdk(), FnTool::new(ToolSpec::new("copy", "c"), copy).intent(copying)).unwrap();
    let reading = |input: &One, context: &CallContext| {
        Intent::new(
            "total",
            [Effect::Read { path: context.absolute_path(&input.path), scope: PathScope::Tree }],
        )
    };
    gate.register(sdk(), FnTool::new(ToolSpec::new("total", "t").read_only(), total).intent(reading))
        .unwrap();
    // Effects unknown: these two are alone.
    gate.register(sdk(), FnTool::new(ToolSpec::new("link", "l"), link)).unwrap();
    gate.register(sdk(), FnTool::new(ToolSpec::new("rename", "r"), rename)).unwrap();
    let moving = |_: &One, _: &CallContext| Intent::new("cd", [Effect::State { name: "cwd".into() }]);
    gate.register(sdk(), FnTool::new(ToolSpec::new("cd", "c"), cd).intent(moving)).unwrap();
    let noting = |input: &One, _: &CallContext| {
        Intent::new("note", [Effect::State { name: format!("notes {}", input.path) }])
    };
    gate.register(sdk(), FnTool::new(ToolSpec::new("note", "n"), note).intent(noting)).unwrap();
}

fn failed(error: impl ToString) -> Refusal {
    Refusal::new(Code::ToolFailed, error.to_string())
}

fn real(cleared: &Cleared, given: &str) -> Result<AbsPath, Refusal> {
    cleared.files().real_path(&cleared.context().absolute_path(given)).map_err(failed)
}

async fn others() {
    for _ in 0..3 {
        yield_now().await;
    }
}

async fn put(input: One, cleared: Cleared) -> CallResult {
    let _inside = Inside::enter(&cleared);
    let path = real(&cleared, &input.path)?;
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    let before = fs::read(&path).map(|bytes| bytes.len()).unwrap_or(0);
    others().await;
    fs::write(&path, input.text.unwrap_or_default()).map_err(failed)?;
    others().await;
    let after = fs::read_to_string(&path).map_err(failed)?;
    Ok(Output::text(format!("{before} bytes became {after}")))
}

async fn append(input: One, cleared: Cleared) -> CallResult {
    let _inside = Inside::enter(&cleared);
    let path = real(&cleared, &input.path)?;
    let mut text = match fs::read_to_string(&path) {
        Ok(text) => text,
        // As the built-in tools do: the refusal for a missing file names what is there instead.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let beside = cleared.files().sibling_names(&cleared.context().absolute_path(&input.path));
            return Err(failed(format!("{error}; there is {beside:?}")));
        }
        Err(error) => return Err(failed(error)),
    };
    others().await;
    text.push_str(&input.text.unwrap_or_default());
    fs::write(&path, &text).map_err(failed)?;
    Ok(Output::text(text))
}

async fn remove(input: One, cleared: Cleared) -> CallResult {
    let _inside = Inside::enter(&cleared);
    let path = real(&cleared, &input.path)?;
    others().await;
    if path.as_path().is_dir() {
        fs::remove_dir(&path).map_err(failed)?;
    } else {
        fs::remove_file(&path).map_err(failed)?;
    }
    others().await;
    Ok(Output::text("removed"))
}

async fn copy(input: Two, cleared: Cleared) -> CallResult {
    let _inside = Inside::enter(&cleared);
    let (from, to) = (real(&cleared, &input.from)?, real(&cleared, &input.to)?);
    let bytes = fs::read(&from).map_err(failed)?;
    others().await;
    fs::write(&to, &bytes).map_err(failed)?;
    Ok(Output::text(String::from_utf8_lossy(&bytes).into_owned()))
}

async fn total(input: One, cleared: Cleared) -> CallResult {
    let _inside = Inside::enter(&cleared);
    let path = real(&cleared, &input.path)?;
    let first = snapshot(path.as_path());
    others().await;
    let second = snapshot(path.as_path());
    if first != second {
        return Err(failed("it was changed while it was read"));
    }
    Ok(Output::text(second))
}

async fn link(input: One, cleared: Cleared) -> CallResult {
    let _inside = Inside::enter(&cleared);
    let path = cleared.context().absolute_path(&input.path).lexical();
    let target = input.text.unwrap_or_default();
    let _ = fs::remove_file(&path);
    others().await;
    std::os::unix::fs::symlink(target, &path).map_err(failed)?;
    Ok(Output::text("linked"))
}

async fn rename(input: Two, cleared: Cleared) -> CallResult {
    let _inside = Inside::enter(&cleared);
    let context = cleared.context();
    others().await;
    fs::rename(context.absolute_path(&input.from), context.absolute_path(&input.to)).map_err(failed)?;
    others().await;
    Ok(Output::text("renamed"))
}

async fn cd(input: One, cleared: Cleared) -> CallResult {
    let _inside = Inside::enter(&cleared);
    others().await;
    let fact = toolgate_files::resolve(&cleared.context().absolute_path(&input.path));
    Ok(Output::text(format!("{}", cleared.context().session.set_cwd(fact.real))))
}

async fn note(input: One, cleared: Cleared) -> CallResult {
    let _inside = Inside::enter(&cleared);
    let notes = cleared.context().session.state::<Notes>();
    let before = notes.0.lock().unwrap().iter().filter(|note| **note == input.path).count();
    others().await;
    notes.0.lock().unwrap().push(input.path);
    Ok(Output::text(format!("{before} before")))
}

/// Everything below a path: names, kinds, content, where links lead.
pub(super) fn snapshot(path: &Path) -> String {
    let mut out = String::new();
    let Ok(meta) = fs::symlink_metadata(path) else { return "nothing".to_owned() };
    if meta.is_symlink() {
        out.push_str(&format!("-> {}\n", fs::read_link(path).unwrap().display()));
    } else if meta.is_dir() {
        let mut names: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        for name in names {
            out.push_str(&format!(
                "{}/{}\n",
                name.display(),
                snapshot(&path.join(&name)).replace('\n', "\n ")
            ));
        }
    } else {
        out.push_str(&fs::read_to_string(path).unwrap_or_else(|error| error.to_string()));
    }
    out
}
