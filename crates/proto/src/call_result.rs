//! The result of a call, rendered in the format of each provider and client, and as text for a terminal.

use crate::fit_text::escape_invisible;
use crate::{CallId, Output, OutputBlock, Refusal, ResourceBody};
use serde_json::{Map, Value, json};

/// The result of a call.
pub type CallResult = Result<Output, Refusal>;

/// Renders a result as an Anthropic `tool_result` block. A text without content is left out, because the API refuses a
/// request that has one: a command may print nothing.
pub fn anthropic_result(id: &CallId, result: &CallResult) -> Value {
    let mut block = Map::new();
    block.insert("type".into(), json!("tool_result"));
    block.insert("tool_use_id".into(), json!(id));
    let is_blank =
        |block: &OutputBlock| matches!(block, OutputBlock::Text { text } if text.trim().is_empty());
    let content: Vec<Value> = blocks_for_model(result)
        .iter()
        .filter(|block| !is_blank(block))
        .map(|block| match block {
            OutputBlock::Text { text } => json!({ "type": "text", "text": text }),
            OutputBlock::Image { media_type, data } => json!({
                "type": "image",
                "source": { "type": "base64", "media_type": media_type, "data": data },
            }),
            OutputBlock::Resource { uri, name, .. } => {
                json!({ "type": "text", "text": format!("{name}: {uri}") })
            }
            OutputBlock::Embedded { uri, body: ResourceBody::Text { text }, .. } => {
                json!({ "type": "text", "text": format!("{uri}:\n{text}") })
            }
            // The API has no block for these, so the model gets a placeholder.
            OutputBlock::Audio { .. } | OutputBlock::Embedded { body: ResourceBody::Blob { .. }, .. } => {
                let placeholder = Output { content: vec![block.clone()], ..Output::default() };
                json!({ "type": "text", "text": placeholder.model_text() })
            }
        })
        .collect();
    block.insert("content".into(), Value::Array(content));
    if result.is_err() {
        block.insert("is_error".into(), json!(true));
    }
    Value::Object(block)
}

/// Renders a result as an OpenAI message with the role `tool`. The message has no error flag, so the text of an error
/// starts with `Error: `.
pub fn openai_message(id: &CallId, result: &CallResult) -> Value {
    let text = match result {
        Ok(output) => output.model_text(),
        Err(refusal) => format!("Error: {}", refusal_for_model(refusal)),
    };
    json!({ "role": "tool", "tool_call_id": id, "content": text })
}

/// Renders a result as an MCP `CallToolResult`.
pub fn mcp_result(result: &CallResult) -> Value {
    let content: Vec<Value> = blocks_for_model(result).iter().map(mcp_block).collect();
    let mut out = Map::new();
    out.insert("content".into(), Value::Array(content));
    match result {
        Ok(output) => {
            if let Some(structured) = &output.structured {
                out.insert("structuredContent".into(), structured.clone());
            }
            out.insert("isError".into(), json!(false));
        }
        Err(refusal) => {
            out.insert("isError".into(), json!(true));
            out.insert(
                "_meta".into(),
                json!({ "toolgate/refusal": {
                    "code": refusal.code, "kind": refusal.kind, "stage": refusal.stage,
                } }),
            );
        }
    }
    Value::Object(out)
}

/// One block of content for MCP.
fn mcp_block(block: &OutputBlock) -> Value {
    match block {
        OutputBlock::Text { text } => json!({ "type": "text", "text": text }),
        OutputBlock::Image { media_type, data } => {
            json!({ "type": "image", "data": data, "mimeType": media_type })
        }
        OutputBlock::Audio { media_type, data } => {
            json!({ "type": "audio", "data": data, "mimeType": media_type })
        }
        OutputBlock::Embedded { uri, media_type, body } => {
            let mut resource = Map::new();
            resource.insert("uri".into(), json!(uri));
            if let Some(media_type) = media_type {
                resource.insert("mimeType".into(), json!(media_type));
            }
            match body {
                ResourceBody::Text { text } => resource.insert("text".into(), json!(text)),
                ResourceBody::Blob { blob } => resource.insert("blob".into(), json!(blob)),
            };
            json!({ "type": "resource", "resource": resource })
        }
        OutputBlock::Resource { uri, name, media_type } => {
            let mut link = Map::new();
            link.insert("type".into(), json!("resource_link"));
            link.insert("uri".into(), json!(uri));
            link.insert("name".into(), json!(name));
            if let Some(media_type) = media_type {
                link.insert("mimeType".into(), json!(media_type));
            }
            Value::Object(link)
        }
    }
}

/// Renders a result as text for a terminal. Escape sequences and invisible characters in it are escaped: a tool must not
/// control the terminal.
pub fn terminal_text(result: &CallResult) -> String {
    match result {
        Ok(output) => escape_invisible(&output.display_text()),
        Err(refusal) => {
            let mut out = String::new();
            if let Some(partial) = &refusal.partial {
                out.push_str(&end_line(escape_invisible(&partial.display_text())));
            }
            out.push_str(&escape_invisible(&refusal.to_string()));
            out.push_str("\n  hint: ");
            out.push_str(&escape_invisible(&refusal.hint));
            out
        }
    }
}

/// What a model gets: the content, or the refusal as text.
fn blocks_for_model(result: &CallResult) -> Vec<OutputBlock> {
    match result {
        Ok(output) => output.content.clone(),
        Err(refusal) => vec![OutputBlock::Text { text: refusal_for_model(refusal) }],
    }
}

/// A refusal with its hint, behind the output that there was.
fn refusal_for_model(refusal: &Refusal) -> String {
    let message = format!("{refusal}\nhint: {}", refusal.hint);
    match &refusal.partial {
        Some(partial) => format!("{}{message}", end_line(partial.model_text())),
        None => message,
    }
}

/// A text with a line end; an empty one has no line, which would be a blank one before what follows.
fn end_line(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    #[test]
    fn a_refusal_is_rendered_in_each_format() {
        let id = CallId::from("call_1");
        let result = Err(Refusal::new(Code::FileNotFound, "there is no file `a.txt`"));
        assert_eq!(
            anthropic_result(&id, &result).to_string(),
            r#"{"type":"tool_result","tool_use_id":"call_1","content":[{"type":"text","text":"there is no file `a.txt` [TG-701 FileNotFoundError]\nhint: check the path"}],"is_error":true}"#
        );
        assert_eq!(
            openai_message(&id, &result).to_string(),
            r#"{"role":"tool","tool_call_id":"call_1","content":"Error: there is no file `a.txt` [TG-701 FileNotFoundError]\nhint: check the path"}"#
        );
        assert_eq!(mcp_result(&result)["isError"], json!(true));
        assert_eq!(
            terminal_text(&result),
            "there is no file `a.txt` [TG-701 FileNotFoundError]\n  hint: check the path"
        );
    }

    #[test]
    fn a_text_without_content_is_no_block_for_anthropic() {
        let id = CallId::from("call_1");
        for (texts, blocks) in [(&[""][..], 0), (&["\n"], 0), (&["a", "", "b"], 2)] {
            let content = texts.iter().map(|text| OutputBlock::Text { text: (*text).to_owned() }).collect();
            let result = Ok(Output { content, ..Output::default() });
            assert_eq!(
                anthropic_result(&id, &result)["content"].as_array().unwrap().len(),
                blocks,
                "{texts:?}"
            );
        }
    }

    proptest::proptest! {
        /// Every code is rendered with its message and its type in every format.
        #[test]
        fn property_57_error_result_format(index in 0usize..crate::CODES.len(), reason in "[ -~]{1,40}") {
            let info = crate::CODES[index];
            let refusal = Refusal::new(info.code, reason.clone());
            let result = Err(refusal.clone());
            let id = CallId::from("x");
            let openai = openai_message(&id, &result)["content"].as_str().unwrap().to_owned();
            let anthropic = anthropic_result(&id, &result)["content"][0]["text"].as_str().unwrap().to_owned();
            proptest::prop_assert!(openai.starts_with("Error: "));
            for text in [openai, anthropic, terminal_text(&result)] {
                proptest::prop_assert!(text.contains(&reason) && text.contains(info.kind));
            }
            let wire = serde_json::to_value(&refusal).unwrap();
            proptest::prop_assert_eq!(wire["kind"].as_str(), Some(info.kind));
            proptest::prop_assert_eq!(wire["reason"].as_str(), Some(reason.as_str()));
        }
    }
}
