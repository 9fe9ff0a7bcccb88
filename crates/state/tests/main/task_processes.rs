//! Many processes on one store: nothing that was reported as done is lost, nothing is torn, and SIGKILL leaves a store
//! that opens.
//!
//! Each worker is this test binary, started again with its orders in environment variables.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use toolgate_proto::AbsPath;
use toolgate_state::{NewTask, TaskChange, TaskError, TaskStatus, TaskStore};

const DIR_VARIABLE: &str = "TOOLGATE_TEST_TASK_DIR";
const WORKER_VARIABLE: &str = "TOOLGATE_TEST_TASK_WORKER";
const COUNT_VARIABLE: &str = "TOOLGATE_TEST_TASK_COUNT";
/// Operations of each process; set for a long run.
const OPERATIONS_VARIABLE: &str = "TOOLGATE_STATE_OPERATIONS";
/// How often all processes are killed; set for a long run.
const KILLS_VARIABLE: &str = "TOOLGATE_STATE_KILLS";
const WORKERS: usize = 8;

fn number_from_env(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|count| count.parse().ok()).unwrap_or(usual)
}

fn open(dir: &Path) -> TaskStore {
    TaskStore::open(&AbsPath::new(dir).unwrap()).unwrap()
}

fn start_worker(dir: &Path, worker: usize, count: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "main::task_processes::worker_process", "--nocapture", "--test-threads=1"])
        .env(DIR_VARIABLE, dir)
        .env(WORKER_VARIABLE, worker.to_string())
        .env(COUNT_VARIABLE, count.to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// What a worker reports as done, one line each, in a file of its own.
fn report_path(dir: &Path, worker: usize) -> std::path::PathBuf {
    dir.join(format!("report-{worker}"))
}

/// Not a test of its own: the body of a worker. Without the variables it does nothing.
#[test]
fn worker_process() {
    let Ok(dir) = std::env::var(DIR_VARIABLE) else { return };
    let worker: usize = std::env::var(WORKER_VARIABLE).unwrap().parse().unwrap();
    let count: usize = std::env::var(COUNT_VARIABLE).unwrap().parse().unwrap();
    work(Path::new(&dir), worker, count);
}

fn work(dir: &Path, worker: usize, count: usize) {
    let store = open(dir);
    let mut report = std::fs::File::create(report_path(dir, worker)).unwrap();
    let owner = format!("worker-{worker}");
    let mut own = Vec::new();
    for step in 0..count {
        // Lists of a thousand tasks are as long as any; a new one keeps the reads of whole lists cheap.
        let list = format!("list-{}", step / 200);
        match step % 4 {
            0 | 1 => {
                let task = store.create(&list, NewTask::new(format!("{worker}/{step}"))).unwrap();
                writeln!(report, "created {list} {} {worker}/{step}", task.number).unwrap();
                own.push((list, task.number));
            }
            2 => {
                // Both texts are written in one transaction, so that a reader sees both or neither.
                let (list, number) = own[step * 7 % own.len()].clone();
                let text = format!("{worker}/{step}");
                let mut change = TaskChange::default();
                change.description = Some(text.clone());
                change.active_form = Some(text.clone());
                store.update(&list, number, change).unwrap();
                writeln!(report, "updated {list} {number} {text}").unwrap();
            }
            _ => {
                // Every process claims the same tasks: one of them gets each.
                let number = u32::try_from(step / 4 + 1).unwrap();
                let claim =
                    TaskChange::default().with_status(TaskStatus::InProgress).with_owner(owner.as_str());
                match store.update("shared", number, claim) {
                    Ok(_) => writeln!(report, "claimed shared {number} {owner}").unwrap(),
                    Err(TaskError::Claimed { .. } | TaskError::NotFound(_)) => {}
                    Err(error) => panic!("{error}"),
                }
                if step % 64 == 63 {
                    for task in store.list(&list).unwrap() {
                        assert!(
                            task.description.is_empty() || task.active_form == Some(task.description.clone())
                        );
                    }
                }
            }
        }
    }
}

/// Compares the reports of all workers with the store.
fn check_reports(dir: &Path) -> usize {
    let store = open(dir);
    let mut created: BTreeSet<(String, u32)> = BTreeSet::new();
    let mut updates: BTreeMap<(String, u32), String> = BTreeMap::new();
    let mut claimed: BTreeMap<u32, String> = BTreeMap::new();
    let mut done = 0;
    for worker in 0..WORKERS {
        let report = std::fs::read_to_string(report_path(dir, worker)).unwrap_or_default();
        // A killed worker may have left half a line, which reports nothing.
        for line in report.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let [verb, list, number, text] = line.split_whitespace().collect::<Vec<_>>().try_into().unwrap();
            let number: u32 = number.parse().unwrap();
            done += 1;
            match verb {
                "created" => {
                    assert!(
                        created.insert((list.to_owned(), number)),
                        "number {number} of {list} was given twice"
                    );
                    assert_eq!(store.get(list, number).unwrap().unwrap().subject, text);
                }
                // Only its own worker updates a task, so that the last reported text must be there.
                "updated" => drop(updates.insert((list.to_owned(), number), text.to_owned())),
                _ => assert_eq!(
                    claimed.insert(number, text.to_owned()),
                    None,
                    "task {number} was claimed twice"
                ),
            }
        }
    }
    for ((list, number), text) in updates {
        let task = store.get(&list, number).unwrap().unwrap();
        assert_eq!(task.active_form, Some(task.description.clone()));
        let step = |text: &str| text.split_once('/').unwrap().1.parse::<usize>().unwrap();
        // A kill between the commit and the report leaves a later text than the reported one, never an earlier one.
        assert!(step(&task.description) >= step(&text), "an update of task {number} was lost");
    }
    for (number, owner) in claimed {
        assert_eq!(store.get("shared", number).unwrap().unwrap().owner, Some(owner));
    }
    done
}

fn prepare(dir: &Path, count: usize) {
    let store = open(dir);
    for number in 0..count / 4 + 1 {
        store.create("shared", NewTask::new(format!("shared {number}"))).unwrap();
    }
}

#[test]
fn eight_processes_lose_no_operation() {
    let dir = tempfile::tempdir().unwrap();
    let count = number_from_env(OPERATIONS_VARIABLE, 300);
    prepare(dir.path(), count.min(39_000));
    let started = std::time::Instant::now();
    let workers: Vec<Child> = (0..WORKERS).map(|worker| start_worker(dir.path(), worker, count)).collect();
    for mut worker in workers {
        assert!(worker.wait().unwrap().success());
    }
    let seconds = started.elapsed().as_secs_f64();
    let done = check_reports(dir.path());
    assert!(done >= WORKERS * count * 3 / 4);
    println!(
        "{} operations by {WORKERS} processes in {seconds:.1} s: {:.0}/s",
        WORKERS * count,
        (WORKERS * count) as f64 / seconds
    );
}

#[test]
fn a_killed_process_leaves_a_store_that_opens() {
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path(), 4_000);
    let kills = number_from_env(KILLS_VARIABLE, 5);
    for round in 0..kills {
        let mut workers: Vec<Child> =
            (0..WORKERS).map(|worker| start_worker(dir.path(), worker, 1_000_000)).collect();
        std::thread::sleep(Duration::from_millis(40 + (round as u64 * 17) % 200));
        for worker in &mut workers {
            worker.kill().unwrap();
            worker.wait().unwrap();
        }
        check_reports(dir.path());
        let store = open(dir.path());
        store.create("after", NewTask::new(format!("round {round}"))).unwrap();
        for worker in 0..WORKERS {
            let _ = std::fs::remove_file(report_path(dir.path(), worker));
        }
    }
    assert_eq!(open(dir.path()).list("after").unwrap().len(), kills);
}

#[test]
fn a_file_that_is_no_store_is_an_error_and_stays() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tasks.db");
    std::fs::write(&file, "not a database, but perhaps of value to the user".repeat(100)).unwrap();
    let before = std::fs::read(&file).unwrap();
    assert!(TaskStore::open(&AbsPath::new(dir.path()).unwrap()).is_err());
    assert_eq!(std::fs::read(&file).unwrap(), before);
}
