//! Skills and commands: one Markdown file each, with optional front matter.

use crate::field_reader::FieldReader;
use crate::front_matter::FrontMatter;
use crate::problem::CapabilityProblem;
use serde_json::Value;

/// Which kind of file a skill is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SkillFileKind {
    /// `SKILL.md` in a directory of its own.
    Skill,
    /// A Markdown file in a directory `commands`. Its name is that of the file; `name` and `paths` have no effect.
    Command,
}

/// Where the text of a skill goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SkillContext {
    /// Into the conversation.
    #[default]
    Inline,
    /// To an agent of its own, as its task.
    Fork {
        /// The type of the agent; absent means the general one.
        agent: Option<String>,
        /// Whether the conversation goes on meanwhile.
        background: bool,
    },
}

/// A skill or a command, as it is written.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct SkillDefinition {
    /// The name that the file gives itself: a label, and the name of a plugin's skill.
    pub label: Option<String>,
    /// What it does; the first paragraph of the body if the file does not say.
    pub description: String,
    /// When a model should use it.
    pub when_to_use: Option<String>,
    /// A hint for the user what to write after the name.
    pub argument_hint: Option<String>,
    /// Names for `$name` in the body, in the order of the arguments.
    pub argument_names: Vec<String>,
    /// Only a user may use it: it is not listed for models, and `Skill` refuses it.
    pub disables_model_invocation: bool,
    /// Whether a user may call it as `/name`.
    pub is_user_invocable: bool,
    /// Rules that it asks to have allowed until the turn ends.
    pub allowed_tools: Vec<String>,
    /// Rules that it asks to have denied until the turn ends.
    pub disallowed_tools: Vec<String>,
    /// The model for the rest of the turn, for hosts.
    pub model: Option<String>,
    /// The effort for the rest of the turn, for hosts.
    pub effort: Option<String>,
    /// Where its text goes.
    pub context: SkillContext,
    /// Hooks that it wants to add, as in settings.
    pub hooks: Option<Value>,
    /// Globs of files for which a host may use it by itself.
    pub paths: Vec<String>,
    /// The shell for its commands, if it names another than bash.
    pub shell: Option<String>,
    /// The text below the front matter.
    pub body: String,
    /// The line on which the body begins, from 1.
    pub body_line: usize,
}

impl SkillDefinition {
    /// Reads a file. Never fails: a file without front matter is a skill too. One with an error among its problems must
    /// not be used: a field that was meant to restrict it has no effect.
    pub fn read(bytes: &[u8], kind: SkillFileKind) -> (Self, Vec<CapabilityProblem>) {
        let front = FrontMatter::read(bytes);
        let mut fields = FieldReader::new(&front);
        if !front.is_present && kind == SkillFileKind::Skill {
            let message = "there is no front matter, so the description is the first paragraph";
            fields.problems.push(CapabilityProblem::warning(1, message));
        }
        let label = fields.text("name");
        let description = fields.text("description");
        let mut skill = Self {
            label,
            description: description.unwrap_or_else(|| first_paragraph(&front.body)),
            when_to_use: fields.text("when_to_use").or_else(|| fields.text("when-to-use")),
            argument_hint: fields.text("argument-hint"),
            argument_names: fields.names("arguments"),
            // A value that cannot be read may have been meant to restrict.
            disables_model_invocation: fields.flag("disable-model-invocation", false, true),
            is_user_invocable: fields.flag("user-invocable", true, false),
            allowed_tools: fields.tools("allowed-tools").unwrap_or_default(),
            disallowed_tools: fields.tools("disallowed-tools").unwrap_or_default(),
            model: fields.text("model"),
            effort: fields.text("effort"),
            context: read_context(&mut fields),
            hooks: fields.value("hooks").cloned(),
            paths: fields.names("paths"),
            shell: fields.text("shell"),
            body_line: front.body_line,
            body: String::new(),
        };
        for ignored in ["metadata", "license", "compatibility", "version", "author", "tags", "category"] {
            fields.value(ignored);
        }
        if kind == SkillFileKind::Command {
            skill.label = None;
            if !std::mem::take(&mut skill.paths).is_empty() {
                fields.warn("paths", "has no effect in a command");
            }
        }
        if skill.description.is_empty() {
            let message = "there is neither a description nor a text; a model cannot know when to use it";
            fields.problems.push(CapabilityProblem::warning(front.body_line, message));
        }
        if skill.shell.as_deref().is_some_and(|shell| shell != "bash") {
            fields.warn("shell", "names a shell that is not there; the commands of this skill are not run");
        }
        let problems = fields.finish();
        skill.body = front.body;
        (skill, problems)
    }

    /// The description of the skill for a model: what it does, and when to use it.
    pub fn listed_description(&self) -> String {
        match &self.when_to_use {
            Some(when) => format!("{} {when}", self.description),
            None => self.description.clone(),
        }
    }
}

/// Reads `context`, `agent` and `background`.
fn read_context(fields: &mut FieldReader<'_>) -> SkillContext {
    let (agent, background) = (fields.text("agent"), fields.flag("background", true, false));
    match fields.text("context").as_deref() {
        None | Some("inline") => SkillContext::Inline,
        Some("fork") => SkillContext::Fork { agent, background },
        Some(_) => {
            fields.warn("context", "is neither `fork` nor `inline`; `inline` counts");
            SkillContext::Inline
        }
    }
}

/// The first paragraph that is no heading, on one line.
pub(crate) fn first_paragraph(body: &str) -> String {
    let mut paragraph: Vec<&str> = Vec::new();
    for line in body.lines().map(str::trim) {
        match (line.is_empty() || line.starts_with('#'), paragraph.is_empty()) {
            (true, true) => {}
            (true, false) => break,
            (false, _) => paragraph.push(line),
        }
    }
    paragraph.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (SkillDefinition, Vec<CapabilityProblem>) {
        SkillDefinition::read(text.as_bytes(), SkillFileKind::Skill)
    }

    #[test]
    fn every_field_is_read() {
        let (skill, problems) = read(
            "---\nname: review\ndescription: Reviews.\nwhen_to_use: After a change.\nargument-hint: [file]\n\
             arguments: file depth\ndisable-model-invocation: yes\nuser-invocable: off\n\
             allowed-tools: Read, Bash(git log *)\ndisallowed-tools: [Write, WebFetch]\ncontext: fork\nagent: Explore\n\
             background: false\nmodel: opus\neffort: high\npaths: \"*.rs, *.toml\"\nlicense: MIT\n---\nbody",
        );
        assert_eq!(problems, []);
        assert_eq!(skill.label.as_deref(), Some("review"));
        assert_eq!(skill.listed_description(), "Reviews. After a change.");
        assert_eq!(skill.argument_hint.as_deref(), Some("[file]"));
        assert_eq!(skill.argument_names, ["file", "depth"]);
        assert!(skill.disables_model_invocation && !skill.is_user_invocable);
        assert_eq!(skill.allowed_tools, ["Read", "Bash(git log *)"]);
        assert_eq!(skill.disallowed_tools, ["Write", "WebFetch"]);
        assert_eq!(
            skill.context,
            SkillContext::Fork { agent: Some("Explore".to_owned()), background: false }
        );
        assert_eq!(skill.paths, ["*.rs", "*.toml"]);
    }

    #[test]
    fn a_switch_that_cannot_be_read_restricts() {
        let (skill, problems) = read("---\ndescription: d\ndisable-model-invocation: maybe\n---\n");
        assert!(skill.disables_model_invocation);
        assert_eq!(problems[0].line, 3);
    }

    #[test]
    fn a_misspelt_field_is_named_with_the_one_that_was_meant() {
        let (_, problems) = read("---\ndescription: d\nallowed_tools: Read\nfoo: 1\n---\n");
        assert!(problems[0].message.contains("write `allowed-tools`"), "{problems:?}");
        assert!(problems[1].message.contains("`foo` is not a known field"), "{problems:?}");
    }

    #[test]
    fn the_first_paragraph_describes_where_nothing_else_does() {
        let (skill, problems) = read("# Title\n\nDoes this\nand that.\n\nMore.\n");
        assert_eq!(skill.description, "Does this and that.");
        assert_eq!(problems.len(), 1);
    }
}
