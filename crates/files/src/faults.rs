//! Where tests make a system call fail.
//!
//! Every call in [`sys`](super::sys) passes a point here first.
//! A test installs a [`FaultPlan`] for its thread: let the nth point fail, write less than asked, or end the process.
//! Without the feature `faults` (and outside this crate's tests) a point is nothing at all.

#[cfg(any(test, feature = "faults"))]
pub use injection::{FaultPlan, InjectedFault, with_fault_plan};
#[cfg(any(test, feature = "faults"))]
pub(crate) use injection::{check_fault_point, inherit_fault_plan};

/// How a call may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyscallBehavior {
    /// As usual.
    Normal,
    /// Do less than asked.
    #[cfg_attr(not(any(test, feature = "faults")), expect(dead_code, reason = "only tests ask for it"))]
    ShortWrite,
}

#[cfg(not(any(test, feature = "faults")))]
#[inline(always)]
pub(crate) fn check_fault_point(_call: &'static str) -> Result<SyscallBehavior, rustix::io::Errno> {
    Ok(SyscallBehavior::Normal)
}

/// The work, with this thread's plan wherever it runs.
#[cfg(not(any(test, feature = "faults")))]
pub(crate) fn inherit_fault_plan<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    work
}

#[cfg(any(test, feature = "faults"))]
mod injection {
    use super::SyscallBehavior;
    use rustix::io::Errno;
    use std::cell::RefCell;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex, PoisonError};

    /// What happens at the chosen point.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum InjectedFault {
        /// The system call fails with this error number.
        Errno(i32),
        /// A write takes only a part.
        ShortWrite,
        /// The process is killed before the call.
        Kill,
        /// Nothing: the points are only counted.
        Nothing,
    }

    /// A fault at the nth point, counted from 0. It strikes once.
    #[derive(Debug)]
    pub struct FaultPlan {
        at: usize,
        fault: InjectedFault,
        seen: AtomicUsize,
        calls: Mutex<Vec<&'static str>>,
    }

    impl FaultPlan {
        /// A plan.
        pub fn new(at: usize, fault: InjectedFault) -> Arc<Self> {
            Arc::new(Self { at, fault, seen: AtomicUsize::new(0), calls: Mutex::new(Vec::new()) })
        }

        /// The names of the calls that were passed, in order.
        pub fn calls(&self) -> Vec<&'static str> {
            self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
        }
    }

    thread_local! {
        static PLAN: RefCell<Option<Arc<FaultPlan>>> = const { RefCell::new(None) };
    }

    /// Does something under a plan. Work that is handed to other threads by this crate is under it too.
    pub fn with_fault_plan<T>(plan: &Arc<FaultPlan>, work: impl FnOnce() -> T) -> T {
        let former = PLAN.replace(Some(Arc::clone(plan)));
        let out = work();
        PLAN.set(former);
        out
    }

    /// The work, with this thread's plan wherever it runs.
    pub(crate) fn inherit_fault_plan<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
        let plan = current();
        move || match plan {
            Some(plan) => with_fault_plan(&plan, work),
            None => work(),
        }
    }

    fn current() -> Option<Arc<FaultPlan>> {
        PLAN.with_borrow(Clone::clone)
    }

    pub(crate) fn check_fault_point(call: &'static str) -> Result<SyscallBehavior, Errno> {
        let Some(plan) = current() else { return Ok(SyscallBehavior::Normal) };
        plan.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        if plan.seen.fetch_add(1, Ordering::SeqCst) != plan.at {
            return Ok(SyscallBehavior::Normal);
        }
        match plan.fault {
            InjectedFault::Errno(number) => Err(Errno::from_raw_os_error(number)),
            InjectedFault::ShortWrite => Ok(SyscallBehavior::ShortWrite),
            InjectedFault::Nothing => Ok(SyscallBehavior::Normal),
            InjectedFault::Kill => {
                let _ =
                    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
                Ok(SyscallBehavior::Normal)
            }
        }
    }
}
