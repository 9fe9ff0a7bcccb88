//! The tools that a Gemini CLI rule is about, under toolgate's names.

use super::{GeminiRule, StringOrList};

/// Built-in tools of the Gemini CLI, each with toolgate's tool for the same purpose.
const TOOL_EQUIVALENTS: &[(&str, &str)] = &[
    ("read_file", "Read"),
    ("read_many_files", "read_many_files"),
    ("list_directory", "ls"),
    ("glob", "Glob"),
    ("grep_search", "Grep"),
    ("search_file_content", "Grep"),
    ("write_file", "Write"),
    ("replace", "Edit"),
    ("web_fetch", "WebFetch"),
    ("google_web_search", "WebSearch"),
    ("invoke_agent", "Agent"),
    ("codebase_investigator", "Agent"),
    ("activate_skill", "Skill"),
    ("write_todos", "TodoWrite"),
    ("ask_user", "AskUserQuestion"),
    ("save_memory", "memory"),
    ("enter_plan_mode", "EnterPlanMode"),
    ("exit_plan_mode", "ExitPlanMode"),
];

/// The subject of a rule.
pub(super) enum GeminiRuleSubject {
    /// Command lines.
    Shell,
    /// A tool of toolgate.
    Tool(&'static str),
    /// A tool that toolgate does not have: an agent, or a tool of an extension.
    Unknown(String),
    /// Tools of MCP servers, as a permission rule names them.
    Server(String),
}

/// The subjects of a rule. An error says what is missing.
pub(super) fn rule_subjects(rule: &GeminiRule) -> Result<Vec<GeminiRuleSubject>, &'static str> {
    let names = rule.tool_name.as_ref().map(StringOrList::texts);
    if let Some(server) = &rule.mcp_name {
        let names = names.unwrap_or_else(|| vec!["*"]);
        return Ok(names.iter().map(|name| server_subject(server, name)).collect());
    }
    let names = names.ok_or("`toolName` or `mcpName` is missing")?;
    let mut subjects = Vec::new();
    for name in names {
        match name {
            "*" => add_every_subject(&mut subjects),
            "run_shell_command" | "ShellTool" => subjects.push(GeminiRuleSubject::Shell),
            "mcp_*" => subjects.push(server_subject("*", "*")),
            _ => subjects.push(named_subject(name)),
        }
    }
    Ok(subjects)
}

/// Command lines, every tool of toolgate, and every tool of every MCP server.
fn add_every_subject(subjects: &mut Vec<GeminiRuleSubject>) {
    subjects.push(GeminiRuleSubject::Shell);
    for (_, ours) in TOOL_EQUIVALENTS {
        if !subjects.iter().any(|other| matches!(other, GeminiRuleSubject::Tool(name) if name == ours)) {
            subjects.push(GeminiRuleSubject::Tool(ours));
        }
    }
    subjects.push(server_subject("*", "*"));
}

/// The subject of one name: `mcp_server_tool`, a built-in tool, `server__tool`, or anything else.
fn named_subject(name: &str) -> GeminiRuleSubject {
    if let Some((server, tool)) = name.strip_prefix("mcp_").and_then(|rest| rest.split_once('_')) {
        return server_subject(server, tool);
    }
    let ours = TOOL_EQUIVALENTS.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| ours);
    match (ours, name.split_once("__")) {
        (Some(ours), _) => GeminiRuleSubject::Tool(ours),
        (None, Some((server, tool))) => server_subject(server, tool),
        (None, None) => GeminiRuleSubject::Unknown(name.to_owned()),
    }
}

/// The permission rule for a tool of a server; `*` means every tool, or every server.
fn server_subject(server: &str, tool: &str) -> GeminiRuleSubject {
    let server = normalise_server(server);
    GeminiRuleSubject::Server(match (server.as_str(), tool) {
        ("*", "*") => "mcp__*".to_owned(),
        (server, "*") => format!("mcp__{server}"),
        (server, tool) => format!("mcp__{server}__{tool}"),
    })
}

/// A server's name as permission rules spell it; `*` stays.
fn normalise_server(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*') { c } else { '_' })
        .collect()
}
