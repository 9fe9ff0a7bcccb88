//! Which session a run goes on with, and where it is stored.

use super::super::CliError;
use super::super::context::CliContext;
use super::run_args::RunArgs;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use toolgate::agent::session::{
    SessionStore, SessionSummary, StoredSession, TranscriptWriter, check_session_id,
};
use toolgate::{AbsPath, Toolgate};
use toolgate_files::{
    ChangeState, ConflictHandling, Journal, JournalLimits, UndoFilter, UndoProblem, UndoSelector,
};

/// The session of a run.
pub(crate) struct RunSession {
    /// Its id.
    pub(crate) id: String,
    /// What it goes on from.
    pub(crate) before: StoredSession,
    /// Where it is stored; absent if it is not.
    pub(crate) path: Option<AbsPath>,
    /// It has a new id, so what it goes on from is copied.
    is_fork: bool,
}

impl RunSession {
    /// Chooses the session by the arguments.
    pub(crate) fn choose(context: &CliContext, args: &RunArgs) -> Result<Self, CliError> {
        let usage = |error: toolgate::agent::session::SessionError| CliError::Usage(error.to_string());
        if let Some(id) = &args.session_id {
            check_session_id(id).map_err(usage)?;
        }
        let stores = session_stores(context);
        let resumed = match (&args.resume, args.continue_last) {
            (Some(id), _) => Some(id.clone()),
            (None, true) => {
                let newest =
                    stores.iter().filter_map(SessionStore::newest).max_by_key(|(_, modified)| *modified);
                let none =
                    "there is no session in this directory to go on with; start one without --continue";
                Some(newest.ok_or_else(|| CliError::Usage(none.to_owned()))?.0)
            }
            (None, false) => None,
        };
        let mut before = StoredSession::default();
        if let Some(id) = &resumed {
            check_session_id(id).map_err(usage)?;
            let store = stores.iter().find(|store| store.contains(id)).or(stores.first());
            let store =
                store.ok_or_else(|| CliError::Usage("there is no directory for sessions".to_owned()))?;
            before = store.load(id).map_err(usage)?;
            if let Some(message) = &args.resume_session_at {
                if let Some(prompt) = &args.resume_drops_turn {
                    before.check_dropped_turn(message, prompt).map_err(usage)?;
                }
                before = before.up_to(message).map_err(usage)?;
            }
        }
        let is_fork = resumed.is_some()
            && (args.fork_session || args.session_id.is_some() || args.resume_session_at.is_some());
        let fresh = || args.session_id.clone().unwrap_or_else(toolgate_files::generate_uuid);
        let id = match resumed {
            Some(id) if !is_fork => id,
            _ => fresh(),
        };
        let path = match stores.iter().find(|store| store.contains(&id)).or(stores.first()) {
            Some(store) if !args.no_session_persistence => Some(store.transcript_path(&id).map_err(usage)?),
            _ => None,
        };
        Ok(Self { id, before, path, is_fork })
    }

    /// Opens the transcript.
    pub(crate) fn open_transcript(
        &self,
        toolgate: &Toolgate,
    ) -> Result<Option<Arc<TranscriptWriter>>, String> {
        let Some(path) = &self.path else { return Ok(None) };
        let cwd = toolgate.session().workspace().cwd.clone();
        let before = if self.is_fork { &StoredSession::default() } else { &self.before };
        let writer = TranscriptWriter::open(path, &self.id, &cwd, before)
            .map_err(|problem| format!("the session is not stored: cannot write to {path} ({problem})"))?;
        if self.is_fork {
            writer.copy_lines(&self.before);
        }
        toolgate.session().state::<toolgate::agent::TranscriptPath>().set(path.clone());
        Ok(Some(Arc::new(writer)))
    }
}

/// Where transcripts may be; the first is where new ones go. Programs with an agent SDK list sessions from the directory
/// of Claude's configuration, so theirs go there.
fn session_stores(context: &CliContext) -> Vec<SessionStore> {
    let cwd = toolgate_files::resolve(&context.cwd()).real;
    session_bases(context).iter().map(|base| SessionStore::new(base, &cwd)).collect()
}

/// The stored sessions, the one written to last first: of the directory of the context, or of all.
pub(super) fn list_sessions(context: &CliContext, of_all: bool) -> Vec<SessionSummary> {
    let stores = match of_all {
        true => session_bases(context).iter().flat_map(SessionStore::of_all_projects).collect(),
        false => session_stores(context),
    };
    let mut sessions: Vec<SessionSummary> = stores.iter().flat_map(SessionStore::list).collect();
    sessions.sort_by_key(|session| std::cmp::Reverse(session.modified));
    sessions
}

/// The directories below which transcripts are.
fn session_bases(context: &CliContext) -> Vec<AbsPath> {
    let env = &context.ambient.env;
    let named = env.get("CLAUDE_CONFIG_DIR").and_then(|dir| AbsPath::new(dir).ok());
    let is_sdk = env.get("CLAUDE_CODE_ENTRYPOINT").is_some_and(|entry| entry.starts_with("sdk"));
    let claude = named.clone().or_else(|| context.ambient.home.as_ref().map(|home| home.join(".claude")));
    let own = context.ambient.state_dir.as_ref().map(|dir| dir.join("sessions"));
    let bases = if is_sdk || named.is_some() { [claude, own] } else { [own, claude] };
    bases.into_iter().flatten().collect()
}

/// Brings the files back to what they were before a prompt: the answer to `rewind_files`.
pub(super) fn rewind_files(
    journal_dir: Option<&AbsPath>,
    toolgate: &Toolgate,
    request: &Value,
) -> Result<Value, String> {
    let message =
        request.get("user_message_id").and_then(Value::as_str).ok_or("`user_message_id` is missing")?;
    let cannot = |why: String| Ok(json!({ "canRewind": false, "error": why }));
    let path = toolgate.session().state::<toolgate::agent::TranscriptPath>();
    let (Some(path), Some(dir)) = (path.get(), journal_dir) else {
        return cannot("this session is not stored".to_owned());
    };
    let stored = match StoredSession::read_file(path) {
        Ok(stored) => stored,
        Err(error) => return cannot(error.to_string()),
    };
    let before = match stored.calls_before(message) {
        Ok(before) => before,
        Err(error) => return cannot(error.to_string()),
    };
    let journal =
        Journal::open_lazily(dir, JournalLimits::default()).map_err(|problem| problem.to_string())?;
    let session = toolgate.session().id();
    let changes = journal.list().map_err(|problem| problem.to_string())?;
    let mut ours: Vec<_> = changes
        .iter()
        .filter(|change| change.session == *session && change.state == ChangeState::Done)
        .collect();
    ours.sort_by_key(|change| std::cmp::Reverse(change.id));
    let after = ours.iter().take_while(|change| !before.contains(change.call.as_str()));
    let calls: BTreeSet<&str> = after.map(|change| change.call.as_str()).collect();
    if calls.is_empty() {
        return Ok(json!({ "canRewind": true, "filesChanged": [], "insertions": 0, "deletions": 0 }));
    }
    let which = UndoSelector::Steps(calls.len(), UndoFilter::session(session.clone()));
    let restores = if request.get("dry_run") == Some(&Value::Bool(true)) {
        let plan = journal.plan_undo(&which).map_err(|problem| problem.to_string())?;
        if !plan.conflicts.is_empty() {
            return cannot(UndoProblem::Conflicts(plan.conflicts).to_string());
        }
        plan.restores
    } else {
        match journal.undo(&which, ConflictHandling::Refuse) {
            Ok(outcome) => outcome.restores,
            Err(problem) => return cannot(problem.to_string()),
        }
    };
    let counts = restores.iter().filter_map(|restore| {
        let (now, then) =
            (restore.now.as_deref().unwrap_or_default(), restore.then.as_deref().unwrap_or_default());
        toolgate_tools::count_changed_lines(now, then)
    });
    let (insertions, deletions) = counts.fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    let files: Vec<&AbsPath> = restores.iter().map(|restore| &restore.path).collect();
    Ok(json!({ "canRewind": true, "filesChanged": files, "insertions": insertions, "deletions": deletions }))
}
