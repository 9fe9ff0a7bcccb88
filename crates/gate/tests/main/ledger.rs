//! The ledger's chain shows every kind of tampering.

use proptest::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use toolgate_gate::ledger::{ChainReport, Fault, LEDGER_NAME, LedgerSink, verify};
use toolgate_gate::{CallLimits, Gate, GateParts, Sink};
use toolgate_os::AppendLog;
use toolgate_proto::{AbsPath, SourceId, ToolCall};
use toolgate_testkit::{Behaviour, Probe, allow_all, session_in};

struct Written {
    dir: tempfile::TempDir,
}

impl Written {
    /// A ledger with this many calls, in files of about this size.
    fn new(calls: usize, rotate_at: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let sink = LedgerSink::open(&AbsPath::new(dir.path()).unwrap(), rotate_at).unwrap();
        let gate = Gate::new(GateParts {
            policy: allow_all(&["probe"]),
            sinks: vec![Arc::new(sink) as Arc<dyn Sink>],
            ..GateParts::default()
        });
        gate.register(SourceId::Sdk, Probe::new("probe", Behaviour::Succeed)).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let session = session_in(&AbsPath::root());
        for index in 0..calls {
            let call = ToolCall::new(format!("c{index}"), "probe", r#"{"text":"x"}"#);
            runtime.block_on(gate.call(&session, call, CallLimits::default())).result.unwrap();
        }
        Self { dir }
    }

    fn path(&self) -> AbsPath {
        AbsPath::new(self.dir.path()).unwrap()
    }

    fn files(&self) -> Vec<PathBuf> {
        let segments = AppendLog::segments_in(&self.path(), LEDGER_NAME).unwrap();
        segments.into_iter().map(|segment| segment.path).collect()
    }

    fn report(&self) -> ChainReport {
        let texts: Vec<String> =
            self.files().iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
        let head = AppendLog::head_in(&self.path(), LEDGER_NAME).unwrap();
        verify(texts.iter().map(|text| ("ledger", text.as_str())), head.as_deref())
    }

    fn edit(&self, file: usize, change: impl FnOnce(Vec<String>) -> Vec<String>) {
        let path = &self.files()[file];
        let lines = std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect();
        let text: String = change(lines).into_iter().map(|line| line + "\n").collect();
        std::fs::write(path, text).unwrap();
    }
}

#[test]
fn an_untouched_ledger_holds_also_over_several_files() {
    let written = Written::new(40, 4_000);
    assert!(written.files().len() > 3);
    assert_eq!(written.report(), ChainReport { records: 40, faults: Vec::new() });
}

#[test]
fn a_line_cut_off_the_end_is_missed() {
    let written = Written::new(5, u64::MAX);
    written.edit(0, |mut lines| {
        lines.truncate(3);
        lines
    });
    assert_eq!(written.report().faults, [Fault::CutOff { last: 3, wanted: 5 }]);
}

#[test]
fn a_line_torn_by_a_crash_is_named_but_is_no_tampering() {
    let written = Written::new(2, u64::MAX);
    let path = &written.files()[0];
    let mut text = std::fs::read_to_string(path).unwrap();
    text.push_str("{\"seq\":3,\"prev\":\"12");
    std::fs::write(path, text).unwrap();
    let report = written.report();
    assert_eq!(report.faults, [Fault::Torn { at: "ledger:3".into() }]);
    assert!(report.intact());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_changed_removed_added_or_swapped_line_breaks_the_chain(
        at in 0usize..6, how in 0usize..4, digit in 0usize..200,
    ) {
        let written = Written::new(6, u64::MAX);
        written.edit(0, |mut lines| {
            match how {
                0 => {
                    // Any one byte of the record becomes another.
                    let start = lines[at].find("\"record\"").unwrap() + 10;
                    let place = start + digit;
                    let mut bytes = lines[at].clone().into_bytes();
                    bytes[place] = if bytes[place] == b'7' { b'8' } else { b'7' };
                    lines[at] = String::from_utf8(bytes).unwrap();
                }
                1 => { lines.remove(at); }
                2 => { let again = lines[at].clone(); lines.insert(at, again); }
                _ => lines.swap(at, (at + 1) % 6),
            }
            lines
        });
        let report = written.report();
        prop_assert!(!report.faults.is_empty());
        // A byte that breaks the JSON itself makes the line unreadable, and the next one unlinked (or the end cut off).
        prop_assert!(!report.intact(), "{:?}", report);
    }
}
