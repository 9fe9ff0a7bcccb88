//! The loop of the supervisor: it reaps processes, and terminates them when toolgate asks for it or dies.
//!
//! Termination has two phases: SIGTERM and a grace, then SIGKILL until no descendant is left.
//! INVARIANT: nothing here allocates, locks or panics, see `supervisor.rs`.

use super::supervisor::{SupervisorArgs, SupervisorMessage, send_message, stop_message};
use super::supervisor_memory::SupervisorMemory;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use rustix::process::{Signal, WaitOptions, getpid, wait};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Passes of SIGSTOP and SIGKILL over the descendants before the supervisor waits for exits again.
const MAX_KILL_PASSES: usize = 16;
/// The longest wait between two rounds of killing.
const MAX_KILL_INTERVAL_MS: i64 = 20;

/// How far the supervisor is with ending the processes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TerminationState {
    /// The processes run.
    NotRequested,
    /// SIGTERM was sent; SIGKILL follows at this time of the monotonic clock, in milliseconds.
    GraceUntil { deadline: i64, orphaned: bool },
    /// SIGKILL is sent until no process is left.
    Killing,
}

impl TerminationState {
    /// toolgate can still send messages.
    fn has_parent(self) -> bool {
        matches!(self, Self::NotRequested | Self::GraceUntil { orphaned: false, .. })
    }
}

/// What one `poll` of the supervisor returned.
struct SupervisorEvents {
    /// toolgate's process has died.
    parent_died: bool,
    /// The lifeline has a message, or was closed.
    lifeline: bool,
}

/// Waits until no process is left, and ends the processes when toolgate asks for it or dies.
pub(super) fn supervise(args: &mut SupervisorArgs, first: i32, children: &OwnedFd, parent: Option<&OwnedFd>) {
    let mut state = TerminationState::NotRequested;
    let mut kill_rounds: i64 = 0;
    loop {
        let (exited, any_left) = reap_children(first);
        match (exited, any_left) {
            (Some(status), true) => send_message(args, SupervisorMessage::Exited { status }),
            (Some(status), false) => return send_message(args, SupervisorMessage::Ended { status }),
            (None, true) => {}
            (None, false) => return send_message(args, SupervisorMessage::Gone),
        }
        let timeout = match state {
            TerminationState::NotRequested => None,
            TerminationState::GraceUntil { deadline, .. } => {
                Some(deadline.saturating_sub(now_millis()).max(0))
            }
            TerminationState::Killing => {
                kill_rounds += 1;
                kill_descendants(&mut args.memory);
                Some(kill_rounds.min(MAX_KILL_INTERVAL_MS))
            }
        };
        let events = poll_events(args, children, parent, state.has_parent(), timeout);
        state = next_state(args, state, &events);
    }
}

/// Reaps every child that has exited. Returns the wait status of the first process if it is among them, and whether
/// any child is left.
fn reap_children(first: i32) -> (Option<i32>, bool) {
    let mut exited = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == first => exited = Some(status.as_raw()),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return (exited, true),
            Err(_) => return (exited, false),
        }
    }
}

/// A stopped process cannot fork, so when as many were stopped as were killed, none was missed.
fn kill_descendants(memory: &mut SupervisorMemory) {
    let mut descendants = memory.descendants();
    let own_pid = getpid().as_raw_nonzero().get();
    for _ in 0..MAX_KILL_PASSES {
        let stopped = descendants.signal(own_pid, Signal::STOP);
        if stopped == descendants.signal(own_pid, Signal::KILL) {
            break;
        }
    }
}

/// Waits for the exit of a child and, while toolgate lives, for a message or toolgate's death.
fn poll_events(
    args: &SupervisorArgs,
    children: &OwnedFd,
    parent: Option<&OwnedFd>,
    has_parent: bool,
    timeout_ms: Option<i64>,
) -> SupervisorEvents {
    let timeout =
        timeout_ms.map(|millis| Timespec { tv_sec: millis / 1000, tv_nsec: (millis % 1000) * 1_000_000 });
    let parent_fd = parent.map_or(args.lifeline.as_fd(), AsFd::as_fd);
    let mut fds = [
        PollFd::from_borrowed_fd(children.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(parent_fd, PollFlags::IN),
        PollFd::from_borrowed_fd(args.lifeline.as_fd(), PollFlags::IN),
    ];
    let watched = if has_parent { &mut fds[..] } else { &mut fds[..1] };
    let _ = poll(watched, timeout.as_ref());
    let [_, parent_ready, lifeline] = fds.map(|fd| !fd.revents().is_empty());
    drain_signalfd(children.as_fd());
    SupervisorEvents { parent_died: parent.is_some() && parent_ready, lifeline }
}

/// The state after the events of one poll. A stop message during a grace starts a new grace.
fn next_state(
    args: &mut SupervisorArgs,
    state: TerminationState,
    events: &SupervisorEvents,
) -> TerminationState {
    if state == TerminationState::Killing {
        return state;
    }
    if events.parent_died {
        return end_orphans(args, state);
    }
    if events.lifeline {
        let mut message = [0u8; 4];
        return match read(&args.lifeline, &mut message[..]) {
            Ok(4) if message == stop_message(0) => TerminationState::Killing,
            Ok(4) => {
                send_term(&mut args.memory);
                let grace = i64::from(u32::from_ne_bytes(message));
                TerminationState::GraceUntil { deadline: now_millis() + grace, orphaned: false }
            }
            Err(Errno::INTR | Errno::AGAIN) => state,
            Ok(_) | Err(_) => end_orphans(args, state),
        };
    }
    match state {
        TerminationState::GraceUntil { deadline, .. } if now_millis() >= deadline => {
            TerminationState::Killing
        }
        TerminationState::NotRequested | TerminationState::GraceUntil { .. } | TerminationState::Killing => {
            state
        }
    }
}

/// toolgate has died or given up the processes. An earlier deadline stays.
fn end_orphans(args: &mut SupervisorArgs, state: TerminationState) -> TerminationState {
    if args.orphan_grace_ms == 0 {
        return TerminationState::Killing;
    }
    let mut deadline = now_millis() + i64::from(args.orphan_grace_ms);
    match state {
        TerminationState::GraceUntil { deadline: earlier, .. } => deadline = deadline.min(earlier),
        TerminationState::NotRequested | TerminationState::Killing => send_term(&mut args.memory),
    }
    TerminationState::GraceUntil { deadline, orphaned: true }
}

/// Sends SIGTERM to every descendant, also to stopped ones.
fn send_term(memory: &mut SupervisorMemory) {
    let mut descendants = memory.descendants();
    let own_pid = getpid().as_raw_nonzero().get();
    descendants.signal(own_pid, Signal::TERM);
    // A stopped process acts on SIGTERM only when it continues.
    descendants.signal(own_pid, Signal::CONT);
}

/// The monotonic clock, which continues when the system time is changed.
fn now_millis() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.saturating_mul(1000) + now.tv_nsec / 1_000_000
}

/// Reads pending SIGCHLD records, so that the next poll waits for a new one.
fn drain_signalfd(children: BorrowedFd<'_>) {
    let mut record = [0u8; 128];
    while read(children, &mut record[..]).is_ok_and(|length| length > 0) {}
}
