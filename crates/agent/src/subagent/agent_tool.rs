//! `Agent`: a tool whose work is done by another loop.

use super::agent_definition::{AgentDefinition, AgentIsolation, DEFAULT_TYPE};
use super::send_message::SendMessageTool;
use super::subagent_run::{SubagentParts, SubagentRun};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use toolgate_files::GrantedFiles;
use toolgate_gate::{CallContext, Cleared, RegisterError, Source, SourceTools, Tool, ToolSpec};
use toolgate_proto::{CallResult, Effect, Intent, Refusal, SourceId};

/// The source of the tools `Agent` and `SendMessage`. Clones share the run.
#[derive(Clone, Default)]
pub struct SubagentSource {
    /// What the calls of the tools share.
    inner: Arc<SubagentRun>,
}

impl SubagentSource {
    /// Connects the source to the run, once the gate exists.
    pub fn connect(&self, parts: SubagentParts) {
        self.inner.connect(parts);
    }

    /// The main loop changed its model: later subagents use it too.
    pub fn set_model(&self, model: &str) {
        self.inner.set_model(model);
    }

    /// The types on offer.
    pub fn types(&self) -> Vec<AgentDefinition> {
        self.inner.parts().map(|parts| parts.types.iter().cloned().collect()).unwrap_or_default()
    }
}

impl Source for SubagentSource {
    fn id(&self) -> SourceId {
        SourceId::Builtin
    }

    fn tools(&self, tools: &SourceTools) -> Result<(), RegisterError> {
        tools.register(AgentTool { run: Arc::clone(&self.inner) })?;
        tools.register(SendMessageTool { run: Arc::clone(&self.inner) })
    }
}

/// What a call of `Agent` carries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentInput {
    /// What the task is, in three to five words, for people who watch.
    pub(super) description: String,
    /// The task, with everything that the agent needs to know: it sees nothing of this conversation.
    pub(super) prompt: String,
    /// The type of the agent; general-purpose if absent.
    #[serde(default)]
    pub(super) subagent_type: Option<String>,
    /// The model, in place of the type's or the session's.
    #[serde(default)]
    pub(super) model: Option<String>,
    /// The most requests that the agent may make.
    #[serde(default)]
    pub(super) max_turns: Option<u32>,
    /// The id of an agent that has ended, to go on with its conversation.
    #[serde(default)]
    pub(super) resume: Option<String>,
    /// The permission mode of the agent. It is never less strict than that of the session.
    #[serde(default)]
    pub(super) mode: Option<String>,
    /// True, or absent: return at once; the agent works beside you, and its result comes to you as a message when it ends.
    /// False: wait for the agent.
    #[serde(default)]
    pub(super) run_in_background: Option<bool>,
    /// `worktree`: it works in a git worktree of its own, which is removed if it changes nothing there.
    #[serde(default)]
    pub(super) isolation: Option<AgentIsolation>,
    /// Accepted, without effect.
    #[serde(default, rename = "name")]
    pub(super) _name: Option<String>,
}

/// The tool itself.
struct AgentTool {
    /// What the calls share.
    run: Arc<SubagentRun>,
}

impl Tool for AgentTool {
    type Input = AgentInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "Agent",
            "Gives one task to another agent, which works on it with its own tools and conversation, and returns its last \
             message.",
        )
        .with_alias("Task")
        .with_main_field("subagent_type")
        .with_max_result_chars(100_000);
        // Starting an agent changes nothing by itself, and each of its calls is judged and locked on its own: so agents
        // may run side by side.
        spec.read_only = true;
        spec.destructive = false;
        spec
    }

    /// Names the types, which differ by session.
    fn describe(&self, _: &CallContext) -> Option<String> {
        let parts = self.run.parts()?;
        let mut text = "Gives one task to another agent, which works on it with its own tools and conversation, and returns \
                        its last message. Use it for work whose details you need not see, and start independent tasks \
                        together. The types are:\n"
            .to_owned();
        for definition in parts.types.iter() {
            text.push_str(&format!("- {}: {}\n", definition.name, definition.description));
        }
        Some(text)
    }

    fn intent(&self, input: &AgentInput, _: &CallContext) -> Intent {
        // One that has ended goes on as what it was, whatever the call names.
        let resumed = input.resume.as_deref().and_then(|id| self.run.ended_type(id));
        let named = resumed.or_else(|| input.subagent_type.clone());
        let agent = named.unwrap_or_else(|| DEFAULT_TYPE.to_owned());
        Intent::new(format!("start agent `{agent}`: {}", input.description), [Effect::Delegate { agent }])
    }

    /// No diff; a call that would be refused anyway is refused before an approver is asked.
    async fn preview(
        &self,
        input: &AgentInput,
        context: &CallContext,
        _: &GrantedFiles,
    ) -> Result<Option<String>, Refusal> {
        self.run.check_start(input, &context.session).map(|()| None)
    }

    async fn run(&self, input: AgentInput, cleared: Cleared) -> CallResult {
        self.run.run_agent(input, &cleared).await
    }
}
