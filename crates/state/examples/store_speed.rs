//! How fast the stores are: `cargo run --release -p toolgate-state --example store_speed [OPERATIONS] [NOTES]`.
//!
//! Eight writers, each a process of its own, change one store of tasks; then words are searched in many notes, which
//! other programs have written, by a process that sees them for the first time and by one that knows them.

#![expect(clippy::print_stdout, reason = "it prints its figures")]
#![expect(clippy::disallowed_methods, reason = "it plays the other programs and processes")]

use std::process::Command;
use std::time::{Duration, Instant};
use toolgate_proto::AbsPath;
use toolgate_state::{MemoryStore, NewTask, TaskChange, TaskStore};

/// Writers at once.
const WRITER_COUNT: usize = 8;
/// Operations of each writer, unless the first argument says otherwise.
const OPERATION_COUNT: usize = 5_000;
/// Tasks of one list; a new one keeps lists as long as people's are.
const LIST_TASK_COUNT: usize = 200;
/// Notes to search in, unless the second argument says otherwise.
const NOTE_COUNT: usize = 100_000;
/// Searches of each kind, whose median counts.
const SEARCH_COUNT: usize = 101;
/// The argument that makes this program one of the writers.
const WRITER_ARGUMENT: &str = "--writer";

/// Any failure ends the measurement.
type SpeedResult<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> SpeedResult<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, dir, writer, operations] = arguments.as_slice()
        && flag == WRITER_ARGUMENT
    {
        return write_tasks(&AbsPath::new(dir)?, writer.parse()?, operations.parse()?);
    }
    let count = |at: usize, usual: usize| match arguments.get(at) {
        Some(text) => text.parse::<usize>(),
        None => Ok(usual),
    };
    let dir = tempfile::tempdir()?;
    let top = toolgate_files::resolve(&AbsPath::new(dir.path())?).real;
    measure_tasks(&top.join("tasks"), count(0, OPERATION_COUNT)?)?;
    measure_notes(&top.join("notes"), count(1, NOTE_COUNT)?)
}

/// Creates, updates and reads tasks from several processes at once.
fn measure_tasks(dir: &AbsPath, operations: usize) -> SpeedResult<()> {
    TaskStore::open(dir)?;
    let program = std::env::current_exe()?;
    let started = Instant::now();
    let start = |writer: usize| {
        let mut command = Command::new(&program);
        command.arg(WRITER_ARGUMENT).arg(dir.as_path());
        command.args([writer.to_string(), operations.to_string()]).spawn()
    };
    let writers = (0..WRITER_COUNT).map(start).collect::<Result<Vec<_>, _>>()?;
    for mut writer in writers {
        if !writer.wait()?.success() {
            return Err("a writer failed".into());
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let total = (WRITER_COUNT * operations) as f64;
    println!(
        "tasks: {WRITER_COUNT} processes, {:.0} operations a second (at least 5000 wanted)",
        total / seconds
    );
    Ok(())
}

/// The operations of one writer: two of four create, one updates, one reads.
fn write_tasks(dir: &AbsPath, writer: usize, operations: usize) -> SpeedResult<()> {
    let store = TaskStore::open(dir)?;
    let mut last = 1;
    for step in 0..operations {
        let list = format!("{writer}/{}", step / LIST_TASK_COUNT);
        match step % 4 {
            0 | 1 => last = store.create(&list, NewTask::new(format!("task {step}")))?.number,
            2 => {
                let mut change = TaskChange::default();
                change.description = Some(format!("step {step}"));
                store.update(&list, last, change)?;
            }
            _ => drop(store.get(&list, last)?),
        }
    }
    Ok(())
}

/// Searches for words that few notes have, that all have, and that are the beginning of one.
fn measure_notes(dir: &AbsPath, notes: usize) -> SpeedResult<()> {
    std::fs::create_dir_all(dir.as_path())?;
    for number in 0..notes {
        let text = format!(
            "---\nkey: service {number}\n---\nthe service number {number} of team {} is built with make {}\n",
            number % 997,
            number % 31
        );
        std::fs::write(dir.join(format!("{number}.md")), text)?;
    }
    let first = time_search(&MemoryStore::open(dir)?, "service team 7")?;
    println!("notes: {notes}, indexed and searched for the first time in {:.0} ms", millis(first));
    let store = MemoryStore::open(dir)?;
    let first = time_search(&store, "service team 7")?;
    println!("notes: the first search of a process takes {:.0} ms, which looks at every file", millis(first));
    let kinds: [(&str, &dyn Fn(usize) -> String); 4] = [
        ("one word in a thousand notes", &|number| format!("{}", number * 4 % 997)),
        ("three words, of which all notes have two", &|number| format!("service team {}", number * 4 % 997)),
        ("two words that all notes have", &|_| "service team".to_owned()),
        ("the beginning of a word that all notes have", &|_| "serv".to_owned()),
    ];
    for (kind, query) in kinds {
        let mut times = Vec::with_capacity(SEARCH_COUNT);
        for number in 0..SEARCH_COUNT {
            times.push(time_search(&store, &query(number))?);
        }
        times.sort_unstable();
        let at = |part: usize| millis(times.get(part).copied().unwrap_or_default());
        println!(
            "notes: {kind}: {:.2} ms (median), {:.2} ms (slowest) (at most 10 wanted)",
            at(SEARCH_COUNT / 2),
            at(SEARCH_COUNT - 1)
        );
    }
    // A change by another program is seen by the next search, which does not look at the other files.
    std::fs::write(dir.join("0.md"), "---\nkey: service 0\n---\nmentions a zebra now\n")?;
    let changed = time_search(&store, "zebra")?;
    println!("notes: a search that sees the change of a file by an editor: {:.2} ms", millis(changed));
    Ok(())
}

/// How long a search takes, which must find something.
fn time_search(store: &MemoryStore, query: &str) -> SpeedResult<Duration> {
    let started = Instant::now();
    let hits = store.search(query, 10)?;
    let time = started.elapsed();
    if hits.is_empty() { Err(format!("nothing was found for `{query}`").into()) } else { Ok(time) }
}

/// A time in milliseconds.
fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
