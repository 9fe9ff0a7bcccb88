//! What a plugin brings and what it would run, for the user who decides about it.

use super::package::{PluginPackage, PluginServer};
use super::plugin_servers::plugin_server_name;
use crate::hooks::CapabilityHooks;
use crate::settings::values::{HookHandler, HookHandlerKind};
use crate::skills::{CapabilityPlaces, CatalogProblem, PluginIdentity, SkillCatalog};
use serde_json::Value;
use std::collections::BTreeSet;

/// What a plugin brings, one line each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PluginSummary {
    /// What runs outside of the gate once the plugin is approved: hooks, servers, programs.
    pub runs: Vec<String>,
    /// What its skills ask for: tools that they pre-approve, commands that loading them runs.
    pub asks_for: Vec<String>,
    /// The names of its skills, commands, agents and output styles.
    pub brings: Vec<String>,
    /// What is wrong with its files.
    pub problems: Vec<CatalogProblem>,
}

impl PluginPackage {
    /// Describes the plugin. Nothing of it runs.
    pub fn summarize(&self) -> PluginSummary {
        let mut summary = PluginSummary { problems: self.problems.clone(), ..PluginSummary::default() };
        for (event, groups) in &self.hooks {
            for group in groups {
                let tools = group.matcher.as_deref().filter(|matcher| !matcher.is_empty()).unwrap_or("*");
                for handler in &group.hooks {
                    summary.runs.push(format!("hook {event} {tools}: {}", describe_handler(handler)));
                }
            }
        }
        for server in &self.mcp_servers {
            let name = plugin_server_name(self.name(), &server.name);
            summary.runs.push(format!("MCP server {name}: {}", describe_server(server)));
        }
        for server in &self.lsp_servers {
            summary.runs.push(format!("language server {}: {}", server.name, describe_server(server)));
        }
        for program in &self.programs {
            summary.runs.push(format!("program bin/{program}, at the end of the search path of commands"));
        }
        self.add_texts(&mut summary);
        summary
    }

    /// Adds the skills, commands, agents and output styles.
    fn add_texts(&self, summary: &mut PluginSummary) {
        let mut place = self.place.clone();
        place.plugin = Some(PluginIdentity {
            name: self.name().to_owned(),
            root: self.root.clone(),
            data: None,
            approved: None,
        });
        let catalog = SkillCatalog::load(&CapabilityPlaces { places: vec![place] }, None);
        for skill in catalog.skills() {
            summary.brings.push(format!("skill {}", skill.name));
            let definition = &skill.definition;
            add_hooks(summary, &format!("skill {}", skill.name), definition.hooks.as_ref());
            if !definition.allowed_tools.is_empty() {
                let tools = definition.allowed_tools.join(", ");
                summary.asks_for.push(format!("skill {} pre-approves {tools} while it is used", skill.name));
            }
            let template = crate::skills::SkillTemplate::parse(&definition.body, &definition.argument_names);
            for (_, command) in template.commands() {
                summary.asks_for.push(format!("skill {} runs `{command}` through the gate", skill.name));
            }
        }
        for agent in catalog.agents() {
            add_hooks(summary, &format!("agent {}", agent.name), agent.definition.hooks.as_ref());
        }
        summary.brings.extend(catalog.agents().map(|agent| format!("agent {}", agent.name)));
        summary.brings.extend(catalog.output_styles().map(|style| format!("output style {}", style.name)));
        summary.problems.extend(catalog.problems().iter().cloned());
    }
}

/// Adds the hooks of a skill or an agent. Those that cannot be read never run, and a problem of the file says so when it is
/// used.
fn add_hooks(summary: &mut PluginSummary, owner: &str, hooks: Option<&Value>) {
    let read = hooks.and_then(|value| CapabilityHooks::read(value, true).ok()).unwrap_or_default();
    summary.runs.extend(read.describe().into_iter().map(|line| format!("{line}, while {owner} is used")));
}

/// What a hook does.
pub(crate) fn describe_handler(handler: &HookHandler) -> String {
    let text = match handler.kind {
        HookHandlerKind::Command => {
            let args = handler.args.iter().flatten();
            let words: Vec<&str> = handler.command.iter().chain(args).map(String::as_str).collect();
            words.join(" ")
        }
        HookHandlerKind::Http => format!("sends calls to {}", handler.url.as_deref().unwrap_or_default()),
        HookHandlerKind::McpTool => format!("calls tool {}", handler.tool.as_deref().unwrap_or_default()),
        HookHandlerKind::Prompt | HookHandlerKind::Agent => {
            "asks a model, which is not possible here: the calls that it screens are refused".to_owned()
        }
    };
    match handler.on_failure {
        Some(crate::settings::values::HookFailurePolicy::Continue) => {
            format!("{text} (failures are ignored)")
        }
        Some(crate::settings::values::HookFailurePolicy::Block) | None => text,
    }
}

/// The command or address of a server, and the variables of the environment that it gets.
fn describe_server(server: &PluginServer) -> String {
    let text = |key: &str| server.entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let args = server.entry.get("args").and_then(Value::as_array).into_iter().flatten();
    let mut shown = match text("url").or_else(|| text("httpUrl")) {
        Some(url) => url,
        None => text("command")
            .into_iter()
            .chain(args.filter_map(Value::as_str).map(str::to_owned))
            .collect::<Vec<_>>()
            .join(" "),
    };
    let mut variables = BTreeSet::new();
    find_variables(&server.entry, &mut variables);
    if !variables.is_empty() {
        let names: Vec<String> = variables.into_iter().collect();
        shown.push_str(&format!(" (gets {} of your environment)", names.join(", ")));
    }
    shown
}

/// The variables that a definition names, except those of plugins.
fn find_variables(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            for part in text.split("${").skip(1) {
                let name: String =
                    part.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
                let is_own = name.starts_with("CLAUDE_PLUGIN_") || name == "CLAUDE_PROJECT_DIR";
                if !name.is_empty() && !is_own {
                    found.insert(name);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| find_variables(item, found)),
        Value::Object(fields) => fields.values().for_each(|value| find_variables(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
