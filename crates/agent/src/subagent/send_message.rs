//! `SendMessage`: a word to an agent under way, or more work for one that has ended.

use super::agent_tool::AgentInput;
use super::background_agents::BackgroundAgents;
use super::subagent_run::SubagentRun;
use crate::turn_model::agent_of;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use toolgate_files::GrantedFiles;
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{CallResult, Code, Effect, Intent, Output, Refusal};

/// The tool itself.
pub(super) struct SendMessageTool {
    /// What the calls share.
    pub(super) run: Arc<SubagentRun>,
}

/// What a call of `SendMessage` carries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SendMessageInput {
    /// The id of the agent, as `agentId` says.
    to: String,
    /// The message.
    message: String,
    /// What the message is about, in a few words, for people who watch.
    #[serde(default)]
    summary: Option<String>,
}

impl Tool for SendMessageTool {
    type Input = SendMessageInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "SendMessage",
            "Sends a message to an agent that you started. One that is under way gets it before its next step; one that has \
             ended goes on with its conversation, and its answer is returned.",
        )
        .with_family("Agent")
        .with_max_result_chars(100_000);
        spec.read_only = true;
        spec.destructive = false;
        spec
    }

    fn intent(&self, input: &SendMessageInput, _: &CallContext) -> Intent {
        // One that has ended starts again, so it is judged as its type; what is under way was judged at its start.
        let agent = self.run.ended_type(&input.to).unwrap_or_else(|| input.to.clone());
        Intent::new(format!("send a message to agent `{}`", input.to), [Effect::Delegate { agent }])
    }

    /// No diff; a message to an agent that is not there is refused before an approver is asked.
    async fn preview(
        &self,
        input: &SendMessageInput,
        context: &CallContext,
        _: &GrantedFiles,
    ) -> Result<Option<String>, Refusal> {
        let sender = agent_of(&context.session);
        let is_there = BackgroundAgents::of(&context.session).is_running(&input.to, sender.as_deref())
            || self.run.ended_type(&input.to).is_some();
        if is_there { Ok(None) } else { Err(unknown_agent(&input.to)) }
    }

    async fn run(&self, input: SendMessageInput, cleared: Cleared) -> CallResult {
        let session = &cleared.context().session;
        let agents = BackgroundAgents::of(session);
        let note = format!("(a message of the agent that started you)\n{}", input.message);
        if agents.add_message(&input.to, agent_of(session).as_deref(), note) {
            return Ok(Output::text(format!("agent {} gets the message before its next step", input.to)));
        }
        if self.run.ended_type(&input.to).is_none() {
            return Err(unknown_agent(&input.to));
        }
        let work = AgentInput {
            description: input.summary.unwrap_or_else(|| "go on".to_owned()),
            prompt: input.message,
            subagent_type: None,
            model: None,
            max_turns: None,
            resume: Some(input.to),
            mode: None,
            run_in_background: Some(false),
            isolation: None,
            _name: None,
        };
        self.run.run_agent(work, &cleared).await
    }
}

/// The refusal of a message to an agent that is neither under way nor ended.
fn unknown_agent(id: &str) -> Refusal {
    Refusal::new(Code::ToolFailed, format!("there is no agent `{id}` in this session"))
        .hint("give the `agentId` of an agent that you started, or start one with Agent")
}
