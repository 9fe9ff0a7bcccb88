//! The properties of a shell tool that the design lists, with a real shell.

use super::shell_fixture::{MAX_PROCESS_WAIT, ShellFixture, block_on_runtime, output, structured};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolgate_gate::CallOptions;
use toolgate_proto::{Code, Event};
use toolgate_tools::Toolset;

/// Property 25: the result has the output and the exit code.
#[test]
fn property_25_shell_command_execution() {
    block_on_runtime(async {
        let fixture = ShellFixture::of(Toolset::Plain, |_| ());
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let inputs = (prop::collection::vec("[ -~]{0,20}", 0..5), 0i32..256);
        for _ in 0..256 {
            let (lines, code) = inputs.new_tree(&mut runner).unwrap().current();
            let quoted: Vec<String> =
                lines.iter().map(|line| format!("'{}'", line.replace('\'', "'\\''"))).collect();
            let command =
                format!("for line in {}; do printf '%s\\n' \"$line\"; done; exit {code}", quoted.join(" "));
            let outcome = fixture.call("shell", json!({ "command": command })).await;
            let expected: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let got = output(&outcome);
            assert_eq!(structured(&outcome)["exitCode"], json!(code));
            assert_eq!(structured(&outcome)["stdout"], json!(expected), "{command}");
            let head = format!("Exit code: {code}\n\nOutput:\n{expected}");
            assert_eq!(got.model_text(), head);
            assert_eq!(outcome.result.is_ok(), code == 0);
            if let Err(refusal) = &outcome.result {
                assert_eq!(refusal.kind, "ShellExecutionError");
            }
        }
    });
}

/// Property 48: a cancelled call stops its command and leaves no process.
#[test]
fn property_48_tool_invocation_abort_signal_respect() {
    block_on_runtime(async {
        let fixture = ShellFixture::new();
        for command in
            ["sleep 1000", "sleep 1000 & sleep 1000", "setsid sleep 1000 & wait", "yes > /dev/null"]
        {
            let cancel = CancellationToken::new();
            let options = CallOptions::default().with_cancel(cancel.clone());
            let mut events = fixture.gate.events();
            let input = json!({ "command": format!("echo started; {command}") });
            let stop = async {
                loop {
                    if let Event::Progress { text, .. } = events.recv().await.unwrap()
                        && text.contains("started")
                    {
                        cancel.cancel();
                        return;
                    }
                }
            };
            let (outcome, ()) = tokio::join!(fixture.call_within("Bash", input, options), stop);
            let refusal = outcome.result.unwrap_err();
            assert_eq!((refusal.code, refusal.kind.as_str()), (Code::Cancelled, "CancelledError"));
            wait_until_gone(&fixture.marker).await;
        }
    });
}

/// Waits until no process has the marker: the supervisor may still be killing some when the call returns.
pub(super) async fn wait_until_gone(marker: &str) {
    let started = std::time::Instant::now();
    loop {
        let left = super::shell_fixture::live_processes(marker);
        if left.is_empty() {
            return;
        }
        assert!(started.elapsed() < MAX_PROCESS_WAIT, "{left:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn the_directory_carries_over_inside_the_workspace_and_nothing_else_does() {
    block_on_runtime(async {
        let fixture = ShellFixture::new();
        let text = |outcome: toolgate_gate::CallOutcome| output(&outcome).model_text();
        assert_eq!(text(fixture.bash("mkdir -p sub/deep && cd sub && export A=1 && f() { :; }").await), "");
        assert_eq!(
            text(fixture.bash("pwd; echo \"[$A]\"; type f 2>&1 | head -1").await).lines().next(),
            Some(fixture.path("ws/sub").to_string().as_str())
        );
        assert_eq!(text(fixture.bash("echo \"[$A]\"").await), "[]\n");
        let outside = text(fixture.bash("cd /").await);
        assert!(outside.contains("is outside the workspace"), "{outside}");
        assert_eq!(text(fixture.bash("pwd").await), format!("{}\n", fixture.path("ws/sub")));
        fixture.bash("cd deep && exit 3").await;
        assert_eq!(text(fixture.bash("pwd").await), format!("{}\n", fixture.path("ws/sub/deep")));
    });
}

#[test]
fn long_output_is_truncated_and_stored_in_a_file() {
    block_on_runtime(async {
        let fixture = ShellFixture::with(|config| config.max_shown_bytes = 1_000);
        let outcome = fixture.bash("seq 1 20000").await;
        let text = output(&outcome).model_text();
        assert!(text.len() < 1_400 && text.starts_with("1\n2\n") && text.contains("\n20000\n"), "{text}");
        let file = structured(&outcome)["persistedOutputPath"].as_str().unwrap().to_owned();
        let all: String = (1..=20_000).map(|n| format!("{n}\n")).collect();
        assert_eq!(std::fs::read_to_string(file).unwrap(), all);
        // The output can be read with TaskOutput as well.
        let outcome = fixture.call("TaskOutput", json!({ "task_id": "task_1", "offset": 4 })).await;
        assert!(output(&outcome).model_text().starts_with("3\n4\n"));

        let fixture = ShellFixture::with(|config| config.max_output_bytes = 10_000);
        let outcome = fixture.bash("yes").await;
        let refusal = outcome.result.unwrap_err();
        assert!(refusal.reason.contains("wrote more than 10000 bytes"), "{}", refusal.reason);
        wait_until_gone(&fixture.marker).await;
    });
}

#[test]
fn output_has_the_documented_limits() {
    block_on_runtime(async {
        let fixture = ShellFixture::new();
        // 30 000 characters are shown whole, more are truncated to about that and stored in a file.
        let shown = async |count: usize| {
            // The result names the file, whose random name has no such character.
            let outcome = fixture.bash(&format!("head -c {count} /dev/zero | tr '\\0' '%'")).await;
            let structured = structured(&outcome);
            let text = output(&outcome).model_text();
            let shown = text.chars().filter(|c| *c == '%').count();
            (shown, structured["persistedOutputPath"].as_str().map(str::to_owned))
        };
        assert_eq!(shown(30_000).await.0, 30_000);
        let (count, file) = shown(30_001).await;
        assert!(count <= 30_000, "{count}");
        assert_eq!(std::fs::metadata(file.unwrap()).unwrap().len(), 30_001);
        // 256 MiB end a command.
        let refusal = fixture.bash("head -c 268435457 /dev/zero; sleep 1000").await.result.unwrap_err();
        assert!(refusal.reason.contains("wrote more than 268435456 bytes"), "{}", refusal.reason);
        wait_until_gone(&fixture.marker).await;
    });
}

#[test]
fn invalid_inputs_are_refused() {
    block_on_runtime(async {
        let fixture = ShellFixture::new();
        for (input, expected) in [
            (json!({ "command": " " }), "`command` is empty"),
            (json!({ "command": "a\u{0}b" }), "NUL byte"),
            (json!({ "command": "true", "timeout": 600_001 }), "the maximum is 600000 ms"),
            (json!({ "command": "true", "timeout": 0 }), "timeout"),
            (json!({ "command": "true", "shell": "zsh" }), "shell"),
        ] {
            let refusal = fixture.call("Bash", input).await.result.unwrap_err();
            assert!(refusal.reason.contains(expected), "{}", refusal.reason);
        }
        let outcome = fixture.bash("grep nothing /dev/null").await;
        assert_eq!(outcome.result.unwrap().model_text(), "[nothing matches]");
    });
}
