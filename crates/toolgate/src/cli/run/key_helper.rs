//! Programs that settings name for a run: the one that prints the API key (`apiKeyHelper`), and the one that writes the status line.
//!
//! Both run as hooks do: in a session of their own without a terminal, with bounded time and output, and nothing of them
//! outlives the answer. Settings of a project that is not trusted name none.

use futures_util::future::BoxFuture;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use toolgate::AbsPath;
use toolgate::agent::provider::{CredentialHelper, SecretText};
use toolgate_process::{HookCommand, HookProcessError, HookProgram, run_hook};

/// How long a key helper may take: it may ask a vault.
const KEY_HELPER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a status line may take: the prompt waits for it.
const STATUS_LINE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a key is used before it is asked for again, where the environment does not say.
const DEFAULT_KEY_LIFE: Duration = Duration::from_secs(5 * 60);
/// How many characters of a status line are shown.
const MAX_STATUS_CHARS: usize = 200;

/// Runs a command line and gives its standard output.
async fn run_command(
    command: &str,
    cwd: &AbsPath,
    env: &BTreeMap<String, String>,
    (stdin, timeout): (Vec<u8>, Duration),
) -> Result<String, String> {
    let command = HookCommand {
        program: HookProgram::Shell(command.to_owned()),
        cwd: cwd.clone(),
        env: env.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        stdin,
        timeout,
        fault: None,
    };
    let output = run_hook(command).await.map_err(describe_failure)?;
    match output.code {
        Some(0) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Some(code) => Err(format!("it ended with exit code {code}")),
        None => Err("it was ended by a signal".to_owned()),
    }
}

/// Why a program has no output.
fn describe_failure(error: HookProcessError) -> String {
    match error {
        HookProcessError::Missing(program) => format!("{program} does not exist"),
        HookProcessError::NotStarted(why) => format!("it could not be started: {why}"),
        HookProcessError::TimedOut => "it took too long".to_owned(),
        HookProcessError::TooMuchOutput => "it printed too much".to_owned(),
        HookProcessError::Broken(why) => why,
    }
}

/// Asks the program `apiKeyHelper` for the key. What it prints is in no message.
pub(super) struct KeyHelper {
    command: String,
    cwd: AbsPath,
    env: BTreeMap<String, String>,
    /// How long a key is used.
    life: Duration,
    /// The last key, and when it came.
    last: Mutex<Option<(Instant, SecretText)>>,
}

impl KeyHelper {
    /// A helper that runs this command line.
    pub(super) fn new(command: &str, cwd: AbsPath, env: BTreeMap<String, String>) -> Self {
        let millis = env.get("CLAUDE_CODE_API_KEY_HELPER_TTL_MS").and_then(|text| text.trim().parse().ok());
        let life = millis.map_or(DEFAULT_KEY_LIFE, Duration::from_millis);
        Self { command: command.to_owned(), cwd, env, life, last: Mutex::default() }
    }
}

impl CredentialHelper for KeyHelper {
    fn fetch_key(&self, is_refused: bool) -> BoxFuture<'_, Result<SecretText, String>> {
        Box::pin(async move {
            let known = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some((_, key)) = known.filter(|(when, _)| !is_refused && when.elapsed() < self.life) {
                return Ok(key);
            }
            let printed = run_command(&self.command, &self.cwd, &self.env, (Vec::new(), KEY_HELPER_TIMEOUT))
                .await
                .map_err(|problem| format!("the program `apiKeyHelper` gave no key: {problem}"))?;
            let key = printed.trim();
            if key.is_empty() || key.contains(char::is_whitespace) {
                return Err("the program `apiKeyHelper` printed no key".to_owned());
            }
            let key = SecretText::new(key);
            let now = (Instant::now(), key.clone());
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
            Ok(key)
        })
    }
}

/// Asks the program `statusLine` for the line before a prompt.
pub(super) struct StatusLine {
    command: String,
    cwd: AbsPath,
    env: BTreeMap<String, String>,
}

impl StatusLine {
    /// A line that this command writes.
    pub(super) fn new(command: &str, cwd: AbsPath, env: BTreeMap<String, String>) -> Self {
        Self { command: command.to_owned(), cwd, env }
    }

    /// The first line that it prints for this session; none if it fails: a decoration is no reason to stop.
    pub(super) async fn render(&self, session: &Value) -> Option<String> {
        let input = (session.to_string().into_bytes(), STATUS_LINE_TIMEOUT);
        let printed = run_command(&self.command, &self.cwd, &self.env, input).await.ok()?;
        let line = printed.lines().find(|line| !line.trim().is_empty())?;
        Some(line.chars().take(MAX_STATUS_CHARS).collect())
    }
}
