//! Who waits for whom.
//!
//! Calls are planned in order, as far as the first unfinished one that must be alone: what comes after it cannot be
//! known before it is over.
//! A call that had to wait is planned anew when its turn comes, because what it waited for may have changed where its
//! paths lead.
//!
//! A call under way whose effects turn out otherwise (a hook or a person changed the input) pauses until no running
//! call conflicts with them.
//! A paused call waits only for calls that run, and a call that pauses does not wait for those that had paused before
//! it, so no two can wait for each other.

use super::claim::LockSet;
use super::ground::Ground;
use super::plan::Plan;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::oneshot;
use toolgate_proto::ToolCall;

/// Looks ahead at a call.
pub(super) type CallPlanner<'a> = &'a dyn Fn(&ToolCall, Option<Plan>) -> Plan;

/// The calls of one batch, in order.
#[derive(Default)]
pub(super) struct Queue {
    entries: Vec<Entry>,
    /// How many calls, from the first, have been planned.
    planned: usize,
    /// Planned calls that are not over.
    unfinished: BTreeSet<usize>,
    /// Those of them that must be alone.
    alone: BTreeSet<usize>,
    /// Those of them that may take something away.
    removing: BTreeSet<usize>,
    /// What calls under way lay hold of.
    taken: Ground,
    /// What calls that wait will lay hold of.
    wanted: Ground,
    /// Nothing starts any more.
    stopped: bool,
    /// How many calls, from the first, are over and have handed over what they queued.
    settled: usize,
}

struct Entry {
    call: Arc<ToolCall>,
    status: Status,
    plan: Option<Plan>,
    claim: LockSet,
    /// Its claim lies on what is taken, and not on what is wanted.
    takes: bool,
    /// How many calls it waits for.
    blockers: usize,
    /// The calls that wait for it.
    blocks: Vec<usize>,
    go: Option<oneshot::Sender<Plan>>,
    go_on: Option<oneshot::Sender<()>>,
    /// Commands that it wants run afterwards.
    commands: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Waiting,
    Started,
    Paused,
    Finished,
}

impl Queue {
    /// Adds a call at the end. The receiver hears when its turn has come.
    pub(super) fn push(
        &mut self,
        call: Arc<ToolCall>,
        planner: CallPlanner<'_>,
    ) -> (usize, oneshot::Receiver<Plan>) {
        let (go, turn) = oneshot::channel();
        let place = self.entries.len();
        self.entries.push(Entry {
            call,
            status: Status::Waiting,
            plan: None,
            claim: LockSet::default(),
            takes: false,
            blockers: 0,
            blocks: Vec::new(),
            go: Some(go),
            go_on: None,
            commands: Vec::new(),
        });
        self.look_ahead(planner);
        (place, turn)
    }

    /// A call is over. Returns the commands whose turn has come.
    pub(super) fn finish(&mut self, place: usize, planner: CallPlanner<'_>) -> Vec<String> {
        let Some(entry) = self.entries.get_mut(place) else { return Vec::new() };
        if entry.status == Status::Finished {
            return Vec::new();
        }
        entry.status = Status::Finished;
        let blocked = std::mem::take(&mut entry.blocks);
        self.release_locks(place);
        self.unfinished.remove(&place);
        let free = self.unblock(blocked);
        self.free(free, planner);
        self.settle()
    }

    /// A call under way turns out to do something else than planned. Returns what to wait for, if anything.
    pub(super) fn change(
        &mut self,
        place: usize,
        claim: LockSet,
        planner: CallPlanner<'_>,
    ) -> Option<oneshot::Receiver<()>> {
        let entry = self.entries.get_mut(place).filter(|entry| entry.status == Status::Started)?;
        entry.status = Status::Paused;
        let blocked = std::mem::take(&mut entry.blocks);
        self.release_locks(place);
        self.entries.get_mut(place)?.claim = claim;
        let free = self.unblock(blocked);
        self.lay(place);
        let entry = self.entries.get_mut(place)?;
        if entry.blockers > 0 && !self.removing.is_empty() {
            entry.claim.add_parent_locks();
        }
        self.put(place);
        let entry = self.entries.get_mut(place)?;
        let wait = if entry.blockers == 0 {
            entry.status = Status::Started;
            None
        } else {
            let (go_on, wait) = oneshot::channel();
            entry.go_on = Some(go_on);
            Some(wait)
        };
        self.free(free, planner);
        wait
    }

    /// Keeps a command until every call before this one is over.
    pub(super) fn after(&mut self, place: usize, command: String) {
        if let Some(entry) = self.entries.get_mut(place) {
            entry.commands.push(command);
        }
    }

    /// Lets nothing start any more.
    pub(super) fn stop(&mut self) {
        self.stopped = true;
    }

    /// Takes one blocker off each of these. Returns those that have none left.
    fn unblock(&mut self, blocked: Vec<usize>) -> Vec<usize> {
        let mut free = Vec::new();
        for other in blocked {
            if let Some(entry) = self.entries.get_mut(other) {
                entry.blockers = entry.blockers.saturating_sub(1);
                if entry.blockers == 0 {
                    free.push(other);
                }
            }
        }
        free.sort_unstable();
        free.dedup();
        free
    }

    fn free(&mut self, free: Vec<usize>, planner: CallPlanner<'_>) {
        for other in free {
            if self.entries.get(other).is_some_and(|entry| entry.blockers == 0) {
                self.freed(other, planner);
            }
        }
        self.look_ahead(planner);
    }

    fn look_ahead(&mut self, planner: CallPlanner<'_>) {
        while self.alone.is_empty() {
            let place = self.planned;
            let Some(entry) = self.entries.get(place) else { return };
            self.planned += 1;
            if entry.status == Status::Finished {
                continue;
            }
            self.unfinished.insert(place);
            self.place(place, planner);
        }
    }

    /// Nothing blocks this call any more, as far as was known when it was last looked at.
    fn freed(&mut self, place: usize, planner: CallPlanner<'_>) {
        let Some(entry) = self.entries.get_mut(place) else { return };
        match entry.status {
            Status::Waiting => {
                self.release_locks(place);
                self.place(place, planner);
            }
            Status::Paused => {
                entry.status = Status::Started;
                if let Some(go_on) = entry.go_on.take() {
                    // An error means that the call was cancelled while it waited.
                    let _ = go_on.send(());
                }
            }
            Status::Started | Status::Finished => {}
        }
    }

    /// Plans a waiting call, and starts it if nothing stands in its way.
    fn place(&mut self, place: usize, planner: CallPlanner<'_>) {
        let Some(entry) = self.entries.get_mut(place) else { return };
        let plan = planner(&entry.call, entry.plan.take());
        entry.claim = plan.claim.clone();
        entry.plan = Some(plan);
        self.lay(place);
        let stopped = self.stopped;
        let Some(entry) = self.entries.get_mut(place) else { return };
        if entry.blockers == 0 && !stopped {
            entry.status = Status::Started;
            if let (Some(go), Some(plan)) = (entry.go.take(), entry.plan.take()) {
                // An error means that the call was cancelled, and went ahead to say so.
                let _ = go.send(plan);
            }
        } else if self.removing.range(..place).next().is_some() {
            entry.claim.add_parent_locks();
        }
        self.put(place);
    }

    /// Finds out who waits for whom because of a claim.
    fn lay(&mut self, place: usize) {
        let Some(entry) = self.entries.get(place) else { return };
        let pausing = entry.status == Status::Paused;
        let met: Vec<usize> = if entry.claim.alone {
            self.unfinished.iter().copied().collect()
        } else {
            let mut met = self.taken.meet(&entry.claim);
            met.extend(&self.alone);
            // Of those that wait before it the last will do, because a waiting call looks again when what it waits
            // for is over; and one that waits behind it will find it then.
            met.extend(self.wanted.last_conflict_before(place, &entry.claim).filter(|_| !pausing));
            met.sort_unstable();
            met.dedup();
            met
        };
        let mut last_waiting = None;
        for other in met.into_iter().filter(|other| *other != place) {
            let Some((status, blockers)) =
                self.entries.get(other).map(|entry| (entry.status, entry.blockers))
            else {
                continue;
            };
            let runs = status == Status::Started;
            let waits_for_other = if pausing { runs } else { runs || other < place };
            match (waits_for_other, status) {
                (true, Status::Waiting) => last_waiting = last_waiting.max(Some(other)),
                (false, Status::Waiting) if blockers > 0 => {}
                (true, Status::Started | Status::Paused | Status::Finished) => self.block(other, place),
                (false, Status::Waiting | Status::Started | Status::Paused | Status::Finished) => {
                    self.block(place, other);
                }
            }
        }
        if let Some(other) = last_waiting {
            self.block(other, place);
        }
    }

    /// Lays a claim down where others find it.
    fn put(&mut self, place: usize) {
        let Some(entry) = self.entries.get_mut(place) else { return };
        entry.takes = entry.status != Status::Waiting;
        let ground = if entry.takes { &mut self.taken } else { &mut self.wanted };
        ground.add(place, &entry.claim);
        if entry.claim.alone {
            self.alone.insert(place);
        }
        if entry.claim.removes {
            self.removing.insert(place);
        }
    }

    /// Has the second wait for the first.
    fn block(&mut self, first: usize, second: usize) {
        if let Some(entry) = self.entries.get_mut(first) {
            entry.blocks.push(second);
        }
        if let Some(entry) = self.entries.get_mut(second) {
            entry.blockers += 1;
        }
    }

    fn release_locks(&mut self, place: usize) {
        if let Some(entry) = self.entries.get_mut(place) {
            let claim = std::mem::take(&mut entry.claim);
            let ground = if entry.takes { &mut self.taken } else { &mut self.wanted };
            ground.remove(place, &claim);
            self.alone.remove(&place);
            self.removing.remove(&place);
        }
    }

    fn settle(&mut self) -> Vec<String> {
        let mut commands = Vec::new();
        while let Some(entry) = self.entries.get_mut(self.settled) {
            if entry.status != Status::Finished {
                break;
            }
            commands.append(&mut entry.commands);
            self.settled += 1;
        }
        commands
    }
}
