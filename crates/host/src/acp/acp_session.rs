//! What a program gives to the server of an editor for one session.

use crate::host_driver::HostControls;
use crate::permission_answer::TurnInterrupt;
use serde_json::Value;
use std::sync::Arc;
use toolgate_agent::AgentLoop;
use toolgate_proto::Mode;

/// A session's agent, and what the editor may ask about it.
#[non_exhaustive]
pub struct AcpSession {
    /// The agent.
    pub agent: Arc<AgentLoop>,
    /// Answers that need the program around the session.
    pub controls: Arc<dyn HostControls>,
    /// The turn under way.
    pub turn: Arc<TurnInterrupt>,
    /// The modes that the user may choose.
    pub modes: Vec<Mode>,
    /// The commands, as `name`, `description` and `argumentHint`.
    pub commands: Vec<Value>,
}

impl AcpSession {
    /// A session without modes and commands for the user to choose.
    pub fn new(agent: Arc<AgentLoop>, controls: Arc<dyn HostControls>, turn: Arc<TurnInterrupt>) -> Self {
        Self { agent, controls, turn, modes: Vec::new(), commands: Vec::new() }
    }

    /// The same, with the modes that the user may choose.
    pub fn with_modes(mut self, modes: Vec<Mode>) -> Self {
        self.modes = modes;
        self
    }

    /// The same, with commands, as `name`, `description` and `argumentHint`.
    pub fn with_commands(mut self, commands: Vec<Value>) -> Self {
        self.commands = commands;
        self
    }
}
