//! Settings: which files there are, what stands in them, and what follows for the gate.
//!
//! Raw and resolved are two types.
//! [`Settings`] is what was found, file by file, with the line of each rule; [`Settings::policy`] turns it into what
//! the policy engine compiles.
//! A file that is there but cannot be read is an error, never an empty file: it may hold a deny.

mod document;
mod judging;
mod locate;
mod read;
mod sandbox;

pub use judging::Judging;
pub use locate::{SettingSource, SettingsOptions};
pub use read::SettingsFile;
pub use sandbox::SandboxPart;

use std::fmt;
use toolgate_policy::{Layer, RawPolicy};
use toolgate_proto::{AbsPath, Mode};

/// Everything that was configured.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The files and other origins, strongest first.
    pub files: Vec<SettingsFile>,
    /// What should be known about them.
    pub notes: Vec<SettingsNote>,
}

/// Something about a settings file that a person should know, but that stops nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsNote {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is the matter.
    pub message: String,
}

impl fmt::Display for SettingsNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

/// A settings file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}\n  hint: {fix}")]
pub struct SettingsError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is the matter.
    pub message: String,
    /// What to do about it.
    pub fix: String,
}

impl Settings {
    /// The rules and the mode. A mode given on the command line comes first, then the strongest file's.
    pub fn policy(&self, mode: Option<Mode>) -> RawPolicy {
        let mut policy = RawPolicy {
            layers: self.files.iter().map(|file| file.rules.clone()).collect(),
            mode: mode.or_else(|| self.files.iter().find_map(|file| file.mode)).unwrap_or_default(),
            ..RawPolicy::default()
        };
        judging::gather(self.files.iter().map(|file| &file.judging), &mut policy);
        policy.managed.disabled_tools = self.disabled_tools();
        // Whoever can change the settings can change the answer.
        let files = self.files.iter().filter_map(|file| file.rules.file.as_ref());
        policy.protected_paths = files.filter_map(|file| AbsPath::new(file).ok()).collect();
        policy
    }

    /// Directories beside the workspace in which the session may work.
    pub fn additional_directories(&self) -> Vec<AbsPath> {
        self.files.iter().flat_map(|file| file.additional_directories.clone()).collect()
    }

    /// Tools that are switched off.
    pub fn disabled_tools(&self) -> Vec<String> {
        self.files.iter().flat_map(|file| file.disabled_tools.clone()).collect()
    }

    /// The layers found, for showing.
    pub fn layers(&self) -> Vec<(Layer, Option<String>)> {
        self.files.iter().map(|file| (file.rules.layer, file.rules.file.clone())).collect()
    }
}
