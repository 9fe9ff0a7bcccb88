//! Which records `toolgate log` shows.

use super::LogFilterArgs;
use super::outcome::LogOutcome;
use crate::cli::CliError;
use crate::cli::context::CliContext;
use jiff::{Timestamp, ToSpan, civil::DateTime, tz::TimeZone};
use toolgate::{AbsPath, CallRecord};

/// The filter options, with times parsed to milliseconds since 1970.
pub(super) struct LogFilter<'a> {
    /// The options that are compared as they are.
    args: &'a LogFilterArgs,
    /// The earliest time.
    since: Option<u64>,
    /// The latest time.
    until: Option<u64>,
    /// The project, as an absolute path.
    project: Option<AbsPath>,
}

impl<'a> LogFilter<'a> {
    /// Validates the options.
    pub(super) fn new(context: &CliContext, args: &'a LogFilterArgs) -> Result<Self, CliError> {
        if let Some(verdict) = &args.verdict
            && !matches!(verdict.as_str(), "allow" | "ask" | "deny")
        {
            return Err(CliError::Usage(format!("unknown verdict `{verdict}`; use allow, ask or deny")));
        }
        let time = |given: &Option<String>| given.as_deref().map(parse_time).transpose();
        let project =
            args.project.as_deref().map(|dir| toolgate_files::resolve(&context.cwd().join(dir)).real);
        Ok(Self { args, since: time(&args.since)?, until: time(&args.until)?, project })
    }

    /// Whether a record matches every option.
    pub(super) fn passes(&self, record: &CallRecord) -> bool {
        let args = self.args;
        let named = |name: &str| {
            record.tool.as_ref().unwrap_or(&record.asked).as_str() == name || record.asked.as_str() == name
        };
        args.tool.as_deref().is_none_or(named)
            && args
                .verdict
                .as_deref()
                .is_none_or(|wanted| record.judged.as_ref().is_some_and(|judged| judged.verdict == wanted))
            && args.outcome.is_none_or(|wanted| LogOutcome::of(&record.outcome) == wanted)
            && self
                .project
                .as_ref()
                .is_none_or(|project| record.project.as_ref().is_some_and(|dir| dir.is_under(project)))
            && args.session.as_deref().is_none_or(|part| record.session.as_str().contains(part))
            && self.since.is_none_or(|since| record.at >= since)
            && self.until.is_none_or(|until| record.at <= until)
    }
}

/// A point in time, or an age such as `90m`, in milliseconds since 1970.
fn parse_time(given: &str) -> Result<u64, CliError> {
    let invalid_time = || {
        CliError::Usage(format!(
            "invalid time `{given}`; write 2026-01-31, 2026-01-31T12:00, or an age such as 90m, 12h or 7d"
        ))
    };
    let age = given.char_indices().last().and_then(|(at, unit)| {
        let number: i64 = given.get(..at)?.parse().ok()?;
        Some(match unit {
            's' => number.seconds(),
            'm' => number.minutes(),
            'h' => number.hours(),
            'd' => number.checked_mul(24)?.hours(),
            _ => return None,
        })
    });
    let time = match age {
        Some(age) => Timestamp::now().checked_sub(age).map_err(|_| invalid_time())?,
        None => match given.parse::<Timestamp>() {
            Ok(time) => time,
            Err(_) => given
                .parse::<DateTime>()
                .and_then(|time| time.to_zoned(TimeZone::system()))
                .map_err(|_| invalid_time())?
                .timestamp(),
        },
    };
    u64::try_from(time.as_millisecond()).map_err(|_| invalid_time())
}
