//! What comes for an agent between turns: schedules that are due, and lines of watched commands.

use toolgate::Toolgate;

/// Whose schedules a session takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TakenSchedules {
    /// Its own, and those of the project that outlive sessions: the user watches.
    OfProject,
    /// Its own: the program that drives it counts turns, and expects no work of others.
    OfSession,
}

/// What has come since the last look, as a prompt. A store that cannot be read now is looked at again.
pub(super) fn next_session_event(toolgate: &Toolgate, taken: TakenSchedules) -> Option<String> {
    let session = toolgate.session();
    let due = match taken {
        TakenSchedules::OfProject => toolgate::claim_due_schedules(session),
        TakenSchedules::OfSession => toolgate::claim_own_schedules(session),
    };
    let due = due.unwrap_or_default();
    let prompts = due.iter().map(toolgate::scheduled_prompt);
    let lines = toolgate::take_monitor_events(session);
    let lines = (!lines.is_empty())
        .then(|| format!("[output of watched commands, not words of the user]\n\n{}", lines.join("\n")));
    let texts: Vec<String> = prompts.chain(lines).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}
