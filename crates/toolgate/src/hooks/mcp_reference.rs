//! Parts of matchers that name MCP servers, and which of them select nothing because the server is called otherwise, or
//! because they are written in another form: `mcp__Files`, `mcp:files`, `mcp__files/write_file`, `files__write_file`.
//!
//! A server can be added after the hooks for it, so the name of an unknown one is no mistake, unless it is almost that of
//! a configured one. A form that can match no tool is one in any case.

use super::configured_hook::ConfiguredHook;
use super::matcher::{HookMatcher, names_tool};
use super::matcher_spelling::MisspelledMatcher;
use super::mcp_tool::GateSessionCell;
use super::split_pieces::{
    is_name_char, split_alternatives, split_flags, split_pieces, strip_ends, strip_group,
};
use fancy_regex::Regex;
use std::collections::BTreeSet;
use toolgate_policy::{
    Layer, LayerRules, McpNames, ProblemSeverity, RawPolicy, check_tool_names, is_known_tool,
};
use toolgate_proto::{AbsPath, SourceId, ToolIdentity};

/// How the names of servers begin in names of tools.
const PREFIX: &str = "mcp";
/// What separates this prefix, the server and the tool, in tools' names and in other forms.
const JOINTS: [char; 5] = ['_', '-', ':', '/', '.'];
/// How deep groups are looked into; an expression with deeper ones cannot be compiled.
const MAX_GROUP_DEPTH: usize = 64;
/// The name of a tool that no server has, for the question whether an expression matches any tool of a server.
const ANY_TOOL: &str = "x";

/// Whether a text begins like the name of a server's tool, in any form.
pub(super) fn is_mcp_name(text: &str) -> bool {
    let (prefix, rest) = text.split_at_checked(PREFIX.len()).unwrap_or_default();
    prefix.eq_ignore_ascii_case(PREFIX) && (rest.is_empty() || rest.starts_with(JOINTS))
}

/// How a part names a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReferenceForm {
    /// As tools are named: `mcp__server`.
    Exact,
    /// In a way in which no tool is named: `mcp:server`.
    Unmatchable,
    /// In a way that matches some other names: `mcp__server.tool`.
    Doubtful,
    /// Without the prefix: `server__tool`.
    WithoutPrefix,
}

/// A part of a matcher that names an MCP server.
#[derive(Debug, Clone)]
pub(super) struct McpReference {
    /// The part, as written.
    written: String,
    /// The server, as written.
    server: String,
    /// What follows the server, without the separator.
    tool: String,
    /// How it names the server.
    form: ReferenceForm,
    /// The part as an expression; none where it is a name.
    expression: Option<Regex>,
}

/// The parts of an expression that may name a server.
pub(super) fn find_references(text: &str) -> Vec<McpReference> {
    let (flags, text) = split_flags(text);
    let mut parts = Vec::new();
    collect_parts(text, 0, &mut parts);
    let read = |part: String| McpReference::read(&part, Regex::new(&format!("{flags}{part}")).ok());
    parts.into_iter().filter_map(read).collect()
}

/// The alternatives of an expression, also those of groups, and of groups in place of a server: `mcp__(a|b)__.*`.
fn collect_parts(text: &str, depth: usize, parts: &mut Vec<String>) {
    for alternative in split_alternatives(text) {
        if let Some(inner) = strip_group(strip_ends(alternative)).filter(|_| depth < MAX_GROUP_DEPTH) {
            collect_parts(inner, depth + 1, parts);
            continue;
        }
        let group = alternative.split_once("mcp__(").and_then(|(before, rest)| {
            let (names, after) = rest.split_once(')')?;
            names.chars().all(|c| c == '|' || is_name_char(c)).then_some((before, names, after))
        });
        match group {
            Some((before, names, after)) => {
                parts.extend(names.split('|').map(|name| format!("{before}mcp__{name}{after}")));
            }
            None => parts.push(alternative.to_owned()),
        }
    }
}

impl McpReference {
    /// What a name in a list of names says about a server.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        Self::read(name, None)
    }

    /// What a part says about a server. `expression` is the part, where it is not a name.
    fn read(part: &str, expression: Option<Regex>) -> Option<Self> {
        // `/` and `:` can stand between the server and the tool.
        let pieces = split_pieces(part, |c| !matches!(c, '/' | ':'));
        let at = pieces.iter().position(|piece| is_mcp_name(piece));
        let piece = *pieces.get(at.unwrap_or(0))?;
        let (body, prefix) = match at {
            Some(_) => {
                let rest = piece.get(PREFIX.len()..)?;
                let body = rest.trim_start_matches(JOINTS);
                (body, piece.strip_suffix(body)?)
            }
            None => (piece, ""),
        };
        // `mcp files`.
        let (body, is_split) = match (body.is_empty(), at.and_then(|at| pieces.get(at + 1))) {
            (true, Some(next)) => (*next, true),
            _ => (body, false),
        };
        let name = body.split(|c| !is_name_char(c)).next().unwrap_or_default();
        let server = name.split("__").next().unwrap_or_default().trim_end_matches('_');
        let rest = body.strip_prefix(server).unwrap_or_default();
        let is_alone = pieces.len() == 1 && !is_split;
        let is_dotted = rest.strip_prefix('.').is_some_and(|rest| rest.starts_with(is_name_char));
        let form = match (at, prefix) {
            (None, _) if is_alone => ReferenceForm::WithoutPrefix,
            (None, _) => return None,
            (Some(_), "mcp__") if is_alone && is_dotted => ReferenceForm::Doubtful,
            (Some(_), "mcp__") if is_alone && !rest.starts_with([':', '/']) => ReferenceForm::Exact,
            (Some(_), _) => ReferenceForm::Unmatchable,
        };
        (!server.is_empty()).then(|| Self {
            written: part.trim().to_owned(),
            server: server.to_owned(),
            tool: rest.trim_start_matches(JOINTS).to_owned(),
            form,
            expression,
        })
    }

    /// What is wrong with it, if it selects nothing although a server was meant. Without any known server only the form
    /// can be wrong.
    pub(super) fn find_misspelling(&self, known: &McpNames) -> Option<MisspelledMatcher> {
        if self.selects_any(known) {
            return None;
        }
        let meant = self.find_meant_server(known)?;
        let listed = known.tools.get(&meant);
        let is_name = !self.tool.is_empty() && self.tool.chars().all(is_name_char);
        let is_tool = is_name && listed.map_or(self.expression.is_none(), |tools| tools.contains(&self.tool));
        let name = match is_tool {
            true => format!("mcp__{meant}__{}", self.tool),
            false => format!("mcp__{meant}"),
        };
        let problem = match self.form {
            ReferenceForm::Exact => format!(
                "no MCP server `{}` is configured, so `{}` in `matcher` matches no tool; did you mean `{name}`?",
                self.server, self.written
            ),
            _ => format!("`{}` in `matcher` matches no tool; write `{name}`", self.written),
        };
        Some(MisspelledMatcher { problem, tools: vec![name] })
    }

    /// Whether it selects a tool that a known server has or can have.
    fn selects_any(&self, known: &McpNames) -> bool {
        let is_exact = self.form == ReferenceForm::Exact;
        if is_exact && known.servers.contains(&self.server) {
            return true;
        }
        let Some(expression) = &self.expression else { return false };
        let tool: String = self.tool.chars().take_while(|c| is_name_char(*c)).collect();
        let tool = if tool.is_empty() { ANY_TOOL.to_owned() } else { tool };
        // `mcp__fil.*` matches servers whose names go on.
        let is_start = is_exact && self.tool.starts_with(['*', '+', '[', '\\', '?', '{', '(']);
        known.servers.iter().any(|server| {
            is_start && server.starts_with(&self.server)
                || expression.is_match(&format!("mcp__{server}__{tool}")).unwrap_or(true)
        })
    }

    /// The server that was meant.
    fn find_meant_server(&self, known: &McpNames) -> Option<String> {
        let is_configured = known.servers.contains(&self.server);
        let exact = || is_configured.then(|| self.server.clone());
        let similar = || find_similar_server(&self.server, &known.servers);
        match self.form {
            ReferenceForm::Exact => similar(),
            ReferenceForm::Doubtful => exact().or_else(similar),
            ReferenceForm::Unmatchable => exact().or_else(similar).or_else(|| Some(self.server.clone())),
            // A program can have a tool of this name, so only the exact name of a server is one.
            ReferenceForm::WithoutPrefix => {
                exact().filter(|server| !is_known_tool(server, crate::settings::builtin_names()))
            }
        }
    }
}

/// The configured server that a name misspells, as it is decided for a rule that denies the server.
fn find_similar_server(name: &str, servers: &BTreeSet<String>) -> Option<String> {
    let mut rules = LayerRules::new(Layer::User, AbsPath::root());
    rules.deny.push(format!("mcp__{name}").into());
    let raw = RawPolicy::default().with_layers(vec![rules]);
    let known = || McpNames { servers: servers.clone(), ..McpNames::default() };
    let problem = check_tool_names(&raw, &BTreeSet::new(), known).into_iter().next()?;
    let meant = problem.fix.split('`').nth(1).filter(|_| problem.weight == ProblemSeverity::Fatal)?;
    meant.strip_prefix("mcp__").map(str::to_owned)
}

/// The parts of a matcher that name servers which were unknown when the hook was built: those of the command line and of
/// a host program are known only to the gate.
pub(super) struct UnresolvedServers {
    /// The parts.
    references: Vec<McpReference>,
    /// The servers that were known.
    known: BTreeSet<String>,
    /// The gate that has the tools.
    gate_cell: GateSessionCell,
}

impl UnresolvedServers {
    /// Those of a matcher, if it has any.
    pub(super) fn find(
        matcher: &HookMatcher,
        mcp: &dyn Fn() -> McpNames,
        gate_cell: &GateSessionCell,
    ) -> Option<Self> {
        let mut references = matcher.mcp_references();
        if references.is_empty() {
            return None;
        }
        let known = mcp().servers;
        references.retain(|reference| !known.contains(&reference.server));
        let gate_cell = GateSessionCell::clone(gate_cell);
        (!references.is_empty()).then_some(Self { references, known, gate_cell })
    }

    /// What is wrong with the matcher, if a misspelled part of it means this tool.
    fn find_problem(&self, tool: &ToolIdentity) -> Option<String> {
        if !matches!(tool.source, SourceId::Mcp { .. }) {
            return None;
        }
        let gate = self.gate_cell.get().and_then(|(gate, _)| gate.upgrade())?;
        let mut names = McpNames { servers: self.known.clone(), ..McpNames::default() };
        for registered in gate.registered_tools() {
            let name = registered.name.as_str().strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
            if let (SourceId::Mcp { .. }, Some((server, tool))) = (&registered.source, name) {
                names.servers.insert(server.to_owned());
                names.tools.entry(server.to_owned()).or_default().insert(tool.to_owned());
            }
        }
        let misspelled = self.references.iter().filter_map(|reference| reference.find_misspelling(&names));
        misspelled.filter(|part| names_tool(&part.tools, tool)).map(|part| part.problem).next()
    }
}

impl ConfiguredHook {
    /// Why a call of this tool is refused although the matcher does not select it: a part of the matcher misspells the
    /// tool's server.
    pub(super) fn find_misspelled_server(&self, tool: &ToolIdentity) -> Option<String> {
        let unresolved = self.unresolved_servers.as_ref()?;
        if self.matcher.matches(tool) { None } else { unresolved.find_problem(tool) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> McpNames {
        let tools = BTreeSet::from(["write_file".to_owned(), "read_file".to_owned()]);
        McpNames {
            servers: ["files", "my_docs", "db1"].map(str::to_owned).into(),
            tools: [("files".to_owned(), tools)].into(),
        }
    }

    /// What was meant with the parts of a matcher that select nothing, and the first problem.
    fn find(matcher: &str, known: fn() -> McpNames) -> (Vec<String>, String) {
        let parsed = HookMatcher::parse_tools(Some(matcher)).unwrap();
        let found = parsed.find_misspellings(&known);
        let problem = found.first().map(|part| part.problem.clone()).unwrap_or_default();
        (found.into_iter().flat_map(|part| part.tools).collect(), problem)
    }

    #[test]
    fn a_server_in_another_form_is_the_one_that_was_meant() {
        for (matcher, tool) in [
            ("mcp__Files", "mcp__files"),
            ("mcp__flies__.*", "mcp__files"),
            ("mcp__file__.*", "mcp__files"),
            ("mcp__Files.*", "mcp__files"),
            ("^mcp__Files$", "mcp__files"),
            ("mcp__(Files|db1)__.*", "mcp__files"),
            ("^(Edit|mcp__filez__write.*)$", "mcp__files"),
            ("mcp:files", "mcp__files"),
            ("mcp files", "mcp__files"),
            ("mcp/files", "mcp__files"),
            ("mcp.files", "mcp__files"),
            ("MCP__files", "mcp__files"),
            ("mcp_Files", "mcp__files"),
            ("'mcp__files'", "mcp__files"),
            ("mcp__Files__write_file", "mcp__files__write_file"),
            ("mcp__files/write_file", "mcp__files__write_file"),
            ("mcp__files:write_file", "mcp__files__write_file"),
            ("mcp__files.write_file", "mcp__files__write_file"),
            ("files", "mcp__files"),
            ("files__write_file", "mcp__files__write_file"),
            ("files/write_file", "mcp__files__write_file"),
            ("^files__", "mcp__files"),
            ("mcp__my-docs", "mcp__my_docs"),
        ] {
            let (tools, problem) = find(matcher, names);
            assert_eq!(tools.first().map(String::as_str), Some(tool), "{matcher}: {tools:?}");
            assert!(problem.contains(&format!("`{tool}`")), "{matcher}: {problem}");
            assert_eq!(find(tool, names).0, Vec::<String>::new(), "{matcher}");
        }
    }

    #[test]
    fn a_form_that_matches_no_tool_is_wrong_whether_the_server_is_known_or_not() {
        for (matcher, tool) in [
            ("mcp:github", "mcp__github"),
            ("mcp__github/issues", "mcp__github__issues"),
            ("mcp__github:issues", "mcp__github__issues"),
            ("mcp__github Bash", "mcp__github"),
        ] {
            for known in [names as fn() -> McpNames, McpNames::default] {
                let (tools, problem) = find(matcher, known);
                assert!(tools.iter().any(|name| name.starts_with("mcp__github")), "{matcher}: {tools:?}");
                assert!(problem.contains("write `mcp__github"), "{matcher} {tool}: {problem}");
            }
        }
    }

    #[test]
    fn matchers_of_known_servers_and_of_those_that_may_come_are_left_alone() {
        for matcher in [
            "mcp__.*",
            "mcp__files",
            "mcp__files__",
            "mcp__files__.*",
            "mcp__files__write.*",
            "mcp__files__write_file",
            "^mcp__files__(read|write)_file$",
            "mcp__fil.*",
            "mcp__fil.*__write.*",
            "mcp__my_.*",
            "mcp__my.docs__.*",
            "(?i)mcp__Files__write.*",
            "mcp__[a-z]+__write.*",
            "mcp__.*__write.*",
            "mcp__(files|github)__.*",
            "mcp__github",
            "mcp__github__.*",
            "mcp__db2__.*",
            "files.*",
            "github__.*",
            "Deploy",
            "Bash|Edit",
            "Notebook.*",
            "*",
            "",
        ] {
            assert_eq!(find(matcher, names).0, Vec::<String>::new(), "{matcher}");
        }
        for matcher in ["mcp__Files", "mcp__flies__.*", "files__write_file", "mcp__files.write_file"] {
            assert_eq!(find(matcher, McpNames::default).0, Vec::<String>::new(), "{matcher}");
        }
    }
}
