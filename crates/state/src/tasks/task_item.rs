//! Tasks, and what may be changed about them.

use crate::database::StateError;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt;

/// Tasks of one list that are not removed. A list that grows without end is a defect of its user.
pub const MAX_LIST_TASKS: u32 = 10_000;
/// Bytes of a subject, of an active form, of an owner.
const MAX_LINE_BYTES: usize = 8_192;
/// Bytes of a description or a note.
const MAX_TEXT_BYTES: usize = 262_144;
/// Bytes of all metadata of a task.
const MAX_METADATA_BYTES: usize = 65_536;

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not begun.
    #[default]
    Pending,
    /// An agent works on it.
    InProgress,
    /// Done.
    Completed,
    /// Given up.
    Cancelled,
    /// Begun, and waiting for something that is no task.
    Blocked,
}

impl TaskStatus {
    /// Every status.
    pub const ALL: [Self; 5] =
        [Self::Pending, Self::InProgress, Self::Completed, Self::Cancelled, Self::Blocked];

    /// The name in the store, in inputs and in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Blocked => "blocked",
        }
    }

    /// The status of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether nothing is left to do, so that the tasks it blocks can go on.
    pub fn is_closed(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled)
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A task as the store has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskItem {
    /// Its number in its list.
    pub number: u32,
    /// What is to be done, in one line.
    pub subject: String,
    /// What is to be done, in full.
    pub description: String,
    /// What is shown while it is in progress.
    pub active_form: Option<String>,
    /// Where it stands.
    pub status: TaskStatus,
    /// Which agent or user works on it.
    pub owner: Option<String>,
    /// Further values, which the store does not interpret.
    pub metadata: Map<String, Value>,
    /// The tasks that wait for it.
    pub blocks: Vec<u32>,
    /// The open tasks that it waits for.
    pub blocked_by: Vec<u32>,
    /// Notes, oldest first.
    pub notes: Vec<TaskNote>,
    /// Counts its changes.
    pub revision: u32,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: i64,
    /// When it was last changed.
    pub updated_ms: i64,
}

/// A note on a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskNote {
    /// Who wrote it.
    pub author: Option<String>,
    /// The text.
    pub text: String,
}

impl TaskNote {
    /// Creates a note without an author.
    pub fn new(text: impl Into<String>) -> Self {
        Self { author: None, text: text.into() }
    }

    /// Sets the author.
    pub fn with_author(mut self, author: impl Into<Option<String>>) -> Self {
        self.author = author.into();
        self
    }
}

/// A task to create.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct NewTask {
    /// What is to be done, in one line.
    pub subject: String,
    /// What is to be done, in full.
    pub description: String,
    /// What is shown while it is in progress.
    pub active_form: Option<String>,
    /// Where it stands.
    pub status: TaskStatus,
    /// Which agent or user works on it.
    pub owner: Option<String>,
    /// Further values.
    pub metadata: Map<String, Value>,
    /// The tasks that must be done before.
    pub blocked_by: Vec<u32>,
}

impl NewTask {
    /// A pending task without a description.
    pub fn new(subject: impl Into<String>) -> Self {
        Self { subject: subject.into(), ..Self::default() }
    }

    /// The same, with a status.
    pub fn with_status(mut self, status: TaskStatus) -> Self {
        self.status = status;
        self
    }

    /// Refuses texts and values over their limits, before a transaction begins.
    pub(super) fn check(&self) -> Result<(), TaskError> {
        check_line("subject", Some(&self.subject))?;
        check_line("active form", self.active_form.as_deref())?;
        check_line("owner", self.owner.as_deref())?;
        check_text("description", Some(&self.description))?;
        check_metadata(&self.metadata)
    }
}

/// What to change about a task; absent means that it stays.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct TaskChange {
    /// The new subject.
    pub subject: Option<String>,
    /// The new description.
    pub description: Option<String>,
    /// The new active form.
    pub active_form: Option<String>,
    /// The new status.
    pub status: Option<TaskStatus>,
    /// The new owner; an empty one means none.
    pub owner: Option<String>,
    /// The owner of a claim that names none: the session that makes it.
    pub claimant: Option<String>,
    /// Values to set; null removes one.
    pub metadata: Map<String, Value>,
    /// Tasks that shall wait for this one.
    pub add_blocks: Vec<u32>,
    /// Tasks that this one shall wait for.
    pub add_blocked_by: Vec<u32>,
    /// A note to add.
    pub note: Option<TaskNote>,
    /// The revision that the caller has seen: the change is refused if the task has another.
    pub expected_revision: Option<u32>,
}

impl TaskChange {
    /// The same, with a status.
    pub fn with_status(mut self, status: TaskStatus) -> Self {
        self.status = Some(status);
        self
    }

    /// The same, with an owner.
    pub fn with_owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Refuses texts and values over their limits, before a transaction begins.
    pub(super) fn check(&self) -> Result<(), TaskError> {
        check_line("subject", self.subject.as_deref())?;
        check_line("active form", self.active_form.as_deref())?;
        check_line("owner", self.owner.as_deref())?;
        check_text("description", self.description.as_deref())?;
        check_text("note", self.note.as_ref().map(|note| note.text.as_str()))?;
        check_metadata(&self.metadata)
    }
}

/// What an update did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskUpdate {
    /// The status before.
    pub old_status: TaskStatus,
    /// The names of the fields that changed.
    pub changed: Vec<&'static str>,
    /// The task as it is now.
    pub task: TaskItem,
}

/// A task that has changed since a watcher looked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskEvent {
    /// The task's number.
    pub number: u32,
    /// The task as it is now; `None` if it was removed.
    pub task: Option<TaskItem>,
}

/// A list, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskListSummary {
    /// Its name.
    pub name: String,
    /// Tasks that are not closed.
    pub open: u32,
    /// All tasks.
    pub total: u32,
    /// When it last changed, in milliseconds since 1970.
    pub updated_ms: i64,
}

/// Why an operation on tasks was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// The list has no such task.
    #[error("there is no task {0}")]
    NotFound(u32),
    /// Open tasks must be closed first.
    #[error("task {number} waits for {}", join_numbers(.blockers))]
    Blocked {
        /// The task.
        number: u32,
        /// The open tasks.
        blockers: Vec<u32>,
    },
    /// Another owner has claimed the task.
    #[error("task {number} is claimed by `{owner}`")]
    Claimed {
        /// The task.
        number: u32,
        /// Its owner.
        owner: String,
    },
    /// The dependency would make tasks wait for each other.
    #[error("task {blocked} cannot wait for task {blocker}, because that one waits for it already")]
    Cycle {
        /// The task that would wait.
        blocked: u32,
        /// The task that it would wait for.
        blocker: u32,
    },
    /// The task has changed since the caller read it.
    #[error("task {number} has changed: it is at revision {revision} now")]
    Stale {
        /// The task.
        number: u32,
        /// Its revision.
        revision: u32,
    },
    /// A text is too long.
    #[error("the {field} is longer than {max_bytes} bytes")]
    TooLong {
        /// Which text.
        field: &'static str,
        /// The limit.
        max_bytes: usize,
    },
    /// The list is full.
    #[error("the list has {MAX_LIST_TASKS} tasks already; remove some first")]
    Full,
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StateError),
}

impl From<rusqlite::Error> for TaskError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

/// Numbers for a message.
fn join_numbers(numbers: &[u32]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    format!("{} {}", if numbers.len() == 1 { "task" } else { "tasks" }, numbers.join(", "))
}

/// Refuses a text of one line that is too long.
fn check_line(field: &'static str, text: Option<&str>) -> Result<(), TaskError> {
    check_length(field, text, MAX_LINE_BYTES)
}

/// Refuses a text that is too long.
fn check_text(field: &'static str, text: Option<&str>) -> Result<(), TaskError> {
    check_length(field, text, MAX_TEXT_BYTES)
}

/// Refuses a text with more bytes than the field may have.
fn check_length(field: &'static str, text: Option<&str>, max_bytes: usize) -> Result<(), TaskError> {
    match text {
        Some(text) if text.len() > max_bytes => Err(TaskError::TooLong { field, max_bytes }),
        Some(_) | None => Ok(()),
    }
}

/// Refuses values that are too large together.
pub(super) fn check_metadata(metadata: &Map<String, Value>) -> Result<(), TaskError> {
    match metadata.is_empty() {
        true => Ok(()),
        false => {
            let text = serde_json::to_string(metadata).unwrap_or_default();
            check_length("metadata", Some(&text), MAX_METADATA_BYTES)
        }
    }
}
