//! One file that extends an agent: found, read, and kept with its origin.

use super::misspelled_tools::find_misspelled_tools;
use super::places::{CapabilityScope, PluginIdentity};
use std::fmt;
use std::sync::Arc;
use toolgate_files::{FileStamp, read_file_stamp};
use toolgate_gate::ledger::sha256_hex;
use toolgate_proto::AbsPath;
use toolgate_skills::{
    AgentFile, AgentFileOrigin, CapabilityProblem, CapabilitySeverity, OutputStyle, SkillDefinition,
    SkillFileKind, check_capability_name,
};

/// Where the manifest of a plugin is.
pub(crate) const PLUGIN_MANIFEST_FILE: &str = ".claude-plugin/plugin.json";
/// A larger file is not read.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// A skill or a command that was found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CatalogSkill {
    /// The name by which it is used.
    pub name: String,
    /// Which kind of file it is.
    pub kind: SkillFileKind,
    /// What the file says.
    pub definition: SkillDefinition,
    /// Whose it is.
    pub scope: CapabilityScope,
    /// The file.
    pub file: AbsPath,
    /// The plugin, if it is one's.
    pub plugin: Option<Arc<PluginIdentity>>,
    /// The SHA-256 hash of the file.
    pub sha256: String,
    /// The size of the file in bytes.
    pub bytes: usize,
}

impl CatalogSkill {
    /// The directory of the file.
    pub fn dir(&self) -> AbsPath {
        self.file.parent().unwrap_or_else(AbsPath::root)
    }

    /// About how many tokens its text has.
    pub fn tokens(&self) -> usize {
        self.definition.body.len().div_ceil(4)
    }
}

/// An agent that was found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CatalogAgent {
    /// The name by which it is started.
    pub name: String,
    /// What the file says.
    pub definition: AgentFile,
    /// Whose it is.
    pub scope: CapabilityScope,
    /// The file.
    pub file: AbsPath,
    /// The plugin, if it is one's.
    pub plugin: Option<Arc<PluginIdentity>>,
    /// The SHA-256 hash of the file.
    pub sha256: String,
}

/// An output style that was found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CatalogStyle {
    /// The name by which settings choose it.
    pub name: String,
    /// What the file says.
    pub definition: OutputStyle,
    /// Whose it is.
    pub scope: CapabilityScope,
    /// The file.
    pub file: AbsPath,
    /// The plugin, if it is one's.
    pub plugin: Option<Arc<PluginIdentity>>,
}

/// A problem of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CatalogProblem {
    /// The file, or the directory.
    pub file: AbsPath,
    /// What is the matter, and where.
    pub problem: CapabilityProblem,
}

impl CatalogProblem {
    /// Creates the problem of a file.
    pub fn new(file: AbsPath, problem: CapabilityProblem) -> Self {
        Self { file, problem }
    }
}

impl fmt::Display for CatalogProblem {
    /// Formats as `file:line: message`; the line is part of the inner problem.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.problem)
    }
}

/// What a file is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CapabilityKind {
    /// A `SKILL.md` in a directory of its own.
    Skill,
    /// A Markdown file in a `commands` directory.
    Command,
    /// A definition of a subagent.
    Agent,
    /// A definition of an output style.
    OutputStyle,
}

/// A file that may be there.
#[derive(Debug, Clone)]
pub(super) struct FileCandidate {
    /// How the file is parsed; determined by the directory that contains it.
    pub(super) kind: CapabilityKind,
    /// The path at which the file was found, before symlinks are resolved.
    pub(super) path: AbsPath,
    /// The name by its place: of the directory, or of the file with the directories above it.
    pub(super) place_name: String,
    /// The scope of the place where the file was found.
    pub(super) scope: CapabilityScope,
    /// The directory that the resolved path must stay under. Prevents a symlink in a project from exposing other files.
    pub(super) boundary: Option<AbsPath>,
    /// The plugin that ships the file. Its name prefixes the capability's name.
    pub(super) plugin: Option<Arc<PluginIdentity>>,
    /// What stands before its name where that is taken.
    pub(super) clash_prefix: Option<String>,
}

/// What a file says.
#[derive(Debug, Clone)]
pub(super) enum CapabilityContent {
    /// A skill or a command; both are invoked in the same way.
    Skill(Arc<CatalogSkill>),
    /// A subagent type.
    Agent(Arc<CatalogAgent>),
    /// An output style.
    Style(Arc<CatalogStyle>),
    /// Nothing that can be used; the problems say why.
    Nothing,
}

/// A file that was read. Kept until its stamp changes.
#[derive(Debug, Clone)]
pub(super) struct CapabilityFile {
    /// Identity and modification time, compared to decide whether the file must be read again.
    pub(super) stamp: FileStamp,
    /// The parsed definition.
    pub(super) content: CapabilityContent,
    /// The plugin to which the content belongs.
    pub(super) plugin: Option<Arc<PluginIdentity>>,
    /// Problems found while parsing; kept with the file so that an unchanged file still reports them.
    pub(super) problems: Vec<CapabilityProblem>,
}

/// Checks the tools that an agent names. With a misspelled one among those that it must not use it is unusable: it would
/// have that tool.
fn check_agent_tools(agent: &mut AgentFile, bytes: &[u8]) -> Vec<CapabilityProblem> {
    let (denied, only) = ("disallowedTools", "tools");
    let mut problems = Vec::new();
    for message in find_misspelled_tools(denied, &agent.disallowed_tools) {
        problems.push(CapabilityProblem::error(find_field_line(bytes, denied), message.clone()));
        agent.unusable.get_or_insert(message);
    }
    let misspelled = find_misspelled_tools(only, agent.tools.as_deref().unwrap_or_default());
    let line = find_field_line(bytes, only);
    problems.extend(misspelled.into_iter().map(|message| CapabilityProblem::warning(line, message)));
    problems
}

/// The line of a field of the front matter, from 1; the first one if it is not found.
fn find_field_line(bytes: &[u8], field: &str) -> usize {
    let is_field =
        |line: &&[u8]| line.strip_prefix(field.as_bytes()).is_some_and(|rest| rest.first() == Some(&b':'));
    bytes.split(|byte| *byte == b'\n').position(|line| is_field(&line)).map_or(1, |index| index + 1)
}

impl FileCandidate {
    /// Reads the file. The stamp was taken before, so that a change in between is seen the next time.
    pub(super) fn read(&self, stamp: FileStamp) -> CapabilityFile {
        let (content, problems) = self.read_content().unwrap_or_else(|problem| {
            (CapabilityContent::Nothing, vec![CapabilityProblem::error(1, problem)])
        });
        CapabilityFile { stamp, content, plugin: self.plugin.clone(), problems }
    }

    /// Checks the boundary, then reads and parses the file. An error means that the file is not used.
    fn read_content(&self) -> Result<(CapabilityContent, Vec<CapabilityProblem>), String> {
        if let Some(boundary) = &self.boundary {
            let real = toolgate_files::resolve(&self.path).real;
            if !real.is_under(boundary) {
                return Err(format!("the file is not used, because it leads out of {boundary} to {real}"));
            }
        }
        let bytes = toolgate_files::read_named_bytes(&self.path, MAX_FILE_BYTES)
            .map_err(|problem| format!("the file cannot be read: {problem}"))?;
        let approved = self.plugin.as_ref().and_then(|plugin| plugin.approved.as_ref());
        if approved.is_some_and(|approved| !approved.covers(&self.path, &bytes)) {
            return Err("the file is not used, because it changed after the plugin was approved".to_owned());
        }
        let plugin = self.plugin.clone();
        let stem = self.place_name.rsplit(':').next().unwrap_or(&self.place_name);
        match self.kind {
            CapabilityKind::Skill => Ok(self.read_skill(&bytes, SkillFileKind::Skill)),
            CapabilityKind::Command => Ok(self.read_skill(&bytes, SkillFileKind::Command)),
            CapabilityKind::Agent => {
                let origin =
                    if plugin.is_some() { AgentFileOrigin::Plugin } else { AgentFileOrigin::Settings };
                let (mut definition, mut problems) = AgentFile::read(&bytes, stem, origin);
                if let Some(agent) = &mut definition {
                    problems.extend(check_agent_tools(agent, &bytes));
                }
                let agent = definition.map(|definition| CatalogAgent {
                    name: self.prefixed(&definition.name),
                    definition,
                    scope: self.scope.clone(),
                    file: self.path.clone(),
                    plugin,
                    sha256: sha256_hex(&bytes),
                });
                Ok((
                    agent.map_or(CapabilityContent::Nothing, |agent| {
                        CapabilityContent::Agent(Arc::new(agent))
                    }),
                    problems,
                ))
            }
            CapabilityKind::OutputStyle => {
                let (definition, problems) = OutputStyle::read(&bytes, stem);
                let style = CatalogStyle {
                    name: self.prefixed(&definition.name),
                    definition,
                    scope: self.scope.clone(),
                    file: self.path.clone(),
                    plugin,
                };
                Ok((CapabilityContent::Style(Arc::new(style)), problems))
            }
        }
    }

    /// Parses a skill or a command and determines its name. A name that is not valid makes the file unusable, because
    /// rules and slash commands refer to skills by name; so does a misspelling of what restricts it.
    fn read_skill(&self, bytes: &[u8], kind: SkillFileKind) -> (CapabilityContent, Vec<CapabilityProblem>) {
        let (definition, mut problems) = SkillDefinition::read(bytes, kind);
        // In a plugin a skill may name itself; elsewhere its directory does, and the name is a label.
        let given =
            definition.label.as_deref().filter(|_| self.plugin.is_some() && kind == SkillFileKind::Skill);
        let own_name = match given {
            Some(label) if check_capability_name(label).is_ok() => label,
            Some(_) | None => &self.place_name,
        };
        if let Err(problem) = check_capability_name(own_name) {
            problems.push(CapabilityProblem::error(1, format!("the file is not used: {problem}")));
        }
        let line = find_field_line(bytes, "disallowed-tools");
        let misspelled = find_misspelled_tools("disallowed-tools", &definition.disallowed_tools);
        problems.extend(misspelled.into_iter().map(|message| CapabilityProblem::error(line, message)));
        if problems.iter().any(|problem| problem.severity == CapabilitySeverity::Error) {
            return (CapabilityContent::Nothing, problems);
        }
        if definition.label.as_ref().is_some_and(|label| label != own_name) {
            let message = format!("`name` differs from the directory; it is used as `{own_name}`");
            problems.push(CapabilityProblem::note(1, message));
        }
        problems.extend(self.note_plugin());
        let skill = CatalogSkill {
            name: self.prefixed(own_name),
            kind,
            definition,
            scope: self.scope.clone(),
            file: self.path.clone(),
            plugin: self.plugin.clone(),
            sha256: sha256_hex(bytes),
            bytes: bytes.len(),
        };
        (CapabilityContent::Skill(Arc::new(skill)), problems)
    }

    /// A directory among the skills of the user or a project that is a plugin: what else it brings is used only after the
    /// user has seen and approved it, as for any plugin.
    pub(super) fn note_plugin(&self) -> Option<CapabilityProblem> {
        let dir =
            self.path.parent().filter(|_| self.kind == CapabilityKind::Skill && self.plugin.is_none())?;
        let is_plugin = read_file_stamp(&dir.join(PLUGIN_MANIFEST_FILE)) != FileStamp::Absent;
        is_plugin.then(|| {
            let message = format!(
                "this directory is a plugin; its other parts are used once it is installed with `toolgate plugin add {dir}`"
            );
            CapabilityProblem::warning(1, message)
        })
    }

    /// A name with that of the plugin before it.
    fn prefixed(&self, name: &str) -> String {
        match &self.plugin {
            Some(plugin) => format!("{}:{name}", plugin.name),
            None => name.to_owned(),
        }
    }

    /// A problem that keeps the file from being used.
    pub(super) fn refusal(&self, message: String) -> CatalogProblem {
        CatalogProblem { file: self.path.clone(), problem: CapabilityProblem::warning(1, message) }
    }
}
