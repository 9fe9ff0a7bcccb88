//! Whether this process was started to outlive its terminal.

/// Whether the process ignores SIGHUP, as one that `nohup` starts. True also if that cannot be found out: then the signal
/// keeps what it does by default.
pub fn ignores_hangup() -> bool {
    std::fs::read_to_string("/proc/self/status").map_or(true, |status| reads_as_ignored(&status))
}

/// The same, from the text of `/proc/self/status`.
fn reads_as_ignored(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // SIGHUP is signal 1, the lowest bit.
    mask.is_none_or(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_bit_of_the_mask_is_the_hangup() {
        assert!(reads_as_ignored("Name:\ttoolgate\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000000\n"));
        assert!(!reads_as_ignored("Name:\ttoolgate\nSigIgn:\t0000000000001000\nSigCgt:\t0000000000000001\n"));
        assert!(reads_as_ignored(""), "unknown");
    }
}
