//! The store of schedules.

use super::cron_expression::CronExpression;
use super::schedule_item::{
    DueSchedule, MAX_PROJECT_SCHEDULES, MAX_PROMPT_BYTES, NewSchedule, ScheduleError, ScheduleItem,
    ScheduleOwner, ScheduleTime,
};
use crate::database::{SchemaMigrations, StateDatabase, StateError};
use jiff::tz::TimeZone;
use rusqlite::{OptionalExtension, Row, Transaction, params};
use toolgate_proto::AbsPath;

/// How long a recurring schedule lives.
const MAX_AGE_MS: i64 = 7 * 24 * 3_600_000;
/// The most that a recurring schedule runs after its time, so that all schedules of the world do not begin at once.
const MAX_DELAY_MS: i64 = 30 * 60_000;
/// The most that a single run at a full or half hour is earlier.
const MAX_LEAD_MS: i64 = 90_000;
/// Schedules that one claim takes.
const MAX_CLAIMED: i64 = 10;
/// Attempts to find an id that is not in use.
const MAX_ID_ATTEMPTS: usize = 8;

/// The tables, by version.
const SCHEDULE_MIGRATIONS: SchemaMigrations = &["
    CREATE TABLE schedules (
        id TEXT PRIMARY KEY,
        project TEXT NOT NULL,
        session TEXT NOT NULL,
        cron TEXT,
        prompt TEXT NOT NULL,
        reason TEXT,
        recurring INTEGER NOT NULL,
        durable INTEGER NOT NULL,
        created_ms INTEGER NOT NULL,
        next_ms INTEGER NOT NULL,
        expires_ms INTEGER NOT NULL,
        runs INTEGER NOT NULL DEFAULT 0
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX schedules_by_time ON schedules (project, next_ms);
"];

/// The columns that [`read_row`] reads.
const COLUMNS: &str = "id, project, session, cron, prompt, reason, recurring, durable, created_ms, next_ms, \
                       expires_ms, runs";

/// Schedules in one database. Every method is one transaction. Times are in milliseconds since 1970, and the caller has
/// the clock.
#[derive(Debug)]
pub struct ScheduleStore {
    database: StateDatabase,
    zone: TimeZone,
}

impl ScheduleStore {
    /// The store in a directory, which is created if it is missing; cron expressions are in the machine's time zone.
    pub fn open(dir: &AbsPath) -> Result<Self, StateError> {
        Self::open_in_zone(dir, TimeZone::system())
    }

    /// The same, with cron expressions in another time zone.
    pub fn open_in_zone(dir: &AbsPath, zone: TimeZone) -> Result<Self, StateError> {
        let database = StateDatabase::open(&dir.join("schedules.db"), SCHEDULE_MIGRATIONS)?;
        Ok(Self { database, zone })
    }

    /// A store that ends with the process.
    pub fn in_memory() -> Result<Self, StateError> {
        Ok(Self { database: StateDatabase::in_memory(SCHEDULE_MIGRATIONS)?, zone: TimeZone::system() })
    }

    /// Adds a schedule that a session made.
    pub fn create(
        &self,
        project: &str,
        session: &str,
        new: &NewSchedule,
        now_ms: i64,
    ) -> Result<ScheduleItem, ScheduleError> {
        if new.prompt.trim().is_empty() || new.prompt.len() > MAX_PROMPT_BYTES {
            return Err(ScheduleError::Prompt);
        }
        self.database.write(|rows| {
            if matches!(new.time, ScheduleTime::Wakeup(_)) {
                remove_wakeup(rows, project, session)?;
            }
            let count: i64 = rows
                .prepare_cached("SELECT count(*) FROM schedules WHERE project = ?1")?
                .query_row([project], |row| row.get(0))?;
            if usize::try_from(count).is_ok_and(|count| count >= MAX_PROJECT_SCHEDULES) {
                return Err(ScheduleError::Full);
            }
            let id = new_id(rows)?;
            let (cron, recurring, next_ms) = self.first_time(&id, &new.time, now_ms)?;
            rows.prepare_cached(
                "INSERT INTO schedules
                     (id, project, session, cron, prompt, reason, recurring, durable, created_ms, next_ms, expires_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            )?
            .execute(params![
                id,
                project,
                session,
                cron,
                new.prompt,
                new.reason,
                recurring,
                new.durable,
                now_ms,
                next_ms,
                now_ms.saturating_add(MAX_AGE_MS)
            ])?;
            find(rows, &id)?.ok_or(ScheduleError::NotFound(id))
        })
    }

    /// The schedules of a project, the next one first. With a session, those of other sessions are left out.
    pub fn list(&self, owner: &ScheduleOwner) -> Result<Vec<ScheduleItem>, ScheduleError> {
        self.database.read(|rows| {
            let sql = format!(
                "SELECT {COLUMNS} FROM schedules
                 WHERE project = ?1 AND (?2 IS NULL OR durable OR session = ?2) ORDER BY next_ms, id"
            );
            let mut statement = rows.prepare_cached(&sql)?;
            let found = statement.query_map(params![owner.project, owner.session], read_row)?;
            Ok(found.collect::<Result<_, _>>()?)
        })
    }

    /// The schedules of all projects, the next one first.
    pub fn list_all(&self) -> Result<Vec<ScheduleItem>, ScheduleError> {
        self.database.read(|rows| {
            let sql = format!("SELECT {COLUMNS} FROM schedules ORDER BY next_ms, id");
            Ok(rows.prepare_cached(&sql)?.query_map([], read_row)?.collect::<Result<_, _>>()?)
        })
    }

    /// Removes a schedule. One of another project or session is not found.
    pub fn remove(&self, owner: &ScheduleOwner, id: &str) -> Result<ScheduleItem, ScheduleError> {
        self.database.write(|rows| {
            let found = find(rows, id)?.filter(|item| {
                item.project == owner.project
                    && owner.session.as_ref().is_none_or(|session| item.durable || item.session == *session)
            });
            let item = found.ok_or_else(|| ScheduleError::NotFound(id.to_owned()))?;
            rows.execute("DELETE FROM schedules WHERE id = ?1", [id])?;
            Ok(item)
        })
    }

    /// Removes the wake-up of a session. False if it has none.
    pub fn remove_wakeup(&self, project: &str, session: &str) -> Result<bool, ScheduleError> {
        self.database.write(|rows| remove_wakeup(rows, project, session))
    }

    /// Takes what is due: those of the session, and the lasting ones of the project. Whatever the caller does with them,
    /// no other caller gets the same run. Times that passed while no process looked are one run, not many.
    pub fn claim_due(&self, owner: &ScheduleOwner, now_ms: i64) -> Result<Vec<DueSchedule>, ScheduleError> {
        self.claim(owner, now_ms, true)
    }

    /// The same, of those only that the session itself has made.
    pub fn claim_own(&self, owner: &ScheduleOwner, now_ms: i64) -> Result<Vec<DueSchedule>, ScheduleError> {
        self.claim(owner, now_ms, false)
    }

    /// Takes what is due; `with_lasting` also those that other sessions of the project have left.
    fn claim(
        &self,
        owner: &ScheduleOwner,
        now_ms: i64,
        with_lasting: bool,
    ) -> Result<Vec<DueSchedule>, ScheduleError> {
        // Most looks find nothing, and a read does not wait for writers.
        if self.first_due(owner, with_lasting)?.is_none_or(|next| next > now_ms) {
            return Ok(Vec::new());
        }
        self.database.write(|rows| {
            let sql = format!(
                "SELECT {COLUMNS} FROM schedules
                 WHERE project = ?1 AND next_ms <= ?3 AND (durable AND ?5 OR session = ?2)
                 ORDER BY next_ms, id LIMIT ?4"
            );
            let due: Vec<ScheduleItem> = rows
                .prepare_cached(&sql)?
                .query_map(
                    params![owner.project, owner.session, now_ms, MAX_CLAIMED, with_lasting],
                    read_row,
                )?
                .collect::<Result<_, _>>()?;
            due.into_iter().map(|schedule| self.advance(rows, schedule, now_ms)).collect()
        })
    }

    /// When the next schedule of an owner is due.
    pub fn next_time(&self, owner: &ScheduleOwner) -> Result<Option<i64>, ScheduleError> {
        self.first_due(owner, true)
    }

    /// The smallest time of an owner's schedules.
    fn first_due(&self, owner: &ScheduleOwner, with_lasting: bool) -> Result<Option<i64>, ScheduleError> {
        self.database.read(|rows| {
            let sql =
                "SELECT min(next_ms) FROM schedules WHERE project = ?1 AND (durable AND ?3 OR session = ?2)";
            let mut statement = rows.prepare_cached(sql)?;
            Ok(statement.query_row(params![owner.project, owner.session, with_lasting], |row| row.get(0))?)
        })
    }

    /// Sets the next time of a schedule that runs now, or removes it.
    fn advance(
        &self,
        rows: &Transaction<'_>,
        schedule: ScheduleItem,
        now_ms: i64,
    ) -> Result<DueSchedule, ScheduleError> {
        let next = match &schedule.cron {
            Some(cron) if schedule.recurring && now_ms < schedule.expires_ms => {
                let cron = CronExpression::parse(cron).map_err(ScheduleError::Time)?;
                self.recurring_time(&schedule.id, &cron, now_ms)
            }
            Some(_) | None => None,
        };
        match next {
            Some(next) => rows
                .prepare_cached("UPDATE schedules SET next_ms = ?2, runs = runs + 1 WHERE id = ?1")?
                .execute(params![schedule.id, next])?,
            None => rows.prepare_cached("DELETE FROM schedules WHERE id = ?1")?.execute([&schedule.id])?,
        };
        Ok(DueSchedule { schedule, is_last_run: next.is_none() })
    }

    /// The expression, whether it recurs, and the first time of a new schedule.
    fn first_time(
        &self,
        id: &str,
        time: &ScheduleTime,
        now_ms: i64,
    ) -> Result<(Option<String>, bool, i64), ScheduleError> {
        let no_time = || ScheduleError::Time("it never comes".to_owned());
        Ok(match time {
            ScheduleTime::Wakeup(at) => (None, false, *at),
            ScheduleTime::Recurring(cron) => {
                (Some(cron.to_string()), true, self.recurring_time(id, cron, now_ms).ok_or_else(no_time)?)
            }
            ScheduleTime::Next(cron) => {
                let at = cron.next_after(now_ms, &self.zone).ok_or_else(no_time)?;
                let lead = if cron.is_on_the_hour() { spread(id, MAX_LEAD_MS) } else { 0 };
                (Some(cron.to_string()), false, at.saturating_sub(lead).max(now_ms))
            }
        })
    }

    /// The next run of a recurring schedule: later than the time that fits by a part of the interval that depends on the
    /// id alone.
    fn recurring_time(&self, id: &str, cron: &CronExpression, now_ms: i64) -> Option<i64> {
        // The delay of the run before may reach past `now`; then its time is the next one.
        let at = cron.next_after(now_ms, &self.zone)?;
        let after = cron.next_after(at, &self.zone)?;
        let delay = spread(id, MAX_DELAY_MS.min(after.saturating_sub(at) / 2));
        Some(at.saturating_add(delay))
    }
}

/// A number below `max` that is always the same for an id.
fn spread(id: &str, max: i64) -> i64 {
    let seed = i64::from_str_radix(id, 16).unwrap_or(0);
    if max <= 0 { 0 } else { seed.rem_euclid(max) }
}

/// An id that is not in use.
fn new_id(rows: &Transaction<'_>) -> Result<String, ScheduleError> {
    for _ in 0..MAX_ID_ATTEMPTS {
        let id: String = rows.query_row("SELECT lower(hex(randomblob(4)))", [], |row| row.get(0))?;
        if find(rows, &id)?.is_none() {
            return Ok(id);
        }
    }
    Err(ScheduleError::Full)
}

/// Removes the wake-up of a session.
fn remove_wakeup(rows: &Transaction<'_>, project: &str, session: &str) -> Result<bool, ScheduleError> {
    let sql = "DELETE FROM schedules WHERE project = ?1 AND session = ?2 AND cron IS NULL";
    Ok(rows.prepare_cached(sql)?.execute(params![project, session])? > 0)
}

/// The schedule of an id.
fn find(rows: &Transaction<'_>, id: &str) -> Result<Option<ScheduleItem>, ScheduleError> {
    let sql = format!("SELECT {COLUMNS} FROM schedules WHERE id = ?1");
    Ok(rows.prepare_cached(&sql)?.query_row([id], read_row).optional()?)
}

/// Reads [`COLUMNS`].
fn read_row(row: &Row<'_>) -> rusqlite::Result<ScheduleItem> {
    Ok(ScheduleItem {
        id: row.get(0)?,
        project: row.get(1)?,
        session: row.get(2)?,
        cron: row.get(3)?,
        prompt: row.get(4)?,
        reason: row.get(5)?,
        recurring: row.get(6)?,
        durable: row.get(7)?,
        created_ms: row.get(8)?,
        next_ms: row.get(9)?,
        expires_ms: row.get(10)?,
        runs: row.get(11)?,
    })
}
