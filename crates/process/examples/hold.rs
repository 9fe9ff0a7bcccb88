//! Starts a command and holds it until standard input ends: `hold DIRECTORY COMMAND`.
//! Kill it in any way, and nothing of the command is left.

#![expect(clippy::print_stdout, reason = "an example talks to whoever runs it")]

use std::collections::BTreeMap;
use std::io::Read;
use toolgate_process::{CaptureOptions, CommandEnvironment, ProcessSpec, SupervisedProcess, to_plain_text};
use toolgate_proto::AbsPath;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(dir), Some(text)) = (args.next(), args.next()) else {
        return Err("usage: hold DIRECTORY COMMAND [MARK]".into());
    };
    let cwd = AbsPath::new(dir)?;
    let set = args.map(|mark| ("TOOLGATE_TEST_MARK".to_owned(), mark)).collect();
    let file = cwd.join(toolgate_files::generate_id("out_"));
    let keeping = CaptureOptions { head: 10_000, tail: 0, max_bytes: 1_000_000, file, file_at_once: false };
    let command = ProcessSpec {
        text,
        cwd,
        environment: CommandEnvironment::from_filtered(&BTreeMap::new(), &[], &set),
        startup: None,
        capture: keeping,
        sandbox: None,
    };
    let (send, changed) = std::sync::mpsc::channel();
    let process = SupervisedProcess::start(command, move || {
        let _ = send.send(());
    })
    .map_err(|problem| problem.message)?;
    while !to_plain_text(&process.output_snapshot().head).contains("ready") {
        changed.recv()?;
    }
    println!("ready");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    Ok(())
}
