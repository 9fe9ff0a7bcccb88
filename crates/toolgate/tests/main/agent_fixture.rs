//! The scripted model, and runs of the program against it.

use super::cli_fixture::{CliFixture, CliRun};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The three protocols, by the value of `TOOLGATE_MODEL_API`.
pub(super) const PROTOCOLS: [&str; 3] = ["anthropic", "chat", "responses"];

/// One server for the whole test binary; it ends with this process, because its standard input closes.
struct ModelServer {
    address: String,
    _child: Child,
}

static SERVER: OnceLock<ModelServer> = OnceLock::new();
static WORLDS: AtomicUsize = AtomicUsize::new(0);

/// A script of the model, and what it was asked.
pub(super) struct ScriptedModel {
    pub(super) base: String,
}

/// The program of the scripted model.
pub(super) fn fake_model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/host/sdk/fake_model.py")
}

fn server_address() -> &'static str {
    &SERVER
        .get_or_init(|| {
            // The server is a child of a shell that waits for our end: statics are not dropped. Only the server holds the
            // pipe, so that one that cannot start fails the tests, and does not make them wait.
            let script = r#"python3 "$0" & server=$!; trap 'kill $server' EXIT; exec > /dev/null; cat"#;
            let mut child = Command::new("bash")
                .args(["-c", script])
                .arg(fake_model())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut line = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
            let started: Value = serde_json::from_str(&line).unwrap();
            ModelServer { address: started["url"].as_str().unwrap().to_owned(), _child: child }
        })
        .address
}

impl ScriptedModel {
    /// A model that plays these turns.
    pub(super) fn new(script: &Value) -> Self {
        let number = WORLDS.fetch_add(1, Ordering::Relaxed);
        let base = format!("{}/s/t{}-{number}", server_address(), std::process::id());
        let model = Self { base };
        model.exchange("PUT", "/_script", &script.to_string());
        model
    }

    /// Plays these turns from now on, and forgets what it was asked.
    pub(super) fn play(&self, script: &Value) {
        self.exchange("PUT", "/_script", &script.to_string());
    }

    /// What it was asked: `requests`, `violations` and `left`.
    pub(super) fn seen(&self) -> Value {
        serde_json::from_str(&self.exchange("GET", "/_requests", "")).unwrap()
    }

    /// The bodies of the requests.
    pub(super) fn requests(&self) -> Vec<Value> {
        let seen = self.seen();
        seen["requests"].as_array().unwrap().iter().map(|request| request["body"].clone()).collect()
    }

    fn exchange(&self, method: &str, path: &str, body: &str) -> String {
        let rest = self.base.strip_prefix("http://").unwrap();
        let (host, prefix) = rest.split_once('/').unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        write!(
            stream,
            "{method} /{prefix}{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    /// The program with this model over a protocol.
    pub(super) fn command(&self, fixture: &CliFixture, protocol: &str, args: &[&str]) -> Command {
        let mut command = fixture.command(args);
        command
            .env("TOOLGATE_MODEL_API", protocol)
            .env("ANTHROPIC_BASE_URL", &self.base)
            .env("ANTHROPIC_API_KEY", "sk-test-secret-key")
            .env("OPENAI_BASE_URL", format!("{}/v1", self.base))
            .env("OPENAI_API_KEY", "sk-test-secret-key")
            .env("OPENAI_MODEL", "claude-sonnet-5");
        command
    }

    /// Runs the program with this model.
    pub(super) fn run(&self, fixture: &CliFixture, protocol: &str, args: &[&str]) -> CliRun {
        super::cli_fixture::cli_run(self.command(fixture, protocol, args).output().unwrap())
    }
}

/// The lines of a run with `--output-format stream-json`.
pub(super) fn frames(run: &CliRun) -> Vec<Value> {
    run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The one result frame.
pub(super) fn result_of(run: &CliRun) -> Value {
    let results: Vec<Value> = frames(run).into_iter().filter(|frame| frame["type"] == "result").collect();
    assert_eq!(results.len(), 1, "{}\n{}", run.stdout, run.stderr);
    results[0].clone()
}
