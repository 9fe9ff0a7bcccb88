//! How many questions are open, so that a prompt can say "2 of 4".

use std::sync::Arc;
use tokio::sync::watch;

/// Counts questions: those that are open, and those that were answered since none was open.
#[derive(Debug, Default)]
pub struct QuestionCounter {
    counts: watch::Sender<QuestionCounts>,
}

/// The counts behind a [`QuestionCounter`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct QuestionCounts {
    open: usize,
    answered: usize,
}

/// The place of the question that is shown among those of its round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuestionPosition {
    /// Its number, from 1.
    pub number: usize,
    /// How many there are so far.
    pub total: usize,
}

/// One open question. Dropping it means that the question is answered or withdrawn.
#[derive(Debug)]
pub struct QuestionTicket(Arc<QuestionCounter>);

impl QuestionCounter {
    /// Counts a question as open until the ticket is dropped.
    pub fn join(self: &Arc<Self>) -> QuestionTicket {
        self.counts.send_modify(|counts| counts.open += 1);
        QuestionTicket(Arc::clone(self))
    }

    /// The place of the question that is shown now. Questions are shown one at a time, so the ones that are answered
    /// come before it.
    pub fn position(&self) -> QuestionPosition {
        let QuestionCounts { open, answered } = *self.counts.borrow();
        QuestionPosition { number: answered + 1, total: answered + open.max(1) }
    }

    /// Ends when the position may have changed.
    pub async fn changed(&self) {
        let mut receiver = self.counts.subscribe();
        // INVARIANT: the sender is `self`, so the channel is open.
        let _ = receiver.changed().await;
    }
}

impl Drop for QuestionTicket {
    fn drop(&mut self) {
        self.0.counts.send_modify(|counts| {
            counts.open = counts.open.saturating_sub(1);
            counts.answered = if counts.open == 0 { 0 } else { counts.answered + 1 };
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_ends_when_no_question_is_open() {
        let counter = Arc::new(QuestionCounter::default());
        let position = || {
            let QuestionPosition { number, total } = counter.position();
            (number, total)
        };
        let mut tickets: Vec<QuestionTicket> = (0..3).map(|_| counter.join()).collect();
        assert_eq!(position(), (1, 3));
        tickets.pop();
        assert_eq!(position(), (2, 3));
        tickets.push(counter.join());
        assert_eq!(position(), (2, 4));
        tickets.clear();
        let _next = counter.join();
        assert_eq!(position(), (1, 1));
    }
    #[test]
    fn a_change_is_waited_for() {
        use futures_util::FutureExt;
        let counter = Arc::new(QuestionCounter::default());
        let mut changed = Box::pin(counter.changed());
        assert!((&mut changed).now_or_never().is_none(), "nothing has changed");
        let ticket = counter.join();
        assert!((&mut changed).now_or_never().is_some());
        let mut changed = Box::pin(counter.changed());
        assert!((&mut changed).now_or_never().is_none());
        drop(ticket);
        assert!((&mut changed).now_or_never().is_some());
    }
}
