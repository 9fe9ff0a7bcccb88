//! A rate limit for each host (a token bucket), so that a loop of a model does not become an attack on a server.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Hosts that are remembered; the one that was asked longest ago is forgotten first.
const MAX_PACED_HOSTS: usize = 1_000;

/// Counts requests per host: a bucket of `burst` requests that fills up at `per_minute`.
#[derive(Debug)]
pub(super) struct HostPace {
    /// How many requests come back in a minute.
    per_minute: u32,
    /// How many may be made at once.
    burst: u32,
    /// The buckets by host.
    hosts: HashMap<String, PaceBucket>,
}

/// The requests that a host has left, and when that was counted.
#[derive(Debug, Clone, Copy)]
struct PaceBucket {
    /// Requests that are left, in fractions.
    left: f64,
    /// When that was counted.
    at: Instant,
}

impl HostPace {
    /// A pace; 0 per minute means no limit.
    pub(super) fn new(per_minute: u32) -> Self {
        Self { per_minute, burst: per_minute.min(10), hosts: HashMap::new() }
    }

    /// Takes one request to a host, or says how long to wait for it.
    pub(super) fn take(&mut self, host: &str, now: Instant) -> Result<(), Duration> {
        if self.per_minute == 0 {
            return Ok(());
        }
        if self.hosts.len() >= MAX_PACED_HOSTS && !self.hosts.contains_key(host) {
            let oldest = self.hosts.iter().min_by_key(|(_, bucket)| bucket.at).map(|(host, _)| host.clone());
            oldest.and_then(|oldest| self.hosts.remove(&oldest));
        }
        let (burst, per_second) = (f64::from(self.burst), f64::from(self.per_minute) / 60.0);
        let bucket = self.hosts.entry(host.to_owned()).or_insert(PaceBucket { left: burst, at: now });
        let waited = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.left = (bucket.left + waited * per_second).min(burst);
        bucket.at = now;
        if bucket.left >= 1.0 {
            bucket.left -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - bucket.left) / per_second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_gets_a_burst_and_then_its_pace() {
        let mut pace = HostPace::new(30);
        let start = Instant::now();
        for _ in 0..10 {
            pace.take("a.example", start).unwrap();
        }
        let wait = pace.take("a.example", start).unwrap_err();
        assert!(wait > Duration::from_millis(1_900) && wait < Duration::from_millis(2_100), "{wait:?}");
        pace.take("b.example", start).unwrap();
        pace.take("a.example", start + wait + Duration::from_millis(1)).unwrap();
        assert!(pace.take("a.example", start + wait + Duration::from_millis(2)).is_err());
    }

    #[test]
    fn no_more_hosts_are_remembered_than_the_limit() {
        let mut pace = HostPace::new(1);
        for host in 0..3 * MAX_PACED_HOSTS {
            pace.take(&format!("{host}.example"), Instant::now()).unwrap();
        }
        assert!(pace.hosts.len() <= MAX_PACED_HOSTS);
    }
}
