//! `CronCreate`: give an agent a prompt at times that a cron expression names.

use super::{SCHEDULE_GROUP, change_effect, schedule_refusal};
use crate::state_stores::{schedule_owner, with_schedules};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{CallResult, Code, Intent, Output, Refusal};
use toolgate_state::{CronExpression, NewSchedule, ScheduleTime};

/// Adds a schedule.
pub(crate) struct CronCreateTool;

/// Input of [`CronCreateTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CronCreateInput {
    /// Five fields in local time: minute hour day-of-month month day-of-week, such as `0 9 * * 1-5`.
    cron: String,
    /// What the agent is to do then.
    prompt: String,
    /// Again and again (default), or only the next time.
    #[serde(default = "default_recurring")]
    recurring: bool,
    /// Outlives this session; needs the user's approval.
    #[serde(default)]
    durable: bool,
}

/// A schedule recurs unless the call says otherwise.
fn default_recurring() -> bool {
    true
}

impl Tool for CronCreateTool {
    type Input = CronCreateInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "CronCreate",
            "Schedules a prompt by a cron expression. It comes between turns, up to half an interval late, and ends after \
             7 days. Without `durable` it ends with this session.",
        )
        .with_group(SCHEDULE_GROUP)
        .with_destructive(false);
        spec.title = "Create a schedule".to_owned();
        spec.input_examples =
            vec![json!({ "cron": "*/20 * * * *", "prompt": "Check whether the deployment is done." })];
        spec
    }

    /// Refuses an empty prompt and a time that cannot be read, before the user is asked.
    fn check(&self, input: &CronCreateInput) -> Result<(), Refusal> {
        if input.prompt.trim().is_empty() {
            return Err(Refusal::new(Code::BadArgument, "`prompt` is empty"));
        }
        CronExpression::parse(&input.cron).map(|_| ()).map_err(|problem| {
            Refusal::new(Code::BadArgument, format!("`cron` cannot be used: {problem}"))
                .hint("give five fields, such as `*/20 * * * *`, without names, L, W and ?")
        })
    }

    /// Shows the whole prompt, because a durable one is what the user approves.
    fn intent(&self, input: &CronCreateInput, _: &CallContext) -> Intent {
        let when =
            CronExpression::parse(&input.cron).map_or_else(|_| input.cron.clone(), |cron| cron.describe());
        let summary = format!("schedule a prompt, {when}: {}", input.prompt);
        Intent::new(summary, [change_effect(input.durable)])
    }

    /// Keeps the prompt. It gets no permission: its calls are judged when it runs.
    async fn run(&self, input: CronCreateInput, cleared: Cleared) -> CallResult {
        let session = &cleared.context().session;
        let (project, session) = (schedule_owner(session).project, session.id().to_string());
        let cron = CronExpression::parse(&input.cron).map_err(|problem| {
            Refusal::new(Code::Schedule, format!("`cron` cannot be used: {problem}"))
                .hint("give minute, hour, day of month, month and day of week, such as `0 9 * * 1-5`")
        })?;
        let time = if input.recurring { ScheduleTime::Recurring(cron) } else { ScheduleTime::Next(cron) };
        let new = NewSchedule::new(time, input.prompt).with_durable(input.durable);
        let made =
            with_schedules(&cleared, move |store, now| store.create(&project, &session, &new, now)).await?;
        let item = made.map_err(|error| schedule_refusal(&error))?;
        let (when, next) = (item.describe(), item.next_local());
        let kept = match item.durable {
            true => "`toolgate schedule run` or any session of this project runs it",
            false => "it ends with this session",
        };
        Ok(Output::text(format!("schedule {}: {when}, next at {next}; {kept}", item.id)).structured(json!({
            "id": item.id,
            "humanSchedule": when,
            "recurring": item.recurring,
            "durable": item.durable,
            "nextFireAt": item.next_utc(),
        })))
    }
}
