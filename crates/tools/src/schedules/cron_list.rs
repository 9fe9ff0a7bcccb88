//! `CronList`: the schedules that this session can see.

use super::{SCHEDULE_GROUP, owner_of, schedule_refusal};
use crate::state_stores::with_schedules;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{CallResult, Intent, Output, fit_line};

/// Characters of a prompt in a list.
const MAX_LISTED_CHARS: usize = 100;

/// Lists schedules.
pub(crate) struct CronListTool;

/// Input of [`CronListTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CronListInput {}

impl Tool for CronListTool {
    type Input = CronListInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "CronList",
            "Lists the schedules of this session and the durable ones of the project.",
        )
        .with_group(SCHEDULE_GROUP)
        .read_only();
        spec.title = "List schedules".to_owned();
        spec.input_examples = vec![json!({})];
        spec
    }

    fn intent(&self, _: &CronListInput, _: &CallContext) -> Intent {
        Intent::none("list the schedules")
    }

    async fn run(&self, _: CronListInput, cleared: Cleared) -> CallResult {
        let owner = owner_of(&cleared.context().session);
        let items = with_schedules(&cleared, move |store, _| store.list(&owner)).await?;
        let items = items.map_err(|error| schedule_refusal(&error))?;
        let lines: Vec<String> = items
            .iter()
            .map(|item| {
                let kept = if item.durable { ", durable" } else { "" };
                let (when, next) = (item.describe(), item.next_local());
                let prompt = fit_line(&item.prompt, MAX_LISTED_CHARS);
                format!("{}  {when}, next at {next}{kept}: {prompt}", item.id)
            })
            .collect();
        let jobs: Vec<Value> = items
            .iter()
            .map(|item| {
                json!({
                    "id": item.id, "cron": item.cron, "humanSchedule": item.describe(),
                    "prompt": item.prompt, "recurring": item.recurring, "durable": item.durable,
                    "nextFireAt": item.next_utc(),
                })
            })
            .collect();
        let text = if lines.is_empty() { "there are no schedules".to_owned() } else { lines.join("\n") };
        Ok(Output::text(text).structured(json!({ "jobs": jobs })))
    }
}
