//! How fast the stores are: `cargo run --release -p toolgate-state --example store_speed`.
//!
//! Eight writers, each with a connection of its own, change one store of tasks; then words are searched in 100 000 notes.

#![expect(clippy::print_stdout, reason = "it prints its figures")]

use std::time::{Duration, Instant};
use toolgate_proto::AbsPath;
use toolgate_state::{MemoryStore, NewTask, TaskChange, TaskStore};

/// Writers at once.
const WRITER_COUNT: usize = 8;
/// Operations of each writer.
const OPERATION_COUNT: usize = 5_000;
/// Tasks of one list; a new one keeps lists as long as people's are.
const LIST_TASK_COUNT: usize = 200;
/// Notes to search in.
const NOTE_COUNT: usize = 100_000;
/// Searches whose median counts.
const SEARCH_COUNT: usize = 201;

/// Any failure ends the measurement.
type SpeedResult<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> SpeedResult<()> {
    let dir = tempfile::tempdir()?;
    let top = toolgate_files::resolve(&AbsPath::new(dir.path())?).real;
    measure_tasks(&top.join("tasks"))?;
    measure_notes(&top.join("notes"))
}

/// Creates, updates and reads tasks from several connections at once.
fn measure_tasks(dir: &AbsPath) -> SpeedResult<()> {
    TaskStore::open(dir)?;
    let started = Instant::now();
    std::thread::scope(|scope| {
        let writers: Vec<_> =
            (0..WRITER_COUNT).map(|writer| scope.spawn(move || write_tasks(dir, writer))).collect();
        writers.into_iter().try_for_each(|writer| writer.join().map_err(|_| "a writer failed")?)
    })?;
    let seconds = started.elapsed().as_secs_f64();
    let total = (WRITER_COUNT * OPERATION_COUNT) as f64;
    println!("tasks: {WRITER_COUNT} writers, {:.0} operations a second", total / seconds);
    Ok(())
}

/// The operations of one writer: two of four create, one updates, one reads.
fn write_tasks(dir: &AbsPath, writer: usize) -> SpeedResult<()> {
    let store = TaskStore::open(dir)?;
    let mut last = 1;
    for step in 0..OPERATION_COUNT {
        let list = format!("{writer}/{}", step / LIST_TASK_COUNT);
        match step % 4 {
            0 | 1 => last = store.create(&list, NewTask::new(format!("task {step}")))?.number,
            2 => {
                let change =
                    TaskChange { description: Some(format!("step {step}")), ..TaskChange::default() };
                store.update(&list, last, change)?;
            }
            _ => drop(store.get(&list, last)?),
        }
    }
    Ok(())
}

/// Searches for two words of which one is rare.
fn measure_notes(dir: &AbsPath) -> SpeedResult<()> {
    let store = MemoryStore::open(dir)?;
    let started = Instant::now();
    for number in 0..NOTE_COUNT {
        let text = format!(
            "the service number {number} of team {} is built with make {}",
            number % 997,
            number % 31
        );
        store.set(&format!("service {number}"), &text)?;
    }
    println!(
        "notes: {NOTE_COUNT} saved, {:.0} a second",
        NOTE_COUNT as f64 / started.elapsed().as_secs_f64()
    );
    let mut times: Vec<Duration> = Vec::with_capacity(SEARCH_COUNT);
    for number in 0..SEARCH_COUNT {
        let query = format!("service team {}", number * 4 % 997);
        let started = Instant::now();
        let hits = store.search(&query, 10)?;
        times.push(started.elapsed());
        if hits.is_empty() {
            return Err("nothing was found".into());
        }
    }
    times.sort_unstable();
    let at = |part: usize| times.get(part).copied().unwrap_or_default().as_secs_f64() * 1e3;
    println!(
        "notes: a search takes {:.2} ms (median), {:.2} ms (slowest)",
        at(SEARCH_COUNT / 2),
        at(SEARCH_COUNT - 1)
    );
    Ok(())
}
