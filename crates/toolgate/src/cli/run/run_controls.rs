//! What a host may ask about a session, and what a turn needs before it begins.

use super::super::context::CliContext;
use super::agent_setup::AgentSetup;
use super::context_usage::context_usage;
use super::editor_context::read_editor_context;
use super::host_session::describe_problem;
use super::permission_updates::HostPermissionUpdates;
use super::read_attached::read_attached;
use super::server_controls::ServerControls;
use super::session_events::{TakenSchedules, next_session_event};
use super::slash_command::{SLASH_COMMANDS, SlashCommands, list_skills};
use super::stored_session::rewind_files;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use toolgate::agent::conversation::{block_text, text_block};
use toolgate::agent::provider::ThinkingMode;
use toolgate::agent::subagent::{AgentDefinition, BackgroundAgents, SubagentSource};
use toolgate::agent::{AgentLoop, TurnReport};
use toolgate::host::{ControlChannel, HostControls, HostPrompt, TurnInterrupt, host_mode_name};
use toolgate::mcp::client::McpCoordinator;
use toolgate::plugins::PluginStatus;
use toolgate::{AbsPath, Layer, Toolgate};

/// The version of the control protocol that is met, and ours.
const PROTOCOL_LEVEL: &str = concat!("2.1.325 (toolgate ", env!("CARGO_PKG_VERSION"), ")");

/// The controls of one session.
pub(super) struct RunControls {
    /// Prompts that are commands.
    commands: SlashCommands,
    /// The turn under way.
    turn: Arc<TurnInterrupt>,
    /// The toolgate that checks and runs the calls of the session.
    toolgate: Toolgate,
    /// The agent whose model and thinking budget the host can change between turns.
    agent: Arc<AgentLoop>,
    /// Changes of permission rules and mode that the host requests.
    updates: Arc<HostPermissionUpdates>,
    /// Where the API key comes from, which hosts show to the user. Never contains the key itself.
    key_source: &'static str,
    /// The output style in use.
    output_style: String,
    /// The names of all output styles.
    output_styles: Vec<String>,
    /// The MCP servers.
    servers: ServerControls,
    /// Starts subagents.
    subagents: SubagentSource,
    /// The files of the arguments, for the first prompt.
    files: Vec<String>,
    /// What the editor shows goes with each prompt.
    has_editor: bool,
    /// Set once they are attached.
    attached: tokio::sync::OnceCell<()>,
    /// The model that the session began with.
    default_model: String,
    /// Where changes of files are recorded.
    journal_dir: Option<AbsPath>,
    /// How long the end of a turn waits for agents once the host is gone.
    max_wait: Duration,
    /// The files with instructions, and how many bytes each has.
    memory_files: Vec<(AbsPath, usize)>,
}

impl RunControls {
    /// The controls of an agent that was set up.
    pub(super) fn new(
        context: &Arc<CliContext>,
        setup: &AgentSetup,
        agent: &Arc<AgentLoop>,
        (updates, turn): (Arc<HostPermissionUpdates>, Arc<TurnInterrupt>),
        (host_servers, channel): (Option<McpCoordinator>, Option<ControlChannel>),
    ) -> Self {
        let toolgate = setup.recording.toolgate.clone();
        let commands = SlashCommands {
            toolgate: toolgate.clone(),
            agent: Arc::clone(agent),
            updates: Arc::clone(&updates),
            journal_dir: context.journal_dir(),
        };
        let servers = ServerControls::new(
            Arc::clone(context),
            toolgate.clone(),
            (setup.coordinator.clone(), host_servers, setup.editor.clone()),
            channel,
        );
        Self {
            commands,
            turn,
            toolgate,
            agent: Arc::clone(agent),
            updates,
            key_source: setup.provider.key_source,
            output_style: setup.output_style.clone(),
            max_wait: setup.max_wait(),
            output_styles: setup.output_styles.clone(),
            memory_files: setup.memory_files.clone(),
            servers,
            files: setup.files.clone(),
            has_editor: setup.editor.is_some(),
            attached: tokio::sync::OnceCell::new(),
            default_model: setup.settings.model.clone(),
            subagents: setup.subagents.clone(),
            journal_dir: context.journal_dir(),
        }
    }

    /// The answer to `initialize`.
    pub(super) fn initialize_answer(&self) -> Value {
        let model = self.agent.settings().model;
        let agents = self.subagents.types();
        let agents =
            agents.iter().map(|agent| json!({ "name": agent.name, "description": agent.description }));
        let own = SLASH_COMMANDS.iter().map(
            |(name, argument, what)| json!({ "name": name, "description": what, "argumentHint": argument }),
        );
        let skills = list_skills(&self.toolgate);
        let commands = own.chain(skills.iter().map(|skill| {
            let definition = &skill.definition;
            let hint = definition.argument_hint.as_deref().unwrap_or_default();
            json!({ "name": skill.name, "description": definition.description, "argumentHint": hint })
        }));
        json!({
            "commands": commands.collect::<Vec<_>>(),
            "agents": agents.collect::<Vec<_>>(),
            "output_style": self.output_style,
            "available_output_styles": self.output_styles,
            "models": [{ "value": "default", "displayName": model, "description": "the model of this session" }],
            "account": { "apiKeySource": self.key_source },
            "hooks_applied": true,
            "hook_on_failure_supported": true,
            "pid": std::process::id(),
        })
    }

    /// Changes the model from the next request on, for the main loop and for subagents. Null goes back to the first.
    async fn set_model(&self, request: &Value) -> Result<Value, String> {
        let requested = request.get("model").and_then(Value::as_str);
        let named = requested.and_then(|name| self.agent.settings().resolve_model(name));
        let model = named.as_ref().unwrap_or(&self.default_model);
        if !self.agent.meter().can_price(model) {
            return Err(format!("the price of `{model}` is not known, so the budget could not be kept"));
        }
        self.agent.switch_model(model, requested, "sdk").await?;
        self.subagents.set_model(model);
        Ok(json!({}))
    }

    /// Changes how much the model thinks.
    fn set_thinking(&self, request: &Value) -> Value {
        let thinking = match request.get("max_thinking_tokens").and_then(Value::as_u64) {
            Some(0) => ThinkingMode::Disabled,
            Some(tokens) => ThinkingMode::Budget(tokens),
            None => ThinkingMode::Unset,
        };
        self.agent.update_settings(|settings| {
            settings.thinking = thinking;
            // Absent means that it stays as it is.
            if let Some(display) = request.get("thinking_display") {
                settings.thinking_display = display.as_str().map(str::to_owned);
            }
        });
        json!({})
    }

    /// Ends a subagent, or a command in the background by the tool that does that.
    async fn stop_task(&self, id: &str) -> Result<Value, String> {
        if BackgroundAgents::of(self.toolgate.session()).stop(id) {
            return Ok(json!({}));
        }
        let call = toolgate_files::generate_id("stop_");
        let outcome = self.toolgate.call(call, "TaskStop", &json!({ "task_id": id }).to_string()).await;
        outcome.result.map(|_| json!({})).map_err(|refusal| refusal.to_string())
    }

    /// Every rule in force, with where it comes from.
    fn permission_rules(&self) -> Value {
        let layers = self.toolgate.policy();
        let rules = layers.layers.iter().flat_map(|layer| {
            let list = |behavior: &'static str, rules: &[toolgate::RawRule]| {
                let file = layer.file.clone();
                let entry = move |rule: &toolgate::RawRule| {
                    json!({ "rule": rule.text, "behavior": behavior, "source": file })
                };
                rules.iter().map(entry).collect::<Vec<_>>()
            };
            [list("allow", &layer.allow), list("ask", &layer.ask), list("deny", &layer.deny)].concat()
        });
        json!({ "rules": rules.collect::<Vec<_>>() })
    }

    /// Marks a file of the workspace as read.
    fn seed_read_state(&self, request: &Value) -> Result<Value, String> {
        let given = request.get("path").and_then(Value::as_str).ok_or("`path` is missing")?;
        let path = AbsPath::new(given).map_err(|problem| problem.to_string())?;
        let real = toolgate_files::resolve(&path).real;
        let roots = self.toolgate.session().workspace().roots.clone();
        if !roots.iter().any(|root| real.is_under(root)) {
            return Err(format!("`{path}` is outside the workspace"));
        }
        let content = toolgate_files::read_named_bytes(&real, MAX_SEEDED_BYTES)
            .map_err(|problem| problem.to_string())?;
        toolgate_tools::seed_read_state(self.toolgate.session(), &real, &content);
        Ok(json!({}))
    }
}

/// The largest file that a host may mark as read.
const MAX_SEEDED_BYTES: u64 = 16 * 1024 * 1024;

impl HostControls for RunControls {
    /// Connects the MCP servers before the first turn. Later calls return immediately.
    fn prepare_turn(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.servers.connect().await;
            self.attached
                .get_or_init(|| async {
                    let content = match read_attached(&self.toolgate, &self.files).await {
                        Ok(content) => content,
                        // No user can be asked: the model is informed, and reports it in its answer.
                        Err(error) => vec![text_block(format!("({})", describe_problem(error)))],
                    };
                    self.agent.attach(content);
                })
                .await;
            if self.has_editor {
                self.agent.attach(read_editor_context(&self.toolgate).await);
            }
        })
    }

    /// Returns the fields of the `init` frame: tools, agents and MCP servers.
    fn init_fields(&self) -> Map<String, Value> {
        let agents = self.subagents.types();
        let parts = (self.key_source, self.output_style.as_str());
        init_fields(&self.toolgate, &self.agent, parts, (self.servers.list(), &agents))
    }

    /// Limits how long the end of the turn waits for agents: no request can stop them any more.
    fn input_closed(&self) {
        BackgroundAgents::of(self.toolgate.session()).limit_wait(self.max_wait);
    }

    /// Looks off the async threads: another process may hold the store for a moment.
    fn next_event(&self) -> BoxFuture<'_, Option<String>> {
        let toolgate = self.toolgate.clone();
        Box::pin(async move {
            let looked = toolgate_files::run_blocking(move || {
                next_session_event(&toolgate, TakenSchedules::OfSession)
            });
            looked.await.unwrap_or_default()
        })
    }

    /// Runs a prompt as a slash command if it is a single text block. A composed prompt goes to the model: a program
    /// wrote it, so a leading `/` does not mark a command.
    fn run_command<'a>(&'a self, prompt: &'a HostPrompt) -> BoxFuture<'a, Option<TurnReport>> {
        Box::pin(async move {
            let text = match prompt.content.as_slice() {
                [only] if !prompt.is_composed => block_text(only)?,
                _ => return None,
            };
            let started = Instant::now();
            let answer = self.commands.run(text, &self.turn.current_turn()).await?;
            Some(TurnReport::of_command(answer, started.elapsed()))
        })
    }

    /// Answers control requests of the host. `None` means that the subtype is unknown to this implementation.
    fn answer<'a>(
        &'a self,
        subtype: &'a str,
        request: &'a Value,
    ) -> BoxFuture<'a, Option<Result<Value, String>>> {
        Box::pin(async move {
            let text = |key: &str| request.get(key).and_then(Value::as_str).unwrap_or_default();
            Some(match subtype {
                "set_permission_mode" => {
                    self.updates.set_mode(text("mode")).map(|()| json!({ "mode": text("mode") }))
                }
                "set_model" => self.set_model(request).await,
                "set_max_thinking_tokens" => Ok(self.set_thinking(request)),
                "mcp_status" => {
                    self.servers.connect().await;
                    Ok(self.servers.status())
                }
                "mcp_reconnect" => self.servers.reconnect(request).await,
                "mcp_toggle" => self.servers.toggle(request).await,
                "mcp_set_servers" => self.servers.set_servers(request).await,
                "stop_task" => self.stop_task(text("task_id")).await,
                "get_context_usage" => {
                    let parts = (self.memory_files.as_slice(), self.subagents.types());
                    Ok(context_usage(&self.toolgate, &self.agent, parts))
                }
                "list_permission_rules" => Ok(self.permission_rules()),
                "get_settings" => Ok(describe_settings(&self.toolgate, &self.agent)),
                "rewind_files" => rewind_files(self.journal_dir.as_ref(), &self.toolgate, request),
                "seed_read_state" => self.seed_read_state(request),
                "get_binary_version" => Ok(json!({ "version": PROTOCOL_LEVEL })),
                // A server of the host says that its tools changed.
                "mcp_message" => {
                    let refreshed = self.toolgate.refresh_sources().await;
                    refreshed.map(|()| json!({})).map_err(|problem| problem.to_string())
                }
                _ => return None,
            })
        })
    }

    /// Runs the hooks for the end of the session. The host runtime keeps the setup and flushes the records.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.agent.end_session("other"))
    }
}

/// The answer to `get_settings`: the merged settings, those of each file, and what holds for the session now. Values of
/// `env` are left out, because they may be keys.
fn describe_settings(toolgate: &Toolgate, agent: &AgentLoop) -> Value {
    let settings = toolgate.settings();
    let sources = settings.files.iter().rev().map(|file| {
        let source = match file.rules.layer {
            Layer::Managed => "policySettings",
            Layer::Cli | Layer::Session | Layer::Default => "flagSettings",
            Layer::Local => "localSettings",
            Layer::Project => "projectSettings",
            Layer::User => "userSettings",
        };
        json!({ "source": source, "path": file.rules.file, "settings": without_env_values(&file.raw_value) })
    });
    let now = agent.settings();
    json!({
        "effective": without_env_values(settings.merged_json()),
        "sources": sources.collect::<Vec<_>>(),
        "applied": { "model": now.model, "effort": now.effort },
    })
}

/// The same settings with the names of `env` only.
fn without_env_values(settings: &Value) -> Value {
    let mut shown = settings.clone();
    if let Some(Value::Object(env)) = shown.get_mut("env") {
        env.values_mut().for_each(|value| *value = json!("[set]"));
    }
    shown
}

/// The fields of the `init` frame.
pub(super) fn init_fields(
    toolgate: &Toolgate,
    agent: &AgentLoop,
    (key_source, style): (&str, &str),
    (servers, agents): (Vec<Value>, &[AgentDefinition]),
) -> Map<String, Value> {
    let tools: Vec<String> = toolgate.tools().iter().map(|tool| tool.name.to_string()).collect();
    let names: Vec<String> = list_skills(toolgate).iter().map(|skill| skill.name.clone()).collect();
    let is_offered = |name: &&String| toolgate.skills().is_none_or(|skills| skills.is_offered(name));
    let offered: Vec<&String> = names.iter().filter(is_offered).collect();
    let own = SLASH_COMMANDS.map(|(name, ..)| name.to_owned());
    let settings = toolgate.settings();
    let active = settings.plugins().plugins.iter().filter(|entry| entry.status == PluginStatus::Active);
    let plugins: Vec<Value> = active.map(|entry| json!({ "name": entry.name, "path": entry.root })).collect();
    let fields = json!({
        "cwd": toolgate.session().workspace().cwd,
        "model": agent.settings().model,
        "permissionMode": host_mode_name(toolgate.mode()),
        "tools": tools,
        "mcp_servers": servers,
        "slash_commands": own.into_iter().chain(names.iter().cloned()).collect::<Vec<_>>(),
        "output_style": style,
        "skills": offered,
        "plugins": plugins,
        "agents": agents.iter().map(|agent| &agent.name).collect::<Vec<_>>(),
        "apiKeySource": key_source,
        "claude_code_version": PROTOCOL_LEVEL,
        "capabilities": ["interrupt_receipt_v1"],
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
