//! The body of a skill with its arguments filled in, in one pass.

use crate::arguments::split_arguments;
use crate::template_parser::TemplateParser;

/// A part of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TemplatePart {
    /// Text that stays.
    Text(String),
    /// `$ARGUMENTS`.
    AllArguments,
    /// `$N` or `$ARGUMENTS[N]`, counted from 0; where there is no such argument, what was written stays.
    Argument { index: usize, written: String },
    /// `$name`.
    Named(String),
    /// `${CLAUDE_…}`.
    Variable(TemplateVariable),
    /// A command whose output takes its place.
    Command { parts: Vec<TemplatePart>, line: usize },
    /// `@path`.
    File(String),
}

/// What `${CLAUDE_…}` stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TemplateVariable {
    SessionId,
    Effort,
    SkillDir,
    ProjectDir,
    PluginRoot,
    PluginData,
}

impl TemplateVariable {
    /// The variable of a name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "CLAUDE_SESSION_ID" => Self::SessionId,
            "CLAUDE_EFFORT" => Self::Effort,
            "CLAUDE_SKILL_DIR" => Self::SkillDir,
            "CLAUDE_PROJECT_DIR" => Self::ProjectDir,
            "CLAUDE_PLUGIN_ROOT" => Self::PluginRoot,
            "CLAUDE_PLUGIN_DATA" => Self::PluginData,
            _ => return None,
        })
    }

    /// How it is written.
    fn written(self) -> &'static str {
        match self {
            Self::SessionId => "${CLAUDE_SESSION_ID}",
            Self::Effort => "${CLAUDE_EFFORT}",
            Self::SkillDir => "${CLAUDE_SKILL_DIR}",
            Self::ProjectDir => "${CLAUDE_PROJECT_DIR}",
            Self::PluginRoot => "${CLAUDE_PLUGIN_ROOT}",
            Self::PluginData => "${CLAUDE_PLUGIN_DATA}",
        }
    }

    fn value<'v>(self, values: &TemplateValues<'v>) -> Option<&'v str> {
        match self {
            Self::SessionId => values.session_id,
            Self::Effort => values.effort,
            Self::SkillDir => values.skill_dir,
            Self::ProjectDir => values.project_dir,
            Self::PluginRoot => values.plugin_root,
            Self::PluginData => values.plugin_data,
        }
    }
}

/// What is filled in. A variable without a value stays as it was written.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct TemplateValues<'v> {
    /// The arguments, as one text.
    pub arguments: &'v str,
    /// `${CLAUDE_SESSION_ID}`.
    pub session_id: Option<&'v str>,
    /// `${CLAUDE_EFFORT}`.
    pub effort: Option<&'v str>,
    /// `${CLAUDE_SKILL_DIR}`: the directory of the skill.
    pub skill_dir: Option<&'v str>,
    /// `${CLAUDE_PROJECT_DIR}`: the workspace.
    pub project_dir: Option<&'v str>,
    /// `${CLAUDE_PLUGIN_ROOT}`: the directory of the plugin.
    pub plugin_root: Option<&'v str>,
    /// `${CLAUDE_PLUGIN_DATA}`: the directory for what the plugin keeps.
    pub plugin_data: Option<&'v str>,
}

impl<'v> TemplateValues<'v> {
    /// Creates values with arguments only.
    pub fn new(arguments: &'v str) -> Self {
        Self { arguments, ..Self::default() }
    }
}

/// The body of a skill, read once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillTemplate {
    parts: Vec<TemplatePart>,
    names: Vec<String>,
}

/// A part of a body that was filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilledPart {
    /// Text.
    Text(String),
    /// A command to run, whose output takes its place.
    Command {
        /// The command line.
        text: String,
        /// The line of the body on which it stands, from 1.
        line: usize,
    },
    /// A file to attach, if there is one at this path.
    File(String),
}

/// A body that was filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilledTemplate {
    /// Its parts, in order.
    pub parts: Vec<FilledPart>,
}

impl SkillTemplate {
    /// Reads a body.
    pub fn parse(body: &str, argument_names: &[String]) -> Self {
        Self { parts: TemplateParser::new(body, argument_names).parse_body(), names: argument_names.to_vec() }
    }

    /// The commands in it, with their lines, as they are written.
    pub fn commands(&self) -> Vec<(usize, String)> {
        let values = TemplateValues::default();
        let filler =
            TemplateFiller { values: &values, words: Vec::new(), names: &[], used: false, literal: true };
        let written = |part: &TemplatePart| match part {
            TemplatePart::Command { parts, line } => {
                let mut filler = filler.clone();
                Some((*line, parts.iter().map(|part| filler.fill_text(part)).collect()))
            }
            _ => None,
        };
        self.parts.iter().filter_map(written).collect()
    }

    /// Fills in the values. What they hold is text, whatever it looks like.
    pub fn fill(&self, values: &TemplateValues<'_>) -> FilledTemplate {
        let words = split_arguments(values.arguments);
        let mut filler = TemplateFiller { values, words, names: &self.names, used: false, literal: false };
        let mut filled = FilledTemplate { parts: Vec::new() };
        for part in &self.parts {
            filled.parts.push(match part {
                TemplatePart::Command { parts, line } => {
                    let text = parts.iter().map(|part| filler.fill_text(part)).collect();
                    FilledPart::Command { text, line: *line }
                }
                TemplatePart::File(path) => FilledPart::File(path.clone()),
                other => FilledPart::Text(filler.fill_text(other)),
            });
        }
        // Arguments that no placeholder took must not be lost.
        if !filler.used && !values.arguments.trim().is_empty() {
            let ends_line = self
                .parts
                .last()
                .is_none_or(|part| matches!(part, TemplatePart::Text(t) if t.ends_with('\n')));
            let gap = if ends_line { "\n" } else { "\n\n" };
            filled.parts.push(FilledPart::Text(format!("{gap}ARGUMENTS: {}", values.arguments)));
        }
        filled
    }
}

impl FilledTemplate {
    /// The text, with commands and file references as they are written.
    pub fn text(&self) -> String {
        let shown = |part: &FilledPart| match part {
            FilledPart::Text(text) => text.clone(),
            FilledPart::Command { text, .. } => format!("!`{text}`"),
            FilledPart::File(path) => format!("@{path}"),
        };
        self.parts.iter().map(shown).collect()
    }
}

/// Fills in one part after another, and remembers whether one took an argument.
#[derive(Clone)]
struct TemplateFiller<'a, 'v> {
    values: &'a TemplateValues<'v>,
    words: Vec<String>,
    names: &'a [String],
    used: bool,
    /// Leave every placeholder as it was written.
    literal: bool,
}

impl TemplateFiller<'_, '_> {
    /// The text of one part. What an argument contains is not read again.
    fn fill_text(&mut self, part: &TemplatePart) -> String {
        match part {
            TemplatePart::Text(text) => text.clone(),
            TemplatePart::AllArguments if self.literal => "$ARGUMENTS".to_owned(),
            TemplatePart::Named(name) if self.literal => format!("${name}"),
            TemplatePart::AllArguments => {
                self.used = true;
                self.values.arguments.to_owned()
            }
            TemplatePart::Argument { index, written } => match self.words.get(*index) {
                Some(word) => {
                    self.used = true;
                    word.clone()
                }
                None => written.clone(),
            },
            TemplatePart::Named(name) => {
                self.used = true;
                let index = self.names.iter().position(|known| known == name);
                index.and_then(|index| self.words.get(index)).cloned().unwrap_or_default()
            }
            TemplatePart::Variable(variable) => {
                variable.value(self.values).unwrap_or_else(|| variable.written()).to_owned()
            }
            // INVARIANT: a command has neither commands nor files in it.
            TemplatePart::Command { .. } | TemplatePart::File(_) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(body: &str, arguments: &str) -> String {
        let names = ["file".to_owned(), "filename".to_owned()];
        SkillTemplate::parse(body, &names)
            .fill(&TemplateValues { arguments, ..TemplateValues::default() })
            .text()
    }

    #[test]
    fn placeholders_are_filled_in() {
        for (body, arguments, wanted) in [
            ("do $ARGUMENTS.", "a b", "do a b."),
            ("$0 and $1 and $2", "'x y' z", "x y and z and $2"),
            ("$ARGUMENTS[1] $ARGUMENTS[9]", "a b", "b $ARGUMENTS[9]"),
            ("$file|$filename|$files", "a b", "a|b|$files"),
            ("\\$0 \\$ARGUMENTS \\x \\$z", "a", "$0 $ARGUMENTS \\x \\$z\n\nARGUMENTS: a"),
            ("it costs $5", "a", "it costs $5\n\nARGUMENTS: a"),
            ("plain\n", "a b", "plain\n\nARGUMENTS: a b"),
            ("plain", "", "plain"),
            ("[$file]", "", "[]"),
            ("${CLAUDE_SKILL_DIR} ${OTHER} ${", "", "${CLAUDE_SKILL_DIR} ${OTHER} ${"),
            ("```\necho $0\n```\n", "a", "```\necho a\n```\n"),
        ] {
            assert_eq!(fill(body, arguments), wanted, "{body}");
        }
        let values = TemplateValues { skill_dir: Some("/s/$0"), arguments: "a", ..TemplateValues::default() };
        let template = SkillTemplate::parse("${CLAUDE_SKILL_DIR}/x $0", &[]);
        assert_eq!(template.fill(&values).text(), "/s/$0/x a");
    }

    #[test]
    fn commands_and_files_are_found_where_they_are_meant() {
        let body = "Status: !`git status`\n!`git log $0`\n```!\necho one\necho two\n```\n```\n!`not run`\n```\n\
                    `!`no`` x!`no` see @src/lib.rs, @README.md. Mail a@b.c or @handle!\n";
        let template = SkillTemplate::parse(body, &[]);
        let filled = template.fill(&TemplateValues { arguments: "-3", ..TemplateValues::default() });
        let commands: Vec<(usize, &str)> = filled
            .parts
            .iter()
            .filter_map(|part| match part {
                FilledPart::Command { text, line } => Some((*line, text.as_str())),
                _ => None,
            })
            .collect();
        assert_eq!(commands, [(1, "git status"), (2, "git log -3"), (3, "echo one\necho two")]);
        assert_eq!(template.commands()[1], (2, "git log $0".to_owned()));
        let files: Vec<&FilledPart> =
            filled.parts.iter().filter(|part| matches!(part, FilledPart::File(_))).collect();
        assert_eq!(files, [&FilledPart::File("src/lib.rs".into()), &FilledPart::File("README.md".into())]);
    }
}
