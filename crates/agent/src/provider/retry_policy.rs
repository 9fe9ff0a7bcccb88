//! When to ask a model again.

use super::model_error::{ModelError, ModelErrorKind};
use std::time::Duration;

/// The first wait; it doubles up to [`MAX_RETRY_DELAY`].
const MIN_RETRY_DELAY: Duration = Duration::from_millis(500);
/// The longest wait that we choose ourselves.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(8);
/// A service that wants us to wait longer than this gets its way only up to here.
const MAX_SERVICE_DELAY: Duration = Duration::from_secs(300);
/// How many attempts follow the first where the caller does not say.
const DEFAULT_MAX_RETRIES: u32 = 10;
/// How many attempts follow a refused connection: a server that restarts is back after a few seconds, one that was never
/// started is not.
const MAX_REFUSED_RETRIES: u32 = 3;

/// How often and how long after a failure a request is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// How many attempts follow the first.
    pub max_retries: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_retries: DEFAULT_MAX_RETRIES }
    }
}

impl RetryPolicy {
    /// Creates a policy of so many retries.
    pub fn new(max_retries: u32) -> Self {
        Self { max_retries }
    }

    /// How long to wait before the next attempt; `None` if there is none. `attempt` counts the failures so far, `random`
    /// is a random number from 0 to 1.
    pub fn delay(&self, error: &ModelError, attempt: u32, random: f64) -> Option<Duration> {
        let max_retries = match error.kind {
            // A stream that fell silent is repeated once: a server that hangs would cost the whole timeout each time.
            ModelErrorKind::Silent => self.max_retries.min(1),
            ModelErrorKind::NotListening => self.max_retries.min(MAX_REFUSED_RETRIES),
            _ => self.max_retries,
        };
        if attempt > max_retries || !error.is_retryable() {
            return None;
        }
        if let Some(wanted) = error.retry_after {
            return Some(wanted.min(MAX_SERVICE_DELAY));
        }
        let doubled = MIN_RETRY_DELAY.saturating_mul(1 << attempt.saturating_sub(1).min(10));
        // Up to a quarter less, so that many clients do not come back at the same moment.
        Some(doubled.min(MAX_RETRY_DELAY).mul_f64(1.0 - 0.25 * random.clamp(0.0, 1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_end() {
        let policy = RetryPolicy { max_retries: 6 };
        let error = ModelError::new(ModelErrorKind::Server, "x");
        let waits: Vec<Option<u128>> =
            (1..=7).map(|attempt| policy.delay(&error, attempt, 0.0).map(|wait| wait.as_millis())).collect();
        assert_eq!(waits, [Some(500), Some(1000), Some(2000), Some(4000), Some(8000), Some(8000), None]);
        assert_eq!(policy.delay(&error, 1, 1.0), Some(Duration::from_millis(375)));
        let silent = ModelError::new(ModelErrorKind::Silent, "x");
        assert!(policy.delay(&silent, 1, 0.0).is_some() && policy.delay(&silent, 2, 0.0).is_none());
        let refused = ModelError::new(ModelErrorKind::NotListening, "x");
        assert!(policy.delay(&refused, 3, 0.0).is_some() && policy.delay(&refused, 4, 0.0).is_none());
        let delayed = ModelError { retry_after: Some(Duration::from_secs(7200)), ..error };
        assert_eq!(policy.delay(&delayed, 1, 0.5), Some(MAX_SERVICE_DELAY));
    }
}
