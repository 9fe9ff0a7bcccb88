//! Where tests make a system call fail.
//!
//! Every call in [`sys`](super::sys) passes a point here first.
//! A test installs a [`Plan`] for its thread: let the nth point fail, write less than asked, or end the process.
//! Without the feature `faults` (and outside this crate's tests) a point is nothing at all.

#[cfg(any(test, feature = "faults"))]
pub use armed::{Fault, Plan, with};
#[cfg(any(test, feature = "faults"))]
pub(crate) use armed::{carried, point};

/// How a call may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Go {
    /// As usual.
    On,
    /// Do less than asked.
    #[cfg_attr(not(any(test, feature = "faults")), expect(dead_code, reason = "only tests ask for it"))]
    Short,
}

#[cfg(not(any(test, feature = "faults")))]
#[inline(always)]
pub(crate) fn point(_call: &'static str) -> Result<Go, rustix::io::Errno> {
    Ok(Go::On)
}

/// The work, with this thread's plan wherever it runs.
#[cfg(not(any(test, feature = "faults")))]
pub(crate) fn carried<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    work
}

#[cfg(any(test, feature = "faults"))]
mod armed {
    use super::Go;
    use rustix::io::Errno;
    use std::cell::RefCell;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex, PoisonError};

    /// What happens at the chosen point.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Fault {
        /// The system call fails with this error number.
        Errno(i32),
        /// A write takes only a part.
        Short,
        /// The process is killed before the call.
        Kill,
        /// Nothing: the points are only counted.
        Nothing,
    }

    /// A fault at the nth point, counted from 0. It strikes once.
    #[derive(Debug)]
    pub struct Plan {
        at: usize,
        fault: Fault,
        seen: AtomicUsize,
        calls: Mutex<Vec<&'static str>>,
    }

    impl Plan {
        /// A plan.
        pub fn new(at: usize, fault: Fault) -> Arc<Self> {
            Arc::new(Self { at, fault, seen: AtomicUsize::new(0), calls: Mutex::new(Vec::new()) })
        }

        /// The names of the calls that were passed, in order.
        pub fn calls(&self) -> Vec<&'static str> {
            self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
        }
    }

    thread_local! {
        static PLAN: RefCell<Option<Arc<Plan>>> = const { RefCell::new(None) };
    }

    /// Does something under a plan. Work that is handed to other threads by this crate is under it too.
    pub fn with<T>(plan: &Arc<Plan>, work: impl FnOnce() -> T) -> T {
        let former = PLAN.replace(Some(Arc::clone(plan)));
        let out = work();
        PLAN.set(former);
        out
    }

    /// The work, with this thread's plan wherever it runs.
    pub(crate) fn carried<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
        let plan = current();
        move || match plan {
            Some(plan) => with(&plan, work),
            None => work(),
        }
    }

    fn current() -> Option<Arc<Plan>> {
        PLAN.with_borrow(Clone::clone)
    }

    pub(crate) fn point(call: &'static str) -> Result<Go, Errno> {
        let Some(plan) = current() else { return Ok(Go::On) };
        plan.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        if plan.seen.fetch_add(1, Ordering::SeqCst) != plan.at {
            return Ok(Go::On);
        }
        match plan.fault {
            Fault::Errno(number) => Err(Errno::from_raw_os_error(number)),
            Fault::Short => Ok(Go::Short),
            Fault::Nothing => Ok(Go::On),
            Fault::Kill => {
                let _ =
                    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
                Ok(Go::On)
            }
        }
    }
}
