//! The seeds of the fuzz target for messages hold in an ordinary test run.

#[path = "../../../../fuzz/src/messages.rs"]
mod messages;

#[test]
fn every_seed_of_the_message_target_passes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/messages.jsonl");
    let seeds = std::fs::read_to_string(path).unwrap();
    assert!(seeds.lines().count() >= 10);
    for line in seeds.lines() {
        messages::check(&serde_json::from_str::<String>(line).unwrap());
    }
}
