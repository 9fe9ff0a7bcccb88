//! Stacks for processes that are cloned with `CLONE_VM`.

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::ffi::c_void;
use std::io;
use std::ptr::null_mut;

/// The stack of each cloned process: the largest buffer on it has 16 KiB.
const STACK_BYTES: usize = 128 * 1024;
/// The size of a guard page, below which a stack overflow is a segmentation fault instead of a silent overwrite.
const PAGE_BYTES: usize = 4096;
/// Memory for the stacks of the supervisor and of its first child, each above a guard page.
pub(super) struct CloneStacks {
    /// The start of the mapping: guard page, stack, guard page, stack.
    base: *mut c_void,
}

impl CloneStacks {
    /// The size of the whole mapping.
    const BYTES: usize = 2 * (STACK_BYTES + PAGE_BYTES);

    #[expect(unsafe_code, reason = "a cloned process needs a stack of its own")]
    /// Maps the memory.
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: a fresh private mapping to which nothing else has a pointer; the guard pages are inside it.
        unsafe {
            let base = mmap_anonymous(
                null_mut(),
                Self::BYTES,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )?;
            let stacks = Self { base };
            mprotect(base, PAGE_BYTES, MprotectFlags::empty())?;
            mprotect(base.byte_add(STACK_BYTES + PAGE_BYTES), PAGE_BYTES, MprotectFlags::empty())?;
            Ok(stacks)
        }
    }

    #[expect(unsafe_code, reason = "pointers into the mapping")]
    /// The upper ends of both stacks, because stacks grow downwards.
    pub(super) fn tops(&self) -> (*mut c_void, *mut c_void) {
        // SAFETY: both are inside the mapping, or one past its end, and are aligned to pages.
        unsafe { (self.base.byte_add(STACK_BYTES + PAGE_BYTES), self.base.byte_add(Self::BYTES)) }
    }
}

impl Drop for CloneStacks {
    #[expect(unsafe_code, reason = "unmaps the stacks")]
    fn drop(&mut self) {
        // SAFETY: the supervisor has ended, and its first child had executed its program or ended before that.
        let _ = unsafe { munmap(self.base, Self::BYTES) };
    }
}
