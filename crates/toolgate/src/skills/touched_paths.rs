//! Skills of directories below the workspace: they are found when a call touches a file there.

use super::live_skills::LiveSkills;
use std::sync::Arc;
use toolgate_gate::Sink;
use toolgate_proto::{AbsPath, CallRecord, OutcomeRecord};

/// Tells the skills of a session which paths its calls touched.
pub(crate) struct TouchedPathSink {
    /// The skills that learn of the paths.
    pub(crate) skills: Arc<LiveSkills>,
    /// The workspace root; only directories below it are searched for skills.
    pub(crate) root: AbsPath,
}

impl Sink for TouchedPathSink {
    /// Reports the paths of completed calls to the skills, which look for nested skill directories there.
    fn record(&self, record: &CallRecord) {
        // A call that was refused touched nothing.
        if !matches!(record.outcome, OutcomeRecord::Done { .. }) {
            return;
        }
        for path in record.effects.iter().filter_map(|effect| effect.path()) {
            self.skills.add_touched_path(&self.root, path);
        }
    }
}
