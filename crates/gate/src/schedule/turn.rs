//! The part of the schedule that a call carries with it: its place, its seat, and what was foreseen of it.

use super::claim::required_locks;
use super::plan::{Plan, PrevalidatedCall};
use super::{Shared, lock};
use crate::registry::RegisteredTool;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
use toolgate_policy::Policy;
use toolgate_proto::{Effect, Workspace};

/// A call's place in its batch.
pub(crate) struct Turn {
    shared: Arc<Shared>,
    place: usize,
    planned: Vec<Effect>,
    certain: bool,
    foreseen: Option<PrevalidatedCall>,
    /// A call that waits for a person needs none.
    seatless: bool,
    seat: Option<OwnedSemaphorePermit>,
}

impl Turn {
    pub(super) fn new(
        shared: Arc<Shared>,
        place: usize,
        plan: Plan,
        seat: Option<OwnedSemaphorePermit>,
    ) -> Self {
        let seatless = plan.claim.seatless;
        let Plan { effects, certain, foreseen, .. } = plan;
        Self { shared, place, planned: effects, certain, foreseen, seatless, seat }
    }

    /// What reading the input gave, if it was read ahead.
    pub(crate) fn foreseen(&mut self) -> Option<PrevalidatedCall> {
        self.foreseen.take()
    }

    /// Gives the seat to another call while this one waits for a person.
    pub(crate) fn release_slot(&mut self) {
        self.seat = None;
    }

    /// Takes a seat again.
    pub(crate) async fn sit_down(&mut self) {
        if self.seat.is_none() && !self.seatless {
            // INVARIANT: the semaphore is never closed.
            self.seat = Arc::clone(&self.shared.slots).acquire_owned().await.ok();
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
        self.seatless = claim.seatless;
        let wait = lock(&self.shared.queue).change(self.place, claim, &self.shared.planner());
        match wait {
            None => false,
            Some(wait) => {
                self.release_slot();
                // An error means that the batch is gone; the call is about to be cancelled.
                let _ = wait.await;
                self.sit_down().await;
                true
            }
        }
    }

    /// Keeps a command until every call before this one is over.
    pub(crate) fn after(&self, command: String) {
        lock(&self.shared.queue).after(self.place, command);
    }
}
