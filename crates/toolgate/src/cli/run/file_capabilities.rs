//! Agents and output styles that are files: of the user, the project and plugins.

use super::super::CliError;
use super::super::output::CliOutput;
use std::sync::Arc;
use toolgate::agent::subagent::{AgentDefinition, AgentIsolation};
use toolgate::agent::{AgentEnvironment, SystemPromptParts, describe_environment};
use toolgate::skills::{CapabilityScope, CatalogAgent, CatalogStyle, SkillCatalog, find_misspelled_tools};
use toolgate::{Mode, Toolgate};

/// The style that is none.
pub(super) const NO_STYLE: &str = "default";

/// The names of all output styles.
pub(super) fn list_styles(catalog: &SkillCatalog) -> Vec<String> {
    [NO_STYLE.to_owned()].into_iter().chain(catalog.output_styles().map(|style| style.name.clone())).collect()
}

/// The files of a toolgate, as they are now.
pub(super) fn load_file_capabilities(toolgate: &Toolgate) -> Arc<SkillCatalog> {
    toolgate.skills().map(|skills| skills.current()).unwrap_or_default()
}

/// The agents of files: those of the administrator, which count more than what the command line says, or all others.
/// What is left out is reported.
pub(super) fn file_agents(
    toolgate: &Toolgate,
    catalog: &SkillCatalog,
    is_managed: bool,
    out: &mut CliOutput,
) -> Vec<AgentDefinition> {
    let is_wanted = |agent: &&Arc<CatalogAgent>| (agent.scope == CapabilityScope::Managed) == is_managed;
    let mut agents = Vec::new();
    for agent in catalog.agents().filter(is_wanted) {
        match read_agent(toolgate, agent) {
            Ok(definition) => agents.push(definition),
            Err(problem) => {
                out.print_note(&format!("agent `{}` of {} is left out: {problem}", agent.name, agent.file));
            }
        }
    }
    agents
}

/// An agent of a file as a type of subagents. Its mode counts only where it is stricter than that of the session. One that
/// could do more than its file lets it is no type at all.
fn read_agent(toolgate: &Toolgate, agent: &CatalogAgent) -> Result<AgentDefinition, String> {
    let file = &agent.definition;
    if let Some(problem) = &file.unusable {
        return Err(problem.clone());
    }
    let hooks = toolgate.agent_hooks(agent).map_err(|why| format!("its `hooks` cannot run: {why}"))?;
    if let Some(event) = hooks.skipped.first() {
        return Err(format!("its hooks of `{event}` would not run; remove them"));
    }
    let mode = match &file.permission_mode {
        Some(mode) => Some(mode.parse::<Mode>().map_err(|unknown| unknown.to_string())?),
        None => None,
    };
    let prompt = match &agent.plugin {
        Some(plugin) => file.body.replace("${CLAUDE_PLUGIN_ROOT}", &plugin.root.to_string()),
        None => file.body.clone(),
    };
    let mut definition = AgentDefinition::new(&agent.name, &file.description, prompt);
    definition.name_skills(&file.skills);
    definition.tools.clone_from(&file.tools);
    definition.disallowed_tools.clone_from(&file.disallowed_tools);
    definition.model = file.model.clone().filter(|model| model != "inherit");
    definition.max_turns = file.max_turns.map(|turns| u32::try_from(turns).unwrap_or(u32::MAX));
    definition.mode = mode;
    (definition.hooks, definition.agent_hooks) = (hooks.calls, hooks.agent_hooks);
    definition.isolation = match &file.isolation {
        Some(place) => Some(AgentIsolation::from_name(place)?),
        None => None,
    };
    Ok(definition)
}

/// Agents that are no files. A misspelled tool among those that an agent must not use is an error, because the agent would
/// have that tool; one among those that it may use is reported.
pub(super) fn check_agent_tools(
    agents: Vec<AgentDefinition>,
    out: &mut CliOutput,
) -> Result<Vec<AgentDefinition>, String> {
    for agent in &agents {
        if let Some(problem) = find_misspelled_tools("disallowedTools", &agent.disallowed_tools).first() {
            return Err(format!("agent `{}`: {problem}", agent.name));
        }
        for problem in find_misspelled_tools("tools", agent.tools.as_deref().unwrap_or_default()) {
            out.print_note(&format!("agent `{}`: {problem}", agent.name));
        }
    }
    Ok(agents)
}

/// The output style of the run: that of the command line, of the settings, or one that an approved plugin wants.
pub(super) fn find_style(
    toolgate: &Toolgate,
    catalog: &SkillCatalog,
    given: Option<&str>,
    out: &mut CliOutput,
) -> Result<Option<Arc<CatalogStyle>>, CliError> {
    let find = |name: &str| catalog.output_styles().find(|style| style.name == name).cloned();
    let settings = toolgate.settings();
    match (given, settings.merged().output_style.as_deref()) {
        (Some(NO_STYLE), _) | (None, Some(NO_STYLE)) => Ok(None),
        (Some(name), _) => find(name).map(Some).ok_or_else(|| {
            CliError::Usage(format!(
                "there is no output style `{name}`; `toolgate skill list --all` lists the output styles"
            ))
        }),
        (None, Some(name)) => {
            let style = find(name);
            if style.is_none() {
                out.print_note(&format!(
                    "there is no output style `{name}`, which the setting `outputStyle` names"
                ));
            }
            Ok(style)
        }
        (None, None) => Ok(catalog.output_styles().find(|style| is_forced(style)).cloned()),
    }
}

/// Whether a plugin wants its style to be used, and the user approved the plugin.
fn is_forced(style: &CatalogStyle) -> bool {
    let is_approved = style.plugin.as_ref().is_some_and(|plugin| plugin.approved.is_some());
    style.definition.is_forced_by_plugin && is_approved
}

/// Adds a style to the parts of the system prompt: in place of our text, or after it if it keeps the instructions for
/// coding or the caller gave a text.
pub(super) fn apply_style(
    parts: &mut SystemPromptParts,
    style: &CatalogStyle,
    environment: &AgentEnvironment,
) {
    let body = style.definition.body.trim();
    if parts.replacement.is_none() && !style.definition.keeps_coding_instructions {
        parts.replacement = Some(format!("{body}\n\n{}", describe_environment(environment)));
        return;
    }
    let after = parts.appended.take().map(|text| format!("\n\n{text}")).unwrap_or_default();
    parts.appended = Some(format!("{body}{after}"));
}
