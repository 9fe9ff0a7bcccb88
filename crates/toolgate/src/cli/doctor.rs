//! `toolgate doctor`: what this machine and these settings give, tried out.

use super::out::{Out, paint, style};
use super::world::World;
use super::{Exit, Failure};
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate::ledger::{LEDGER_NAME, LedgerSink, verify_in};
use toolgate::render::visible;
use toolgate::settings::Settings;
use toolgate::settings::trust::Standing;
use toolgate::{AbsPath, CallAnomaly};
use toolgate_os::AppendLog;
use toolgate_os::sandbox::{Ground, run_self_test};

/// One thing that was looked at.
struct DoctorFinding {
    what: &'static str,
    state: State,
    detail: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Good,
    Note,
    Bad,
}

pub(crate) fn run(world: &World, out: &mut Out) -> Result<Exit, Failure> {
    let mut findings = vec![finding("version", State::Good, env!("CARGO_PKG_VERSION"))];
    let cwd = world.cwd();
    let fact = toolgate_os::resolve(&cwd);
    findings.push(match &fact.problem {
        None => finding("workspace", State::Good, &fact.real.to_string()),
        Some(problem) => finding("workspace", State::Bad, problem),
    });
    settings(world, &mut findings)?;
    ledger(world, &mut findings);
    let confined = if toolgate_os::supports_openat2() {
        finding("file confinement", State::Good, "openat2, links refused by the kernel")
    } else {
        finding("file confinement", State::Note, "no openat2 here: paths are walked handle by handle instead")
    };
    findings.push(confined);
    sandbox(world, &mut findings);
    print(world, &findings, out)?;
    let bad = findings.iter().any(|finding| finding.state == State::Bad);
    Ok(if bad { Exit::Usage } else { Exit::Ok })
}

fn settings(world: &World, findings: &mut Vec<DoctorFinding>) -> Result<(), Failure> {
    let toolgate = match world.builder()?.build() {
        Ok(toolgate) => toolgate,
        Err(error) => {
            findings.push(finding("settings", State::Bad, &error.to_string()));
            return Ok(());
        }
    };
    let layers = toolgate.settings().layers();
    if layers.is_empty() {
        findings.push(finding("settings", State::Good, "no settings files; every default holds"));
    }
    for (layer, file) in layers {
        let file = file.unwrap_or_else(|| "command line".to_owned());
        findings.push(finding("settings", State::Good, &format!("{layer}: {file}")));
    }
    findings.extend(trust(&toolgate.settings()));
    let (notes, problems) = toolgate.notes();
    findings.extend(notes.iter().map(|note| finding("settings", State::Note, &note.to_string())));
    findings.extend(problems.iter().map(|problem| finding("rules", State::Note, &problem.to_string())));
    findings.push(finding("mode", State::Good, toolgate.gate().policy().mode().as_str()));
    let count = toolgate.tools().len();
    findings.push(finding("tools", State::Good, &format!("{count} shown (toolgate tools)")));
    Ok(())
}

/// Whether what the project brings is trusted, and what of it cannot be.
fn trust(settings: &Settings) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    match settings.standing {
        _ if settings.brought.is_empty() => {}
        Standing::Trusted => {
            findings.push(finding("trust", State::Good, "what the project brings is trusted"))
        }
        Standing::Changed => {
            let detail = "what the project brings changed after it was trusted: see `toolgate trust`";
            findings.push(finding("trust", State::Note, detail));
        }
        Standing::Unknown => {
            let detail = "what the project brings is not trusted and waits: see `toolgate trust`";
            findings.push(finding("trust", State::Note, detail));
        }
    }
    for it in &settings.brought.unresolved {
        findings.push(finding("trust", State::Note, &format!("{} cannot be trusted: {}", it.what, it.why)));
    }
    if let Some(question) = settings.wide_question() {
        findings.push(finding("workspace", State::Note, &question));
    }
    findings
}

fn ledger(world: &World, findings: &mut Vec<DoctorFinding>) {
    let Some((dir, anchor_dir)) = world.ledger_dir().zip(world.anchor_dir()) else {
        findings.push(finding(
            "ledger",
            State::Note,
            "no home directory: set TOOLGATE_STATE_DIR to keep records",
        ));
        return;
    };
    if let Err(error) = LedgerSink::open_anchored(&dir, &anchor_dir, u64::MAX) {
        findings.push(finding("ledger", State::Note, &format!("{dir} cannot be written: {error}")));
        return;
    }
    let report = verify_in(&dir, &anchor_dir).map(|(report, _)| report);
    if let Some(words) = anomalies(&dir) {
        findings.push(finding("anomalies", State::Note, &words));
    }
    findings.push(match report {
        Ok(report) if report.intact() => {
            finding("ledger", State::Good, &format!("{} records in {dir}, the chain holds", report.records))
        }
        Ok(_) => finding("ledger", State::Bad, "the chain is broken: see `toolgate log --verify`"),
        Err(error) => finding("ledger", State::Bad, &format!("{dir}: {error}")),
    });
}

/// What commands tried although their judgement did not foresee it, as the ledger has it.
fn anomalies(dir: &AbsPath) -> Option<String> {
    let segments = AppendLog::list_segments(dir, LEDGER_NAME).ok()?;
    let texts = segments.iter().filter_map(|segment| AppendLog::read_segment(segment).ok());
    let mut found: Vec<CallAnomaly> = Vec::new();
    for text in texts {
        for line in text.lines().filter(|line| line.contains("\"anomalies\"")) {
            let Ok(value) = serde_json::from_str::<Value>(line) else { continue };
            let list = value.pointer("/record/anomalies").or_else(|| value.get("anomalies"));
            found.extend(list.and_then(|list| Vec::deserialize(list).ok()).unwrap_or_default());
        }
    }
    let last = found.last()?;
    Some(format!(
        "{} times a command tried something that its judgement did not foresee, and was refused; the last: {} [{}]",
        found.len(),
        last.text,
        last.code
    ))
}

/// The sandbox, tried out: each line is something that a command attempted and that the kernel stopped, or not.
fn sandbox(world: &World, findings: &mut Vec<DoctorFinding>) {
    let ground = Ground::here();
    let landlock = match ground.landlock {
        0 => "no Landlock".to_owned(),
        version => format!("Landlock {version}"),
    };
    let filter = match (ground.filter, ground.warden) {
        (true, true) => "seccomp with notification",
        (true, false) => "seccomp without notification",
        (false, _) => "no seccomp",
    };
    let state = if ground.landlock > 0 && ground.warden { State::Good } else { State::Note };
    findings.push(finding("sandbox", state, &format!("{landlock}, {filter}")));
    findings.push(if ground.enforces_rights() {
        finding("sandbox", State::Good, "commands are held to the effects that were judged")
    } else {
        let words = "this kernel cannot hold commands to the effects that were judged: only plain command lines pass \
                     as reading without a question";
        finding("sandbox", State::Note, words)
    });
    match run_self_test(&world.ambient.temp_dir) {
        Ok(trials) => findings.extend(trials.into_iter().map(|trial| {
            let state = if trial.held { State::Good } else { State::Note };
            let word = if trial.held { "held" } else { "NOT HELD" };
            finding("sandbox", state, &format!("{word}: {}", trial.what))
        })),
        Err(problem) => {
            findings.push(finding("sandbox", State::Note, &format!("could not be tried: {problem}")))
        }
    }
}

fn finding(what: &'static str, state: State, detail: &str) -> DoctorFinding {
    DoctorFinding { what, state, detail: detail.to_owned() }
}

fn print(world: &World, findings: &[DoctorFinding], out: &mut Out) -> Result<(), Failure> {
    let word = |state| match state {
        State::Good => "ok",
        State::Note => "note",
        State::Bad => "bad",
    };
    if world.global.json {
        let list: Vec<Value> = findings
            .iter()
            .map(|f| json!({ "what": f.what, "state": word(f.state), "detail": f.detail }))
            .collect();
        out.line(&json!({ "findings": list }).to_string())?;
        return Ok(());
    }
    for f in findings {
        let style = match f.state {
            State::Good => style::GOOD,
            State::Note => style::ASK,
            State::Bad => style::BAD,
        };
        let mark = paint(style, &format!("{:4}", word(f.state)));
        out.line(&format!("{mark}  {:16}  {}", f.what, visible(&f.detail)))?;
    }
    Ok(())
}
