//! Long conversations, outputs of a given shape, and the conversation at a terminal.

use super::agent_fixture::{PROTOCOLS, ScriptedModel, frames, result_of};
use super::cli_fixture::CliFixture;
use super::terminal_prompt::PtySession;
use serde_json::{Value, json};

const STREAM: [&str; 4] = ["run", "-p", "--output-format", "stream-json"];

#[test]
fn a_conversation_that_does_not_fit_is_compacted_once() {
    let full = json!({ "error": 400, "message": "prompt is too long: 300000 tokens > 200000 maximum" });
    let ls = json!({ "tools": [{ "name": "ls", "input": {} }] });
    for protocol in PROTOCOLS {
        let fixture = CliFixture::new();
        let script = json!({ "turns": [ls, full, { "text": "SUMMARY-OF-ALL" }, { "text": "Done." }] });
        let model = ScriptedModel::new(&script);
        let run = model.run(&fixture, protocol, &[&STREAM[..], &["remember the milk"]].concat());
        assert_eq!(result_of(&run)["result"], "Done.", "{protocol}: {} {}", run.stdout, run.stderr);
        let requests = model.requests();
        assert!(requests[2].to_string().contains("remember the milk"), "the summary is of everything");
        let last = requests[3].to_string();
        assert!(last.contains("SUMMARY-OF-ALL") && !last.contains("remember the milk"), "{protocol}: {last}");
        assert!(frames(&run).iter().any(|frame| frame["subtype"] == "compact_boundary"));
        assert_eq!(model.seen()["violations"], json!([]), "{protocol}");
        // What is stored goes on from the summary.
        let model = ScriptedModel::new(&json!({ "turns": [{ "text": "Again." }] }));
        let run = model.run(&fixture, protocol, &[&STREAM[..], &["--continue", "next"]].concat());
        assert_eq!(result_of(&run)["result"], "Again.");
        assert!(model.requests()[0].to_string().contains("SUMMARY-OF-ALL"));
    }
    let (fixture, model) = (
        CliFixture::new(),
        ScriptedModel::new(&json!({ "turns": [full, { "text": "S" }, full, { "text": "never" }] })),
    );
    let run = model.run(&fixture, "anthropic", &[&STREAM[..], &["x"]].concat());
    let result = result_of(&run);
    assert_eq!((run.code, &result["terminal_reason"]), (1, &json!("prompt_too_long")));
    assert_eq!(model.requests().len(), 3, "a fruitless compaction is not repeated");
}

#[test]
fn a_window_that_is_nearly_full_is_compacted_before_the_next_request() {
    let fixture = CliFixture::new();
    let turn = json!({ "tools": [{ "name": "ls", "input": {} }], "usage": { "input_tokens": 190_000 } });
    let model = ScriptedModel::new(&json!({ "turns": [turn, { "text": "SUMMARY" }, { "text": "Done." }] }));
    let run = model.run(&fixture, "anthropic", &[&STREAM[..], &["go"]].concat());
    assert_eq!(result_of(&run)["result"], "Done.", "{}", run.stderr);
    assert!(model.requests()[1]["tools"].is_null() && model.requests()[2].to_string().contains("SUMMARY"));
}

#[test]
fn an_output_of_the_wanted_shape_is_asked_for_and_checked() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] })
        .to_string();
    let output = |n: Value| json!({ "tools": [{ "name": "StructuredOutput", "input": { "n": n } }] });
    for protocol in PROTOCOLS {
        let fixture = CliFixture::new();
        let script = json!({ "turns": [{ "text": "It is four." }, output(json!("four")), output(json!(4))] });
        let model = ScriptedModel::new(&script);
        let run = model.run(
            &fixture,
            protocol,
            &[&STREAM[..], &["--json-schema", &schema, "--", "how many?"]].concat(),
        );
        let result = result_of(&run);
        assert_eq!(
            result["structured_output"],
            json!({ "n": 4 }),
            "{protocol}: {} {}",
            run.stdout,
            run.stderr
        );
        assert_eq!(model.seen()["violations"], json!([]));
    }
    let turns: Vec<Value> = (0..9).map(|_| json!({ "text": "no" })).collect();
    let (fixture, model) = (CliFixture::new(), ScriptedModel::new(&json!({ "turns": turns })));
    let run =
        model.run(&fixture, "anthropic", &[&STREAM[..], &["--json-schema", &schema, "--", "x"]].concat());
    assert_eq!((run.code, &result_of(&run)["subtype"]), (1, &json!("error_max_structured_output_retries")));
    assert_eq!(model.requests().len(), 5);
    for (wrong, says) in [("[1]", "must have the type `object`"), ("{", "not valid JSON")] {
        let run =
            model.run(&fixture, "anthropic", &[&STREAM[..], &["--json-schema", wrong, "--", "x"]].concat());
        assert!(run.code == 2 && run.stderr.contains(says), "{}", run.stderr);
    }
}

/// The words on the command line that choose the model, for a shell in a pseudo-terminal.
fn model_variables(model: &ScriptedModel) -> String {
    format!("ANTHROPIC_BASE_URL={} ANTHROPIC_API_KEY=k", model.base)
}

#[test]
fn a_conversation_at_a_terminal_has_commands_approvals_and_interrupts() {
    let fixture = CliFixture::new();
    let write =
        json!({ "name": "Write", "input": { "file_path": fixture.path("new.txt"), "content": "hello\n" } });
    let script = json!({ "turns": [
        { "text": "First answer." },
        { "tools": [write] },
        { "text": "Written." },
        { "text": "This answer hangs in the middle.", "hang_after": 1 },
        { "text": "Back again." },
    ] });
    let model = ScriptedModel::new(&script);
    let mut session = PtySession::start(&fixture, &format!("{} \"$0\" run", model_variables(&model)));
    session.wait_for("/help lists the commands");
    session.send_keys("hello there\n");
    session.wait_for("First answer.");
    session.wait_for("1 request,");
    session.send_keys("/cost\n");
    session.wait_for("in all");
    session.send_keys("/mode\n");
    session.wait_for("the mode is default");
    session.send_keys("write it\n");
    session.wait_for("edit the input");
    session.send_keys("y");
    session.wait_for("Written.");
    assert!(fixture.path("new.txt").exists());
    session.send_keys("/undo\n");
    session.wait_for("removed");
    assert!(!fixture.path("new.txt").exists());
    session.send_keys("go on\n");
    session.wait_for("This answer");
    session.send_keys("\u{3}");
    session.wait_for("the turn was interrupted");
    session.send_keys("and now\n");
    session.wait_for("Back again.");
    session.send_keys("/clear\n");
    session.wait_for("was forgotten");
    session.send_keys("\u{4}");
    let (code, screen) = session.finish();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(model.seen()["violations"], json!([]));
    assert_eq!(model.requests().len(), 5);
}
