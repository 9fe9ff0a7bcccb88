//! `ls`: what is in a directory.

use crate::file_words::refusal;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::ffi::OsStr;
use toolgate_gate::{Cleared, Scene, Spec, Tool};
use toolgate_os::Entry;
use toolgate_proto::{AbsPath, CallResult, Code, Effect, EntryKind, Intent, Output, Refusal, Scope};

/// More entries than this are counted but not shown.
const MOST_ENTRIES: usize = 1_000;
const DEFAULT_DEPTH: u32 = 3;

/// Lists the entries of a directory.
pub(crate) struct Ls;

/// Input of [`Ls`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The directory; the working directory where absent.
    path: Option<String>,
    /// Go into directories as well.
    #[serde(default)]
    recursive: bool,
    /// Show entries whose name starts with a dot.
    #[serde(default, rename = "includeHidden")]
    include_hidden: bool,
    /// How many levels to go down when recursive; 3 where absent.
    #[serde(rename = "maxDepth")]
    #[schemars(range(min = 1, max = 64))]
    max_depth: Option<u32>,
}

impl Tool for Ls {
    type Input = Input;

    fn spec(&self) -> Spec {
        let mut spec = Spec::new(
            "ls",
            "Lists a directory: one entry a line, directories marked `d`, files `-` with their size, links `l`. \
             Set `recursive` to see what is below, indented by level. Use Glob or Grep to find something by name or \
             content.",
        )
        .read_only();
        spec.title = "List directory".to_owned();
        spec.aliases = vec!["LS".to_owned()];
        spec.family = Some("Read".to_owned());
        spec.input_examples = vec![json!({ "path": "src", "recursive": true, "maxDepth": 2 })];
        spec
    }

    fn intent(&self, input: &Input, scene: &Scene) -> Intent {
        let path = directory(input, scene);
        let scope = if input.recursive { Scope::Tree } else { Scope::Entry };
        Intent::new(format!("list {path}"), [Effect::Read { path, scope }])
    }

    async fn run(&self, input: Input, cleared: Cleared) -> CallResult {
        let path = directory(&input, cleared.scene());
        let real = cleared.files().real(&path).map_err(|problem| refusal(&path, &problem, Code::List))?;
        let depth = if input.recursive { input.max_depth.unwrap_or(DEFAULT_DEPTH) } else { 1 };
        let mut listing = Listing { input: &input, cleared: &cleared, lines: Vec::new(), omitted: 0 };
        listing.directory(&path, 0, depth, Some(&real))?;
        let Listing { lines, omitted, .. } = listing;
        let count = lines.len() + omitted;
        let mut text = lines.join("\n");
        if omitted > 0 {
            text.push_str(&format!(
                "\n[{omitted} more entries not shown; list a directory below, or use a pattern]"
            ));
        }
        if count == 0 {
            text = format!("`{path}` is empty");
        }
        let said = if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") };
        Ok(Output::text(text.clone()).display(format!("{path}: {said}\n{text}")))
    }
}

fn directory(input: &Input, scene: &Scene) -> AbsPath {
    scene.path(input.path.as_deref().unwrap_or("."))
}

struct Listing<'a> {
    input: &'a Input,
    cleared: &'a Cleared,
    lines: Vec<String>,
    omitted: usize,
}

impl Listing<'_> {
    fn directory(
        &mut self,
        path: &AbsPath,
        level: usize,
        depth: u32,
        real: Option<&AbsPath>,
    ) -> Result<(), Refusal> {
        if self.cleared.cancel().is_cancelled() {
            return Err(Refusal::new(Code::Cancelled, "the listing was cancelled"));
        }
        let entries = match self.cleared.files().list(path) {
            Ok(entries) => entries,
            Err(problem) if level == 0 => return Err(refusal(path, &problem, Code::List)),
            Err(problem) => {
                self.line(level, format!("! {problem}"));
                return Ok(());
            }
        };
        for entry in entries {
            if hidden(&entry.name) && !self.input.include_hidden {
                continue;
            }
            self.line(level, describe(&entry));
            if entry.kind == EntryKind::Directory && depth > 1 {
                let below = real.unwrap_or(path).join(&entry.name);
                self.directory(&below, level + 1, depth - 1, None)?;
            }
        }
        Ok(())
    }

    fn line(&mut self, level: usize, text: String) {
        if self.lines.len() < MOST_ENTRIES {
            self.lines.push(format!("{}{text}", "  ".repeat(level)));
        } else {
            self.omitted += 1;
        }
    }
}

fn hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

fn describe(entry: &Entry) -> String {
    let name = entry.name.to_string_lossy();
    match (entry.kind, entry.link) {
        (_, true) => format!("l {name}"),
        (EntryKind::Directory, false) => format!("d {name}/"),
        (EntryKind::File, false) => format!("- {name} ({} bytes)", entry.bytes),
        (EntryKind::Special | EntryKind::Missing, false) => format!("? {name}"),
    }
}
