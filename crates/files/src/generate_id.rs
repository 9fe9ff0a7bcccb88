//! Identifiers that occur once, and what they are made of: the clock and random bytes.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970, UTC. 0 on a machine whose clock is set before that.
pub fn now_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A unique id: the prefix and a UUID of version 7, so that ids of one prefix sort by the time of their creation.
pub fn generate_id(prefix: &str) -> String {
    format!("{prefix}{}", uuid::Uuid::now_v7().simple())
}

/// A unique id in the usual form of a UUID, for protocols that want one. It is unique and not secret: after the first one
/// of a process only the clock and a counter change, because a system call for each frame of a fast stream costs more than
/// the frame.
pub fn generate_uuid() -> String {
    static START: OnceLock<(u16, u64)> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(0);
    static LAST_MILLIS: AtomicU64 = AtomicU64::new(0);
    let (high, low) = *START.get_or_init(|| {
        let (_, random) = uuid::Uuid::now_v7().as_u64_pair();
        let (_, more) = uuid::Uuid::now_v7().as_u64_pair();
        // Below the bits of the variant, with room for the counter.
        (u16::try_from(more & 0x0fff).unwrap_or_default(), random & (u64::MAX >> 3))
    });
    let count = low.wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed));
    // A clock that is set back does not make a later id sort before an earlier one.
    let now = now_millis();
    let millis = LAST_MILLIS.fetch_max(now, Ordering::Relaxed).max(now);
    let mut tail = [0; 10];
    for (byte, value) in tail.iter_mut().zip(high.to_be_bytes().into_iter().chain(count.to_be_bytes())) {
        *byte = value;
    }
    uuid::Builder::from_unix_timestamp_millis(millis, &tail).into_uuid().hyphenated().to_string()
}

/// Unpredictable bytes from the kernel, for keys and tokens.
pub fn random_bytes<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        filled += rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn uuids_of_one_process_differ_are_of_version_7_and_sort_by_their_creation() {
        let ids: Vec<String> = (0..10_000).map(|_| generate_uuid()).collect();
        assert!(ids.is_sorted());
        for id in &ids {
            let parsed = uuid::Uuid::parse_str(id).unwrap();
            assert_eq!((parsed.get_version_num(), parsed.get_variant()), (7, uuid::Variant::RFC4122), "{id}");
        }
        let others = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..10_000).map(|_| generate_uuid()).collect::<Vec<_>>()))
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(ids.into_iter().chain(others).collect::<BTreeSet<_>>().len(), 50_000);
    }
}
