//! The part of the schedule that a call carries with it: its place, its seat, and what was foreseen of it.

use super::lock_set::required_locks;
use super::plan::{CallPlan, PrevalidatedCall};
use super::{BatchState, lock_queue};
use crate::registry::RegisteredTool;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
use toolgate_policy::Policy;
use toolgate_proto::{Effect, Workspace};

/// A call's place in its batch.
pub(crate) struct ScheduleHandle {
    shared: Arc<BatchState>,
    place: usize,
    planned: Vec<Effect>,
    certain: bool,
    prevalidated: Option<PrevalidatedCall>,
    /// A call that waits for a person needs none.
    needs_no_slot: bool,
    slot: Option<OwnedSemaphorePermit>,
}

impl ScheduleHandle {
    pub(super) fn new(
        shared: Arc<BatchState>,
        place: usize,
        plan: CallPlan,
        slot: Option<OwnedSemaphorePermit>,
    ) -> Self {
        let needs_no_slot = plan.claim.needs_no_slot;
        let CallPlan { effects, certain, prevalidated, .. } = plan;
        Self { shared, place, planned: effects, certain, prevalidated, needs_no_slot, slot }
    }

    /// What reading the input gave, if it was read ahead.
    pub(crate) fn take_prevalidated(&mut self) -> Option<PrevalidatedCall> {
        self.prevalidated.take()
    }

    /// Gives the seat to another call while this one waits for a person.
    pub(crate) fn release_slot(&mut self) {
        self.slot = None;
    }

    /// Takes a seat again.
    pub(crate) async fn acquire_slot(&mut self) {
        if self.slot.is_none() && !self.needs_no_slot {
            // INVARIANT: the semaphore is never closed.
            self.slot = Arc::clone(&self.shared.slots).acquire_owned().await.ok();
        }
    }

    /// The call will do this. Where that is not what was planned, other calls may be in the way: then this waits for
    /// them and returns true, and the call must be judged anew, because they may have changed what it finds.
    pub(crate) async fn wait_for_effects(
        &mut self,
        tool: &RegisteredTool,
        effects: &[Effect],
        policy: &Policy,
        workspace: &Workspace,
    ) -> bool {
        if self.certain && self.planned == effects {
            return false;
        }
        let claim = required_locks(tool, effects, policy, workspace);
        self.planned = effects.to_vec();
        self.certain = true;
        self.needs_no_slot = claim.needs_no_slot;
        let wait = lock_queue(&self.shared.queue).update_locks(self.place, claim, &self.shared.planner());
        match wait {
            None => false,
            Some(wait) => {
                self.release_slot();
                // An error means that the batch is gone; the call is about to be cancelled.
                let _ = wait.await;
                self.acquire_slot().await;
                true
            }
        }
    }

    /// Keeps a command until every call before this one is over.
    pub(crate) fn defer_command(&self, command: String) {
        lock_queue(&self.shared.queue).defer_command(self.place, command);
    }
}
