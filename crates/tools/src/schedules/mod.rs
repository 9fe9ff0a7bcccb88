//! Prompts for later: `CronCreate`, `CronList`, `CronDelete` and `ScheduleWakeup`, adapters of one store.
//!
//! A schedule holds a prompt and a time, and no permission. When it is due the prompt goes to an agent, whose calls are
//! judged by the rules of that moment. One that outlives the session needs approval; one of the session ends with it.

mod cron_create;
mod cron_delete;
mod cron_list;
mod schedule_wakeup;

pub(crate) use cron_create::CronCreateTool;
pub(crate) use cron_delete::CronDeleteTool;
pub(crate) use cron_list::CronListTool;
pub(crate) use schedule_wakeup::ScheduleWakeupTool;

use crate::state_stores::schedule_owner;
use toolgate_gate::Session;
use toolgate_proto::{Code, Effect, Refusal};
use toolgate_state::{DueSchedule, ScheduleError, ScheduleOwner};

/// The group of these tools.
const SCHEDULE_GROUP: &str = "schedules";

/// What a call that changes schedules does. One that outlives the session makes an agent run without a user, so policy
/// asks about it.
fn change_effect(durable: bool) -> Effect {
    let name = if durable { "durable schedules" } else { "schedules" };
    Effect::State { name: name.to_owned() }
}

/// The refusal of an operation.
fn schedule_refusal(error: &ScheduleError) -> Refusal {
    Refusal::new(Code::Schedule, error.to_string())
}

/// The schedules of a session: its own, and the lasting ones of the project.
fn owner_of(session: &Session) -> ScheduleOwner {
    schedule_owner(session).with_session(session.id().to_string())
}

/// The prompt of a schedule that is due, as an agent gets it: marked, so that it is not taken for words of the user.
///
/// ```
/// use toolgate_state::{NewSchedule, ScheduleOwner, ScheduleStore, ScheduleTime};
///
/// let store = ScheduleStore::in_memory()?;
/// let wakeup = NewSchedule::new(ScheduleTime::Wakeup(1_000), "is the build done?")
///     .with_reason("the build takes a minute".to_owned());
/// store.create("/project", "one", &wakeup, 0)?;
/// let owner = ScheduleOwner::new("/project").with_session("one".to_owned());
/// let due = store.claim_due(&owner, 1_000)?;
/// let prompt = toolgate_tools::scheduled_prompt(&due[0]);
/// assert!(prompt.ends_with("is the build done?"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn scheduled_prompt(due: &DueSchedule) -> String {
    let item = &due.schedule;
    let kind = if item.cron.is_some() { "schedule" } else { "wake-up" };
    let reason = item.reason.as_ref().map(|reason| format!(", because: {reason}")).unwrap_or_default();
    let last = if due.is_last_run && item.recurring { "; this was its last run" } else { "" };
    format!("[{kind} {} of {}{reason}{last}]\n\n{}", item.id, item.next_local(), item.prompt)
}
