//! Timestamps of files: how much a timestamp tells about whether a file has changed since.
//!
//! A cache that keeps what a file held, and looks only at its size and times later, must not trust a timestamp that a
//! second write may have got as well. Git calls such an entry racily clean.

/// The granularity of the kernel's clock for timestamps: a tick of at most 10 ms, doubled for safety.
const MAX_CLOCK_TICK_NANOS: i128 = 20_000_000;

/// The granularity of file systems that store whole seconds only (HFS+, ext3, NFS exports of them), or every second one
/// (FAT).
const MAX_COARSE_TICK_NANOS: i128 = 2_000_000_000;

/// Nanoseconds of a second.
const SECOND_NANOS: i128 = 1_000_000_000;

/// A timestamp in nanoseconds since 1970, from the seconds and nanoseconds of `stat`.
pub fn timestamp_nanos(seconds: i64, nanos: i64) -> i128 {
    i128::from(seconds) * SECOND_NANOS + i128::from(nanos)
}

/// Whether a change of a file after it was looked at may have left its timestamp as it was seen then.
///
/// Both times are in nanoseconds since 1970. A timestamp without a fraction of a second may come from a file system that
/// stores none; on other file systems that is one in a million, and costs one comparison of content.
pub fn may_timestamp_repeat(timestamp: i128, seen_at: i128) -> bool {
    let tick = if timestamp % SECOND_NANOS == 0 { MAX_COARSE_TICK_NANOS } else { MAX_CLOCK_TICK_NANOS };
    seen_at - timestamp < tick
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_timestamp_may_repeat() {
        let now = timestamp_nanos(1_800_000_000, 0);
        for (timestamp, repeats) in [
            (now, true),
            (now - 1, true),
            (now - MAX_CLOCK_TICK_NANOS + 1, true),
            (now - MAX_CLOCK_TICK_NANOS, false),
            (now - SECOND_NANOS, true),
            (now - 2 * SECOND_NANOS, false),
            // A clock that was set back.
            (now + SECOND_NANOS + 1, true),
        ] {
            assert_eq!(may_timestamp_repeat(timestamp, now), repeats, "{}", now - timestamp);
        }
    }
}
