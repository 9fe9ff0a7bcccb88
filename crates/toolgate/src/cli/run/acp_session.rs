//! `toolgate acp`: an editor drives the agent by the agent client protocol.

use super::super::context::CliContext;
use super::super::output::CliOutput;
use super::super::stop_signals::cancel_at_signal;
use super::super::{CliError, CliExitCode};
use super::SHUTDOWN_TIMEOUT;
use super::agent_setup::{AgentSetup, SetupAdditions};
use super::host_session::{HOST_APPROVAL_TIMEOUT, describe_problem};
use super::permission_updates::HostPermissionUpdates;
use super::print_turn::close_setup;
use super::run_args::RunArgs;
use super::run_controls::RunControls;
use super::stored_session::list_sessions;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;
use toolgate::agent::session::SessionSummary;
use toolgate::host::TurnInterrupt;
use toolgate::host::acp::{
    AcpApprover, AcpClient, AcpRuntime, AcpServer, AcpSession, AcpSessionRequest, AcpStoredSession,
    AcpUpdates, EditorSource,
};
use toolgate::{AbsPath, Mode};
use toolgate_proto::Principal;

/// Arguments of `toolgate acp`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct AcpArgs {
    /// The model, or one of the short names sonnet, opus and haiku
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// The model to use while the first is overloaded
    #[arg(long, value_name = "MODEL")]
    fallback_model: Option<String>,
    /// End a turn after this many requests to the model
    #[arg(long, value_name = "N")]
    max_turns: Option<u32>,
    /// End a session when it has cost this much, in US dollars
    #[arg(long, value_name = "USD")]
    max_budget_usd: Option<f64>,
    /// Text after the system prompt
    #[arg(long, value_name = "TEXT")]
    append_system_prompt: Option<String>,
    /// Types of subagents, as a JSON object
    #[arg(long, value_name = "JSON")]
    agents: Option<String>,
}

impl AcpArgs {
    /// The arguments of one session.
    fn run_args(&self, request: &AcpSessionRequest) -> RunArgs {
        RunArgs {
            model: self.model.clone(),
            fallback_model: self.fallback_model.clone(),
            max_turns: self.max_turns,
            max_budget_usd: self.max_budget_usd,
            append_system_prompt: self.append_system_prompt.clone(),
            agents: self.agents.clone(),
            session_id: (!request.is_stored).then(|| request.id.clone()),
            resume: request.is_stored.then(|| request.id.clone()),
            ..RunArgs::default()
        }
    }
}

/// Serves an editor until it closes its side.
pub(crate) fn run_acp(
    context: CliContext,
    args: &AcpArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let editor = CliAcpRuntime { context, args: args.clone(), setups: Mutex::default() };
    let served = runtime.block_on(async {
        let (input, output) = toolgate_process::standard_streams()?;
        let stop = CancellationToken::new();
        cancel_at_signal(stop.clone())?;
        AcpServer::new(Arc::new(editor)).with_stop(stop).run(input, output).await.map_err(CliError::Usage)
    });
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    // An editor that is gone is the end and no failure: every session is closed, and its records are complete.
    if let Err(CliError::Usage(problem)) = served {
        out.print_note(&format!("the connection to the editor ended: {problem}"));
    }
    Ok(CliExitCode::Ok)
}

/// Opens the sessions that an editor wants.
struct CliAcpRuntime {
    /// The options and the environment; each session has its own directory.
    context: CliContext,
    args: AcpArgs,
    /// Kept until a session is closed, when records are flushed.
    setups: Mutex<HashMap<String, AgentSetup>>,
}

impl AcpRuntime for CliAcpRuntime {
    fn open_session<'a>(
        &'a self,
        request: AcpSessionRequest,
        client: AcpClient,
    ) -> BoxFuture<'a, Result<AcpSession, String>> {
        Box::pin(std::future::ready(self.open(&request, client)))
    }

    fn list_sessions<'a>(
        &'a self,
        cwd: Option<AbsPath>,
    ) -> BoxFuture<'a, Result<Vec<AcpStoredSession>, String>> {
        Box::pin(async move {
            let mut context =
                CliContext { ambient: self.context.ambient.clone(), global: self.context.global.clone() };
            let of_all = cwd.is_none();
            if let Some(cwd) = cwd {
                context.global.cwd = Some(cwd.to_string());
            }
            let listed = toolgate_files::run_blocking(move || list_sessions(&context, of_all)).await;
            let listed = listed.map_err(|problem| problem.to_string())?;
            let entry = |session: SessionSummary| {
                let updated_at = session.updated_at();
                AcpStoredSession::new(session.id, session.cwd)
                    .with_title(session.title)
                    .with_updated_at(updated_at)
            };
            Ok(listed.into_iter().map(entry).collect())
        })
    }

    fn close_session<'a>(&'a self, id: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let setup = self.setups.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
            if let Some(setup) = setup {
                let mut out = CliOutput::new(self.context.global.color, self.context.global.quiet);
                close_setup(setup, &mut out).await;
            }
        })
    }
}

impl CliAcpRuntime {
    /// The context of a session: its directory, and the servers that the editor names.
    fn session_context(&self, request: &AcpSessionRequest) -> CliContext {
        let mut global = self.context.global.clone();
        global.cwd = Some(request.cwd.to_string());
        global.add_dir.extend(request.directories.iter().map(|dir| dir.to_string_lossy().into_owned()));
        if !request.mcp_servers.is_empty() {
            global.mcp_config.push(json!({ "mcpServers": request.mcp_servers }).to_string());
        }
        CliContext { ambient: self.context.ambient.clone(), global }
    }

    /// Builds the gate and the agent of a session.
    fn open(&self, request: &AcpSessionRequest, client: AcpClient) -> Result<AcpSession, String> {
        let context = Arc::new(self.session_context(request));
        let args = self.args.run_args(request);
        let mut out = CliOutput::new(context.global.color, context.global.quiet);
        let updates = Arc::new(HostPermissionUpdates::new(&context));
        let approver = AcpApprover::new(client.clone());
        let setup = AgentSetup::build(&context, &args, &SetupAdditions::default(), &mut out, |builder| {
            builder
                .principal(Principal::new("acp"))
                .source(EditorSource::new(client.clone()))
                // A user is there to answer, and an editor shows the task list as its plan.
                .tool_group("tasks")
                .tool_group("questions")
                .tool_group("plan")
                .approver(approver)
                .approval_timeout(HOST_APPROVAL_TIMEOUT)
        })
        .map_err(describe_problem)?;
        let toolgate = setup.recording.toolgate.clone();
        updates.connect(toolgate.clone());
        let cwd = toolgate.session().workspace().cwd.clone();
        let agent = Arc::new(setup.agent(vec![Arc::new(AcpUpdates::new(client, cwd))], Vec::new()));
        let turn = Arc::new(TurnInterrupt::default());
        let controls = RunControls::new(&context, &setup, &agent, (updates, Arc::clone(&turn)), (None, None));
        let commands = controls.initialize_answer().get("commands").and_then(Value::as_array).cloned();
        let mut modes = vec![Mode::Default, Mode::AcceptEdits, Mode::Plan, Mode::DontAsk];
        if context.may_bypass() {
            modes.push(Mode::Bypass);
        }
        if !modes.contains(&toolgate.mode()) {
            modes.push(toolgate.mode());
        }
        self.setups.lock().unwrap_or_else(PoisonError::into_inner).insert(request.id.clone(), setup);
        let session = AcpSession::new(agent, Arc::new(controls), turn).with_modes(modes);
        Ok(session.with_commands(commands.unwrap_or_default()))
    }
}
