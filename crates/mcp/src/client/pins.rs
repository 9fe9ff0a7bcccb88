//! Pins: what was approved about a server, so that a later change is detected.
//!
//! A server is pinned by how it is launched and by what its tools say about themselves.
//! A tool whose description or schema differs from the approved one is held back: its description would reach a
//! model, and that is where a server that turned bad puts its instructions.
//! What the user configured is approved at first use; what a project configures must be approved by the user.

use crate::server::ProtocolEra;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use toolgate_files::{lock_state_file, read_settings_text, write_private_file};
use toolgate_gate::ledger::sha256_hex;
use toolgate_proto::AbsPath;

/// The size limit of the pin file, which is read whole.
const MAX_PIN_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// What is known of one server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerPin {
    /// How it is launched.
    pub launch: String,
    /// Its tools, by name.
    #[serde(default)]
    pub tools: BTreeMap<String, String>,
    /// Which era it spoke last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub era: Option<ProtocolEra>,
}

/// Why a server is not started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerApprovalError {
    /// It was not approved.
    NeverApproved,
    /// It is launched in another way than when it was approved.
    LaunchChanged,
}

/// The pins, kept in a file where there is a place for one.
#[derive(Debug)]
pub struct PinStore {
    /// The file; `None` keeps the pins in memory.
    file: Option<AbsPath>,
    /// The pins in memory; they differ from the file only if another process changed it or writing failed.
    known: Mutex<BTreeMap<String, ServerPin>>,
}

impl PinStore {
    /// Reads the pins. A file that cannot be read is an error: without it everything would be new.
    pub fn open(file: Option<AbsPath>) -> Result<Self, String> {
        let known = match &file {
            Some(file) => load_pins(file)?,
            None => BTreeMap::new(),
        };
        Ok(Self { file, known: Mutex::new(known) })
    }

    /// Pins that last as long as the value.
    pub fn in_memory() -> Self {
        Self { file: None, known: Mutex::default() }
    }

    /// Whether a server may be started.
    pub fn check_may_start(&self, key: &str, launch: &str, trusted: bool) -> Result<(), ServerApprovalError> {
        match self.lock_pins().get(key) {
            Some(pin) if pin.launch == launch => Ok(()),
            Some(_) => Err(ServerApprovalError::LaunchChanged),
            None if trusted => Ok(()),
            None => Err(ServerApprovalError::NeverApproved),
        }
    }

    /// Which of these tools differ from what was approved. What was never seen is approved by this.
    pub fn find_changed_tools(
        &self,
        key: &str,
        launch: &str,
        tools: &BTreeMap<String, String>,
    ) -> Vec<String> {
        let compare = |known: &mut BTreeMap<String, ServerPin>| {
            let pin = known
                .entry(key.to_owned())
                .or_insert_with(|| ServerPin { launch: launch.to_owned(), ..ServerPin::default() });
            let mut changed = Vec::new();
            for (name, digest) in tools {
                match pin.tools.get(name) {
                    Some(approved) if approved == digest => {}
                    Some(_) => changed.push(name.clone()),
                    None => {
                        pin.tools.insert(name.clone(), digest.clone());
                    }
                }
            }
            changed
        };
        let mut tried = self.lock_pins().clone();
        let changed = compare(&mut tried);
        if tried == *self.lock_pins() && !tools.is_empty() {
            return changed;
        }
        match self.update(compare) {
            Ok(changed) => changed,
            Err(problem) => {
                tracing::warn!(%problem, "what is known of MCP servers is not kept");
                *self.lock_pins() = tried;
                changed
            }
        }
    }

    /// Approves a server as it is now, with the tools that it lists next.
    pub fn approve(&self, key: &str, launch: &str) -> Result<(), String> {
        let pin = ServerPin { launch: launch.to_owned(), ..ServerPin::default() };
        self.update(|known| drop(known.insert(key.to_owned(), pin)))
    }

    /// Forgets a server.
    pub fn forget(&self, key: &str) -> Result<(), String> {
        self.update(|known| drop(known.remove(key)))
    }

    /// The tools that each server listed since it was approved, by the name of the server.
    pub fn tools_by_server(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (key, pin) in self.lock_pins().iter().filter(|(_, pin)| !pin.tools.is_empty()) {
            let name = key.rsplit_once('#').map_or(key.as_str(), |(_, name)| name);
            found.entry(name.to_owned()).or_default().extend(pin.tools.keys().cloned());
        }
        found
    }

    /// Which era the server spoke last.
    pub fn era(&self, key: &str) -> Option<ProtocolEra> {
        self.lock_pins().get(key)?.era
    }

    /// Remembers which era a server speaks.
    pub fn remember_era(&self, key: &str, launch: &str, era: ProtocolEra) {
        if self.lock_pins().get(key).is_some_and(|pin| pin.era == Some(era)) {
            return;
        }
        let remembered = self.update(|known| {
            let pin = known
                .entry(key.to_owned())
                .or_insert_with(|| ServerPin { launch: launch.to_owned(), ..ServerPin::default() });
            pin.era = Some(era);
        });
        if let Err(problem) = remembered {
            tracing::warn!(%problem, "what is known of MCP servers is not kept");
        }
    }

    /// Changes the pins as they are in the file now, which another process may have changed since. A file that cannot
    /// be read any more stays as it is.
    fn update<T>(&self, change: impl FnOnce(&mut BTreeMap<String, ServerPin>) -> T) -> Result<T, String> {
        let mut known = self.lock_pins();
        let Some(file) = &self.file else { return Ok(change(&mut known)) };
        let failed = |problem: &toolgate_files::FileProblem| format!("{file}: {problem}");
        let _lock = lock_state_file(file).map_err(|problem| failed(&problem))?;
        let mut now = load_pins(file)?;
        let before = now.clone();
        let out = change(&mut now);
        if now != before {
            let text = serde_json::to_string_pretty(&now).map_err(|error| error.to_string())?;
            write_private_file(file, text.as_bytes()).map_err(|problem| failed(&problem))?;
        }
        *known = now;
        Ok(out)
    }

    /// Locks the copy in memory; `update` changes the file as well.
    fn lock_pins(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, ServerPin>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the pin file; a missing file has no pins. A damaged file is an error, because an empty set would approve every
/// tool again at first use.
fn load_pins(file: &AbsPath) -> Result<BTreeMap<String, ServerPin>, String> {
    let text =
        read_settings_text(file, MAX_PIN_FILE_BYTES).map_err(|problem| format!("{file}: {problem}"))?;
    match text {
        Some(text) => serde_json::from_str(&text).map_err(|error| {
            format!(
                "{file}: the file is damaged: {error}; repair it, or move it away and approve the servers again with \
                 `toolgate mcp approve`"
            )
        }),
        None => Ok(BTreeMap::new()),
    }
}

/// What a tool says about itself, as one digest.
pub(crate) fn tool_digest(tool: &rmcp::model::Tool) -> String {
    let said =
        serde_json::json!([tool.name, tool.title, tool.description, tool.input_schema, tool.output_schema]);
    sha256_hex(said.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_held_back_until_approved_again() {
        let dir = tempfile::tempdir().unwrap();
        let file = AbsPath::new(dir.path().join("pins.json")).unwrap();
        let tools = |digest: &str| BTreeMap::from([("a".to_owned(), digest.to_owned())]);
        let pins = PinStore::open(Some(file.clone())).unwrap();
        assert_eq!(pins.check_may_start("k", "launch", false), Err(ServerApprovalError::NeverApproved));
        assert_eq!(pins.check_may_start("k", "launch", true), Ok(()));
        assert!(pins.find_changed_tools("k", "launch", &tools("1")).is_empty());

        // Another process, later.
        let pins = PinStore::open(Some(file.clone())).unwrap();
        assert_eq!(pins.check_may_start("k", "launch", false), Ok(()));
        assert_eq!(pins.check_may_start("k", "other", true), Err(ServerApprovalError::LaunchChanged));
        assert_eq!(pins.find_changed_tools("k", "launch", &tools("2")), ["a"]);
        assert_eq!(pins.find_changed_tools("k", "launch", &tools("2")), ["a"], "seen twice is not approved");
        pins.approve("k", "other").unwrap();
        assert_eq!(pins.check_may_start("k", "other", false), Ok(()));
        assert!(pins.find_changed_tools("k", "other", &tools("2")).is_empty());

        // Two that were opened at the same time do not overwrite each other.
        let other = PinStore::open(Some(file.clone())).unwrap();
        pins.approve("mine", "launch").unwrap();
        other.approve("theirs", "launch").unwrap();
        let both = PinStore::open(Some(file.clone())).unwrap();
        assert_eq!(
            [both.check_may_start("mine", "launch", false), both.check_may_start("theirs", "launch", false)],
            [Ok(()); 2]
        );

        // A damaged file is named and stays as it is.
        write_private_file(&file, b"{").unwrap();
        assert!(pins.approve("k", "launch").unwrap_err().contains("is damaged"));
        assert_eq!(read_settings_text(&file, MAX_PIN_FILE_BYTES).unwrap().as_deref(), Some("{"));
        assert!(PinStore::open(Some(file)).unwrap_err().contains("toolgate mcp approve"));
    }
}
