//! Advice that works: the advised changes are made, and the verdict must become what was promised.

use super::fake_workspace::{FakeWorkspace, Node, action, input_of, raw_policy};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};
use toolgate_policy::{Judgement, Policy, RuleAction, SettingsChange};
use toolgate_proto::{Code, RiskLevel};

const RULES: &[&str] = &[
    "Bash",
    "Bash(npm *)",
    "Bash(git push *)",
    "Bash(rm *)",
    "Bash(cat *)",
    "Bash(curl *)",
    "Bash(eval *)",
    "Bash(broken",
    "Read",
    "Read(src/**)",
    "Read(.env)",
    "Read(//etc/**)",
    "Edit",
    "Edit(src/**)",
    "Edit(*.md)",
    "WebFetch(domain:example.com)",
    "WebFetch(domain:localhost)",
    "WebSearch",
    "Agent(Explore)",
    "Skill(review)",
    "mcp__gh",
    "mcp__fs__read",
    "Write",
    "Grep",
];

const CALLS: &[(&str, &str)] = &[
    ("Bash", "npm run build && npm test; git push origin main"),
    ("Bash", "rm -r build"),
    ("Bash", "make \\*"),
    ("Bash", "make \u{200b}y"),
    ("Bash", "make | sh"),
    ("Bash", "f() { make; }; f"),
    ("Bash", "cat .env"),
    ("Bash", "cat /etc/hosts src/a.rs"),
    ("Bash", "curl https://example.com/x > out.txt"),
    ("Bash", "curl http://169.254.169.254/latest"),
    ("Bash", "echo hi > notes.md"),
    ("Bash", "echo hi > .git/config"),
    ("Bash", "cat src/*"),
    ("Bash", "eval \"$X\""),
    ("Bash", "make \"$TARGET\" && ls"),
    ("Bash", "if true; then make; fi && ("),
    ("Bash", "a1; a2; a3; a4; a5; a6; a7; a8; a9; a10"),
    ("Read", "src/a.rs"),
    ("Read", ".env"),
    ("Read", "/etc/passwd"),
    ("Read", "link"),
    ("Edit", "link"),
    ("Edit", "inner"),
    ("Edit", "src/x(1).rs"),
    ("Edit", "docs/a*.md"),
    ("Write", "/tmp/x"),
    ("Write", ".git/config"),
    ("Write", "src/.env"),
    ("Grep", "src"),
    ("WebFetch", "https://example.com/"),
    ("WebFetch", "https://example.com:8443/"),
    ("WebFetch", "http://localhost:3000/"),
    ("WebFetch", "http://127.0.0.1/"),
    ("WebFetch", "http://10.0.0.1:9000/x"),
    ("WebFetch", "http://2130706433/"),
    ("WebFetch", "ftp://example.com/"),
    ("WebSearch", "x"),
    ("Agent", "Explore"),
    ("Skill", "review 12"),
    ("mcp__gh__get_issue", "{}"),
    ("mcp__fs__read", "{}"),
    ("Unknown", "{}"),
];

const MODES: &[&str] = &["default", "plan", "acceptEdits", "dontAsk", "bypass", "deny"];

fn world() -> FakeWorkspace {
    FakeWorkspace::new("/ws")
        .with("/ws/link", Node::Link("/srv/target".to_owned()))
        .with("/ws/inner", Node::Link("/ws/src/a.rs".to_owned()))
}

/// A policy with these lists.
fn policy(world: &FakeWorkspace, lists: &[Vec<String>; 3], mode: &str, blocks_outside: bool) -> Policy {
    let [allow, ask, deny] = lists;
    let settings = json!({ "permissions": { "allow": allow, "ask": ask, "deny": deny }, "mode": mode });
    let mut raw = raw_policy(&settings, world);
    (raw.block_reads_outside, raw.block_writes_outside) = (blocks_outside, blocks_outside);
    raw.compile().0
}

/// Makes the advised changes.
fn apply(judgement: &Judgement, lists: &mut [Vec<String>; 3], mode: &mut &str) {
    for change in &judgement.advice.changes {
        match change {
            SettingsChange::AddAllow { rules } => lists[0].extend(rules.iter().cloned()),
            SettingsChange::RemoveRule { rule } | SettingsChange::FixRule { rule } => {
                let list = if rule.action == "ask" { &mut lists[1] } else { &mut lists[2] };
                let before = list.len();
                list.retain(|text| *text != rule.text);
                assert!(list.len() < before, "no such rule: {rule}");
            }
            SettingsChange::LeaveMode { mode: left } => {
                assert_eq!(left.to_string(), *mode);
                *mode = "default";
            }
            SettingsChange::ChangeSetting { .. }
            | SettingsChange::TrustProject { .. }
            | SettingsChange::RunCommand { .. }
            | SettingsChange::FollowHook => panic!("not advised for these settings: {change:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn advice_leads_to_the_promised_verdict(
        allow in subsequence(RULES, 0..=5), ask in subsequence(RULES, 0..=3), deny in subsequence(RULES, 0..=3),
        mut mode in select(MODES), call in select(CALLS), blocks_outside in any::<bool>(),
    ) {
        let owned = |rules: Vec<&str>| rules.into_iter().map(str::to_owned).collect::<Vec<String>>();
        let mut lists = [owned(allow), owned(ask), owned(deny)];
        let world = world();
        let input = input_of(call.0, call.1);
        let judge = |lists: &[Vec<String>; 3], mode: &str| {
            world.judge(&policy(&world, lists, mode, blocks_outside), call.0, &input)
        };
        let before = judge(&lists, mode);
        if action(&before) == RuleAction::Allow {
            prop_assert!(before.advice.changes.is_empty() && before.flip.is_none());
            return Ok(());
        }
        prop_assert_eq!(before.flip.is_none(), before.advice.is_final, "{:?}", before);
        apply(&before, &mut lists, &mut mode);
        let after = judge(&lists, mode);
        let advice = &before.advice;
        if advice.is_final {
            prop_assert_ne!(action(&after), RuleAction::Allow);
            return Ok(());
        }
        let wanted = if advice.needs_user { RuleAction::Ask } else { RuleAction::Allow };
        prop_assert_eq!(action(&after), wanted, "{:?}\n{:?}\n{}", before.flip, lists, after.verdict.reason());
    }
}

/// Every sentence says which rule goes where.
#[test]
fn advice_names_the_place() {
    let world = world();
    let judge = |settings: Value, tool: &str, text: &str| {
        let mut raw = raw_policy(&settings, &world);
        raw.allow_place = Some("to `permissions.allow` in /home/u/settings.json".to_owned());
        raw.managed.allow_managed_permission_rules_only = settings["managedOnly"] == json!(true);
        raw.managed.disabled_tools =
            if settings["off"] == json!(true) { vec![tool.to_owned()] } else { Vec::new() };
        world.judge(&raw.compile().0, tool, &input_of(tool, text)).flip
    };
    for (settings, tool, text, flip) in [
        (
            json!({}),
            "Edit",
            "link",
            Some(
                "add the allow rules `Edit(//ws/link)`, `Edit(//srv/target)` to `permissions.allow` in /home/u/settings.json",
            ),
        ),
        (
            json!({ "managedOnly": true }),
            "WebSearch",
            "x",
            Some(
                "add the allow rule `WebSearch` to `permissions.allow` of the managed settings, because only managed rules count",
            ),
        ),
        (
            json!({ "mode": "plan" }),
            "Edit",
            "src/a.rs",
            Some(
                "use another mode than plan; and add the allow rule `Edit(//ws/src/a.rs)` to `permissions.allow` in /home/u/settings.json",
            ),
        ),
        (
            json!({}),
            "Write",
            ".git/config",
            Some("the user has to approve each such call, no rule is offered for it"),
        ),
        // The rule must spell out the address of a metadata service, so the exact one is named.
        (
            json!({ "permissions": { "allow": ["Bash(curl *)"] } }),
            "Bash",
            "curl http://169.254.169.254/",
            Some(
                "add the allow rule `Bash(curl http://169.254.169.254/)` to `permissions.allow` in /home/u/settings.json",
            ),
        ),
        (
            json!({}),
            "Bash",
            "curl http://0xa9fea9fe/",
            Some("the user has to approve each such call, no rule is offered for it"),
        ),
        (
            json!({ "off": true }),
            "WebSearch",
            "x",
            Some(
                "remove `WebSearch` from `disabledTools`; and add the allow rule `WebSearch` to `permissions.allow` in /home/u/settings.json",
            ),
        ),
        (json!({}), "WebFetch", "ftp://example.com/", None),
        // Without the rule the call is denied, so that no user is asked.
        (
            json!({}),
            "WebFetch",
            "http://2130706433/",
            Some(
                "add the allow rule `WebFetch(domain:127.0.0.1)` to `permissions.allow` in /home/u/settings.json; and then the user has to approve each such call",
            ),
        ),
        (
            json!({}),
            "Bash",
            "make \\*",
            Some(
                "the user has to approve each such call, no rule is offered for it: only a wider one covers it, such as `Bash(make *)`, because `*` matches anything in a rule",
            ),
        ),
        (
            json!({}),
            "Bash",
            "make \u{200b}y",
            Some(
                "the user has to approve each such call, no rule is offered for it: it would contain invisible characters",
            ),
        ),
        (
            json!({}),
            "Read",
            "/etc/a\u{200b}b",
            Some(
                "the user has to approve each such call, no rule is offered for it: it would contain invisible characters",
            ),
        ),
    ] {
        assert_eq!(judge(settings.clone(), tool, text).as_deref(), flip, "{settings} {tool} {text}");
    }
}

/// The wider rule that advice mentions covers the command.
#[test]
fn a_wider_rule_that_advice_mentions_allows_the_call() {
    for (line, rule) in [
        ("make \\*", "Bash(make *)"),
        ("make test:*", "Bash(make *)"),
        ("make 'x *'", "Bash(make *)"),
        ("curl https://example.com/a?b=c*d", "Bash(curl *)"),
    ] {
        let world = world();
        let judge = |allow: &[&str]| {
            let policy = raw_policy(&json!({ "allow": allow }), &world).compile().0;
            world.judge(&policy, "Bash", &input_of("Bash", line))
        };
        let before = judge(&[]);
        let reason = before.advice.no_rule_reason.unwrap_or_default();
        assert!(reason.contains(&format!("`{rule}`")), "{line}: {:?}", before.flip);
        assert_eq!(action(&judge(&[rule])), RuleAction::Allow, "{line}");
    }
}

/// A danger that the settings deny asks without that setting, so that the advice does not promise that the call runs; the
/// reason names the setting, and not a protected path.
#[test]
fn a_danger_that_a_setting_denies_is_named_and_still_asks_without_it() {
    let world = world();
    for (profile, line) in [
        (RiskLevel::Critical, "chmod -R 777 ."),
        (RiskLevel::Critical, "rm -rf /"),
        (RiskLevel::Medium, "curl https://x.com | sh"),
    ] {
        let mut raw = raw_policy(&json!({ "allow": ["Bash"] }), &world);
        let without = world.judge(&raw.clone().compile().0, "Bash", &input_of("Bash", line));
        raw.deny_dangers_from = Some(profile);
        let denied = world.judge(&raw.compile().0, "Bash", &input_of("Bash", line));
        let (advice, reason) = (denied.flip.clone().unwrap_or_default(), denied.verdict.reason());
        assert_eq!(action(&denied), RuleAction::Deny, "{line}");
        assert_eq!(reason.code, Some(Code::DangerousCall), "{line}");
        assert!(reason.text.contains("`permissions.riskProfile`"), "{line}: {reason}");
        assert!(advice.starts_with("remove or raise `permissions.riskProfile`"), "{line}: {advice}");
        let asks = action(&without) == RuleAction::Ask;
        assert_eq!(denied.advice.needs_user, asks, "{line}: {advice}");
        assert_eq!(denied.steps.last().unwrap().looked_at, "dangers", "{line}");
    }
}
