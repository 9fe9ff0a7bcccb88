//! Subagents: agents that the model starts for parts of its work.

mod agent_definition;
mod agent_tool;

pub use agent_definition::{AgentDefinition, AgentTypes};
pub use agent_tool::{SubagentParts, SubagentSource};
