//! Commands that begin with `/`, at the terminal and from hosts.

use super::permission_updates::HostPermissionUpdates;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use toolgate::agent::AgentLoop;
use toolgate::settings::values::SkillOverride;
use toolgate::skills::CatalogSkill;
use toolgate::{AbsPath, Toolgate};
use toolgate_files::{ConflictHandling, Journal, JournalLimits, UndoFilter, UndoProblem, UndoSelector};

/// The commands, with what they do.
pub(super) const SLASH_COMMANDS: [(&str, &str, &str); 6] = [
    ("help", "", "list the commands"),
    ("compact", "[what matters]", "replace the conversation by a summary of it"),
    ("clear", "", "forget the conversation"),
    ("mode", "[mode]", "show or change the permission mode"),
    ("undo", "", "take back what the last call changed in files"),
    ("cost", "", "show tokens and cost of this run"),
];

/// Runs commands of one session.
pub(super) struct SlashCommands {
    pub(super) toolgate: Toolgate,
    pub(super) agent: Arc<AgentLoop>,
    pub(super) updates: Arc<HostPermissionUpdates>,
    pub(super) journal_dir: Option<AbsPath>,
}

impl SlashCommands {
    /// Runs a command; none if the text is not one of ours.
    pub(super) async fn run(&self, text: &str, cancel: &CancellationToken) -> Option<Result<String, String>> {
        let (name, rest) =
            text.trim().strip_prefix('/')?.split_once(' ').unwrap_or((text.trim().get(1..)?, ""));
        let rest = rest.trim();
        Some(match name {
            "help" => Ok(render_help(&list_skills(&self.toolgate))),
            "compact" => {
                let compacted = self.agent.compact("manual", Some(rest), cancel).await;
                compacted
                    .map(|()| "the conversation was compacted".to_owned())
                    .map_err(|error| error.to_string())
            }
            "clear" => {
                self.agent.clear();
                Ok("the conversation was forgotten".to_owned())
            }
            "mode" if rest.is_empty() => Ok(format!("the mode is {}", self.toolgate.mode())),
            "mode" => self.updates.set_mode(rest).map(|()| format!("the mode is {}", self.toolgate.mode())),
            "undo" => self.undo_last(),
            "cost" => Ok(self.render_cost()),
            _ => return None,
        })
    }

    /// Whether a text begins with `/` and the name of a skill or command.
    pub(super) fn is_skill(&self, text: &str) -> bool {
        let name = text.split_whitespace().next().unwrap_or_default();
        self.toolgate.skills().is_some_and(|skills| skills.current().find_skill(name).is_some())
    }

    /// Takes back the changes of the last call of this session that changed files.
    fn undo_last(&self) -> Result<String, String> {
        let dir = self.journal_dir.as_ref().ok_or("changes of files are not recorded")?;
        let journal =
            Journal::open_lazily(dir, JournalLimits::default()).map_err(|problem| problem.to_string())?;
        let which = UndoSelector::Last(UndoFilter::session(self.toolgate.session().id().clone()));
        match journal.undo(&which, ConflictHandling::Refuse) {
            Ok(outcome) => {
                let (restored, removed): (Vec<_>, Vec<_>) =
                    outcome.restores.iter().partition(|restore| restore.then.is_some());
                let said = [("restored", restored), ("removed", removed)].into_iter();
                let said = said.filter(|(_, list)| !list.is_empty()).map(|(verb, list)| {
                    let files: Vec<String> = list.iter().map(|restore| restore.path.to_string()).collect();
                    format!("{verb} {}", files.join(", "))
                });
                Ok(said.collect::<Vec<_>>().join("; "))
            }
            Err(UndoProblem::NoChange) => Ok("there is nothing to undo in this session".to_owned()),
            Err(problem) => Err(problem.to_string()),
        }
    }

    /// Tokens and cost, for each model.
    fn render_cost(&self) -> String {
        let meter = self.agent.meter();
        let mut text = format!(
            "${:.4} in all, {:.1} s of model time",
            meter.total_cost_usd(),
            meter.api_time().as_secs_f64()
        );
        for (model, total) in meter.models() {
            let usage = total.usage;
            text.push_str(&format!(
                "\n{model}: {} tokens in ({} cached), {} out, ${:.4}",
                usage.context_tokens(),
                usage.cache_read_input_tokens,
                usage.output_tokens,
                total.cost_usd
            ));
        }
        text
    }
}

/// The skills and commands that the user may call, as they were loaded last.
pub(super) fn list_skills(toolgate: &Toolgate) -> Vec<Arc<CatalogSkill>> {
    let Some(skills) = toolgate.skills() else { return Vec::new() };
    let is_offered = |skill: &&Arc<CatalogSkill>| {
        let is_on = skill.plugin.is_some() || skills.find_override(&skill.name) != SkillOverride::Off;
        skill.definition.is_user_invocable && is_on
    };
    skills.loaded().skills().filter(is_offered).cloned().collect()
}

/// The commands and the skills, one a line.
fn render_help(skills: &[Arc<CatalogSkill>]) -> String {
    let own = SLASH_COMMANDS
        .iter()
        .map(|(name, argument, what)| format!("{:<24} {what}", format!("/{name} {argument}")));
    let of_files = skills.iter().map(|skill| {
        let hint = skill.definition.argument_hint.as_deref().unwrap_or_default();
        let what = skill.definition.description.lines().next().unwrap_or_default();
        format!("{:<24} {what}", format!("/{} {hint}", skill.name))
    });
    own.chain(of_files).collect::<Vec<_>>().join("\n")
}
