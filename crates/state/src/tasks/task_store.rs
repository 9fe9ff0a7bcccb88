//! The store of task lists.

use super::claim::check_claim;
use super::task_item::{
    MAX_LIST_TASKS, NewTask, TaskChange, TaskError, TaskEvent, TaskItem, TaskListSummary, TaskUpdate,
    check_metadata,
};
use super::task_rows::{TASK_MIGRATIONS, all_tasks, find_list, find_task, waits_for};
use crate::database::{StateDatabase, StateError};
use rusqlite::{OptionalExtension, Transaction, params};
use serde_json::{Map, Value};
use toolgate_proto::AbsPath;

/// Task lists in one database. Every method is one transaction.
#[derive(Debug)]
pub struct TaskStore {
    database: StateDatabase,
}

/// A list inside a write transaction.
struct ListWriter<'t> {
    rows: &'t Transaction<'t>,
    id: i64,
    /// The change counter of this transaction.
    change: i64,
    now: i64,
}

impl TaskStore {
    /// The store in a directory, which is created if it is missing.
    pub fn open(dir: &AbsPath) -> Result<Self, StateError> {
        Ok(Self { database: StateDatabase::open(&dir.join("tasks.db"), TASK_MIGRATIONS)? })
    }

    /// A store that ends with the process.
    pub fn in_memory() -> Result<Self, StateError> {
        Ok(Self { database: StateDatabase::in_memory(TASK_MIGRATIONS)? })
    }

    /// Adds a task with what it waits for: no agent can claim it in between.
    pub fn create(&self, list: &str, task: NewTask) -> Result<TaskItem, TaskError> {
        task.check()?;
        self.write(list, |writer| {
            let number = writer.insert(&task)?;
            task.blocked_by.iter().try_for_each(|blocker| writer.add_dependency(*blocker, number))?;
            writer.task(number)
        })
    }

    /// A task; `None` if the list has none of that number.
    pub fn get(&self, list: &str, number: u32) -> Result<Option<TaskItem>, TaskError> {
        self.database.read(|rows| match find_list(rows, list)? {
            Some(id) => find_task(rows, id, number),
            None => Ok(None),
        })
    }

    /// The tasks of a list, in their order: as they were added, or as the list was replaced.
    pub fn list(&self, list: &str) -> Result<Vec<TaskItem>, TaskError> {
        self.database.read(|rows| match find_list(rows, list)? {
            Some(id) => all_tasks(rows, id),
            None => Ok(Vec::new()),
        })
    }

    /// Changes a task, wholly or not at all.
    pub fn update(&self, list: &str, number: u32, change: TaskChange) -> Result<TaskUpdate, TaskError> {
        change.check()?;
        self.write(list, |writer| {
            let before = writer.task(number)?;
            if change.expected_revision.is_some_and(|expected| expected != before.revision) {
                return Err(TaskError::Stale { number, revision: before.revision });
            }
            for blocked in &change.add_blocks {
                writer.add_dependency(number, *blocked)?;
            }
            for blocker in &change.add_blocked_by {
                writer.add_dependency(*blocker, number)?;
            }
            let owner = check_claim(writer.rows, writer.id, &before, &change)?;
            writer.change_fields(&before, &change, owner)?;
            let task = writer.task(number)?;
            Ok(TaskUpdate { old_status: before.status, changed: changed_fields(&before, &task), task })
        })
    }

    /// Removes a task, and returns it as it was.
    pub fn remove(&self, list: &str, number: u32) -> Result<TaskItem, TaskError> {
        self.write(list, |writer| {
            let before = writer.task(number)?;
            writer.remove(number)?;
            Ok(before)
        })
    }

    /// Replaces the whole list, and returns the old and the new tasks.
    ///
    /// A new task with the subject of an old one keeps its number, notes and dependencies.
    pub fn replace(
        &self,
        list: &str,
        tasks: &[NewTask],
    ) -> Result<(Vec<TaskItem>, Vec<TaskItem>), TaskError> {
        tasks.iter().try_for_each(NewTask::check)?;
        self.write(list, |writer| {
            let before = all_tasks(writer.rows, writer.id)?;
            let mut unmatched = before.clone();
            let mut kept = Vec::new();
            for task in tasks {
                let at = unmatched.iter().position(|old| old.subject == task.subject);
                kept.push((at.map(|at| unmatched.remove(at)), task));
            }
            for old in &unmatched {
                writer.remove(old.number)?;
            }
            for (position, (old, new)) in kept.into_iter().enumerate() {
                let number = match old {
                    Some(old) => writer.take_over(&old, new)?,
                    None => writer.insert(new)?,
                };
                writer.set_position(number, position)?;
            }
            Ok((before, all_tasks(writer.rows, writer.id)?))
        })
    }

    /// Every list that has tasks, the last changed first.
    pub fn lists(&self) -> Result<Vec<TaskListSummary>, TaskError> {
        self.database.read(|rows| {
            let mut statement = rows.prepare_cached(
                "SELECT name,
                     (SELECT count(*) FROM tasks WHERE list = lists.id AND removed = 0
                          AND status NOT IN ('completed', 'cancelled')),
                     live, updated_ms
                 FROM lists WHERE live > 0 ORDER BY updated_ms DESC, id DESC",
            )?;
            let summaries = statement.query_map([], |row| {
                Ok(TaskListSummary {
                    name: row.get(0)?,
                    open: row.get(1)?,
                    total: row.get(2)?,
                    updated_ms: row.get(3)?,
                })
            })?;
            Ok(summaries.collect::<Result<_, _>>()?)
        })
    }

    /// Removes all tasks of a list. False if it has none.
    ///
    /// The row of the list stays: its numbers are not given again to other tasks, and watchers see what was removed.
    pub fn remove_list(&self, list: &str) -> Result<bool, TaskError> {
        self.database.write(|rows| {
            let now = now_millis();
            let mut empty = rows.prepare_cached(
                "UPDATE lists SET change = change + 1, live = 0, updated_ms = ?2 WHERE name = ?1 AND live > 0
                 RETURNING id, change",
            )?;
            let found = empty.query_row(params![list, now], |row| Ok((row.get(0)?, row.get(1)?)));
            let Some((id, change)) = found.optional()? else { return Ok(false) };
            ListWriter { rows, id, change, now }.remove_all()?;
            Ok(true)
        })
    }

    /// What has changed in a list since its change counter had a value, and the value now. 0 means from the beginning.
    pub fn changes_since(&self, list: &str, change: i64) -> Result<(Vec<TaskEvent>, i64), TaskError> {
        self.database.read(|rows| {
            let Some(id) = find_list(rows, list)? else { return Ok((Vec::new(), 0)) };
            let now = rows
                .prepare_cached("SELECT change FROM lists WHERE id = ?1")?
                .query_row([id], |row| row.get(0))?;
            let mut statement = rows.prepare_cached(
                "SELECT number FROM tasks WHERE list = ?1 AND change > ?2 ORDER BY change, number",
            )?;
            let numbers: Vec<u32> =
                statement.query_map(params![id, change], |row| row.get(0))?.collect::<Result<_, _>>()?;
            let event = |number| Ok(TaskEvent { number, task: find_task(rows, id, number)? });
            Ok((numbers.into_iter().map(event).collect::<Result<_, TaskError>>()?, now))
        })
    }

    /// Runs `work` on a list, which is created if it is missing, in one write transaction.
    fn write<T>(
        &self,
        list: &str,
        work: impl FnOnce(&ListWriter<'_>) -> Result<T, TaskError>,
    ) -> Result<T, TaskError> {
        self.database.write(|rows| {
            let now = now_millis();
            let mut statement = rows.prepare_cached(
                "INSERT INTO lists (name, change, updated_ms) VALUES (?1, 1, ?2)
                 ON CONFLICT (name) DO UPDATE SET change = change + 1, updated_ms = ?2
                 RETURNING id, change",
            )?;
            let (id, change) =
                statement.query_row(params![list, now], |row| Ok((row.get(0)?, row.get(1)?)))?;
            work(&ListWriter { rows, id, change, now })
        })
    }
}

impl ListWriter<'_> {
    /// A task that must exist.
    fn task(&self, number: u32) -> Result<TaskItem, TaskError> {
        find_task(self.rows, self.id, number)?.ok_or(TaskError::NotFound(number))
    }

    /// Adds a row, and returns its number.
    fn insert(&self, task: &NewTask) -> Result<u32, TaskError> {
        let mut next = self.rows.prepare_cached(
            "UPDATE lists SET next_number = next_number + 1, live = live + 1
             WHERE id = ?1 AND live < ?2 RETURNING next_number - 1",
        )?;
        let number: Option<u32> =
            next.query_row(params![self.id, MAX_LIST_TASKS], |row| row.get(0)).optional()?;
        let number = number.ok_or(TaskError::Full)?;
        let mut insert = self.rows.prepare_cached(
            "INSERT INTO tasks (list, number, position, subject, description, active_form, status, owner, metadata, revision,
                 created_ms, updated_ms, change)
             VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 1, ?9, ?9, ?10)",
        )?;
        insert.execute(params![
            self.id,
            number,
            task.subject,
            task.description,
            task.active_form,
            task.status.as_str(),
            task.owner,
            Value::Object(task.metadata.clone()).to_string(),
            self.now,
            self.change,
        ])?;
        Ok(number)
    }

    /// Gives a task the status and the active form of its replacement, and returns its number.
    fn take_over(&self, old: &TaskItem, new: &NewTask) -> Result<u32, TaskError> {
        let active_form = new.active_form.clone().or_else(|| old.active_form.clone());
        if old.status != new.status || old.active_form != active_form {
            let change = TaskChange { active_form, status: Some(new.status), ..TaskChange::default() };
            self.change_fields(old, &change, old.owner.clone())?;
        }
        Ok(old.number)
    }

    /// Puts a task at a place of its list. INVARIANT: a list of n tasks has used n numbers, so a task that is added
    /// later, whose place is its number, comes after them.
    fn set_position(&self, number: u32, position: usize) -> Result<(), TaskError> {
        let position = i64::try_from(position).unwrap_or(i64::MAX);
        let mut update =
            self.rows.prepare_cached("UPDATE tasks SET position = ?3 WHERE list = ?1 AND number = ?2")?;
        update.execute(params![self.id, number, position])?;
        Ok(())
    }

    /// Writes the fields of a change.
    fn change_fields(
        &self,
        before: &TaskItem,
        change: &TaskChange,
        owner: Option<String>,
    ) -> Result<(), TaskError> {
        let metadata = merge_metadata(&before.metadata, &change.metadata);
        check_metadata(&metadata)?;
        let mut update = self.rows.prepare_cached(
            "UPDATE tasks SET subject = ?3, description = ?4, active_form = ?5, status = ?6, owner = ?7, metadata = ?8,
                 revision = revision + 1, updated_ms = ?9, change = ?10
             WHERE list = ?1 AND number = ?2",
        )?;
        update.execute(params![
            self.id,
            before.number,
            change.subject.as_ref().unwrap_or(&before.subject),
            change.description.as_ref().unwrap_or(&before.description),
            change.active_form.as_ref().or(before.active_form.as_ref()),
            change.status.unwrap_or(before.status).as_str(),
            owner,
            Value::Object(metadata).to_string(),
            self.now,
            self.change,
        ])?;
        if let Some(note) = &change.note {
            let mut insert = self.rows.prepare_cached(
                "INSERT INTO notes (list, task, number, author, text)
                 VALUES (?1, ?2, (SELECT count(*) + 1 FROM notes WHERE list = ?1 AND task = ?2), ?3, ?4)",
            )?;
            insert.execute(params![self.id, before.number, note.author, note.text])?;
        }
        Ok(())
    }

    /// Makes a task wait for another, unless that one waits for it already.
    fn add_dependency(&self, blocker: u32, blocked: u32) -> Result<(), TaskError> {
        let (_, _) = (self.task(blocker)?, self.task(blocked)?);
        if waits_for(self.rows, self.id, blocker, blocked)? {
            return Err(TaskError::Cycle { blocked, blocker });
        }
        let mut insert = self.rows.prepare_cached(
            "INSERT OR IGNORE INTO dependencies (list, blocker, blocked) VALUES (?1, ?2, ?3)",
        )?;
        insert.execute(params![self.id, blocker, blocked])?;
        self.mark_changed(blocker)?;
        self.mark_changed(blocked)
    }

    /// Lets watchers see a task whose dependencies changed.
    fn mark_changed(&self, number: u32) -> Result<(), TaskError> {
        let mut update =
            self.rows.prepare_cached("UPDATE tasks SET change = ?3 WHERE list = ?1 AND number = ?2")?;
        update.execute(params![self.id, number, self.change])?;
        Ok(())
    }

    /// Empties the rows of all tasks of the list, whose counter the caller has set.
    fn remove_all(&self) -> Result<(), TaskError> {
        for statement in ["DELETE FROM dependencies WHERE list = ?1", "DELETE FROM notes WHERE list = ?1"] {
            self.rows.prepare_cached(statement)?.execute([self.id])?;
        }
        let mut empty = self.rows.prepare_cached(
            "UPDATE tasks SET removed = 1, subject = '', description = '', active_form = NULL, owner = NULL,
                 metadata = '{}', revision = revision + 1, updated_ms = ?2, change = ?3
             WHERE list = ?1 AND removed = 0",
        )?;
        empty.execute(params![self.id, self.now, self.change])?;
        Ok(())
    }

    /// Empties the row of a task; nothing waits for it any more.
    fn remove(&self, number: u32) -> Result<(), TaskError> {
        let mut related = self.rows.prepare_cached(
            "UPDATE tasks SET change = ?3 WHERE list = ?1 AND number IN (
                 SELECT blocked FROM dependencies WHERE list = ?1 AND blocker = ?2
                 UNION SELECT blocker FROM dependencies WHERE list = ?1 AND blocked = ?2)",
        )?;
        related.execute(params![self.id, number, self.change])?;
        for statement in [
            "DELETE FROM dependencies WHERE list = ?1 AND (blocker = ?2 OR blocked = ?2)",
            "DELETE FROM notes WHERE list = ?1 AND task = ?2",
        ] {
            self.rows.prepare_cached(statement)?.execute(params![self.id, number])?;
        }
        let mut empty = self.rows.prepare_cached(
            "UPDATE tasks SET removed = 1, subject = '', description = '', active_form = NULL, owner = NULL,
                 metadata = '{}', revision = revision + 1, updated_ms = ?3, change = ?4
             WHERE list = ?1 AND number = ?2 AND removed = 0",
        )?;
        empty.execute(params![self.id, number, self.now, self.change])?;
        self.rows.prepare_cached("UPDATE lists SET live = live - 1 WHERE id = ?1")?.execute([self.id])?;
        Ok(())
    }
}

/// The time of a change.
fn now_millis() -> i64 {
    i64::try_from(toolgate_files::now_millis()).unwrap_or(i64::MAX)
}

/// Sets the given values; null removes one.
fn merge_metadata(before: &Map<String, Value>, change: &Map<String, Value>) -> Map<String, Value> {
    let mut merged = before.clone();
    for (key, value) in change {
        match value {
            Value::Null => drop(merged.remove(key)),
            set => drop(merged.insert(key.clone(), set.clone())),
        }
    }
    merged
}

/// The names of the fields that differ, as inputs name them.
fn changed_fields(before: &TaskItem, after: &TaskItem) -> Vec<&'static str> {
    [
        ("subject", before.subject != after.subject),
        ("description", before.description != after.description),
        ("activeForm", before.active_form != after.active_form),
        ("status", before.status != after.status),
        ("owner", before.owner != after.owner),
        ("metadata", before.metadata != after.metadata),
        ("blocks", before.blocks != after.blocks),
        ("blockedBy", before.blocked_by != after.blocked_by),
        ("notes", before.notes != after.notes),
    ]
    .into_iter()
    .filter(|(_, changed)| *changed)
    .map(|(name, _)| name)
    .collect()
}
