//! From arguments to a toolgate: the one place where the two meet.

use super::CliError;
use super::args::{GlobalArgs, PromptWhen};
use super::output::CliOutput;
use super::telemetry::CliTelemetry;
use super::terminal_approver::TerminalApprover;
use std::io::Read;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use toolgate::settings::{SettingSource, SettingsOptions};
use toolgate::{AbsPath, LedgerSink, Mode, PromptTool, ShellConfig, SpillLimits, Toolgate, ToolgateBuilder};
use toolgate_files::{Journal, JournalLimits};
use toolgate_policy::ProblemSeverity;
use toolgate_process::AmbientEnvironment;
use toolgate_proto::{Principal, json::JsonLimits};

/// A new ledger file is started at this size.
const MAX_LEDGER_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// How many calls of one batch may go on at once.
const MAX_CONCURRENCY_ENV: &str = "TOOLGATE_MAX_TOOL_CONCURRENCY";

/// What was typed, and where.
pub(crate) struct CliContext {
    pub(crate) ambient: AmbientEnvironment,
    pub(crate) global: GlobalArgs,
}

/// A toolgate whose calls are recorded, as far as they can be.
pub(crate) struct RecordingToolgate {
    pub(crate) toolgate: Toolgate,
    pub(crate) ledger: Option<Arc<LedgerSink>>,
    pub(crate) telemetry: CliTelemetry,
    prompt_tool: Option<PromptTool>,
}

impl RecordingToolgate {
    /// Refuses to start where questions would go to a tool that cannot be asked. To be called once servers are there.
    pub(crate) fn check_prompt_tool(&self) -> Result<(), CliError> {
        match &self.prompt_tool {
            Some(tool) => tool.check_schema(&self.toolgate).map_err(|problem| {
                CliError::Usage(format!("{problem}; see `toolgate tools` and `toolgate mcp list`"))
            }),
            None => Ok(()),
        }
    }
}

impl CliContext {
    /// The directory to work in.
    pub(crate) fn cwd(&self) -> AbsPath {
        match &self.global.cwd {
            Some(given) => self.ambient.absolute_path(given),
            None => self.ambient.cwd.clone(),
        }
    }

    /// Where the ledger is.
    pub(crate) fn ledger_dir(&self) -> Option<AbsPath> {
        self.ambient.state_dir.as_ref().map(|dir| dir.join("ledger"))
    }

    /// Where the ledger's anchor is: not with the ledger, so that what removes the one leaves the other.
    pub(crate) fn anchor_dir(&self) -> Option<AbsPath> {
        self.ambient.state_dir.as_ref().map(|dir| dir.join("anchors"))
    }

    /// The mode that was typed.
    pub(crate) fn mode(&self) -> Option<Mode> {
        match self.global.dangerously_skip_permissions {
            true => Some(Mode::Bypass),
            false => self.global.permission_mode,
        }
    }

    /// Refuses to skip questions where a mistake could not be undone.
    pub(crate) fn check_bypass(&self, toolgate: &Toolgate) -> Result<(), CliError> {
        let bypass = toolgate.gate().policy().mode() == Mode::Bypass;
        let sandboxed = ["TOOLGATE_SANDBOXED", "IS_SANDBOX"]
            .iter()
            .any(|name| self.ambient.env.get(*name).is_some_and(|value| value == "1"));
        if bypass && self.ambient.is_root && !sandboxed {
            return Err(CliError::Usage(
                "questions are not skipped for root, who can do anything to this machine; run as another user, or \
                 set TOOLGATE_SANDBOXED=1 inside a sandbox"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// Where the journal of changes is.
    pub(crate) fn journal_dir(&self) -> Option<AbsPath> {
        self.ambient.state_dir.clone()
    }

    /// The journal that changes are recorded in, where it can be kept.
    fn open_journal(&self, out: &mut CliOutput) -> Option<Arc<Journal>> {
        let dir = self.journal_dir()?;
        match Journal::open_lazily(&dir, JournalLimits::default()) {
            Ok(journal) => Some(Arc::new(journal)),
            Err(problem) => {
                out.print_note(&format!("changes cannot be undone: {dir} cannot be written ({problem})"));
                None
            }
        }
    }

    /// A builder with everything that was typed.
    pub(crate) fn builder(&self) -> Result<ToolgateBuilder, CliError> {
        let cwd = self.cwd();
        let mut builder = Toolgate::builder(cwd.as_path())
            .settings(self.settings_options()?)
            .toolset(self.global.toolset)
            .home(self.ambient.home.clone())
            .env(self.ambient.env.clone())
            .shell_config(self.shell_config())
            .principal(Principal::new("cli").with_optional_name(self.ambient.env.get("USER").cloned()));
        for dir in &self.global.add_dir {
            builder = builder.add_dir(self.ambient.absolute_path(dir).as_path());
        }
        if let Some(mode) = self.mode() {
            builder = builder.mode(mode);
        }
        if let Some(tools) = &self.global.tools {
            builder = builder.only_tools(tools);
        }
        if let Some(dir) = &self.ambient.state_dir {
            builder = builder.spill_dir(dir.join("results"), SpillLimits::default());
        }
        if let Some(given) = self.ambient.env.get(MAX_CONCURRENCY_ENV) {
            let calls: usize = given.trim().parse().ok().filter(|calls| *calls > 0).ok_or_else(|| {
                CliError::Usage(format!(
                    "{MAX_CONCURRENCY_ENV} is `{given}`; give a number of calls, such as 10"
                ))
            })?;
            builder = builder.max_concurrency(calls);
        }
        for rule in split_rules(&self.global.allowed_tools) {
            builder = builder.allow(rule);
        }
        for rule in split_rules(&self.global.disallowed_tools) {
            builder = builder.deny(rule);
        }
        Ok(builder)
    }

    /// What commands know of this process.
    fn shell_config(&self) -> ShellConfig {
        ShellConfig {
            environment: self.ambient.env.clone(),
            temp_dir: self.ambient.temp_dir.clone(),
            output_dir: self.ambient.state_dir.as_ref().map(|dir| dir.join("output")),
            ..ShellConfig::default()
        }
    }

    pub(crate) fn settings_options(&self) -> Result<SettingsOptions, CliError> {
        let mut options = SettingsOptions::new(self.cwd());
        options.home = self.ambient.home.clone();
        options.config_dir = self.ambient.config_dir.clone();
        options.state_dir = self.ambient.state_dir.clone();
        options.extra = self.global.settings.clone();
        options.extra_base = self.ambient.cwd.clone();
        options.trust_workspace = self.global.trust_workspace;
        options.search_path = self.ambient.env.get("PATH").cloned();
        if let Some(sources) = &self.global.setting_sources {
            options.sources = sources
                .iter()
                .filter(|source| *source != "none")
                .map(|source| source.parse::<SettingSource>())
                .collect::<Result<_, _>>()
                .map_err(CliError::Usage)?;
        }
        Ok(options)
    }

    /// A toolgate that keeps records, where they can be kept.
    pub(crate) fn build_recording(
        &self,
        interrupt: &CancellationToken,
        out: &mut CliOutput,
    ) -> Result<RecordingToolgate, CliError> {
        let person = match self.global.permission_prompts {
            PromptWhen::Auto => {
                super::trust::ask_about_wide_workspace(self)?;
                TerminalApprover::detect(out.is_colorful(), interrupt.clone())
            }
            PromptWhen::None => None,
        };
        self.build_recording_with(out, |builder| match person {
            Some(person) => builder.approver(person),
            None => builder,
        })
    }

    /// The same, with more said to the builder.
    pub(crate) fn build_recording_with(
        &self,
        out: &mut CliOutput,
        more: impl FnOnce(ToolgateBuilder) -> ToolgateBuilder,
    ) -> Result<RecordingToolgate, CliError> {
        let ledger = match self.ledger_dir().zip(self.anchor_dir()) {
            Some((dir, anchor_dir)) => {
                match LedgerSink::open_anchored(&dir, &anchor_dir, MAX_LEDGER_FILE_BYTES) {
                    Ok(ledger) => Some(Arc::new(ledger)),
                    Err(error) => {
                        out.print_note(&format!(
                        "no record is kept: {dir} cannot be written ({error}); set TOOLGATE_STATE_DIR to a \
                         directory that can"
                    ));
                        None
                    }
                }
            }
            None => {
                out.print_note("no record is kept: there is no home directory; set TOOLGATE_STATE_DIR");
                None
            }
        };
        let prompt_tool = self.global.permission_prompt_tool.as_deref().map(PromptTool::new);
        let mut builder = self.builder()?;
        if let Some(tool) = &prompt_tool {
            builder = builder.approver(tool.clone());
        }
        builder = more(builder);
        if let Some(journal) = self.open_journal(out) {
            builder = builder.journal(journal);
        }
        if let Some(ledger) = &ledger {
            builder = builder.sink(Arc::clone(ledger));
        }
        let watched = CliTelemetry::start(self, out);
        let toolgate = watched.attach(builder).build()?;
        if let Some(tool) = &prompt_tool {
            tool.connect(&toolgate);
        }
        print_notes(&toolgate, out);
        self.check_bypass(&toolgate)?;
        Ok(RecordingToolgate { toolgate, ledger, telemetry: watched, prompt_tool })
    }

    /// An argument that may stand for standard input.
    pub(crate) fn read_argument(&self, given: &str) -> Result<String, CliError> {
        if given != "-" {
            return Ok(given.to_owned());
        }
        let most = JsonLimits::CALL.bytes as u64;
        let mut bytes = Vec::new();
        std::io::stdin().take(most + 1).read_to_end(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| CliError::Usage("standard input is not UTF-8 text".to_owned()))
    }
}

/// Says what should be known about settings and rules.
pub(crate) fn print_notes(toolgate: &Toolgate, out: &mut CliOutput) {
    let (notes, problems) = toolgate.notes();
    for note in notes {
        out.print_note(&note.to_string());
    }
    for problem in problems.iter().filter(|problem| problem.weight >= ProblemSeverity::Warning) {
        out.print_note(&problem.to_string());
    }
}

/// Rules separated by commas or blanks, but not inside parentheses.
fn split_rules(given: &[String]) -> Vec<String> {
    let mut rules = Vec::new();
    for text in given {
        let mut depth = 0usize;
        let mut rule = String::new();
        for c in text.chars() {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && (c == ',' || c.is_whitespace()) {
                rules.push(std::mem::take(&mut rule));
            } else {
                rule.push(c);
            }
        }
        rules.push(rule);
    }
    rules.retain(|rule| !rule.is_empty());
    rules
}

#[cfg(test)]
mod tests {
    use super::split_rules;

    #[test]
    fn rules_are_split_outside_parentheses() {
        let given = ["Read,Bash(git log *) Edit(a,b)".to_owned(), "ls".to_owned()];
        assert_eq!(split_rules(&given), ["Read", "Bash(git log *)", "Edit(a,b)", "ls"]);
    }
}
