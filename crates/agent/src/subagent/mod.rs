//! Subagents: agents that the model starts for parts of its work.

mod agent_definition;
mod agent_tool;
mod agent_worktree;
mod background_agents;
mod send_message;
mod subagent_run;

pub use agent_definition::{AgentDefinition, AgentIsolation, AgentTypes};
pub use agent_tool::SubagentSource;
pub use background_agents::BackgroundAgents;
pub use subagent_run::SubagentParts;
