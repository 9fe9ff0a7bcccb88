//! One SQLite database: how it is opened, and how transactions wait for each other.

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use toolgate_files::FileStamp;
use toolgate_proto::AbsPath;

/// How long a transaction waits for another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between two attempts. SQLite's own handler sleeps up to 100 ms, which eight writers feel; a transaction of
/// ours takes less than a tenth of a millisecond.
const BUSY_RETRY_DELAY: Duration = Duration::from_micros(250);
/// Statements that a connection keeps prepared.
const MAX_CACHED_STATEMENTS: usize = 64;

/// Why a store cannot be used. The data is as it was: an operation happens wholly or not at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The file cannot be opened, or is not a database of ours.
    #[error("`{file}` cannot be used: {problem}")]
    Unusable {
        /// The file of the store.
        file: String,
        /// What is wrong.
        problem: String,
    },
    /// Another process kept the store locked for too long.
    #[error("another process has kept the store locked for {} seconds", BUSY_TIMEOUT.as_secs())]
    Busy,
    /// SQLite reported an error.
    #[error("the store failed: {0}")]
    Failed(String),
}

impl From<rusqlite::Error> for StateError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// The statements that create the tables of a store, one for each version, in order.
pub(crate) type SchemaMigrations = &'static [&'static str];

/// An open database. One connection, used by one thread at a time.
#[derive(Debug)]
pub struct StateDatabase {
    connection: Mutex<Connection>,
}

impl StateDatabase {
    /// Opens a database in a file, and creates it if it is missing.
    ///
    /// A file that cannot be read is an error and never an empty store: the next write would remove what it holds.
    pub(crate) fn open(file: &AbsPath, migrations: SchemaMigrations) -> Result<Self, StateError> {
        let unusable = |problem: String| StateError::Unusable { file: file.to_string(), problem };
        // The switch to WAL and the creation of tables are not for two processes at once.
        let _lock = toolgate_files::lock_state_file(file).map_err(|problem| unusable(problem.to_string()))?;
        let real = toolgate_files::resolve(file).real;
        if toolgate_files::read_file_stamp(&real) == FileStamp::Absent {
            // SQLite would create it with the umask of the process. An empty file is an empty database.
            toolgate_files::write_private_file(&real, b"")
                .map_err(|problem| unusable(problem.to_string()))?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection = Connection::open_with_flags(real.as_path(), flags);
        let connection = connection.map_err(|error| unusable(error.to_string()))?;
        Self::prepare(connection, migrations).map_err(|error| match error {
            StateError::Failed(problem) => unusable(problem),
            StateError::Unusable { .. } | StateError::Busy => error,
        })
    }

    /// A database that ends with the process.
    pub(crate) fn in_memory(migrations: SchemaMigrations) -> Result<Self, StateError> {
        Self::prepare(Connection::open_in_memory()?, migrations)
    }

    /// Sets the connection up, and brings the tables to the newest version in one transaction.
    fn prepare(mut connection: Connection, migrations: SchemaMigrations) -> Result<Self, StateError> {
        connection.busy_handler(Some(wait_for_lock))?;
        connection.set_prepared_statement_cache_capacity(MAX_CACHED_STATEMENTS);
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        // A commit is in the file when it returns, and survives the end of the process. An fsync for each would be for
        // a power failure, which then costs the last commits and never the store.
        connection.execute_batch(
            "PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF",
        )?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let version: u32 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        let known = u32::try_from(migrations.len()).unwrap_or(u32::MAX);
        if version > known {
            return Err(StateError::Failed("a newer version of toolgate made it".to_owned()));
        }
        for migration in migrations.iter().skip(usize::try_from(version).unwrap_or(usize::MAX)) {
            transaction.execute_batch(migration)?;
        }
        transaction.pragma_update(None, "user_version", known)?;
        transaction.commit()?;
        Ok(Self { connection: Mutex::new(connection) })
    }

    /// Runs `work` as one write transaction. An error of `work` rolls it back.
    pub(crate) fn write<T, E: From<StateError>>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.run(TransactionBehavior::Immediate, work)
    }

    /// Runs `work` on one snapshot: what it reads fits together.
    pub(crate) fn read<T, E: From<StateError>>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.run(TransactionBehavior::Deferred, work)
    }

    /// Runs `work` in a transaction of this kind; it is rolled back unless `work` succeeds.
    fn run<T, E: From<StateError>>(
        &self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut connection = self.lock();
        let transaction = connection.transaction_with_behavior(behavior).map_err(StateError::from)?;
        let done = work(&transaction)?;
        transaction.commit().map_err(StateError::from)?;
        Ok(done)
    }

    /// A panic of another thread has rolled its transaction back, so the connection can be used.
    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sleeps before another attempt; false when the time is over.
fn wait_for_lock(attempts: i32) -> bool {
    let attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
    if BUSY_RETRY_DELAY.saturating_mul(attempts) >= BUSY_TIMEOUT {
        return false;
    }
    std::thread::sleep(BUSY_RETRY_DELAY);
    true
}
