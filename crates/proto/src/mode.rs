//! The permission mode: what happens where no rule speaks.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What happens to a call that no rule decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Reads inside the workspace are free, the rest asks.
    #[default]
    Default,
    /// Only reads; every change asks, whatever the allow rules say.
    Plan,
    /// Edits inside the workspace are free as well.
    AcceptEdits,
    /// Whatever would ask is denied.
    DontAsk,
    /// Asks by default are skipped. Denies, explicit asks and protected paths hold.
    Bypass,
    /// Nothing runs.
    Deny,
}

impl Mode {
    /// Every mode, loosest last but for `Deny`.
    pub const ALL: [Self; 6] =
        [Self::Default, Self::Plan, Self::AcceptEdits, Self::DontAsk, Self::Bypass, Self::Deny];

    /// The name used in settings and on the command line.
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

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A mode name that nobody uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownMode(String);

impl fmt::Display for UnknownMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is no permission mode; use one of default, plan, acceptEdits, dontAsk, bypass, deny",
            self.0
        )
    }
}

impl std::error::Error for UnknownMode {}

impl FromStr for Mode {
    type Err = UnknownMode;

    /// Takes our names, Claude Code's (`manual`, `bypassPermissions`) and those of older designs
    /// (`acceptAll`, and snake or Pascal case).
    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        let folded: String =
            text.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect();
        Ok(match folded.as_str() {
            "default" | "manual" => Self::Default,
            "plan" => Self::Plan,
            "acceptedits" => Self::AcceptEdits,
            "dontask" => Self::DontAsk,
            "bypass" | "bypasspermissions" | "acceptall" => Self::Bypass,
            "deny" => Self::Deny,
            _ => return Err(UnknownMode(text.to_owned())),
        })
    }
}
