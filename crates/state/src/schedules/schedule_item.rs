//! A schedule, and what can be wrong with one.

use super::cron_expression::CronExpression;
use crate::database::StateError;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

/// Schedules of one project.
pub const MAX_PROJECT_SCHEDULES: usize = 50;
/// Bytes of a prompt.
pub(super) const MAX_PROMPT_BYTES: usize = 32 * 1024;

/// Whose schedules are meant: those of a project that outlive sessions, and those of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduleOwner {
    /// The project, by its directory.
    pub project: String,
    /// The session; `None` for a process that runs the lasting schedules of the project.
    pub session: Option<String>,
}

impl ScheduleOwner {
    /// Creates the owner of the schedules of a project that outlive sessions.
    pub fn new(project: impl Into<String>) -> Self {
        Self { project: project.into(), session: None }
    }

    /// Adds the schedules of a session.
    pub fn with_session(mut self, session: impl Into<Option<String>>) -> Self {
        self.session = session.into();
        self
    }
}

/// When a schedule runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScheduleTime {
    /// Whenever a cron expression fits.
    Recurring(CronExpression),
    /// The next time that a cron expression fits.
    Next(CronExpression),
    /// Once, at a time in milliseconds since 1970. A session has one of these at most: a new one replaces it.
    Wakeup(i64),
}

/// A schedule to add.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewSchedule {
    /// When it runs.
    pub time: ScheduleTime,
    /// What the agent gets.
    pub prompt: String,
    /// Why, for people.
    pub reason: Option<String>,
    /// It outlives the session: any session of the project may run it.
    pub durable: bool,
}

impl NewSchedule {
    /// Creates a schedule that ends with its session.
    pub fn new(time: ScheduleTime, prompt: impl Into<String>) -> Self {
        Self { time, prompt: prompt.into(), reason: None, durable: false }
    }

    /// Sets the reason.
    pub fn with_reason(mut self, reason: impl Into<Option<String>>) -> Self {
        self.reason = reason.into();
        self
    }

    /// Says whether it outlives its session.
    pub fn with_durable(mut self, durable: bool) -> Self {
        self.durable = durable;
        self
    }
}

/// A schedule in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ScheduleItem {
    /// Eight characters.
    pub id: String,
    /// The project, by its directory.
    pub project: String,
    /// The session that made it.
    pub session: String,
    /// The cron expression; `None` for a wake-up.
    pub cron: Option<String>,
    /// What the agent gets.
    pub prompt: String,
    /// Why, for people.
    pub reason: Option<String>,
    /// It runs again and again.
    pub recurring: bool,
    /// It outlives the session.
    pub durable: bool,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: i64,
    /// When it runs next.
    pub next_ms: i64,
    /// After this time it runs once more and is removed.
    pub expires_ms: i64,
    /// How often it has run.
    pub runs: u32,
}

impl ScheduleItem {
    /// When it runs next, in the machine's time zone, for people.
    pub fn next_local(&self) -> String {
        let next = Timestamp::from_millisecond(self.next_ms).unwrap_or(Timestamp::UNIX_EPOCH);
        next.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
    }

    /// When it runs next, in UTC, for programs.
    pub fn next_utc(&self) -> String {
        Timestamp::from_millisecond(self.next_ms).unwrap_or(Timestamp::UNIX_EPOCH).to_string()
    }

    /// When it runs, in words.
    pub fn describe(&self) -> String {
        match self.cron.as_deref().map(CronExpression::parse) {
            Some(Ok(cron)) if self.recurring => cron.describe(),
            Some(Ok(cron)) => format!("once, {}", cron.describe()),
            Some(Err(_)) | None => "once".to_owned(),
        }
    }
}

/// A schedule that the caller has claimed, and runs now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DueSchedule {
    /// The schedule as it was before the claim.
    pub schedule: ScheduleItem,
    /// It is not in the store any more.
    pub is_last_run: bool,
}

/// Why an operation on schedules was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// There is no such schedule.
    #[error("there is no schedule `{0}`")]
    NotFound(String),
    /// The project has too many.
    #[error("the project has {MAX_PROJECT_SCHEDULES} schedules already; delete some first")]
    Full,
    /// The prompt is empty or too long.
    #[error("the prompt must have between 1 and {MAX_PROMPT_BYTES} bytes")]
    Prompt,
    /// The time cannot be used.
    #[error("the time cannot be used: {0}")]
    Time(String),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StateError),
}

impl From<rusqlite::Error> for ScheduleError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}
