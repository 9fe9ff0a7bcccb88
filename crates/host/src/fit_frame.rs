//! Frames that fit: a host's reader gives up on a line over 1 MiB, and the session with it.

use serde_json::Value;

/// The longest line that is written. Hosts accept 1 MiB.
pub(crate) const MAX_FRAME_BYTES: usize = 1_000_000;
/// The first limit on a text inside a frame that is too long; it is halved until the frame fits.
const MAX_TEXT_BYTES: usize = 256 * 1024;
/// A shorter text is not cut.
const MIN_TEXT_BYTES: usize = 64;

/// The frame as one line, without its end. Of a frame that is too long the structured copy of a result goes first, then
/// long texts are cut, then whole values are left out.
pub(crate) fn fit_frame(mut frame: Value) -> String {
    let line = frame.to_string();
    if line.len() <= MAX_FRAME_BYTES {
        return line;
    }
    if let Some(frame) = frame.as_object_mut() {
        // The result is in `message` as well; this copy is for programs that want fields.
        frame.remove("tool_use_result");
    }
    let mut limit = MAX_TEXT_BYTES;
    loop {
        let line = frame.to_string();
        if line.len() <= MAX_FRAME_BYTES {
            return line;
        }
        if limit < MIN_TEXT_BYTES {
            break;
        }
        cut_texts(&mut frame, limit);
        limit /= 2;
    }
    // Thousands of short values: keep what identifies the frame.
    if let Some(frame) = frame.as_object_mut() {
        for (key, value) in frame.iter_mut() {
            if value.to_string().len() > MIN_TEXT_BYTES * 4 && key != "type" {
                *value = Value::String("[left out: the frame was too long]".to_owned());
            }
        }
    }
    frame.to_string()
}

/// Cuts every text beyond the limit, at a character.
fn cut_texts(value: &mut Value, limit: usize) {
    match value {
        Value::String(text) if text.len() > limit => {
            let end = (0..=limit).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
            let left_out = text.len() - end;
            text.truncate(end);
            text.push_str(&format!("… [{left_out} bytes left out: the frame was too long]"));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| cut_texts(item, limit)),
        Value::Object(map) => map.values_mut().for_each(|item| cut_texts(item, limit)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn every_frame_is_one_line_below_the_limit_and_keeps_its_type(
            texts in prop::collection::vec(("[aé\n\u{1F600}]{1,8}", 1usize..400_000), 1..5),
            many in 0usize..200_000,
        ) {
            let content: Vec<Value> = texts.iter().map(|(text, times)| json!({ "text": text.repeat(*times / text.len() + 1) })).collect();
            let frame = json!({
                "type": "user", "message": { "content": content }, "tool_use_result": content,
                "numbers": vec![1u8; many],
            });
            let line = fit_frame(frame);
            prop_assert!(line.len() <= MAX_FRAME_BYTES);
            prop_assert!(!line.contains('\n'));
            let back: Value = serde_json::from_str(&line).unwrap();
            prop_assert_eq!(&back["type"], "user");
        }
    }

    #[test]
    fn a_short_frame_is_left_alone() {
        let frame = json!({ "type": "user", "tool_use_result": { "a": 1 } });
        assert_eq!(fit_frame(frame.clone()), frame.to_string());
    }
}
