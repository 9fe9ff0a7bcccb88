//! `MultiEdit`: several replacements in one file, all or none.

use super::{
    ReadRequirement, TextReplacement, check_differs, check_not_empty, check_was_read, edit_file, edit_intent,
    preview_edit,
};
use crate::file_refusal::check_absolute;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolgate_files::GrantedFiles;
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{CallResult, Intent, Refusal};

/// Part of the claude toolset; the plain toolset has the same in `edit_file`.
pub(crate) struct MultiEditTool;

/// Input of [`MultiEditTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MultiEditInput {
    /// The absolute path of the file.
    file_path: String,
    /// The replacements, in order.
    #[schemars(length(min = 1))]
    edits: Vec<MultiEditItem>,
}

/// One replacement.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MultiEditItem {
    /// The text to replace, exactly as the previous edits left it.
    old_string: String,
    /// The replacement; must differ.
    new_string: String,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

impl MultiEditInput {
    /// Converts the edits in order; each one applies to the result of the one before.
    fn replacements(&self) -> Vec<TextReplacement> {
        let replacement = |edit: &MultiEditItem| TextReplacement {
            old: edit.old_string.clone(),
            new: edit.new_string.clone(),
            all: edit.replace_all,
            line_hint: None,
        };
        self.edits.iter().map(replacement).collect()
    }
}

impl Tool for MultiEditTool {
    type Input = MultiEditInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "MultiEdit",
            "Makes several replacements in one file, each in the result of the previous one: all or none. The rules \
             of Edit apply to each. Read the file first.",
        );
        spec.title = "Edit file in several places".to_owned();
        spec.family = Some("Edit".to_owned());
        spec.input_examples = vec![json!({
            "file_path": "/project/src/main.rs",
            "edits": [
                { "old_string": "tries = 3", "new_string": "tries = 5" },
                { "old_string": "sleep", "new_string": "wait", "replace_all": true },
            ],
        })];
        spec
    }

    /// Permits an empty `old_string` only as a single edit, where it creates the file.
    fn check(&self, input: &MultiEditInput) -> Result<(), Refusal> {
        check_absolute("file_path", &input.file_path)?;
        for (index, edit) in input.edits.iter().enumerate() {
            if input.edits.len() > 1 {
                check_not_empty(&format!("edits/{index}/old_string"), &edit.old_string)?;
            }
            check_differs(&format!("edits/{index}/new_string"), &edit.old_string, &edit.new_string)?;
        }
        Ok(())
    }

    fn intent(&self, input: &MultiEditInput, context: &CallContext) -> Intent {
        edit_intent(context.absolute_path(&input.file_path))
    }

    /// Refuses a file that the session has not read, as `Edit` does.
    async fn guard(&self, input: &MultiEditInput, context: &CallContext) -> Result<(), Refusal> {
        check_was_read(context, &context.absolute_path(&input.file_path))
    }

    /// Shows the combined diff of all edits, because the user approves them as a unit.
    async fn preview(
        &self,
        input: &MultiEditInput,
        context: &CallContext,
        files: &GrantedFiles,
    ) -> Result<Option<String>, Refusal> {
        let path = context.absolute_path(&input.file_path);
        preview_edit(context, files, &path, input.replacements(), ReadRequirement::Required).await
    }

    async fn run(&self, input: MultiEditInput, cleared: Cleared) -> CallResult {
        let path = cleared.context().absolute_path(&input.file_path);
        let replacements = input.replacements();
        let edited = edit_file(&cleared, &path, replacements, ReadRequirement::Required).await?;
        let structured = json!({
            "filePath": path,
            "edits": input.edits,
            "originalFile": edited.original,
            "structuredPatch": edited.hunks,
            "userModified": false,
        });
        Ok(edited.output(&path).structured(structured))
    }
}
