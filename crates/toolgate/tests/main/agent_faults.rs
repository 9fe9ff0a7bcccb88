//! Every fault that the scripted model offers ends in the documented way, on every protocol.

use super::agent_fixture::{PROTOCOLS, ScriptedModel, fake_model, frames, result_of};
use super::cli_fixture::CliFixture;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const STREAM: [&str; 4] = ["run", "-p", "--output-format", "stream-json"];

fn run_stream(
    script: &Value,
    protocol: &str,
    env: &[(&str, &str)],
) -> (super::cli_fixture::CliRun, ScriptedModel) {
    let (fixture, model) = (CliFixture::new(), ScriptedModel::new(script));
    let mut args = STREAM.to_vec();
    args.push("do it");
    let mut command = model.command(&fixture, protocol, &args);
    command.envs(env.iter().copied());
    (super::cli_fixture::cli_run(command.output().unwrap()), model)
}

#[test]
fn what_passes_is_repeated_and_what_does_not_ends_the_turn() {
    for protocol in PROTOCOLS {
        for (error, is_repeated) in [
            (json!({ "error": 429, "headers": { "retry-after-ms": "20" } }), true),
            (json!({ "error": 503, "headers": { "retry-after-ms": "20" } }), true),
            (json!({ "error": 529, "headers": { "retry-after-ms": "20" } }), true),
            (json!({ "error": 408, "headers": { "retry-after-ms": "20" } }), true),
            (json!({ "error": 409, "headers": { "retry-after-ms": "20" } }), true),
            (json!({ "error": 500, "headers": { "retry-after": "0" } }), true),
            (json!({ "error": 400, "headers": { "x-should-retry": "true", "retry-after-ms": "20" } }), true),
            (json!({ "error": 403, "type": "permission_error" }), false),
            (json!({ "error": 404 }), false),
            (json!({ "error": 413 }), false),
            (json!({ "error": 500, "headers": { "x-should-retry": "false" } }), false),
            (json!({ "error": 400, "message": "scripted refusal" }), false),
            (json!({ "error": 401, "message": "bad key sk-test-secret-key" }), false),
        ] {
            let (run, model) = run_stream(&json!({ "turns": [error, { "text": "Fine." }] }), protocol, &[]);
            let result = result_of(&run);
            let requests = model.requests().len();
            assert_eq!(result["is_error"], json!(!is_repeated), "{protocol} {error}: {result}");
            assert_eq!((run.code, requests), if is_repeated { (0, 2) } else { (1, 1) }, "{protocol} {error}");
            assert!(!run.stdout.contains("sk-test-secret-key") && !run.stderr.contains("sk-test-secret-key"));
            let retries = frames(&run).iter().filter(|frame| frame["subtype"] == "api_retry").count();
            assert_eq!(retries, usize::from(is_repeated));
            assert_eq!(model.seen()["violations"], json!([]));
        }
    }
}

#[test]
fn retries_end() {
    let turns: Vec<Value> =
        (0..4).map(|_| json!({ "error": 500, "headers": { "retry-after-ms": "5" } })).collect();
    let (run, model) =
        run_stream(&json!({ "turns": turns }), "anthropic", &[("CLAUDE_CODE_MAX_RETRIES", "2")]);
    assert_eq!((run.code, model.requests().len()), (1, 3));
    let result = result_of(&run);
    assert_eq!((&result["subtype"], &result["api_error_status"]), (&json!("success"), &json!(500)));
    let error =
        frames(&run).into_iter().find(|frame| frame["error"].is_string() && frame["type"] == "assistant");
    assert_eq!(error.unwrap()["error"], "server_error");
}

#[test]
fn a_stream_that_breaks_before_a_block_is_complete_is_repeated_and_nothing_of_it_remains() {
    for protocol in PROTOCOLS {
        for fault in ["break_after", "error_after"] {
            let mut broken = json!({ "text": "This is cut off before it is complete." });
            broken[fault] = json!(2);
            let (run, model) = run_stream(&json!({ "turns": [broken, { "text": "Whole." }] }), protocol, &[]);
            let result = result_of(&run);
            assert_eq!(result["result"], "Whole.", "{protocol} {fault}: {} {}", run.stdout, run.stderr);
            assert_eq!(model.requests().len(), 2);
            assert!(!run.stdout.contains("This is cut"), "{protocol} {fault}: {}", run.stdout);
        }
    }
}

/// The text before the call is complete, so the break keeps it; the half call does not run.
#[test]
fn a_stream_that_breaks_in_a_call_keeps_what_is_complete_and_never_runs_the_half_call() {
    for protocol in PROTOCOLS {
        let fixture = CliFixture::new();
        let path = fixture.path("half.txt");
        let call = json!({ "name": "Write", "input": { "file_path": path, "content": "x".repeat(100) } });
        let script = json!({ "turns": [
            { "text": "First.", "tools": [call], "break_after": 4 },
            { "text": "Went on." },
        ] });
        let model = ScriptedModel::new(&script);
        let mut args = STREAM.to_vec();
        args.extend(["--allowedTools", "Write", "--", "do it"]);
        let run = model.run(&fixture, protocol, &args);
        assert_eq!(result_of(&run)["result"], "Went on.", "{protocol}: {} {}", run.stdout, run.stderr);
        assert!(!path.exists());
        assert_eq!(model.seen()["violations"], json!([]), "{protocol}");
        assert!(run.stdout.contains("broke off"), "it is said: {}", run.stdout);
    }
}

#[test]
fn a_service_that_always_breaks_off_ends_the_turn_with_an_error() {
    let ls = json!({ "name": "ls", "input": {} });
    for protocol in PROTOCOLS {
        let turns: Vec<Value> =
            (0..9).map(|_| json!({ "text": "One two.", "tools": [ls], "break_after": 1 })).collect();
        let (run, model) =
            run_stream(&json!({ "turns": turns }), protocol, &[("CLAUDE_CODE_MAX_RETRIES", "2")]);
        let result = result_of(&run);
        assert_eq!((run.code, &result["is_error"]), (1, &json!(true)), "{protocol}: {result}");
        assert_eq!(result["terminal_reason"], "api_error", "{protocol}");
        assert!(model.requests().len() <= 4, "{protocol}");
        assert_eq!(model.seen()["violations"], json!([]), "{protocol}");
    }
}

#[test]
fn a_silent_stream_is_aborted_and_repeated_once() {
    for protocol in PROTOCOLS {
        let hang = json!({ "text": "This answer never ends.", "hang_after": 1 });
        let script = json!({ "turns": [hang, hang, { "text": "never asked for" }] });
        let (run, model) = run_stream(&script, protocol, &[("TOOLGATE_STREAM_IDLE_MS", "300")]);
        let result = result_of(&run);
        assert_eq!(result["is_error"], json!(true));
        assert!(result["result"].as_str().unwrap().contains("sent nothing"), "{result}");
        assert_eq!((run.code, model.requests().len()), (1, 2), "{protocol}");
    }
}

#[test]
fn an_answer_at_its_limit_goes_on_a_bounded_number_of_times() {
    for protocol in ["anthropic", "chat"] {
        let turns: Vec<Value> =
            (0..9).map(|_| json!({ "text": "part", "stop_reason": "max_tokens" })).collect();
        let (run, model) = run_stream(&json!({ "turns": turns }), protocol, &[]);
        assert_eq!((run.code, model.requests().len()), (0, 4), "{protocol}: {}", run.stderr);
        let script = json!({ "turns": [{ "text": "one", "stop_reason": "max_tokens" }, { "text": "two" }] });
        let (run, _) = run_stream(&script, protocol, &[]);
        assert_eq!(result_of(&run)["result"], "two");
    }
}

#[test]
fn a_refusal_ends_the_turn_and_a_pause_goes_back_unchanged() {
    let (run, model) =
        run_stream(&json!({ "turns": [{ "text": "No.", "stop_reason": "refusal" }] }), "anthropic", &[]);
    let result = result_of(&run);
    assert_eq!((&result["stop_reason"], model.requests().len()), (&json!("refusal"), 1));
    let script = json!({ "turns": [{ "text": "Wait.", "stop_reason": "pause_turn" }, { "text": "Done." }] });
    let (run, model) = run_stream(&script, "anthropic", &[]);
    assert_eq!(result_of(&run)["result"], "Done.");
    let last = model.requests()[1]["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["role"], &last["content"][0]["text"]), (&json!("assistant"), &json!("Wait.")));
}

/// A call whose input is no JSON is refused with words for the model, in its place among the results.
#[test]
fn a_call_with_malformed_input_is_refused_and_the_turn_goes_on() {
    for protocol in PROTOCOLS {
        let call = json!({ "name": "Write", "input": "{\"file_path\": \"/tmp/x\", \"content" });
        let script = json!({ "turns": [{ "tools": [call], "delay_ms": 5 }, { "text": "Corrected." }] });
        let (run, model) = run_stream(&script, protocol, &[]);
        let result = result_of(&run);
        assert_eq!(result["result"], "Corrected.", "{protocol}: {} {}", run.stdout, run.stderr);
        let requests = model.requests();
        assert_eq!(requests.len(), 2, "{protocol}");
        assert!(run.stdout.contains("\"is_error\":true"), "{protocol}: {}", run.stdout);
        assert!(
            run.stdout.contains("JSON object") || run.stdout.contains("not valid JSON"),
            "{protocol}: {}",
            run.stdout
        );
        assert_eq!(model.seen()["violations"], json!([]), "{protocol}");
    }
}

/// A call that the limit in tokens cut is dropped, and the model is asked to go on.
#[test]
fn a_half_call_at_the_limit_in_tokens_never_runs() {
    for protocol in ["anthropic", "chat"] {
        let fixture = CliFixture::new();
        let path = fixture.path("half.txt");
        let half = format!("{{\"file_path\": \"{}\", \"content\": \"ha", path.display());
        let call = json!({ "name": "Write", "input": half });
        let script = json!({ "turns": [
            { "text": "First.", "tools": [call], "stop_reason": "max_tokens" }, { "text": "In smaller parts." },
        ] });
        let model = ScriptedModel::new(&script);
        let mut args = STREAM.to_vec();
        args.extend(["--allowedTools", "Write", "--", "do it"]);
        let run = model.run(&fixture, protocol, &args);
        assert_eq!(
            result_of(&run)["result"],
            "In smaller parts.",
            "{protocol}: {} {}",
            run.stdout,
            run.stderr
        );
        assert!(!path.exists(), "{protocol}");
        assert_eq!(model.seen()["violations"], json!([]), "{protocol}");
    }
}

/// A request that the script has no turn for is one that the service refuses: it ends the turn with its words.
#[test]
fn an_answer_that_the_service_refuses_ends_with_its_words() {
    for protocol in PROTOCOLS {
        let (run, model) = run_stream(&json!({ "turns": [] }), protocol, &[]);
        let result = result_of(&run);
        assert!(result["result"].as_str().unwrap().contains("no turn left"), "{protocol}: {result}");
        assert_eq!((run.code, model.requests().len()), (1, 1), "{protocol}");
    }
}

/// What the scripted model can do is what the tests of this file use: a fault that is added there is missed here.
#[test]
fn every_fault_that_the_model_offers_is_used() {
    let source = std::fs::read_to_string(fake_model()).unwrap();
    let offered: BTreeSet<&str> = source
        .split("turn.get(\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .chain(source.contains("\"error\" in turn").then_some("error"))
        .collect();
    let tests = include_str!("agent_faults.rs");
    let unused: Vec<&&str> = offered
        .iter()
        // Thinking and ids are no faults; pauses between pieces are used by the kills at random frames.
        .filter(|name| !["text", "thinking", "tools", "usage", "chunk_ms"].contains(*name))
        .filter(|name| !tests.contains(&format!("\"{name}\"")))
        .collect();
    assert!(offered.len() > 8 && unused.is_empty(), "{unused:?} of {offered:?}");
}
