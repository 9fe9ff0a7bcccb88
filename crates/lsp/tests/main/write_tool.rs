//! A tool that writes a file, as the edit tools do.

use serde_json::json;
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{CallResult, Effect, Intent, Output, WriteKind};

/// Replaces the content of a file.
pub(crate) struct PutTool;

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct PutInput {
    file: String,
    text: String,
}

impl Tool for PutTool {
    type Input = PutInput;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new("Put", "Writes a file.")
    }

    fn intent(&self, input: &PutInput, context: &CallContext) -> Intent {
        let path = context.absolute_path(&input.file);
        Intent::new("put", [Effect::Write { path, kind: WriteKind::Put }])
    }

    async fn run(&self, input: PutInput, cleared: Cleared) -> CallResult {
        let path = cleared.context().absolute_path(&input.file);
        let write = move |file: &toolgate_files::LockedFile| {
            let before = file.read(1 << 20).unwrap();
            file.put(before.as_ref(), input.text.as_bytes()).unwrap();
            before.map(|before| String::from_utf8(before.bytes).unwrap())
        };
        let original = cleared.files().change_file(&path, write).await.unwrap();
        Ok(Output::text("written").structured(json!({ "originalFile": original })))
    }
}
