//! Properties 26, 27 and 28 of a shell tool over generated commands, in both toolsets.
//!
//! What is expected comes from the generator and from the file system, never from the tool: the text that a command was
//! made to print, the processes that `/proc` lists, the directory in which a file appeared.

use super::bash_properties::wait_until_gone;
use super::shell_fixture::{ShellFixture, block_on_runtime, output, structured};
use futures_util::StreamExt;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::json;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toolgate_gate::{CallOptions, CallOutcome};
use toolgate_proto::{Code, Event, ToolCall};
use toolgate_tools::Toolset;

/// Cases of each property in each toolset.
const CASES: usize = 100;
/// Commands that run side by side.
const MAX_AT_ONCE: usize = 6;
/// How long one command may take before the test fails and names it.
const MAX_WAIT: Duration = Duration::from_secs(100);
/// The shell tool of each toolset.
const SHELLS: &[(&str, Toolset)] = &[("Bash", Toolset::Claude), ("shell", Toolset::Plain)];

fn generate<S: Strategy>(strategy: &S) -> Vec<S::Value> {
    let mut runner = TestRunner::deterministic();
    (0..CASES).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A piece of output: its text, and whether it goes to standard error.
type OutputPiece = (String, bool);

fn pieces() -> impl Strategy<Value = Vec<OutputPiece>> {
    // Output is reported line by line.
    let text = prop_oneof!["[a-z0-9 ]{1,20}\n", "\n", "([a-zäöü€]{1,6}\n){2,4}", "[!-~]{1,12}\n"];
    prop::collection::vec((text, any::<bool>()), 1..4)
}

/// A command that writes the pieces one after the other, each only when the file for the one before is there.
fn gated_command(case: usize, pieces: &[OutputPiece]) -> String {
    let mut command = String::new();
    for (index, (text, is_error)) in pieces.iter().enumerate() {
        let to = if *is_error { " >&2" } else { "" };
        command += &format!("printf '%s' {}{to}\n", quote(text));
        command += &format!("until [ -e seen-{case}-{index} ]; do sleep 0.02; done\n");
    }
    command
}

/// Property 26: subscribers receive output while the command runs. Each piece is written only after the test has
/// received all before it, so a tool that reports at the end only would never end.
#[test]
fn property_26_shell_output_streaming() {
    block_on_runtime(async {
        for (tool, toolset) in SHELLS {
            let fixture = ShellFixture::of(*toolset, |_| ());
            let cases = generate(&pieces());
            let runs =
                cases.iter().enumerate().map(|(case, pieces)| stream_case(&fixture, tool, case, pieces));
            futures_util::stream::iter(runs).buffer_unordered(MAX_AT_ONCE).collect::<Vec<()>>().await;
        }
    });
}

async fn stream_case(fixture: &ShellFixture, tool: &str, case: usize, pieces: &[OutputPiece]) {
    let mut events = fixture.gate.events();
    let input = json!({ "command": gated_command(case, pieces) });
    let call = ToolCall::new(format!("case-{case}"), tool, input.to_string());
    let id = call.id.clone();
    let ends: Vec<usize> = pieces
        .iter()
        .scan(0, |end, (text, _)| {
            *end += text.len();
            Some(*end)
        })
        .collect();
    let expected: String = pieces.iter().map(|(text, _)| text.as_str()).collect();
    let watch = async {
        let (mut received, mut confirmed) = (String::new(), 0);
        while confirmed < pieces.len() {
            match events.recv().await.unwrap() {
                Event::Progress { call, text, .. } if call == id => received += &text,
                _ => continue,
            }
            assert!(expected.starts_with(&received), "{expected:?} does not begin with {received:?}");
            // Not more than what was confirmed can have been written.
            assert!(received.len() <= ends[confirmed], "{received:?} came before it was written");
            while confirmed < ends.len() && received.len() == ends[confirmed] {
                std::fs::write(fixture.path(&format!("ws/seen-{case}-{confirmed}")), "").unwrap();
                confirmed += 1;
            }
        }
    };
    let both =
        async { tokio::join!(fixture.gate.call(&fixture.session, call, CallOptions::default()), watch) };
    let Ok((outcome, ())) = tokio::time::timeout(MAX_WAIT, both).await else {
        panic!("output is not reported while the command runs: {input}")
    };
    assert!(outcome.result.is_ok(), "{input}: {:?}", outcome.result);
    // Both streams are one text, in the order in which it was written.
    assert_eq!(structured(&outcome)["stdout"], json!(expected), "{input}");
}

/// Commands that do not end by themselves.
const ENDLESS: &[&str] = &[
    "sleep 1000",
    "exec sleep 1000",
    "sleep 1000 | cat",
    "cat /dev/zero > /dev/null",
    "trap '' TERM; while :; do sleep 1; done",
    "trap '' TERM INT HUP QUIT; sleep 1000",
    "(sleep 1000)",
    "bash -c 'sleep 1000; :'",
    "sleep 1000 & wait",
    "sleep 1000 & sleep 1000",
    "setsid sleep 1000 & wait",
    "f() { sleep 1000; }; f",
    "while :; do :; done",
    "nohup sleep 1000 2> /dev/null",
    "for i in 1 2 3; do sleep 1000; done",
    "tail -f /dev/null",
    "read -r line < <(sleep 1000)",
    "timeout 1000 sleep 1000",
];

/// Property 27: a command that reaches its timeout is stopped with everything that it started, and the error says so.
#[test]
fn property_27_shell_timeout_enforcement() {
    let inputs = (prop::sample::select(ENDLESS), "[a-z ]{0,12}", 20u64..300);
    block_on_runtime(async {
        for (tool, toolset) in SHELLS {
            let fixture = ShellFixture::of(*toolset, |_| ());
            let cases = generate(&inputs);
            let runs = cases.iter().map(|(command, text, timeout)| {
                let command = format!("printf '%s\\n' {}; {command}", quote(text));
                let fixture = &fixture;
                async move {
                    let outcome = fixture.call(tool, json!({ "command": command, "timeout": timeout })).await;
                    check_timed_out(&outcome, &command, &format!("{text}\n"));
                }
            });
            futures_util::stream::iter(runs).buffer_unordered(MAX_AT_ONCE).collect::<Vec<()>>().await;
            wait_until_gone(&fixture.marker).await;
            partial_output_is_shown(&fixture, tool).await;
            // A command that ends before is no timeout.
            let outcome = fixture.call(tool, json!({ "command": "echo done", "timeout": 600_000 })).await;
            assert!(outcome.result.is_ok() && structured(&outcome)["timedOut"] != json!(true));
        }
    });
}

fn check_timed_out(outcome: &CallOutcome, command: &str, expected: &str) {
    let refusal = outcome.result.as_ref().unwrap_err();
    assert_eq!(
        (refusal.code, refusal.kind.as_str()),
        (Code::ShellTimedOut, "ShellTimeoutError"),
        "{command}: {refusal}"
    );
    let structured = structured(outcome);
    assert_eq!(structured["timedOut"], json!(true), "{command}");
    // On a busy machine the shell may not have come to print anything.
    let stdout = structured["stdout"].as_str().unwrap();
    assert!(stdout.is_empty() || stdout == expected, "{command}: {stdout:?}");
}

/// What was printed before the timeout is in the error. A busy machine needs more time to print it.
async fn partial_output_is_shown(fixture: &ShellFixture, tool: &str) {
    for timeout in [200, 1_000, 5_000, 60_000] {
        let outcome =
            fixture.call(tool, json!({ "command": "echo first; sleep 1000", "timeout": timeout })).await;
        assert_eq!(outcome.result.as_ref().unwrap_err().code, Code::ShellTimedOut);
        if output(&outcome).model_text().contains("first") {
            return;
        }
    }
    panic!("`{tool}` does not show what a command printed before its timeout");
}

/// A directory below the workspace, and how a call names it.
#[derive(Debug, Clone)]
struct NamedDirectory {
    parts: Vec<String>,
    spelling: usize,
}

fn directories() -> impl Strategy<Value = NamedDirectory> {
    let part = prop_oneof![
        "[a-z]{1,8}",
        "[a-z] [a-z' ]{0,5}x",
        "\\.[a-z]{1,6}",
        "-[a-z]{1,4}",
        "[äßéñ日]{1,4}",
        "[a-z]['\"$`\\\\*?&;]{1,3}[a-z]"
    ];
    (prop::collection::vec(part, 1..4), 0usize..6)
        .prop_map(|(parts, spelling)| NamedDirectory { parts, spelling })
}

impl NamedDirectory {
    /// Makes the directory and what its spelling needs, and returns the spelling.
    fn make(&self, workspace: &Path, case: usize) -> String {
        let relative: PathBuf = self.parts.iter().collect();
        let relative = Path::new(&format!("case{case}")).join(relative);
        std::fs::create_dir_all(workspace.join(&relative)).unwrap();
        let text = relative.to_str().unwrap().to_owned();
        match self.spelling {
            0 => text,
            1 => workspace.join(&relative).to_str().unwrap().to_owned(),
            2 => format!("./{text}/."),
            3 => format!("case{case}/../{text}"),
            4 => format!("{text}//"),
            _ => {
                let link = format!("link{case}");
                symlink(&relative, workspace.join(&link)).unwrap();
                link
            }
        }
    }

    fn real_path(&self, workspace: &Path, case: usize) -> PathBuf {
        let relative: PathBuf = self.parts.iter().collect();
        workspace.join(format!("case{case}")).join(relative).canonicalize().unwrap()
    }
}

/// Property 28: a command runs in the requested directory: the one that the call names, or in the other toolset the one
/// that an earlier command changed to.
#[test]
fn property_28_shell_working_directory() {
    block_on_runtime(async {
        for (tool, toolset) in SHELLS {
            let fixture = ShellFixture::of(*toolset, |_| ());
            let workspace = PathBuf::from(fixture.path("ws").to_string());
            for (case, directory) in generate(&directories()).iter().enumerate() {
                let spelling = directory.make(&workspace, case);
                let real = directory.real_path(&workspace, case);
                let command = format!("pwd -P; echo x > made-{case}");
                let input = match toolset {
                    Toolset::Plain => json!({ "command": command, "cwd": spelling }),
                    _ => {
                        let change = format!(
                            "cd {}/ && cd -- {}",
                            quote(workspace.to_str().unwrap()),
                            quote(&spelling)
                        );
                        let changed = fixture.call(tool, json!({ "command": change })).await;
                        assert!(changed.result.is_ok(), "{change}: {:?}", changed.result);
                        json!({ "command": command })
                    }
                };
                let outcome = fixture.call(tool, input.clone()).await;
                assert!(outcome.result.is_ok(), "{input}: {:?}", outcome.result);
                let expected = format!("{}\n", real.to_str().unwrap());
                assert_eq!(structured(&outcome)["stdout"], json!(expected), "{input}");
                assert!(real.join(format!("made-{case}")).exists(), "{input}");
            }
            if *toolset == Toolset::Plain {
                // The directory of one call does not carry over to the next, and a missing one is not replaced.
                let outcome = fixture.call(tool, json!({ "command": "pwd -P" })).await;
                let expected = format!("{}\n", workspace.canonicalize().unwrap().display());
                assert_eq!(structured(&outcome)["stdout"], json!(expected));
                let outcome = fixture
                    .call(tool, json!({ "command": "echo ran > ran", "cwd": "no/such/directory" }))
                    .await;
                assert!(outcome.result.is_err() && !workspace.join("ran").exists());
            }
        }
    });
}
