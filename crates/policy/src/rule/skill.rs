//! `Skill(name)` and `Skill(name *)`: which skills may be loaded, and with which arguments.

use super::bash::{CommandIndex, CommandPattern};
use super::grammar::RuleSyntaxError;

/// A skill by name, or by name and any arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SkillPattern(CommandPattern);

impl SkillPattern {
    pub(crate) fn parse(content: &str) -> Result<Self, RuleSyntaxError> {
        match content.strip_suffix(" *") {
            Some(name) if !name.contains('*') => Ok(Self(CommandPattern::Prefix(name.trim().to_owned()))),
            None if !content.contains('*') => Ok(Self(CommandPattern::Exact(content.trim().to_owned()))),
            Some(_) | None => Err(RuleSyntaxError::new(
                "`*` can only stand at the end of a skill rule, after a blank",
                "write `Skill(name)` or `Skill(name *)`",
            )),
        }
    }
}

/// Skill rules of one action.
#[derive(Debug, Clone, Default)]
pub(crate) struct SkillIndex(CommandIndex);

impl SkillIndex {
    pub(crate) fn add(&mut self, id: u32, pattern: SkillPattern) {
        self.0.add(id, pattern.0);
    }

    /// The first rule for exactly this use: a rule without ` *` covers the skill without arguments.
    pub(crate) fn find(&self, name: &str, args: Option<&str>) -> Option<u32> {
        match args.map(str::trim).filter(|args| !args.is_empty()) {
            Some(args) => self.0.find(&format!("{name} {args}")),
            None => self.0.find(name),
        }
    }

    /// The first rule for the skill, whatever it is called with: what denies a skill denies every use of it.
    pub(crate) fn find_any_use(&self, name: &str, args: Option<&str>) -> Option<u32> {
        self.0.find(name).into_iter().chain(self.find(name, args)).min()
    }
}
