//! The approval bus: every request reaches its own answer, or none.

use futures_util::FutureExt;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolgate_gate::{
    ApprovalAnswer, ApprovalBus, ApprovalReply, ApprovalReplyError, ApprovalRequest, ApprovalResponder,
    Approver, CallContext, CallOptions, Gate, GateParts,
};
use toolgate_proto::{
    AbsPath, ApprovalCard, ApprovalQuestion, CardContent, Code, RiskLevel, SourceId, ToolCall, VerdictReason,
};
use toolgate_testkit::{ProbeBehaviour, ProbeTool, session_in};

fn gate_on(bus: &ApprovalBus, timeout: Duration) -> (Arc<Gate>, ProbeTool) {
    let gate = Gate::new(
        GateParts::default().with_approvers(vec![Arc::new(bus.clone())]).with_approval_timeout(timeout),
    );
    let probe = ProbeTool::new("probe", ProbeBehaviour::Succeed);
    gate.register(SourceId::Sdk, probe.clone()).unwrap();
    (Arc::new(gate), probe)
}

fn reply(request: &ApprovalRequest, answer: ApprovalAnswer) -> ApprovalReply {
    reply_from(ApprovalResponder::User, request, answer)
}

fn reply_from(
    responder: ApprovalResponder,
    request: &ApprovalRequest,
    answer: ApprovalAnswer,
) -> ApprovalReply {
    ApprovalReply::new(&request.id, &request.input_sha256, answer, responder)
}

async fn probe_call(
    gate: Arc<Gate>,
    text: String,
    cancel: CancellationToken,
) -> (String, Result<String, Code>) {
    let call = ToolCall::new(text.clone(), "probe", serde_json::json!({ "text": text }).to_string());
    let limits = CallOptions::default().with_cancel(cancel);
    let closed = gate.call(&session_in(&AbsPath::root()), call, limits).await;
    (text, closed.result.map(|output| output.model_text()).map_err(|refusal| refusal.code))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// What is to happen to one request.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Yes,
    No,
    Silence,
    Cancel,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![Just(Fate::Yes), Just(Fate::No), Just(Fate::Silence), Just(Fate::Cancel)]
}

/// Makes one call for each fate, answers them in the order of `order`, and gives each call's end.
fn run(fates: &[Fate], order: &[usize]) -> (BTreeMap<String, Result<String, Code>>, BTreeSet<String>) {
    runtime().block_on(async {
        let bus = ApprovalBus::new("host");
        let mut requests = bus.requests();
        let (gate, _) = gate_on(&bus, Duration::from_secs(60));
        let mut calls = JoinSet::new();
        let mut cancels = Vec::new();
        for index in 0..fates.len() {
            let cancel = CancellationToken::new();
            cancels.push(cancel.clone());
            calls.spawn(probe_call(Arc::clone(&gate), index.to_string(), cancel));
        }
        let mut waiting = BTreeMap::new();
        while waiting.len() < fates.len() {
            let request = requests.next().await;
            let index: usize = request.call.as_str().parse().unwrap();
            waiting.insert(index, request);
        }
        let ids = waiting.values().map(|request| request.id.clone()).collect();
        for index in order {
            let request = &waiting[index];
            match fates[*index] {
                Fate::Yes => bus.reply(reply(request, ApprovalAnswer::Once)).unwrap(),
                Fate::No => bus.reply(reply(request, ApprovalAnswer::No { message: None })).unwrap(),
                Fate::Silence => {}
                Fate::Cancel => cancels[*index].cancel(),
            }
        }
        (calls.join_all().await.into_iter().collect(), ids)
    })
}

fn wanted(index: usize, fate: Fate) -> Result<String, Code> {
    match fate {
        Fate::Yes => Ok(index.to_string()),
        Fate::No => Err(Code::Declined),
        Fate::Silence => Err(Code::ApprovalTimedOut),
        Fate::Cancel => Err(Code::Cancelled),
    }
}

fn shuffled(count: usize) -> impl Strategy<Value = Vec<usize>> {
    Just((0..count).collect::<Vec<_>>()).prop_shuffle()
}

fn fates_and_order() -> impl Strategy<Value = (Vec<Fate>, Vec<usize>)> {
    prop::collection::vec(fate(), 1..24).prop_flat_map(|fates| {
        let count = fates.len();
        (Just(fates), shuffled(count))
    })
}

proptest! {
    #[test]
    fn property_38_message_bus_correlation_id_uniqueness(count in 1usize..40) {
        let (_, ids) = run(&vec![Fate::Yes; count], &(0..count).collect::<Vec<_>>());
        prop_assert_eq!(ids.len(), count);
    }

    #[test]
    fn property_39_message_bus_request_response_matching((fates, order) in fates_and_order()) {
        let answered: Vec<Fate> =
            fates.iter().map(|fate| if *fate == Fate::Yes { Fate::Yes } else { Fate::No }).collect();
        let (ends, _) = run(&answered, &order);
        for (index, fate) in answered.iter().enumerate() {
            prop_assert_eq!(&ends[&index.to_string()], &wanted(index, *fate));
        }
    }

    #[test]
    fn property_40_message_bus_timeout_handling(count in 1usize..20) {
        let (ends, _) = run(&vec![Fate::Silence; count], &[]);
        for end in ends.values() {
            prop_assert_eq!(end, &Err(Code::ApprovalTimedOut));
        }
    }

    #[test]
    fn property_41_message_bus_concurrent_requests((fates, order) in fates_and_order()) {
        let (ends, _) = run(&fates, &order);
        for (index, fate) in fates.iter().enumerate() {
            prop_assert_eq!(&ends[&index.to_string()], &wanted(index, *fate));
        }
    }

    #[test]
    fn property_42_message_bus_cancellation(count in 1usize..20) {
        let (ends, _) = run(&vec![Fate::Cancel; count], &(0..count).collect::<Vec<_>>());
        for end in ends.values() {
            prop_assert_eq!(end, &Err(Code::Cancelled));
        }
    }
}

#[tokio::test]
async fn ten_thousand_at_once_are_answered_in_random_order_and_none_is_lost_or_crossed() {
    const COUNT: usize = 10_000;
    let bus = ApprovalBus::new("host");
    let mut requests = bus.requests();
    let mut askers = JoinSet::new();
    for index in 0..COUNT {
        let bus = bus.clone();
        askers.spawn(async move {
            let request = request(&index.to_string());
            (index, bus.ask(&request).await)
        });
    }
    let mut waiting = Vec::new();
    while waiting.len() < COUNT {
        waiting.push(requests.next().await);
    }
    // A fixed stride visits every request once, far out of order.
    for step in 0..COUNT {
        let request = &waiting[(step * 7_919) % COUNT];
        let message = Some(request.call.as_str().to_owned());
        bus.reply(reply(request, ApprovalAnswer::No { message })).unwrap();
    }
    let mut seen = 0;
    while let Some(ended) = askers.join_next().await {
        let (index, answer) = ended.unwrap();
        assert_eq!(answer, ApprovalAnswer::No { message: Some(index.to_string()) });
        seen += 1;
    }
    assert_eq!((seen, bus.pending_requests().len()), (COUNT, 0));
}

fn request(call: &str) -> ApprovalRequest {
    let question = ApprovalQuestion::new(
        "probe".into(),
        "probe",
        RiskLevel::Low,
        VerdictReason::new(Code::ApprovalUnavailable, "no rule allows it"),
    );
    let input = serde_json::Map::new();
    let content = CardContent::new(&input, &[]);
    let context = CallContext::of(&toolgate_testkit::session_in(&AbsPath::root()));
    let card = ApprovalCard::new(&question, content);
    let mut request = ApprovalRequest::new(call.into(), context, question, card, input);
    (request.id, request.input_sha256) = (format!("ask_{call}"), format!("hash of {call}"));
    request
}

#[tokio::test]
async fn a_reply_counts_once_for_its_own_input_and_from_the_user() {
    let bus = ApprovalBus::new("host");
    let mut requests = bus.requests();
    let asked = request("a");
    let asker = tokio::spawn({
        let (bus, asked) = (bus.clone(), asked.clone());
        async move { bus.ask(&asked).await }
    });
    let shown = requests.next().await;
    let yes = reply(&shown, ApprovalAnswer::Once);
    let reply_to = |request: &str, input: &str| {
        ApprovalReply::new(request, input, ApprovalAnswer::Once, ApprovalResponder::User)
    };
    for (bad, problem) in [
        (reply_to("ask_other", &shown.input_sha256), ApprovalReplyError::NotWaiting),
        (reply_to(&shown.id, "of what was shown instead"), ApprovalReplyError::OtherInput),
        (
            reply_from(ApprovalResponder::Agent, &shown, ApprovalAnswer::Once),
            ApprovalReplyError::NotForAgents,
        ),
    ] {
        assert_eq!(bus.reply(bad), Err(problem));
        assert_eq!(bus.pending_requests().len(), 1, "a reply that is not taken leaves the request waiting");
    }
    assert_eq!(bus.reply(yes.clone()), Ok(()));
    assert_eq!(asker.await.unwrap(), ApprovalAnswer::Once);
    assert_eq!(bus.reply(yes), Err(ApprovalReplyError::NotWaiting), "an answer counts once");
}

#[tokio::test]
async fn an_answer_after_cancellation_is_no_answer() {
    let bus = ApprovalBus::new("host");
    let mut requests = bus.requests();
    let asked = request("a");
    let asker = tokio::spawn({
        let (bus, asked) = (bus.clone(), asked.clone());
        async move { bus.ask(&asked).await }
    });
    let shown = requests.next().await;
    asked.cancel.cancel();
    assert_eq!(bus.reply(reply(&shown, ApprovalAnswer::Once)), Err(ApprovalReplyError::NotWaiting));
    assert!(matches!(asker.await.unwrap(), ApprovalAnswer::Lost { .. }));
}

#[tokio::test]
async fn a_tool_that_requires_the_user_is_not_answered_by_a_program() {
    let bus = ApprovalBus::new("host");
    let _requests = bus.requests();
    let mut asked = request("a");
    asked.requires_user = true;
    let asker = tokio::spawn({
        let (bus, asked) = (bus.clone(), asked.clone());
        async move { bus.ask(&asked).await }
    });
    while bus.pending_requests().is_empty() {
        tokio::task::yield_now().await;
    }
    let yes = reply_from(ApprovalResponder::Program, &asked, ApprovalAnswer::Once);
    assert_eq!(bus.reply(yes), Err(ApprovalReplyError::NotForPrograms));
    assert_eq!(bus.reply(reply(&asked, ApprovalAnswer::Once)), Ok(()));
    assert_eq!(asker.await.unwrap(), ApprovalAnswer::Once);
}

#[tokio::test]
async fn without_a_watcher_the_question_goes_on_and_a_lost_watcher_is_a_no() {
    let bus = ApprovalBus::new("host");
    assert_eq!(bus.ask(&request("a")).await, ApprovalAnswer::Pass);
    let requests = bus.requests();
    let (gate, probe) = gate_on(&bus, Duration::from_secs(60));
    let call = tokio::spawn(probe_call(gate, "x".to_owned(), CancellationToken::new()));
    while bus.pending_requests().is_empty() {
        tokio::task::yield_now().await;
    }
    drop(requests);
    assert_eq!(call.await.unwrap().1, Err(Code::ApprovalLost));
    assert_eq!(probe.runs(), 0);
}

#[tokio::test]
async fn a_program_answers_where_no_user_is_required_and_the_record_names_the_bus() {
    let bus = ApprovalBus::new("window");
    let mut requests = bus.requests();
    let (gate, _) = gate_on(&bus, Duration::from_secs(600));
    let session = session_in(&AbsPath::root());
    let call = ToolCall::new("c", "probe", r#"{"text":"x"}"#);
    let answering = async {
        let request = requests.next().await;
        let yes = reply_from(ApprovalResponder::Program, &request, ApprovalAnswer::Once);
        assert_eq!(bus.reply(yes), Ok(()));
    };
    let (closed, ()) = tokio::join!(gate.call(&session, call, CallOptions::default()), answering);
    assert!(closed.result.is_ok());
    assert_eq!(closed.record.approval.unwrap().by, "window");
}

#[tokio::test]
async fn a_call_that_is_given_up_leaves_no_question() {
    let bus = ApprovalBus::new("host");
    let _requests = bus.requests();
    let asked = request("a");
    let mut asking = bus.ask(&asked);
    assert!((&mut asking).now_or_never().is_none());
    assert_eq!(bus.pending_requests().len(), 1);
    drop(asking);
    assert!(bus.pending_requests().is_empty());
    // The same question may be asked again.
    let mut again = bus.ask(&asked);
    assert!((&mut again).now_or_never().is_none());
}
