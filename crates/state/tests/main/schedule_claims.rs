//! Schedules: when they are due, who gets them, and what is left after a process was killed.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use toolgate_proto::AbsPath;
use toolgate_state::{
    CronExpression, MAX_PROJECT_SCHEDULES, NewSchedule, ScheduleError, ScheduleOwner, ScheduleStore,
    ScheduleTime,
};

const DIR_VARIABLE: &str = "TOOLGATE_TEST_SCHEDULE_DIR";
const WORKER_VARIABLE: &str = "TOOLGATE_TEST_SCHEDULE_WORKER";
const MAKER_DIR_VARIABLE: &str = "TOOLGATE_TEST_SCHEDULE_MAKER_DIR";
const WORKERS: usize = 8;
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// A Monday, at midnight UTC.
const START: i64 = 1_767_571_200_000;

fn open(dir: &Path) -> ScheduleStore {
    ScheduleStore::open_in_zone(&AbsPath::new(dir).unwrap(), jiff::tz::TimeZone::UTC).unwrap()
}

fn cron(text: &str, recurring: bool, durable: bool) -> NewSchedule {
    let cron = CronExpression::parse(text).unwrap();
    let time = if recurring { ScheduleTime::Recurring(cron) } else { ScheduleTime::Next(cron) };
    NewSchedule::new(time, "look").with_durable(durable)
}

fn owner(session: Option<&str>) -> ScheduleOwner {
    ScheduleOwner::new("/p").with_session(session.map(str::to_owned))
}

#[test]
fn a_recurring_schedule_runs_once_for_each_time_and_once_after_a_pause() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let made = store.create("/p", "one", &cron("*/10 * * * *", true, true), START).unwrap();
    assert_eq!(made.id.len(), 8);
    let delay = made.next_ms - START - 10 * MINUTE;
    assert!((0..5 * MINUTE).contains(&delay), "at most half the interval: {delay}");
    let claim = |now: i64| store.claim_due(&owner(Some("two")), now).unwrap();
    assert!(claim(made.next_ms - 1).is_empty());
    let due = claim(made.next_ms);
    assert_eq!((due.len(), due[0].is_last_run), (1, false));
    assert!(claim(made.next_ms).is_empty(), "the same run is not due again");
    let next = store.list(&owner(None)).unwrap()[0].next_ms;
    assert_eq!(next, made.next_ms + 10 * MINUTE, "the delay is the same each time");
    // The store is opened again after a day without a process: one run, and the next time is in the future.
    drop(store);
    let store = open(dir.path());
    assert_eq!(store.claim_due(&owner(Some("three")), START + DAY).unwrap().len(), 1);
    let left = store.list(&owner(None)).unwrap();
    assert!(left[0].next_ms > START + DAY && left[0].runs == 2);
}

#[test]
fn a_recurring_schedule_ends_after_a_week_with_one_last_run() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let made = store.create("/p", "one", &cron("0 12 * * *", true, true), START).unwrap();
    let mut now = made.next_ms;
    let mut runs = 0;
    while let Some(next) = store.next_time(&owner(None)).unwrap() {
        now = now.max(next);
        let due = store.claim_due(&owner(None), now).unwrap();
        runs += due.len();
        assert_eq!(due[0].is_last_run, now >= START + 7 * DAY);
    }
    assert_eq!(runs, 8);
}

#[test]
fn a_single_run_is_taken_once_and_is_a_little_early_at_full_hours() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let made = store.create("/p", "one", &cron("0 9 * * *", false, true), START).unwrap();
    assert!((START + 9 * HOUR - 90_000..=START + 9 * HOUR).contains(&made.next_ms));
    let exact = store.create("/p", "one", &cron("7 9 * * *", false, true), START).unwrap();
    assert_eq!(exact.next_ms, START + 9 * HOUR + 7 * MINUTE);
    assert_eq!(store.claim_due(&owner(None), START + DAY).unwrap().len(), 2);
    assert!(store.list(&owner(None)).unwrap().is_empty());
}

#[test]
fn a_schedule_of_a_session_is_for_that_session_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let own = store.create("/p", "one", &cron("* * * * *", true, false), START).unwrap();
    let late = START + HOUR;
    assert!(store.claim_due(&owner(None), late).unwrap().is_empty());
    assert!(store.claim_due(&owner(Some("two")), late).unwrap().is_empty());
    assert!(store.list(&owner(Some("two"))).unwrap().is_empty());
    assert!(matches!(store.remove(&owner(Some("two")), &own.id), Err(ScheduleError::NotFound(_))));
    let elsewhere = ScheduleOwner::new("/q").with_session("one".to_owned());
    assert!(store.claim_due(&elsewhere, late).unwrap().is_empty());
    assert!(store.remove(&elsewhere, &own.id).is_err());
    // One that outlives its session is for all, and a session that takes only its own leaves those of others.
    store.create("/p", "two", &cron("* * * * *", true, true), START).unwrap();
    assert!(store.claim_own(&owner(None), late).unwrap().is_empty());
    let taken = store.claim_own(&owner(Some("one")), late).unwrap();
    assert_eq!(taken.iter().map(|due| &due.schedule.id).collect::<Vec<_>>(), [&own.id]);
    let lasting = store.claim_due(&owner(Some("one")), late).unwrap().remove(0).schedule;
    store.remove(&owner(None), &lasting.id).unwrap();
    // The user sees and removes all of them.
    assert_eq!(store.list(&owner(None)).unwrap().len(), 1);
    store.remove(&owner(None), &own.id).unwrap();
    assert!(store.remove(&owner(None), &own.id).is_err());
}

#[test]
fn a_session_has_one_wake_up() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let wakeup =
        |at: i64| NewSchedule::new(ScheduleTime::Wakeup(at), "go on").with_reason("the build".to_owned());
    store.create("/p", "one", &wakeup(START + MINUTE), START).unwrap();
    store.create("/p", "one", &wakeup(START + HOUR), START).unwrap();
    store.create("/p", "two", &wakeup(START + MINUTE), START).unwrap();
    assert!(store.claim_due(&owner(Some("one")), START + 2 * MINUTE).unwrap().is_empty());
    assert!(store.remove_wakeup("/p", "one").unwrap());
    assert!(!store.remove_wakeup("/p", "one").unwrap());
    assert_eq!(store.claim_due(&owner(Some("two")), START + 2 * MINUTE).unwrap().len(), 1);
}

#[test]
fn a_project_has_a_limited_number_of_schedules() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for _ in 0..MAX_PROJECT_SCHEDULES {
        store.create("/p", "one", &cron("* * * * *", true, true), START).unwrap();
    }
    assert_eq!(store.create("/p", "one", &cron("* * * * *", true, true), START), Err(ScheduleError::Full));
    assert!(store.create("/q", "one", &cron("* * * * *", true, true), START).is_ok());
    let mut empty = cron("* * * * *", true, true);
    " ".clone_into(&mut empty.prompt);
    assert_eq!(store.create("/q", "one", &empty, START), Err(ScheduleError::Prompt));
}

/// Not a test of its own: the body of a worker. Without the variables it does nothing.
#[test]
fn claiming_process() {
    let Ok(dir) = std::env::var(DIR_VARIABLE) else { return };
    let worker = std::env::var(WORKER_VARIABLE).unwrap();
    let store = open(Path::new(&dir));
    let mut report = std::fs::File::create(Path::new(&dir).join(format!("claims-{worker}"))).unwrap();
    // Every worker has the same clock, so that all want each run.
    for minute in 0..300 {
        for due in store.claim_due(&owner(Some(&worker)), START + minute * MINUTE).unwrap() {
            writeln!(report, "{} {}", due.schedule.id, due.schedule.next_ms).unwrap();
        }
    }
}

#[test]
fn of_many_processes_one_gets_each_run_and_a_killed_one_leaves_a_store_that_opens() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for _ in 0..5 {
        store.create("/p", "maker", &cron("* * * * *", true, true), START - HOUR).unwrap();
    }
    let start = |worker: usize| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "main::schedule_claims::claiming_process", "--test-threads=1"])
            .env(DIR_VARIABLE, dir.path())
            .env(WORKER_VARIABLE, worker.to_string())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut workers: Vec<_> = (0..WORKERS).map(start).collect();
    let mut killed = start(WORKERS);
    killed.kill().unwrap();
    killed.wait().unwrap();
    for worker in &mut workers {
        assert!(worker.wait().unwrap().success());
    }
    let mut claims: BTreeMap<String, usize> = BTreeMap::new();
    for worker in 0..=WORKERS {
        let path = dir.path().join(format!("claims-{worker}"));
        let text = std::fs::read_to_string(path).unwrap_or_default();
        for line in text.lines() {
            *claims.entry(line.to_owned()).or_default() += 1;
        }
    }
    assert!(claims.len() >= 5, "every schedule ran: {}", claims.len());
    let twice: Vec<_> = claims.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    drop(store);
    assert_eq!(open(dir.path()).list(&owner(None)).unwrap().len(), 5);
}

/// Not a test of its own: the body of a worker that is killed. Without the variables it does nothing.
#[test]
fn scheduling_process() {
    let Ok(dir) = std::env::var(MAKER_DIR_VARIABLE) else { return };
    let worker = std::env::var(WORKER_VARIABLE).unwrap();
    let store = open(Path::new(&dir));
    let mut report = std::fs::File::create(Path::new(&dir).join(format!("made-{worker}"))).unwrap();
    let project = format!("/{worker}");
    let everything = ScheduleOwner::new(project.clone());
    for step in 0.. {
        // All are removed again before they are old enough to expire.
        let now = START + step * HOUR;
        let made = store.create(&project, "maker", &cron("* * * * *", true, true), now).unwrap();
        writeln!(report, "made {}", made.id).unwrap();
        store.claim_due(&everything, now).unwrap();
        if step % 4 == 3 {
            store.remove(&everything, &made.id).unwrap();
            writeln!(report, "removed {}", made.id).unwrap();
        }
        if step % 40 == 39 {
            for item in store.list(&everything).unwrap() {
                store.remove(&everything, &item.id).unwrap();
                writeln!(report, "removed {}", item.id).unwrap();
            }
        }
    }
}

#[test]
fn processes_that_are_killed_while_they_schedule_lose_nothing_that_they_reported() {
    let dir = tempfile::tempdir().unwrap();
    let kills =
        std::env::var("TOOLGATE_STATE_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(5_u64);
    for round in 0..kills {
        let start = |worker: usize| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "main::schedule_claims::scheduling_process", "--test-threads=1"])
                .env(MAKER_DIR_VARIABLE, dir.path())
                .env(WORKER_VARIABLE, format!("{round}-{worker}"))
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        };
        let mut workers: Vec<_> = (0..WORKERS).map(start).collect();
        std::thread::sleep(std::time::Duration::from_millis(30 + (round * 23) % 150));
        for worker in &mut workers {
            worker.kill().unwrap();
            worker.wait().unwrap();
        }
        let store = open(dir.path());
        for worker in 0..WORKERS {
            let report = std::fs::read_to_string(dir.path().join(format!("made-{round}-{worker}")));
            let mut reported: BTreeMap<String, bool> = BTreeMap::new();
            let report = report.unwrap_or_default();
            for line in report.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
                let (verb, id) = line.trim_end().split_once(' ').unwrap();
                reported.insert(id.to_owned(), verb == "made");
            }
            let project = ScheduleOwner::new(format!("/{round}-{worker}"));
            let there: Vec<String> = store.list(&project).unwrap().into_iter().map(|item| item.id).collect();
            // Of each worker one operation may be done and not reported.
            let lost = reported.iter().filter(|(id, made)| **made && !there.contains(id)).count();
            let left = reported.iter().filter(|(id, made)| !**made && there.contains(id)).count();
            let unreported = there.iter().filter(|id| !reported.contains_key(*id)).count();
            assert_eq!(left, 0, "a schedule that was removed is there again");
            assert!(lost + unreported <= 1, "{lost} lost, {unreported} not reported");
        }
    }
}
