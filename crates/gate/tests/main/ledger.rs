//! The ledger's chain shows every kind of tampering.

use proptest::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use toolgate_files::AppendLog;
use toolgate_gate::ledger::{
    ChainReport, ExternalAnchor, LEDGER_NAME, LedgerFault, LedgerSink, verify, verify_in,
};
use toolgate_gate::{CallOptions, Gate, GateParts, MemorySink, Sink};
use toolgate_process::SystemLog;
use toolgate_proto::{AbsPath, CallResult, Code, SourceId, Stage, ToolCall};
use toolgate_testkit::{ProbeBehaviour, ProbeTool, allow_all, session_in};

struct Written {
    dir: tempfile::TempDir,
}

impl Written {
    /// A ledger with this many calls, in files of about this size.
    fn new(calls: usize, rotate_at: u64) -> Self {
        let written = Self { dir: tempfile::tempdir().unwrap() };
        written.call(calls, rotate_at);
        written
    }

    /// So many more calls, by a process of their own.
    fn call(&self, calls: usize, rotate_at: u64) {
        let sink = LedgerSink::open(&self.path(), rotate_at).unwrap();
        let gate = Gate::new(
            GateParts::default()
                .with_policy(allow_all(&["probe"]))
                .with_sinks(vec![Arc::new(sink) as Arc<dyn Sink>]),
        );
        gate.register(SourceId::Sdk, ProbeTool::new("probe", ProbeBehaviour::Succeed)).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let session = session_in(&AbsPath::root());
        for index in 0..calls {
            let call = ToolCall::new(format!("c{index}"), "probe", r#"{"text":"x"}"#);
            runtime.block_on(gate.call(&session, call, CallOptions::default())).result.unwrap();
        }
    }

    /// With the head and the anchor.
    fn whole_report(&self) -> ChainReport {
        verify_in(&self.path(), &AppendLog::default_anchor_dir(&self.path())).unwrap().0
    }

    fn head(&self) -> PathBuf {
        self.dir.path().join("ledger.head")
    }

    fn anchor(&self) -> PathBuf {
        self.dir.path().join("anchor/ledger.anchor")
    }

    /// What a head would say of the last line there is.
    fn fitting_head(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.files().last()?).unwrap();
        let line: serde_json::Value = serde_json::from_str(text.lines().last()?).unwrap();
        Some(format!("{:020} {}\n", line["seq"].as_u64().unwrap(), line["hash"].as_str().unwrap()))
    }

    fn path(&self) -> AbsPath {
        AbsPath::new(self.dir.path()).unwrap()
    }

    fn files(&self) -> Vec<PathBuf> {
        let segments = AppendLog::list_segments(&self.path(), LEDGER_NAME).unwrap();
        segments.into_iter().map(|segment| segment.path).collect()
    }

    fn report(&self) -> ChainReport {
        let texts: Vec<String> =
            self.files().iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
        let head = AppendLog::read_head(&self.path(), LEDGER_NAME).unwrap();
        verify(texts.iter().map(|text| ("ledger", text.as_str())), head.as_deref())
    }

    fn edit(&self, file: usize, change: impl FnOnce(Vec<String>) -> Vec<String>) {
        let path = &self.files()[file];
        let lines = std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect();
        let text: String = change(lines).into_iter().map(|line| line + "\n").collect();
        std::fs::write(path, text).unwrap();
    }
}

fn assert_intact(report: &ChainReport, records: u64) {
    assert_eq!((report.records, report.faults.as_slice()), (records, &[][..]));
}

#[test]
fn an_untouched_ledger_holds_also_over_several_files() {
    let written = Written::new(40, 4_000);
    assert!(written.files().len() > 3);
    assert_intact(&written.report(), 40);
}

#[test]
fn a_truncated_ledger_is_detected() {
    let written = Written::new(5, u64::MAX);
    written.edit(0, |mut lines| {
        lines.truncate(3);
        lines
    });
    assert_eq!(written.report().faults, [LedgerFault::CutOff { last: 3, wanted: 5 }]);
}

#[test]
fn a_line_torn_by_a_crash_is_named_but_is_no_tampering() {
    let written = Written::new(2, u64::MAX);
    let path = &written.files()[0];
    let mut text = std::fs::read_to_string(path).unwrap();
    text.push_str("{\"seq\":3,\"prev\":\"12");
    std::fs::write(path, text).unwrap();
    let report = written.report();
    assert_eq!(report.faults, [LedgerFault::Torn { at: "ledger:3".into() }]);
    assert!(report.is_intact());
}

#[test]
fn calls_of_several_processes_and_a_crash_between_line_and_head_are_no_tampering() {
    let written = Written::new(3, u64::MAX);
    written.call(2, u64::MAX);
    assert_intact(&written.whole_report(), 5);
    for notes in [vec![written.anchor()], vec![written.head(), written.anchor()]] {
        let before: Vec<_> = notes.iter().map(|note| std::fs::read(note).unwrap()).collect();
        written.call(1, u64::MAX);
        for (note, text) in notes.iter().zip(before) {
            std::fs::write(note, text).unwrap();
        }
        assert!(written.whole_report().is_intact(), "{:?}", written.whole_report());
        written.call(1, u64::MAX);
        assert_eq!(written.whole_report().faults, []);
    }
}

#[test]
fn a_ledger_from_before_there_were_anchors_goes_on() {
    let written = Written::new(0, u64::MAX);
    let start = "0".repeat(64);
    // As it was written then, by hand: two records, a head and no anchor.
    let template = Written::new(1, u64::MAX);
    let text = std::fs::read_to_string(&template.files()[0]).unwrap();
    let record = text.split_once("\"record\":").unwrap().1.rsplit_once(",\"hash\"").unwrap().0.to_owned();
    let (mut prev, mut lines, mut head) = (start, String::new(), String::new());
    for seq in 1..=2 {
        let body = format!("{{\"seq\":{seq},\"prev\":\"{prev}\",\"record\":{record}");
        prev = toolgate_gate::ledger::sha256_hex(body.as_bytes());
        lines.push_str(&format!("{body},\"hash\":\"{prev}\"}}\n"));
        head = format!("{seq:020} {prev}\n");
    }
    std::fs::write(written.dir.path().join("ledger.jsonl"), lines).unwrap();
    std::fs::write(written.head(), head).unwrap();
    std::fs::remove_file(written.anchor()).unwrap();
    assert_intact(&written.whole_report(), 2);
    written.call(2, u64::MAX);
    assert_intact(&written.whole_report(), 4);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// What is done to the end of the ledger, to its head or to its anchor shows at once, and still after more calls.
    #[test]
    fn truncation_shows_whatever_becomes_of_the_head_and_for_good(
        calls in 2usize..7,
        kept in 0usize..7,
        what in 0usize..7,
        head in 0usize..4,
        later in prop::collection::vec(1usize..3, 0..3),
    ) {
        let written = Written::new(calls, u64::MAX);
        let kept = kept % calls;
        let file = written.files()[0].clone();
        match what {
            // The log is cut short, or gone.
            0..=3 => written.edit(0, |mut lines| { lines.truncate(kept); lines }),
            4 => std::fs::remove_file(&file).unwrap(),
            // It is cut short, and the anchor is gone.
            5 => {
                written.edit(0, |mut lines| { lines.truncate(kept.max(2).min(calls - 1).max(1)); lines });
                std::fs::remove_file(written.anchor()).unwrap();
            }
            // The anchor alone is gone.
            _ => std::fs::remove_file(written.anchor()).unwrap(),
        }
        match head {
            0 => {}
            1 => std::fs::remove_file(written.head()).unwrap(),
            2 => std::fs::write(written.head(), "").unwrap(),
            _ => match written.fitting_head() {
                Some(text) => std::fs::write(written.head(), text).unwrap(),
                None => std::fs::remove_file(written.head()).unwrap(),
            },
        }
        // One line, with neither head nor anchor to speak of, is what a crash leaves of the first call.
        let lines: usize = written.files().iter().map(|file| std::fs::read_to_string(file).unwrap().lines().count()).sum();
        prop_assume!(!(what == 5 && lines <= 1));
        prop_assert!(!written.whole_report().is_intact());
        for more in later {
            written.call(more, u64::MAX);
            prop_assert!(!written.whole_report().is_intact(), "{:?}", written.whole_report());
        }
    }

    #[test]
    fn a_removed_or_changed_head_shows_for_good(calls in 2usize..6, how in 0usize..3, later in 0usize..3) {
        let written = Written::new(calls, u64::MAX);
        match how {
            0 => std::fs::remove_file(written.head()).unwrap(),
            1 => std::fs::write(written.head(), format!("{:020} {}\n", calls, "7".repeat(64))).unwrap(),
            _ => std::fs::write(written.head(), format!("{:020} {}\n", calls + 3, "7".repeat(64))).unwrap(),
        }
        prop_assert!(!written.whole_report().is_intact());
        for _ in 0..later {
            written.call(1, u64::MAX);
            prop_assert!(!written.whole_report().is_intact());
        }
    }
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
        prop_assert!(!report.is_intact(), "{:?}", report);
    }
}

/// A gate with these sinks that requires records, and a tool that allows every call.
fn strict_gate(sinks: Vec<Arc<dyn Sink>>) -> Gate {
    let gate = Gate::new(GateParts::default().with_policy(allow_all(&["probe"])).with_sinks(sinks));
    gate.register(SourceId::Sdk, ProbeTool::new("probe", ProbeBehaviour::Succeed)).unwrap();
    gate.require_records(true);
    gate
}

fn call_probe(gate: &Gate) -> CallResult {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let call = ToolCall::new("c", "probe", r#"{"text":"x"}"#);
    runtime.block_on(gate.call(&session_in(&AbsPath::root()), call, CallOptions::default())).result
}

#[test]
fn a_call_that_cannot_be_recorded_is_refused_where_records_are_required() {
    let top = tempfile::tempdir().unwrap();
    let dir = AbsPath::new(top.path().join("ledger")).unwrap();
    let seen = Arc::new(MemorySink::new());
    let sink = Arc::new(LedgerSink::open(&dir, 1 << 20).unwrap());
    let gate = strict_gate(vec![Arc::clone(&sink) as Arc<dyn Sink>, Arc::clone(&seen) as Arc<dyn Sink>]);
    call_probe(&gate).unwrap();
    // Something else stands where the ledger was.
    let away = top.path().join("away");
    std::fs::rename(dir.as_path(), &away).unwrap();
    std::fs::write(dir.as_path(), "").unwrap();
    let refusal = call_probe(&gate).unwrap_err();
    assert_eq!(refusal.code, Code::NotRecordable, "{refusal}");
    assert!(refusal.reason.contains(&dir.to_string()), "{refusal}");
    let last = seen.records().pop().unwrap();
    assert!(last.stages.iter().all(|stage| stage.stage != Stage::Run), "it must not have run: {last:?}");
    // Without the setting the same call runs.
    gate.require_records(false);
    call_probe(&gate).unwrap();
    gate.require_records(true);
    std::fs::remove_file(dir.as_path()).unwrap();
    std::fs::rename(&away, dir.as_path()).unwrap();
    call_probe(&gate).unwrap();
    // A sink that promises nothing is not enough.
    let refusal = call_probe(&strict_gate(vec![seen])).unwrap_err();
    assert_eq!(refusal.code, Code::NotRecordable, "{refusal}");
    // An external anchor that cannot be written refuses as well.
    sink.set_external_anchor(Some(ExternalAnchor::Syslog(SystemLog::at(&top.path().join("none")))));
    assert_eq!(call_probe(&gate).unwrap_err().code, Code::NotRecordable);
}

#[test]
fn an_external_anchor_keeps_truncation_detectable_after_everything_else_was_put_back() {
    let top = tempfile::tempdir().unwrap();
    let dir = AbsPath::new(top.path().join("ledger")).unwrap();
    let anchor = AbsPath::new(top.path().join("anchor.log")).unwrap();
    let anchor_dir = AppendLog::default_anchor_dir(&dir);
    let run = |calls: usize| {
        let sink = Arc::new(LedgerSink::open(&dir, 1 << 20).unwrap());
        sink.set_external_anchor(Some(ExternalAnchor::File(anchor.clone())));
        let gate = strict_gate(vec![sink]);
        (0..calls).for_each(|_| drop(call_probe(&gate).unwrap()));
    };
    let report = || {
        let mut report = verify_in(&dir, &anchor_dir).unwrap().0;
        let text = std::fs::read_to_string(anchor.as_path()).unwrap();
        let lines = report.compare_external(&dir, &text).unwrap();
        (report, lines)
    };
    let copy = |from: &std::path::Path, to: &std::path::Path| {
        for name in ["ledger.jsonl", "ledger.head", "anchor/ledger.anchor"] {
            std::fs::create_dir_all(to.join(name).parent().unwrap()).unwrap();
            std::fs::copy(from.join(name), to.join(name)).unwrap();
        }
    };
    run(3);
    let kept = top.path().join("kept");
    copy(dir.as_path(), &kept);
    run(4);
    assert_eq!((report().0.is_intact(), report().1), (true, 7));
    // Head, anchor and ledger are all put back to what they were: only the external anchor knows.
    copy(&kept, dir.as_path());
    assert!(verify_in(&dir, &anchor_dir).unwrap().0.is_intact());
    assert_eq!(report().0.faults, [LedgerFault::CutOff { last: 3, wanted: 7 }]);
    // Further calls do not hide it.
    run(6);
    assert!(verify_in(&dir, &anchor_dir).unwrap().0.is_intact());
    let faults = report().0.faults;
    assert!(faults.contains(&LedgerFault::Forgotten { seq: 4 }), "{faults:?}");
    assert!(!faults.contains(&LedgerFault::Forgotten { seq: 3 }), "{faults:?}");
    // Nor does a ledger that starts again.
    std::fs::remove_dir_all(dir.as_path()).unwrap();
    run(20);
    assert!(report().0.faults.contains(&LedgerFault::Forgotten { seq: 1 }));
}

#[test]
fn the_system_log_is_an_external_anchor() {
    let top = tempfile::tempdir().unwrap();
    let socket = top.path().join("log");
    let listener = std::os::unix::net::UnixDatagram::bind(&socket).unwrap();
    let dir = AbsPath::new(top.path().join("ledger")).unwrap();
    let sink = Arc::new(LedgerSink::open(&dir, 1 << 20).unwrap());
    sink.set_external_anchor(Some(ExternalAnchor::Syslog(SystemLog::at(&socket))));
    let gate = strict_gate(vec![sink]);
    let mut text = String::new();
    for _ in 0..3 {
        call_probe(&gate).unwrap();
        let mut buffer = [0; 1024];
        let size = listener.recv(&mut buffer).unwrap();
        text.push_str(&String::from_utf8_lossy(&buffer[..size]));
        text.push('\n');
    }
    let mut report = verify_in(&dir, &AppendLog::default_anchor_dir(&dir)).unwrap().0;
    assert_eq!(report.compare_external(&dir, &text).unwrap(), 3);
    assert!(report.is_intact(), "{report:?}");
    let changed = text.replace("seq=2 hash=", "seq=2 hash=0");
    report.compare_external(&dir, &changed).unwrap();
    assert_eq!(report.faults, [LedgerFault::Forgotten { seq: 2 }]);
}
