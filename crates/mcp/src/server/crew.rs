//! A second pair of hands.
//!
//! Over standard streams one thread serves: a call that comes alone runs where it arrives, without a hop.
//! When many arrive together, that thread keeps to reading and answering, and most of the calls are made by another.
//!
//! Only calls that read are handed over, and calls still begin in the order in which they arrived: one that may change
//! something waits until those before it have begun, and those after it wait for that. A client that sends a read and
//! an edit of the same file without waiting finds the edit made after the read, as with one thread.

use futures_util::FutureExt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedRwLockReadGuard, RwLock, oneshot};
use tokio_util::sync::CancellationToken;
use toolgate_files::available_cores;
use toolgate_process::BackgroundWorkGuard;

/// With fewer calls than this at once, waking another thread costs more than it saves.
const ENOUGH: usize = 4;
/// Of so many calls one is made by the thread that also reads and answers.
const KEPT: usize = 6;
/// A tool that does not end must not keep the program.
const LEAVING: Duration = Duration::from_millis(100);

/// Begins something on the other thread. What that needs is made there: memory of one thread that another gives back
/// costs both.
type Job = Box<dyn FnOnce() + Send>;
/// Hands what came of it to whoever waits for it, on the thread where that is.
type Delivery = Box<dyn FnOnce() + Send>;

/// Who makes the calls of one connection.
#[derive(Default)]
pub(super) struct Crew {
    /// Messages that were read together, less the calls that were begun since.
    at_hand: AtomicUsize,
    begun: AtomicUsize,
    /// Held by calls that were handed over until they have begun. It is fair, and so keeps the order of arrival.
    order: Arc<RwLock<()>>,
    helper: Mutex<Helper>,
}

/// Held until the call has begun.
pub(super) type Turn = OwnedRwLockReadGuard<()>;

/// The other thread, as far as it is there.
#[derive(Default)]
enum Helper {
    /// Not wanted, or not to be had.
    #[default]
    None,
    /// Comes when it is first needed.
    OnCall,
    Here(Hand),
}

struct Hand {
    desk: Desk,
    over: CancellationToken,
    left: Receiver<()>,
}

/// Where jobs are left for the other thread. A thread is woken once for all that lies there, and so is the one that
/// waits for what came of them.
#[derive(Clone)]
pub(super) struct Desk {
    jobs: UnboundedSender<Job>,
    done: UnboundedSender<Delivery>,
}

/// While this is held, the crew may have help. Then the helper leaves, and what it had under way is given up.
pub(super) struct Shift<'a>(&'a Crew);

impl Crew {
    /// Lets calls be handed over from now on, where there is a processor for it.
    pub(super) fn shift(&self) -> Shift<'_> {
        if available_cores() > 1 {
            *self.helper() = Helper::OnCall;
        }
        Shift(self)
    }

    /// So many messages were read together.
    pub(super) fn read(&self, messages: usize) {
        self.at_hand.store(messages, Ordering::Relaxed);
    }

    /// Waits until those calls have begun that must begin before this one.
    pub(super) async fn turn(&self, only_reads: bool) -> Option<Turn> {
        if only_reads {
            return Some(Arc::clone(&self.order).read_owned().await);
        }
        drop(self.order.write().await);
        None
    }

    /// A call begins. Says where to leave it, if another thread is to make it.
    pub(super) fn begin(&self, only_reads: bool) -> Option<Desk> {
        let fewer = |at_hand: usize| at_hand.checked_sub(1);
        let at_hand = self.at_hand.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer).unwrap_or(0);
        let begun = self.begun.fetch_add(1, Ordering::Relaxed);
        if at_hand < ENOUGH || begun.is_multiple_of(KEPT) || !only_reads {
            return None;
        }
        let mut helper = self.helper();
        if let Helper::OnCall = *helper {
            *helper = Hand::hire().map_or(Helper::None, Helper::Here);
        }
        match &*helper {
            Helper::Here(hand) => Some(hand.desk.clone()),
            Helper::None | Helper::OnCall => None,
        }
    }

    fn helper(&self) -> MutexGuard<'_, Helper> {
        self.helper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hand {
    /// `None` where there is no thread to be had: then all is done by one. Must be called inside a runtime.
    fn hire() -> Option<Self> {
        let mut runtime = Unstarted(Builder::new_current_thread().enable_all().build().ok());
        let (over, (leaving, left)) = (CancellationToken::new(), channel());
        let ((jobs, taken), (done, delivered)) = (unbounded_channel(), unbounded_channel());
        let called_off = over.clone();
        let thread = std::thread::Builder::new().name("toolgate-crew".to_owned());
        thread
            .spawn(move || {
                let Some(runtime) = runtime.0.take() else { return };
                runtime.block_on(called_off.run_until_cancelled(take(taken)));
                runtime.shutdown_timeout(LEAVING);
                // Nobody may be waiting any more.
                let _ = leaving.send(());
            })
            .ok()?;
        tokio::spawn(deliver(delivered));
        Some(Self { desk: Desk { jobs, done }, over, left })
    }
}

/// A runtime on its way to its thread. Where that cannot be had it is dropped inside another runtime, which must not wait.
struct Unstarted(Option<Runtime>);

impl Drop for Unstarted {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

async fn take(mut jobs: UnboundedReceiver<Job>) {
    while let Some(begin) = jobs.recv().await {
        begin();
    }
}

async fn deliver(mut done: UnboundedReceiver<Delivery>) {
    while let Some(deliver) = done.recv().await {
        deliver();
    }
}

impl Drop for Shift<'_> {
    fn drop(&mut self) {
        if let Helper::Here(hand) = std::mem::take(&mut *self.0.helper()) {
            hand.over.cancel();
            // What it had under way ends with it: processes, files half written. That takes a moment.
            let _ = hand.left.recv_timeout(LEAVING * 2);
        }
    }
}

impl Desk {
    /// Has something done by the other thread. `None` if that left before it was done.
    pub(super) async fn done<T, F>(
        self,
        turn: Option<Turn>,
        work: impl FnOnce() -> F + Send + 'static,
    ) -> Option<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let Self { jobs, done } = self;
        let (told, heard) = oneshot::channel();
        let _elsewhere = BackgroundWorkGuard::begin();
        let begin = move || {
            tokio::spawn(async move {
                let came = AssertUnwindSafe(begun(turn, work())).catch_unwind().await;
                // Whoever waits may have gone.
                let _ = done.send(Box::new(move || drop(told.send(came))));
            });
        };
        jobs.send(Box::new(begin)).ok()?;
        match heard.await {
            Ok(Ok(done)) => Some(done),
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => None,
        }
    }
}

/// Gives the turn back when the work has first been gone about.
async fn begun<T>(mut turn: Option<Turn>, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|context| {
        let polled = work.as_mut().poll(context);
        turn = None;
        polled
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    /// How many of so many calls that came together are handed over.
    fn handed(crew: &Crew, calls: usize, only_reads: bool) -> usize {
        crew.read(calls);
        (0..calls).filter(|_| crew.begin(only_reads).is_some()).count()
    }

    #[tokio::test]
    async fn only_calls_that_read_and_come_together_are_handed_over() {
        let crew = Crew::default();
        assert_eq!(handed(&crew, 64, true), 0, "nobody was asked to help");
        let shift = crew.shift();
        assert_eq!(handed(&crew, 64, false), 0);
        assert!(matches!(*crew.helper(), Helper::OnCall | Helper::None), "a thread that nobody needs");
        assert_eq!((0..8).map(|_| handed(&crew, 1, true)).sum::<usize>(), 0);
        let many = handed(&crew, 64, true);
        if available_cores() > 1 {
            assert!((32..64).contains(&many), "{many}");
        } else {
            assert_eq!(many, 0);
        }
        drop(shift);
        assert_eq!(handed(&crew, 64, true), 0, "the helper has left");
    }

    /// Says when it is dropped.
    struct Tells(Arc<AtomicBool>);

    impl Drop for Tells {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    #[tokio::test]
    async fn what_is_under_way_ends_when_the_helper_leaves() {
        let hand = Hand::hire().unwrap();
        let desk = hand.desk.clone();
        assert_eq!(
            desk.clone()
                .done(None, || async { std::thread::current().name().unwrap().to_owned() })
                .await
                .unwrap(),
            "toolgate-crew"
        );
        let (ended, (begun, began)) = (Arc::<AtomicBool>::default(), oneshot::channel());
        let tells = Tells(Arc::clone(&ended));
        let waiting = tokio::spawn(desk.clone().done(None, move || async move {
            let _tells = tells;
            let _ = begun.send(());
            std::future::pending::<()>().await;
        }));
        began.await.unwrap();
        let crew = Crew::default();
        *crew.helper() = Helper::Here(hand);
        drop(Shift(&crew));
        for _ in 0..1_000 {
            if ended.load(Ordering::SeqCst) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(ended.load(Ordering::SeqCst), "the helper has left, and it goes on");
        assert_eq!(waiting.await.unwrap(), None);
        assert_eq!(desk.done(None, || async {}).await, None);
    }

    #[tokio::test]
    async fn a_panic_is_one_where_it_is_waited_for() {
        let hand = Hand::hire().unwrap();
        let failed = tokio::spawn(hand.desk.clone().done(None, || async { panic!("as meant") })).await;
        assert!(failed.unwrap_err().is_panic());
        assert_eq!(hand.desk.done(None, || async { 7 }).await, Some(7), "the helper goes on");
    }

    /// Whoever may change something begins after what was handed over before it, and before what comes after it.
    #[tokio::test]
    async fn calls_begin_in_the_order_in_which_they_arrive() {
        let crew = Arc::new(Crew::default());
        let hand = Hand::hire().unwrap();
        let order = Arc::<Mutex<Vec<&str>>>::default();
        let said = |word| order.lock().unwrap().push(word);
        let first = crew.turn(true).await;
        let (change, then) = (crew.turn(false), crew.turn(true));
        tokio::pin!(change, then);
        assert!(futures_util::poll!(&mut change).is_pending());
        assert!(futures_util::poll!(&mut then).is_pending(), "nobody gets ahead of it");
        let (handed, never) = (Arc::clone(&order), std::future::pending::<()>());
        let under_way = tokio::spawn(hand.desk.clone().done(first, move || async move {
            handed.lock().unwrap().push("read");
            never.await;
        }));
        change.await;
        said("change");
        then.await;
        said("then");
        assert_eq!(*order.lock().unwrap(), ["read", "change", "then"]);
        under_way.abort();
    }
}
