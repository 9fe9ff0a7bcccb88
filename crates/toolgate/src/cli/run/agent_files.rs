//! Types of subagents from files: `agents/**/*.md` of the user, the project and the administrator.

use super::super::output::CliOutput;
use toolgate::Toolgate;
use toolgate::agent::subagent::AgentDefinition;
use toolgate::skills::{CapabilityScope, CatalogAgent};
use toolgate_proto::Mode;

/// Reads every usable file, with whose it is. What is left out is said.
pub(super) fn read_agent_files(
    toolgate: &Toolgate,
    out: &mut CliOutput,
) -> Vec<(CapabilityScope, AgentDefinition)> {
    let Some(skills) = toolgate.skills() else { return Vec::new() };
    let mut read = Vec::new();
    for agent in skills.current().agents() {
        match read_agent(agent) {
            Ok(definition) => read.push((agent.scope.clone(), definition)),
            Err(problem) => {
                out.print_note(&format!("agent `{}` of {} is left out: {problem}", agent.name, agent.file));
            }
        }
    }
    read
}

/// The type that a file describes. One that could do more than the file lets it is no type at all.
fn read_agent(agent: &CatalogAgent) -> Result<AgentDefinition, String> {
    let file = &agent.definition;
    if file.hooks.is_some() {
        return Err("its `hooks` would not run; put them into settings".to_owned());
    }
    let mode = match &file.permission_mode {
        Some(mode) => Some(mode.parse::<Mode>().map_err(|unknown| format!("{unknown}"))?),
        None => None,
    };
    let mut prompt = file.body.clone();
    if !file.skills.is_empty() {
        let names = file.skills.join(", ");
        prompt.push_str(&format!("\n\nSkills for your work, to be loaded with the tool `Skill`: {names}."));
    }
    let mut definition = AgentDefinition::new(agent.name.clone(), file.description.clone(), prompt);
    definition.tools.clone_from(&file.tools);
    definition.disallowed_tools.clone_from(&file.disallowed_tools);
    definition.model = file.model.clone().filter(|model| model != "inherit");
    definition.max_turns = file.max_turns.map(|turns| u32::try_from(turns).unwrap_or(u32::MAX));
    definition.mode = mode;
    Ok(definition)
}
