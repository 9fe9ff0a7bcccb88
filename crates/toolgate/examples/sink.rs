//! A sink: every call leaves one record, and the sink decides where it goes.
//!
//! Run with `cargo run --package toolgate --example sink`.

use std::sync::mpsc;
use toolgate::{CallRecord, Sink, Toolgate};

/// Sends records to another thread, so that slow storage does not slow calls down.
struct Channel(mpsc::Sender<CallRecord>);

impl Sink for Channel {
    fn record(&self, record: &CallRecord) {
        // The receiver may be gone when the program ends.
        let _ = self.0.send(record.clone());
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (sender, receiver) = mpsc::channel();
    let toolgate = Toolgate::builder("/").sink(Channel(sender)).build()?;
    toolgate.call("call_1", "ls", "{}").await.result?;
    let refused = toolgate.call("call_2", "no_such_tool", "{}").await.result;
    assert!(refused.is_err());
    drop(toolgate);
    let calls: Vec<String> = receiver.iter().map(|record| record.call.to_string()).collect();
    assert_eq!(calls, ["call_1", "call_2"]);
    Ok(())
}
