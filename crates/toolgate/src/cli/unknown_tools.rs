//! What is wrong with the name of a tool that does not exist: a misspelled tool or server, a server that is not
//! configured, or one whose entry cannot be used.

use super::context::CliContext;
use super::mcp::{UpstreamServers, parse_server_name};
use super::output::CliOutput;
use std::collections::BTreeSet;
use toolgate::settings::LoadedSettings;
use toolgate::{CallOutcome, Code, Toolgate};
use toolgate_gate::find_meant_tool;
use toolgate_proto::find_intended_name;

/// The most servers that a hint lists.
const MAX_LISTED_SERVERS: usize = 10;

/// Why there is no such tool.
#[derive(Debug)]
pub(crate) struct UnknownTool {
    /// What is wrong with its server, if it has one that cannot start.
    pub(crate) reason: Option<String>,
    /// What to do.
    pub(crate) hint: String,
}

impl UnknownTool {
    /// Looks for the server of a name `mcp__SERVER__TOOL`. `None` for another name, and for a configured server, which
    /// says itself what tools it has.
    pub(crate) fn find_server_of(
        context: &CliContext,
        settings: &LoadedSettings,
        name: &str,
    ) -> Option<Self> {
        let server = parse_server_name(name)?;
        // What is wrong with the lists was reported when they were read for the command.
        let mut quiet = CliOutput::new(context.global.color, true);
        let upstreams = UpstreamServers::discover(context, settings, &mut quiet).ok()?;
        let mut known: Vec<&str> = upstreams.servers.iter().map(|entry| entry.name.as_str()).collect();
        if known.contains(&server) {
            return None;
        }
        let mark = format!("server `{server}`: ");
        let mut problems: Vec<&str> = upstreams
            .problems
            .iter()
            .filter_map(|problem| problem.split_once(mark.as_str()))
            .map(|(_, problem)| problem)
            .collect();
        if let Some(problem) = problems.pop() {
            let hint =
                problems.first().map_or("correct its entry, then see `toolgate mcp list`", |hint| *hint);
            let reason = Some(format!("server `{server}` cannot start: {problem}"));
            return Some(Self { reason, hint: hint.to_owned() });
        }
        let tool = name.strip_prefix(&format!("mcp__{server}")).unwrap_or_default();
        let hint = match find_intended_name(server, known.iter().copied()) {
            Some(meant) => format!("did you mean `mcp__{meant}{tool}`?"),
            None if known.is_empty() => "no MCP server is configured; `toolgate mcp add` adds one".to_owned(),
            None => {
                known.truncate(MAX_LISTED_SERVERS);
                format!("the configured servers are `{}`; see `toolgate mcp list`", known.join("`, `"))
            }
        };
        Some(Self { reason: None, hint })
    }

    /// The same for any name: a name of ours is compared with those of the tools.
    pub(crate) fn find(
        context: &CliContext,
        settings: &LoadedSettings,
        name: &str,
        tools: &BTreeSet<String>,
    ) -> Self {
        Self::find_server_of(context, settings, name).unwrap_or_else(|| {
            let hint = match find_meant_tool(name, tools.iter().map(String::as_str)) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "`toolgate tools` lists the tools".to_owned(),
            };
            Self { reason: None, hint }
        })
    }
}

/// Says why the server of a called tool does not exist. A result in a format for models stays as it is, because it does
/// not depend on what the user configured; there the user gets a note.
pub(crate) fn explain_unknown_servers(
    context: &CliContext,
    toolgate: &Toolgate,
    outcomes: &mut [CallOutcome],
    is_for_user: bool,
    out: &mut CliOutput,
) {
    for outcome in outcomes {
        let Err(refusal) = &mut outcome.result else { continue };
        if refusal.code != Code::UnknownTool {
            continue;
        }
        let name = outcome.record.asked.as_str();
        let Some(unknown) = UnknownTool::find_server_of(context, &toolgate.settings(), name) else {
            continue;
        };
        if is_for_user {
            refusal.reason = unknown.reason.unwrap_or_else(|| refusal.reason.clone());
            refusal.hint = unknown.hint;
        } else {
            let reason = unknown.reason.unwrap_or_else(|| format!("there is no tool `{name}`"));
            out.print_note(&format!("{reason} ({})", unknown.hint));
        }
    }
}
