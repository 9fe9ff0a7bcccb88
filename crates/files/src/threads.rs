//! Threads for work that can be shared out, where the system has any to give.

use std::sync::OnceLock;
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// How many threads can run at once here.
pub fn available_cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Does something on a thread of its own. `None` where there is no thread to be had: then it was not begun, and
/// whoever asked does it alone. `Scope::spawn` would panic, and limits on threads are nothing unusual.
pub fn try_spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Option<ScopedJoinHandle<'scope, T>> {
    Builder::new().spawn_scoped(scope, work).ok()
}

/// More threads than this wait for the same locks of the system.
const MAX_THREADS: usize = 4;

/// Does the same for each of several things, and gives what came of it in their order.
/// Where there are `many`, several threads do it.
pub fn parallel_map<T: Sync, R: Send>(things: &[T], many: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let some = |things: &[T]| things.iter().map(&work).collect::<Vec<_>>();
    let threads = available_cores().min(MAX_THREADS);
    if things.len() < many || threads == 1 {
        return some(things);
    }
    let (mine, others) = things.split_at(things.len() / threads);
    std::thread::scope(|scope| {
        let others = others.chunks(others.len().div_ceil(threads - 1));
        let others: Vec<_> = others.map(|chunk| (chunk, try_spawn_scoped(scope, || some(chunk)))).collect();
        let mut all = some(mine);
        for (chunk, other) in others {
            all.extend(match other {
                Some(other) => other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                None => some(chunk),
            });
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use toolgate_proto::AbsPath;

    const INSIDE: &str = "TOOLGATE_TEST_NO_THREADS";

    /// A stack larger than all memory is not to be had, and so no thread: said before the program starts, because it is
    /// read once. One test at a time, because that one needs no thread.
    #[test]
    fn where_no_thread_can_be_had_work_is_done_alone() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "threads::tests::alone", "--test-threads=1", "--nocapture"]);
        let done = child.env(INSIDE, "1").env("RUST_MIN_STACK", (1_u64 << 50).to_string()).output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && said.contains("alone indeed"), "{done:?}");
    }

    #[test]
    fn alone() {
        if std::env::var_os(INSIDE).is_none() {
            return;
        }
        assert!(std::thread::scope(|scope| try_spawn_scoped(scope, || ()).is_none()));
        let paths: Vec<AbsPath> = (0..500).map(|n| AbsPath::root().join(format!("no-such-{n}"))).collect();
        let asked: Vec<AbsPath> = crate::resolve_all(&paths).into_iter().map(|fact| fact.asked).collect();
        assert_eq!(asked, paths);
        println!("alone indeed");
    }
}
