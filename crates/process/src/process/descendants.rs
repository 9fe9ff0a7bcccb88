//! Finding and signalling every descendant of the supervisor.
//!
//! This runs in the supervisor, which may outlive a toolgate that was killed while one of its threads held the
//! allocator's lock.
//! INVARIANT: nothing here allocates or takes a lock.

use rustix::fs::{CWD, Mode, OFlags, RawDir, openat};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

/// The processes of the machine with their parents, read again in each pass.
pub(super) struct DescendantTable<'m> {
    /// Memory that was mapped before the supervisor was cloned. With more processes on the machine than rows, each pass
    /// sees only the first ones.
    rows: &'m mut [DescendantRow],
    /// Rows in use.
    count: usize,
}

/// A [`ProcessRow`] as plain numbers, for which zero pages are valid memory.
pub(super) type DescendantRow = [i32; 3];

/// One row of the table.
#[derive(Clone, Copy)]
struct ProcessRow {
    pid: i32,
    /// The parent process id when the row was read; reparenting changes it.
    parent: i32,
    mark: ProcessMark,
}

/// What is known about a process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProcessMark {
    /// Not known to be a descendant.
    Unrelated,
    /// A descendant of the supervisor that has not been signalled in this pass.
    Descendant,
    /// A descendant that has been signalled already.
    Signalled,
    /// Exited and not reaped; it needs no signal.
    Zombie,
}

impl ProcessRow {
    /// Encodes the row as numbers.
    fn to_row(self) -> DescendantRow {
        let mark = match self.mark {
            ProcessMark::Unrelated => 0,
            ProcessMark::Descendant => 1,
            ProcessMark::Zombie => 2,
            ProcessMark::Signalled => 3,
        };
        [self.pid, self.parent, mark]
    }

    /// Decodes the row; unknown marks count as unrelated.
    fn from_row([pid, parent, mark]: DescendantRow) -> Self {
        let mark = match mark {
            1 => ProcessMark::Descendant,
            2 => ProcessMark::Zombie,
            3 => ProcessMark::Signalled,
            _ => ProcessMark::Unrelated,
        };
        Self { pid, parent, mark }
    }
}

/// The fields of `/proc/PID/stat` that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProcStat {
    /// One letter; `Z` is a zombie.
    state: u8,
    /// The parent process id.
    parent: i32,
}

impl<'m> DescendantTable<'m> {
    /// An empty table in this memory.
    pub(super) fn new(rows: &'m mut [DescendantRow]) -> Self {
        Self { rows, count: 0 }
    }

    /// Sends a signal to every living descendant of `root`, and returns how many there were.
    pub(super) fn signal(&mut self, root: i32, signal: Signal) -> usize {
        let mut sent = self.scan_processes(root, signal);
        self.mark_descendants(root);
        for row in self.rows.iter().take(self.count) {
            let seen = ProcessRow::from_row(*row);
            if seen.mark == ProcessMark::Descendant {
                sent += 1;
                send_signal(seen, root, signal);
            }
        }
        sent
    }

    /// Reads the table, and signals direct children as soon as they are read: a process that forks and exits in a loop is
    /// always reparented to the supervisor, and would escape during the rest of the pass.
    fn scan_processes(&mut self, root: i32, signal: Signal) -> usize {
        self.count = 0;
        let mut sent = 0;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(proc) = openat(CWD, c"/proc", flags, Mode::empty()) else { return 0 };
        let mut buffer = [const { MaybeUninit::<u8>::uninit() }; 16 * 1024];
        let mut entries = RawDir::new(&proc, &mut buffer);
        while let Some(Ok(entry)) = entries.next() {
            let Some(pid) = parse_number(entry.file_name().to_bytes()) else { continue };
            let Some(stat) = read_stat(&proc, pid) else { continue };
            let Some(slot) = self.rows.get_mut(self.count) else { break };
            let mark = if stat.state == b'Z' { ProcessMark::Zombie } else { ProcessMark::Unrelated };
            let mut seen = ProcessRow { pid, parent: stat.parent, mark };
            if stat.parent == root && mark == ProcessMark::Unrelated {
                send_signal(seen, root, signal);
                sent += 1;
                seen.mark = ProcessMark::Signalled;
            }
            *slot = seen.to_row();
            self.count += 1;
        }
        if let Some(seen) = self.rows.get_mut(..self.count) {
            seen.sort_unstable();
        }
        sent
    }

    /// A process is a descendant if its parent is `root` or a descendant.
    /// A zombie has no children: they were reparented to the supervisor.
    fn mark_descendants(&mut self, root: i32) {
        let Some(rows) = self.rows.get_mut(..self.count) else { return };
        let mut changed = true;
        while changed {
            changed = false;
            for index in 0..rows.len() {
                let Some(process) = rows.get(index).copied().map(ProcessRow::from_row) else { continue };
                if process.mark != ProcessMark::Unrelated {
                    continue;
                }
                let parent = rows.binary_search_by_key(&process.parent, |[pid, ..]| *pid).ok();
                let has_descendant_parent = parent.and_then(|at| rows.get(at)).is_some_and(|parent| {
                    matches!(
                        ProcessRow::from_row(*parent).mark,
                        ProcessMark::Descendant | ProcessMark::Signalled
                    )
                });
                if (process.parent == root || has_descendant_parent)
                    && let Some(slot) = rows.get_mut(index)
                {
                    *slot = ProcessRow { mark: ProcessMark::Descendant, ..process }.to_row();
                    changed = true;
                }
            }
        }
    }
}

/// Signals a process through a pidfd, checked after it was opened, because a process id can be reused.
fn send_signal(seen: ProcessRow, root: i32, signal: Signal) {
    let Some(pid) = Pid::from_raw(seen.pid) else { return };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let is_unchanged = openat(CWD, c"/proc", flags, Mode::empty())
                .ok()
                .and_then(|proc| read_stat(&proc, seen.pid))
                .is_some_and(|stat| stat.parent == seen.parent || stat.parent == root);
            if is_unchanged {
                let _ = pidfd_send_signal(&pidfd, signal);
            }
        }
        Err(rustix::io::Errno::NOSYS) => {
            let _ = kill_process(pid, signal);
        }
        // The process has been reaped.
        Err(_) => {}
    }
}

/// Reads the state and the parent of a process; `None` if it has been reaped.
fn read_stat(proc: &OwnedFd, pid: i32) -> Option<ProcStat> {
    let mut path = [0u8; 32];
    let path = stat_path(pid, &mut path)?;
    let file = openat(proc, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut text = [0u8; 512];
    let length = rustix::io::read(&file, &mut text[..]).ok()?;
    parse_stat(text.get(..length)?)
}

/// `PID/stat` as a C string in the given buffer.
fn stat_path(pid: i32, buffer: &mut [u8; 32]) -> Option<&CStr> {
    let mut digits = [0u8; 12];
    let mut rest = u32::try_from(pid).ok()?;
    let mut count = 0;
    loop {
        *digits.get_mut(count)? = b'0' + u8::try_from(rest % 10).ok()?;
        count += 1;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    for (slot, digit) in buffer.iter_mut().zip(digits.get(..count)?.iter().rev()) {
        *slot = *digit;
    }
    for (slot, byte) in buffer.get_mut(count..)?.iter_mut().zip(b"/stat\0") {
        *slot = *byte;
    }
    CStr::from_bytes_until_nul(buffer).ok()
}

/// The name of a process may contain spaces and brackets; the fields start after its last bracket.
fn parse_stat(text: &[u8]) -> Option<ProcStat> {
    let after = text.iter().rposition(|byte| *byte == b')')? + 2;
    let mut fields = text.get(after..)?.split(|byte| *byte == b' ');
    let state = *fields.next()?.first()?;
    Some(ProcStat { state, parent: parse_number(fields.next()?)? })
}

/// Parses a decimal number without allocating.
fn parse_number(digits: &[u8]) -> Option<i32> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0i32, |sum, digit| {
        let digit = digit.is_ascii_digit().then(|| i32::from(*digit - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_brackets_is_skipped() {
        let parsed = parse_stat(b"42 (a) S 1 (x) R 7 42 42 0");
        assert_eq!(parsed, Some(ProcStat { state: b'R', parent: 7 }));
        assert_eq!(parse_stat(b"42 (a"), None);
        assert_eq!(parse_stat(b""), None);
    }

    #[test]
    fn paths_are_formatted_without_allocating() {
        for pid in [1, 7, 10, 4_194_304, i32::MAX] {
            let mut buffer = [0; 32];
            assert_eq!(stat_path(pid, &mut buffer).unwrap().to_str().unwrap(), format!("{pid}/stat"));
        }
        assert_eq!(parse_number(b"self"), None);
        assert_eq!(parse_number(b"99999999999"), None);
    }

    #[test]
    fn grandchildren_are_found_through_their_parents() {
        let mut rows = [[0; 3]; 5];
        let mut table = DescendantTable::new(&mut rows);
        for (index, (pid, parent)) in [(5, 1), (6, 9), (7, 5), (8, 2), (9, 7)].into_iter().enumerate() {
            table.rows[index] = ProcessRow { pid, parent, mark: ProcessMark::Unrelated }.to_row();
        }
        table.count = 5;
        table.mark_descendants(5);
        let descendants: Vec<i32> = table.rows[..5]
            .iter()
            .map(|row| ProcessRow::from_row(*row))
            .filter(|seen| seen.mark == ProcessMark::Descendant)
            .map(|seen| seen.pid)
            .collect();
        assert_eq!(descendants, [6, 7, 9]);
    }
}
