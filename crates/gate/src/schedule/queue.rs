//! The queue of calls: which call waits for which.
//!
//! Calls are planned in order, as far as the first unfinished barrier: what comes after it cannot be
//! known before it is over.
//! A call that had to wait is planned anew when its turn comes, because what it waited for may have changed where its
//! paths lead.
//!
//! A running call whose effects change (a hook or an approver changed the input) pauses until no running
//! call conflicts with them.
//! A paused call waits only for calls that run, and a call that pauses does not wait for those that had paused before
//! it, so there is no deadlock.

use super::lock_set::LockSet;
use super::lock_table::LockTable;
use super::plan::CallPlan;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use tokio::sync::oneshot;
use toolgate_proto::ToolCall;

/// Plans a call.
pub(super) type CallPlanner<'a> = &'a dyn Fn(&ToolCall) -> CallPlan;

/// The calls of one scheduler, in order.
#[derive(Default)]
pub(super) struct CallQueue {
    entries: CallWindow,
    /// How many calls, from the first, have been planned.
    planned: usize,
    /// Planned calls that are not over.
    unfinished: BTreeSet<usize>,
    /// Those of them that are barriers.
    exclusive: BTreeSet<usize>,
    /// Those of them that may remove something.
    removing: BTreeSet<usize>,
    /// Locks of running calls.
    held_locks: LockTable,
    /// Locks that waiting calls will need.
    waiting_locks: LockTable,
    /// Nothing starts any more.
    stopped: bool,
}

struct QueuedCall {
    /// `None` while the place is only reserved.
    call: Option<Arc<ToolCall>>,
    status: QueuedCallStatus,
    plan: Option<CallPlan>,
    locks: LockSet,
    /// Its locks are among the held ones, not among the waiting ones.
    holds_locks: bool,
    /// How many calls it waits for.
    blockers: usize,
    /// The calls that wait for it.
    blocks: Vec<usize>,
    start_signal: Option<oneshot::Sender<CallPlan>>,
    resume_signal: Option<oneshot::Sender<()>>,
    /// Commands that it wants run afterwards.
    commands: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueuedCallStatus {
    Waiting,
    Started,
    Paused,
    Finished,
}

/// The calls from the first that is not over. Earlier ones are forgotten, so a queue may live as long as its session.
#[derive(Default)]
struct CallWindow {
    /// The index of the first entry.
    first: usize,
    entries: VecDeque<QueuedCall>,
}

impl CallWindow {
    fn get(&self, index: usize) -> Option<&QueuedCall> {
        self.entries.get(index.checked_sub(self.first)?)
    }

    fn get_mut(&mut self, index: usize) -> Option<&mut QueuedCall> {
        self.entries.get_mut(index.checked_sub(self.first)?)
    }

    fn push(&mut self, call: QueuedCall) -> usize {
        self.entries.push_back(call);
        self.first + self.entries.len() - 1
    }

    /// Forgets the first call if it is over.
    fn pop_finished(&mut self) -> Option<QueuedCall> {
        let finished = self.entries.pop_front_if(|call| call.status == QueuedCallStatus::Finished)?;
        self.first += 1;
        Some(finished)
    }
}

impl CallQueue {
    /// Reserves the next place. Later calls wait until it is filled or finished. The receiver is signalled when the call
    /// of this place may start.
    pub(super) fn reserve(&mut self) -> (usize, oneshot::Receiver<CallPlan>) {
        let (start_signal, start) = oneshot::channel();
        let index = self.entries.push(QueuedCall {
            call: None,
            status: QueuedCallStatus::Waiting,
            plan: None,
            locks: LockSet::default(),
            holds_locks: false,
            blockers: 0,
            blocks: Vec::new(),
            start_signal: Some(start_signal),
            resume_signal: None,
            commands: Vec::new(),
        });
        (index, start)
    }

    /// Puts a call into its reserved place.
    pub(super) fn fill(&mut self, index: usize, call: Arc<ToolCall>, planner: CallPlanner<'_>) {
        if let Some(entry) = self.entries.get_mut(index) {
            entry.call = Some(call);
        }
        self.plan_next_calls(planner);
    }

    /// A call is over. Returns queued commands of calls that are all over.
    pub(super) fn finish(&mut self, place: usize, planner: CallPlanner<'_>) -> Vec<String> {
        let Some(entry) = self.entries.get_mut(place) else { return Vec::new() };
        if entry.status == QueuedCallStatus::Finished {
            return Vec::new();
        }
        entry.status = QueuedCallStatus::Finished;
        let blocked = std::mem::take(&mut entry.blocks);
        self.release_locks(place);
        self.unfinished.remove(&place);
        let free = self.unblock(blocked);
        self.start_unblocked(free, planner);
        self.take_settled_commands()
    }

    /// A running call turns out to need other locks than planned. Returns what to wait for, if anything.
    pub(super) fn update_locks(
        &mut self,
        place: usize,
        locks: LockSet,
        planner: CallPlanner<'_>,
    ) -> Option<oneshot::Receiver<()>> {
        let entry = self.entries.get_mut(place).filter(|entry| entry.status == QueuedCallStatus::Started)?;
        entry.status = QueuedCallStatus::Paused;
        let blocked = std::mem::take(&mut entry.blocks);
        self.release_locks(place);
        self.entries.get_mut(place)?.locks = locks;
        let free = self.unblock(blocked);
        self.link_blockers(place);
        let entry = self.entries.get_mut(place)?;
        if entry.blockers > 0 && !self.removing.is_empty() {
            entry.locks.add_parent_locks();
        }
        self.register_locks(place);
        let entry = self.entries.get_mut(place)?;
        let wait = if entry.blockers == 0 {
            entry.status = QueuedCallStatus::Started;
            None
        } else {
            let (go_on, wait) = oneshot::channel();
            entry.resume_signal = Some(go_on);
            Some(wait)
        };
        self.start_unblocked(free, planner);
        wait
    }

    /// Keeps commands until every call before this one is over.
    pub(super) fn defer_commands(&mut self, place: usize, commands: Vec<String>) {
        if let Some(entry) = self.entries.get_mut(place) {
            entry.commands.extend(commands);
        }
    }

    /// Starts no further call.
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

    fn start_unblocked(&mut self, free: Vec<usize>, planner: CallPlanner<'_>) {
        for other in free {
            if self.entries.get(other).is_some_and(|entry| entry.blockers == 0) {
                self.replan_or_resume(other, planner);
            }
        }
        self.plan_next_calls(planner);
    }

    fn plan_next_calls(&mut self, planner: CallPlanner<'_>) {
        while self.exclusive.is_empty() {
            let place = self.planned;
            let Some(entry) = self.entries.get(place) else { return };
            if entry.status == QueuedCallStatus::Finished {
                self.planned += 1;
                continue;
            }
            if entry.call.is_none() {
                return;
            }
            self.planned += 1;
            self.unfinished.insert(place);
            self.plan_and_start(place, planner);
        }
    }

    /// Nothing blocks this call any more, as far as its last plan tells.
    fn replan_or_resume(&mut self, place: usize, planner: CallPlanner<'_>) {
        let Some(entry) = self.entries.get_mut(place) else { return };
        match entry.status {
            QueuedCallStatus::Waiting => {
                self.release_locks(place);
                self.plan_and_start(place, planner);
            }
            QueuedCallStatus::Paused => {
                entry.status = QueuedCallStatus::Started;
                if let Some(go_on) = entry.resume_signal.take() {
                    // An error means that the call was cancelled while it waited.
                    let _ = go_on.send(());
                }
            }
            QueuedCallStatus::Started | QueuedCallStatus::Finished => {}
        }
    }

    /// Plans a waiting call, and starts it if its locks are free.
    fn plan_and_start(&mut self, place: usize, planner: CallPlanner<'_>) {
        let Some(entry) = self.entries.get_mut(place) else { return };
        let Some(call) = &entry.call else { return };
        let plan = planner(call);
        entry.locks = plan.locks.clone();
        entry.plan = Some(plan);
        self.link_blockers(place);
        let stopped = self.stopped;
        let Some(entry) = self.entries.get_mut(place) else { return };
        if entry.blockers == 0 && !stopped {
            entry.status = QueuedCallStatus::Started;
            if let (Some(go), Some(plan)) = (entry.start_signal.take(), entry.plan.take()) {
                // An error means that the call was cancelled, and went ahead to say so.
                let _ = go.send(plan);
            }
        } else if self.removing.range(..place).next().is_some() {
            entry.locks.add_parent_locks();
        }
        self.register_locks(place);
    }

    /// Finds the calls that a call must wait for, and those that must wait for it.
    fn link_blockers(&mut self, place: usize) {
        let Some(entry) = self.entries.get(place) else { return };
        let pausing = entry.status == QueuedCallStatus::Paused;
        let met: Vec<usize> = if entry.locks.is_exclusive {
            self.unfinished.iter().copied().collect()
        } else {
            let mut met = self.held_locks.conflicting_calls(&entry.locks);
            met.extend(&self.exclusive);
            // Of those that wait before it the last is enough, because a waiting call is planned again when what it waits
            // for is over; and one that waits behind it will find it then.
            met.extend(self.waiting_locks.last_conflict_before(place, &entry.locks).filter(|_| !pausing));
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
            let runs = status == QueuedCallStatus::Started;
            let waits_for_other = if pausing { runs } else { runs || other < place };
            match (waits_for_other, status) {
                (true, QueuedCallStatus::Waiting) => last_waiting = last_waiting.max(Some(other)),
                (false, QueuedCallStatus::Waiting) if blockers > 0 => {}
                (true, QueuedCallStatus::Started | QueuedCallStatus::Paused | QueuedCallStatus::Finished) => {
                    self.block(other, place)
                }
                (
                    false,
                    QueuedCallStatus::Waiting
                    | QueuedCallStatus::Started
                    | QueuedCallStatus::Paused
                    | QueuedCallStatus::Finished,
                ) => {
                    self.block(place, other);
                }
            }
        }
        if let Some(other) = last_waiting {
            self.block(other, place);
        }
    }

    /// Enters the locks of a call into the table.
    fn register_locks(&mut self, place: usize) {
        let Some(entry) = self.entries.get_mut(place) else { return };
        entry.holds_locks = entry.status != QueuedCallStatus::Waiting;
        let table = if entry.holds_locks { &mut self.held_locks } else { &mut self.waiting_locks };
        table.add(place, &entry.locks);
        if entry.locks.is_exclusive {
            self.exclusive.insert(place);
        }
        if entry.locks.removes {
            self.removing.insert(place);
        }
    }

    /// Makes the second call wait for the first.
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
            let locks = std::mem::take(&mut entry.locks);
            let table = if entry.holds_locks { &mut self.held_locks } else { &mut self.waiting_locks };
            table.remove(place, &locks);
            self.exclusive.remove(&place);
            self.removing.remove(&place);
        }
    }

    /// Forgets calls that are over, and returns what they queued.
    fn take_settled_commands(&mut self) -> Vec<String> {
        let mut commands = Vec::new();
        while let Some(mut finished) = self.entries.pop_finished() {
            commands.append(&mut finished.commands);
        }
        self.planned = self.planned.max(self.entries.first);
        commands
    }
}
