//! The terms of a verdict: what a run that was allowed is obliged to.

use super::evaluation::PolicyEvaluation;
use super::rights::RightsBasis;
use crate::url::FetchTarget;
use toolgate_proto::{
    AbsPath, CommandLine, Effect, GitTerms, GitUse, NetworkAccess, RightsLevel, Terms, VerdictReason,
};
use toolgate_shell_syntax::CommandPart;

impl PolicyEvaluation<'_> {
    /// The terms of the run. An approver approves a command line as a whole, so `basis` also says whether one did.
    pub(crate) fn terms(&self, reason: VerdictReason, basis: RightsBasis) -> Terms {
        let is_approved = basis == RightsBasis::AsWhole;
        let commands: Vec<&CommandLine> = self.intended_commands().collect();
        let runs_command = !commands.is_empty();
        let (mut protected, unreadable) = if runs_command {
            let paths = self.compiled.sandbox_paths(self.request.workspace, &self.exact);
            (paths.protected, paths.unreadable)
        } else {
            (Vec::new(), Vec::new())
        };
        let rights = self.rights(basis);
        let network = match rights.level {
            RightsLevel::Workspace => self.network(runs_command),
            // A tool that fetches runs no command, and its rights are none: the level does not limit its network.
            RightsLevel::ReadOnly | RightsLevel::NamedWrites if !runs_command => self.network(runs_command),
            RightsLevel::ReadOnly | RightsLevel::NamedWrites => NetworkAccess::None,
        };
        let is_named =
            |path: &AbsPath| rights.named.iter().any(|named| named == path || path.is_under(named));
        protected.retain(|path| !is_named(path));
        let mut terms = Terms::new(reason);
        // Only an approver lets a command run outside the sandbox: no rule, mode or hook does.
        terms.unsandboxed = is_approved && commands.iter().any(|command| command.unsandboxed);
        (terms.protected, terms.unreadable) = (protected, unreadable);
        (terms.network, terms.rights) = (network, rights);
        terms.git = if is_approved { self.approved_git_terms() } else { self.git };
        terms
    }

    /// The command lines that the intent declares.
    fn intended_commands(&self) -> impl Iterator<Item = &CommandLine> {
        self.request.intent.effects.iter().filter_map(|effect| {
            let Effect::Exec { command } = effect else { return None };
            Some(command)
        })
    }

    /// How git is used in a call that an approver allowed: nothing in it depends on git being read-only.
    fn approved_git_terms(&self) -> GitTerms {
        let parts = || self.request.survey.parts();
        let usage = if !parts().any(CommandPart::runs_git) {
            GitUse::Absent
        } else if parts().all(CommandPart::reads_if_bounded) {
            GitUse::GrantedReads
        } else {
            GitUse::Granted
        };
        GitTerms::new(usage).with_searches(parts().any(CommandPart::searches_by_git))
    }

    /// The hosts that the call names. If allow rules name hosts, a command gets the filtering proxy even when the list
    /// is empty, and the proxy asks [`Policy::judge_target`](crate::Policy::judge_target) about every connection.
    fn network(&self, runs_command: bool) -> NetworkAccess {
        let fetched = self.effects().filter_map(|effect| {
            let Effect::Fetch { url } = effect else { return None };
            FetchTarget::parse(url).ok().map(|target| target.host_text())
        });
        let mut hosts: Vec<String> = fetched.collect();
        hosts.sort_unstable();
        hosts.dedup();
        if hosts.is_empty() && !(runs_command && self.compiled.has_allowed_hosts) {
            NetworkAccess::None
        } else {
            NetworkAccess::Hosts(hosts)
        }
    }
}
