//! `save_memory`: remember one fact, in the notes or in a file that agents read at their start.
//!
//! A fact that is remembered already, apart from case and spacing, is not added again.

use crate::change_refusal::change_refusal;
use crate::file_refusal::file_refusal;
use crate::state_stores::{MemoryScope, memory_effect, memory_refusal, with_memory};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolgate_files::ContentHash;
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::secret_names::contains_secret;
use toolgate_proto::{AbsPath, CallResult, Code, Effect, Intent, Output, Refusal, Stage, WriteKind};
use toolgate_state::SaveOutcome;

/// The heading under which facts are added to a file.
const MEMORY_HEADING: &str = "## Remembered";
/// Bytes of a file to which a fact is added.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Characters of a fact.
const MAX_FACT_CHARS: usize = 2_000;
/// Characters of a fact that are its key.
const MAX_KEY_CHARS: usize = 80;

/// Characters of the hash in a key.
const HASH_CHARS: usize = 12;

/// Remembers a fact.
pub(crate) struct SaveMemoryTool;

/// Input of [`SaveMemoryTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SaveMemoryInput {
    /// The fact, in one sentence that stands by itself.
    fact: String,
    /// `project` (default), or `user` for all projects.
    #[serde(default)]
    scope: MemoryScope,
    /// Instead of the notes: the file of the project that agents read at their start.
    file: Option<ContextFile>,
}

/// A file that agents read at their start.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[schemars(inline)]
enum ContextFile {
    #[serde(rename = "CLAUDE.md")]
    Claude,
    #[serde(rename = "AGENTS.md")]
    Agents,
    #[serde(rename = "GEMINI.md")]
    Gemini,
}

impl ContextFile {
    /// Locates the file in the working directory, where agents look for it at their start.
    fn path(self, context: &CallContext) -> AbsPath {
        context.workspace.cwd.join(match self {
            Self::Claude => "CLAUDE.md",
            Self::Agents => "AGENTS.md",
            Self::Gemini => "GEMINI.md",
        })
    }
}

impl Tool for SaveMemoryTool {
    type Input = SaveMemoryInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "save_memory",
            "Remembers one fact for later sessions, such as what the user asked you to remember. No credentials, nothing \
             that only this task needs.",
        )
        .with_group("memory")
        .with_destructive(false)
        .with_idempotent(true);
        spec.title = "Remember a fact".to_owned();
        spec.input_examples = vec![json!({ "fact": "The user prefers tabs." })];
        spec
    }

    /// Rejects credentials, because later sessions and other agents read the fact.
    fn check(&self, input: &SaveMemoryInput) -> Result<(), Refusal> {
        let problem = if input.fact.trim().is_empty() {
            "`fact` is empty".to_owned()
        } else if input.fact.chars().count() > MAX_FACT_CHARS {
            format!("`fact` is longer than {MAX_FACT_CHARS} characters")
        } else if contains_secret(&input.fact) {
            "`fact` contains what looks like a credential".to_owned()
        } else if input.file.is_some() && input.scope == MemoryScope::User {
            "`file` is a file of the project; leave `scope` out".to_owned()
        } else {
            return Ok(());
        };
        let hint = "give one short fact, and name where a credential is kept instead of the credential";
        Err(Refusal::new(Code::Memory, problem).hint(hint).at_stage(Stage::Validate))
    }

    /// Declares a file write or a change of the memory store, depending on the target.
    fn intent(&self, input: &SaveMemoryInput, context: &CallContext) -> Intent {
        let effect = match input.file {
            Some(file) => Effect::Write { path: file.path(context), kind: WriteKind::Put },
            None => memory_effect(input.scope),
        };
        Intent::new(format!("remember: {}", to_one_line(&input.fact)), [effect])
    }

    /// Stores the fact on one line, so that it cannot add headings or list items to a context file.
    async fn run(&self, input: SaveMemoryInput, cleared: Cleared) -> CallResult {
        let fact = to_one_line(&input.fact);
        match input.file {
            Some(file) => add_to_file(&file.path(cleared.context()), fact, &cleared).await,
            None => {
                let (key, value) = (fact_key(&fact), fact.clone());
                let saved = with_memory(&cleared, input.scope, move |store| store.add(&key, &value)).await?;
                let saved = saved.map_err(|error| memory_refusal(&error))?;
                Ok(render_saved(&fact, saved != SaveOutcome::Created))
            }
        }
    }
}

/// Adds a line under the heading of the file; the heading comes first if it is missing.
async fn add_to_file(path: &AbsPath, fact: String, cleared: &Cleared) -> CallResult {
    let shown = path.clone();
    let changed = cleared.files().change_file(path, move |file| {
        let before =
            file.read(MAX_FILE_BYTES).map_err(|problem| file_refusal(&shown, &problem, Code::FileRead))?;
        let old = match &before {
            Some(snapshot) => std::str::from_utf8(&snapshot.bytes)
                .map_err(|_| Refusal::new(Code::BinaryFile, format!("`{shown}` is not UTF-8 text")))?
                .to_owned(),
            None => String::new(),
        };
        match add_fact(&old, &fact) {
            None => Ok(render_saved(&fact, true)),
            Some(new) => match file.put(before.as_ref(), new.as_bytes()) {
                Ok(_) => Ok(render_saved(&fact, false)),
                Err(problem) => Err(change_refusal(&shown, &problem, Code::FileWrite)),
            },
        }
    });
    changed.await.map_err(|problem| file_refusal(path, &problem, Code::FileWrite))?
}

/// The text of a file with a fact added at the end of its section; `None` if it is there already.
fn add_fact(text: &str, fact: &str) -> Option<String> {
    let entry = format!("- {fact}");
    let same = |line: &str| fold_fact(line.trim_start_matches(['-', '*', ' '])) == fold_fact(fact);
    let mut lines: Vec<&str> = text.lines().collect();
    let Some(heading) = lines.iter().position(|line| line.trim_end() == MEMORY_HEADING) else {
        let gap = if text.is_empty() || text.ends_with("\n\n") {
            ""
        } else if text.ends_with('\n') {
            "\n"
        } else {
            "\n\n"
        };
        return Some(format!("{text}{gap}{MEMORY_HEADING}\n\n{entry}\n"));
    };
    let rest = lines.iter().skip(heading + 1);
    let section: Vec<&str> = rest.copied().take_while(|line| !line.starts_with('#')).collect();
    if section.iter().any(|line| same(line)) {
        return None;
    }
    let filled = section.iter().rposition(|line| !line.trim().is_empty()).map_or(0, |at| at + 1);
    let at = heading + 1 + filled;
    let is_first = filled == 0;
    if is_first {
        lines.insert(at, "");
    }
    lines.insert(at + usize::from(is_first), &entry);
    Some(format!("{}\n", lines.join("\n")))
}

/// Tells a known fact from a new one, so that a model does not save it again.
fn render_saved(fact: &str, known: bool) -> Output {
    let text = if known { format!("known already: {fact}") } else { format!("remembered: {fact}") };
    Output::text(text).structured(json!({ "fact": fact, "known": known }))
}

/// A text on one line with single spaces.
fn to_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A fact without what does not make it another one: case, spacing, a full stop.
fn fold_fact(fact: &str) -> String {
    to_one_line(fact).to_lowercase().trim_end_matches(['.', '!']).to_owned()
}

/// The key of a fact: the fact itself, and of a long one its beginning and its hash.
fn fact_key(fact: &str) -> String {
    let folded = fold_fact(fact);
    if folded.chars().count() <= MAX_KEY_CHARS {
        return folded;
    }
    let start: String = folded.chars().take(MAX_KEY_CHARS).collect();
    let hash: String = ContentHash::of(folded.as_bytes()).to_string().chars().take(HASH_CHARS).collect();
    format!("{start}… {hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_added_once_under_the_heading() {
        let first = add_fact("# Project\n\nText", "Use tabs.").unwrap();
        assert_eq!(first, "# Project\n\nText\n\n## Remembered\n\n- Use tabs.\n");
        assert_eq!(add_fact(&first, "use  TABS"), None);
        let text = "## Remembered\n\n- a\n\n## Next\n\n- b\n";
        assert_eq!(add_fact(text, "b").unwrap(), "## Remembered\n\n- a\n- b\n\n## Next\n\n- b\n");
        assert_eq!(add_fact("", "x").unwrap(), "## Remembered\n\n- x\n");
        assert_eq!(add_fact("## Remembered\n", "x").unwrap(), "## Remembered\n\n- x\n");
    }
}
