//! Task lists.
//!
//! A list has a name; tasks in it have numbers from 1 on, which are never used twice.
//! A task may block others: it must be closed (completed, cancelled or removed) before they can be claimed.
//! To claim a task is to set it in progress, with an owner; of many that claim it at once, one succeeds.
//!
//! Every write counts the list's change counter up and puts it into the tasks that it changed.
//! [`TaskStore::changes_since`] reads what has changed since a count, so that a watcher needs no message from writers.

mod claim;
mod task_item;
mod task_rows;
mod task_store;

pub use task_item::{
    MAX_LIST_TASKS, NewTask, TaskChange, TaskError, TaskEvent, TaskItem, TaskListSummary, TaskNote,
    TaskStatus, TaskUpdate,
};
pub use task_store::TaskStore;
