//! Calls out of streams: the fixtures, cut anywhere, and the time that starting early saves.

use futures_util::stream;
use proptest::prelude::*;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use toolgate_gate::{CallAssembler, CallOptions, FnTool, Gate, ProviderApi, ToolSpec};
use toolgate_proto::{AbsPath, Code, Effect, Intent, Output, PathScope, SourceId, ToolCall};
use toolgate_testkit::{allow_all, gate_with, session_in};

use ProviderApi::{Anthropic, OpenAiChat, OpenAiResponses};

struct Fixture {
    name: &'static str,
    provider: ProviderApi,
    bytes: &'static [u8],
    /// `id name input`, in the order in which they are complete.
    calls: &'static [&'static str],
    /// What is wrong with its end, if anything.
    problem: Option<&'static str>,
}

macro_rules! fixture {
    ($provider:ident $name:literal, $calls:expr, $problem:expr) => {
        Fixture {
            name: $name,
            provider: $provider,
            bytes: include_bytes!(concat!("../fixtures/stream/", $name, ".sse")),
            calls: &$calls,
            problem: $problem,
        }
    };
}

const FIXTURES: [Fixture; 12] = [
    fixture!(
        Anthropic "anthropic_six",
        [
            r#"toolu_01 read_file {"path": "src/main.rs"}"#,
            r#"toolu_02 read_file {"path": "src/lib.rs"}"#,
            r#"toolu_03 read_file {"path": "docs/Übersicht.md"}"#,
            r#"toolu_04 read_file {"path": "Cargo.toml"}"#,
            r#"toolu_05 read_file {"path": "tests/\u65e5\u672c.rs"}"#,
            r#"toolu_06 ls {"path": "."}"#,
        ],
        None
    ),
    fixture!(
        Anthropic "anthropic_interleaved",
        [
            r#"toolu_a read_file {"path": "a.txt"}"#,
            r#"toolu_b read_file {"path": "b.txt"}"#,
            r#"toolu_d read_file {"path": "d.txt", "startLi"#,
            "toolu_c ls {}",
        ],
        None
    ),
    fixture!(
        Anthropic "anthropic_max_tokens",
        [r#"toolu_a read_file {"path": "a.txt"}"#],
        Some("the answer was cut short by the provider; the call `toolu_b` was not complete")
    ),
    fixture!(
        Anthropic "anthropic_overloaded",
        [r#"toolu_a read_file {"path": "a.txt"}"#],
        Some("the provider failed: Overloaded; the call `toolu_b` was not complete")
    ),
    fixture!(
        OpenAiChat "chat_three",
        [
            r#"call_a read_file {"path":"src/main.rs"}"#,
            r#"call_b read_file {"path":"docs/Übersicht.md","startLine":1}"#,
            "call_c ls {}",
        ],
        None
    ),
    fixture!(
        OpenAiChat "chat_interleaved",
        [
            r#"call_a read_file {"path":"a.txt"}"#,
            r#"call_b read_file {"path":"b.txt"}"#,
            r#"call_c read_file {"path":"#,
        ],
        None
    ),
    fixture!(
        OpenAiChat "chat_length",
        [r#"call_a read_file {"path":"a.txt"}"#, r#"call_b read_file {"path":"b.txt"}"#],
        Some("the answer was cut short by the provider; the call `call_c` was not complete")
    ),
    fixture!(
        OpenAiChat "chat_cut",
        [r#"call_a read_file {"path":"a.txt"}"#, r#"call_b read_file {"path":"b.txt"}"#],
        Some("the stream ended before the answer did; the call `call_c` was not complete")
    ),
    fixture!(
        OpenAiChat "chat_lax",
        [
            r#"x1 read_file {"path":"a.txt"}"#,
            r#"x2 read_file {"path":"b.txt"}"#,
            r#"x3 ls {}{"path":"."}"#,
        ],
        None
    ),
    fixture!(
        OpenAiResponses "responses_three",
        [
            r#"call_b read_file {"path":"tests/日本.rs"}"#,
            r#"call_a read_file {"path":"src/main.rs"}"#,
            "call_c ls {}",
        ],
        None
    ),
    fixture!(
        OpenAiResponses "responses_incomplete",
        [
            r#"call_b read_file {"path":"tests/日本.rs"}"#,
            r#"call_a read_file {"path":"src/main.rs"}"#,
        ],
        Some("the answer was cut short by the provider; the call `call_c` was not complete")
    ),
    fixture!(
        OpenAiResponses "responses_failed",
        [
            r#"call_b read_file {"path":"tests/日本.rs"}"#,
            r#"call_a read_file {"path":"src/main.rs"}"#,
        ],
        Some("the provider failed: try later; the call `call_c` was not complete")
    ),
];

fn line(call: &ToolCall) -> String {
    format!("{} {} {}", call.id, call.name, call.input)
}

fn assemble<'a>(
    provider: ProviderApi,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<String>, Option<String>) {
    let mut assembler = CallAssembler::new(provider);
    let calls: Vec<String> =
        chunks.into_iter().flat_map(|chunk| assembler.push(chunk)).map(|call| line(&call)).collect();
    (calls, assembler.end().err().map(|problem| problem.to_string()))
}

#[test]
fn each_recorded_stream_gives_its_calls() {
    for fixture in &FIXTURES {
        let (calls, problem) = assemble(fixture.provider, [fixture.bytes]);
        assert_eq!(calls, fixture.calls, "{}", fixture.name);
        assert_eq!(problem.as_deref(), fixture.problem, "{}", fixture.name);
        let (calls, problem) = assemble(fixture.provider, fixture.bytes.chunks(1));
        assert_eq!((calls.len(), problem.as_deref()), (fixture.calls.len(), fixture.problem));
    }
}

proptest! {
    #[test]
    fn any_split_of_the_bytes_gives_the_same_calls(
        which in 0..FIXTURES.len(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let Fixture { provider, bytes, calls, problem, .. } = &FIXTURES[which];
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let chunks: Vec<&[u8]> = places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        let (got, ended) = assemble(*provider, chunks);
        prop_assert_eq!(got, *calls);
        prop_assert_eq!(ended.as_deref(), *problem);
    }

    /// A stream that ends early gives a part of the calls, never another call, and says that it was cut.
    #[test]
    fn a_stream_cut_anywhere_gives_a_part_of_its_calls(
        which in 0..FIXTURES.len(),
        cut in any::<prop::sample::Index>(),
    ) {
        let Fixture { provider, bytes, calls, .. } = &FIXTURES[which];
        let (got, ended) = assemble(*provider, [&bytes[..cut.index(bytes.len())]]);
        prop_assert_eq!(&got[..], &calls[..got.len()]);
        if got.len() < calls.len() {
            prop_assert!(ended.is_some(), "a stream that lacks calls is not whole");
        }
    }

    #[test]
    fn no_bytes_make_it_panic_and_nonsense_gives_no_calls(
        which in 0..FIXTURES.len(),
        from in any::<prop::sample::Index>(),
        noise in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let Fixture { provider, bytes, calls, .. } = &FIXTURES[which];
        let at = from.index(bytes.len());
        let (got, _) = assemble(*provider, [&bytes[..at], &noise[..], &bytes[at..]]);
        // Pieces are one call because their ids or places are equal; noise in one of them makes that call two.
        prop_assert!(got.len() <= calls.len() + 1);
    }
}

#[test]
fn a_call_is_given_before_the_stream_is_over() {
    // The Messages API gives an empty input with the reason of the end, which comes before the end itself.
    for (fixture, early) in FIXTURES.iter().zip([6, 4, 1, 1, 2, 2, 2, 2, 2, 3, 2, 2]) {
        let mut assembler = CallAssembler::new(fixture.provider);
        let mut before_the_end = 0;
        for byte in fixture.bytes.chunks(1) {
            let calls = assembler.push(byte).len();
            if !assembler.is_finished() {
                before_the_end += calls;
            }
        }
        assert_eq!(before_the_end, early, "{}", fixture.name);
    }
}

fn working(millis: u64) -> Arc<Gate> {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct StreamedPath {
        path: String,
    }
    let (gate, _) = gate_with(allow_all(&["read_file", "ls"]));
    for name in ["read_file", "ls"] {
        let tool = FnTool::new(
            ToolSpec::new(name, "Takes its time."),
            move |input: StreamedPath, _cleared| async move {
                sleep(Duration::from_millis(millis)).await;
                Ok(Output::text(input.path))
            },
        );
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

/// Six calls that a model takes 3 seconds to write, and 2 seconds each to run.
#[tokio::test(start_paused = true)]
async fn a_stream_of_six_calls_is_over_sooner_than_if_its_end_were_waited_for() {
    let gate = working(2_000);
    let session = session_in(&AbsPath::root());
    let bytes = FIXTURES[0].bytes;
    let slowly = || {
        let step = bytes.len().div_ceil(30);
        Box::pin(stream::unfold(bytes.chunks(step), |mut chunks| async move {
            let chunk = chunks.next()?;
            sleep(Duration::from_millis(100)).await;
            Some((Ok::<_, Infallible>(chunk), chunks))
        }))
    };
    let started = Instant::now();
    let streamed = gate.call_stream(&session, Anthropic, slowly(), CallOptions::default()).await;
    let early = started.elapsed();
    assert!(streamed.ended.is_ok());

    let started = Instant::now();
    let mut assembler = CallAssembler::new(Anthropic);
    let mut calls = Vec::new();
    let mut chunks = slowly();
    while let Some(Ok(chunk)) = futures_util::StreamExt::next(&mut chunks).await {
        calls.extend(assembler.push(chunk));
    }
    let waited = gate.call_batch(&session, calls, CallOptions::default()).await;
    let late = started.elapsed();

    let texts = |calls: &[toolgate_gate::CallOutcome]| -> Vec<String> {
        calls.iter().map(|closed| closed.result.as_ref().unwrap().model_text()).collect()
    };
    assert_eq!(texts(&streamed.calls), texts(&waited));
    assert_eq!(late, Duration::from_millis(5_000));
    assert!(early < late, "{early:?} is not less than {late:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_begun_ends_though_the_stream_breaks_off_and_nothing_more_starts() {
    let gate = working(10);
    let session = session_in(&AbsPath::root());
    let bytes = FIXTURES[5].bytes;
    let broken = stream::iter([Ok(&bytes[..bytes.len() - 100]), Err("reset by peer"), Ok(b"x")]);
    let streamed = gate.call_stream(&session, OpenAiChat, broken, CallOptions::default()).await;
    assert_eq!(streamed.calls.len(), 2);
    assert!(streamed.calls.iter().all(|closed| closed.result.is_ok()));
    assert!(streamed.ended.unwrap_err().reason.contains("reset by peer"));

    let whole = stream::iter([Ok::<_, Infallible>(bytes)]);
    let streamed = gate.call_stream(&session, OpenAiChat, whole, CallOptions::default()).await;
    assert_eq!(streamed.calls[2].result.as_ref().unwrap_err().code, Code::InvalidJson);
}
