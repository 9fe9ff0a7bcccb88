//! The hash chain of the ledger's lines.

use super::{LEDGER_NAME, sha256_hex};
use serde::{Deserialize, Serialize};
use std::{fmt, io};
use toolgate_files::{AppendLog, LogEnd};
use toolgate_proto::{AbsPath, CallRecord};

/// The hash that the first line names as its predecessor.
const GENESIS_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// The predecessor of a line that was written after the log was found truncated or changed. Such a line
/// stays, so that later calls do not repair the chain.
const BROKEN_CHAIN_HASH: &str = "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff";
const HASH_FIELD_PREFIX: &str = ",\"hash\":\"";

/// One line of the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LedgerLine {
    /// Counts from 1 over all files.
    pub seq: u64,
    /// An anchor outside the ledger's directory was kept when it was written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anchored: bool,
    /// Hash of the line before.
    pub prev: String,
    /// The record.
    pub record: CallRecord,
    /// Hash of this line up to here.
    pub hash: String,
}

/// Writes the line that follows the end of the log, and the head that goes with it.
pub(super) fn next_line(end: LogEnd<'_>, record: &str) -> (String, String) {
    let last = end.last.and_then(parse_link);
    let notes = [end.head, end.anchor].map(|note| note.and_then(parse_note));
    let (seq, prev) = if is_consistent(last, end, notes) {
        last.map_or((1, GENESIS_HASH.to_owned()), |last| (last.seq + 1, last.hash.to_owned()))
    } else {
        let counts = notes.iter().flatten().map(|(count, _)| *count);
        let highest = counts.chain(last.map(|last| last.seq)).max().unwrap_or(0);
        (highest.saturating_add(1), BROKEN_CHAIN_HASH.to_owned())
    };
    let mut line = format!("{{\"seq\":{seq},\"anchored\":true,\"prev\":\"{prev}\",\"record\":{record}");
    let hash = sha256_hex(line.as_bytes());
    line.push_str(HASH_FIELD_PREFIX);
    line.push_str(&hash);
    line.push_str("\"}");
    (line, format_head(seq, &hash))
}

/// Whether head and anchor name the last line, or the one before it: a crash can come between.
fn is_consistent(last: Option<ChainLink<'_>>, end: LogEnd<'_>, notes: [Option<(u64, &str)>; 2]) -> bool {
    let Some(last) = last else { return end.last.is_none() && end.head.is_none() && end.anchor.is_none() };
    let names = |note: Option<(u64, &str)>| {
        note.is_some_and(|(count, hash)| {
            (count, hash) == (last.seq, last.hash)
                || (count.checked_add(1) == Some(last.seq)
                    && (hash == last.prev || last.prev == BROKEN_CHAIN_HASH))
        })
    };
    let [head, anchor] = notes;
    // Of the first line the crash may have left nothing but the line. A ledger from before there were anchors has none.
    let first = last.seq == 1;
    let headed = names(head) || (first && end.head.is_none());
    let anchored = names(anchor) || (end.anchor.is_none() && (first || !last.anchored));
    headed && anchored
}

fn format_head(seq: u64, hash: &str) -> String {
    format!("{seq:020} {hash}")
}

/// What a head or an anchor says.
pub(super) fn parse_note(note: &str) -> Option<(u64, &str)> {
    let (count, hash) = note.split_once(' ')?;
    Some((count.parse().ok()?, hash))
}

/// The sequence number and hashes of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChainLink<'a> {
    pub(super) seq: u64,
    anchored: bool,
    prev: &'a str,
    pub(super) hash: &'a str,
}

/// The link of a line whose own hash is right.
pub(super) fn parse_link(line: &str) -> Option<ChainLink<'_>> {
    let rest = line.strip_prefix("{\"seq\":")?;
    let (seq, rest) = rest.split_once(',')?;
    let (anchored, rest) = match rest.strip_prefix("\"anchored\":true,") {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let (prev, _) = rest.strip_prefix("\"prev\":\"")?.split_once('"')?;
    let (_, hash) = line.rsplit_once(HASH_FIELD_PREFIX)?;
    Some(ChainLink { seq: seq.parse().ok()?, anchored, prev, hash: hash.strip_suffix("\"}")? })
}

/// What is wrong with a ledger, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum LedgerFault {
    /// The line's content does not fit its own hash.
    Changed {
        /// File and line.
        at: String,
    },
    /// The line does not follow the one before.
    Unlinked {
        /// File and line.
        at: String,
        /// The sequence number found.
        found: u64,
        /// The sequence number wanted.
        wanted: u64,
    },
    /// The line is not a ledger line. A crash may leave one such; anything more is tampering.
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
    /// When the line was written, the ledger had been truncated or changed.
    Broken {
        /// File and line.
        at: String,
    },
    /// The last line is not the one that was written last.
    Replaced {
        /// Its sequence number.
        last: u64,
    },
    /// Lines follow that the head or the anchor does not know.
    Ahead {
        /// The last line there is.
        last: u64,
        /// The last line it knows.
        known: u64,
    },
    /// The record is not the one that the external anchor names, or it is gone.
    Forgotten {
        /// Its sequence number.
        seq: u64,
    },
    /// The head or the anchor is gone, or cannot be read.
    Lost {
        /// Which.
        note: &'static str,
    },
}

impl fmt::Display for LedgerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed { at } => write!(f, "{at}: the line was changed after it was written"),
            Self::Unlinked { at, found, wanted } if found == wanted => {
                write!(f, "{at}: the chain breaks: record {found} does not follow on the record before it")
            }
            Self::Unlinked { at, found, wanted } => {
                write!(f, "{at}: the chain breaks: record {found} stands where {wanted} should follow")
            }
            Self::Torn { at } => write!(f, "{at}: not a whole record (a crash leaves such a line)"),
            Self::CutOff { last, wanted } => {
                write!(f, "records {} to {wanted} are missing at the end", last.saturating_add(1))
            }
            Self::Broken { at } => {
                write!(f, "{at}: the ledger had been truncated or changed when this record was written")
            }
            Self::Replaced { last } => write!(f, "record {last} is not the one that was written last"),
            Self::Ahead { last, known } => write!(
                f,
                "records {} to {last} were added without the anchor, or the anchor was put back",
                known.saturating_add(1)
            ),
            Self::Forgotten { seq } => {
                write!(f, "record {seq} is not the one that the external anchor names")
            }
            Self::Lost { note } => write!(f, "the {note} that names the last record is gone"),
        }
    }
}

/// The state of a ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ChainReport {
    /// Whole lines.
    pub records: u64,
    /// What is wrong, in order.
    pub faults: Vec<LedgerFault>,
}

impl ChainReport {
    /// Whether nothing was tampered with. A torn line alone is the trace of a crash.
    pub fn is_intact(&self) -> bool {
        self.faults.iter().all(|fault| match fault {
            LedgerFault::Torn { .. } => true,
            LedgerFault::Changed { .. }
            | LedgerFault::Unlinked { .. }
            | LedgerFault::CutOff { .. }
            | LedgerFault::Broken { .. }
            | LedgerFault::Replaced { .. }
            | LedgerFault::Ahead { .. }
            | LedgerFault::Forgotten { .. }
            | LedgerFault::Lost { .. } => false,
        })
    }
}

/// Follows the chain through files given as (name, text), oldest first, and compares its end with the head kept beside
/// it, where there is one.
pub fn verify<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>, head: Option<&str>) -> ChainReport {
    let (mut report, end) = verify_links(files);
    if let Some(head) = head {
        report.compare("head", Some(head), &end);
    }
    report
}

/// The same for a ledger that has a head and an anchor: one that is missing is a fault as well.
pub fn verify_anchored<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
    head: Option<&str>,
    anchor: Option<&str>,
) -> ChainReport {
    let (mut report, end) = verify_links(files);
    // Of the first line a crash may have left nothing but the line. A ledger from before there were anchors has none.
    if head.is_some() || end.seq > 1 {
        report.compare("head", head, &end);
    }
    if anchor.is_some() || (end.seq > 1 && end.anchored) {
        report.compare("anchor", anchor, &end);
    }
    report
}

/// Where a chain ends.
struct ChainEnd {
    seq: u64,
    hash: String,
    /// The predecessor that the last line names.
    prev: String,
    /// Some line was written with an anchor.
    anchored: bool,
}

impl ChainReport {
    fn compare(&mut self, note: &'static str, text: Option<&str>, end: &ChainEnd) {
        let last = end.seq;
        let fault = match text.and_then(parse_note) {
            None => Some(LedgerFault::Lost { note }),
            Some((count, _)) if count > last => Some(LedgerFault::CutOff { last, wanted: count }),
            Some((count, hash)) if count == last => {
                (hash != end.hash).then_some(LedgerFault::Replaced { last })
            }
            Some((count, hash)) => {
                // A crash between the line and the note leaves the note one line behind.
                let known = hash == end.prev || end.prev == BROKEN_CHAIN_HASH;
                let behind = known && count.checked_add(1) == Some(last);
                (!behind).then_some(LedgerFault::Ahead { last, known: count })
            }
        };
        if let Some(fault) = fault {
            self.add_fault(fault);
        }
    }

    /// Adds a fault once.
    pub(super) fn add_fault(&mut self, fault: LedgerFault) {
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }
}

fn verify_links<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> (ChainReport, ChainEnd) {
    let mut report = ChainReport { records: 0, faults: Vec::new() };
    let mut end =
        ChainEnd { seq: 0, hash: GENESIS_HASH.to_owned(), prev: GENESIS_HASH.to_owned(), anchored: false };
    for (name, text) in files {
        for (index, line) in text.lines().enumerate() {
            let at = format!("{name}:{}", index + 1);
            let parsed: Option<LedgerLine> = serde_json::from_str(line).ok();
            let (Some(parsed), Some((body, _))) = (parsed, line.rsplit_once(HASH_FIELD_PREFIX)) else {
                report.faults.push(LedgerFault::Torn { at });
                continue;
            };
            report.records += 1;
            if sha256_hex(body.as_bytes()) != parsed.hash {
                report.faults.push(LedgerFault::Changed { at });
            } else if parsed.prev == BROKEN_CHAIN_HASH {
                report.faults.push(LedgerFault::Broken { at });
            } else if end.seq.checked_add(1) != Some(parsed.seq) || parsed.prev != end.hash {
                let wanted = end.seq.saturating_add(1);
                report.faults.push(LedgerFault::Unlinked { at, found: parsed.seq, wanted });
            }
            end = ChainEnd {
                seq: parsed.seq,
                hash: parsed.hash,
                prev: parsed.prev,
                anchored: end.anchored || parsed.anchored,
            };
        }
    }
    (report, end)
}

/// Verifies the ledger in a directory; the names of its files come along.
pub fn verify_in(dir: &AbsPath, anchor_dir: &AbsPath) -> io::Result<(ChainReport, Vec<String>)> {
    let mut files = Vec::new();
    for segment in AppendLog::list_segments(dir, LEDGER_NAME)? {
        let name = segment.path.file_name().map(|name| name.to_string_lossy().into_owned());
        files.push((name.unwrap_or_default(), AppendLog::read_segment(&segment)?));
    }
    let head = AppendLog::read_head(dir, LEDGER_NAME)?;
    let anchor = AppendLog::read_anchor(anchor_dir, LEDGER_NAME)?;
    let texts = files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let report = verify_anchored(texts, head.as_deref(), anchor.as_deref());
    Ok((report, files.into_iter().map(|(name, _)| name).collect()))
}
