//! How lines hang together.

use super::sha256_hex;
use serde::{Deserialize, Serialize};
use std::fmt;
use toolgate_proto::CallRecord;

/// The hash that the first line names as its predecessor.
const START: &str = "0000000000000000000000000000000000000000000000000000000000000000";
const HASH_MARK: &str = ",\"hash\":\"";

/// One line of the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Counts from 1 over all files.
    pub seq: u64,
    /// Hash of the line before.
    pub prev: String,
    /// The record.
    pub record: CallRecord,
    /// Hash of this line up to here.
    pub hash: String,
}

/// Writes the line that follows `last`, and the head that goes with it.
pub(super) fn next_line(last: Option<&str>, record: &str) -> (String, String) {
    let (seq, prev) = match last.and_then(link_of) {
        Some((seq, hash)) => (seq + 1, hash.to_owned()),
        None => (1, START.to_owned()),
    };
    let mut line = format!("{{\"seq\":{seq},\"prev\":\"{prev}\",\"record\":{record}");
    let hash = sha256_hex(line.as_bytes());
    line.push_str(HASH_MARK);
    line.push_str(&hash);
    line.push_str("\"}");
    (line, head(seq, &hash))
}

fn head(seq: u64, hash: &str) -> String {
    format!("{seq:020} {hash}")
}

/// Sequence number and hash of a line that is whole.
fn link_of(line: &str) -> Option<(u64, &str)> {
    let rest = line.strip_prefix("{\"seq\":")?;
    let (seq, _) = rest.split_once(',')?;
    let (_, hash) = line.rsplit_once(HASH_MARK)?;
    Some((seq.parse().ok()?, hash.strip_suffix("\"}")?))
}

/// What is wrong with a ledger, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    /// The line's content does not fit its own hash.
    Changed {
        /// File and line.
        at: String,
    },
    /// The line does not follow on the one before.
    Unlinked {
        /// File and line.
        at: String,
        /// The sequence number found.
        found: u64,
        /// The sequence number wanted.
        wanted: u64,
    },
    /// The line is not one of ours. A crash may leave one such; anything more is tampering.
    Torn {
        /// File and line.
        at: String,
    },
    /// Lines are missing at the end.
    CutOff {
        /// The last line there is.
        last: u64,
        /// The last line there was.
        wanted: u64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed { at } => write!(f, "{at}: the line was changed after it was written"),
            Self::Unlinked { at, found, wanted } => {
                write!(f, "{at}: the chain breaks: record {found} stands where {wanted} should follow")
            }
            Self::Torn { at } => write!(f, "{at}: not a whole record (a crash leaves such a line)"),
            Self::CutOff { last, wanted } => {
                write!(f, "records {} to {wanted} are missing at the end", last + 1)
            }
        }
    }
}

/// The state of a ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChainReport {
    /// Whole lines.
    pub records: u64,
    /// What is wrong, in order.
    pub faults: Vec<Fault>,
}

impl ChainReport {
    /// Whether nothing was tampered with. A torn line alone is the mark of a crash.
    pub fn intact(&self) -> bool {
        self.faults.iter().all(|fault| match fault {
            Fault::Torn { .. } => true,
            Fault::Changed { .. } | Fault::Unlinked { .. } | Fault::CutOff { .. } => false,
        })
    }
}

/// Follows the chain through files given as (name, text), oldest first.
pub fn verify<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>, head: Option<&str>) -> ChainReport {
    let mut report = ChainReport { records: 0, faults: Vec::new() };
    let mut last: (u64, String) = (0, START.to_owned());
    for (name, text) in files {
        for (index, line) in text.lines().enumerate() {
            let at = format!("{name}:{}", index + 1);
            let parsed: Option<Line> = serde_json::from_str(line).ok();
            let (Some(parsed), Some((body, _))) = (parsed, line.rsplit_once(HASH_MARK)) else {
                report.faults.push(Fault::Torn { at });
                continue;
            };
            report.records += 1;
            if sha256_hex(body.as_bytes()) != parsed.hash {
                report.faults.push(Fault::Changed { at });
            } else if parsed.seq != last.0 + 1 || parsed.prev != last.1 {
                report.faults.push(Fault::Unlinked { at, found: parsed.seq, wanted: last.0 + 1 });
            }
            last = (parsed.seq, parsed.hash);
        }
    }
    let wanted = head.and_then(|head| head.split_once(' ')?.0.parse::<u64>().ok()).unwrap_or(0);
    if wanted > last.0 {
        report.faults.push(Fault::CutOff { last: last.0, wanted });
    }
    report
}
