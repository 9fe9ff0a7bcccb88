//! The permission mode: the default when no rule matches.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What happens to a call that no rule decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Reads inside the workspace are allowed, everything else asks.
    #[default]
    Default,
    /// Only reads are allowed; every change asks, even if an allow rule matches.
    Plan,
    /// Reads and edits inside the workspace are allowed.
    AcceptEdits,
    /// What would ask is denied instead.
    DontAsk,
    /// What would ask by default is allowed. Deny rules, ask rules and protected paths still apply.
    Bypass,
    /// Every call is denied.
    Deny,
}

impl Mode {
    /// Every mode, in the order in which help texts list them.
    pub const ALL: [Self; 6] =
        [Self::Default, Self::Plan, Self::AcceptEdits, Self::DontAsk, Self::Bypass, Self::Deny];

    /// The name in settings and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Plan => "plan",
            Self::AcceptEdits => "acceptEdits",
            Self::DontAsk => "dontAsk",
            Self::Bypass => "bypass",
            Self::Deny => "deny",
        }
    }
}

impl Mode {
    /// The stricter of the two, for a part of a session that wants a mode of its own. Where neither is stricter in every
    /// case, this one stays: what a session denies must not become a question.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        match (self, other) {
            (Self::Deny, _) | (_, Self::Deny) => Self::Deny,
            (Self::DontAsk, _) => Self::DontAsk,
            (Self::Plan, _) => Self::Plan,
            (Self::Default, Self::Plan | Self::DontAsk) => other,
            (Self::Default, Self::Default | Self::AcceptEdits | Self::Bypass) => self,
            (Self::AcceptEdits, Self::AcceptEdits | Self::Bypass) => self,
            (Self::AcceptEdits, Self::Default | Self::Plan | Self::DontAsk) => other,
            (Self::Bypass, _) => other,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that is not the name of a mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownMode(String);

impl fmt::Display for UnknownMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unknown permission mode `{}`; use default, plan, acceptEdits, dontAsk, bypass or deny",
            self.0
        )
    }
}

impl std::error::Error for UnknownMode {}

impl FromStr for Mode {
    type Err = UnknownMode;

    /// Accepts our names, those of Claude Code (`manual`, `auto`, `bypassPermissions`) and older ones (`acceptAll`), in any
    /// case and with or without separators. `auto` lets a model approve calls; there is no such model here, so a call that
    /// would need it is asked about.
    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        let folded: String =
            text.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect();
        Ok(match folded.as_str() {
            "default" | "manual" | "auto" => Self::Default,
            "plan" => Self::Plan,
            "acceptedits" => Self::AcceptEdits,
            "dontask" => Self::DontAsk,
            "bypass" | "bypasspermissions" | "acceptall" => Self::Bypass,
            "deny" => Self::Deny,
            _ => return Err(UnknownMode(text.to_owned())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stricter_mode_never_loosens_the_first() {
        // From the loosest on; plan and dontAsk are not comparable.
        let rank = |mode: Mode| match mode {
            Mode::Bypass => 0,
            Mode::AcceptEdits => 1,
            Mode::Default => 2,
            Mode::Plan | Mode::DontAsk => 3,
            Mode::Deny => 4,
        };
        for first in Mode::ALL {
            for second in Mode::ALL {
                let stricter = first.stricter(second);
                assert!(rank(stricter) >= rank(first) && rank(stricter) >= rank(second), "{first} {second}");
                assert!(rank(stricter) > rank(first) || stricter == first, "{first} {second}");
                assert!(stricter == first || stricter == second);
            }
        }
    }
}
