//! Memory for a supervisor and for the process that it clones: both share toolgate's memory (`CLONE_VM`) and may not
//! allocate.

use super::descendants::{DescendantRow, DescendantTable};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::ffi::c_void;
use std::io;
use std::ptr::{NonNull, null_mut};
use std::sync::{Mutex, PoisonError};

/// The stack of each cloned process: the largest buffer on it has 16 KiB.
const STACK_BYTES: usize = 128 * 1024;
/// The size of a guard page, below which a stack overflow is a segmentation fault instead of a silent overwrite.
const PAGE_BYTES: usize = 4096;
/// Both stacks, each above a guard page.
const STACKS_BYTES: usize = 2 * (STACK_BYTES + PAGE_BYTES);
/// The rows of the table of processes.
const MAX_PROCESSES: usize = 32 * 1024;
/// How many mappings are kept for the next commands: their pages are mapped already, and a new mapping with its guard
/// pages takes as long as cloning a process.
const MAX_KEPT: usize = 4;

/// The stacks of a supervisor and of its first child, and the supervisor's table of processes. Pages that are never
/// touched take no memory: most supervisors never use the table.
pub(super) struct SupervisorMemory {
    /// The start of the mapping: guard page, stack, guard page, stack, table.
    base: NonNull<c_void>,
}

// SAFETY: the mapping belongs to this value alone, and is not tied to a thread.
#[expect(unsafe_code, reason = "a raw pointer to a mapping of its own")]
unsafe impl Send for SupervisorMemory {}

/// Mappings of supervisors that have ended.
static KEPT: Mutex<Vec<SupervisorMemory>> = Mutex::new(Vec::new());

impl SupervisorMemory {
    /// The size of the whole mapping.
    const BYTES: usize = STACKS_BYTES + MAX_PROCESSES * size_of::<DescendantRow>();

    /// Takes a mapping of a supervisor that has ended, or maps new memory.
    pub(super) fn take() -> io::Result<Self> {
        let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.map_or_else(Self::map, Ok)
    }

    /// Keeps the mapping for the next supervisor. Only when the supervisor and its first child use it no more.
    pub(super) fn keep(self) {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MAX_KEPT {
            kept.push(self);
        }
    }

    #[expect(unsafe_code, reason = "a cloned process needs a stack of its own")]
    /// Maps new memory.
    fn map() -> io::Result<Self> {
        // SAFETY: a fresh private mapping to which nothing else has a pointer; the guard pages are inside it.
        unsafe {
            let base = mmap_anonymous(
                null_mut(),
                Self::BYTES,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )?;
            let memory = Self { base: NonNull::new(base).ok_or(io::ErrorKind::OutOfMemory)? };
            mprotect(base, PAGE_BYTES, MprotectFlags::empty())?;
            mprotect(base.byte_add(STACK_BYTES + PAGE_BYTES), PAGE_BYTES, MprotectFlags::empty())?;
            Ok(memory)
        }
    }

    #[expect(unsafe_code, reason = "pointers into the mapping")]
    /// The upper ends of the stacks of the supervisor and of its first child, because stacks grow downwards.
    pub(super) fn stack_tops(&self) -> (*mut c_void, *mut c_void) {
        let base = self.base.as_ptr();
        // SAFETY: both are inside the mapping, and are aligned to pages.
        unsafe { (base.byte_add(STACK_BYTES + PAGE_BYTES), base.byte_add(STACKS_BYTES)) }
    }

    #[expect(unsafe_code, reason = "a slice of the mapping")]
    /// The table of processes, in the memory above the stacks.
    pub(super) fn descendants(&mut self) -> DescendantTable<'_> {
        // SAFETY: the memory above the stacks is inside the mapping, aligned to pages, and used for nothing else; plain
        // numbers are valid whatever the pages contain.
        let rows = unsafe {
            std::slice::from_raw_parts_mut(self.base.as_ptr().byte_add(STACKS_BYTES).cast(), MAX_PROCESSES)
        };
        DescendantTable::new(rows)
    }
}

impl Drop for SupervisorMemory {
    #[expect(unsafe_code, reason = "unmaps the memory")]
    fn drop(&mut self) {
        // SAFETY: the supervisor has ended or was never cloned, and its first child had executed its program or ended
        // before that.
        let _ = unsafe { munmap(self.base.as_ptr(), Self::BYTES) };
    }
}
