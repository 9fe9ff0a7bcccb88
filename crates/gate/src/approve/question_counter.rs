//! How many questions are open, so that a prompt can say "2 of 4".

use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;

/// Counts the questions of a round: those that are open, those that were answered, and calls that wait to be judged and
/// may become questions. A round ends when no question is open and no call waits.
#[derive(Debug, Default)]
pub struct QuestionCounter {
    counts: watch::Sender<QuestionCounts>,
}

/// The counts behind a [`QuestionCounter`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct QuestionCounts {
    open: usize,
    answered: usize,
    unjudged: usize,
}

/// The place of the question that is shown among those of its round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuestionPosition {
    /// Its number, from 1.
    pub number: usize,
    /// How many there are so far.
    pub total: usize,
    /// How many further calls are not judged yet, because each waits for one before it. Any of them may become a question.
    pub unjudged: usize,
}

impl QuestionPosition {
    /// Whether a question follows this one in its round, or may follow.
    pub fn has_next(self) -> bool {
        self.total > self.number || self.unjudged > 0
    }

    /// Whether the question is the only one of its round, and no call is left that could become another.
    pub fn is_only(self) -> bool {
        self.total <= 1 && self.unjudged == 0
    }
}

/// "question 2 of 4", or as much of it as is known while calls are not judged yet.
impl fmt::Display for QuestionPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, total, unjudged } = self;
        write!(f, "question {number}")?;
        match (unjudged, total > number) {
            (0, _) => write!(f, " of {total}"),
            (1, false) => write!(f, "; 1 further call is not judged yet"),
            (1, true) => write!(f, " of {total} so far; 1 further call is not judged yet"),
            (_, false) => write!(f, "; {unjudged} further calls are not judged yet"),
            (_, true) => write!(f, " of {total} so far; {unjudged} further calls are not judged yet"),
        }
    }
}

/// One question, or a call that may become one. Dropping it means that the question is answered, or that the call needs
/// none.
#[derive(Debug)]
pub struct QuestionTicket {
    counter: Arc<QuestionCounter>,
    is_open: bool,
}

impl QuestionCounter {
    /// Counts a question as open until the ticket is dropped.
    pub fn join(self: &Arc<Self>) -> QuestionTicket {
        self.counts.send_modify(|counts| counts.open += 1);
        QuestionTicket { counter: Arc::clone(self), is_open: true }
    }

    /// Counts a call that is not judged yet, until the ticket is opened as a question or dropped.
    pub fn expect_call(self: &Arc<Self>) -> QuestionTicket {
        self.counts.send_modify(|counts| counts.unjudged += 1);
        QuestionTicket { counter: Arc::clone(self), is_open: false }
    }

    /// The place of the question that is shown now. Questions are shown one at a time, so the ones that are answered
    /// come before it.
    pub fn position(&self) -> QuestionPosition {
        let QuestionCounts { open, answered, unjudged } = *self.counts.borrow();
        QuestionPosition { number: answered + 1, total: answered + open.max(1), unjudged }
    }

    /// Ends when the position may have changed.
    pub async fn changed(&self) {
        let mut receiver = self.counts.subscribe();
        // INVARIANT: the sender is `self`, so the channel is open.
        let _ = receiver.changed().await;
    }
}

impl QuestionTicket {
    /// The call became a question, which is open from now on.
    pub fn open(&mut self) {
        if !std::mem::replace(&mut self.is_open, true) {
            self.counter.counts.send_modify(|counts| {
                counts.unjudged = counts.unjudged.saturating_sub(1);
                counts.open += 1;
            });
        }
    }

    /// The question is not asked after all, so that it does not count as answered.
    pub fn withdraw(&mut self) {
        if std::mem::replace(&mut self.is_open, false) {
            self.counter.counts.send_modify(|counts| {
                counts.open = counts.open.saturating_sub(1);
                counts.unjudged += 1;
            });
        }
    }
}

impl Drop for QuestionTicket {
    fn drop(&mut self) {
        self.counter.counts.send_modify(|counts| {
            if self.is_open {
                counts.open = counts.open.saturating_sub(1);
                counts.answered += 1;
            } else {
                counts.unjudged = counts.unjudged.saturating_sub(1);
            }
            if counts.open == 0 && counts.unjudged == 0 {
                counts.answered = 0;
            }
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
            let QuestionPosition { number, total, .. } = counter.position();
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
    fn calls_that_are_not_judged_keep_a_round_open() {
        let counter = Arc::new(QuestionCounter::default());
        let position = || counter.position().to_string();
        let mut calls: Vec<QuestionTicket> = (0..4).map(|_| counter.expect_call()).collect();
        calls[0].open();
        assert_eq!(position(), "question 1; 3 further calls are not judged yet");
        calls[1].open();
        assert_eq!(position(), "question 1 of 2 so far; 2 further calls are not judged yet");
        calls.drain(..2);
        // The third needs no answer, and the number of questions so far stays.
        calls.remove(0);
        calls[0].open();
        calls[0].open();
        assert_eq!(position(), "question 3 of 3");
        assert!(!counter.position().is_only());
        calls.clear();
        let _next = counter.join();
        assert_eq!(position(), "question 1 of 1");
        assert!(counter.position().is_only());
        let _further = counter.expect_call();
        assert_eq!(position(), "question 1; 1 further call is not judged yet");
    }

    #[test]
    fn a_question_that_is_withdrawn_is_not_counted() {
        let counter = Arc::new(QuestionCounter::default());
        let position = || counter.position().to_string();
        let mut calls: Vec<QuestionTicket> = (0..3).map(|_| counter.join()).collect();
        calls.pop().unwrap().withdraw();
        assert_eq!(position(), "question 1 of 2");
        calls.pop();
        assert_eq!(position(), "question 2 of 2");
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
