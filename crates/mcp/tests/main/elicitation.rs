//! Questions of the gate, answered over the protocol.

use super::server_fixture::{EmptyInput, ServerFixture, meta};
use serde_json::{Value, json};
use toolgate_gate::{Cleared, FnTool, QuestionOption, QuestionOutcome, ToolSpec, UserQuestion};
use toolgate_proto::{Code, Effect, Intent, Output, SourceId};

fn write(text: &str) -> Value {
    json!({ "name": "write", "arguments": { "text": text } })
}

fn code(reply: &Value) -> String {
    reply["result"]["_meta"]["toolgate/refusal"]["code"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_legacy_client_is_asked_while_the_call_waits() {
    for (answer, runs) in [
        (json!({ "action": "accept", "content": { "decision": "once" } }), true),
        (json!({ "action": "accept", "content": { "decision": "no" } }), false),
        (json!({ "action": "accept", "content": {} }), false),
        (json!({ "action": "decline" }), false),
        (json!({ "action": "cancel" }), false),
    ] {
        let stage = ServerFixture::new();
        let mut client = stage.client();
        client.initialize(json!({ "elicitation": {} })).await;
        client.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": write("x") })).await;
        let question = client.next().await;
        assert_eq!(question["method"], "elicitation/create");
        let said = question["params"]["message"].as_str().unwrap();
        assert!(said.contains("write wants to") && said.contains("risk "), "{said}");
        client.send(json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer })).await;
        let reply = client.reply(1).await;
        assert_eq!(reply["result"]["isError"] != json!(true), runs, "{answer}: {reply}");
        if !runs {
            assert_eq!(code(&reply), Code::Declined.to_string());
        }
        client.end().await;
    }
}

#[tokio::test]
async fn an_error_in_place_of_an_answer_is_a_no() {
    let stage = ServerFixture::new();
    let mut client = stage.client();
    client.initialize(json!({ "elicitation": {} })).await;
    client.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": write("x") })).await;
    let question = client.next().await;
    let error = json!({ "code": -32603, "message": "no window" });
    client.send(json!({ "jsonrpc": "2.0", "id": question["id"], "error": error })).await;
    assert_eq!(code(&client.reply(1).await), Code::Declined.to_string());
    client.end().await;
}

#[tokio::test]
async fn a_modern_client_makes_the_call_again_with_the_answer() {
    let stage = ServerFixture::new();
    let mut client = stage.client();
    let able = || meta(json!({ "elicitation": {} }));
    let mut first = write("x");
    first["_meta"] = able();
    let asked = client.ask(1, "tools/call", first.clone()).await;
    assert_eq!(asked["result"]["resultType"], "input_required");
    let state = asked["result"]["requestState"].clone();
    let name = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let yes = json!({ name: { "action": "accept", "content": { "decision": "once" } } });
    let with = |params: &Value, responses: &Value, state: &Value| {
        let mut params = params.clone();
        params["inputResponses"] = responses.clone();
        params["requestState"] = state.clone();
        params
    };

    // An approval does not carry over to other arguments.
    let mut swapped = write("rm -rf /");
    swapped["_meta"] = able();
    assert_eq!(client.ask(2, "tools/call", with(&swapped, &yes, &state)).await["error"]["code"], -32602);
    // Nor does a made-up state.
    let forged = client.ask(3, "tools/call", with(&first, &yes, &json!("rs1.AAAA.BBBB"))).await;
    assert_eq!(forged["error"]["code"], -32602);
    // An answer without a state is an answer to nothing, and is asked again.
    let mut stateless = first.clone();
    stateless["inputResponses"] = yes.clone();
    assert_eq!(client.ask(4, "tools/call", stateless).await["result"]["resultType"], "input_required");

    let done = client.ask(5, "tools/call", with(&first, &yes, &state)).await;
    assert_eq!(done["result"]["content"][0]["text"], "x");
    // Once is once.
    assert_eq!(client.ask(6, "tools/call", with(&first, &yes, &state)).await["error"]["code"], -32602);

    let again = client.ask(7, "tools/call", first.clone()).await;
    let name = again["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let no = json!({ name: { "action": "decline" } });
    let refused = client.ask(8, "tools/call", with(&first, &no, &again["result"]["requestState"])).await;
    assert_eq!(code(&refused), Code::Declined.to_string());
    client.end().await;

    let records = stage.records.records();
    let ran =
        records.iter().filter(|record| matches!(record.outcome, toolgate_proto::OutcomeRecord::Done { .. }));
    assert_eq!(ran.count(), 1, "one approval, one run");
}

#[tokio::test]
async fn a_client_that_cannot_ask_gets_a_refusal() {
    let stage = ServerFixture::new();
    let mut client = stage.client();
    let mut params = write("x");
    params["_meta"] = meta(json!({ "elicitation": { "url": {} } }));
    assert_eq!(code(&client.ask(1, "tools/call", params).await), Code::ApprovalUnavailable.to_string());
    client.end().await;
}

/// Adds a tool `choose` that puts one question to the user, and says what came of it.
fn register_question(stage: &ServerFixture) {
    let run = |_: EmptyInput, cleared: Cleared| async move {
        let option = |label: &str| QuestionOption::new(label, "what it means");
        let options = vec![option("SQLite"), option("Postgres")];
        let question = UserQuestion::new("Which database?", "Database", options);
        Ok(Output::text(match cleared.ask_user(vec![question]).await? {
            QuestionOutcome::Answered(answers) => format!("{:?} {:?}", answers[0].chosen, answers[0].text),
            QuestionOutcome::Later => {
                return Err(toolgate_proto::Refusal::new(Code::ApprovalPending, "later"));
            }
            other => format!("{other:?}"),
        }))
    };
    let tool = FnTool::new(ToolSpec::new("choose", "Asks."), run)
        .intent(|_: &EmptyInput, _| Intent::new("ask", [Effect::Ask]));
    stage.gate.register(SourceId::Sdk, tool).unwrap();
}

#[tokio::test]
async fn questions_of_a_tool_are_a_form_in_both_kinds_of_clients() {
    let call = json!({ "name": "choose", "arguments": {} });
    for (answer, said) in [
        (json!({ "action": "accept", "content": { "answer_1": "Postgres" } }), r#"["Postgres"] None"#),
        (json!({ "action": "accept", "content": { "other_1": "a file" } }), r#"[] Some("a file")"#),
        (json!({ "action": "accept", "content": {} }), "Declined"),
        (json!({ "action": "decline" }), "Declined"),
        (json!({ "action": "cancel" }), "Declined"),
    ] {
        let stage = ServerFixture::new();
        register_question(&stage);
        let mut client = stage.client();
        client.initialize(json!({ "elicitation": {} })).await;
        client.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call })).await;
        let form = client.next().await;
        assert_eq!(form["method"], "elicitation/create");
        assert_eq!(form["params"]["message"], "Which database?");
        client.send(json!({ "jsonrpc": "2.0", "id": form["id"], "result": answer })).await;
        let reply = client.reply(1).await;
        let text = reply["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.starts_with(said), "{answer}: {reply}");
        client.end().await;

        let mut modern = stage.client();
        let mut first = call.clone();
        first["_meta"] = meta(json!({ "elicitation": {} }));
        let asked = modern.ask(1, "tools/call", first.clone()).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        let name = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        first["inputResponses"] = json!({ name: answer });
        first["requestState"] = asked["result"]["requestState"].clone();
        let reply = modern.ask(2, "tools/call", first).await;
        let text = reply["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.starts_with(said), "{answer}: {reply}");
        modern.end().await;
        // What the user chose approves nothing: the next call that needs approval asks.
        let mut asking = stage.client();
        asking.initialize(json!({})).await;
        let refused = asking.ask(1, "tools/call", write("x")).await;
        assert_eq!(code(&refused), Code::ApprovalUnavailable.to_string());
        asking.end().await;
    }
}
