//! `toolgate doctor`: what this machine and these settings give, tried out.

use super::context::CliContext;
use super::output::{CliOutput, paint, style};
use super::{CliError, CliExitCode};
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate::ledger::{LEDGER_NAME, LedgerSink, verify_in};
use toolgate::render::escape_invisible;
use toolgate::settings::LoadedSettings;
use toolgate::settings::trust::TrustStatus;
use toolgate::{AbsPath, CallAnomaly};
use toolgate_files::AppendLog;
use toolgate_process::sandbox::{KernelSupport, run_self_test};

/// One thing that was looked at.
struct DoctorFinding {
    what: &'static str,
    state: DoctorState,
    detail: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DoctorState {
    Good,
    Note,
    Bad,
}

pub(crate) fn run(world: &CliContext, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let mut findings = vec![finding("version", DoctorState::Good, env!("CARGO_PKG_VERSION"))];
    let cwd = world.cwd();
    let fact = toolgate_files::resolve(&cwd);
    findings.push(match &fact.problem {
        None => finding("workspace", DoctorState::Good, &fact.real.to_string()),
        Some(problem) => finding("workspace", DoctorState::Bad, problem),
    });
    check_settings(world, &mut findings)?;
    check_ledger(world, &mut findings);
    let confined = if toolgate_files::supports_openat2() {
        finding("file confinement", DoctorState::Good, "openat2, links refused by the kernel")
    } else {
        finding(
            "file confinement",
            DoctorState::Note,
            "no openat2 here: paths are walked handle by handle instead",
        )
    };
    findings.push(confined);
    check_sandbox(world, &mut findings);
    print(world, &findings, out)?;
    let bad = findings.iter().any(|finding| finding.state == DoctorState::Bad);
    Ok(if bad { CliExitCode::Usage } else { CliExitCode::Ok })
}

fn check_settings(world: &CliContext, findings: &mut Vec<DoctorFinding>) -> Result<(), CliError> {
    let toolgate = match world.builder()?.build() {
        Ok(toolgate) => toolgate,
        Err(error) => {
            findings.push(finding("settings", DoctorState::Bad, &error.to_string()));
            return Ok(());
        }
    };
    let layers = toolgate.settings().layers();
    if layers.is_empty() {
        findings.push(finding("settings", DoctorState::Good, "no settings files; every default holds"));
    }
    for (layer, file) in layers {
        let file = file.unwrap_or_else(|| "command line".to_owned());
        findings.push(finding("settings", DoctorState::Good, &format!("{layer}: {file}")));
    }
    findings.extend(check_trust(&toolgate.settings()));
    let (notes, problems) = toolgate.notes();
    findings.extend(notes.iter().map(|note| finding("settings", DoctorState::Note, &note.to_string())));
    findings.extend(problems.iter().map(|problem| finding("rules", DoctorState::Note, &problem.to_string())));
    findings.push(finding("mode", DoctorState::Good, toolgate.gate().policy().mode().as_str()));
    let count = toolgate.tools().len();
    findings.push(finding("tools", DoctorState::Good, &format!("{count} shown (toolgate tools)")));
    Ok(())
}

/// Whether what the project brings is trusted, and what of it cannot be.
fn check_trust(settings: &LoadedSettings) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    match settings.trust_status {
        _ if settings.trust_manifest.is_empty() => {}
        TrustStatus::Trusted => {
            findings.push(finding("trust", DoctorState::Good, "what the project brings is trusted"))
        }
        TrustStatus::Changed => {
            let detail = "what the project brings changed after it was trusted: see `toolgate trust`";
            findings.push(finding("trust", DoctorState::Note, detail));
        }
        TrustStatus::Unknown => {
            let detail = "what the project brings is not trusted and waits: see `toolgate trust`";
            findings.push(finding("trust", DoctorState::Note, detail));
        }
    }
    for it in &settings.trust_manifest.unresolved {
        findings.push(finding(
            "trust",
            DoctorState::Note,
            &format!("{} cannot be trusted: {}", it.what, it.why),
        ));
    }
    if let Some(question) = settings.wide_question() {
        findings.push(finding("workspace", DoctorState::Note, &question));
    }
    findings
}

fn check_ledger(world: &CliContext, findings: &mut Vec<DoctorFinding>) {
    let Some((dir, anchor_dir)) = world.ledger_dir().zip(world.anchor_dir()) else {
        findings.push(finding(
            "ledger",
            DoctorState::Note,
            "no home directory: set TOOLGATE_STATE_DIR to keep records",
        ));
        return;
    };
    if let Err(error) = LedgerSink::open_anchored(&dir, &anchor_dir, u64::MAX) {
        findings.push(finding("ledger", DoctorState::Note, &format!("{dir} cannot be written: {error}")));
        return;
    }
    let report = verify_in(&dir, &anchor_dir).map(|(report, _)| report);
    if let Some(words) = summarize_anomalies(&dir) {
        findings.push(finding("anomalies", DoctorState::Note, &words));
    }
    findings.push(match report {
        Ok(report) if report.is_intact() => finding(
            "ledger",
            DoctorState::Good,
            &format!("{} records in {dir}, the chain holds", report.records),
        ),
        Ok(_) => finding("ledger", DoctorState::Bad, "the chain is broken: see `toolgate log --verify`"),
        Err(error) => finding("ledger", DoctorState::Bad, &format!("{dir}: {error}")),
    });
}

/// What commands tried although their judgement did not foresee it, as the ledger has it.
fn summarize_anomalies(dir: &AbsPath) -> Option<String> {
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
fn check_sandbox(world: &CliContext, findings: &mut Vec<DoctorFinding>) {
    let ground = KernelSupport::detect();
    let landlock = match ground.landlock {
        0 => "no Landlock".to_owned(),
        version => format!("Landlock {version}"),
    };
    let filter = match (ground.filter, ground.seccomp_notify) {
        (true, true) => "seccomp with notification",
        (true, false) => "seccomp without notification",
        (false, _) => "no seccomp",
    };
    let state =
        if ground.landlock > 0 && ground.seccomp_notify { DoctorState::Good } else { DoctorState::Note };
    findings.push(finding("sandbox", state, &format!("{landlock}, {filter}")));
    findings.push(if ground.enforces_rights() {
        finding("sandbox", DoctorState::Good, "commands are held to the effects that were judged")
    } else {
        let words = "this kernel cannot hold commands to the effects that were judged: only plain command lines pass \
                     as reading without a question";
        finding("sandbox", DoctorState::Note, words)
    });
    match run_self_test(&world.ambient.temp_dir) {
        Ok(trials) => findings.extend(trials.into_iter().map(|trial| {
            let state = if trial.passed { DoctorState::Good } else { DoctorState::Note };
            let word = if trial.passed { "held" } else { "NOT HELD" };
            finding("sandbox", state, &format!("{word}: {}", trial.what))
        })),
        Err(problem) => {
            findings.push(finding("sandbox", DoctorState::Note, &format!("could not be tried: {problem}")))
        }
    }
}

fn finding(what: &'static str, state: DoctorState, detail: &str) -> DoctorFinding {
    DoctorFinding { what, state, detail: detail.to_owned() }
}

fn print(world: &CliContext, findings: &[DoctorFinding], out: &mut CliOutput) -> Result<(), CliError> {
    let word = |state| match state {
        DoctorState::Good => "ok",
        DoctorState::Note => "note",
        DoctorState::Bad => "bad",
    };
    if world.global.json {
        let list: Vec<Value> = findings
            .iter()
            .map(|f| json!({ "what": f.what, "state": word(f.state), "detail": f.detail }))
            .collect();
        out.print_line(&json!({ "findings": list }).to_string())?;
        return Ok(());
    }
    for f in findings {
        let style = match f.state {
            DoctorState::Good => style::GOOD,
            DoctorState::Note => style::ASK,
            DoctorState::Bad => style::BAD,
        };
        let mark = paint(style, &format!("{:4}", word(f.state)));
        out.print_line(&format!("{mark}  {:16}  {}", f.what, escape_invisible(&f.detail)))?;
    }
    Ok(())
}
