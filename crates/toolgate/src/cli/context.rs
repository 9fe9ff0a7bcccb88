//! The context of a command: parsed arguments plus the environment of the process, and the [`Toolgate`] built from
//! both.
//!
//! This is the only place where global options become builder calls, so that every command honours all of them.

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

/// The ledger starts a new file at this size.
const MAX_LEDGER_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Environment variable with the number of calls of one batch that may run at the same time.
const MAX_CONCURRENCY_ENV: &str = "TOOLGATE_MAX_TOOL_CONCURRENCY";

/// The global options and the environment of the process.
pub(crate) struct CliContext {
    /// Current directory, environment variables, home and state directories.
    pub(crate) ambient: AmbientEnvironment,
    /// The options that every command accepts.
    pub(crate) global: GlobalArgs,
}

/// A toolgate with its ledger, journal and telemetry, as far as they are available.
pub(crate) struct RecordingToolgate {
    /// The gate for the calls.
    pub(crate) toolgate: Toolgate,
    /// Absent if the state directory is missing or not writable; a note says so.
    pub(crate) ledger: Option<Arc<LedgerSink>>,
    /// Must be finished at the end, or the last spans are lost.
    pub(crate) telemetry: CliTelemetry,
    /// The tool of `--permission-prompt-tool`.
    prompt_tool: Option<PromptTool>,
}

impl RecordingToolgate {
    /// Fails if the tool of `--permission-prompt-tool` is missing or has the wrong input schema. Call it after the MCP
    /// servers are connected, because the tool may be one of theirs.
    pub(crate) fn check_prompt_tool(&self) -> Result<(), CliError> {
        match &self.prompt_tool {
            Some(tool) => tool.check_schema(&self.toolgate).map_err(|problem| {
                CliError::Usage(format!(
                    "{problem}; `toolgate tools` lists the tools, `toolgate mcp list` the servers"
                ))
            }),
            None => Ok(()),
        }
    }
}

impl CliContext {
    /// The workspace: `--cwd`, or the current directory.
    pub(crate) fn cwd(&self) -> AbsPath {
        match &self.global.cwd {
            Some(given) => self.ambient.absolute_path(given),
            None => self.ambient.cwd.clone(),
        }
    }

    /// The directory of the ledger, if there is a state directory.
    pub(crate) fn ledger_dir(&self) -> Option<AbsPath> {
        self.ambient.state_dir.as_ref().map(|dir| dir.join("ledger"))
    }

    /// The directory of the ledger's anchor, which makes a removed or truncated ledger detectable. It is not inside
    /// the ledger's directory: removing that would remove both.
    pub(crate) fn anchor_dir(&self) -> Option<AbsPath> {
        self.ambient.state_dir.as_ref().map(|dir| dir.join("anchors"))
    }

    /// The permission mode of the command line.
    pub(crate) fn mode(&self) -> Option<Mode> {
        match self.global.dangerously_skip_permissions {
            true => Some(Mode::Bypass),
            false => self.global.permission_mode,
        }
    }

    /// Refuses mode bypass for root, unless an environment variable says that a sandbox limits the process.
    pub(crate) fn check_bypass(&self, toolgate: &Toolgate) -> Result<(), CliError> {
        let bypass = toolgate.gate().policy().mode() == Mode::Bypass;
        let sandboxed = ["TOOLGATE_SANDBOXED", "IS_SANDBOX"]
            .iter()
            .any(|name| self.ambient.env.get(*name).is_some_and(|value| value == "1"));
        if bypass && self.ambient.is_root && !sandboxed {
            return Err(CliError::Usage(
                "approval cannot be skipped for root, because root can change everything on this machine; run as \
                 another user, or set TOOLGATE_SANDBOXED=1 inside a container or sandbox"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// The directory of the undo journal, if there is a state directory.
    pub(crate) fn journal_dir(&self) -> Option<AbsPath> {
        self.ambient.state_dir.clone()
    }

    /// The undo journal; if it cannot be opened, calls still run, and a note says that they cannot be undone.
    fn open_journal(&self, out: &mut CliOutput) -> Option<Arc<Journal>> {
        let dir = self.journal_dir()?;
        match Journal::open_lazily(&dir, JournalLimits::default()) {
            Ok(journal) => Some(Arc::new(journal)),
            Err(problem) => {
                out.print_note(&format!(
                    "file changes of this run cannot be undone: cannot write to {dir} ({problem})"
                ));
                None
            }
        }
    }

    /// A builder with all global options applied.
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
                    "invalid {MAX_CONCURRENCY_ENV} `{given}`; give a number of calls, such as 10"
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

    /// The environment and directories for commands.
    fn shell_config(&self) -> ShellConfig {
        ShellConfig {
            environment: self.ambient.env.clone(),
            temp_dir: self.ambient.temp_dir.clone(),
            output_dir: self.ambient.state_dir.as_ref().map(|dir| dir.join("output")),
            ..ShellConfig::default()
        }
    }

    /// The settings files to read, by the global options.
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

    /// A recording toolgate with the terminal as its approver, unless `--permission-prompts none` is given.
    pub(crate) fn build_recording(
        &self,
        interrupt: &CancellationToken,
        out: &mut CliOutput,
    ) -> Result<RecordingToolgate, CliError> {
        let terminal = match self.global.permission_prompts {
            PromptWhen::Auto => {
                super::trust::ask_about_wide_workspace(self)?;
                TerminalApprover::detect(out.is_colorful(), interrupt.clone())
            }
            PromptWhen::None => None,
        };
        self.build_recording_with(out, |builder| match terminal {
            Some(terminal) => builder.approver(terminal),
            None => builder,
        })
    }

    /// The ledger; if it cannot be opened, calls still run, and a note says that they are not recorded.
    fn open_ledger(&self, out: &mut CliOutput) -> Option<Arc<LedgerSink>> {
        let Some((dir, anchor_dir)) = self.ledger_dir().zip(self.anchor_dir()) else {
            out.print_note("calls are not recorded: there is no home directory; set TOOLGATE_STATE_DIR");
            return None;
        };
        match LedgerSink::open_anchored(&dir, &anchor_dir, MAX_LEDGER_FILE_BYTES) {
            Ok(ledger) => Some(Arc::new(ledger)),
            Err(error) => {
                out.print_note(&format!(
                    "calls are not recorded: cannot write to {dir} ({error}); set TOOLGATE_STATE_DIR to a writable \
                     directory"
                ));
                None
            }
        }
    }

    /// A recording toolgate whose builder `configure` completes: the approvers and the principal differ by command.
    pub(crate) fn build_recording_with(
        &self,
        out: &mut CliOutput,
        configure: impl FnOnce(ToolgateBuilder) -> ToolgateBuilder,
    ) -> Result<RecordingToolgate, CliError> {
        let ledger = self.open_ledger(out);
        let prompt_tool = self.global.permission_prompt_tool.as_deref().map(PromptTool::new);
        let mut builder = self.builder()?;
        if let Some(tool) = &prompt_tool {
            builder = builder.approver(tool.clone());
        }
        builder = configure(builder);
        if let Some(journal) = self.open_journal(out) {
            builder = builder.journal(journal);
        }
        if let Some(ledger) = &ledger {
            builder = builder.sink(Arc::clone(ledger));
        }
        let telemetry = CliTelemetry::start(self, out);
        let toolgate = telemetry.attach(builder).build()?;
        if let Some(tool) = &prompt_tool {
            tool.connect(&toolgate);
        }
        print_notes(&toolgate, out);
        self.check_bypass(&toolgate)?;
        Ok(RecordingToolgate { toolgate, ledger, telemetry, prompt_tool })
    }

    /// The value of an argument, read from standard input if it is `-`.
    pub(crate) fn read_argument(&self, given: &str) -> Result<String, CliError> {
        if given != "-" {
            return Ok(given.to_owned());
        }
        // One byte more than the limit, so that the JSON parser reports input that is too long.
        let max_bytes = JsonLimits::CALL.bytes as u64;
        let mut bytes = Vec::new();
        std::io::stdin().take(max_bytes + 1).read_to_end(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| CliError::Usage("standard input is not UTF-8 text".to_owned()))
    }
}

/// Prints the notes about settings and the warnings about rules.
pub(crate) fn print_notes(toolgate: &Toolgate, out: &mut CliOutput) {
    let (notes, problems) = toolgate.notes();
    for note in notes {
        out.print_note(&note.to_string());
    }
    for problem in problems.iter().filter(|problem| problem.weight >= ProblemSeverity::Warning) {
        out.print_note(&problem.to_string());
    }
}

/// Splits rules at commas and blanks outside parentheses: `Bash(git log *)` stays one rule.
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
