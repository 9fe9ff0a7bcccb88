//! Hooks of agents that are files.

use super::capability_file::CatalogAgent;
use super::skill_trust::TrustSubject;
use crate::hooks::HookOwner;
use crate::toolgate::Toolgate;
use toolgate_agent::AgentHookList;
use toolgate_gate::SessionHooks;

/// The hooks of an agent, ready to run.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CatalogAgentHooks {
    /// For its calls, and those of agents that it starts.
    pub calls: SessionHooks,
    /// For its start and its end.
    pub agent_hooks: AgentHookList,
    /// Events that are not raised for an agent.
    pub skipped: Vec<String>,
}

impl Toolgate {
    /// The hooks of an agent. The error says why they cannot run: such an agent could do what its file keeps it from.
    pub fn agent_hooks(&self, agent: &CatalogAgent) -> Result<CatalogAgentHooks, String> {
        let Some(hooks) = &agent.definition.hooks else { return Ok(CatalogAgentHooks::default()) };
        let owner =
            HookOwner { scope: agent.scope.clone(), plugin: agent.plugin.clone(), file: agent.file.clone() };
        let skills = self.skills().ok_or("there are no files of agents")?;
        let built = skills.build_hooks(&owner, Some(hooks), TrustSubject::of_agent(agent))?;
        Ok(CatalogAgentHooks {
            calls: SessionHooks::new(built.calls),
            agent_hooks: AgentHookList(built.agent_hooks),
            skipped: built.skipped,
        })
    }
}
