//! What the sandbox refused to a command: notes for the model, and anomalies for the record.
//!
//! The seccomp notification handler and the proxy observe refusals. Nothing is guessed from error messages in the
//! output, except whether a refusal made the command fail.

use super::refusal_role::{RefusalRole, refusal_role};
use super::tasks::ShellTask;
use toolgate_process::sandbox::{SandboxAccess, SandboxDenial};
use toolgate_process::{ProcessExit, to_plain_text};
use toolgate_proto::{RightsLevel, format_count};

/// Withheld files that a note lists by path.
const MAX_LISTED_FILE_COUNT: usize = 5;

/// The refusals of the sandbox and of its proxy, each with the setting that would allow the access.
pub(super) fn sandbox_refusal_notes(task: &ShellTask) -> Vec<String> {
    let denials = task.process.denials();
    let file = task.settings_file.as_deref();
    let withheld: Vec<&str> = denials
        .iter()
        .filter(|denial| denial.access == SandboxAccess::ReadHidden)
        .map(|denial| denial.target.as_str())
        .collect();
    let mut notes: Vec<String> = denials
        .iter()
        .filter(|denial| denial.access != SandboxAccess::ReadHidden)
        .map(|denial| {
            let role = match role_of(task, denial) {
                RefusalRole::Cause => "to allow it",
                RefusalRole::PossibleCause => "this may be why the command failed; to allow it",
                RefusalRole::Harmless => "the command succeeded without it; to allow it",
                RefusalRole::Unrelated => {
                    "nothing shows that the command failed because of it; to allow it all the same"
                }
            };
            format!("the sandbox refused (observed): {denial}; {role}: {}", denial.access.setting(file))
        })
        .collect();
    notes.extend(withheld_note(&withheld, file));
    let hosts = task.refused_hosts();
    notes.extend(hosts.iter().map(|host| format!("the proxy refused (observed): {}", host.message(file))));
    let failed = !matches!(task.process.phase().exit(), None | Some(ProcessExit::Code(0)));
    if failed && task.process.enforcement().is_some_and(|enforced| !enforced.observed) {
        notes.push(
            "the sandbox may be the cause, but its refusals cannot be observed on this machine".to_owned(),
        );
    }
    notes
}

/// The number of files that were withheld from the command, and the first of them.
fn withheld_note(withheld: &[&str], file: Option<&str>) -> Option<String> {
    let first = withheld.first()?;
    let listed: Vec<String> =
        withheld.iter().take(MAX_LISTED_FILE_COUNT).map(|path| format!("`{path}`")).collect();
    let more = if withheld.len() > listed.len() { ", …" } else { "" };
    let place = file.map(|file| format!(" to `permissions.allow` in {file}")).unwrap_or_default();
    let count = format_count(withheld.len() as u64, "file", "files");
    Some(format!(
        "withheld from the command (by a rule or because the name is sensitive): {count}: {}{more}; to allow reading one \
         that no rule denies, add the allow rule `Read(/{first})`{place}",
        listed.join(", ")
    ))
}

/// The hint for a failed command: the setting that would allow the refused access that made it fail. Withheld files have
/// their own note, and a command seldom fails because of them.
pub(super) fn sandbox_hint(task: &ShellTask) -> Option<String> {
    let denials = task.process.denials();
    let find_denial = |role: RefusalRole| {
        let has_role = move |denial: &&SandboxDenial| {
            denial.access != SandboxAccess::ReadHidden && role_of(task, denial) == role
        };
        denials.iter().find(has_role)
    };
    let (denial, what) = match (find_denial(RefusalRole::Cause), find_denial(RefusalRole::PossibleCause)) {
        (Some(denial), _) => (denial, "an access that the command needs"),
        (None, Some(denial)) => (denial, "an access, which may be why the command failed"),
        (None, None) => return None,
    };
    let setting = denial.access.setting(task.settings_file.as_deref());
    Some(format!("the sandbox refused {what}; to allow it: {setting}"))
}

/// What a refused access had to do with the end of the command.
fn role_of(task: &ShellTask, denial: &SandboxDenial) -> RefusalRole {
    let captured = task.process.output_snapshot();
    let output = to_plain_text(&captured.head) + &to_plain_text(&captured.tail);
    refusal_role(denial, task.process.phase().exit(), &task.command, &output)
}

/// Refused accesses that the judgement of the command did not predict: its analysis was wrong, or the command is
/// hostile.
pub(crate) fn anomalies(task: &ShellTask) -> Vec<String> {
    let is_anomaly = |denial: &&SandboxDenial| match (task.level, denial.access) {
        // The analysis makes no prediction for a command that was allowed as a whole.
        (RightsLevel::Workspace, _) => false,
        // Programs look for configuration files everywhere, and searches meet withheld files.
        (
            RightsLevel::ReadOnly | RightsLevel::NamedWrites,
            SandboxAccess::Read | SandboxAccess::ReadHidden,
        ) => false,
        (
            RightsLevel::ReadOnly | RightsLevel::NamedWrites,
            SandboxAccess::Execute
            | SandboxAccess::Write
            | SandboxAccess::WriteProtected
            | SandboxAccess::Metadata
            | SandboxAccess::Internet
            | SandboxAccess::Connect
            | SandboxAccess::Listen
            | SandboxAccess::UnixSocket,
        ) => true,
    };
    task.process.denials().iter().filter(is_anomaly).map(ToString::to_string).collect()
}
