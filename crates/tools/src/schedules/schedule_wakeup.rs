//! `ScheduleWakeup`: continue later, once, in this session.

use super::{SCHEDULE_GROUP, change_effect, schedule_refusal};
use crate::state_stores::{schedule_owner, with_schedules};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{CallResult, Code, Intent, Output, Refusal};
use toolgate_state::{NewSchedule, ScheduleTime};

/// Seconds until a wake-up where the call does not say.
const DEFAULT_DELAY_SECONDS: u32 = 600;

/// Sets, replaces or removes the wake-up of the session.
pub(crate) struct ScheduleWakeupTool;

/// Input of [`ScheduleWakeupTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ScheduleWakeupInput {
    /// Seconds from now; default 600.
    #[schemars(range(min = 60, max = 3600))]
    delay_seconds: Option<u32>,
    /// What you wait for.
    reason: Option<String>,
    /// What you get then; default: to continue.
    prompt: Option<String>,
    /// Remove the wake-up.
    #[serde(default)]
    stop: bool,
    /// Leave the wake-up as it is.
    #[serde(default)]
    noop: bool,
}

impl Tool for ScheduleWakeupTool {
    type Input = ScheduleWakeupInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "ScheduleWakeup",
            "Continues this session after a delay: end your turn, and you get `prompt` then. A session has one wake-up; a \
             new one replaces it, `stop` removes it.",
        )
        .with_group(SCHEDULE_GROUP)
        .with_destructive(false);
        spec.title = "Schedule a wake-up".to_owned();
        spec.input_examples = vec![
            json!({ "delaySeconds": 300, "reason": "the build runs", "prompt": "Is the build done?" }),
            json!({ "stop": true }),
        ];
        spec
    }

    /// Refuses fields that exclude each other.
    fn check(&self, input: &ScheduleWakeupInput) -> Result<(), Refusal> {
        let sets = input.delay_seconds.is_some() || input.prompt.is_some();
        match (input.stop, input.noop) {
            (true, true) => Err(Refusal::new(Code::BadArgument, "`stop` and `noop` exclude each other")),
            (true, false) | (false, true) if sets => {
                Err(Refusal::new(Code::BadArgument, "`stop` and `noop` take no delay and no prompt"))
            }
            (true, false) | (false, true | false) => Ok(()),
        }
    }

    fn intent(&self, input: &ScheduleWakeupInput, _: &CallContext) -> Intent {
        let summary = match (input.stop, input.noop) {
            (true, _) => "remove the wake-up".to_owned(),
            (false, true) => return Intent::none("leave the wake-up as it is"),
            (false, false) => {
                format!("wake up in {} seconds", input.delay_seconds.unwrap_or(DEFAULT_DELAY_SECONDS))
            }
        };
        Intent::new(summary, [change_effect(false)])
    }

    /// Sets or removes the wake-up of this session; a new one takes the place of an earlier one.
    async fn run(&self, input: ScheduleWakeupInput, cleared: Cleared) -> CallResult {
        let session = &cleared.context().session;
        let (project, session) = (schedule_owner(session).project, session.id().to_string());
        if input.noop {
            return Ok(Output::text("nothing changed").structured(json!({ "noop": true })));
        }
        if input.stop {
            let removed =
                with_schedules(&cleared, move |store, _| store.remove_wakeup(&project, &session)).await?;
            let removed = removed.map_err(|error| schedule_refusal(&error))?;
            let text = if removed { "removed the wake-up" } else { "there is no wake-up" };
            return Ok(Output::text(text).structured(json!({ "stopped": removed })));
        }
        let delay = input.delay_seconds.unwrap_or(DEFAULT_DELAY_SECONDS);
        let prompt = input.prompt.filter(|prompt| !prompt.trim().is_empty());
        let (prompt, reason) = (prompt.unwrap_or_else(|| "Continue.".to_owned()), input.reason);
        let made = with_schedules(&cleared, move |store, now| {
            let time = ScheduleTime::Wakeup(now.saturating_add(i64::from(delay) * 1000));
            let new = NewSchedule::new(time, prompt).with_reason(reason);
            store.create(&project, &session, &new, now)
        });
        let item = made.await?.map_err(|error| schedule_refusal(&error))?;
        let at = item.next_local();
        Ok(Output::text(format!("wake-up in {delay} seconds, at {at}")).structured(json!({
            "id": item.id, "delaySeconds": delay, "nextFireAt": item.next_utc(),
        })))
    }
}
