//! An agent on the gate: model providers, the loop of a turn, subagents and sessions.
//!
//! Three types matter most:
//!
//! - [`AgentLoop`] joins a conversation, a model and a [`Gate`](toolgate_gate::Gate), and runs turns: request, stream,
//!   calls, results, until the model is done or a limit is reached.
//! - [`ModelClient`](provider::ModelClient) streams answers from a provider. The Messages API, chat completions and the
//!   Responses API become the same [`ModelEvent`](provider::ModelEvent)s; a [`RetryPolicy`](provider::RetryPolicy) says
//!   which failures are tried again.
//! - [`AgentEvent`] is what an [`AgentObserver`] receives as it happens: a terminal, a host program, a transcript. An
//!   [`AgentHook`] may object to prompts and to the end of a turn.
//!
//! Subagents ([`subagent`]) are loops of their own in a child session, which has no permission that its parent lacks.
//! Sessions ([`session`]) are transcripts that are written line by line, so that a killed process loses no finished call.
//!
//! ```
//! use std::sync::Arc;
//! use toolgate_agent::provider::{ModelClient, ProviderConfig, ProviderCredential};
//! use toolgate_agent::conversation::text_block;
//! use toolgate_agent::{AgentLoop, AgentParts, AgentSettings, TurnEnding};
//! use toolgate_gate::{Gate, GateParts, ProviderApi, Session};
//! use toolgate_proto::{AbsPath, Principal, Workspace};
//!
//! # use std::io::{BufRead, BufReader, Read, Write};
//! # let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
//! # let base = format!("http://{}/v1", listener.local_addr().unwrap());
//! # std::thread::spawn(move || {
//! #     let (stream, _) = listener.accept().unwrap();
//! #     let mut reader = BufReader::new(stream);
//! #     let (mut line, mut length) = (String::new(), 0);
//! #     while reader.read_line(&mut line).unwrap() > 2 {
//! #         let lower = line.to_lowercase();
//! #         length = lower.strip_prefix("content-length:").map_or(length, |n| n.trim().parse().unwrap());
//! #         line.clear();
//! #     }
//! #     reader.read_exact(&mut vec![0; length]).unwrap();
//! #     let chunk = r#"{"choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":"stop"}]}"#;
//! #     let body = format!("data: {chunk}\n\ndata: [DONE]\n\n");
//! #     let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n";
//! #     let mut stream = reader.into_inner();
//! #     stream.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).unwrap();
//! # });
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! // `base` is a server on this machine that speaks chat completions, and here answers "hello".
//! let config = ProviderConfig::new(ProviderApi::OpenAiChat, base, ProviderCredential::Absent);
//! let root = AbsPath::new("/").unwrap();
//! let workspace = Workspace::new(root);
//! let gate = Arc::new(Gate::new(GateParts::default()));
//! let session = Session::new("s1".into(), Principal::new("sdk"), workspace);
//! let settings = AgentSettings::new("a-model", "You are brief.");
//! let agent = AgentLoop::new(AgentParts::new(gate, session, ModelClient::new(config), settings));
//! let report = agent.run_turn(vec![text_block("say hello")], &Default::default()).await;
//! assert_eq!((report.ending, report.text.as_str()), (TurnEnding::Completed, "hello"));
//! # });
//! ```
//!
//! The crate has no way to a tool but the gate: every call of the model is validated, judged and recorded there. It does
//! not know terminals, command lines or the control protocol of hosts, and it opens no sockets and no files itself:
//! `toolgate-net` and `toolgate-files` do.

#![forbid(unsafe_code)]

mod agent_event;
mod agent_hook;
mod agent_loop;
mod agent_parts;
mod agent_settings;
mod compaction;
pub mod conversation;
mod gate_event_relay;
mod idle_timer;
mod model_answer;
mod project_instructions;
mod prompt_expander;
pub mod provider;
mod run_agent_hooks;
pub mod session;

mod start_session;
mod structured_output;
pub mod subagent;
mod switch_model;
mod system_prompt;
mod token_usage;
mod transcript_path;
mod turn_model;
mod turn_report;
mod turn_state;

pub use agent_event::{
    AgentEvent, AgentObserver, AgentOrigin, FinishedAgentCall, HookRunNotice, HookRunOutcome, RetryNotice,
    TaskNotice,
};
pub use agent_hook::{AgentHook, AgentHookAnswer, AgentHookEvent, AgentHookList};
pub use agent_loop::{AgentLoop, new_message_id};
pub use agent_parts::AgentParts;
pub use agent_settings::{AgentSettings, EFFORT_LEVELS};
pub use gate_event_relay::GateEventRelay;
pub use idle_timer::IdleTimer;
pub use project_instructions::{
    InstructionFile, InstructionKind, InstructionPlaces, LoadedInstructions, read_instructions,
    render_instructions,
};
pub use prompt_expander::{ExpandedPrompt, PromptCommand, PromptExpander};
pub use structured_output::{STRUCTURED_OUTPUT_TOOL, StructuredOutputSource};
pub use system_prompt::{AgentEnvironment, SystemPromptParts, build_system_prompt, describe_environment};
pub use token_usage::{ModelPrice, ModelTotal, TokenUsage, UsageMeter};
pub use transcript_path::TranscriptPath;
pub use turn_model::TurnModel;
pub use turn_report::{DeniedCall, TurnEnding, TurnReport};
