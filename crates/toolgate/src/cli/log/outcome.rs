//! How a call ended, in one word.

use crate::cli::output::style;
use anstyle::Style;
use toolgate::{Code, OutcomeRecord, Stage};

/// How a call ended, as [`OutcomeRecord`] has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogOutcome {
    /// The tool ran and succeeded
    Done,
    /// The tool ran and failed
    Failed,
    /// The tool did not run
    Refused,
    /// The call was cancelled, or its caller went away
    Cancelled,
}

impl LogOutcome {
    /// The outcome of a record.
    pub(super) fn of(outcome: &OutcomeRecord) -> Self {
        match outcome {
            OutcomeRecord::Done { .. } => Self::Done,
            OutcomeRecord::Failed { .. } => Self::Failed,
            OutcomeRecord::Cancelled { .. } => Self::Cancelled,
            // Older ledgers have `refused` for every call without a result.
            OutcomeRecord::Refused { code: Code::Cancelled, .. } => Self::Cancelled,
            OutcomeRecord::Refused { stage: Stage::Run | Stage::Finish, .. } => Self::Failed,
            OutcomeRecord::Refused { .. } => Self::Refused,
        }
    }

    /// The word that is shown.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
        }
    }

    /// The colour of the word.
    pub(super) fn style(self) -> Style {
        match self {
            Self::Done => style::GOOD,
            Self::Failed | Self::Cancelled => style::ASK,
            Self::Refused => style::BAD,
        }
    }
}
