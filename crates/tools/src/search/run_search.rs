//! Runs a blocking search on a thread of the runtime's blocking pool.
//!
//! A search reads thousands of files with blocking system calls. On an async worker thread it would delay every other
//! call of the process.

use toolgate_gate::Cleared;
use toolgate_search::{SearchProblem, SearchStopFlag};

/// Runs a search where blocking is fine. It stops when the call is cancelled or its future is dropped.
pub(crate) async fn run_search<T: Send + 'static>(
    cleared: &Cleared,
    work: impl FnOnce(&SearchStopFlag) -> Result<T, SearchProblem> + Send + 'static,
) -> Result<T, SearchProblem> {
    /// Dropping a `spawn_blocking` handle does not end its thread; the flag does.
    struct StopOnDrop(SearchStopFlag);
    impl Drop for StopOnDrop {
        /// Sets the stop flag, which the search polls.
        fn drop(&mut self) {
            self.0.stop();
        }
    }

    let stop = SearchStopFlag::default();
    let _stop_on_drop = StopOnDrop(stop.clone());
    let search = tokio::task::spawn_blocking(move || work(&stop));
    tokio::select! {
        biased;
        () = cleared.cancel().cancelled() => Err(SearchProblem::Stopped),
        joined = search => match joined {
            Ok(result) => result,
            // The gate catches panics of a tool and reports them as such.
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(SearchProblem::Stopped),
            },
        },
    }
}
