//! The external anchor: where the end of the ledger is named after each record, outside the state directory.
//!
//! Head and anchor of the ledger belong to the same user, so a program that may change every file of that user can put
//! back all of them. A file that can only be appended to, a file of another machine or the system log cannot be put back,
//! and [`ChainReport::compare_external`] finds what the ledger has lost since.

use super::chain::parse_link;
use super::{ChainReport, LEDGER_NAME, LedgerFault, sha256_hex};
use std::collections::BTreeMap;
use std::io;
use toolgate_files::{AppendLog, append_line};
use toolgate_process::SystemLog;
use toolgate_proto::AbsPath;

/// The start of each line. The text before it belongs to the system log.
const LINE_PREFIX: &str = "toolgate-ledger ledger=";

/// How many hexadecimal digits name a ledger in a place that several ledgers share.
const LEDGER_ID_CHARS: usize = 16;

/// Where the external anchor is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ExternalAnchor {
    /// Lines at the end of a file.
    File(AbsPath),
    /// The system log.
    Syslog(SystemLog),
}

impl ExternalAnchor {
    /// Whether a line could be written now.
    pub(super) fn check_ready(&self) -> io::Result<()> {
        match self {
            Self::File(path) => append_line(path, None),
            Self::Syslog(log) => log.check_ready(),
        }
    }

    /// Writes down where a ledger ends.
    pub(super) fn write(&self, dir: &AbsPath, seq: u64, hash: &str) -> io::Result<()> {
        let line = format!("{LINE_PREFIX}{} seq={seq} hash={hash}", ledger_id(dir));
        match self {
            Self::File(path) => append_line(path, Some(&line)),
            Self::Syslog(log) => log.send(&line),
        }
    }
}

/// Names a ledger by its directory, without telling the directory.
fn ledger_id(dir: &AbsPath) -> String {
    let mut id = sha256_hex(dir.to_string().as_bytes());
    id.truncate(LEDGER_ID_CHARS);
    id
}

/// The records that a text names, of this ledger: sequence number and hash.
fn parse_anchors<'a>(text: &'a str, id: &str) -> Vec<(u64, &'a str)> {
    text.lines()
        .filter_map(|line| {
            let (_, rest) = line.split_once(LINE_PREFIX)?;
            let (of, rest) = rest.split_once(" seq=")?;
            let (seq, hash) = rest.split_once(" hash=")?;
            let hash = hash.split_whitespace().next()?;
            (of == id).then_some((seq.parse().ok()?, hash))
        })
        .collect()
}

impl ChainReport {
    /// Compares a ledger with the lines of an external anchor: the file itself, or the system log as text. Records that
    /// the ledger does not have any more, and records that are not the ones that were written, are faults. Returns how
    /// many lines name this ledger.
    pub fn compare_external(&mut self, dir: &AbsPath, text: &str) -> io::Result<usize> {
        let mut hashes = BTreeMap::new();
        for segment in AppendLog::list_segments(dir, LEDGER_NAME)? {
            for line in AppendLog::read_segment(&segment)?.lines() {
                if let Some(link) = parse_link(line) {
                    hashes.insert(link.seq, link.hash.to_owned());
                }
            }
        }
        let anchors = parse_anchors(text, &ledger_id(dir));
        let last = hashes.keys().next_back().copied().unwrap_or(0);
        let named = anchors.iter().map(|(seq, _)| *seq).max().unwrap_or(0);
        if named > last {
            self.add_fault(LedgerFault::CutOff { last, wanted: named });
        }
        for (seq, hash) in anchors.iter().filter(|(seq, _)| *seq <= last) {
            if hashes.get(seq).map(String::as_str) != Some(hash) {
                self.add_fault(LedgerFault::Forgotten { seq: *seq });
            }
        }
        Ok(anchors.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_behind_what_the_system_log_puts_before_them() {
        let text = "Jan 31 host toolgate[7]: toolgate-ledger ledger=ab seq=3 hash=cd\n\
                    toolgate-ledger ledger=xx seq=9 hash=ef\n\
                    toolgate-ledger ledger=ab seq=no hash=ef\nother\n\
                    toolgate-ledger ledger=ab seq=4 hash=ef trailing";
        assert_eq!(parse_anchors(text, "ab"), [(3, "cd"), (4, "ef")]);
    }
}
