//! The editor's files and terminals as tools: each use is a call that policy judges and the ledger records.

use super::acp_client::AcpClient;
use agent_client_protocol::v1::schema::{
    CreateTerminalRequest, KillTerminalRequest, ReadTextFileRequest, ReleaseTerminalRequest, TerminalId,
    TerminalOutputRequest, WaitForTerminalExitRequest,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::future::Future;
use std::time::Duration;
use toolgate_gate::{CallContext, Cleared, RegisterError, Source, SourceTools, Tool, ToolSpec};
use toolgate_proto::{
    AbsPath, CallResult, Code, CommandLine, Effect, Intent, Output, PathScope, Refusal, ShellKind, SourceId,
};

/// How many bytes of a terminal's output are kept.
const MAX_TERMINAL_BYTES: u64 = 30_000;
/// How long an editor has to end and release a terminal.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(2);

/// The tools that an editor brings, as far as it can do them.
pub struct EditorSource {
    client: AcpClient,
}

impl EditorSource {
    /// The tools of the editor of a session.
    pub fn new(client: AcpClient) -> Self {
        Self { client }
    }
}

impl Source for EditorSource {
    fn id(&self) -> SourceId {
        SourceId::Sdk
    }

    fn tools(&self, tools: &SourceTools) -> Result<(), RegisterError> {
        let capabilities = self.client.capabilities();
        if capabilities.fs.read_text_file {
            tools.register(EditorReadTool { client: self.client.clone() })?;
        }
        if capabilities.terminal {
            tools.register(EditorTerminalTool { client: self.client.clone() })?;
        }
        Ok(())
    }
}

/// Waits for the editor, as long as the call is wanted.
async fn ask_editor<T>(
    cleared: &Cleared,
    request: impl Future<Output = Result<T, String>>,
) -> Result<T, Refusal> {
    tokio::select! {
        biased;
        () = cleared.cancel().cancelled() => Err(Refusal::new(Code::Cancelled, "the call was cancelled")),
        answer = request => answer.map_err(|problem| Refusal::new(Code::ToolFailed, format!("the editor: {problem}"))),
    }
}

/// Reads a file as it is in the editor.
struct EditorReadTool {
    client: AcpClient,
}

/// Input of [`EditorReadTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditorReadInput {
    /// The file.
    file_path: String,
    /// The first line to read, from 1.
    #[serde(default)]
    offset: Option<u32>,
    /// The most lines to read.
    #[serde(default)]
    limit: Option<u32>,
}

impl Tool for EditorReadTool {
    type Input = EditorReadInput;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new(
            "EditorRead",
            "Reads a text file as it is in the user's editor, with changes that are not saved yet. Use Read for everything \
             else.",
        )
        .read_only()
        .with_title("Read in the editor")
        .with_family("Read")
    }

    fn intent(&self, input: &EditorReadInput, context: &CallContext) -> Intent {
        let path = context.absolute_path(&input.file_path);
        let summary = format!("read {path} in the editor");
        Intent::new(summary, [Effect::Read { path, scope: PathScope::Entry }])
    }

    async fn run(&self, input: EditorReadInput, cleared: Cleared) -> CallResult {
        let asked = cleared.context().absolute_path(&input.file_path);
        // The file that was judged, whatever a link says by now.
        let real: AbsPath = cleared
            .files()
            .real_path(&asked)
            .map_err(|problem| Refusal::new(Code::ToolFailed, format!("`{asked}`: {problem}")))?;
        let request = ReadTextFileRequest::new(self.client.session(), real.as_path())
            .line(input.offset)
            .limit(input.limit);
        let answer = ask_editor(&cleared, self.client.request(request)).await?;
        Ok(Output::text(answer.content))
    }
}

/// Runs a command in a terminal of the editor, where the user sees it.
struct EditorTerminalTool {
    client: AcpClient,
}

/// Input of [`EditorTerminalTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditorTerminalInput {
    /// The bash command line.
    command: String,
    /// What it does, for the user.
    #[serde(default)]
    description: Option<String>,
}

impl Tool for EditorTerminalTool {
    type Input = EditorTerminalInput;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new(
            "EditorTerminal",
            "Runs a bash command line in a terminal of the user's editor, outside the sandbox, and returns its output. Use it \
             only where the user wants to see a command run; Bash is for everything else.",
        )
        .with_title("Run in the editor")
        .with_family("Bash")
        .with_open_world(true)
    }

    fn intent(&self, input: &EditorTerminalInput, context: &CallContext) -> Intent {
        let summary = match &input.description {
            Some(description) => format!("{description}, in the editor's terminal"),
            None => format!("run `{}` in the editor's terminal", input.command),
        };
        Intent::new(summary, [Effect::Exec { command: command_line(&input.command, context) }])
    }

    async fn run(&self, input: EditorTerminalInput, cleared: Cleared) -> CallResult {
        if !cleared.terms().unsandboxed {
            let reason = "the editor's terminal is outside the sandbox, and running there was not granted";
            return Err(Refusal::new(Code::ToolFailed, reason).hint("use Bash"));
        }
        let command = command_line(&input.command, cleared.context());
        let session = self.client.session();
        let request = CreateTerminalRequest::new(session.clone(), "bash")
            .args(vec!["-c".to_owned(), command.text])
            .cwd(command.cwd.as_path().to_owned())
            .output_byte_limit(MAX_TERMINAL_BYTES);
        let terminal = ask_editor(&cleared, self.client.request(request)).await?.terminal_id;
        let result = self.follow(&terminal, &cleared).await;
        if result.is_err() {
            // The editor ends what nothing waits for any more; whether it does is its own matter.
            let kill = self.client.request(KillTerminalRequest::new(session.clone(), terminal.clone()));
            let _ = tokio::time::timeout(CLEANUP_TIMEOUT, kill).await;
        }
        let release = self.client.request(ReleaseTerminalRequest::new(session, terminal));
        let _ = tokio::time::timeout(CLEANUP_TIMEOUT, release).await;
        result
    }
}

impl EditorTerminalTool {
    /// Waits for the command, and gives its output.
    async fn follow(&self, terminal: &TerminalId, cleared: &Cleared) -> CallResult {
        let wait = WaitForTerminalExitRequest::new(self.client.session(), terminal.clone());
        let exit = ask_editor(cleared, self.client.request(wait)).await?.exit_status;
        let read = TerminalOutputRequest::new(self.client.session(), terminal.clone());
        let output = ask_editor(cleared, self.client.request(read)).await?;
        let mut text = output.output;
        if output.truncated {
            text.insert_str(0, "[the start of the output is left out]\n");
        }
        match (exit.exit_code, exit.signal) {
            (Some(0), _) => Ok(Output::text(text)),
            (Some(code), _) => Err(Refusal::new(Code::ToolFailed, format!("exit code {code}\n{text}"))),
            (None, Some(signal)) => {
                Err(Refusal::new(Code::ToolFailed, format!("ended by signal {signal}\n{text}")))
            }
            (None, None) => {
                Err(Refusal::new(Code::ToolFailed, format!("ended without an exit code\n{text}")))
            }
        }
    }
}

/// The command line as it is judged and as it runs.
fn command_line(command: &str, context: &CallContext) -> CommandLine {
    CommandLine::new(command, ShellKind::Bash, context.workspace.cwd.clone()).with_unsandboxed(true)
}
