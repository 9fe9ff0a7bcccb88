//! What overlapping saves, in real time: commands that only wait, and a stream whose calls start before it ends.
//!
//! Run with `cargo bench -p toolgate-gate --bench overlap`.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a bench fails by panicking, and starts real commands"
)]

use divan::{Bencher, black_box};
use futures_util::{StreamExt, stream};
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use toolgate_gate::{CallAssembler, CallOptions, FnTool, Gate, GateParts, ProviderApi, ToolSpec};
use toolgate_proto::{
    AbsPath, Code, CommandLine, Effect, Intent, Output, PathScope, Refusal, ShellKind, SourceId, ToolCall,
};
use toolgate_testkit::{allow_all, session_in};

fn main() {
    divan::main();
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Line {
    /// The command.
    command: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct PathInput {
    /// The path.
    path: String,
}

/// Runs real commands, all of which it takes for ones that only read.
fn gate() -> Arc<Gate> {
    let gate = Gate::new(GateParts::default().with_policy(allow_all(&["look", "read_file", "ls"])));
    let look = FnTool::new(ToolSpec::new("look", "Looks.").read_only(), |input: Line, _| async move {
        let done = tokio::task::spawn_blocking(move || {
            std::process::Command::new("sh").arg("-c").arg(input.command).status()
        });
        match done.await {
            Ok(Ok(status)) => Ok(Output::text(status.to_string())),
            _ => Err(Refusal::new(Code::ToolFailed, "the command did not start")),
        }
    });
    let look = look.intent(|input, context| {
        let command = CommandLine::new(input.command.clone(), ShellKind::Bash, context.workspace.cwd.clone());
        Intent::new("look", [Effect::Exec { command }])
    });
    gate.register(SourceId::Sdk, look).unwrap();
    for name in ["read_file", "ls"] {
        let tool = FnTool::new(ToolSpec::new(name, "Takes 200 ms."), |input: PathInput, _| async move {
            tokio::time::sleep(Duration::from_millis(200)).await;
            Ok(Output::text(input.path))
        });
        let tool = tool.intent(|input, context| {
            Intent::new(
                "read",
                [Effect::Read { path: context.absolute_path(&input.path), scope: PathScope::Entry }],
            )
        });
        gate.register(SourceId::Sdk, tool).unwrap();
    }
    Arc::new(gate)
}

#[divan::bench(args = [1, 8], sample_count = 5, sample_size = 1)]
fn commands_that_sleep_200_ms(bencher: Bencher, commands: usize) {
    let (gate, session) = (gate(), session_in(&AbsPath::root()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    bencher.bench_local(|| {
        let calls = (0..commands)
            .map(|call| {
                let input = json!({ "command": "sleep 0.2" }).to_string();
                ToolCall::new(format!("c{call}"), "look", input)
            })
            .collect();
        let closed = runtime.block_on(gate.call_batch(&session, calls, CallOptions::default()));
        assert!(closed.iter().all(|closed| closed.result.is_ok()));
    });
}

/// A recorded answer with six calls that takes about 600 ms to arrive; each call takes 200 ms.
#[divan::bench(args = [true, false], sample_count = 5, sample_size = 1)]
fn a_stream_of_six_calls_started_early(bencher: Bencher, early: bool) {
    let (gate, session) = (gate(), session_in(&AbsPath::root()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let bytes: &[u8] = include_bytes!("../tests/fixtures/stream/anthropic_six.sse");
    bencher.bench_local(|| {
        let mut chunks =
            Box::pin(stream::unfold(bytes.chunks(bytes.len().div_ceil(30)), |mut chunks| async move {
                let chunk = chunks.next()?;
                tokio::time::sleep(Duration::from_millis(20)).await;
                Some((Ok::<_, Infallible>(chunk), chunks))
            }));
        runtime.block_on(async {
            if early {
                let limits = CallOptions::default();
                black_box(gate.call_stream(&session, ProviderApi::Anthropic, chunks, limits).await);
            } else {
                let mut assembler = CallAssembler::new(ProviderApi::Anthropic);
                let mut calls = Vec::new();
                while let Some(Ok(chunk)) = chunks.next().await {
                    calls.extend(assembler.push(chunk));
                }
                black_box(gate.call_batch(&session, calls, CallOptions::default()).await);
            }
        });
    });
}
