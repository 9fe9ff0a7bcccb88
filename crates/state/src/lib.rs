//! The stores of what agents keep between calls.
//!
//! [`TaskStore`] keeps task lists: what is to be done, by which agent, in which order.
//! [`MemoryStore`] keeps notes under keys: Markdown files that people can edit, with an index for search.
//! [`ScheduleStore`] keeps prompts for later, which one process runs when their time has come.
//! Several processes, sessions and agents use a store at once, so each is an SQLite database in WAL mode: a write is one
//! `BEGIN IMMEDIATE` transaction, a read is one snapshot, and a process that is killed leaves a store that opens.
//!
//! ```
//! use toolgate_state::{NewTask, TaskChange, TaskStatus, TaskStore};
//!
//! let store = TaskStore::in_memory()?;
//! let task = store.create("demo", NewTask::new("write the parser"))?;
//!
//! // Of two agents that claim a task, one gets it.
//! let claim = |owner: &str| TaskChange::default().with_status(TaskStatus::InProgress).with_owner(owner);
//! assert!(store.update("demo", task.number, claim("left")).is_ok());
//! assert!(store.update("demo", task.number, claim("right")).is_err());
//! # Ok::<(), toolgate_state::TaskError>(())
//! ```
//!
//! The crate knows no tool and no rule: tools turn calls into operations of a store, after the gate let them through.
//! It is a machine crate, because SQLite opens its files itself (decision 17).

#![forbid(unsafe_code)]

mod database;

mod memory;
mod schedules;
mod tasks;

// Time zones are types of this crate in our signatures.
pub use jiff;

pub use database::{StateDatabase, StateError};
pub use memory::{
    MAX_KEY_BYTES, MAX_NOTES, MAX_VALUE_BYTES, MemoryEntry, MemoryError, MemoryHit, MemoryNote, MemoryStore,
    SaveOutcome,
};
pub use schedules::{
    CronExpression, DueSchedule, MAX_PROJECT_SCHEDULES, NewSchedule, ScheduleError, ScheduleItem,
    ScheduleOwner, ScheduleStore, ScheduleTime,
};
pub use tasks::{
    MAX_LIST_TASKS, NewTask, TaskChange, TaskError, TaskEvent, TaskItem, TaskListSummary, TaskNote,
    TaskStatus, TaskStore, TaskUpdate,
};
