//! The context of a command: parsed arguments plus the environment of the process, and the [`Toolgate`] built from
//! both.
//!
//! This is the only place where global options become builder calls, so that every command honours all of them.

use super::CliError;
use super::args::{GlobalArgs, PromptWhen};
use super::output::CliOutput;
use super::telemetry::CliTelemetry;
use super::terminal_approver::{PromptInterrupt, TerminalApprover};
use std::io::Read;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use toolgate::settings::{LoadedSettings, SettingSource, SettingsOptions};
use toolgate::skills::{CapabilityPlaces, SkillCatalog, SkillOptions, SkillTrust};
use toolgate::{
    AbsPath, EntryKind, LedgerSink, Mode, PromptTool, ShellConfig, SpillLimits, StateConfig, Toolgate,
    ToolgateBuilder,
};
use toolgate_files::{Journal, JournalLimits};
use toolgate_policy::{Layer, LayerRules, ProblemSeverity, RawRule};
use toolgate_process::AmbientEnvironment;
use toolgate_proto::{Principal, json::JsonLimits};

/// The ledger starts a new file at this size.
pub(crate) const MAX_LEDGER_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// The value of `--permission-prompt-tool` that names the host program instead of a tool.
pub(crate) const HOST_PROMPT_TOOL: &str = "stdio";

/// Environment variable with the number of calls of one batch that may run at the same time.
const MAX_CONCURRENCY_ENV: &str = "TOOLGATE_MAX_TOOL_CONCURRENCY";

/// Environment variables that name one task list for all task tools, ours first.
const TASK_LIST_ENVS: [&str; 2] = ["TOOLGATE_TASK_LIST", "CLAUDE_CODE_TASK_LIST_ID"];
/// Environment variable with the most characters that models are shown of all skills together.
const LISTING_CHARS_ENV: &str = "SLASH_COMMAND_TOOL_CHAR_BUDGET";

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
    /// The workspace: `--cwd`, or the current directory. Rules start from it and are compared with real paths, so that
    /// `..` is resolved; a directory that cannot be is reported as the user wrote it.
    pub(crate) fn cwd(&self) -> AbsPath {
        let Some(given) = &self.global.cwd else { return self.ambient.cwd.clone() };
        let path = self.ambient.absolute_path(given);
        if path == path.lexical() {
            return path;
        }
        let fact = toolgate_files::resolve(&path);
        if fact.problem.is_none() { fact.real } else { path }
    }

    /// The checkout whose project settings count in place of those in the workspace, by its real path.
    pub(crate) fn config_root(&self) -> Option<AbsPath> {
        let given = self.global.project_config_root.as_deref()?;
        Some(toolgate_files::resolve(&self.ambient.absolute_path(given)).real)
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

    /// Whether mode bypass may be used: not by root, unless an environment variable says that a sandbox limits the process.
    pub(crate) fn may_bypass(&self) -> bool {
        let is_set = |name: &&str| self.ambient.env.get(*name).is_some_and(|value| value == "1");
        !self.ambient.is_root || ["TOOLGATE_SANDBOXED", "IS_SANDBOX"].iter().any(is_set)
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
        builder = builder.state_config(self.state_config());
        builder = builder.require_known_names();
        for group in &self.global.tool_groups {
            builder = builder.tool_group(group);
        }
        #[cfg(feature = "web")]
        {
            builder = builder.browser_tools(self.global.chrome);
        }
        if let Some(bytes) = self.global.defer_tools_beyond {
            builder = builder.defer_tools_beyond(bytes);
        }
        #[cfg(feature = "lsp")]
        {
            builder = builder.language_servers(true);
        }
        for dir in &self.global.add_dir {
            builder = builder.add_dir(self.ambient.absolute_path(dir).as_path());
        }
        if let Some(mode) = self.mode() {
            builder = builder.mode(mode);
        }
        if let Some(tools) = self.global.tools.as_ref().filter(|tools| *tools != &["default"]) {
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
        builder = builder.skills(self.skill_options()?);
        for rule in split_rules(&self.global.allowed_tools) {
            builder = builder.allow(rule);
        }
        for rule in split_rules(&self.global.disallowed_tools) {
            builder = builder.deny(rule);
        }
        Ok(builder)
    }

    /// Where tasks are stored.
    pub(crate) fn state_config(&self) -> StateConfig {
        let list = TASK_LIST_ENVS.iter().find_map(|name| self.ambient.env.get(*name));
        let list = list.filter(|list| !list.is_empty()).cloned();
        StateConfig::default().with_dir(self.ambient.state_dir.clone()).with_task_list(list)
    }

    /// Where skills are, and how they are offered.
    pub(crate) fn skill_options(&self) -> Result<SkillOptions, CliError> {
        let settings = self.settings_options()?;
        let additional: Vec<AbsPath> =
            self.global.add_dir.iter().map(|dir| self.ambient.absolute_path(dir)).collect();
        let mut options = SkillOptions::new(CapabilityPlaces::of_settings(&settings, &additional));
        if let Some(dir) = &self.ambient.state_dir {
            options = options.with_trust(self.skill_trust(dir, settings.project_root()));
        }
        if let Some(given) = self.ambient.env.get(LISTING_CHARS_ENV) {
            let chars = given.trim().parse().map_err(|_| {
                CliError::Usage(format!(
                    "invalid {LISTING_CHARS_ENV} `{given}`; give a number of characters, such as 8000"
                ))
            })?;
            options = options.with_listing_chars(chars);
        }
        Ok(options)
    }

    /// Which skills of a workspace may pre-approve tools and run hooks.
    pub(crate) fn skill_trust(&self, state_dir: &AbsPath, root: &AbsPath) -> SkillTrust {
        SkillTrust::in_dir(state_dir, root)
            .trusting_all(self.global.trust_workspace)
            .with_paths(self.ambient.home.clone(), self.ambient.env.get("PATH").cloned())
    }

    /// Every skill, command, agent and output style of this workspace, those of plugins among them.
    pub(crate) fn load_catalog(&self) -> Result<SkillCatalog, CliError> {
        let mut places = self.skill_options()?.places;
        let settings = LoadedSettings::load(&self.settings_options()?)?;
        places.places.extend(settings.plugins().places());
        Ok(SkillCatalog::load(&places, None))
    }

    /// A builder that reads no settings, for commands that must work when the settings do not.
    pub(crate) fn builder_without_settings(&self) -> ToolgateBuilder {
        Toolgate::builder(self.cwd().as_path()).toolset(self.global.toolset).home(self.ambient.home.clone())
    }

    /// The rules of the command line.
    pub(crate) fn command_line_rules(&self) -> LayerRules {
        let mut rules = LayerRules::new(Layer::Cli, self.cwd());
        rules.allow = split_rules(&self.global.allowed_tools).into_iter().map(RawRule::from).collect();
        rules.deny = split_rules(&self.global.disallowed_tools).into_iter().map(RawRule::from).collect();
        rules
    }

    /// The environment and directories for commands.
    fn shell_config(&self) -> ShellConfig {
        let mut config = ShellConfig::new(self.ambient.env.clone(), self.ambient.temp_dir.clone());
        config.output_dir = self.ambient.state_dir.as_ref().map(|dir| dir.join("output"));
        config
    }

    /// The settings files to read, by the global options.
    pub(crate) fn settings_options(&self) -> Result<SettingsOptions, CliError> {
        let mut options = SettingsOptions::new(self.cwd());
        options.home = self.ambient.home.clone();
        options.config_dir = self.ambient.config_dir.clone();
        options.state_dir = self.ambient.state_dir.clone();
        options.extra = self.global.settings.clone();
        options.managed_extra = self.global.managed_settings.clone();
        options.extra_base = self.ambient.cwd.clone();
        options.mcp_configs.clone_from(&self.global.mcp_config);
        options.trust_workspace = self.global.trust_workspace;
        options.search_path = self.ambient.env.get("PATH").cloned();
        options.plugin_dirs =
            self.global.plugin_dir.iter().map(|dir| self.ambient.absolute_path(dir)).collect();
        options.plugin_dirs_without_servers =
            self.global.plugin_dir_no_mcp.iter().map(|dir| self.ambient.absolute_path(dir)).collect();
        options.config_root = self.config_root();
        if let Some(root) = &options.config_root
            && toolgate_files::resolve(root).kind != EntryKind::Directory
        {
            return Err(CliError::Usage(format!("--project-config-root: `{root}` is not a directory")));
        }
        if let Some(sources) = &self.global.setting_sources {
            options.sources = sources
                .iter()
                .filter(|source| !matches!(source.as_str(), "none" | ""))
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
        let terminal = self.find_terminal(out, interrupt.clone());
        self.build_recording_with(out, |builder| match terminal {
            Some(terminal) => builder.approver(terminal),
            None => builder,
        })
    }

    /// The terminal as an approver for a session, which first asks about a workspace that contains the home directory.
    pub(crate) fn detect_terminal(
        &self,
        out: &CliOutput,
        interrupt: impl Into<PromptInterrupt>,
    ) -> Result<Option<TerminalApprover>, CliError> {
        super::trust::ask_about_wide_workspace(self)?;
        Ok(self.find_terminal(out, interrupt))
    }

    /// The terminal as an approver, unless `--permission-prompts` says otherwise or there is no terminal.
    fn find_terminal(
        &self,
        out: &CliOutput,
        interrupt: impl Into<PromptInterrupt>,
    ) -> Option<TerminalApprover> {
        match self.global.permission_prompts {
            PromptWhen::Auto => TerminalApprover::detect(out.is_colorful(), interrupt),
            PromptWhen::None | PromptWhen::Host => None,
        }
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
        // `stdio` is not a tool: the host program is asked.
        let prompt_tool = self.global.permission_prompt_tool.as_deref();
        let prompt_tool = prompt_tool.filter(|tool| *tool != HOST_PROMPT_TOOL).map(PromptTool::new);
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
        if let Some(ledger) = &ledger {
            ledger.set_external_anchor(self.external_anchor(&toolgate.settings())?);
        }
        print_notes(&toolgate, out);
        self.check_bypass(toolgate.gate().policy().mode())?;
        Ok(RecordingToolgate { toolgate, ledger, telemetry, prompt_tool })
    }

    /// All of standard input, as text.
    pub(crate) fn read_all_input(&self) -> Result<String, CliError> {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
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
    given.iter().flat_map(|text| toolgate_skills::split_tool_list(text)).collect()
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
