//! Seed property 43, and what becomes of results that are too large.

use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use toolgate_files::{SpillLimits, SpillStore};
use toolgate_gate::truncate::{KeptPart, TextLimits, truncate_text};
use toolgate_gate::{CallOptions, CallOutcome, FnTool, Gate, GateParts, ToolSpec};
use toolgate_proto::{
    AbsPath, Code, Effect, Intent, OutcomeRecord, Output, OutputBlock, Refusal, SourceId, ToolCall,
};
use toolgate_testkit::{allow_all, session_in};

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RepeatedText {
    text: String,
    times: usize,
}

struct Room {
    dir: tempfile::TempDir,
    gate: Arc<Gate>,
}

fn room(keep: KeptPart, chars: usize, lines: Option<usize>) -> Room {
    let dir = tempfile::tempdir().unwrap();
    let spill = SpillStore::new(AbsPath::new(dir.path()).unwrap(), SpillLimits::default());
    let gate = Gate::new(
        GateParts::default()
            .with_policy(allow_all(&["say", "fail", "draw"]))
            .with_spill(Arc::new(spill))
            .with_batch_chars(20_000),
    );
    let spec = |name: &str| {
        let mut spec = ToolSpec::new(name, "Says something.");
        (spec.keep, spec.max_result_chars, spec.max_result_lines) = (keep, chars, lines);
        spec
    };
    let free = |_: &RepeatedText, _: &toolgate_gate::CallContext| {
        Intent::new("say", [Effect::State { name: "x".into() }])
    };
    let say = FnTool::new(spec("say"), |input: RepeatedText, _| async move {
        Ok(Output::text(input.text.repeat(input.times)))
    });
    let fail = FnTool::new(spec("fail"), |input: RepeatedText, _| async move {
        let partial = Output::text(input.text.repeat(input.times));
        Err(Refusal::new(Code::ShellFailed, "exit code 1").with_partial(partial))
    });
    let draw = FnTool::new(spec("draw"), |input: RepeatedText, _| async move {
        let picture = |bytes| OutputBlock::Image { media_type: "image/png".into(), data: "A".repeat(bytes) };
        let mut output = Output::text(input.text).structured(json!({ "much": "x".repeat(input.times) }));
        output.content.extend([picture(100), picture(6_000_000), picture(100)]);
        Ok(output)
    });
    gate.register(SourceId::Sdk, say.intent(free)).unwrap();
    gate.register(SourceId::Sdk, fail.intent(free)).unwrap();
    gate.register(SourceId::Sdk, draw.intent(free)).unwrap();
    Room { dir, gate: Arc::new(gate) }
}

impl Room {
    fn call(&self, tool: &str, text: &str, times: usize) -> CallOutcome {
        self.batch(&[(tool, text, times)]).remove(0)
    }

    fn batch(&self, calls: &[(&str, &str, usize)]) -> Vec<CallOutcome> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let calls = calls
            .iter()
            .enumerate()
            .map(|(index, (tool, text, times))| {
                let input = json!({ "text": text, "times": times }).to_string();
                ToolCall::new(format!("c{index}"), *tool, input)
            })
            .collect();
        let session = session_in(&AbsPath::root());
        runtime.block_on(self.gate.call_batch(&session, calls, CallOptions::default()))
    }

    fn kept(&self) -> Vec<String> {
        let folder = self.dir.path().join("ses_test");
        let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
        entries.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap()).collect()
    }
}

fn spilled(closed: &CallOutcome) -> Option<&str> {
    match &closed.record.outcome {
        OutcomeRecord::Done { spilled, .. } => spilled.as_deref(),
        OutcomeRecord::Refused { .. } | OutcomeRecord::Failed { .. } | OutcomeRecord::Cancelled { .. } => {
            None
        }
    }
}

fn keep() -> impl Strategy<Value = KeptPart> {
    prop_oneof![Just(KeptPart::Start), Just(KeptPart::End), Just(KeptPart::Both)]
}

proptest! {
    #[test]
    fn property_43_output_truncation_behavior(
        text in r"[ab\n🔎é]{0,120}",
        keep in keep(),
        chars in 0usize..130,
        lines in 0usize..20,
    ) {
        let limits = TextLimits { chars, lines };
        let (all_chars, all_lines) = (text.chars().count(), text.lines().count());
        let Some(cut) = truncate_text(&text, keep, limits) else {
            prop_assert!(all_chars <= chars && all_lines <= lines);
            return Ok(());
        };
        prop_assert!(all_chars > chars || all_lines > lines, "what fits is not cut");
        prop_assert!(text.starts_with(cut.start) && text.ends_with(cut.end));
        let kept = cut.start.chars().count() + cut.end.chars().count();
        prop_assert!(kept <= chars);
        prop_assert!(cut.start.lines().count() + cut.end.lines().count() <= lines);
        prop_assert_eq!(kept + cut.omitted_chars, all_chars, "the notice is exact");
        match keep {
            KeptPart::Start => prop_assert!(cut.end.is_empty()),
            KeptPart::End => prop_assert!(cut.start.is_empty()),
            KeptPart::Both => {}
        }
        let shown = cut.with_notice("REST");
        let noun = if cut.omitted_chars == 1 { "character" } else { "characters" };
        let said = format!("[{} {noun} in {} line", cut.omitted_chars, cut.omitted_lines);
        prop_assert!(shown.contains(&said) && shown.contains("REST"), "{}", shown);
        prop_assert!(shown.starts_with(cut.start) && shown.ends_with(cut.end));
    }

    /// No more is left out than the limits ask for, but for the rest of one line.
    #[test]
    fn a_cut_keeps_what_it_may(text in "[abé]{1,9}(\n[abé]{0,9}){0,30}", keep in keep(), chars in 1usize..100) {
        let limits = TextLimits { chars, lines: usize::MAX };
        if let Some(cut) = truncate_text(&text, keep, limits) {
            let kept = cut.start.chars().count() + cut.end.chars().count();
            prop_assert!(kept + chars / 3 + 2 >= chars, "{} of {}", kept, chars);
        }
    }

    #[test]
    fn the_whole_result_is_kept_once_and_named(
        text in "[ab\n]{1,9}",
        times in 0usize..300,
        keep in keep(),
        fails in any::<bool>(),
    ) {
        let room = room(keep, 500, Some(100));
        let whole = text.repeat(times);
        let fits = whole.chars().count() <= 500 && whole.lines().count() <= 100;
        let closed = room.call(if fails { "fail" } else { "say" }, &text, times);
        let output = match &closed.result {
            Ok(output) => output,
            Err(refusal) => refusal.partial.as_deref().unwrap(),
        };
        if fits {
            prop_assert_eq!(output.model_text(), whole);
            prop_assert_eq!(room.kept(), Vec::<String>::new());
            prop_assert_eq!(spilled(&closed), None);
            return Ok(());
        }
        prop_assert_eq!(room.kept(), [whole]);
        let folder = room.dir.path().canonicalize().unwrap();
        let named = folder.display().to_string();
        prop_assert!(output.model_text().contains(&named));
        if !fails {
            let path = spilled(&closed).unwrap();
            prop_assert!(output.model_text().contains(path));
            prop_assert!(Path::new(path).starts_with(folder));
        }
    }
}

#[test]
fn pictures_and_structured_content_count() {
    let room = room(KeptPart::Start, 13_000, None);
    let closed = room.call("draw", "three pictures", 100_000);
    let output = closed.result.as_ref().unwrap();
    let kinds: Vec<&str> = output
        .content
        .iter()
        .map(|block| match block {
            OutputBlock::Text { .. } => "text",
            OutputBlock::Image { .. } => "image",
            OutputBlock::Resource { .. } => "resource",
            _ => "other",
        })
        .collect();
    assert_eq!(
        kinds,
        ["text", "image", "text", "image", "text"],
        "the picture that no provider takes is a file"
    );
    let text = output.model_text();
    assert!(text.contains("a picture (image/png, 6000000 bytes in base64) was left out"), "{text}");
    assert!(
        output.structured.is_none() && text.contains("the structured form (100011 bytes of JSON)"),
        "{text}"
    );
    assert_eq!(room.kept().len(), 2);
    assert!(spilled(&closed).is_some());
}

#[test]
fn a_batch_that_is_too_large_is_cut_fairly() {
    let room = room(KeptPart::Start, 15_000, None);
    let closed = room.batch(&[("say", "a", 14_000), ("say", "b", 40_000), ("say", "c", 2_000)]);
    let texts: Vec<String> =
        closed.iter().map(|closed| closed.result.as_ref().unwrap().model_text()).collect();
    assert_eq!(texts[2], "c".repeat(2_000), "the small one is left alone");
    for (text, whole) in texts.iter().zip(["a".repeat(14_000), "b".repeat(40_000)]) {
        assert!((8_500..9_700).contains(&text.chars().count()), "{}", text.chars().count());
        let path = text.split('`').nth(1).unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), whole, "the whole is in the file that is named");
    }
    assert_eq!(room.kept().len(), 2, "what was kept before is not kept again");
    assert!(closed.iter().take(2).all(|closed| spilled(closed).is_some()));
}

#[test]
fn without_a_place_the_rest_is_gone_and_the_notice_says_so() {
    let gate = Gate::new(GateParts::default().with_policy(allow_all(&["say"])));
    let mut spec = ToolSpec::new("say", "Says something.");
    spec.max_result_chars = 10;
    let say = FnTool::new(spec, |input: RepeatedText, _| async move { Ok(Output::text(input.text)) });
    gate.register(SourceId::Sdk, say).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let input = json!({ "text": "0123456789abc", "times": 1 }).to_string();
    let call = ToolCall::new("c", "say", input);
    let closed = runtime.block_on(gate.call(&session_in(&AbsPath::root()), call, CallOptions::default()));
    assert_eq!(
        closed.result.unwrap().model_text(),
        "0123456789\n[3 characters in 1 line were left out here; ask for less at once to see it]"
    );
}
