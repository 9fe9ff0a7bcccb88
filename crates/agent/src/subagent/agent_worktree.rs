//! A git worktree for one subagent, so that agents that change files do not disturb each other or the checkout.
//!
//! The worktree is made and left by calls of `EnterWorktree` and `ExitWorktree` through the gate: judged by the same rules,
//! on record, with the call of `Agent` as their parent. A session of its own makes these calls; the agent works in a part
//! of it, and a part of a session cannot leave a root that it did not enter.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use toolgate_gate::{CallOptions, Gate, Session};
use toolgate_proto::{AbsPath, Output, Refusal, ToolCall};

/// The tools that make and leave a worktree.
const ENTER_TOOL: &str = "EnterWorktree";
const EXIT_TOOL: &str = "ExitWorktree";
/// Characters of an agent's id in the name of its worktree.
const ID_CHARS: usize = 12;

/// A worktree in which a subagent works.
pub(super) struct AgentWorktree {
    gate: Arc<Gate>,
    /// The part of the session that entered it.
    outer: Session,
    /// Its directory.
    path: String,
}

/// What became of a worktree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LeftAgentWorktree {
    /// Its directory, if it is still there.
    pub(super) path: Option<String>,
    /// Its branch, if that is known.
    pub(super) branch: Option<String>,
    /// The note to the agent that started it.
    pub(super) note: String,
}

impl AgentWorktree {
    /// Makes a worktree for an agent, or enters the one that it left.
    pub(super) async fn enter(
        gate: &Arc<Gate>,
        agent: &Session,
        (id, left): (&str, Option<&str>),
        cancel: &CancellationToken,
    ) -> Result<Self, Refusal> {
        let mut limits =
            agent.limits().clone().with_tools(BTreeSet::from([ENTER_TOOL, EXIT_TOOL].map(str::to_owned)));
        // That of the agent's type is for its own calls.
        limits.mode = None;
        let outer = agent.child(agent.principal().clone(), limits);
        let input = match left {
            Some(path) => json!({ "path": path }),
            None => json!({ "name": worktree_name(id) }),
        };
        let made = call(gate, &outer, (ENTER_TOOL, id), input, cancel).await.map_err(|mut refusal| {
            refusal.reason = format!("the agent got no git worktree of its own: {}", refusal.reason);
            refusal
        })?;
        let path = text_of(&made, "worktreePath").unwrap_or_default();
        Ok(Self { gate: Arc::clone(gate), outer, path })
    }

    /// The part of the session in which the agent works.
    pub(super) fn session(&self, agent: &Session) -> Session {
        self.outer.child(agent.principal().clone(), agent.limits().clone())
    }

    /// Its directory.
    pub(super) fn cwd(&self) -> AbsPath {
        self.outer.workspace().cwd.clone()
    }

    /// Leaves it: one without changes is removed, and one with changes stays.
    pub(super) async fn leave(self, id: &str) -> LeftAgentWorktree {
        // Not the agent's own token: one that was stopped leaves its worktree as well.
        let cancel = CancellationToken::new();
        let exit = |action: &'static str| {
            call(&self.gate, &self.outer, (EXIT_TOOL, id), json!({ "action": action }), &cancel)
        };
        if exit("remove").await.is_ok() {
            let note = "its git worktree had no changes and was removed".to_owned();
            return LeftAgentWorktree { note, ..LeftAgentWorktree::default() };
        }
        match exit("keep").await {
            Ok(left) => {
                let branch = text_of(&left, "worktreeBranch");
                let name = branch.as_deref().unwrap_or_default();
                let note = format!("its changes are in the git worktree {} on branch {name}", self.path);
                LeftAgentWorktree { path: Some(self.path), branch, note }
            }
            Err(refusal) => LeftAgentWorktree {
                note: format!("its git worktree {} could not be left: {}", self.path, refusal.reason),
                path: Some(self.path),
                branch: None,
            },
        }
    }
}

/// A name that tells worktrees of agents apart.
fn worktree_name(id: &str) -> String {
    let plain: Vec<char> = id.chars().filter(char::is_ascii_alphanumeric).collect();
    let end: String = plain.iter().skip(plain.len().saturating_sub(ID_CHARS)).collect();
    format!("agent-{end}")
}

/// Makes one call.
async fn call(
    gate: &Gate,
    session: &Session,
    (tool, id): (&str, &str),
    input: Value,
    cancel: &CancellationToken,
) -> Result<Output, Refusal> {
    let call = ToolCall::new(format!("{id}-{tool}"), tool, input.to_string());
    let mut options = CallOptions::default();
    options.cancel = cancel.clone();
    gate.call(session, call, options).await.result
}

/// A text in the structured part of a result.
fn text_of(output: &Output, key: &str) -> Option<String> {
    output.structured.as_ref()?.get(key)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::worktree_name;

    #[test]
    fn names_are_short_and_plain() {
        assert_eq!(worktree_name("agent-0199a3f4c2e17d3e8f1b22cc44dd5566"), "agent-22cc44dd5566");
        assert_eq!(worktree_name("a/../b"), "agent-ab");
    }
}
