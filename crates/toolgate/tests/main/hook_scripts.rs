//! The hook contract with real scripts in sh, Python and Node: exit codes, output, input, conditions and options.

use super::hook_fixture::{HookFixture, text};
use serde_json::{Value, json};
use toolgate::Code;

/// The language of a script.
#[derive(Clone, Copy)]
enum ScriptLanguage {
    Sh,
    Py,
    Js,
}

/// How the call must end.
enum ExpectedEnd {
    /// The tool ran, and the model gets this text.
    Ran(&'static str),
    /// The call was refused with this code, and the model gets this text.
    Refused(Code, &'static str),
}

use ExpectedEnd::{Ran, Refused};

struct HookCase {
    name: &'static str,
    event: &'static str,
    script: (ScriptLanguage, &'static str),
    /// Further keys of the handler.
    handler: Value,
    end: ExpectedEnd,
    /// How the record says that the hook ended.
    ended: &'static str,
}

fn pre(
    name: &'static str,
    script: (ScriptLanguage, &'static str),
    end: ExpectedEnd,
    ended: &'static str,
) -> HookCase {
    HookCase { name, event: "PreToolUse", script, handler: json!({}), end, ended }
}

fn at(
    event: &'static str,
    name: &'static str,
    script: (ScriptLanguage, &'static str),
    end: ExpectedEnd,
    ended: &'static str,
) -> HookCase {
    HookCase { event, ..pre(name, script, end, ended) }
}

fn with(handler: Value, case: HookCase) -> HookCase {
    HookCase { handler, ..case }
}

const ALL_FIELDS: &str = r#"
import json, sys, os
t = json.load(sys.stdin)
want = {"session_id": "ses_test", "hook_event_name": "PreToolUse", "tool_name": "Deploy",
        "tool_input": {"command": "ship"}, "tool_use_id": "call_1", "permission_mode": "default",
        "cwd": os.getcwd(), "transcript_path": ""}
bad = [k for k in want if t.get(k) != want[k]]
if bad: print("wrong: %s in %s" % (bad, t), file=sys.stderr); sys.exit(2)
"#;

#[rustfmt::skip]
fn cases() -> Vec<HookCase> {
    use ScriptLanguage::{Js, Py, Sh};
    let quick = json!({ "timeout": 0.2 });
    let goes_on = json!({ "onFailure": "continue" });
    vec![
        // Exit codes and plain output.
        pre("no output allows the call", (Sh, "cat >/dev/null"), Ran("did ship"), "silent"),
        pre("plain text is no answer", (Sh, "echo looks good to me"), Ran("did ship"), "silent"),
        pre("input need not be read", (Sh, "exec <&-; exit 0"), Ran("did ship"), "silent"),
        pre("exit 2 blocks with the reason", (Sh, "echo not on fridays >&2; exit 2"), Refused(Code::HookDenied, "not on fridays"), "deny"),
        pre("exit 2 blocks without a reason", (Sh, "exit 2"), Refused(Code::HookDenied, "no reason"), "deny"),
        pre("JSON cannot undo exit 2", (Sh, r#"echo '{"decision":"approve"}'; exit 2"#), Refused(Code::HookDenied, ""), "deny"),
        pre("exit 1 is a failure and refuses", (Sh, "echo oops >&2; exit 1"), Refused(Code::HookFailed, "exit code 1: oops"), "crashed"),
        with(goes_on.clone(), pre("exit 1 of an advisory hook goes on", (Sh, "exit 1"), Ran("did ship"), "crashed")),
        with(json!({ "onFailure": "block" }), pre("exit 1 of a required hook refuses", (Sh, "exit 1"), Refused(Code::HookFailed, ""), "crashed")),
        pre("exit 1 with a refusal in JSON is that refusal", (Sh, r#"echo '{"decision":"block","reason":"because"}'; exit 1"#), Refused(Code::HookDenied, "because"), "deny"),
        pre("exit 1 with an approval in JSON is a failure", (Sh, r#"echo '{"decision":"approve"}'; exit 1"#), Refused(Code::HookFailed, ""), "crashed"),
        pre("a missing command is distinguished", (Sh, "no-such-command-here"), Refused(Code::HookMissing, "no-such-command-here"), "missing"),
        pre("a missing Python script is not a denial", (Sh, "exec python3 /no/such/script.py"), Refused(Code::HookMissing, "can't open file"), "missing"),
        pre("a missing shell script is not a denial", (Sh, "exec sh /no/such/script.sh"), Refused(Code::HookMissing, "/no/such/script.sh"), "missing"),
        with(goes_on.clone(), pre("a missing advisory script does not lock out", (Sh, "exec python3 /no/such/script.py"), Ran("did ship"), "missing")),
        pre("a file that cannot be run is distinguished", (Sh, "exec /etc/passwd"), Refused(Code::HookFailed, "could not be started"), "not_started"),
        pre("a killed hook refuses", (Sh, "kill -9 $$"), Refused(Code::HookFailed, "signal 9"), "crashed"),
        with(quick.clone(), pre("a hook that hangs refuses", (Sh, "sleep 100"), Refused(Code::HookTimedOut, "200 ms"), "timed_out")),
        with(quick, pre("a hook whose child hangs refuses", (Sh, "sleep 100 & wait"), Refused(Code::HookTimedOut, ""), "timed_out")),
        pre("a child that keeps running does not delay the answer", (Sh, "sleep 100 & exit 0"), Ran("did ship"), "silent"),
        // Invalid output.
        pre("invalid JSON refuses", (Sh, "echo '{not json'"), Refused(Code::HookUnreadable, ""), "unreadable"),
        with(goes_on, pre("invalid JSON of an advisory hook goes on", (Sh, "echo '{not json'"), Ran("did ship"), "unreadable")),
        pre("an unknown decision refuses", (Sh, r#"echo '{"decision":"alow"}'"#), Refused(Code::HookUnreadable, "alow"), "unreadable"),
        pre("a duplicate key refuses", (Sh, r#"echo '{"decision":"block","decision":"approve"}'"#), Refused(Code::HookUnreadable, "decision"), "unreadable"),
        pre("an answer for another event refuses", (Sh, r#"echo '{"hookSpecificOutput":{"hookEventName":"Stop"}}'"#), Refused(Code::HookUnreadable, "Stop"), "unreadable"),
        pre("bytes that are not UTF-8 refuse", (Py, "import sys; sys.stdout.buffer.write(b'{\\xff}')"), Refused(Code::HookUnreadable, "UTF-8"), "unreadable"),
        pre("endless output refuses", (Py, "import sys\nwhile True: sys.stdout.write('{' * 65536)"), Refused(Code::HookUnreadable, "1 MiB"), "unreadable"),
        // Decisions.
        pre("deny", (Py, r#"print('{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no deploys"}}')"#), Refused(Code::HookDenied, "no deploys"), "deny"),
        pre("ask", (Js, r#"console.log(JSON.stringify({hookSpecificOutput:{hookEventName:"PreToolUse",permissionDecision:"ask"}}))"#), Refused(Code::ApprovalUnavailable, ""), "ask"),
        pre("defer", (Py, r#"print('{"hookSpecificOutput":{"permissionDecision":"defer","permissionDecisionReason":"later"}}')"#), Refused(Code::HookDeferred, "later"), "defer"),
        pre("the older block", (Js, r#"console.log('{"decision":"block","reason":"old words"}')"#), Refused(Code::HookDenied, "old words"), "deny"),
        pre("the older approve", (Sh, r#"echo '{"decision":"approve"}'"#), Ran("did ship"), "allow"),
        pre("continue false stops", (Sh, r#"echo '{"continue":false,"stopReason":"enough"}'"#), Refused(Code::HookStopped, "enough"), "stopped"),
        // Input and environment.
        pre("every field is there", (Py, ALL_FIELDS), Ran("did ship"), "silent"),
        pre("the project's directory is in the environment", (Sh, r#"[ "$CLAUDE_PROJECT_DIR" = "$PWD" ] && [ "$TOOLGATE_PROJECT_DIR" = "$PWD" ] || exit 2"#), Ran("did ship"), "silent"),
        pre("settings' environment is there", (Sh, r#"[ "$FROM_SETTINGS" = yes ] || exit 2"#), Ran("did ship"), "silent"),
        pre("there is no terminal", (Sh, "if (: </dev/tty) 2>/dev/null; then exit 2; fi"), Ran("did ship"), "silent"),
        pre("Node reads it too", (Js, r#"const t = JSON.parse(require("fs").readFileSync(0)); if (t.tool_input.command === "ship") { console.error("no shipping"); process.exit(2) }"#), Refused(Code::HookDenied, "no shipping"), "deny"),
        pre("a Python exception refuses", (Py, "raise RuntimeError('bug')"), Refused(Code::HookFailed, "bug"), "crashed"),
        pre("a Node exception refuses", (Js, "throw new Error('bug')"), Refused(Code::HookFailed, ""), "crashed"),
        // Rewriting and adding.
        pre("a rewritten input is what runs", (Py, "import json,sys\nt=json.load(sys.stdin)\nt['tool_input']['command']+=' --dry-run'\nprint(json.dumps({'hookSpecificOutput':{'hookEventName':'PreToolUse','updatedInput':t['tool_input']}}))"), Ran("did ship --dry-run"), "rewrote"),
        pre("a rewritten input replaces the whole", (Js, r#"console.log(JSON.stringify({hookSpecificOutput:{hookEventName:"PreToolUse",updatedInput:{}}}))"#), Refused(Code::InvalidInput, "rewrote the input"), "rewrote"),
        pre("a rewritten input is checked", (Sh, r#"echo '{"hookSpecificOutput":{"updatedInput":{"command":1}}}'"#), Refused(Code::InvalidInput, "must be a string"), "rewrote"),
        pre("context reaches the model", (Sh, r#"echo '{"hookSpecificOutput":{"additionalContext":"mind the gap"}}'"#), Ran("did ship\nmind the gap"), "silent"),
        // Conditions and options.
        with(json!({ "if": "Deploy" }), pre("`if` that matches the call", (Sh, "exit 2"), Refused(Code::HookDenied, ""), "deny")),
        with(json!({ "if": "Read" }), pre("`if` that matches other calls", (Sh, "exit 2"), Ran("did ship"), "silent")),
        with(json!({ "if": "Deploy((" }), pre("an invalid `if` refuses", (Sh, "exit 0"), Refused(Code::HookFailed, "`if`"), "misconfigured")),
        with(json!({ "async": true }), pre("in the background nothing is decided", (Sh, "exit 2"), Ran("did ship"), "silent")),
        // After the run.
        at("PostToolUse", "exit 2 tells the model", (Sh, "echo run the tests >&2; exit 2"), Ran("did ship\nhook `./script` objects: run the tests"), "deny"),
        at("PostToolUse", "block tells the model", (Py, r#"print('{"decision":"block","reason":"format it"}')"#), Ran("format it"), "deny"),
        at("PostToolUse", "context reaches the model after the run", (Js, r#"console.log(JSON.stringify({hookSpecificOutput:{hookEventName:"PostToolUse",additionalContext:"12 tests pass"}}))"#), Ran("did ship\n12 tests pass"), "silent"),
        at("PostToolUse", "the output may be replaced", (Sh, r#"echo '{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":"[redacted]"}}'"#), Ran("[redacted]"), "rewrote"),
        at("PostToolUse", "the input has the response and the duration", (Py, "import json,sys\nt=json.load(sys.stdin)\nassert 'did ship' in json.dumps(t['tool_response']) and t['duration_ms'] >= 0"), Ran("did ship"), "silent"),
        at("PostToolUse", "a failure is reported beside the result", (Sh, "exit 1"), Ran("did ship\nhook `./script` failed after the call"), "crashed"),
        at("PostToolUse", "continue false lets the result stand", (Sh, r#"echo '{"continue":false,"stopReason":"enough"}'"#), Ran("did ship"), "stopped"),
    ]
}

#[test]
fn every_line_of_the_contract_holds_for_real_scripts() {
    let cases = cases();
    assert!(cases.len() >= 40, "{} scripts", cases.len());
    for case in cases {
        check(&case);
    }
}

fn check(case: &HookCase) {
    use std::os::unix::fs::PermissionsExt;
    let fixture = HookFixture::new();
    let (language, body) = case.script;
    let head = match language {
        ScriptLanguage::Sh => "#!/bin/bash",
        ScriptLanguage::Py => "#!/usr/bin/env python3",
        ScriptLanguage::Js => "#!/usr/bin/env node",
    };
    let script = fixture.write("script", &format!("{head}\n{body}\n"));
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut handler = json!({ "type": "command", "command": "./script", "timeout": 60 });
    handler.as_object_mut().unwrap().extend(case.handler.as_object().unwrap().clone());
    let mut settings = HookFixture::hook(case.event, handler);
    settings["env"] = json!({ "FROM_SETTINGS": "yes" });
    let outcome = HookFixture::call(&fixture.toolgate(&settings), "ship");
    let output = text(&outcome);
    match (&case.end, &outcome.result) {
        (Ran(wanted), Ok(_)) => assert!(output.contains(wanted), "{}: {output}", case.name),
        (Refused(code, wanted), Err(refusal)) => {
            assert_eq!(refusal.code, *code, "{}: {output}", case.name);
            assert!(output.contains(wanted), "{}: {output}", case.name);
        }
        (Ran(_), Err(refusal)) => panic!("{}: refused: {refusal}", case.name),
        (Refused(..), Ok(_)) => panic!("{}: it ran", case.name),
    }
    let marks: Vec<&str> = outcome.record.hooks.iter().map(|mark| mark.ended.as_str()).collect();
    assert_eq!(marks, [case.ended], "{}", case.name);
}

#[test]
fn hooks_run_after_failed_and_denied_calls() {
    let fixture = HookFixture::new();
    let command = "python3 -c 'import json,sys; t=json.load(sys.stdin); assert \"failed on request\" in t[\"error\"] and t[\"is_interrupt\"] is False; print(json.dumps({\"hookSpecificOutput\":{\"additionalContext\":\"seen\"}}))'";
    let settings = HookFixture::hook("PostToolUseFailure", json!({ "type": "command", "command": command }));
    let outcome = HookFixture::call(&fixture.toolgate(&settings), "fail");
    assert!(text(&outcome).starts_with("seen\n"), "{}", text(&outcome));

    let command = r#"python3 -c 'import json,sys; t=json.load(sys.stdin); assert t["reason"]; print("{\"hookSpecificOutput\":{\"retry\":true}}")'"#;
    let mut settings =
        HookFixture::hook("PermissionDenied", json!({ "type": "command", "command": command }));
    settings["permissions"] = json!({});
    let outcome = HookFixture::call(&fixture.toolgate(&settings), "ship");
    assert!(
        text(&outcome).starts_with("A hook offers a retry: you may call `Deploy` again.\n"),
        "{}",
        text(&outcome)
    );
}

#[test]
fn a_script_can_answer_a_permission_request() {
    let fixture = HookFixture::new();
    for (output, wanted) in [
        (
            r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}"#,
            "did ship",
        ),
        (
            r#"{"hookSpecificOutput":{"decision":{"behavior":"allow","updatedInput":{"command":"dry"}}}}"#,
            "did dry",
        ),
        (
            r#"{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"ask again tomorrow"}}}"#,
            "ask again tomorrow",
        ),
        (r#"{"decision":"approve"}"#, "did ship"),
        ("{}", "no approver is available"),
        ("{broken", "cannot be read"),
    ] {
        let line = format!("cat >/dev/null; echo '{output}'");
        let mut settings =
            HookFixture::hook("PermissionRequest", json!({ "type": "command", "command": line }));
        settings["permissions"] = json!({});
        let outcome = HookFixture::call(&fixture.toolgate(&settings), "ship");
        assert!(text(&outcome).contains(wanted), "{output}: {}", text(&outcome));
    }
}

#[test]
fn a_once_hook_runs_once_in_a_session_and_again_after_a_failure() {
    let fixture = HookFixture::new();
    let settings = HookFixture::hook(
        "PreToolUse",
        json!({ "type": "command", "command": "echo x >> marker; [ -e ready ]", "once": true }),
    );
    let toolgate = fixture.toolgate(&settings);
    assert!(HookFixture::call(&toolgate, "a").result.is_err(), "a hook that failed has not checked the call");
    fixture.write("ready", "");
    assert!(HookFixture::call(&toolgate, "b").result.is_ok());
    std::fs::remove_file(fixture.path("ready")).unwrap();
    assert!(HookFixture::call(&toolgate, "c").result.is_ok());
    assert_eq!(std::fs::read_to_string(fixture.path("marker")).unwrap(), "x\nx\n");
}

#[test]
fn hooks_run_in_order_and_each_sees_the_rewrite_of_the_one_before() {
    let fixture = HookFixture::new();
    let add = |word: &str| {
        json!({ "type": "command", "command": format!(
            "python3 -c 'import json,sys; t=json.load(sys.stdin); print(json.dumps({{\"hookSpecificOutput\":{{\"updatedInput\":{{\"command\":t[\"tool_input\"][\"command\"]+\"{word}\"}}}}}}))'"
        ) })
    };
    let settings = json!({
        "permissions": { "allow": ["Deploy"] },
        "hooks": { "PreToolUse": [{ "hooks": [add("1"), add("2")] }, { "matcher": "Dep.*", "hooks": [add("3")] }] },
    });
    let outcome = HookFixture::call(&fixture.toolgate(&settings), "ship");
    assert_eq!(text(&outcome), "did ship123");
    assert_eq!(outcome.record.revisions.len(), 3);
}

#[test]
fn matchers_select_tools() {
    let fixture = HookFixture::new();
    for (matcher, blocks) in [
        (json!(null), true),
        (json!(""), true),
        (json!("*"), true),
        (json!("Deploy"), true),
        (json!("Read|Deploy"), true),
        (json!("Read, Deploy"), true),
        (json!("Depl"), false),
        (json!("Depl.*"), true),
        (json!("deploy"), false),
        (json!("^(?!Deploy)"), false),
        // An invalid matcher may have meant this tool.
        (json!("Deploy("), true),
    ] {
        let mut settings = HookFixture::hook("PreToolUse", json!({ "type": "command", "command": "exit 2" }));
        if !matcher.is_null() {
            settings["hooks"]["PreToolUse"][0]["matcher"] = matcher.clone();
        }
        let outcome = HookFixture::call(&fixture.toolgate(&settings), "ship");
        assert_eq!(outcome.result.is_err(), blocks, "{matcher}");
    }
}

#[test]
fn a_hook_with_args_runs_without_a_shell() {
    let fixture = HookFixture::new();
    let settings = HookFixture::hook(
        "PreToolUse",
        json!({ "type": "command", "command": "touch", "args": ["${CLAUDE_PROJECT_DIR}/a b; $(c)"] }),
    );
    assert!(HookFixture::call(&fixture.toolgate(&settings), "ship").result.is_ok());
    assert!(fixture.path("a b; $(c)").exists());
    let settings = HookFixture::hook(
        "PreToolUse",
        json!({ "type": "command", "command": "/no/such/program", "args": [] }),
    );
    let outcome = HookFixture::call(&fixture.toolgate(&settings), "ship");
    assert_eq!(outcome.result.unwrap_err().code, Code::HookMissing);
}

#[test]
fn hooks_that_cannot_run_refuse_calls_and_are_reported() {
    let fixture = HookFixture::new();
    for handler in [
        json!({ "type": "prompt", "prompt": "is this fine?" }),
        json!({ "type": "agent", "prompt": "look into it" }),
        json!({ "type": "mcp_tool", "server": "s" }),
        json!({ "type": "command" }),
        json!({ "type": "http", "url": "https://example.com/" }),
    ] {
        let toolgate = fixture.toolgate(&HookFixture::hook("PreToolUse", handler.clone()));
        assert!(toolgate.notes().0.iter().any(|note| note.message.contains("cannot run")), "{handler}");
        let outcome = HookFixture::call(&toolgate, "ship");
        assert_eq!(outcome.result.unwrap_err().code, Code::HookFailed, "{handler}");
        let mut advisory = handler;
        advisory["onFailure"] = json!("continue");
        assert!(
            HookFixture::call(&fixture.toolgate(&HookFixture::hook("PreToolUse", advisory)), "x")
                .result
                .is_ok()
        );
    }
}
