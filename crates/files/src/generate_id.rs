//! Identifiers that occur once, and what they are made of: the clock and random bytes.

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

/// A unique id in the usual form of a UUID, for protocols that want one.
pub fn generate_uuid() -> String {
    uuid::Uuid::now_v7().hyphenated().to_string()
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
