//! Comparison of the outcomes with and without a project: what the project would grant.

use super::settings_generator::SettingsGenerator;
use super::{SettingsOutcome, SettingsTestCall};
use serde_json::Value;
use toolgate_gate::IntendedCall;
use toolgate_policy::{CommandGuard, HookOpinion, PolicyRequest, RuleAction, Workspace};
use toolgate_proto::{AbsPath, CommandRights, GitUse, NetworkAccess, PathScope, Terms, Verdict, WriteRight};

/// How strict a verdict is; without approvers, ask is a denial.
fn rank(verdict: &Verdict, deny_questions: bool) -> u8 {
    match verdict {
        Verdict::Allow(_) => 0,
        Verdict::Ask(_) if deny_questions => 2,
        Verdict::Ask(_) => 1,
        Verdict::Deny(_) => 2,
    }
}

/// Whether every item of the first list is in the second.
fn is_within<T: PartialEq>(few: &[T], many: &[T]) -> bool {
    few.iter().all(|one| many.contains(one))
}

/// Whether a write right includes another: the same entry, or a tree that contains it.
fn covers(one: &WriteRight, other: &WriteRight) -> bool {
    one == other || one.scope == PathScope::Tree && other.path.is_under(&one.path)
}

/// The terms that [`freer_terms`] compares, and the rights in them.
const COMPARED_TERMS: [&str; 7] =
    ["reason", "unsandboxed", "rights", "protected", "unreadable", "network", "git"];
const COMPARED_RIGHTS: [&str; 6] = ["level", "read", "write", "execute", "named", "git_data"];

/// Whether the terms have one that is not compared. The types are `#[non_exhaustive]`, so the compiler does not report a
/// field that was added to them; their JSON does.
fn has_new_term(terms: &Terms) -> bool {
    let terms = serde_json::to_value(terms).unwrap();
    let has_others = |value: &Value, known: &[&str]| {
        value.as_object().unwrap().keys().any(|key| !known.contains(&key.as_str()))
    };
    has_others(&terms, &COMPARED_TERMS) || has_others(&terms["rights"], &COMPARED_RIGHTS)
}

/// The first term that grants more with the project than without it. `guard` is that of the run without it.
fn freer_terms(with: &Terms, without: &Terms, guard: &CommandGuard) -> Option<&'static str> {
    let Terms { unsandboxed, rights, protected, unreadable, network, git, .. } = with;
    let CommandRights { level, read, write, execute, named, git_data, .. } = rights;
    let before = &without.rights;
    let listed = |with: bool, without: bool| with || !without;
    let is_free = |path: &AbsPath| !guard.hides(path) && !guard.protects(path);
    let network_within = match (network, &without.network) {
        (NetworkAccess::None, _) | (_, NetworkAccess::Full) => true,
        (NetworkAccess::Hosts(with), NetworkAccess::Hosts(without)) => is_within(with, without),
        (NetworkAccess::Hosts(_) | NetworkAccess::Full, _) => false,
    };
    [
        ("unsandboxed", !*unsandboxed || without.unsandboxed),
        ("level", *level <= before.level),
        ("read", listed(read.is_some(), before.read.is_some())),
        ("write", write.iter().all(|right| before.write.iter().any(|other| covers(other, right)))),
        ("execute", listed(execute.is_some(), before.execute.is_some())),
        // A path that nothing withholds or protects without the project need not be named there.
        ("named", named.iter().all(|path| before.named.contains(path) || is_free(path))),
        ("git data", !*git_data || before.git_data),
        ("git", *git == without.git || git.usage != GitUse::Granted),
        ("protected", is_within(&without.protected, protected)),
        ("unreadable", is_within(&without.unreadable, unreadable)),
        ("network", network_within),
        ("a term that is not compared here", !has_new_term(with)),
    ]
    .into_iter()
    .find(|(_, holds)| !holds)
    .map(|(what, _)| what)
}

/// The verdict about a test call.
fn judge(
    outcome: &SettingsOutcome,
    workspace: &Workspace,
    call: &SettingsTestCall,
    opinions: &[HookOpinion],
) -> Verdict {
    let SettingsTestCall { intended, survey, facts } = call;
    let IntendedCall { tool, input, intent, .. } = intended;
    outcome.policy.decide(&PolicyRequest { tool, input, intent, survey, workspace, facts, opinions }).verdict
}

/// What the project would grant, or `None` if it only restricts.
pub(super) fn compare_outcomes(
    with: &SettingsOutcome,
    without: &SettingsOutcome,
    workspace: &Workspace,
    calls: &[SettingsTestCall],
    draw: &mut SettingsGenerator,
) -> Option<String> {
    let deny_questions = |outcome: &SettingsOutcome| outcome.settings.denies_instead_of_asking();
    let opinion = |action| HookOpinion::new("hook", action);
    for call in calls {
        // A third of the calls per case, with and without a hook that approves: more cases find more than more calls.
        let opinions = match draw.below(6) {
            0 => vec![],
            1 => vec![opinion(RuleAction::Allow)],
            _ => continue,
        };
        let name = || format!("{} {}", call.intended.tool.name, Value::Object(call.intended.input.clone()));
        let now = judge(with, workspace, call, &opinions);
        let before = judge(without, workspace, call, &opinions);
        if rank(&now, deny_questions(with)) < rank(&before, deny_questions(without)) {
            return Some(format!(
                "{}: {} with the project, {} without it",
                name(),
                now.as_str(),
                before.as_str()
            ));
        }
        if let (Verdict::Allow(now), Verdict::Allow(before)) = (&now, &before)
            && let guard = without.policy.command_guard(workspace, &before.rights)
            && let Some(what) = freer_terms(now, before, &guard)
        {
            return Some(format!("{}: the project extends its terms: {what}", name()));
        }
    }
    if let Some(what) = with.shell_config.find_looser_field(&without.shell_config) {
        return Some(what.to_owned());
    }
    // A project may disable the servers of its own list.
    let own = |outcome: &SettingsOutcome| -> Vec<String> {
        outcome.servers.iter().filter(|server| !server.contains("/.mcp.json ")).cloned().collect()
    };
    let dirs = (with.settings.additional_directories(), without.settings.additional_directories());
    let hidden = (with.settings.disabled_tools(), without.settings.disabled_tools());
    [
        ("additional directories", is_within(&dirs.0, &dirs.1)),
        ("disabled tools", is_within(&hidden.1, &hidden.0)),
        ("hooks", with.hooks == without.hooks),
        ("addresses and variables of hooks", with.hook_lists == without.hook_lists),
        ("servers that start without approval", is_within(&with.servers, &without.servers)),
        ("the user's servers", is_within(&own(without), &own(with))),
        ("environment", with.settings.env() == without.settings.env()),
    ]
    .into_iter()
    .find(|(_, holds)| !holds)
    .map(|(what, _)| what.to_owned())
}
