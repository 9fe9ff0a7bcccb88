//! Schedules: prompts that an agent gets later.
//!
//! A schedule stores a prompt and a time, and nothing about permission: what the agent may do is judged when it does it.
//! A session claims what is due ([`ScheduleStore::claim_due`]) in one transaction, which sets the next time or removes
//! the schedule. So no two processes run the same one, and one that is killed after the claim does not run it again.

mod cron_expression;
mod schedule_item;
mod schedule_store;

pub use cron_expression::CronExpression;
pub use schedule_item::{
    DueSchedule, MAX_PROJECT_SCHEDULES, NewSchedule, ScheduleError, ScheduleItem, ScheduleOwner, ScheduleTime,
};
pub use schedule_store::ScheduleStore;
