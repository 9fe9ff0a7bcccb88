//! Unknown keys of settings files: which of them are misspelled.
//!
//! Other programs keep keys of their own in these files, so an unknown key is normally only reported. One that is almost
//! a key of ours is an error, because its author meant it to count: `"permisions"` may contain every deny rule of a
//! team, and `"PreTolUse"` the hook that screens its calls.

use super::merge::key_rules;
use super::node::{SettingsNode, SettingsNodeKind};
use super::schema::UnknownKey;
use crate::hooks::UNRAISED_EVENTS;
use toolgate_agent::AgentMoment;
use toolgate_gate::HookEvent;
use toolgate_policy::find_intended_name;

/// Keys under other names: those of older versions, of other products, and common guesses.
const RENAMED_KEYS: &[(&str, &str)] = &[
    ("allowedTools", "permissions.allow"),
    ("allowed_tools", "permissions.allow"),
    ("disallowedTools", "permissions.deny"),
    ("disallowed_tools", "permissions.deny"),
    ("mode", "permissions.defaultMode"),
    ("permissionMode", "permissions.defaultMode"),
    ("permission_mode", "permissions.defaultMode"),
    ("permissions.allowedTools", "permissions.allow"),
    ("permissions.allowed_tools", "permissions.allow"),
    ("permissions.disabledTools", "permissions.deny"),
    ("permissions.disabled_tools", "permissions.deny"),
    ("permissions.disallowedTools", "permissions.deny"),
    ("permissions.mode", "permissions.defaultMode"),
    ("permissions.preApproval", "preApproval"),
    ("permissions.pre_approval", "preApproval"),
    ("allowed_domains", "preApproval.allowedDomains"),
    ("blocked_domains", "preApproval.blockedDomains"),
];

/// Sections whose keys are recognised one level too high: `{"deny": […]}` for `{"permissions": {"deny": […]}}`.
const SECTIONS: [&str; 3] = ["permissions", "preApproval", "managed"];

/// The key that an unknown one probably stands for, or `None` if it belongs to another program.
pub(super) fn find_intended_key(unknown: &UnknownKey) -> Option<String> {
    let path = unknown.path.as_str();
    if let Some((_, meant)) = RENAMED_KEYS.iter().find(|(old, _)| *old == path) {
        return Some((*meant).to_owned());
    }
    let (above, name) = path.rsplit_once('.').map_or(("", path), |(above, name)| (above, name));
    if let Some(meant) = find_intended_name(name, unknown.siblings.iter().map(String::as_str)) {
        return Some(if above.is_empty() { meant.to_owned() } else { format!("{above}.{meant}") });
    }
    let is_misplaced = |key: &&super::merge::KeyRule| match key.path.as_slice() {
        [section, leaf] => above.is_empty() && leaf == name && SECTIONS.contains(&section.as_str()),
        _ => false,
    };
    key_rules().iter().find(is_misplaced).map(|key| key.name())
}

/// Misspelled events in `hooks`: the line, the event as written, and the event that was meant.
pub(super) fn find_misspelled_events(node: &SettingsNode) -> Vec<(usize, String, &'static str)> {
    let Some(SettingsNodeKind::Object(events)) = node.get("hooks").map(|hooks| &hooks.kind) else {
        return Vec::new();
    };
    let known = || {
        let of_calls = HookEvent::ALL.iter().map(|event| event.as_str());
        let of_agents = AgentMoment::ALL.iter().map(|moment| moment.as_str());
        of_calls.chain(of_agents).chain(UNRAISED_EVENTS.iter().map(|(event, _)| *event))
    };
    events
        .iter()
        .filter(|(name, _)| !known().any(|event| event == name))
        .filter_map(|(name, hooks)| Some((hooks.line, name.clone(), find_intended_name(name, known())?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::schema::{check, settings_check_schema};

    fn intended(text: &str) -> Vec<Option<String>> {
        let node = SettingsNode::parse(text).unwrap();
        check(&node, settings_check_schema()).unknown.iter().map(find_intended_key).collect()
    }

    #[test]
    fn keys_that_are_almost_ours_are_recognised() {
        for (text, meant) in [
            (r#"{"permisions": {}}"#, "permissions"),
            (r#"{"permissions": {"denny": []}}"#, "permissions.deny"),
            (r#"{"permissions": {"Deny": []}}"#, "permissions.deny"),
            (r#"{"permissions": {"default_mode": "plan"}}"#, "permissions.defaultMode"),
            (r#"{"permissions": {"allowed_tools": []}}"#, "permissions.allow"),
            (r#"{"permissions": {"disabled_tools": []}}"#, "permissions.deny"),
            (r#"{"permissions": {"pre_approval": {}}}"#, "preApproval"),
            (r#"{"disabled_tools": []}"#, "disabledTools"),
            (r#"{"deny": []}"#, "permissions.deny"),
            (r#"{"hook": {}}"#, "hooks"),
            (r#"{"sandbox": {"filesystem": {"denyReads": []}}}"#, "sandbox.filesystem.denyRead"),
            (r#"{"hooks": {"PreToolUse": [{"matchers": "Bash"}]}}"#, "hooks.PreToolUse[0].matcher"),
        ] {
            assert_eq!(intended(text), [Some(meant.to_owned())], "{text}");
        }
    }

    #[test]
    fn keys_of_other_programs_are_left_alone() {
        let top = [
            "awsAuthRefresh",
            "cleanupPeriodDays",
            "companyAnnouncements",
            "forceLoginMethod",
            "includeCoAuthoredBy",
            "language",
            "otelHeadersHelper",
            "spinnerTipsEnabled",
            "theme",
            "attribution",
            "effortLevel",
            "alwaysThinkingEnabled",
            "availableModels",
            "fileSuggestion",
            "respectGitignore",
            "apiKey",
            "customApiUrl",
        ];
        for key in top {
            assert_eq!(intended(&format!("{{\"{key}\": 1}}")), [None], "{key}");
        }
        for (section, key) in [
            ("network", "strictAllowlist"),
            ("network", "allowManagedDomainsOnly"),
            ("network", "httpProxyPort"),
            ("network", "socksProxyPort"),
            ("network", "tlsTerminate"),
            ("filesystem", "allowRead"),
            ("filesystem", "allowManagedReadPathsOnly"),
            ("filesystem", "disabled"),
        ] {
            let text = format!("{{\"sandbox\": {{\"{section}\": {{\"{key}\": 1}}}}}}");
            assert_eq!(intended(&text), [None], "{section}.{key}");
        }
    }

    #[test]
    fn a_misspelled_event_is_recognised() {
        let node = SettingsNode::parse("{\"hooks\": {\n\"PreTolUse\": [],\n\"Stop\": [], \"MyEvent\": []}}");
        assert_eq!(find_misspelled_events(&node.unwrap()), [(2, "PreTolUse".to_owned(), "PreToolUse")]);
    }
}
