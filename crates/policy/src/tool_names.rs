//! Names of tools in rules: which are known, and which are misspelled.
//!
//! A deny rule for a tool that does not exist protects nothing. Not every unknown name is an error, because a host
//! program can register tools of any name; a name that is almost that of a known tool is.

use crate::book_tool::BookTool;
use crate::check_mcp_name::{McpNames, check_mcp_name};
use crate::lint;
use crate::policy_book::BookRule;
use crate::raw::{ProblemSeverity, RawPolicy, RuleAction, RuleProblem, UnmatchableRules};
use crate::rule::syntax::{self, RuleSyntaxError};
use serde::Deserialize;
use serde_json::Value;
use std::cell::LazyCell;
use std::collections::BTreeSet;
use toolgate_proto::RuleRef;

pub use toolgate_proto::find_intended_name;

/// Tools of toolgate and of other products whose rules people bring along.
const PRODUCT_TOOLS: &[&str] = &[
    "Agent",
    "Artifact",
    "AskUserQuestion",
    "Bash",
    "BashOutput",
    "Brief",
    "Cd",
    "Config",
    "CronCreate",
    "CronDelete",
    "CronList",
    "Edit",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "FileEdit",
    "FileRead",
    "FileWrite",
    "Glob",
    "Grep",
    "KillBash",
    "KillShell",
    "LS",
    "LSP",
    "ListAgents",
    "ListMcpResources",
    "ListMcpResourcesTool",
    "ListPeers",
    "Monitor",
    "MultiEdit",
    "NotebookEdit",
    "NotebookRead",
    "PowerShell",
    "Projects",
    "PushNotification",
    "REPL",
    "Read",
    "ReadMcpResource",
    "ReadMcpResourceDir",
    "ReadMcpResourceDirTool",
    "ReadMcpResourceTool",
    "RemoteTrigger",
    "ReportFindings",
    "ScheduleWakeup",
    "SendMessage",
    "SendUserMessage",
    "Skill",
    "Sleep",
    "StructuredOutput",
    "Task",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TeamCreate",
    "TeamDelete",
    "TodoRead",
    "TodoWrite",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "Workflow",
    "Write",
    "ask_user",
    "edit_file",
    "glob",
    "grep",
    "list_directory",
    "ls",
    "memory",
    "read_file",
    "read_many_files",
    "replace",
    "run_shell_command",
    "save_memory",
    "search_file_content",
    "shell",
    "task_output",
    "task_stop",
    "web_fetch",
    "web_search",
    "write_file",
    "write_todos",
];

/// Problems of the tool names in rules and policy books. `registered` are the names of the tools of this session, and
/// `mcp` finds the names of MCP servers; it reads files, so it is called only if a rule names a server.
///
/// ```
/// use std::collections::BTreeSet;
/// use toolgate_policy::{Layer, LayerRules, McpNames, RawPolicy, check_tool_names};
/// use toolgate_proto::AbsPath;
///
/// let mut rules = LayerRules::new(Layer::User, AbsPath::root());
/// rules.deny.extend(["Reed(.env)".into(), "mcp__filez".into()]);
/// let raw = RawPolicy::default().with_layers(vec![rules]);
/// let servers = || McpNames { servers: BTreeSet::from(["files".to_owned()]), ..McpNames::default() };
/// let problems = check_tool_names(&raw, &BTreeSet::new(), servers);
/// assert_eq!(problems[0].fix, "did you mean `Read`?");
/// assert_eq!(problems[1].fix, "did you mean `mcp__files`?");
/// ```
pub fn check_tool_names(
    raw: &RawPolicy,
    registered: &BTreeSet<String>,
    mcp: impl FnOnce() -> McpNames,
) -> Vec<RuleProblem> {
    let mut problems = Vec::new();
    let mcp = LazyCell::new(|| mcp().with_tools(registered));
    let mut check = |name: &str, action: RuleAction, reference: &dyn Fn() -> RuleRef| {
        problems.extend(match name.starts_with("mcp__") {
            true => check_mcp_name(name, action, raw.unmatchable_rules, &mcp, reference),
            false => check_name(name, action, raw.unmatchable_rules, registered, reference),
        });
    };
    for layer in &raw.layers {
        let lists = [
            (RuleAction::Deny, &layer.deny),
            (RuleAction::Ask, &layer.ask),
            (RuleAction::Allow, &layer.allow),
        ];
        for (action, rules) in lists {
            for rule in rules {
                let Ok(parsed) = syntax::parse(&rule.text) else { continue };
                check(&parsed.name, action, &|| layer.reference(action, rule));
            }
        }
    }
    for book in &raw.books {
        // One by one: a rule that cannot be used does not hide the problems of the others.
        let rules = book.content.get("rules").and_then(Value::as_array);
        for (index, rule) in rules.into_iter().flatten().enumerate() {
            let Ok(rule) = BookRule::deserialize(rule) else { continue };
            // The compiler of the book reports a value that can name no tool.
            if BookTool::parse(&rule.tool, rule.action).is_err() {
                continue;
            }
            check(&rule.tool, rule.action, &|| book.rule_reference(index, &rule));
        }
    }
    problems
}

/// The known tool that a name misspells, if the name itself is neither known nor registered.
///
/// ```
/// use std::collections::BTreeSet;
/// use toolgate_policy::find_intended_tool;
///
/// assert_eq!(find_intended_tool("Reed", &BTreeSet::new()).as_deref(), Some("Read"));
/// assert_eq!(find_intended_tool("mcp_files", &BTreeSet::new()).as_deref(), Some("mcp__files"));
/// assert_eq!(find_intended_tool("Deploy", &BTreeSet::new()), None);
/// ```
pub fn find_intended_tool(name: &str, registered: &BTreeSet<String>) -> Option<String> {
    if name.contains('*') || name.starts_with("mcp__") || registered.contains(name) {
        return None;
    }
    if PRODUCT_TOOLS.contains(&name) {
        return None;
    }
    if let Some(rest) = strip_mcp_prefix(name) {
        return Some(format!("mcp__{rest}"));
    }
    let known = || registered.iter().map(String::as_str).chain(PRODUCT_TOOLS.iter().copied());
    find_intended_name(name, known())
        .or_else(|| known().find(|known| is_one_letter_short(name, known)))
        .map(str::to_owned)
}

/// Whether a name of three letters is a known one of four without a letter other than the first: `Bsh`, `Edt`. Any other
/// difference of one letter makes another word of so short a name (`Ask` is not `Task`), and names of servers are too
/// often abbreviations for [`find_intended_name`] to guess this way.
fn is_one_letter_short(name: &str, known: &str) -> bool {
    const SHORT_NAME_CHARS: usize = 3;
    let (name, known) = (name.to_lowercase(), known.to_lowercase());
    name.chars().count() == SHORT_NAME_CHARS
        && known.chars().count() == SHORT_NAME_CHARS + 1
        && name.chars().next() == known.chars().next()
        && strsim::damerau_levenshtein(&name, &known) == 1
}

/// Whether a name can be that of a tool: a registered one, one of an MCP server or of another product, or a pattern.
pub fn is_known_tool(name: &str, registered: &BTreeSet<String>) -> bool {
    name.contains('*')
        || name.starts_with("mcp__")
        || registered.contains(name)
        || PRODUCT_TOOLS.contains(&name)
}

/// The rest of a name that begins with a misspelling of `mcp__`: `mcp_`, `mcp-` or `MCP__`.
fn strip_mcp_prefix(name: &str) -> Option<&str> {
    let (prefix, rest) = name.split_at_checked("mcp".len())?;
    let rest = rest.strip_prefix(['_', '-']).filter(|_| prefix.eq_ignore_ascii_case("mcp"))?;
    Some(rest.strip_prefix(['_', '-']).unwrap_or(rest)).filter(|rest| !rest.is_empty())
}

/// The problem of one name.
fn check_name(
    name: &str,
    action: RuleAction,
    unmatchable: UnmatchableRules,
    registered: &BTreeSet<String>,
    reference: impl FnOnce() -> RuleRef,
) -> Option<RuleProblem> {
    if let Some(meant) = find_intended_tool(name, registered) {
        let RuleSyntaxError { message, fix } = RuleSyntaxError::unknown_tool(name, &meant);
        return Some(RuleProblem { rule: reference(), weight: unmatchable.severity(action), message, fix });
    }
    (!is_known_tool(name, registered)).then(|| {
        let message = format!("no tool is called `{name}` here");
        let mut problem = lint::note(reference(), &message, "`toolgate tools` lists the names");
        problem.weight = ProblemSeverity::Note;
        problem
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::raw::{Layer, LayerRules};
    use toolgate_proto::AbsPath;

    /// A policy of one rule.
    pub(crate) fn policy_of_rule(action: RuleAction, text: &str) -> RawPolicy {
        let mut layer = LayerRules::new(Layer::Project, AbsPath::root());
        let list = match action {
            RuleAction::Allow => &mut layer.allow,
            RuleAction::Ask => &mut layer.ask,
            RuleAction::Deny => &mut layer.deny,
        };
        list.push(text.into());
        RawPolicy { layers: vec![layer], ..RawPolicy::default() }
    }

    fn check(action: RuleAction, text: &str) -> Option<(ProblemSeverity, String)> {
        let raw = policy_of_rule(action, text);
        let registered = BTreeSet::from(["Deploy".to_owned(), "Rest".to_owned()]);
        check_tool_names(&raw, &registered, McpNames::default)
            .pop()
            .map(|problem| (problem.weight, problem.fix))
    }

    #[test]
    fn misspelled_tools_are_fatal_in_rules_that_restrict() {
        for (text, meant) in [
            ("Reed", "Read"),
            ("Reed(.env)", "Read"),
            ("Bsah(rm *)", "Bash"),
            ("Bahs(rm *)", "Bash"),
            ("Bsh(rm *)", "Bash"),
            ("Bas", "Bash"),
            ("Edt(src/**)", "Edit"),
            ("Grp", "Grep"),
            ("Rea(.env)", "Read"),
            ("Res", "Rest"),
            ("WebFetsh(domain:x.test)", "WebFetch"),
            ("mcp_files", "mcp__files"),
            ("mcp_files__read", "mcp__files__read"),
            ("MCP__files", "mcp__files"),
            ("Mcp_files__read", "mcp__files__read"),
            ("Depoly", "Deploy"),
            ("writefile", "write_file"),
        ] {
            let fix = format!("did you mean `{meant}`?");
            assert_eq!(check(RuleAction::Deny, text), Some((ProblemSeverity::Fatal, fix.clone())), "{text}");
            assert_eq!(check(RuleAction::Ask, text), Some((ProblemSeverity::Fatal, fix.clone())), "{text}");
            assert_eq!(check(RuleAction::Allow, text), Some((ProblemSeverity::Warning, fix)), "{text}");
        }
        assert_eq!(check(RuleAction::Deny, "Frobnicate").unwrap().0, ProblemSeverity::Note);
        for text in ["Ask", "Run", "Web", "Git"] {
            assert_eq!(check(RuleAction::Deny, text).unwrap().0, ProblemSeverity::Note, "{text}");
        }
        for text in ["Read", "Rest", "Deploy", "mcp__files", "mcp__files__x", "*", "Web*", "Task", "LS"] {
            assert_eq!(check(RuleAction::Deny, text), None, "{text}");
        }
    }

    #[test]
    fn no_known_tool_is_taken_for_a_misspelling_of_another() {
        for name in PRODUCT_TOOLS {
            assert_eq!(find_intended_tool(name, &BTreeSet::new()), None, "{name}");
        }
    }
}
