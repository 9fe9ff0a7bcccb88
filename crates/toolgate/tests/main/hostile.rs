//! The seeds of the fuzz target for settings, checked without a fuzzer.

#[path = "../../../../fuzz/src/judge_call.rs"]
#[expect(dead_code, reason = "the other targets judge more kinds of calls")]
mod judge_call;
#[path = "../../../../fuzz/src/settings.rs"]
mod settings;

#[test]
fn any_text_is_a_settings_file_or_refused() {
    let mut count = 0;
    for line in include_str!("../../../../fuzz/seeds/settings.jsonl").lines() {
        let text: String = serde_json::from_str(line).unwrap();
        settings::check(&text);
        // A truncated file is refused or has the same meaning; it never loses a deny rule silently.
        for (at, _) in text.char_indices().step_by(7) {
            settings::check(text.split_at(at).0);
        }
        count += 1;
    }
    assert!(count >= 50, "{count}");
}
