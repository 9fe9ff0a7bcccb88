//! The ledger, a tamper-evident audit log: one line for each call, in a hash chain so that tampering is detected.
//!
//! Each line holds a sequence number, the hash of the line before it, the record, and its own hash.
//! A line that was changed breaks its own hash; a line that was removed or added breaks the next line's link.
//! Truncation is detected by the head kept beside the log and by the anchor kept in another directory, both of which
//! name the last line. They are compared before each append, too: a line that is appended to a ledger that was
//! truncated says so for good, so that later calls do not repair the chain.
//! The chain is not signed: a program that may rewrite every file of the ledger and its anchor can rewrite the chain.
//! Where that matters, an [`ExternalAnchor`] names the end of the ledger in a place that the program cannot rewrite.

mod chain;
mod external_anchor;
mod redact;
mod sink;

pub use chain::{ChainReport, LedgerFault, LedgerLine, verify, verify_anchored, verify_in};
pub use external_anchor::ExternalAnchor;
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
