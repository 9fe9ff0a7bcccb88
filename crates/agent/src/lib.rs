//! An agent on the gate: model providers, the loop of a turn, subagents and sessions.
//!
//! The principal type is [`AgentLoop`]: a conversation, a [`ModelClient`](provider::ModelClient) and a
//! [`Gate`](toolgate_gate::Gate).
//! Every call that the model makes crosses the gate like any other; there is no second way to a tool here.
//!
//! An [`AgentObserver`] sees everything as it happens (a terminal, a host program, a transcript), and an [`AgentHook`] may
//! object to prompts and to the end of a turn.
//!
//! The crate does not know terminals, command lines or the control protocol of hosts, and opens no sockets and no files
//! itself: `toolgate-net` and `toolgate-files` do.

#![forbid(unsafe_code)]

mod agent_event;
mod agent_hook;
mod agent_loop;
mod agent_settings;
mod compaction;
pub mod conversation;
mod model_answer;
mod project_instructions;
mod prompt_expander;
pub mod provider;
pub mod session;

mod start_session;
mod structured_output;
pub mod subagent;
mod system_prompt;
mod token_usage;
mod transcript_path;
mod turn_model;
mod turn_report;
mod turn_state;

pub use agent_event::{AgentEvent, AgentObserver, AgentOrigin, FinishedAgentCall, RetryNotice, TaskNotice};
pub use agent_hook::{AgentHook, AgentHookAnswer, AgentHookList, AgentMoment};
pub use agent_loop::{AgentLoop, AgentParts, new_message_id};
pub use agent_settings::AgentSettings;
pub use project_instructions::{InstructionFile, InstructionPlaces, read_instructions, render_instructions};
pub use prompt_expander::{ExpandedPrompt, PromptExpander};
pub use structured_output::{STRUCTURED_OUTPUT_TOOL, StructuredOutputSource};
pub use system_prompt::{AgentSurroundings, SystemPromptParts, build_system_prompt, describe_surroundings};
pub use token_usage::{ModelPrice, ModelTotal, TokenUsage, UsageMeter};
pub use transcript_path::TranscriptPath;
pub use turn_model::TurnModel;
pub use turn_report::{DeniedCall, TurnEnding, TurnReport};
