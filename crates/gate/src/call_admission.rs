//! What a call waits for between the parts of the path.

use crate::approve::QuestionTicket;
use crate::call_context::PipelineContext;
use crate::stage::screen::ScreenedCall;
use toolgate_proto::{Refusal, Stage};

/// What a call waits for before a part of the path: nothing for a call by itself ([`Gate::call`](crate::Gate::call)), and
/// locks and a slot for a scheduled one.
pub(crate) trait CallAdmission: Send {
    /// Held while a part runs.
    type Slot: Send;

    /// Waits until hooks or the tool may run; `stage` is the next one.
    fn acquire_slot(
        &self,
        context: &PipelineContext<'_>,
        stage: Stage,
    ) -> impl Future<Output = Result<Self::Slot, Refusal>> + Send;

    /// Waits for the calls that conflict with what this one turned out to do. Before judgement: what is judged is what is
    /// there then.
    fn lock_effects(
        &mut self,
        context: &PipelineContext<'_>,
        screened: &ScreenedCall,
    ) -> impl Future<Output = Result<(), Refusal>> + Send;

    /// What counts the question of this call since before it began, where others wait for it. Given once.
    fn take_ticket(&mut self) -> Option<QuestionTicket>;
}

/// The admission of a call by itself: it waits for nothing.
pub(crate) struct ImmediateAdmission;

impl CallAdmission for ImmediateAdmission {
    type Slot = ();

    async fn acquire_slot(&self, _: &PipelineContext<'_>, _: Stage) -> Result<(), Refusal> {
        Ok(())
    }

    async fn lock_effects(&mut self, _: &PipelineContext<'_>, _: &ScreenedCall) -> Result<(), Refusal> {
        Ok(())
    }

    fn take_ticket(&mut self) -> Option<QuestionTicket> {
        None
    }
}
