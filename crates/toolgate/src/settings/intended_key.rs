//! Which key of a settings file an unknown one stands for: a misspelled one, one in the wrong place, or one under the name
//! that another product has for it.
//!
//! Other programs keep keys of their own in these files, so an unknown key is an error only if the key that was meant
//! restricts calls, or if it is spelled almost like one that stands in the same place. Anything else is a note.

use super::key_synonyms::{GRANTING_SYNONYMS, KeySynonyms, RENAMED_KEYS, RESTRICTING_SYNONYMS};
use super::merge::{CombineStrategy, MergeRule, key_rules};
use super::schema::UnknownKey;
use crate::hooks::{find_screening_event, known_events};
use toolgate_policy::find_intended_name;

/// Sections whose keys are errors one level too high, also those that grant: `{"allow": […]}`.
const SECTIONS: [&str; 3] = ["permissions", "preApproval", "managed"];

/// Names that are not taken for a key in another place: the sandbox is on without `enabled`, objects of other programs have
/// a key of this name, too, and `disableAutoMode` restricts nothing yet.
const COMMON_NAMES: [&str; 3] = ["enabled", "$schema", "disableAutoMode"];

/// Names that are recognised in other places only if they are spelled exactly: too many other words are near.
const COMMON_WORDS: [&str; 6] = ["limits", "network", "policy", "processes", "required", "rules"];

/// Keys of a policy book, which has no schema of its own.
const BOOK_KEYS: [&str; 2] = ["policy.rules", "policy.defaultAction"];

/// The key that an unknown one stands for.
#[derive(Debug)]
pub(super) struct IntendedKey {
    /// Whether the file is not used. Otherwise the key is only reported.
    pub(super) is_fatal: bool,
    /// What to write.
    pub(super) fix: String,
}

/// The key that an unknown one probably stands for, or `None` if it belongs to another program.
pub(super) fn find_intended_key(unknown: &UnknownKey) -> Option<IntendedKey> {
    let path = unknown.path.as_str();
    let section = path.strip_suffix(unknown.name.as_str()).unwrap_or_default().trim_end_matches('.');
    let name = unknown.name.as_str();
    if let Some(meant) = find_renamed_key(path, section, name) {
        return Some(suggest(&meant, true));
    }
    if let Some((_, meant)) = GRANTING_SYNONYMS.iter().find(|(other, _)| fold(other) == fold(path)) {
        return Some(suggest(&[(*meant).to_owned()], false));
    }
    if let Some(meant) = find_intended_sibling(name, section, unknown.siblings.iter().map(String::as_str)) {
        return Some(suggest(&[join(section, meant)], true));
    }
    // Entries of lists, such as handlers of hooks, have keys that stand in no other place.
    if path.contains('[') {
        return None;
    }
    if let Some(meant) = find_dotted_key(path, name) {
        let fix = format!("a dot is part of a name; write `{}`", write_nested(&meant));
        return Some(IntendedKey { is_fatal: is_restricting(&meant), fix });
    }
    let meant = find_misplaced_key(section, name);
    let is_in_sections = |path: &String| {
        section.is_empty()
            && path.split_once('.').is_some_and(|(above, leaf)| SECTIONS.contains(&above) && leaf == name)
    };
    let is_fatal = meant.iter().any(|path| is_restricting(path) || is_in_sections(path));
    (!meant.is_empty()).then(|| suggest(&meant, is_fatal))
}

/// The keys that this one is another name for.
pub(super) fn find_renamed_key(path: &str, section: &str, name: &str) -> Option<Vec<String>> {
    let folded = fold(path);
    if let Some((_, meant)) = RENAMED_KEYS.iter().find(|(old, _)| fold(old) == folded) {
        return Some(vec![(*meant).to_owned()]);
    }
    let folded = fold(name);
    let is_listed =
        |entry: &&KeySynonyms| entry.sections.contains(&section) && entry.names.contains(&folded.as_str());
    let found = RESTRICTING_SYNONYMS.iter().find(is_listed)?;
    Some(found.keys.iter().map(|path| (*path).to_owned()).collect())
}

/// The key of the same section that a name misspells. Of the keys with short names only those that restrict are guessed,
/// because most short words are near each other.
pub(super) fn find_intended_sibling<'n>(
    name: &str,
    section: &str,
    siblings: impl Iterator<Item = &'n str> + Clone,
) -> Option<&'n str> {
    find_intended_name(name, siblings.clone()).or_else(|| {
        let is_near =
            |sibling: &&str| is_short_misspelling(name, sibling) && is_restricting(&join(section, sibling));
        siblings.filter(is_near).min_by_key(|sibling| sibling.len().abs_diff(name.len()))
    })
}

/// Whether a name of two or three letters is one letter away from a known one of three or four.
fn is_short_misspelling(name: &str, known: &str) -> bool {
    const MIN_KNOWN_CHARS: usize = 3;
    const MAX_NAME_CHARS: usize = 3;
    let (name, known) = (fold(name), fold(known));
    (2..=MAX_NAME_CHARS).contains(&name.chars().count())
        && (MIN_KNOWN_CHARS..=MAX_NAME_CHARS + 1).contains(&known.chars().count())
        && strsim::damerau_levenshtein(&name, &known) == 1
}

/// The path that a key with dots in its name stands for: `{"permissions.deny": […]}`.
fn find_dotted_key(path: &str, name: &str) -> Option<String> {
    let written = name.replace(['/', ':'], ".");
    if !written.contains('.') {
        return None;
    }
    let all = || all_paths().into_iter();
    let exact = all().find(|known| [path, written.as_str()].contains(&known.as_str()));
    let known: Vec<String> = all().filter(|known| known.contains('.')).collect();
    exact
        .or_else(|| find_intended_name(&written, known.iter().map(String::as_str)).map(str::to_owned))
        .or_else(|| {
            let is_end =
                |known: &String| known.strip_suffix(&written).is_some_and(|above| above.ends_with('.'));
            all().find(is_end)
        })
}

/// The keys of other places that this one is, in their order in the table of keys.
fn find_misplaced_key(section: &str, name: &str) -> Vec<String> {
    if COMMON_NAMES.contains(&name) {
        return Vec::new();
    }
    let here = join(section, name);
    let all: Vec<String> = all_paths().into_iter().filter(|path| *path != here).collect();
    let find = |is_meant: &dyn Fn(&str) -> bool| -> Vec<String> {
        let found: Vec<String> = all.iter().filter(|path| is_meant(path)).cloned().collect();
        // `managed` repeats keys of other places.
        let main: Vec<String> = found.iter().filter(|path| !path.starts_with("managed.")).cloned().collect();
        if main.is_empty() { found } else { main }
    };
    let folded = fold(name);
    // Events are words of other programs in lower case: `setup`, `stop`.
    let found = find(&|path| match path.starts_with("hooks.") {
        true => leaf_of(path) == name,
        false => fold(leaf_of(path)) == folded,
    });
    if !found.is_empty() {
        // At the top level a key of these sections is meant rather than one of a deeper place.
        let is_of_sections = |path: &String| {
            path.split_once('.').is_some_and(|(above, leaf)| SECTIONS.contains(&above) && leaf == name)
        };
        let nearer: Vec<String> = found.iter().filter(|path| is_of_sections(path)).cloned().collect();
        return if section.is_empty() && !nearer.is_empty() { nearer } else { found };
    }
    // `ledgerRequired`, `sandboxFilesystemDenyRead`.
    let found = find(&|path| {
        let ends = path.match_indices('.').map(|(at, _)| path.get(at + 1..).unwrap_or_default());
        std::iter::once(path)
            .chain(ends)
            .any(|end| end.contains('.') && fold(&end.replace('.', "")) == folded)
    });
    if !found.is_empty() {
        return found;
    }
    if let Some(event) = find_screening_event(name) {
        return vec![format!("hooks.{event}")];
    }
    let is_key = |path: &&String| is_restricting(path) && !path.starts_with("hooks.");
    let restricting: Vec<&str> = all.iter().filter(is_key).map(|path| leaf_of(path)).collect();
    let Some(meant) = find_misspelled_leaf(name, &restricting) else { return Vec::new() };
    find(&|path| leaf_of(path) == meant && is_restricting(path))
}

/// The name of a key that restricts, somewhere else, that a name misspells.
fn find_misspelled_leaf<'n>(name: &str, leaves: &[&'n str]) -> Option<&'n str> {
    const SHORT_NAME_CHARS: usize = 4;
    let sorted = |text: &str| {
        let mut letters: Vec<char> = fold(text).chars().collect();
        letters.sort_unstable();
        letters
    };
    // Of a short name letters are missing or exchanged; other differences make another word (`task`, `deno`).
    let is_near = |leaf: &str| {
        let is_doubled = leaf.len() == SHORT_NAME_CHARS && name.len() == SHORT_NAME_CHARS + 1;
        leaf.len() > SHORT_NAME_CHARS || is_doubled || name.len() < leaf.len() || sorted(leaf) == sorted(name)
    };
    let known = leaves.iter().copied().filter(|leaf| !COMMON_WORDS.contains(leaf) && is_near(leaf));
    find_intended_name(name, known.clone())
        .or_else(|| known.clone().find(|leaf| is_short_misspelling(name, leaf)))
}

/// Whether a key restricts calls, or is a section with such a key: without it calls run that its author meant to stop.
fn is_restricting(path: &str) -> bool {
    let is_hook = path == "hooks" || path.starts_with("hooks.");
    // It denies dangers from a severity on, although its weakest value does not.
    let is_profile = path == "permissions.riskProfile";
    let is_same_or_inside =
        |key: &str| key.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    is_hook
        || is_profile
        || BOOK_KEYS.contains(&path)
        || key_rules().iter().any(|key| restricts(key.rule) && is_same_or_inside(&key.name()))
}

/// Whether a key with this rule restricts, with one of its values at least.
fn restricts(rule: MergeRule) -> bool {
    match rule {
        MergeRule::AddDeny
        | MergeRule::DenyWins(_)
        | MergeRule::Tighten(_)
        | MergeRule::Smallest
        | MergeRule::StricterMode
        | MergeRule::StricterBook
        | MergeRule::NeedsTrust(CombineStrategy::Narrow) => true,
        MergeRule::ManagedOnly(how) => how != CombineStrategy::ByName,
        MergeRule::Group | MergeRule::Inert | MergeRule::NeedsTrust(_) | MergeRule::UserOnly(_) => false,
    }
}

/// The paths of all keys, sections and events.
fn all_paths() -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for key in key_rules() {
        for length in 1..=key.path.len() {
            let path = key.path.iter().take(length).map(String::as_str).collect::<Vec<_>>().join(".");
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    paths.extend(BOOK_KEYS.map(str::to_owned));
    paths.extend(known_events().map(|event| format!("hooks.{event}")));
    paths
}

/// The suggestion of one key or of several.
fn suggest(meant: &[String], is_fatal: bool) -> IntendedKey {
    let meant: Vec<String> = meant.iter().map(|path| format!("`{path}`")).collect();
    IntendedKey { is_fatal, fix: format!("did you mean {}?", meant.join(" or ")) }
}

/// A path as it is written in a file: `{"permissions": {"deny": …}}`.
fn write_nested(path: &str) -> String {
    path.rsplit('.').fold("…".to_owned(), |inner, name| format!("{{\"{name}\": {inner}}}"))
}

/// The path of a key in a section.
pub(super) fn join(section: &str, name: &str) -> String {
    if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") }
}

/// The last name of a path.
fn leaf_of(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(_, leaf)| leaf)
}

/// A name without differences of case, `_` and `-`.
fn fold(name: &str) -> String {
    name.to_lowercase().replace(['_', '-'], "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::node::SettingsNode;
    use crate::settings::schema::{check, settings_check_schema};

    /// What is suggested for each unknown key, and whether it is an error.
    fn intended(text: &str) -> Vec<Option<(bool, String)>> {
        let node = SettingsNode::parse(text).unwrap();
        let unknown = check(&node, settings_check_schema()).unknown;
        unknown.iter().map(|key| find_intended_key(key).map(|it| (it.is_fatal, it.fix))).collect()
    }

    /// The keys of this table are errors that name the other key.
    fn assert_fatal(table: &[(&str, &str)]) {
        for (text, meant) in table {
            let fix = format!("did you mean {meant}?");
            assert_eq!(intended(text), [Some((true, fix))], "{text}");
        }
    }

    #[test]
    fn keys_that_are_almost_ours_are_recognised() {
        assert_fatal(&[
            (r#"{"permisions": {}}"#, "`permissions`"),
            (r#"{"permissions": {"denny": []}}"#, "`permissions.deny`"),
            (r#"{"permissions": {"Deny": []}}"#, "`permissions.deny`"),
            (r#"{"permissions": {"default_mode": "plan"}}"#, "`permissions.defaultMode`"),
            (r#"{"permissions": {"allowed_tools": []}}"#, "`permissions.allow`"),
            (r#"{"permissions": {"disabled_tools": []}}"#, "`permissions.deny`"),
            (r#"{"permissions": {"pre_approval": {}}}"#, "`preApproval`"),
            (r#"{"disabled_tools": []}"#, "`disabledTools`"),
            (r#"{"deny": []}"#, "`permissions.deny`"),
            (r#"{"allow": []}"#, "`permissions.allow`"),
            (r#"{"hook": {}}"#, "`hooks`"),
            (r#"{"sandbox": {"filesystem": {"denyReads": []}}}"#, "`sandbox.filesystem.denyRead`"),
            (r#"{"hooks": {"PreToolUse": [{"matchers": "Bash"}]}}"#, "`hooks.PreToolUse[0].matcher`"),
        ]);
    }

    #[test]
    fn a_short_name_that_almost_restricts_is_recognised() {
        for (deny, ask) in [("dny", "aks"), ("den", "sak"), ("dey", "ak"), ("dney", "asq"), ("Den", "as")] {
            assert_fatal(&[
                (&format!("{{\"permissions\": {{\"{deny}\": []}}}}"), "`permissions.deny`"),
                (&format!("{{\"permissions\": {{\"{ask}\": []}}}}"), "`permissions.ask`"),
            ]);
        }
        for name in ["any", "all", "act", "key", "id"] {
            assert_eq!(intended(&format!("{{\"permissions\": {{\"{name}\": []}}}}")), [None], "{name}");
        }
    }

    #[test]
    fn a_key_that_restricts_is_recognised_in_every_place() {
        assert_fatal(&[
            (r#"{"denny": []}"#, "`permissions.deny`"),
            (r#"{"dney": []}"#, "`permissions.deny`"),
            (r#"{"dny": []}"#, "`permissions.deny`"),
            (r#"{"aks": []}"#, "`permissions.ask`"),
            (r#"{"sandbox": {"denyRead": []}}"#, "`sandbox.filesystem.denyRead`"),
            (r#"{"sandbox": {"denyReed": []}}"#, "`sandbox.filesystem.denyRead`"),
            (r#"{"sandbox": {"deniedDomains": []}}"#, "`sandbox.network.deniedDomains`"),
            (r#"{"denyRead": []}"#, "`sandbox.filesystem.denyRead`"),
            (r#"{"filesystem": {"denyRead": []}}"#, "`sandbox.filesystem`"),
            (r#"{"network": {"deniedDomains": []}}"#, "`sandbox.network`"),
            (r#"{"limits": {"processes": 1}}"#, "`sandbox.limits`"),
            (r#"{"defaultAction": "deny"}"#, "`policy.defaultAction`"),
            (r#"{"rules": []}"#, "`policy.rules`"),
            (r#"{"policies": {}}"#, "`policy`"),
            (r#"{"ledgerRequired": true}"#, "`ledger.required`"),
            (r#"{"sandbox_filesystem_deny_read": []}"#, "`sandbox.filesystem.denyRead`"),
            (r#"{"required": true}"#, "`sandbox.required` or `ledger.required`"),
            (r#"{"riskProfile": "high"}"#, "`permissions.riskProfile`"),
            (r#"{"managed": {"deny": []}}"#, "`permissions.deny`"),
            (r#"{"managed": {"permissions": {}}}"#, "`permissions`"),
            (r#"{"permissions": {"permissions": {}}}"#, "`permissions`"),
            (r#"{"permissions": {"policy": {}}}"#, "`policy`"),
            (r#"{"permissions": {"hooks": {}}}"#, "`hooks`"),
            (r#"{"PreToolUse": []}"#, "`hooks.PreToolUse`"),
            (r#"{"preToolCall": []}"#, "`hooks.PreToolUse`"),
            (r#"{"PreTolUse": []}"#, "`hooks.PreToolUse`"),
            (r#"{"Stop": []}"#, "`hooks.Stop`"),
            (r#"{"permissions": {"PreToolUse": []}}"#, "`hooks.PreToolUse`"),
        ]);
    }

    #[test]
    fn what_others_call_a_key_that_restricts_is_recognised() {
        assert_fatal(&[
            (r#"{"permissions": {"disallow": []}}"#, "`permissions.deny`"),
            (r#"{"permissions": {"denyRules": []}}"#, "`permissions.deny`"),
            (r#"{"permissions": {"block": []}}"#, "`permissions.deny`"),
            (r#"{"permissions": {"denied": []}}"#, "`permissions.deny`"),
            (r#"{"deny_list": []}"#, "`permissions.deny`"),
            (r#"{"permissions": {"confirm": []}}"#, "`permissions.ask`"),
            (r#"{"sandbox": {"network": {"blockedDomains": []}}}"#, "`sandbox.network.deniedDomains`"),
            (
                r#"{"sandbox": {"filesystem": {"deny": []}}}"#,
                "`sandbox.filesystem.denyRead` or `sandbox.filesystem.denyWrite`",
            ),
            (r#"{"preApproval": {"deniedDomains": []}}"#, "`preApproval.blockedDomains`"),
            (r#"{"preApproval": {"blocklist": []}}"#, "`preApproval.blockedDomains`"),
            (r#"{"sandbox": {"network": {"blocklist": []}}}"#, "`sandbox.network.deniedDomains`"),
            (r#"{"disallowed-tools": []}"#, "`permissions.deny`"),
            (r#"{"DisallowedTools": []}"#, "`permissions.deny`"),
            (r#"{"blockTools": []}"#, "`permissions.deny`"),
            (r#"{"managed": {"disallowedTools": []}}"#, "`permissions.deny`"),
            (r#"{"permissions": {"exclude": []}}"#, "`permissions.deny`"),
            (
                r#"{"permissions": {"disableBypassMode": "disable"}}"#,
                "`permissions.disableBypassPermissionsMode`",
            ),
            (r#"{"disableBypassPermissions": true}"#, "`permissions.disableBypassPermissionsMode`"),
            (r#"{"disabledMcpServers": []}"#, "`disabledMcpjsonServers` or `permissions.deny`"),
        ]);
    }

    #[test]
    fn a_path_in_place_of_a_name_is_shown_as_objects() {
        for (text, fix) in [
            (r#"{"permissions.deny": []}"#, r#"write `{"permissions": {"deny": …}}`"#),
            (r#"{"permission.deny": []}"#, r#"write `{"permissions": {"deny": …}}`"#),
            (r#"{"hooks.PreToolUse": []}"#, r#"write `{"hooks": {"PreToolUse": …}}`"#),
            (r#"{"filesystem.denyRead": []}"#, r#"write `{"sandbox": {"filesystem": {"denyRead": …}}}`"#),
            (
                r#"{"sandbox": {"filesystem.denyRead": []}}"#,
                r#"write `{"sandbox": {"filesystem": {"denyRead": …}}}`"#,
            ),
        ] {
            assert_eq!(intended(text), [Some((true, format!("a dot is part of a name; {fix}")))], "{text}");
        }
        assert!(intended(r#"{"permissions.allow": []}"#).iter().flatten().all(|(is_fatal, _)| !is_fatal));
        assert_eq!(intended(r#"{"deno.enable": true}"#), [None]);
    }

    #[test]
    fn a_key_that_grants_or_restricts_nothing_is_only_a_note() {
        for (text, meant) in [
            (r#"{"allowWrite": []}"#, "`sandbox.filesystem.allowWrite`"),
            (r#"{"permissions": {"disableAllHooks": true}}"#, "`disableAllHooks`"),
            (r#"{"sandbox": {"env": {}}}"#, "`env`"),
            (r#"{"sandbox": {"network": {"allow": []}}}"#, "`sandbox.network.allowedDomains`"),
            (r#"{"sandbox": {"filesystem": {"allow": []}}}"#, "`sandbox.filesystem.allowWrite`"),
            (r#"{"preApproval": {"allow": []}}"#, "`preApproval.allowedDomains`"),
        ] {
            assert_eq!(intended(text), [Some((false, format!("did you mean {meant}?")))], "{text}");
        }
    }

    #[test]
    fn keys_of_other_programs_are_left_alone() {
        let top = [
            "alwaysThinkingEnabled",
            "apiKey",
            "attribution",
            "autoMode",
            "autoUpdatesChannel",
            "availableModels",
            "awsAuthRefresh",
            "blockedMarketplaces",
            "claudeMdExcludes",
            "cleanupPeriodDays",
            "companyAnnouncements",
            "customApiUrl",
            "defaultShell",
            "deno",
            "disableAutoMode",
            "effortLevel",
            "enabled",
            "exclude",
            "extraKnownMarketplaces",
            "fileSuggestion",
            "forceLoginMethod",
            "includeCoAuthoredBy",
            "includeGitInstructions",
            "language",
            "minimumVersion",
            "modelOverrides",
            "notifications",
            "otelHeadersHelper",
            "plansDirectory",
            "policyHelper",
            "respectGitignore",
            "setup",
            "skipWebFetchPreflight",
            "spinnerTipsEnabled",
            "sshConfigs",
            "task",
            "teammateMode",
            "theme",
            "tools",
            "viewMode",
            "worktree",
        ];
        for key in top {
            assert_eq!(intended(&format!("{{\"{key}\": 1}}")), [None], "{key}");
        }
        for (section, key) in [
            ("network", "strictAllowlist"),
            ("network", "allowManagedDomainsOnly"),
            ("network", "allowMachLookup"),
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
        for (section, key) in [
            ("permissions", "skipDangerousModePermissionPrompt"),
            ("sandbox", "enableWeakerNestedSandbox"),
            ("sandbox", "bwrapPath"),
            ("sandbox", "ripgrep"),
            ("statusLine", "refreshInterval"),
        ] {
            assert_eq!(intended(&format!("{{\"{section}\": {{\"{key}\": 1}}}}")), [None], "{section}.{key}");
        }
    }
}
