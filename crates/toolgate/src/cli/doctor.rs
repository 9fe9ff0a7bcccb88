//! `toolgate doctor`: checks settings, trust, ledger and kernel support, and runs the self-test of the sandbox.
//!
//! The self-test does not ask the kernel for its features: it makes real attempts in a sandbox, such as writing outside
//! the workspace, because a feature can be present and still be disabled by the container or a security module.

use super::context::CliContext;
use super::mcp::find_server_problems;
use super::output::{CliOutput, paint, style};
use super::{CliError, CliExitCode};
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate::ledger::{LEDGER_NAME, LedgerSink, verify_in};
use toolgate::render::escape_invisible;
use toolgate::settings::trust::TrustStatus;
use toolgate::settings::{LoadedSettings, find_unusable_hooks};
use toolgate::{AbsPath, CallAnomaly, ShellConfig};
use toolgate_files::AppendLog;
use toolgate_process::sandbox::{KernelSupport, run_self_test};
use toolgate_proto::format_count;

/// The result of one check.
struct DoctorFinding {
    /// The area: `settings`, `ledger`, `sandbox` and so on.
    what: &'static str,
    /// How serious it is.
    state: DoctorState,
    /// One line for the user.
    detail: String,
}

/// How serious a finding is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DoctorState {
    /// As it should be.
    Good,
    /// Works with a limitation that the user should know.
    Note,
    /// Broken: the command exits with code 2.
    Bad,
}

/// Makes every check and prints the findings in a fixed order.
pub(crate) fn run(context: &CliContext, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let mut findings = vec![finding("version", DoctorState::Good, env!("CARGO_PKG_VERSION"))];
    let cwd = context.cwd();
    let fact = toolgate_files::resolve(&cwd);
    findings.push(match &fact.problem {
        None => finding("workspace", DoctorState::Good, &fact.real.to_string()),
        Some(problem) => finding("workspace", DoctorState::Bad, problem),
    });
    check_settings(context, &mut findings)?;
    check_ledger(context, &mut findings);
    let confined = if toolgate_files::supports_openat2() {
        finding("file access", DoctorState::Good, "openat2: the kernel refuses symlinks in granted paths")
    } else {
        finding(
            "file access",
            DoctorState::Note,
            "this kernel has no openat2; paths are opened one component at a time, which is slower",
        )
    };
    findings.push(confined);
    check_sandbox(context, &mut findings);
    print(context, &findings, out)?;
    let bad = findings.iter().any(|finding| finding.state == DoctorState::Bad);
    Ok(if bad { CliExitCode::Usage } else { CliExitCode::Ok })
}

/// The settings files, the notes about them, the mode and the number of tools.
fn check_settings(context: &CliContext, findings: &mut Vec<DoctorFinding>) -> Result<(), CliError> {
    let toolgate = match context.builder()?.build() {
        Ok(toolgate) => toolgate,
        Err(error) => {
            findings.push(finding("settings", DoctorState::Bad, &error.to_string()));
            return Ok(());
        }
    };
    let layers = toolgate.settings().layers();
    if layers.is_empty() {
        findings.push(finding("settings", DoctorState::Good, "no settings files; defaults apply"));
    }
    for (layer, file) in layers {
        let file = file.unwrap_or_else(|| "command line".to_owned());
        findings.push(finding("settings", DoctorState::Good, &format!("{layer}: {file}")));
    }
    findings.extend(check_trust(&toolgate.settings()));
    findings.extend(check_snapshots(&toolgate.settings()));
    let settings = toolgate.settings();
    let mode = toolgate.gate().policy().mode();
    if let Some(why) = context.find_refusal_of_all_calls(&settings, mode) {
        findings.push(finding("calls", DoctorState::Bad, &format!("every call is refused: {why}")));
    }
    let unusable: Vec<String> = find_unusable_hooks(&settings, &context.cwd())
        .into_iter()
        .map(|mut problem| {
            problem.fix.clear();
            problem.to_string()
        })
        .collect();
    findings.extend(unusable.iter().map(|problem| finding("hooks", DoctorState::Bad, problem)));
    let servers = find_server_problems(context, &settings);
    findings.extend(servers.iter().map(|problem| finding("servers", DoctorState::Bad, problem)));
    let (notes, problems) = toolgate.notes();
    let has_trust_finding =
        settings.trust_status != TrustStatus::Trusted && !settings.trust_manifest.is_empty();
    let notes = notes.iter().filter(|note| !(has_trust_finding && note.is_about_trust()));
    let notes = notes.filter(|note| !unusable.contains(&note.to_string()));
    findings.extend(notes.map(|note| finding("settings", DoctorState::Note, &note.to_string())));
    findings.extend(problems.iter().map(|problem| finding("rules", DoctorState::Note, &problem.to_string())));
    findings.push(finding("mode", DoctorState::Good, mode.as_str()));
    let count = toolgate.tools().len();
    findings.push(finding(
        "tools",
        DoctorState::Good,
        &format!("{count} available; `toolgate tools` lists them"),
    ));
    Ok(())
}

/// Whether the project's settings, hooks and servers are trusted, and which of them trust cannot cover.
fn check_trust(settings: &LoadedSettings) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    match settings.trust_status {
        _ if settings.trust_manifest.is_empty() => {}
        TrustStatus::Trusted => {
            let detail = "this project's settings, hooks and servers are trusted";
            findings.push(finding("trust", DoctorState::Good, detail));
        }
        TrustStatus::Changed => {
            let detail = match settings.notes.first().filter(|note| note.is_about_trust()) {
                Some(note) => note.message.clone(),
                None => "this project changed after you trusted it; see `toolgate trust`".to_owned(),
            };
            findings.push(finding("trust", DoctorState::Note, &detail));
        }
        TrustStatus::Unknown => {
            let detail = "this project is not trusted, so settings that grant permissions are off; see \
                          `toolgate trust`";
            findings.push(finding("trust", DoctorState::Note, detail));
        }
    }
    for command in &settings.trust_manifest.unresolved {
        let detail = format!("{} cannot be trusted: {}", command.what, command.why);
        findings.push(finding("trust", DoctorState::Note, &detail));
    }
    if let Some(question) = settings.wide_question() {
        findings.push(finding("workspace", DoctorState::Note, &question));
    }
    findings
}

/// Whether the snapshots that the settings want can be made.
fn check_snapshots(settings: &LoadedSettings) -> Option<DoctorFinding> {
    let mut config = ShellConfig::default();
    settings.apply_to_shell_config(&mut config);
    let detail = match (config.snapshots, config.sandbox.enabled) {
        (false, _) => return None,
        (true, false) => "`shell.snapshots` has no effect, because the settings turn the sandbox off",
        (true, true) if !KernelSupport::detect().seccomp_notify => {
            "`shell.snapshots` has no effect, because the sandbox cannot observe changes on this kernel"
        }
        (true, true) => {
            let detail = "what commands change in the workspace can be undone (`shell.snapshots`)";
            return Some(finding("undo", DoctorState::Good, detail));
        }
    };
    let detail = format!("{detail}: `toolgate undo` does not cover commands");
    Some(finding("undo", DoctorState::Note, &detail))
}

/// Whether calls can be recorded, the hash chain is intact, and commands attempted what policy did not predict.
fn check_ledger(context: &CliContext, findings: &mut Vec<DoctorFinding>) {
    let Some((dir, anchor_dir)) = context.ledger_dir().zip(context.anchor_dir()) else {
        findings.push(finding(
            "ledger",
            DoctorState::Note,
            "calls are not recorded: there is no home directory; set TOOLGATE_STATE_DIR",
        ));
        return;
    };
    if let Err(error) = LedgerSink::open_anchored(&dir, &anchor_dir, u64::MAX) {
        findings.push(finding("ledger", DoctorState::Note, &format!("cannot write to {dir}: {error}")));
        return;
    }
    // Where records are required, this is a finding about every call.
    let settings = context.settings_options().ok().and_then(|options| LoadedSettings::load(&options).ok());
    let anchor = settings.and_then(|settings| context.external_anchor(&settings).ok().flatten());
    if let Err(problem) = context.check_ledger_ready(anchor) {
        findings.push(finding("ledger", DoctorState::Note, &format!("cannot be written: {problem}")));
    }
    let report = verify_in(&dir, &anchor_dir).map(|(report, _)| report);
    if let Some(summary) = summarize_anomalies(&dir) {
        findings.push(finding("anomalies", DoctorState::Note, &summary));
    }
    findings.push(match report {
        Ok(report) if report.is_intact() => finding(
            "ledger",
            DoctorState::Good,
            &format!("{} in {dir}, hash chain intact", format_count(report.records, "record", "records")),
        ),
        Ok(_) => finding(
            "ledger",
            DoctorState::Bad,
            "the hash chain is broken: records were changed or removed; see `toolgate log --verify`",
        ),
        Err(error) => finding("ledger", DoctorState::Bad, &format!("{dir}: {error}")),
    });
}

/// The recorded anomalies: attempts of commands that their judgement did not predict and the sandbox refused.
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
        "the sandbox refused {} of commands that the analysis did not predict; the last: {} [{}]",
        format_count(found.len() as u64, "attempt", "attempts"),
        last.text,
        last.code
    ))
}

/// The kernel features of the sandbox, and its self-test: each line is one attempt of a sandboxed command.
fn check_sandbox(context: &CliContext, findings: &mut Vec<DoctorFinding>) {
    let kernel = KernelSupport::detect();
    let landlock = match kernel.landlock {
        0 => "no Landlock".to_owned(),
        version => format!("Landlock {version}"),
    };
    let filter = match (kernel.filter, kernel.seccomp_notify) {
        (true, true) => "seccomp with notification",
        (true, false) => "seccomp without notification",
        (false, _) => "no seccomp",
    };
    let state =
        if kernel.landlock > 0 && kernel.seccomp_notify { DoctorState::Good } else { DoctorState::Note };
    findings.push(finding("sandbox", state, &format!("{landlock}, {filter}")));
    findings.push(if kernel.enforces_rights() {
        finding("sandbox", DoctorState::Good, "the kernel limits commands to the effects that were judged")
    } else {
        let detail = "this kernel cannot limit commands to the effects that were judged, so only plain read-only \
                      commands run without approval";
        finding("sandbox", DoctorState::Note, detail)
    });
    match run_self_test(&context.ambient.temp_dir) {
        Ok(results) => findings.extend(results.into_iter().map(|result| {
            let state = if result.passed { DoctorState::Good } else { DoctorState::Note };
            let word = if result.passed { "pass" } else { "FAIL" };
            finding("sandbox", state, &format!("{word}: {}", result.what))
        })),
        Err(problem) => findings.push(finding(
            "sandbox",
            DoctorState::Note,
            &format!("the self-test could not run: {problem}"),
        )),
    }
}

/// A finding with these fields.
fn finding(what: &'static str, state: DoctorState, detail: &str) -> DoctorFinding {
    DoctorFinding { what, state, detail: detail.to_owned() }
}

/// Prints the findings as a table, or as one JSON object.
fn print(context: &CliContext, findings: &[DoctorFinding], out: &mut CliOutput) -> Result<(), CliError> {
    let word = |state| match state {
        DoctorState::Good => "ok",
        DoctorState::Note => "note",
        DoctorState::Bad => "bad",
    };
    if context.global.json {
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
