//! The ledger: one line for each call, chained so that tampering shows.
//!
//! Each line holds a sequence number, the hash of the line before it, the record, and its own hash.
//! A line that was changed breaks its own hash; a line that was removed or added breaks the next line's link; a line
//! cut off the end is missed by the head kept beside the log.
//! The chain is not signed: whoever can rewrite every file of the ledger can rewrite the chain as well.
//! Ship the lines elsewhere where that matters.

mod chain;
mod redact;
mod sink;

pub use chain::{ChainReport, Fault, Line, verify};
pub use redact::redact;
pub use sink::{LEDGER_NAME, LedgerSink};

use sha2::{Digest, Sha256};

/// SHA-256 as hexadecimal text.
pub fn sha256_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        for nibble in [byte >> 4, byte & 15] {
            out.push(char::from(DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'?')));
        }
    }
    out
}
