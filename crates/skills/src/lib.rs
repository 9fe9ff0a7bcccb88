//! Reads the files that extend an agent: skills, commands, agents, output styles, plugin manifests, marketplaces.
//!
//! Text goes in; a value and a list of [`CapabilityProblem`]s come out, each with its line.
//! Reading is total: any bytes end in a value or in a report, and what cannot be read as it was meant is
//! reported, never dropped silently.
//!
//! [`FrontMatter`] splits a file and reads its YAML, with a line-by-line fallback for the files that are not YAML.
//! [`SkillDefinition`], [`AgentFile`] and [`OutputStyle`] are read from it.
//! [`SkillTemplate`] fills in the arguments of a skill in one pass: text that a user or a model gives is never read as
//! a template again.
//! [`SkillListing`] is what a model sees of many skills within a budget.
//! [`PluginManifest`] and [`PluginMarketplace`] say what a plugin brings and where plugins come from.
//!
//! ```
//! use toolgate_skills::{SkillDefinition, SkillFileKind, SkillTemplate, TemplateValues};
//!
//! let file = b"---\ndescription: Reviews a file: quickly\n---\nReview $0 now.\n";
//! let (skill, problems) = SkillDefinition::read(file, SkillFileKind::Skill);
//! // The colon makes it invalid YAML. It is read all the same, and the line is named.
//! assert_eq!(skill.description, "Reviews a file: quickly");
//! assert_eq!(problems[0].line, 2);
//!
//! let template = SkillTemplate::parse(&skill.body, &skill.argument_names);
//! let values = TemplateValues::new("'my file.rs' $0");
//! assert_eq!(template.fill(&values).text(), "Review my file.rs now.\n");
//! ```
//!
//! The crate does not open, find or watch files, and it runs nothing. It does not decide what is trusted: what a file asks
//! for is a request that the gate judges.

#![forbid(unsafe_code)]

mod agent;
mod arguments;
mod capability_name;
mod field_reader;
mod front_matter;
mod listing;
mod marketplace;
mod output_style;
mod plugin_manifest;
mod problem;
mod skill;
mod template;
mod template_parser;

pub use agent::{AgentFile, AgentFileOrigin};
pub use arguments::split_arguments;
pub use capability_name::check_capability_name;
pub use field_reader::split_tool_list;
pub use front_matter::FrontMatter;
pub use listing::{ListedSkill, MAX_DESCRIPTION_CHARS, SkillListing};
pub use marketplace::{MarketplaceEntry, PluginMarketplace, PluginOrigin};
pub use output_style::OutputStyle;
pub use plugin_manifest::{ComponentList, PluginManifest, check_component_path, read_component_json};
pub use problem::{CapabilityProblem, CapabilitySeverity};
pub use skill::{SkillContext, SkillDefinition, SkillFileKind};
pub use template::{FilledPart, FilledTemplate, SkillTemplate, TemplateValues};
