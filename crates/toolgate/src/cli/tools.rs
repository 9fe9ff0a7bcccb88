//! `toolgate tools`: lists the tools that a model is offered, describes one, or prints definitions for a provider.

use super::context::{CliContext, print_notes};
use super::listed_values::{list_formats, list_tools};
use super::mcp::{UpstreamServers, parse_server_name};
use super::output::{CliOutput, paint, style};
use super::unknown_tools::UnknownTool;
use super::{CliError, CliExitCode};
use std::collections::BTreeSet;
use toolgate::{DefinitionFormat, ToolDefinition, Toolgate, Toolset, render::render_definitions};
use toolgate_proto::format_count;

/// Arguments of `toolgate tools`.
#[derive(Debug, clap::Args)]
pub(crate) struct ToolsArgs {
    /// Describe only this tool
    #[arg(value_parser = list_tools(), hide_possible_values = true)]
    pub(crate) name: Option<String>,
    /// Print definitions in a provider's format
    #[arg(long, value_name = "FORMAT", value_parser = list_formats())]
    pub(crate) format: Option<DefinitionFormat>,
    /// Include the optional tools, which models are offered only with --tool-groups
    #[arg(long)]
    pub(crate) all: bool,
    /// List the tools of toolgate only, without starting the configured MCP servers
    #[arg(long)]
    pub(crate) no_servers: bool,
}

/// Prints the tools that the settings leave visible.
pub(crate) fn run(
    context: &CliContext,
    args: &ToolsArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let toolgate = context.builder()?.build()?;
    print_notes(&toolgate, out);
    connect_servers(context, args, &toolgate, out)?;
    let mut tools = toolgate.tools();
    let unlisted = toolgate.gate().unlisted_tools(toolgate.session());
    if args.all || args.name.is_some() {
        tools.extend(unlisted.iter().map(|tool| tool.definition().clone()));
    }
    if let Some(name) = &args.name {
        let known: BTreeSet<String> = tools.iter().map(|tool| tool.name.as_str().to_owned()).collect();
        tools.retain(|tool| tool.name.as_str() == name || tool.aliases.contains(name));
        if tools.is_empty() {
            let UnknownTool { reason, hint } = UnknownTool::find(context, &toolgate.settings(), name, &known);
            let reason = reason.unwrap_or_else(|| format!("unknown tool `{name}`"));
            return Err(CliError::Usage(format!("{reason}\n  hint: {hint}")));
        }
    }
    let format = args.format.or(context.global.json.then_some(DefinitionFormat::Json));
    match (format, args.name.is_some()) {
        (Some(format), _) => {
            let text = serde_json::to_string_pretty(&render_definitions(&tools, format))
                .map_err(|error| CliError::Usage(error.to_string()))?;
            out.print_line(&text)?;
        }
        (None, true) => tools.iter().try_for_each(|tool| describe(tool, context, out))?,
        (None, false) => {
            list(&tools, out)?;
            if tools.is_empty() {
                out.print_note(explain_empty_list(context));
            }
            if !args.all && !unlisted.is_empty() {
                // Tools of servers that wait for a search have none.
                let groups: BTreeSet<&str> =
                    unlisted.iter().filter_map(|tool| tool.spec().group.as_deref()).collect();
                let groups = groups.into_iter().collect::<Vec<_>>().join(", ");
                out.print_note(&format!(
                    "{} not listed (groups: {groups}); --all lists all, --tool-groups offers a group to models",
                    format_count(unlisted.len() as u64, "optional tool is", "optional tools are")
                ));
            }
        }
    }
    Ok(CliExitCode::Ok)
}

/// Connects to the configured MCP servers, so that their tools are listed. For one tool only its own server is started,
/// and for a built-in tool none.
fn connect_servers(
    context: &CliContext,
    args: &ToolsArgs,
    toolgate: &Toolgate,
    out: &mut CliOutput,
) -> Result<(), CliError> {
    if args.no_servers {
        return Ok(());
    }
    let mut upstreams = UpstreamServers::discover(context, &toolgate.settings(), out)?;
    if let Some(name) = &args.name {
        let wanted = parse_server_name(name);
        upstreams.servers.retain(|server| wanted == Some(server.name.as_str()));
    }
    if upstreams.servers.is_empty() {
        return Ok(());
    }
    for state in upstreams.connect_once(context, toolgate)? {
        if let Some(error) = &state.error {
            let refusal = error.refusal(&state.name);
            out.print_note(&format!("{} ({})", refusal.reason, refusal.hint));
        }
        for problem in &state.problems {
            out.print_note(&format!("server `{}`: {problem}", state.name));
        }
    }
    Ok(())
}

/// One line per tool: name, whether it only reads, and the first sentence of its description.
fn list(tools: &[ToolDefinition], out: &mut CliOutput) -> Result<(), CliError> {
    let width = tools.iter().map(|tool| tool.name.as_str().len()).max().unwrap_or(0);
    for tool in tools {
        let first = tool.description.split(". ").next().unwrap_or_default().trim_end_matches('.');
        let kind = if tool.annotations.read_only_hint { "reads " } else { "writes" };
        out.print_line(&format!(
            "{}  {}  {first}",
            paint(style::BOLD, &format!("{:width$}", tool.name)),
            paint(style::FAINT, kind)
        ))?;
    }
    Ok(())
}

/// Why no tool is offered, and what to do.
fn explain_empty_list(context: &CliContext) -> &'static str {
    match &context.global.tools {
        None => {
            "no tool is offered; settings or rules hide all tools, and `toolgate settings show` prints them"
        }
        Some(_) => {
            "no tool is offered: --tools names none that is here; `toolgate tools --all` lists the names"
        }
    }
}

/// The description, the input fields and the examples of one tool.
fn describe(tool: &ToolDefinition, context: &CliContext, out: &mut CliOutput) -> Result<(), CliError> {
    out.print_line(&format!("{}  {}", paint(style::BOLD, tool.name.as_str()), tool.title))?;
    out.print_line(&format!("source: {}", tool.source))?;
    if !tool.aliases.is_empty() {
        out.print_line(&format!("aliases: {}", tool.aliases.join(", ")))?;
    }
    out.print_line(&format!("\n{}\n\ninput:", tool.description))?;
    let required = |name: &str| {
        tool.input_schema
            .get("required")
            .and_then(serde_json::Value::as_array)
            .is_some_and(|names| names.iter().any(|required| required == name))
    };
    let properties = tool.input_schema.get("properties").and_then(serde_json::Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        let text = |key: &str| schema.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
        let needed = if required(name) { "" } else { ", optional" };
        out.print_line(&format!(
            "  {} {}  {}",
            paint(style::BOLD, name),
            paint(style::FAINT, &format!("({}{needed})", text("type"))),
            text("description")
        ))?;
    }
    // The tool has this name only in its toolset.
    let options = match context.global.toolset {
        Toolset::Claude => "",
        Toolset::Plain => "--toolset plain ",
    };
    for example in &tool.input_examples {
        out.print_line(&format!("\nexample:\n  toolgate {options}call {} '{example}'", tool.name))?;
    }
    Ok(())
}
