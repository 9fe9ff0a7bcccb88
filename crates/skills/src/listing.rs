//! What a model is shown of many skills, within a budget.

use toolgate_proto::{format_count, shorten_text};

/// The longest description of one skill.
pub const MAX_DESCRIPTION_CHARS: usize = 1536;

/// One skill to be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedSkill {
    /// Its name.
    pub name: String,
    /// What it does; empty to list the name only.
    pub description: String,
    /// How often it was used: the least used lose their description first.
    pub uses: u64,
}

impl ListedSkill {
    /// Creates a skill to be listed, with the number of its uses.
    pub fn new(name: impl Into<String>, description: impl Into<String>, uses: u64) -> Self {
        Self { name: name.into(), description: description.into(), uses }
    }
}

/// A list of skills that fits a budget.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SkillListing {
    /// The list, in name order, never longer than the budget; its last line says what is missing.
    pub text: String,
    /// The skills whose description was cut off altogether.
    pub without_description: Vec<String>,
    /// The skills that are not in the list, because even their names do not fit.
    pub unlisted: Vec<String>,
}

/// Room that is kept for the line that says what is missing.
const MISSING_LINE_CHARS: usize = 160;

impl SkillListing {
    /// Lists skills within a budget in characters: names first, then descriptions, those of the most used skills
    /// first.
    pub fn build(skills: &[ListedSkill], budget: usize) -> Self {
        let mut ranked: Vec<&ListedSkill> = skills.iter().collect();
        ranked.sort_by(|a, b| b.uses.cmp(&a.uses).then_with(|| a.name.cmp(&b.name)));
        let name_cost = |skill: &ListedSkill| skill.name.chars().count() + 3;
        let whole: usize = ranked
            .iter()
            .map(|skill| name_cost(skill) + describe(skill).map_or(0, |text| text.chars().count() + 2))
            .sum();
        let mut left = if whole <= budget { budget } else { budget.saturating_sub(MISSING_LINE_CHARS) };
        let mut listing = Self::default();
        let mut lines: Vec<(&ListedSkill, Option<String>)> = Vec::new();
        for skill in ranked {
            match left.checked_sub(name_cost(skill)) {
                Some(rest) => {
                    left = rest;
                    lines.push((skill, None));
                }
                None => listing.unlisted.push(skill.name.clone()),
            }
        }
        for (skill, line) in &mut lines {
            let Some(description) = describe(skill) else { continue };
            match left.checked_sub(description.chars().count() + 2) {
                Some(rest) => {
                    left = rest;
                    *line = Some(description);
                }
                None => listing.without_description.push(skill.name.clone()),
            }
        }
        lines.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        for (skill, description) in lines {
            match description {
                Some(description) => listing.text.push_str(&format!("- {}: {description}\n", skill.name)),
                None => listing.text.push_str(&format!("- {}\n", skill.name)),
            }
        }
        if let Some(missing) = listing.missing_line().filter(|line| line.chars().count() <= budget) {
            listing.text.push_str(&missing);
        }
        listing
    }

    /// What was cut, in one line; none if nothing was.
    pub fn missing_line(&self) -> Option<String> {
        match (self.without_description.len(), self.unlisted.len()) {
            (0, 0) => None,
            (cut, 0) => Some(format!(
                "({} left out to save space.)",
                format_count(cut as u64, "description was", "descriptions were")
            )),
            (cut, gone) => Some(format!(
                "({} and {} were left out to save space.)",
                format_count(cut as u64, "description", "descriptions"),
                format_count(gone as u64, "whole skill", "whole skills")
            )),
        }
    }
}

/// The description as it is listed: on one line, and not too long.
fn describe(skill: &ListedSkill) -> Option<String> {
    let text = skill.description.split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then(|| shorten_text(&text, MAX_DESCRIPTION_CHARS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(name: &str, description: &str, uses: u64) -> ListedSkill {
        ListedSkill { name: name.to_owned(), description: description.to_owned(), uses }
    }

    #[test]
    fn the_least_used_lose_their_description_first_and_the_list_says_so() {
        let long = "x".repeat(300);
        let skills = [skill("a", &long, 0), skill("b", &long, 5), skill("c", "", 0)];
        let listing = SkillListing::build(&skills, 1000);
        assert_eq!(listing.missing_line(), None);
        let listing = SkillListing::build(&skills, 600);
        assert_eq!(listing.without_description, ["a"]);
        assert!(
            listing.text.contains(&format!("- b: {long}\n")) && listing.text.contains("- a\n"),
            "{}",
            listing.text
        );
        assert!(listing.text.ends_with("(1 description was left out to save space.)"));
        let listing = SkillListing::build(&skills, 165);
        assert_eq!(
            (listing.text.contains("- b\n"), listing.unlisted),
            (true, vec!["a".to_owned(), "c".to_owned()])
        );
    }
}
