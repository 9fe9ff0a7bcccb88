//! Problems of a file that extends an agent.

use std::fmt;

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CapabilitySeverity {
    /// Worth knowing; the file is used as it was written.
    Note,
    /// The file is used, but not in every respect as it was written.
    Warning,
    /// The file, or the part of it that the problem names, is not used.
    Error,
}

impl fmt::Display for CapabilitySeverity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// A problem of a file, with its line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CapabilityProblem {
    /// The line, from 1.
    pub line: usize,
    /// How bad it is.
    pub severity: CapabilitySeverity,
    /// What is the matter, and what to do.
    pub message: String,
}

impl CapabilityProblem {
    /// A note.
    pub fn note(line: usize, message: impl Into<String>) -> Self {
        Self { line, severity: CapabilitySeverity::Note, message: message.into() }
    }

    /// A warning.
    pub fn warning(line: usize, message: impl Into<String>) -> Self {
        Self { line, severity: CapabilitySeverity::Warning, message: message.into() }
    }

    /// An error.
    pub fn error(line: usize, message: impl Into<String>) -> Self {
        Self { line, severity: CapabilitySeverity::Error, message: message.into() }
    }
}

impl fmt::Display for CapabilityProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.line, self.severity, self.message)
    }
}
