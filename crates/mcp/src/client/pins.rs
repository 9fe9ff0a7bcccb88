//! Pins: what was approved about a server, so that a later change is detected.
//!
//! A server is pinned by how it is launched and by what its tools say about themselves.
//! A tool whose description or schema differs from the approved one is held back: its description would reach a
//! model, and that is where a server that turned bad puts its instructions.
//! What the user configured is approved at first use; how a server of a project is launched must be approved by the user.
//! A tool that an approved server lists for the first time is pinned as it is then.
//! Digests decide. The definitions are kept beside them only to show what changed.

use super::pinned_definition::PinnedDefinition;
use crate::server::ProtocolEra;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use toolgate_files::{lock_state_file, read_settings_text, write_private_file};
use toolgate_proto::AbsPath;

/// The size limit of the pin file, which is read whole.
const MAX_PIN_FILE_BYTES: u64 = 8 * 1024 * 1024;
/// A longer definition of a tool is pinned by its digest only.
const MAX_KEPT_DEFINITION_BYTES: usize = 32 * 1024;
/// No tool has a longer name, so it is not pinned.
const MAX_NAME_BYTES: usize = 256;
/// If the file would be longer, it keeps no definitions: it must stay far below the limit above, beyond which it could
/// not be read.
const MAX_BYTES_WITH_DEFINITIONS: usize = 4 * 1024 * 1024;

/// What is known of one server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerPin {
    /// How it is launched.
    pub launch: String,
    /// The digests of its tools, by name.
    #[serde(default)]
    pub tools: BTreeMap<String, String>,
    /// The definitions behind the digests, as far as they are kept.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub definitions: BTreeMap<String, PinnedDefinition>,
    /// Which era it spoke last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub era: Option<ProtocolEra>,
}

impl ServerPin {
    /// Approves a tool as it is listed.
    fn pin_tool(&mut self, name: &str, definition: &PinnedDefinition) {
        if name.len() > MAX_NAME_BYTES {
            return;
        }
        self.tools.insert(name.to_owned(), definition.digest());
        self.keep_definition(name, definition);
    }

    /// Keeps an approved definition, or forgets the former one if this one is too long.
    fn keep_definition(&mut self, name: &str, definition: &PinnedDefinition) {
        if definition.text_len() <= MAX_KEPT_DEFINITION_BYTES {
            self.definitions.insert(name.to_owned(), definition.clone());
        } else {
            self.definitions.remove(name);
        }
    }
}

/// How a tool that a server lists compares with what was approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolApproval {
    /// It is as it was approved.
    Same,
    /// No tool of this name was approved.
    New,
    /// It differs from what was approved, which is given if it was kept.
    Changed(Option<PinnedDefinition>),
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
        tools: &BTreeMap<String, PinnedDefinition>,
    ) -> Vec<String> {
        let digests: Vec<String> = tools.values().map(PinnedDefinition::digest).collect();
        let compare = |known: &mut BTreeMap<String, ServerPin>| {
            let pin = known
                .entry(key.to_owned())
                .or_insert_with(|| ServerPin { launch: launch.to_owned(), ..ServerPin::default() });
            let mut changed = Vec::new();
            for ((name, definition), digest) in tools.iter().zip(&digests) {
                match pin.tools.get(name) {
                    Some(approved) if approved != digest => changed.push(name.clone()),
                    // Pinned by a version that kept only digests.
                    Some(_) if !pin.definitions.contains_key(name) => pin.keep_definition(name, definition),
                    Some(_) => {}
                    None => pin.pin_tool(name, definition),
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

    /// Approves how a server is launched, and the tools that it lists next. What is pinned of its tools stays if the
    /// launch is the approved one.
    pub fn approve(&self, key: &str, launch: &str) -> Result<(), String> {
        self.update(|known| {
            if known.get(key).is_none_or(|pin| pin.launch != launch) {
                known.insert(key.to_owned(), ServerPin { launch: launch.to_owned(), ..ServerPin::default() });
            }
        })
    }

    /// Approves how a server is launched, with these tools as they are. Tools that it does not list now stay pinned: one
    /// that comes back in other words is not new.
    pub fn approve_listed(
        &self,
        key: &str,
        launch: &str,
        tools: &BTreeMap<String, PinnedDefinition>,
    ) -> Result<(), String> {
        self.update(|known| {
            let pin = known.entry(key.to_owned()).or_default();
            if pin.launch != launch {
                (pin.launch, pin.era) = (launch.to_owned(), None);
            }
            for (name, definition) in tools {
                pin.pin_tool(name, definition);
            }
        })
    }

    /// How a tool that a server lists compares with what was approved.
    pub fn compare_tool(&self, key: &str, name: &str, now: &PinnedDefinition) -> ToolApproval {
        let known = self.lock_pins();
        let pin = known.get(key);
        match pin.and_then(|pin| Some((pin, pin.tools.get(name)?))) {
            None => ToolApproval::New,
            Some((_, approved)) if *approved == now.digest() => ToolApproval::Same,
            Some((pin, approved)) => {
                let kept = pin.definitions.get(name).filter(|kept| kept.digest() == *approved);
                ToolApproval::Changed(kept.cloned())
            }
        }
    }

    /// Whether a server is known and how it is launched is approved.
    pub fn is_launch_approved(&self, key: &str, launch: &str) -> bool {
        self.lock_pins().get(key).is_some_and(|pin| pin.launch == launch)
    }

    /// Whether tools of a server are pinned.
    pub fn has_tools(&self, key: &str) -> bool {
        self.lock_pins().get(key).is_some_and(|pin| !pin.tools.is_empty())
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
            let text = to_file_text(&mut now)?;
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

/// The text of the pin file. Where it would become too long, the definitions are dropped, which are only for display; an
/// error if it could not be read again without them.
fn to_file_text(pins: &mut BTreeMap<String, ServerPin>) -> Result<String, String> {
    let to_text = |pins: &BTreeMap<String, ServerPin>| {
        serde_json::to_string_pretty(pins).map_err(|error| error.to_string())
    };
    let text = to_text(pins)?;
    if text.len() <= MAX_BYTES_WITH_DEFINITIONS {
        return Ok(text);
    }
    pins.values_mut().for_each(|pin| pin.definitions.clear());
    let text = to_text(pins)?;
    match text.len() as u64 > MAX_PIN_FILE_BYTES {
        true => Err("there are too many servers and tools to pin; remove servers with `toolgate mcp remove`"
            .to_owned()),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A tool with this description.
    fn tool(name: &str, description: &str) -> PinnedDefinition {
        let schema = json!({ "type": "object" });
        serde_json::from_value(json!([name, null, description, schema, null])).unwrap()
    }

    /// Whatever was pinned, an approval of listed tools pins these and no others.
    #[test]
    fn what_is_approved_is_what_was_listed() {
        let dir = tempfile::tempdir().unwrap();
        let file = AbsPath::new(dir.path().join("pins.json")).unwrap();
        let pins = PinStore::open(Some(file.clone())).unwrap();
        let tools = |list: &[(&str, &str)]| -> BTreeMap<String, PinnedDefinition> {
            list.iter().map(|(name, said)| ((*name).to_owned(), tool(name, said))).collect()
        };
        pins.approve_listed("k", "launch", &tools(&[("a", "1"), ("b", "1")])).unwrap();
        assert!(pins.find_changed_tools("k", "launch", &tools(&[("a", "1")])).is_empty());
        assert_eq!(pins.find_changed_tools("k", "launch", &tools(&[("a", "2")])), ["a"]);
        assert_eq!(pins.compare_tool("k", "a", &tool("a", "1")), ToolApproval::Same);
        assert_eq!(pins.compare_tool("k", "a", &tool("a", "2")), ToolApproval::Changed(Some(tool("a", "1"))));
        assert_eq!(pins.compare_tool("k", "c", &tool("c", "1")), ToolApproval::New);
        pins.approve("k", "launch").unwrap();
        assert_eq!(pins.find_changed_tools("k", "launch", &tools(&[("a", "2")])), ["a"], "no way around");

        pins.approve_listed("k", "launch", &tools(&[("a", "2")])).unwrap();
        assert_eq!(
            pins.find_changed_tools("k", "launch", &tools(&[("a", "3")])),
            ["a"],
            "after the approval"
        );
        assert_eq!(pins.find_changed_tools("k", "launch", &tools(&[("b", "2")])), ["b"], "it was not listed");
        pins.approve_listed("k", "other", &BTreeMap::new()).unwrap();
        assert_eq!(pins.find_changed_tools("k", "other", &tools(&[("a", "1")])), ["a"], "only the launch");

        // A file of a version that kept no definitions: the digests hold, and the definitions are kept from now on.
        let text = read_settings_text(&file, MAX_PIN_FILE_BYTES).unwrap().unwrap();
        let mut whole: Value = serde_json::from_str(&text).unwrap();
        whole["k"].as_object_mut().unwrap().remove("definitions").unwrap();
        write_private_file(&file, whole.to_string().as_bytes()).unwrap();
        let pins = PinStore::open(Some(file)).unwrap();
        assert_eq!(pins.compare_tool("k", "a", &tool("a", "1")), ToolApproval::Changed(None));
        assert!(pins.find_changed_tools("k", "other", &tools(&[("a", "2")])).is_empty());
        assert_eq!(pins.compare_tool("k", "a", &tool("a", "1")), ToolApproval::Changed(Some(tool("a", "2"))));
    }

    #[test]
    fn definitions_never_make_the_file_too_long() {
        let dir = tempfile::tempdir().unwrap();
        let file = AbsPath::new(dir.path().join("pins.json")).unwrap();
        let pins = PinStore::open(Some(file.clone())).unwrap();
        for server in 0..20 {
            let said = "x".repeat(30_000);
            let tools = (0..20).map(|n| (format!("t{n}"), tool(&format!("t{n}"), &said))).collect();
            pins.approve_listed(&format!("k{server}"), "launch", &tools).unwrap();
        }
        let name = "n".repeat(MAX_NAME_BYTES + 1);
        pins.approve_listed("k", "launch", &BTreeMap::from([(name.clone(), tool(&name, "x"))])).unwrap();
        assert_eq!(pins.compare_tool("k", &name, &tool(&name, "x")), ToolApproval::New, "it is no tool");
        let long = tool("long", &"x".repeat(MAX_KEPT_DEFINITION_BYTES));
        pins.approve_listed("k", "launch", &BTreeMap::from([("long".to_owned(), long.clone())])).unwrap();
        let pins = PinStore::open(Some(file)).unwrap();
        assert_eq!(pins.compare_tool("k", "long", &long), ToolApproval::Same);
        assert_eq!(pins.compare_tool("k", "long", &tool("long", "x")), ToolApproval::Changed(None));
        for server in 0..20 {
            let changed = pins.compare_tool(&format!("k{server}"), "t0", &tool("t0", "y"));
            assert!(matches!(changed, ToolApproval::Changed(_)), "{server}");
        }
    }

    #[test]
    fn what_changed_is_held_back_until_approved_again() {
        let dir = tempfile::tempdir().unwrap();
        let file = AbsPath::new(dir.path().join("pins.json")).unwrap();
        let tools = |said: &str| BTreeMap::from([("a".to_owned(), tool("a", said))]);
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
