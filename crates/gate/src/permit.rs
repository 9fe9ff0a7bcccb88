//! The proofs that a call may run: [`Permit`] from the settle stage, [`Cleared`] from the guard stage.
//!
//! Neither can be made outside this crate, copied, or kept from an earlier call.
//!
//! ```compile_fail,E0624
//! // A permit has no public constructor.
//! let permit = toolgate_gate::Permit::issue(unimplemented!());
//! ```
//!
//! ```compile_fail,E0451
//! // Nor can it be put together from its parts.
//! let permit = toolgate_gate::Permit { terms: unimplemented!() };
//! ```
//!
//! ```compile_fail,E0599
//! // One permit is for one run.
//! fn twice(permit: toolgate_gate::Permit) -> (toolgate_gate::Permit, toolgate_gate::Permit) {
//!     (permit.clone(), permit)
//! }
//! ```
//!
//! ```compile_fail,E0624
//! // Only the guard stage turns a permit into a cleared call.
//! fn clear(permit: toolgate_gate::Permit) -> toolgate_gate::Cleared {
//!     toolgate_gate::Cleared::new(permit, unimplemented!(), unimplemented!(), unimplemented!(), unimplemented!(), None)
//! }
//! ```
//!
//! ```compile_fail,E0308
//! // A tool cannot be run without one.
//! async fn around<T: toolgate_gate::Tool>(tool: &T, input: T::Input) {
//!     let _ = tool.run(input, ()).await;
//! }
//! ```

use crate::approve::{QuestionChannels, QuestionOutcome, QuestionRequest, UserQuestion};
use crate::call_context::CallContext;
use crate::hook::{HookEvent, RaisedHooks};
use crate::host_rules::HostRules;
use crate::progress::CallProgress;
use serde_json::{Map, Value};
use std::io;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use toolgate_files::{GrantedFiles, SpillStore};
use toolgate_process::sandbox::FileGuard;
use toolgate_proto::{AbsPath, CallId, Refusal, Terms};

/// Proof that one call may run once, on certain terms.
#[derive(Debug)]
#[must_use = "a permit that is not used means that a granted call did not run"]
pub struct Permit {
    terms: Terms,
}

impl Permit {
    /// Issues the permit. Only the stage `settle` calls this; a tidy rule holds that.
    pub(crate) fn issue(terms: Terms) -> Self {
        Self { terms }
    }

    /// The terms on which the call may run.
    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }
}

/// A call that passed every stage before its run: the permit, and handles that reach what was granted.
#[derive(Debug)]
pub struct Cleared {
    permit: Permit,
    call: CallId,
    context: CallContext,
    files: GrantedFiles,
    hosts: HostRules,
    guard: FileGuard,
    progress: CallProgress,
    cancel: CancellationToken,
    channels: QuestionChannels,
    spill: Option<Arc<SpillStore>>,
    hooks: Option<RaisedHooks>,
}

impl Cleared {
    pub(crate) fn new(
        permit: Permit,
        call: CallId,
        context: CallContext,
        (files, hosts, guard): (GrantedFiles, HostRules, FileGuard),
        (progress, cancel, channels, spill): (
            CallProgress,
            CancellationToken,
            QuestionChannels,
            Option<Arc<SpillStore>>,
        ),
        hooks: Option<RaisedHooks>,
    ) -> Self {
        Self { permit, call, context, files, hosts, guard, progress, cancel, channels, spill, hooks }
    }

    /// The call's id.
    pub fn call(&self) -> &CallId {
        &self.call
    }

    /// Where the call happens.
    pub fn context(&self) -> &CallContext {
        &self.context
    }

    /// The terms the run must keep to.
    pub fn terms(&self) -> &Terms {
        &self.permit.terms
    }

    /// The files that the intent named, as they were judged.
    pub fn files(&self) -> &GrantedFiles {
        &self.files
    }

    /// The rules for hosts that become known only while the call runs.
    pub fn hosts(&self) -> &HostRules {
        &self.hosts
    }

    /// The rules for files that a command opens only while it runs.
    pub fn file_guard(&self) -> &FileGuard {
        &self.guard
    }

    /// Where to report progress.
    pub fn progress(&self) -> &CallProgress {
        &self.progress
    }

    /// Puts questions to the user, through the approvers of the gate. Refused where there is no user, and where the
    /// intent did not say that the call asks.
    pub async fn ask_user(&self, questions: Vec<UserQuestion>) -> Result<QuestionOutcome, Refusal> {
        let request = QuestionRequest {
            id: toolgate_files::generate_id("ask_"),
            call: self.call.clone(),
            context: self.context.clone(),
            questions,
            cancel: self.cancel.child_token(),
        };
        self.channels.ask(&request).await
    }

    /// Runs the hooks of an event that only the tool knows of, with the fields that the event has. A refusal means that a
    /// hook denied it or failed, and the tool must undo or not do what the event is about.
    pub async fn run_hooks(&self, event: HookEvent, fields: &Map<String, Value>) -> Result<(), Refusal> {
        match &self.hooks {
            Some(hooks) => hooks.run((&self.call, &self.context, &self.progress), event, fields).await,
            None => Ok(()),
        }
    }

    /// Stores bytes that cannot be shown, in the directory of results that are too large: under a name of ours, readable by
    /// the session's tools. `None` if the gate has no such directory.
    pub fn store_result_file(&self, extension: &str, content: &[u8]) -> Option<io::Result<AbsPath>> {
        let spill = self.spill.as_ref()?;
        Some(spill.store(self.context.session.id().as_str(), self.call.as_str(), extension, content))
    }

    /// Cancelled when the call is cancelled or out of time. Long work must check it.
    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }
}
