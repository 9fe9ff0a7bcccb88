//! The seed's properties of a shell tool, with a real shell.

use super::bash_desk::{Desk, on_runtime, output, structured};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolgate_gate::CallOptions;
use toolgate_proto::{Code, Event};
use toolgate_tools::Toolset;

/// Seed property 25: the result has the output and the exit code.
#[test]
fn property_25_shell_command_execution() {
    on_runtime(async {
        let desk = Desk::of(Toolset::Plain, |_| ());
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let inputs = (prop::collection::vec("[ -~]{0,20}", 0..5), 0i32..256);
        for _ in 0..256 {
            let (lines, code) = inputs.new_tree(&mut runner).unwrap().current();
            let quoted: Vec<String> =
                lines.iter().map(|line| format!("'{}'", line.replace('\'', "'\\''"))).collect();
            let command =
                format!("for line in {}; do printf '%s\\n' \"$line\"; done; exit {code}", quoted.join(" "));
            let closed = desk.call("shell", json!({ "command": command })).await;
            let expected: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let got = output(&closed);
            assert_eq!(structured(&closed)["exitCode"], json!(code));
            assert_eq!(structured(&closed)["stdout"], json!(expected), "{command}");
            let head = format!("Exit code: {code}\n\nOutput:\n{expected}");
            assert_eq!(got.model_text(), head);
            assert_eq!(closed.result.is_ok(), code == 0);
            if let Err(refusal) = &closed.result {
                assert_eq!(refusal.kind, "ShellExecutionError");
            }
        }
    });
}

/// Seed property 26: output reaches whoever watches while the command runs.
#[test]
fn property_26_shell_output_streaming() {
    on_runtime(async {
        let desk = Desk::new();
        for count in [1, 3, 7] {
            let mut events = desk.gate.events();
            // Each line is written only after the one before was seen: the test answers through a file.
            let command = format!(
                "for i in $(seq {count}); do echo line $i; until [ -e seen-$i-{count} ]; do sleep 0.01; done; done"
            );
            let watch = async {
                let mut seen = 0;
                while seen < count {
                    if let Event::Progress { text, .. } = events.recv().await.unwrap() {
                        for _ in text.lines() {
                            seen += 1;
                            std::fs::write(desk.path(&format!("ws/seen-{seen}-{count}")), "").unwrap();
                        }
                    }
                }
            };
            let (closed, ()) = tokio::join!(desk.bash(&command), watch);
            let expected: String = (1..=count).map(|n| format!("line {n}\n")).collect();
            assert_eq!(closed.result.unwrap().model_text(), expected);
        }
    });
}

/// Seed property 27: a command that runs too long is ended, and the error says so.
#[test]
fn property_27_shell_timeout_enforcement() {
    on_runtime(async {
        for (tool, toolset) in [("Bash", Toolset::Claude), ("shell", Toolset::Plain)] {
            let desk = Desk::of(toolset, |_| ());
            for command in
                ["echo first; sleep 1000", "sleep 1000 | cat", "trap '' TERM; while :; do sleep 1; done"]
            {
                let closed = desk.call(tool, json!({ "command": command, "timeout": 100 })).await;
                let refusal = closed.result.clone().unwrap_err();
                assert_eq!((refusal.code, refusal.kind.as_str()), (Code::ShellTimedOut, "ShellTimeoutError"));
                assert_eq!(structured(&closed)["timedOut"], json!(true));
                assert_eq!(output(&closed).model_text().contains("first"), command.contains("first"));
                assert_eq!(desk.alive(), Vec::<String>::new(), "{command}");
            }
        }
    });
}

/// Seed property 28: a command runs in the directory that was asked for.
#[test]
fn property_28_shell_working_directory() {
    on_runtime(async {
        let desk = Desk::of(Toolset::Plain, |_| ());
        for name in ["a", "a b", "deep/er/still", "quote'd", "ünïcode", ".hidden", "-dash"] {
            std::fs::create_dir_all(desk.path("ws").join(name)).unwrap();
            for cwd in [name.to_owned(), desk.path("ws").join(name).to_string()] {
                let closed = desk.call("shell", json!({ "command": "pwd", "cwd": cwd })).await;
                let expected = format!("{}\n", desk.path("ws").join(name));
                assert_eq!(structured(&closed)["stdout"], json!(expected));
            }
        }
        // A directory for one call is not the next call's.
        let closed = desk.call("shell", json!({ "command": "pwd" })).await;
        assert_eq!(structured(&closed)["stdout"], json!(format!("{}\n", desk.path("ws"))));
    });
}

/// Seed property 48: a cancelled call stops, says so, and leaves nothing.
#[test]
fn property_48_tool_invocation_abort_signal_respect() {
    on_runtime(async {
        let desk = Desk::new();
        for command in
            ["sleep 1000", "sleep 1000 & sleep 1000", "setsid sleep 1000 & wait", "yes > /dev/null"]
        {
            let cancel = CancellationToken::new();
            let limits = CallOptions::default().with_cancel(cancel.clone());
            let mut events = desk.gate.events();
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
            let (closed, ()) = tokio::join!(desk.call_within("Bash", input, limits), stop);
            let refusal = closed.result.unwrap_err();
            assert_eq!((refusal.code, refusal.kind.as_str()), (Code::Cancelled, "CancelledError"));
            gone(&desk.mark).await;
        }
    });
}

/// The keeper may still be at work when the gate's patience has ended.
pub(super) async fn gone(mark: &str) {
    let mut last = Vec::new();
    for _ in 0..2_000 {
        last = super::bash_desk::alive(mark);
        if last.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(last, Vec::<String>::new());
}

#[test]
fn the_directory_carries_over_inside_the_workspace_and_nothing_else_does() {
    on_runtime(async {
        let desk = Desk::new();
        let text = |closed: toolgate_gate::CallOutcome| output(&closed).model_text();
        assert_eq!(text(desk.bash("mkdir -p sub/deep && cd sub && export A=1 && f() { :; }").await), "");
        assert_eq!(
            text(desk.bash("pwd; echo \"[$A]\"; type f 2>&1 | head -1").await).lines().next(),
            Some(desk.path("ws/sub").to_string().as_str())
        );
        assert_eq!(text(desk.bash("echo \"[$A]\"").await), "[]\n");
        let outside = text(desk.bash("cd /").await);
        assert!(outside.contains("is outside the workspace"), "{outside}");
        assert_eq!(text(desk.bash("pwd").await), format!("{}\n", desk.path("ws/sub")));
        desk.bash("cd deep && exit 3").await;
        assert_eq!(text(desk.bash("pwd").await), format!("{}\n", desk.path("ws/sub/deep")));
    });
}

#[test]
fn long_output_is_shortened_and_kept() {
    on_runtime(async {
        let desk = Desk::with(|surroundings| surroundings.max_shown_bytes = 1_000);
        let closed = desk.bash("seq 1 20000").await;
        let text = output(&closed).model_text();
        assert!(text.len() < 1_400 && text.starts_with("1\n2\n") && text.contains("\n20000\n"), "{text}");
        let file = structured(&closed)["persistedOutputPath"].as_str().unwrap().to_owned();
        let all: String = (1..=20_000).map(|n| format!("{n}\n")).collect();
        assert_eq!(std::fs::read_to_string(file).unwrap(), all);
        // It can be read on as that of a task.
        let closed = desk.call("TaskOutput", json!({ "task_id": "task_1", "offset": 4 })).await;
        assert!(output(&closed).model_text().starts_with("3\n4\n"));

        let desk = Desk::with(|surroundings| surroundings.max_output_bytes = 10_000);
        let closed = desk.bash("yes").await;
        let refusal = closed.result.unwrap_err();
        assert!(refusal.reason.contains("wrote more than 10000 bytes"), "{}", refusal.reason);
        gone(&desk.mark).await;
    });
}

#[test]
fn inputs_that_make_no_sense_are_refused() {
    on_runtime(async {
        let desk = Desk::new();
        for (input, says) in [
            (json!({ "command": " " }), "`/command` is empty"),
            (json!({ "command": "a\u{0}b" }), "zero byte"),
            (json!({ "command": "true", "timeout": 600_001 }), "600000 milliseconds are the most"),
            (json!({ "command": "true", "timeout": 0 }), "timeout"),
            (json!({ "command": "true", "shell": "zsh" }), "shell"),
        ] {
            let refusal = desk.call("Bash", input).await.result.unwrap_err();
            assert!(refusal.reason.contains(says), "{}", refusal.reason);
        }
        let closed = desk.bash("grep nothing /dev/null").await;
        assert_eq!(closed.result.unwrap().model_text(), "[nothing matches]");
    });
}
