//! `Skill(name)` and `Skill(name *)`: rules for loading skills, without and with arguments.

use super::command::{CommandIndex, CommandPattern};
use super::syntax::RuleSyntaxError;

/// A skill by name, or by name with any arguments. Skill rules match like commands with few wildcards, so the command
/// pattern is used for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SkillPattern(CommandPattern);

impl SkillPattern {
    /// Parses the content of a `Skill` rule. A user calls a skill as `/name`, and no name begins with `/`.
    pub(crate) fn parse(content: &str) -> Result<Self, RuleSyntaxError> {
        let content = content.strip_prefix('/').unwrap_or(content);
        match content.strip_suffix(" *") {
            Some(name) if !name.contains('*') => Ok(Self(CommandPattern::Prefix(name.trim().to_owned()))),
            None if !content.contains('*') => Ok(Self(CommandPattern::Exact(content.trim().to_owned()))),
            Some(_) | None => Err(RuleSyntaxError::new(
                "`*` is only allowed at the end of a skill rule, after a space",
                "write `Skill(name)` or `Skill(name *)`",
            )),
        }
    }
}

/// Skill rules of one action, indexed like commands.
#[derive(Debug, Clone, Default)]
pub(crate) struct SkillIndex(CommandIndex);

impl SkillIndex {
    /// Adds a pattern.
    pub(crate) fn add(&mut self, id: u32, pattern: SkillPattern) {
        self.0.add(id, pattern.0);
    }

    /// The first rule for exactly this use. A rule without ` *` only matches the skill without arguments.
    pub(crate) fn find(&self, name: &str, args: Option<&str>) -> Option<u32> {
        match args.map(str::trim).filter(|args| !args.is_empty()) {
            Some(args) => self.0.find(&format!("{name} {args}")),
            None => self.0.find(name),
        }
    }

    /// The first rule for the skill with any arguments: a rule that denies a skill denies every use of it.
    pub(crate) fn find_any_use(&self, name: &str, args: Option<&str>) -> Option<u32> {
        self.0.find(name).into_iter().chain(self.find(name, args)).min()
    }
}
