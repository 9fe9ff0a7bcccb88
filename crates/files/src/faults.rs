//! Fault injection into system calls, for tests.
//!
//! Every call in `sys` passes a fault point first.
//! A test installs a `FaultPlan` for its thread, which makes the nth point fail, write less than requested, or kill the
//! process.
//! Without the feature `faults` (and outside this crate's tests) a fault point compiles to nothing.

#[cfg(any(test, feature = "faults"))]
pub use injection::{FaultPlan, InjectedFault, with_fault_plan};
#[cfg(any(test, feature = "faults"))]
pub(crate) use injection::{check_fault_point, inherit_fault_plan};

/// How a system call is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyscallBehavior {
    /// As requested.
    Normal,
    /// With only a part of the bytes, as the kernel may do with any write.
    #[cfg_attr(not(any(test, feature = "faults")), expect(dead_code, reason = "only tests request it"))]
    ShortWrite,
}

/// The fault point of a build without fault injection.
#[cfg(not(any(test, feature = "faults")))]
#[inline(always)]
pub(crate) fn check_fault_point(_call: &'static str) -> Result<SyscallBehavior, rustix::io::Errno> {
    Ok(SyscallBehavior::Normal)
}

/// Work that is passed to another thread, in a build without fault injection: the work itself.
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

    /// What happens at the fault point of a plan.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum InjectedFault {
        /// The system call fails with this `errno`.
        Errno(i32),
        /// A write accepts only a part of the bytes.
        ShortWrite,
        /// The process is killed before the system call.
        Kill,
        /// Nothing: the fault points are only counted.
        Nothing,
    }

    /// A fault at the nth fault point, counted from 0. It occurs once.
    #[derive(Debug)]
    pub struct FaultPlan {
        /// At which fault point.
        at: usize,
        /// What happens there.
        fault: InjectedFault,
        /// How many fault points were passed.
        seen: AtomicUsize,
        /// The system calls that were made, by name.
        calls: Mutex<Vec<&'static str>>,
    }

    impl FaultPlan {
        /// A plan for one fault.
        pub fn new(at: usize, fault: InjectedFault) -> Arc<Self> {
            Arc::new(Self { at, fault, seen: AtomicUsize::new(0), calls: Mutex::new(Vec::new()) })
        }

        /// The names of the system calls that were made, in order.
        pub fn calls(&self) -> Vec<&'static str> {
            self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
        }
    }

    thread_local! {
        /// The plan of this thread.
        static PLAN: RefCell<Option<Arc<FaultPlan>>> = const { RefCell::new(None) };
    }

    /// Runs `work` with a plan. The plan also applies on threads to which this crate passes work.
    pub fn with_fault_plan<T>(plan: &Arc<FaultPlan>, work: impl FnOnce() -> T) -> T {
        let previous = PLAN.replace(Some(Arc::clone(plan)));
        let output = work();
        PLAN.set(previous);
        output
    }

    /// Work that is passed to another thread, with the plan of this one.
    pub(crate) fn inherit_fault_plan<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
        let plan = current_plan();
        move || match plan {
            Some(plan) => with_fault_plan(&plan, work),
            None => work(),
        }
    }

    /// The faults that this thread injects, in tests.
    fn current_plan() -> Option<Arc<FaultPlan>> {
        PLAN.with_borrow(Clone::clone)
    }

    /// Counts a fault point, and causes the fault of the plan if it is there.
    pub(crate) fn check_fault_point(call: &'static str) -> Result<SyscallBehavior, Errno> {
        let Some(plan) = current_plan() else { return Ok(SyscallBehavior::Normal) };
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
