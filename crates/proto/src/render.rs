//! Rendering of results: one result in the format of each provider and client, and as text for a terminal.

use crate::{CallId, Output, OutputBlock, Refusal, ResourceBody};
use serde_json::{Map, Value, json};

/// The result of a call.
pub type CallResult = Result<Output, Refusal>;

/// Renders a result as an Anthropic `tool_result` block.
pub fn anthropic_result(id: &CallId, result: &CallResult) -> Value {
    let mut block = Map::new();
    block.insert("type".into(), json!("tool_result"));
    block.insert("tool_use_id".into(), json!(id));
    let content: Vec<Value> = blocks_for_model(result)
        .iter()
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
                out.push_str(&escape_invisible(&partial.display_text()));
                out.push('\n');
            }
            out.push_str(&escape_invisible(&refusal.to_string()));
            out.push_str("\n  hint: ");
            out.push_str(&escape_invisible(&refusal.hint));
            out
        }
    }
}

/// Escapes control characters, bidirectional overrides, invisible characters and tag characters.
/// Newlines and tabs stay.
pub fn escape_invisible(text: &str) -> String {
    let is_invisible = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c,
                '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                | '\u{feff}' | '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e0fff}')
    };
    if !text.contains(is_invisible) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_invisible(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// A longer run of blanks is replaced by its length.
const MAX_BLANKS: usize = 32;
/// A longer run of newlines is replaced by the number of empty lines.
const MAX_LINE_ENDS: usize = 3;

/// Prepares untrusted text for a prompt: escaped by [`escape_invisible`] and at most about `max_chars` long.
///
/// Long runs of blanks and empty lines are replaced by their length, and a text that is too long loses its middle: the
/// dangerous part of a command is often at its end, and padding must not push it out of the user's view.
pub fn fit_text(text: &str, max_chars: usize) -> String {
    let text = escape_invisible(text);
    let mut out = String::new();
    let mut run = String::new();
    for c in text.chars() {
        if is_blank(c) {
            run.push(c);
        } else {
            flush_blanks(&mut run, &mut out);
            out.push(c);
        }
    }
    flush_blanks(&mut run, &mut out);
    let count = out.chars().count();
    if count <= max_chars {
        return out;
    }
    let tail = max_chars / 4;
    let head = max_chars - tail;
    let first: String = out.chars().take(head).collect();
    let last: String = out.chars().skip(count - tail).collect();
    format!("{first} …⟨{} characters left out⟩… {last}", count - max_chars)
}

/// The same as [`fit_text`], on one line: newlines and tabs are escaped.
pub fn fit_line(text: &str, max_chars: usize) -> String {
    fit_text(text, max_chars).replace('\n', "\\n").replace('\t', "\\t")
}

/// Whether a character is blank: any white space, and letters without a visible glyph.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{2800}' | '\u{3164}' | '\u{115f}' | '\u{1160}' | '\u{ffa0}')
}

fn flush_blanks(run: &mut String, out: &mut String) {
    let line_ends = run.matches('\n').count();
    let blanks = run.chars().count() - line_ends;
    if line_ends > MAX_LINE_ENDS {
        out.push_str(&format!("\n⟨{} blank lines⟩\n", line_ends - 1));
    } else if blanks > MAX_BLANKS {
        out.push_str(&format!("{} ⟨{blanks} blanks⟩ ", "\n".repeat(line_ends)));
    } else {
        out.push_str(run);
    }
    run.clear();
}

fn blocks_for_model(result: &CallResult) -> Vec<OutputBlock> {
    match result {
        Ok(output) => output.content.clone(),
        Err(refusal) => vec![OutputBlock::Text { text: refusal_for_model(refusal) }],
    }
}

fn refusal_for_model(refusal: &Refusal) -> String {
    let message = format!("{refusal}\nhint: {}", refusal.hint);
    match &refusal.partial {
        Some(partial) => format!("{}\n{message}", partial.model_text()),
        None => message,
    }
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
    fn invisible_characters_are_escaped() {
        assert_eq!(
            escape_invisible("a\u{202e}b\u{1b}[31m\u{e0041}\nc\t"),
            "a\\u{202e}b\\u{1b}[31m\\u{e0041}\nc\t"
        );
    }

    proptest::proptest! {
        #[test]
        fn padding_does_not_hide_text(
            head in "[a-z]{1,20}", tail in "[a-z]{1,20}", blank in "[ \t\n\u{a0}\u{2003}\u{3000}\u{2800}]", count in 1usize..5000,
        ) {
            let text = format!("{head}{}{tail}", blank.repeat(count));
            let shown = fit_text(&text, 400);
            proptest::prop_assert!(shown.starts_with(&head) && shown.ends_with(&tail));
            proptest::prop_assert!(shown.chars().count() < 100 && shown.lines().count() <= 5);
            proptest::prop_assert_eq!(fit_line(&text, 400).lines().count(), 1);
        }

        #[test]
        fn the_end_of_a_truncated_text_stays(text in "[ -~]{0,3000}", tail in "[a-z]{1,50}") {
            let shown = fit_text(&format!("{text}{tail}"), 400);
            proptest::prop_assert!(shown.ends_with(&tail) && shown.chars().count() < 500);
        }

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
