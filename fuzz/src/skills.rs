//! Checks any text as a file that extends an agent: it is read or reported, and arguments are filled in once.

use toolgate_skills::{
    AgentFile, AgentFileOrigin, FilledPart, OutputStyle, PluginManifest, PluginMarketplace, SkillDefinition,
    SkillFileKind, SkillTemplate, TemplateValues,
};

/// Checks that every reader ends, and that what an argument holds becomes neither a command nor a file.
pub(crate) fn check(text: &str) {
    let (skill, problems) = SkillDefinition::read(text.as_bytes(), SkillFileKind::Skill);
    let lines = text.matches('\n').count() + text.matches('\r').count() + 1;
    assert!(problems.iter().all(|problem| (1..=lines).contains(&problem.line)), "a problem is on no line");
    let template = SkillTemplate::parse(&skill.body, &skill.argument_names);
    let count = |arguments: &str| {
        let filled = template.fill(&TemplateValues::new(arguments));
        filled.parts.iter().filter(|part| !matches!(part, FilledPart::Text(_))).count()
    };
    assert_eq!(count(""), count(text), "an argument became a command or a file");
    SkillDefinition::read(text.as_bytes(), SkillFileKind::Command);
    AgentFile::read(text.as_bytes(), "file", AgentFileOrigin::Plugin);
    OutputStyle::read(text.as_bytes(), "file");
    PluginManifest::read(text.as_bytes());
    PluginMarketplace::read(text.as_bytes());
}
