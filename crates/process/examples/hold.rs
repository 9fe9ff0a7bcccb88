//! Starts a shell command and keeps it until standard input ends: `hold command|hook|server DIRECTORY TEXT [MARK]`.
//! However this program is killed, no process of the command is left.

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "an example prints, and reads a file")]

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;
use tokio::io::AsyncBufReadExt;
use toolgate_process::{
    CaptureOptions, CommandEnvironment, HookCommand, HookProgram, ProcessSpec, ServerLaunch, ServerProcess,
    SupervisedProcess, run_hook, to_plain_text,
};
use toolgate_proto::AbsPath;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let (Some(kind), Some(dir), Some(text)) = (args.next(), args.next(), args.next()) else {
        return Err("usage: hold command|hook|server DIRECTORY TEXT [MARK]".into());
    };
    let cwd = AbsPath::new(dir)?;
    let env = args.map(|mark| ("TOOLGATE_TEST_MARK".to_owned(), mark)).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    match kind.as_str() {
        "command" => hold_command(text, cwd, &env),
        "hook" => runtime.block_on(hold_hook(&text, cwd, env)),
        "server" => runtime.block_on(hold_server(text, cwd, env)),
        other => Err(format!("unknown kind `{other}`").into()),
    }
}

fn report_ready_and_wait() {
    println!("ready");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

fn hold_command(text: String, cwd: AbsPath, env: &BTreeMap<String, String>) -> Result<(), Failure> {
    let file = cwd.join(toolgate_files::generate_id("out_"));
    let capture = CaptureOptions { head: 10_000, tail: 0, max_bytes: 1_000_000, file, file_at_once: false };
    let command = ProcessSpec {
        text,
        cwd,
        environment: CommandEnvironment::from_filtered(&BTreeMap::new(), &[], env),
        startup: None,
        capture,
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
    report_ready_and_wait();
    Ok(())
}

/// The output of a hook is known only when it has exited, so it goes to a file.
async fn hold_hook(text: &str, cwd: AbsPath, env: BTreeMap<String, String>) -> Result<(), Failure> {
    let output = cwd.join("hook_output");
    let hook = tokio::spawn(run_hook(HookCommand {
        program: HookProgram::Shell(format!("exec > {output}; {text}")),
        cwd,
        env: env.into_iter().chain([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]).collect(),
        stdin: Vec::new(),
        timeout: Duration::from_secs(1000),
        fault: None,
    }));
    while !std::fs::read_to_string(&output).is_ok_and(|text| text.contains("ready")) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    report_ready_and_wait();
    hook.abort();
    Ok(())
}

async fn hold_server(text: String, cwd: AbsPath, env: BTreeMap<String, String>) -> Result<(), Failure> {
    let launch = ServerLaunch::new("bash", vec!["-c".to_owned(), text], cwd).with_env(env);
    let ambient = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
    let (_process, stdout, _stdin) = ServerProcess::start(&launch, &ambient)?;
    let mut lines = tokio::io::BufReader::new(stdout).lines();
    while lines.next_line().await?.is_some_and(|line| line != "ready") {}
    report_ready_and_wait();
    Ok(())
}
