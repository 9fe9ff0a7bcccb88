//! Tools of MCP servers: rules for the pair (server, tool), and paths among the arguments.

use super::evaluation::{PolicyEvaluation, ToolWideGrant};
use super::objection::ObjectionKind;
use crate::argument_paths::argument_paths;
use crate::fold::fold_path;
use crate::mcp_names::mcp_tool_name;
use crate::rule::ActionIndex;
use toolgate_proto::{EntryKind, RiskLevel, RuleSuggestion};

impl PolicyEvaluation<'_> {
    /// A call of a tool that runs in an MCP server, outside toolgate's control.
    pub(crate) fn check_remote_tool(&mut self, server: &str, tool: &str) {
        let compiled = self.compiled;
        if let Some(id) = compiled.deny.mcp.find_possible(server, tool, |_| true) {
            self.deny_by_rule(format!("tool `{tool}` of server `{server}` is denied by a rule"), id);
        }
        if let Some(id) = compiled.ask.mcp.find_possible(server, tool, |_| true) {
            self.ask_by_rule(format_args!("tool `{tool}` of server `{server}`"), id);
        }
        self.ask_in_plan_mode(format_args!("server `{server}` may change anything"));
        if !self.request.survey.ignores_input_paths {
            self.check_remote_paths();
        }
        let rule =
            compiled.find_allow(|allow| allow.mcp.find(server, tool, |_| true)).map(ToolWideGrant::Rule);
        match rule.or(self.grant) {
            Some(grant) => self.add_grant_reason(grant),
            None => self.add_uncovered_objection(
                format!("no rule allows calling `{tool}` of server `{server}`"),
                Some(RuleSuggestion::new(mcp_tool_name(server, tool))),
            ),
        }
    }

    /// A server may read and write every path that it is given, so each path among the arguments is checked for both:
    /// as spelled, because the server may run on another file system, and as resolved on this one.
    fn check_remote_paths(&mut self) {
        for path in argument_paths(self.request.input, self.request.workspace) {
            let spelled = path.lexical().to_string();
            let fact = self.request.facts.get(&path).filter(|fact| fact.problem.is_none());
            let resolved: Vec<String> = fact.map_or_else(Vec::new, |fact| {
                std::iter::once(&fact.real)
                    .chain(&fact.links)
                    .map(|form| form.lexical().to_string())
                    .collect()
            });
            let is_hard_linked = fact.is_some_and(|fact| fact.hard_linked && fact.kind == EntryKind::File);
            self.check_remote_path(&spelled);
            for form in resolved.iter().filter(|form| **form != spelled) {
                self.check_remote_path(form);
            }
            if is_hard_linked {
                let text = format!("`{path}` has other hard links, which may be outside the workspace");
                self.add_warning("hard_link", RiskLevel::Medium, text.clone());
                self.ask_about_risk(ObjectionKind::ByDefault, text);
            }
        }
    }

    /// Rules and protected names for one form of a path among the arguments.
    fn check_remote_path(&mut self, path: &str) {
        let folded = fold_path(path);
        let compiled = self.compiled;
        let find = |index: &ActionIndex| {
            let rules = [&index.reads, &index.edits].into_iter();
            let bare = ["Read", "Edit"].into_iter().filter_map(|name| index.tools.find_restricted_name(name));
            rules.filter_map(|rules| rules.find(&folded, &self.folded)).chain(bare).min()
        };
        let (denied, asked) = (find(&compiled.deny), find(&compiled.ask));
        if let Some(id) = denied {
            self.deny_by_rule(format!("passing `{path}` to an MCP server is denied by a rule"), id);
            return;
        }
        if let Some(id) = asked {
            self.ask_by_rule(format_args!("passing `{path}` to an MCP server"), id);
        }
        if let Some(why) = compiled.protection.protected_reason(&folded, self.request.workspace) {
            self.ask_about_protected(format!(
                "an MCP server could write `{path}`, which is protected: {why}"
            ));
        }
    }
}
