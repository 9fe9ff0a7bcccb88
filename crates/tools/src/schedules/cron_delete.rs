//! `CronDelete`: remove a schedule.

use super::{SCHEDULE_GROUP, change_effect, owner_of, schedule_refusal};
use crate::state_stores::with_schedules;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{CallResult, Intent, Output};

/// Removes a schedule. It needs no approval: it only makes less happen.
pub(crate) struct CronDeleteTool;

/// Input of [`CronDeleteTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CronDeleteInput {
    /// The id, as CronCreate or CronList returned it.
    id: String,
}

impl Tool for CronDeleteTool {
    type Input = CronDeleteInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new("CronDelete", "Removes a schedule: it does not run again.")
            .with_group(SCHEDULE_GROUP)
            .with_idempotent(true);
        spec.title = "Delete a schedule".to_owned();
        spec.input_examples = vec![json!({ "id": "9f86d081" })];
        spec
    }

    fn intent(&self, input: &CronDeleteInput, _: &CallContext) -> Intent {
        Intent::new(format!("delete schedule {}", input.id), [change_effect(false)])
    }

    async fn run(&self, input: CronDeleteInput, cleared: Cleared) -> CallResult {
        let (owner, id) = (owner_of(&cleared.context().session), input.id.trim().to_owned());
        let removed = with_schedules(&cleared, move |store, _| store.remove(&owner, &id)).await?;
        let item = removed.map_err(|error| schedule_refusal(&error).hint("CronList shows the ids"))?;
        Ok(Output::text(format!("deleted schedule {}", item.id)).structured(json!({ "id": item.id })))
    }
}
