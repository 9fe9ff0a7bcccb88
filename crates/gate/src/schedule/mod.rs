//! Scheduling: many calls at once.
//!
//! A model sends calls in an order that it takes for granted, and a client may send the next before the last is
//! answered.
//! The scheduler runs calls together where they cannot tell the difference: a call starts as soon as no earlier
//! unfinished call holds a conflicting lock, so that files and results come out as if each had waited for the one
//! before.
//!
//! - Locks follow from effects ([`lock_set`]). Two calls that only read never conflict; one that writes conflicts with
//!   any other that touches the same path, a path above it or one below it. Paths are locked as spelled, as resolved,
//!   and by every symlink on the way.
//! - A command line whose parts only read, or whose writes are all known, locks what its analysis names. A call of
//!   unknown effect and a tool that says so are barriers.
//! - At most [`GateParts::max_concurrency`](crate::GateParts) calls run hooks or tools at once. A call that waits for
//!   an approval holds no slot, and neither does one that waits for another agent. A user is asked one question at a time.
//! - Cancelling a call ends what runs; each call still gets its result and leaves its record.
//!
//! The scheduler decides *when* a call goes on, never what it does: it runs the parts of the path of a call
//! ([`pipeline`](crate::pipeline)) and waits between them.
//!
//! What it cannot promise: hooks that change files by themselves are not among the effects; and where an approver
//! changes the input of a call, that call does what the new input says beside calls that were started before.

mod batch;
mod lock_set;
mod lock_table;
mod plan;
mod queue;
mod scheduler;

pub use batch::{CallBatch, FinishedBatchCall};
pub use scheduler::{CallReservation, CallScheduler, ScheduledCall};
