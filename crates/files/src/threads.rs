//! Parallel work on scoped threads, with the calling thread as fallback when no thread can be started.

use std::sync::OnceLock;
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// How many threads can run at the same time in this process. Read once, because it takes several system calls.
pub fn available_cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Runs work on a new thread. `None` if no thread can be started; then the work has not run, and the caller does it
/// itself. `Scope::spawn` would panic instead, and containers often limit the number of threads.
pub fn try_spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Option<ScopedJoinHandle<'scope, T>> {
    Builder::new().spawn_scoped(scope, work).ok()
}

/// With more threads, file system calls spend their time waiting for the same locks of the kernel.
const MAX_THREADS: usize = 4;

/// Maps each item, and returns the results in the order of the items. From `min_parallel` items on, on several threads.
pub fn parallel_map<T: Sync, R: Send>(
    items: &[T],
    min_parallel: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let map_chunk = |items: &[T]| items.iter().map(&work).collect::<Vec<_>>();
    let threads = available_cores().min(MAX_THREADS);
    if items.len() < min_parallel || threads == 1 {
        return map_chunk(items);
    }
    let (own_chunk, rest) = items.split_at(items.len() / threads);
    std::thread::scope(|scope| {
        let chunks = rest.chunks(rest.len().div_ceil(threads - 1));
        let workers: Vec<_> =
            chunks.map(|chunk| (chunk, try_spawn_scoped(scope, || map_chunk(chunk)))).collect();
        let mut results = map_chunk(own_chunk);
        for (chunk, worker) in workers {
            results.extend(match worker {
                Some(worker) => worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                None => map_chunk(chunk),
            });
        }
        results
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use toolgate_proto::AbsPath;

    /// Set for the child process of the test.
    const CHILD_VARIABLE: &str = "TOOLGATE_TEST_NO_THREADS";

    /// A child process in which no thread can be started, because the stack size of threads exceeds the address space.
    /// `--test-threads=1` lets the test itself run without a thread.
    #[test]
    fn work_runs_on_the_calling_thread_if_no_thread_can_be_started() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "threads::tests::run_without_threads", "--test-threads=1", "--nocapture"]);
        let output =
            child.env(CHILD_VARIABLE, "1").env("RUST_MIN_STACK", (1_u64 << 50).to_string()).output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && stdout.contains("ran without threads"), "{output:?}");
    }

    /// The child process of the test above. Does nothing in a normal test run.
    #[test]
    fn run_without_threads() {
        if std::env::var_os(CHILD_VARIABLE).is_none() {
            return;
        }
        assert!(std::thread::scope(|scope| try_spawn_scoped(scope, || ()).is_none()));
        let paths: Vec<AbsPath> = (0..500).map(|n| AbsPath::root().join(format!("no-such-{n}"))).collect();
        let asked: Vec<AbsPath> = crate::resolve_all(&paths).into_iter().map(|fact| fact.asked).collect();
        assert_eq!(asked, paths);
        println!("ran without threads");
    }
}
