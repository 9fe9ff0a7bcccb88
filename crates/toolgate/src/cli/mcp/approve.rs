//! `toolgate mcp approve`: approves how a server is launched, and the definitions of its tools.
//!
//! The server is started to list its tools. What is pinned is what was printed: the server is not asked a second time.

use super::super::context::CliContext;
use super::super::output::{CliOutput, paint, style, to_one_line};
use super::super::{CliError, CliExitCode};
use super::server_list::{describe_transport, pin_key};
use super::upstreams::{UpstreamServers, open_pins};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use toolgate::mcp::client::{PinStore, PinnedDefinition, ServerEntry, ServerState, ToolApproval};
use toolgate::render::escape_invisible;
use toolgate_proto::format_count;

/// A tool whose definition is not the approved one.
pub(super) struct ToolChange {
    /// Its name at the server.
    name: String,
    /// No tool of this name was approved.
    is_new: bool,
    /// What was approved, if it was kept.
    before: Option<PinnedDefinition>,
    /// What the server says of it now.
    now: PinnedDefinition,
}

/// Connects to the server, prints what approval changes, and approves exactly that.
pub(super) fn run(context: &CliContext, name: &str, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let toolgate = context.builder()?.no_builtin_tools().build()?;
    let mut upstreams = UpstreamServers::discover(context, &toolgate.settings(), out)?;
    let server = upstreams.find_server(name)?.clone();
    upstreams.servers = vec![server.clone()];
    let (key, launch) = (pin_key(&server), server.launch_digest());
    let pins = open_pins(context)?;
    // The approval of this launch is stored only after the tools were listed and printed.
    let of_this_connection = PinStore::in_memory();
    of_this_connection.approve(&key, &launch).map_err(CliError::Usage)?;
    let state = upstreams.connect_with_pins(context, &toolgate, of_this_connection)?.into_iter().next();
    let Some(listed) = state.as_ref().and_then(|state| state.listed.as_deref()) else {
        return approve_unlisted(context, &server, &pins, state.as_ref(), out);
    };
    let changes = find_changes(&pins, &key, listed);
    if !context.global.json {
        print_changes(&changes, out)?;
        out.flush()?;
    }
    pins.approve_listed(&key, &launch, listed).map_err(CliError::Usage)?;
    let transport = describe_transport(&server);
    let names: Vec<&String> = listed.keys().collect();
    let done = json!({
        "server": name, "launch": transport, "approved": true, "tools": names,
        "changed": changes.iter().map(ToolChange::to_json).collect::<Vec<Value>>(),
    });
    let new = changes.iter().filter(|change| change.is_new).count();
    let text = format!(
        "approved server `{name}`: {} ({}: {new} new, {} changed)",
        escape_invisible(&transport),
        format_count(listed.len() as u64, "tool", "tools"),
        changes.len() - new
    );
    out.print_done(context.global.json, &done, &text)?;
    Ok(CliExitCode::Ok)
}

/// Approves only how a server is launched, because its tools could not be listed. Tools that are pinned stay so; if
/// nothing but them is left to approve, the command fails.
fn approve_unlisted(
    context: &CliContext,
    server: &ServerEntry,
    pins: &PinStore,
    state: Option<&ServerState>,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let (name, key, launch) = (&server.name, pin_key(server), server.launch_digest());
    let why = match state.map(|state| (&state.error, &state.problems)) {
        Some((Some(error), _)) => error.refusal(name).reason,
        Some((None, problems)) if !problems.is_empty() => format!("server `{name}`: {}", problems.join("; ")),
        Some(_) | None => format!("server `{name}` was not ready in time"),
    };
    if pins.has_tools(&key) && pins.is_launch_approved(&key, &launch) {
        let text = format!(
            "nothing was approved, because the tools of the server cannot be shown: {why}\n  hint: see `toolgate mcp \
             test {name}`, then approve it again"
        );
        match context.global.json {
            true => out.print_json_error(&text, CliExitCode::ToolFailed),
            false => out.print_error(&text),
        }
        return Ok(CliExitCode::ToolFailed);
    }
    pins.approve_listed(&key, &launch, &BTreeMap::new()).map_err(CliError::Usage)?;
    let rest = match pins.has_tools(&key) {
        true => "tools that changed since they were approved stay held back",
        false => "its tools are approved as they are at the first connection",
    };
    out.print_required_note(&format!("{why}; only its launch is approved, and {rest}"));
    let transport = describe_transport(server);
    let done =
        json!({ "server": name, "launch": transport, "approved": true, "tools": null, "changed": null });
    let text = format!("approved server `{name}`: {}", escape_invisible(&transport));
    out.print_done(context.global.json, &done, &text)?;
    Ok(CliExitCode::Ok)
}

/// The tools whose definitions are not the approved ones, in the order of their names.
pub(super) fn find_changes(
    pins: &PinStore,
    key: &str,
    listed: &BTreeMap<String, PinnedDefinition>,
) -> Vec<ToolChange> {
    let compare = |(name, now): (&String, &PinnedDefinition)| {
        let (is_new, before) = match pins.compare_tool(key, name, now) {
            ToolApproval::Same => return None,
            ToolApproval::New => (true, None),
            ToolApproval::Changed(before) => (false, before),
        };
        Some(ToolChange { name: name.clone(), is_new, before, now: now.clone() })
    };
    listed.iter().filter_map(compare).collect()
}

/// Prints each tool with what is new about it.
pub(super) fn print_changes(changes: &[ToolChange], out: &mut CliOutput) -> Result<(), CliError> {
    for change in changes {
        let parts = change.changed_parts();
        let is_whole = change.before.is_none() || parts.is_empty();
        let what = match (change.is_new, is_whole) {
            (true, _) => "new tool",
            (false, true) => "changed tool, shown in full because what was approved is not kept:",
            (false, false) => "changed tool",
        };
        out.print_line(&format!("  {} `{}`", paint(style::ASK, what), to_one_line(&change.name)))?;
        for (part, lines) in if is_whole { change.whole_parts() } else { parts } {
            out.print_line(&format!("    {part}"))?;
            for (sign, line) in lines {
                let style = if sign == '-' { style::BAD } else { style::GOOD };
                out.print_line(&format!("      {} {}", paint(style, &sign.to_string()), to_one_line(&line)))?;
            }
        }
    }
    Ok(())
}

/// Lines of a part, each with `-` or `+`.
type SignedLines = Vec<(char, String)>;

impl ToolChange {
    /// The change for `--json`; what was approved is null if it was not kept.
    pub(super) fn to_json(&self) -> Value {
        let before = self.before.as_ref().map(PinnedDefinition::to_json);
        json!({ "name": self.name, "new": self.is_new, "before": before, "now": self.now.to_json() })
    }

    /// Whether a tool of this name was approved.
    pub(super) fn is_of_approved_tool(&self) -> bool {
        !self.is_new
    }

    /// The parts that differ from what was approved, with the lines that went and came.
    fn changed_parts(&self) -> Vec<(&'static str, SignedLines)> {
        let Some(before) = &self.before else { return Vec::new() };
        let parts = before.parts().zip(self.now.parts());
        let parts = parts.map(|((name, old), (_, new))| (name, diff_parts(old, new)));
        parts.filter(|(_, lines)| !lines.is_empty()).collect()
    }

    /// The parts as they are now. A schema is one line of JSON.
    fn whole_parts(&self) -> Vec<(&'static str, SignedLines)> {
        let lines = |part: &Value| match part {
            Value::Null => Vec::new(),
            Value::String(_) => part_lines(part),
            _ => vec![part.to_string()],
        };
        let signed = |part: &Value| lines(part).into_iter().map(|line| ('+', line)).collect::<SignedLines>();
        let parts = self.now.parts().map(|(name, part)| (name, signed(part)));
        parts.filter(|(_, lines)| !lines.is_empty()).collect()
    }
}

/// A part of a definition as lines: those of a text, or one for each value in a schema.
fn part_lines(part: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    match part {
        Value::Null => {}
        Value::String(text) => lines.extend(text.split('\n').map(str::to_owned)),
        schema => add_value_lines(String::new(), schema, &mut lines),
    }
    lines
}

/// Adds a line for each value in a JSON value, after the path to it. A list without objects is one value. The depth is
/// that of JSON from the server, which its parser limits.
fn add_value_lines(path: String, value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, field) in fields {
                add_value_lines(format!("{path}/{}", quote_key(key)), field, lines);
            }
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            for (index, item) in items.iter().enumerate() {
                add_value_lines(format!("{path}[{index}]"), item, lines);
            }
        }
        value => lines.push(format!("{path}: {value}")),
    }
}

/// A key in a path; in quotes where it could be read as more than one.
fn quote_key(key: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$' | '.');
    if !key.is_empty() && key.chars().all(is_plain) { key.to_owned() } else { Value::from(key).to_string() }
}

/// How two versions of a part differ; nothing only if they are equal.
fn diff_parts(before: &Value, now: &Value) -> SignedLines {
    let lines = diff_lines(&part_lines(before), &part_lines(now));
    if lines.is_empty() && before != now {
        return vec![('-', before.to_string()), ('+', now.to_string())];
    }
    lines
}

/// The lines between the equal beginning and the equal end of two texts: first those that went, then those that came.
fn diff_lines(before: &[String], now: &[String]) -> SignedLines {
    let start = before.iter().zip(now).take_while(|(old, new)| old == new).count();
    let (before, now) = (before.get(start..).unwrap_or_default(), now.get(start..).unwrap_or_default());
    let end = before.iter().rev().zip(now.iter().rev()).take_while(|(old, new)| old == new).count();
    let middle = |lines: &[String], sign: char| -> SignedLines {
        lines.iter().take(lines.len().saturating_sub(end)).map(|line| (sign, line.clone())).collect()
    };
    [middle(before, '-'), middle(now, '+')].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(before: Option<Value>, now: Value) -> ToolChange {
        let to_definition = |value| serde_json::from_value::<PinnedDefinition>(value).unwrap();
        ToolChange {
            name: "t".to_owned(),
            is_new: false,
            before: before.map(to_definition),
            now: to_definition(now),
        }
    }

    fn shown(parts: &[(&str, SignedLines)]) -> Vec<String> {
        let lines = parts.iter().flat_map(|(part, lines)| lines.iter().map(move |line| (part, line)));
        lines.map(|(part, (sign, line))| format!("{part} {sign}{line}")).collect()
    }

    #[test]
    fn only_what_differs_is_shown_and_all_of_it() {
        let tool = |description: &str, kind: &str, required: Value| {
            let schema = json!({
                "type": "object",
                "properties": { "a": { "type": kind, "description": "A\nnumber" }, "b": { "type": "string" } },
                "required": required,
            });
            json!(["t", null, description, schema, null])
        };
        let before = tool("one\ntwo\nthree", "integer", json!(["a"]));
        let now = tool("one\n2\nthree", "string", json!(["a", "b"]));
        let parts = changed(Some(before.clone()), now.clone()).changed_parts();
        assert_eq!(
            shown(&parts),
            [
                "description -two",
                "description +2",
                "inputSchema -/properties/a/type: \"integer\"",
                "inputSchema -/properties/a/description: \"A\\nnumber\"",
                "inputSchema -/properties/b/type: \"string\"",
                "inputSchema -/required: [\"a\"]",
                "inputSchema +/properties/a/type: \"string\"",
                "inputSchema +/properties/a/description: \"A\\nnumber\"",
                "inputSchema +/properties/b/type: \"string\"",
                "inputSchema +/required: [\"a\",\"b\"]",
            ]
        );
        assert!(changed(Some(before.clone()), before.clone()).changed_parts().is_empty());
        // An ending that only adds a line break, and a part that is added, are shown too.
        let longer = tool("one\ntwo\nthree\n", "integer", json!(["a"]));
        assert_eq!(shown(&changed(Some(before.clone()), longer).changed_parts()), ["description +"]);
        let mut titled = before.clone();
        titled[1] = json!("");
        assert_eq!(shown(&changed(Some(before), titled).changed_parts()), ["title +"]);
        // Keys that look like paths, and an order of keys, which the digest tells apart.
        let schema = |schema: Value| changed(None, json!(["t", null, null, schema, null])).now;
        for (old, new) in [
            (json!({ "a/b": "x", "c": [{ "y": 1 }] }), json!({ "a": { "b": "x" }, "c[0]": { "y": 1 } })),
            (json!({ "a": null }), json!({ "a": "null" })),
            (json!({ "a": {} }), json!({ "a": [] })),
        ] {
            let (old, new) = (schema(old), schema(new));
            let change = ToolChange { name: "t".to_owned(), is_new: false, before: Some(old), now: new };
            assert!(!change.changed_parts().is_empty(), "{:?}", change.now);
        }
        let whole = changed(None, now);
        assert!(whole.changed_parts().is_empty());
        let lines = shown(&whole.whole_parts());
        assert_eq!(lines.iter().filter(|line| line.starts_with("description +")).count(), 3, "{lines:?}");
        assert!(lines.iter().any(|line| line.starts_with("inputSchema +{\"type\":\"object\"")), "{lines:?}");
    }
}
