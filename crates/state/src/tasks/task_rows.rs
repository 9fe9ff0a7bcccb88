//! The tables of tasks, and reading tasks from their rows.

use super::task_item::{TaskError, TaskItem, TaskNote, TaskStatus};
use crate::database::SchemaMigrations;
use rusqlite::{OptionalExtension, Row, Transaction, params};

/// The tables, by version.
///
/// A removed task stays as a row without content: its number is not used again, and watchers learn of it.
pub(super) const TASK_MIGRATIONS: SchemaMigrations = &["
    CREATE TABLE lists (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        next_number INTEGER NOT NULL DEFAULT 1,
        change INTEGER NOT NULL DEFAULT 0,
        live INTEGER NOT NULL DEFAULT 0,
        updated_ms INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE tasks (
        list INTEGER NOT NULL REFERENCES lists (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        position INTEGER NOT NULL,
        subject TEXT NOT NULL,
        description TEXT NOT NULL,
        active_form TEXT,
        status TEXT NOT NULL CHECK (status IN ('pending', 'in_progress', 'completed', 'cancelled', 'blocked')),
        owner TEXT,
        metadata TEXT NOT NULL,
        revision INTEGER NOT NULL,
        created_ms INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL,
        change INTEGER NOT NULL,
        removed INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (list, number)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX tasks_by_change ON tasks (list, change);
    CREATE TABLE dependencies (
        list INTEGER NOT NULL,
        blocker INTEGER NOT NULL,
        blocked INTEGER NOT NULL,
        PRIMARY KEY (list, blocker, blocked),
        FOREIGN KEY (list, blocker) REFERENCES tasks (list, number) ON DELETE CASCADE,
        FOREIGN KEY (list, blocked) REFERENCES tasks (list, number) ON DELETE CASCADE
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX dependencies_by_blocked ON dependencies (list, blocked, blocker);
    CREATE TABLE notes (
        list INTEGER NOT NULL,
        task INTEGER NOT NULL,
        number INTEGER NOT NULL,
        author TEXT,
        text TEXT NOT NULL,
        PRIMARY KEY (list, task, number),
        FOREIGN KEY (list, task) REFERENCES tasks (list, number) ON DELETE CASCADE
    ) STRICT, WITHOUT ROWID;
"];

/// The columns that [`read_row`] reads.
const TASK_COLUMNS: &str = "number, subject, description, active_form, status, owner, metadata, revision, \
                            created_ms, updated_ms";

/// The id of a list, if it exists.
pub(super) fn find_list(rows: &Transaction<'_>, name: &str) -> Result<Option<i64>, TaskError> {
    let mut statement = rows.prepare_cached("SELECT id FROM lists WHERE name = ?1")?;
    Ok(statement.query_row([name], |row| row.get(0)).optional()?)
}

/// A task that is not removed.
pub(super) fn find_task(
    rows: &Transaction<'_>,
    list: i64,
    number: u32,
) -> Result<Option<TaskItem>, TaskError> {
    let query = format!("SELECT {TASK_COLUMNS} FROM tasks WHERE list = ?1 AND number = ?2 AND removed = 0");
    let found = rows.prepare_cached(&query)?.query_row(params![list, number], read_row).optional()?;
    found.map(|task| with_relations(rows, list, task)).transpose()
}

/// The tasks of a list that are not removed, in their order.
pub(super) fn all_tasks(rows: &Transaction<'_>, list: i64) -> Result<Vec<TaskItem>, TaskError> {
    let query =
        format!("SELECT {TASK_COLUMNS} FROM tasks WHERE list = ?1 AND removed = 0 ORDER BY position, number");
    let mut statement = rows.prepare_cached(&query)?;
    let found: Vec<TaskItem> = statement.query_map([list], read_row)?.collect::<Result<_, _>>()?;
    found.into_iter().map(|task| with_relations(rows, list, task)).collect()
}

/// The open tasks that a task waits for.
pub(super) fn open_blockers(rows: &Transaction<'_>, list: i64, number: u32) -> Result<Vec<u32>, TaskError> {
    let mut statement = rows.prepare_cached(
        "SELECT blocker FROM dependencies
         JOIN tasks ON tasks.list = dependencies.list AND tasks.number = dependencies.blocker
         WHERE dependencies.list = ?1 AND blocked = ?2
           AND removed = 0 AND status NOT IN ('completed', 'cancelled')
         ORDER BY blocker",
    )?;
    Ok(statement.query_map(params![list, number], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

/// Whether a task waits for another, directly or through others.
pub(super) fn waits_for(
    rows: &Transaction<'_>,
    list: i64,
    waiting: u32,
    for_task: u32,
) -> Result<bool, TaskError> {
    let mut statement = rows.prepare_cached(
        "WITH RECURSIVE waiting (number) AS (
             VALUES (?2)
             UNION
             SELECT blocker FROM dependencies JOIN waiting ON blocked = waiting.number WHERE list = ?1
         )
         SELECT EXISTS (SELECT 1 FROM waiting WHERE number = ?3)",
    )?;
    Ok(statement.query_row(params![list, waiting, for_task], |row| row.get(0))?)
}

/// A task as its row says, without dependencies and notes.
fn read_row(row: &Row<'_>) -> rusqlite::Result<TaskItem> {
    let status: String = row.get(4)?;
    let metadata: String = row.get(6)?;
    Ok(TaskItem {
        number: row.get(0)?,
        subject: row.get(1)?,
        description: row.get(2)?,
        active_form: row.get(3)?,
        // The table accepts no other names.
        status: TaskStatus::from_name(&status).unwrap_or_default(),
        owner: row.get(5)?,
        metadata: serde_json::from_str(&metadata).unwrap_or_default(),
        blocks: Vec::new(),
        blocked_by: Vec::new(),
        notes: Vec::new(),
        revision: row.get(7)?,
        created_ms: row.get(8)?,
        updated_ms: row.get(9)?,
    })
}

/// The task with its dependencies and notes.
fn with_relations(rows: &Transaction<'_>, list: i64, mut task: TaskItem) -> Result<TaskItem, TaskError> {
    let mut blocks = rows.prepare_cached(
        "SELECT blocked FROM dependencies WHERE list = ?1 AND blocker = ?2 ORDER BY blocked",
    )?;
    task.blocks =
        blocks.query_map(params![list, task.number], |row| row.get(0))?.collect::<Result<_, _>>()?;
    task.blocked_by = open_blockers(rows, list, task.number)?;
    let mut notes =
        rows.prepare_cached("SELECT author, text FROM notes WHERE list = ?1 AND task = ?2 ORDER BY number")?;
    let note = |row: &Row<'_>| Ok(TaskNote { author: row.get(0)?, text: row.get(1)? });
    task.notes = notes.query_map(params![list, task.number], note)?.collect::<Result<_, _>>()?;
    Ok(task)
}
