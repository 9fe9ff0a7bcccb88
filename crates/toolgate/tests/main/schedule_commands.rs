//! `toolgate schedule` beside the tools that use the same store, and runs of what is due.

use super::cli_fixture::{CliFixture, cli_run};
use toolgate::AbsPath;
use toolgate::state::{CronExpression, NewSchedule, ScheduleOwner, ScheduleStore, ScheduleTime};

fn store(fixture: &CliFixture) -> ScheduleStore {
    ScheduleStore::open(&AbsPath::new(fixture.beside("state")).unwrap()).unwrap()
}

/// The workspace as the store knows it: without the slash at its end.
fn project(fixture: &CliFixture) -> String {
    fixture.path("x").parent().unwrap().display().to_string()
}

/// A daily schedule whose time came twelve hours ago, and comes again in twelve.
fn add_due(fixture: &CliFixture, prompt: &str) -> String {
    let now = jiff::Timestamp::now();
    let hour = (now.to_zoned(jiff::tz::TimeZone::system()).hour() + 12) % 24;
    let time = ScheduleTime::Recurring(CronExpression::parse(&format!("0 {hour} * * *")).unwrap());
    let new = NewSchedule::new(time, prompt.to_owned()).with_durable(true);
    let made = now.as_millisecond() - 2 * 24 * 3_600_000;
    store(fixture).create(&project(fixture), "earlier", &new, made).unwrap().id
}

#[test]
fn people_see_and_cancel_what_agents_schedule() {
    let fixture = CliFixture::new();
    let made = fixture.run(&["call", "CronCreate", r#"{"cron":"0 9 * * 1-5","prompt":"Read the news"}"#]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    assert!(made.stdout.contains("on weekdays at 09:00"), "{}", made.stdout);
    let list = fixture.run(&["schedule"]).stdout;
    assert!(list.contains("Read the news") && list.contains("of a session"), "{list}");
    let id = list.split_whitespace().next().unwrap().to_owned();
    // Another session does not see it, and cannot delete it.
    assert!(fixture.run(&["call", "CronList"]).stdout.contains("no schedules"));
    assert_ne!(fixture.run(&["call", "CronDelete", &format!(r#"{{"id":"{id}"}}"#)]).code, 0);
    assert_eq!(fixture.run(&["schedule", "cancel", &id]).code, 0);
    assert_eq!(fixture.run(&["schedule", "cancel", &id]).code, 2);
    assert_eq!(fixture.run(&["schedule", "list"]).stdout, "");
    let bad = fixture.run(&["call", "CronCreate", r#"{"cron":"0 9 * * MON","prompt":"x"}"#]);
    assert!(bad.code == 2 && bad.stderr.contains("day of week"), "{}", bad.stderr);
}

#[test]
fn a_schedule_that_outlives_the_session_needs_approval() {
    let fixture = CliFixture::new();
    let input = r#"{"cron":"0 9 * * *","prompt":"Read the news","durable":true}"#;
    let refused = fixture.run(&["call", "CronCreate", input]);
    assert_eq!(refused.code, 4, "{}{}", refused.stdout, refused.stderr);
    assert!(store(&fixture).list_all().unwrap().is_empty());
    let allowed = fixture.run(&["--allowed-tools", "CronCreate", "call", "CronCreate", input]);
    assert_eq!(allowed.code, 0, "{}", allowed.stderr);
    assert!(fixture.run(&["call", "CronList"]).stdout.contains("durable"));
    let wakeup = fixture.run(&["call", "ScheduleWakeup", r#"{"delaySeconds":90,"reason":"the build"}"#]);
    assert!(wakeup.stdout.contains("wake-up in 90 seconds"), "{}{}", wakeup.stdout, wakeup.stderr);
    assert_eq!(fixture.run(&["call", "ScheduleWakeup", r#"{"delaySeconds":5}"#]).code, 2);
}

#[test]
fn nothing_is_claimed_without_a_model_and_nothing_runs_twice() {
    let fixture = CliFixture::new();
    assert_eq!(fixture.run(&["schedule", "run"]).code, 2, "there is no model");
    let id = add_due(&fixture, "look");
    let owner = ScheduleOwner::new(project(&fixture));
    let before = store(&fixture).list(&owner).unwrap();
    assert_eq!(fixture.run(&["schedule", "run"]).code, 2);
    assert_eq!(store(&fixture).list(&owner).unwrap(), before, "a run that cannot begin is not claimed");
    // A model that cannot be reached: the run is claimed, fails, and is not due again.
    let run = |options: &[&str]| {
        let args = [&["schedule", "run"], options].concat();
        let mut command = fixture.command(&args);
        command.env("OPENAI_BASE_URL", "http://127.0.0.1:9/v1").env("CLAUDE_CODE_MAX_RETRIES", "0");
        cli_run(command.output().unwrap())
    };
    let failed = run(&["--", "--model", "none"]);
    assert_eq!(failed.code, 1, "{}{}", failed.stdout, failed.stderr);
    assert!(failed.stderr.contains(&format!("schedule {id}")), "{}", failed.stderr);
    let again = run(&["--", "--model", "none"]);
    assert!(again.code == 0 && again.stderr.contains("nothing is due"), "{}", again.stderr);
    assert_eq!(run(&["--", "--model", "none", "a prompt"]).code, 2);
}
