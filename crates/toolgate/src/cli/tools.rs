//! `toolgate tools`: what a model is shown.

use super::args::ToolsArgs;
use super::out::{Out, paint, style};
use super::world::{World, print_notes};
use super::{Exit, Failure};
use toolgate::{Format, ToolDefinition, render::render_definitions};

pub(crate) fn run(world: &World, args: &ToolsArgs, out: &mut Out) -> Result<Exit, Failure> {
    let toolgate = world.builder()?.build()?;
    print_notes(&toolgate, out);
    let mut tools = toolgate.tools();
    if let Some(name) = &args.name {
        tools.retain(|tool| tool.name.as_str() == name || tool.aliases.contains(name));
        if tools.is_empty() {
            return Err(Failure::Usage(format!("there is no tool `{name}` here; see `toolgate tools`")));
        }
    }
    let format = args.format.or(world.global.json.then_some(Format::Json));
    match (format, args.name.is_some()) {
        (Some(format), _) => {
            let text = serde_json::to_string_pretty(&render_definitions(&tools, format))
                .map_err(|error| Failure::Usage(error.to_string()))?;
            out.line(&text)?;
        }
        (None, true) => tools.iter().try_for_each(|tool| describe(tool, out))?,
        (None, false) => list(&tools, out)?,
    }
    Ok(Exit::Ok)
}

fn list(tools: &[ToolDefinition], out: &mut Out) -> Result<(), Failure> {
    let width = tools.iter().map(|tool| tool.name.as_str().len()).max().unwrap_or(0);
    for tool in tools {
        let first = tool.description.split(". ").next().unwrap_or_default().trim_end_matches('.');
        let kind = if tool.annotations.read_only_hint { "reads  " } else { "changes" };
        out.line(&format!(
            "{}  {}  {first}",
            paint(style::BOLD, &format!("{:width$}", tool.name)),
            paint(style::FAINT, kind)
        ))?;
    }
    Ok(())
}

fn describe(tool: &ToolDefinition, out: &mut Out) -> Result<(), Failure> {
    out.line(&format!("{}  {}", paint(style::BOLD, tool.name.as_str()), tool.title))?;
    out.line(&format!("from {}", tool.source))?;
    if !tool.aliases.is_empty() {
        out.line(&format!("also called {}", tool.aliases.join(", ")))?;
    }
    out.line(&format!("\n{}\n\ninput:", tool.description))?;
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
        out.line(&format!(
            "  {} {}  {}",
            paint(style::BOLD, name),
            paint(style::FAINT, &format!("({}{needed})", text("type"))),
            text("description")
        ))?;
    }
    for example in &tool.input_examples {
        out.line(&format!("\nexample:\n  toolgate call {} '{example}'", tool.name))?;
    }
    Ok(())
}
