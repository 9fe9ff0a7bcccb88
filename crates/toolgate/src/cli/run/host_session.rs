//! A session that a host program drives over standard streams.

use super::super::context::CliContext;
use super::super::output::CliOutput;
use super::super::stop_signals::cancel_at_signal;
use super::super::{CliError, CliExitCode};
use super::agent_setup::{AgentSetup, SetupAdditions};
use super::permission_updates::HostPermissionUpdates;
use super::print_turn::close_setup;
use super::run_args::RunArgs;
use super::run_controls::RunControls;
use crate::cli::args::PromptWhen;
use crate::cli::context::HOST_PROMPT_TOOL;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;
use toolgate::agent::SystemPromptParts;
use toolgate::agent::subagent::AgentDefinition;
use toolgate::host::{
    ControlChannel, FrameRenderer, FrameWriter, HostApprover, HostDriver, HostHandles, HostRuntime,
    HostedAgent, open_host_server,
};
use toolgate::mcp::client::{CoordinatorOptions, McpCoordinator, PinStore, ServerEntry, StreamOpener};
use toolgate::{HostHooks, Toolgate, ToolgateBuilder};
use toolgate_proto::Principal;

/// Runs a session until the host closes its side.
pub(super) async fn run_host_session(
    context: &Arc<CliContext>,
    args: &RunArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let (input, output) = toolgate_process::standard_streams()?;
    let reports_state =
        context.ambient.env.get("CLAUDE_CODE_SDK_READS_SESSION_STATE").is_some_and(|value| value == "1");
    let runtime = Arc::new(CliHostRuntime {
        context: Arc::clone(context),
        args: args.clone(),
        setup: Mutex::default(),
    });
    let stop = CancellationToken::new();
    cancel_at_signal(stop.clone())?;
    let driver = HostDriver::new(Arc::clone(&runtime) as Arc<dyn HostRuntime>, output, reports_state)
        .with_stop(stop.clone());
    let ended = driver.run(input).await;
    driver.writer().flush().await;
    let setup = runtime.setup.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(setup) = setup {
        close_setup(setup, out).await;
    }
    match ended {
        Ok(_) if stop.is_cancelled() => Ok(CliExitCode::Interrupted),
        Ok(true) => Ok(CliExitCode::Ok),
        // Hosts raise an exception for a failed run only if the exit code says so too.
        Ok(false) => Ok(CliExitCode::ToolFailed),
        Err(problem) => Err(CliError::Usage(problem)),
    }
}

/// Builds the agent of a session when the host says what it wants.
struct CliHostRuntime {
    /// The CLI context; shared ownership, because the agent is built only when the host sends `initialize`.
    context: Arc<CliContext>,
    /// The command line arguments, which the host's `initialize` request can extend.
    args: RunArgs,
    /// Kept until the end, when records are flushed.
    setup: Mutex<Option<AgentSetup>>,
}

impl HostRuntime for CliHostRuntime {
    /// Builds the agent synchronously; the future exists only because the trait allows asynchronous construction.
    fn build_agent<'a>(
        &'a self,
        initialize: &'a Value,
        handles: &'a HostHandles,
    ) -> BoxFuture<'a, Result<HostedAgent, String>> {
        Box::pin(std::future::ready(self.build(initialize, handles)))
    }
}

impl CliHostRuntime {
    /// Builds the gate and the agent from the arguments and what the host sent.
    fn build(&self, initialize: &Value, handles: &HostHandles) -> Result<HostedAgent, String> {
        let (context, args) = (&with_host_plugins(&self.context, initialize), &self.args);
        let mut out = CliOutput::new(context.global.color, context.global.quiet);
        let hooks = HostHooks::read(initialize.get("hooks").unwrap_or(&Value::Null), &handles.channel)?;
        for (event, why) in &hooks.unraised_events {
            out.print_note(&format!("the event `{event}` {why}; its hooks never run"));
        }
        let updates = Arc::new(HostPermissionUpdates::new(context));
        let asks_host = context.global.permission_prompts != PromptWhen::None
            && (context.global.permission_prompt_tool.as_deref() == Some(HOST_PROMPT_TOOL)
                || context.global.permission_prompts == PromptWhen::Host);
        let approver = asks_host
            .then(|| HostApprover::new(handles.channel.clone(), updates.clone(), Arc::clone(&handles.turn)));
        let call_hooks = hooks.call_hooks.clone();
        let agents = match initialize.get("agents") {
            Some(agents) if agents.is_object() => AgentDefinition::read_all(agents)?,
            _ => Vec::new(),
        };
        let output_schema = initialize.get("jsonSchema").filter(|schema| schema.is_object()).cloned();
        let additions = SetupAdditions { prompt: prompt_parts(initialize), agents, output_schema };
        let name = context.ambient.env.get("CLAUDE_CODE_ENTRYPOINT").cloned();
        let setup = AgentSetup::build(context, args, &additions, &mut out, |mut builder| {
            builder = builder.principal(Principal::new("host").with_optional_name(name));
            for hook in call_hooks {
                builder = builder.hook(hook);
            }
            match approver {
                Some(approver) => {
                    offer_questions(builder.approver(approver).approval_timeout(HOST_APPROVAL_TIMEOUT))
                }
                None => builder,
            }
        })
        .map_err(describe_problem)?;
        let toolgate = setup.recording.toolgate.clone();
        updates.connect(toolgate.clone());
        offer_skills(&toolgate, initialize);
        if args.session_mirror {
            mirror_transcript(&setup, handles.channel.writer().clone());
        }
        let renderer = FrameRenderer::new(handles.channel.writer().clone(), setup.session.id.clone())
            .with_partial_messages(args.include_partial_messages)
            .with_replayed_prompts(args.replay_user_messages)
            .with_hook_events(args.include_hook_events)
            .with_subagent_text(initialize.get("forwardSubagentText") == Some(&Value::Bool(true)));
        let renderer = Arc::new(renderer);
        let agent_hooks = hooks.agent_hooks(&toolgate.shared_gate(), toolgate.session());
        let agent = Arc::new(setup.agent(vec![Arc::clone(&renderer) as _], agent_hooks));
        let host_servers = connect_host_servers(context, initialize, handles)?;
        let controls = RunControls::new(
            context,
            &setup,
            &agent,
            (updates, Arc::clone(&handles.turn)),
            (host_servers, Some(handles.channel.clone())),
        );
        *self.setup.lock().unwrap_or_else(PoisonError::into_inner) = Some(setup);
        let initialize_answer = controls.initialize_answer();
        Ok(HostedAgent::new(agent, renderer, Arc::new(controls), initialize_answer))
    }
}

/// Offers models only the skills that the host names, if it names some.
fn offer_skills(toolgate: &Toolgate, initialize: &Value) {
    let named = initialize.get("skills").and_then(Value::as_array);
    if let (Some(skills), Some(names)) = (toolgate.skills(), named) {
        skills.offer_only(names.iter().filter_map(Value::as_str).map(str::to_owned).collect());
    }
}

/// Offers the tools that speak to the user, where a user can answer.
pub(super) fn offer_questions(builder: ToolgateBuilder) -> ToolgateBuilder {
    builder.tool_group("questions").tool_group("plan")
}

/// A host may show a question for as long as it likes.
pub(super) const HOST_APPROVAL_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);

/// The same context with the plugins that the host brings in `initialize`.
fn with_host_plugins(context: &Arc<CliContext>, initialize: &Value) -> Arc<CliContext> {
    let plugins = initialize.get("plugins").and_then(Value::as_array).into_iter().flatten();
    let mut global = context.global.clone();
    for plugin in plugins {
        let Some(dir) = plugin.get("path").and_then(Value::as_str) else { continue };
        match plugin.get("skipMcpDiscovery") == Some(&Value::Bool(true)) {
            true => global.plugin_dir_no_mcp.push(dir.to_owned()),
            false => global.plugin_dir.push(dir.to_owned()),
        }
    }
    Arc::new(CliContext { ambient: context.ambient.clone(), global })
}

/// Sends each line of the transcript to a host that keeps sessions itself.
fn mirror_transcript(setup: &AgentSetup, writer: FrameWriter) {
    let Some(transcript) = &setup.transcript else { return };
    transcript.set_mirror(Box::new(move |path, line| {
        writer.write(json!({ "type": "transcript_mirror", "filePath": path, "entries": [line] }));
    }));
}

/// The system prompt that a host gives in `initialize`.
fn prompt_parts(initialize: &Value) -> SystemPromptParts {
    let replacement = match initialize.get("systemPrompt") {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Array(parts)) => {
            Some(parts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n\n"))
        }
        _ => None,
    };
    let appended = initialize.get("appendSystemPrompt").and_then(Value::as_str).map(str::to_owned);
    SystemPromptParts::default().with_replacement(replacement).with_appended(appended)
}

/// The servers inside the host program: named in `initialize`, or in `--mcp-config` with the type `sdk`.
fn connect_host_servers(
    context: &CliContext,
    initialize: &Value,
    handles: &HostHandles,
) -> Result<Option<McpCoordinator>, String> {
    let listed = initialize.get("sdkMcpServers").and_then(Value::as_array).into_iter().flatten();
    let mut names: Vec<String> = listed.filter_map(Value::as_str).map(str::to_owned).collect();
    for given in context.global.mcp_config.iter().filter(|given| given.trim_start().starts_with('{')) {
        let config: Value = serde_json::from_str(given).unwrap_or_default();
        let servers = config.get("mcpServers").and_then(Value::as_object).into_iter().flatten();
        let sdk = servers.filter(|(_, entry)| entry.get("type") == Some(&json!("sdk")));
        names.extend(sdk.map(|(name, _)| name.clone()));
    }
    names.dedup();
    if names.is_empty() {
        return Ok(None);
    }
    let entries = names.iter().map(|name| host_server_entry(&handles.channel, name));
    let entries = entries.collect::<Result<Vec<_>, String>>()?;
    // Nothing is pinned: these servers are part of the program that the user runs.
    let options = CoordinatorOptions::new(PinStore::open(None)?).without_resource_tools();
    Ok(Some(McpCoordinator::new(entries, options)))
}

/// A server inside the host program.
pub(super) fn host_server_entry(channel: &ControlChannel, name: &str) -> Result<ServerEntry, String> {
    let (channel, server) = (channel.clone(), name.to_owned());
    let opener = StreamOpener::new(move || open_host_server(&channel, &server));
    ServerEntry::in_process(name, opener).map_err(|problem| format!("server `{name}`: {problem}"))
}

/// The message of an error, for the host.
pub(super) fn describe_problem(error: CliError) -> String {
    match error {
        CliError::Usage(message) | CliError::Declined(message) => message,
        CliError::Interrupted => "the user pressed Ctrl-C".to_owned(),
        CliError::ClosedPipe => "the host closed its side".to_owned(),
    }
}
