//! Every problem of settings files, not only the first: for `toolgate settings check`, `toolgate policy lint`, and the
//! check of content before a tool writes it.
//!
//! Loading stops at the first problem, because it must not use the file. The user who corrects a file wants them all, so
//! the error of a start lists the others too.

use super::entry_spelling::find_wrong_entries;
use super::intended_key::find_intended_key;
use super::key_spelling::correct_keys;
use super::load::read;
use super::node::{SettingsNode, SettingsNodeKind};
use super::read::{
    CORRECT_FILE_HINT, SettingsOrigin, check_mode, read_layer_rules, read_rule_book, read_settings,
    unknown_key_notes,
};
use super::schema::{check, settings_check_schema};
use super::setting_places::add_list_places;
use super::values::SettingsValues;
use super::wrong_hooks::{find_misspelled_matchers, find_unmatched_matchers, find_wrong_hooks};
use super::{LoadedSettings, SettingsError, SettingsNote, SettingsOptions};
use serde::Serialize;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use toolgate_mcp::client::{ServerListOrigin, read_server};
use toolgate_policy::{Layer, McpNames, ProblemSeverity, RawPolicy, RuleProblem, check_tool_names};
use toolgate_proto::AbsPath;

/// How to write hooks, for files of older versions, which have a list.
const HOOKS_FORM_HINT: &str = "write hooks by event: `{\"hooks\": {\"PreToolUse\": [{\"matcher\": \"Bash\", \"hooks\": \
                               [{\"type\": \"command\", \"command\": \"…\"}]}]}}`";

/// A problem of a settings file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SettingsProblem {
    /// The file, or the option that contains the settings.
    pub file: String,
    /// The line, from 1, if known.
    pub line: Option<usize>,
    /// How severe it is; with a fatal problem no call runs.
    pub weight: ProblemSeverity,
    /// The rule that it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do about it; empty for a note that needs nothing.
    pub fix: String,
}

impl SettingsProblem {
    /// Creates a problem of a file as a whole.
    pub fn new(
        file: impl Into<String>,
        weight: ProblemSeverity,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { file: file.into(), line: None, weight, rule: None, message: message.into(), fix: fix.into() }
    }
}

impl fmt::Display for SettingsProblem {
    /// Formats as `file:line: rule: message; fix`, similar to compiler diagnostics.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(rule) = &self.rule {
            write!(f, ": {rule}")?;
        }
        write!(f, ": {}", self.message)?;
        if self.fix.is_empty() { Ok(()) } else { write!(f, "; {}", self.fix) }
    }
}

impl From<RuleProblem> for SettingsProblem {
    /// Locates the problem by the file of its rule. Rules without a file come from the command line or a layer name.
    fn from(problem: RuleProblem) -> Self {
        let file = problem.rule.file.clone().unwrap_or_else(|| match problem.rule.layer.as_str() {
            "cli" => "command line".to_owned(),
            layer => layer.to_owned(),
        });
        Self {
            file,
            line: problem.rule.line,
            weight: problem.weight,
            rule: Some(format!("{} rule `{}`", problem.rule.action, problem.rule.text)),
            message: problem.message,
            fix: problem.fix,
        }
    }
}

impl From<SettingsError> for SettingsProblem {
    /// Maps a load error to a fatal problem: the file is not used at all.
    fn from(error: SettingsError) -> Self {
        Self {
            file: error.file,
            line: Some(error.line),
            weight: ProblemSeverity::Fatal,
            rule: None,
            message: error.message,
            fix: error.fix,
        }
    }
}

impl From<SettingsNote> for SettingsProblem {
    /// Maps a note to the lowest severity, which needs no fix.
    fn from(note: SettingsNote) -> Self {
        Self {
            file: note.file,
            line: Some(note.line),
            weight: ProblemSeverity::Note,
            rule: None,
            message: note.message,
            fix: String::new(),
        }
    }
}

/// Everything that makes a parsed file unusable, in the order of its lines.
pub(super) fn find_violations(node: &SettingsNode, origin: &SettingsOrigin<'_>) -> Vec<SettingsError> {
    let error = |line: usize, message: String, fix: String| SettingsError {
        file: origin.name.to_owned(),
        line,
        message,
        fix,
    };
    let schema = settings_check_schema();
    let findings = check(node, schema);
    // Only a file with a misspelled key is walked twice.
    let is_misspelled =
        findings.unknown.iter().filter_map(find_intended_key).any(|intended| intended.is_fatal);
    let (corrected, misspelled) = match is_misspelled {
        true => {
            let (corrected, misspelled) = correct_keys(node, schema);
            (Cow::Owned(corrected), misspelled)
        }
        false => (Cow::Borrowed(node), Vec::new()),
    };
    let node = corrected.as_ref();
    let findings = if is_misspelled { check(node, schema) } else { findings };
    let mut violations: Vec<SettingsError> = misspelled
        .into_iter()
        .map(|(line, written, meant)| {
            error(line, format!("unknown key `{written}`"), format!("did you mean `{meant}`?"))
        })
        .collect();
    violations.extend(findings.wrong.into_iter().map(|(line, message)| {
        let is_list = message.starts_with("`hooks` is an array");
        error(line, message, if is_list { HOOKS_FORM_HINT } else { CORRECT_FILE_HINT }.to_owned())
    }));
    violations.extend(findings.unknown.iter().filter_map(|unknown| {
        let intended = find_intended_key(unknown).filter(|intended| intended.is_fatal)?;
        Some(error(unknown.line, format!("unknown key `{}`", unknown.path), intended.fix))
    }));
    let entries = find_wrong_hooks(node).into_iter().chain(find_wrong_entries(node));
    violations.extend(entries.map(|(line, message, fix)| error(line, message, fix)));
    violations.extend(check_mode(node, origin).err());
    violations.sort_by_key(|violation| violation.line);
    violations
}

/// Every problem of the text of a settings file, including its rules. `name` is the file, for messages.
///
/// ```
/// use toolgate::settings::lint_text;
///
/// let problems = lint_text("settings.json", "{ \"permisions\": {},\n\"permissions\": { \"deny\": [\"Reed\"] } }");
/// let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
/// assert_eq!(texts[0], "settings.json:1: unknown key `permisions`; did you mean `permissions`?");
/// assert!(texts[1].ends_with("unknown tool `Reed`, so the rule never matches; did you mean `Read`?"));
/// ```
pub fn lint_text(name: &str, text: &str) -> Vec<SettingsProblem> {
    let root = AbsPath::root();
    lint_one_text(text, &checked_origin(name, Layer::Cli, &root, None), &McpNames::default)
}

/// The same for a file that belongs to a workspace, whose MCP servers its rules can name.
pub fn lint_text_of_workspace(name: &str, text: &str, options: &SettingsOptions) -> Vec<SettingsProblem> {
    let files = options.all_files().unwrap_or_default();
    let own = files.into_iter().find(|(_, path, _)| path.to_string() == name);
    let (layer, anchor) = match own {
        Some((layer, _, anchor)) => (layer, anchor),
        // A file elsewhere is checked as if it were given with `--settings`.
        None => {
            (Layer::Cli, AbsPath::new(name).ok().and_then(|path| path.parent()).unwrap_or_else(AbsPath::root))
        }
    };
    let origin = checked_origin(name, layer, &anchor, options.home.as_ref());
    let names = OnceCell::new();
    let find = || options.find_mcp_names(&LoadedSettings::load(options).unwrap_or_default());
    lint_one_text(text, &origin, &|| names.get_or_init(find).clone())
}

/// The origin of a text that is checked as if its file were trusted.
fn checked_origin<'a>(
    name: &'a str,
    layer: Layer,
    anchor: &'a AbsPath,
    home: Option<&'a AbsPath>,
) -> SettingsOrigin<'a> {
    SettingsOrigin { layer, name, anchor, home, trusted: true, granted: &[] }
}

/// The problems of one text, including its rules.
fn lint_one_text(
    text: &str,
    origin: &SettingsOrigin<'_>,
    mcp: &dyn Fn() -> McpNames,
) -> Vec<SettingsProblem> {
    let mut raw = RawPolicy::default();
    let mut problems = lint_into(text, origin, &mut raw, mcp);
    problems.extend(lint_rules(raw, &BTreeSet::new(), mcp).into_iter().map(|mut problem| {
        problem.rule.file.get_or_insert_with(|| origin.name.to_owned());
        problem.into()
    }));
    problems
}

/// The hooks of settings that cannot run. Unless the user wants otherwise, the calls that they screen are refused.
pub fn find_unusable_hooks(settings: &LoadedSettings, project: &AbsPath) -> Vec<SettingsProblem> {
    let mcp = || settings.find_mcp_names(project, None, &BTreeMap::new());
    find_unusable_hooks_among(settings, project, &mcp)
}

/// The same with the names of MCP servers that `mcp` finds.
fn find_unusable_hooks_among(
    settings: &LoadedSettings,
    project: &AbsPath,
    mcp: &dyn Fn() -> McpNames,
) -> Vec<SettingsProblem> {
    let unusable = crate::hooks::find_unusable_hooks(settings, project, mcp).into_iter();
    let to_problem = |note: SettingsNote| {
        let fix = "correct the hook, or remove it".to_owned();
        SettingsProblem { weight: ProblemSeverity::Warning, fix, ..note.into() }
    };
    unusable.map(to_problem).collect()
}

/// Notes about hooks that never run: those of events that are not raised, and those whose matcher matches no known tool.
fn find_idle_hooks(settings: &LoadedSettings) -> impl Iterator<Item = SettingsNote> {
    let (_, unraised) = crate::hooks::plan_hooks(settings);
    let unmatched =
        settings.files.iter().filter(|file| settings.are_hooks_active(file)).flat_map(|file| {
            find_unmatched_matchers(&file.node, file.rules.file.as_deref().unwrap_or_default())
        });
    unraised.into_iter().chain(unmatched)
}

/// Every problem of all settings files, the strongest first. `registered` are the names of this session's tools, and
/// `rules` adds the rules of the command line.
pub fn lint_settings(
    options: &SettingsOptions,
    registered: &BTreeSet<String>,
    rules: impl FnOnce(&mut RawPolicy),
) -> Vec<SettingsProblem> {
    let loaded = LoadedSettings::load_until_error(options).ok();
    let (mut raw, mut problems) = match &loaded {
        Some(settings) => {
            let problems = settings.notes.iter().cloned().map(SettingsProblem::from).collect();
            (add_inactive_allow_rules(settings.policy(None)), problems)
        }
        None => lint_unusable_files(options),
    };
    rules(&mut raw);
    let settings = loaded.unwrap_or_default();
    let names = OnceCell::new();
    let mcp = || names.get_or_init(|| options.find_mcp_names(&settings)).clone();
    problems.extend(find_unusable_hooks_among(&settings, &options.root, &mcp));
    problems.extend(find_idle_hooks(&settings).map(SettingsProblem::from));
    let rules = lint_rules(raw, registered, mcp);
    problems.extend(rules.into_iter().map(SettingsProblem::from));
    problems
}

/// Adds the allow rules that have no effect until the user trusts the project: a typo in them is one today.
fn add_inactive_allow_rules(mut raw: RawPolicy) -> RawPolicy {
    raw.layers.append(&mut raw.untrusted_allow);
    raw
}

/// Adds the other fatal problems of all files to the error of the first, so that one start shows them all.
pub(super) fn with_other_problems(mut error: SettingsError, options: &SettingsOptions) -> SettingsError {
    let (raw, mut problems) = lint_unusable_files(options);
    let rules = lint_rules(raw, &BTreeSet::new(), McpNames::default);
    problems.extend(rules.into_iter().map(SettingsProblem::from));
    let is_other = |problem: &&SettingsProblem| {
        problem.weight == ProblemSeverity::Fatal
            && (&problem.file, problem.line, &problem.message)
                != (&error.file, Some(error.line), &error.message)
    };
    let others: Vec<String> =
        problems.iter().filter(is_other).map(|problem| format!("\n  {problem}")).collect();
    match others.len() {
        0 => {}
        1 => error.fix.push_str(&format!("\n  one more problem:{}", others.concat())),
        count => error.fix.push_str(&format!("\n  {count} more problems:{}", others.concat())),
    }
    error
}

/// The problems of files of which at least one is unusable, and the rules of all that can be parsed.
fn lint_unusable_files(options: &SettingsOptions) -> (RawPolicy, Vec<SettingsProblem>) {
    let mut raw = RawPolicy::default();
    let mut problems = Vec::new();
    let files = match options.all_files() {
        Ok(files) => files,
        Err(error) => return (raw, vec![error.into()]),
    };
    for (layer, path, anchor) in files {
        let name = path.to_string();
        let origin = checked_origin(&name, layer, &anchor, options.home.as_ref());
        match read(&path) {
            Ok(Some(text)) => problems.extend(lint_into(&text, &origin, &mut raw, &McpNames::default)),
            Ok(None) => {}
            Err(error) => problems.push(error.into()),
        }
    }
    if let Some(text) = options.extra.as_deref().filter(|extra| extra.trim_start().starts_with('{')) {
        let origin = checked_origin("--settings", Layer::Cli, &options.extra_base, options.home.as_ref());
        problems.extend(lint_into(text, &origin, &mut raw, &McpNames::default));
    }
    // What no single file shows: state files that cannot be read, or a file of `--settings` that does not exist.
    if problems.iter().all(|problem| problem.weight != ProblemSeverity::Fatal)
        && let Err(error) = LoadedSettings::load_until_error(options)
    {
        problems.push(error.into());
    }
    (raw, problems)
}

/// The problems of one text. Its rules are added to `raw`, whether the rest of the file can be used or not. `mcp` finds the
/// names of MCP servers, for matchers of hooks.
fn lint_into(
    text: &str,
    origin: &SettingsOrigin<'_>,
    raw: &mut RawPolicy,
    mcp: &dyn Fn() -> McpNames,
) -> Vec<SettingsProblem> {
    let node = match SettingsNode::parse(text) {
        Ok(node) => node,
        Err(error) => {
            let fix = CORRECT_FILE_HINT.to_owned();
            let error =
                SettingsError { file: origin.name.to_owned(), line: error.line, message: error.message, fix };
            return vec![error.into()];
        }
    };
    let violations = find_violations(&node, origin);
    if violations.is_empty() {
        return lint_usable(text, origin, raw, mcp).unwrap_or_else(|error| vec![error.into()]);
    }
    let matchers = find_misspelled_matchers(&node, mcp).into_iter().map(|(line, message, fix)| {
        let (file, weight) = (origin.name.to_owned(), ProblemSeverity::Warning);
        SettingsProblem { file, line: Some(line), weight, rule: None, message, fix }
    });
    // No call runs, so the rules of a misspelled section decide nothing; their problems are shown with the others.
    let node = correct_keys(&node, settings_check_schema()).0;
    raw.layers.push(read_layer_rules(&node, origin, &SettingsValues::default()));
    raw.books.extend(node.get("policy").map(|book| read_rule_book(book, origin)));
    let mut problems: Vec<SettingsProblem> =
        violations.into_iter().map(SettingsProblem::from).chain(matchers).collect();
    problems.extend(unknown_key_notes(&node, origin).into_iter().map(SettingsProblem::from));
    problems
}

/// The problems of a text without violations. What it says about calls is added to `raw` as loading would, so that a list
/// that only the policy compiler reads is checked as well.
fn lint_usable(
    text: &str,
    origin: &SettingsOrigin<'_>,
    raw: &mut RawPolicy,
    mcp: &dyn Fn() -> McpNames,
) -> Result<Vec<SettingsProblem>, SettingsError> {
    let mut notes = Vec::new();
    let file = read_settings(text, origin, &mut notes)?;
    if let Some(setting) = file.values.permissions.unmatchable_rules {
        raw.unmatchable_rules = setting.into();
    }
    let mut settings = LoadedSettings { files: vec![file], notes, ..LoadedSettings::default() };
    settings.merge_files()?;
    let policy = settings.policy(None);
    raw.layers.extend(policy.layers);
    raw.books.extend(policy.books);
    raw.fetch.allowed_domains.extend(policy.fetch.allowed_domains);
    raw.fetch.blocked_domains.extend(policy.fetch.blocked_domains);
    raw.fetch.allow_private.extend(policy.fetch.allow_private);
    settings.files.iter().for_each(|file| add_list_places(file, &mut raw.setting_places));
    let mut problems = find_unusable_hooks_among(&settings, origin.anchor, mcp);
    problems.extend(find_idle_hooks(&settings).map(SettingsProblem::from));
    problems.extend(settings.files.iter().flat_map(|file| find_unusable_servers(&file.node, origin)));
    problems.extend(settings.notes.into_iter().map(SettingsProblem::from));
    Ok(problems)
}

/// The entries of `mcpServers` that define no server.
fn find_unusable_servers(node: &SettingsNode, origin: &SettingsOrigin<'_>) -> Vec<SettingsProblem> {
    let Some(SettingsNodeKind::Object(entries)) = node.get("mcpServers").map(|servers| &servers.kind) else {
        return Vec::new();
    };
    let env = BTreeMap::new();
    let list = ServerListOrigin::new(origin.name, origin.anchor, &env).with_trusted(origin.trusted);
    let find_problem = |name: &str, entry: &SettingsNode| {
        let problem = read_server(name, &entry.value(), &list, &mut Vec::new()).err()?;
        // The value of a variable is known only to a run.
        (!problem.contains("${")).then(|| SettingsProblem {
            file: origin.name.to_owned(),
            line: Some(entry.line),
            weight: ProblemSeverity::Warning,
            rule: None,
            message: format!("server `{name}`: {problem}"),
            fix: "calls of its tools are refused until the entry is corrected".to_owned(),
        })
    };
    entries.iter().filter_map(|(name, entry)| find_problem(name, entry)).collect()
}

/// The problems of rules: invalid ones, those that never match, misspelled tools, and lints.
fn lint_rules(
    raw: RawPolicy,
    registered: &BTreeSet<String>,
    mcp: impl FnOnce() -> McpNames,
) -> Vec<RuleProblem> {
    let names = check_tool_names(&raw, registered, mcp);
    let mut problems: Vec<RuleProblem> = raw.compile().1;
    // A rule that is invalid because of its tool's name is reported once.
    for problem in names {
        if !problems.iter().any(|other| other.rule == problem.rule && other.message == problem.message) {
            problems.push(problem);
        }
    }
    problems
}
