//! Skills, commands, agents and output styles: where they are, what they say, which one counts.
//!
//! [`CapabilityPlaces`] says where to look. [`SkillCatalog`] is what was found there: each skill with its origin, and
//! each file that could not be used with its line. Loading again reads only what changed.
//! What a file says is read by the crate `toolgate-skills`; nothing of it is trusted here either.
//!
//! ```
//! use toolgate::AbsPath;
//! use toolgate::settings::SettingsOptions;
//! use toolgate::skills::{CapabilityPlaces, SkillCatalog};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let root = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
//! # std::fs::create_dir_all(dir.path().join(".claude/skills/review")).unwrap();
//! let file = dir.path().join(".claude/skills/review/SKILL.md");
//! std::fs::write(file, "---\ndescription: Reviews a change\n---\nReview it.\n").unwrap();
//!
//! let places = CapabilityPlaces::of_settings(&SettingsOptions::new(root), &[]);
//! let catalog = SkillCatalog::load(&places, None);
//! assert_eq!(catalog.find_skill("review").unwrap().definition.description, "Reviews a change");
//! ```

mod agent_hooks;
mod capability_file;
mod catalog;
mod invocation;
mod live_skills;
mod load_skill;
mod misspelled_tools;
mod places;
mod prompts;
mod skill_expander;
mod skill_tool;
mod skill_trust;
mod touched_paths;

pub(crate) use capability_file::PLUGIN_MANIFEST_FILE;
pub(crate) use skill_tool::{SkillSource, SkillTool};
pub(crate) use touched_paths::TouchedPathSink;

pub use agent_hooks::CatalogAgentHooks;
pub use capability_file::{CatalogAgent, CatalogProblem, CatalogSkill, CatalogStyle};
pub use catalog::SkillCatalog;
pub use invocation::{LoadedSkill, SkillUser};
pub use live_skills::{DEFAULT_LISTING_CHARS, LiveSkills, SkillOptions};
pub use misspelled_tools::find_misspelled_tools;
pub use places::{ApprovedFiles, CapabilityPlace, CapabilityPlaces, CapabilityScope, PluginIdentity};
pub use prompts::SkillPrompts;
pub use skill_expander::SkillExpander;
pub use skill_trust::SkillTrust;
pub use toolgate_skills::{
    AgentFile, AgentFileOrigin, CapabilityProblem, CapabilitySeverity, FilledPart, FilledTemplate,
    ListedSkill, OutputStyle, SkillContext, SkillDefinition, SkillFileKind, SkillListing, SkillTemplate,
    TemplateValues,
};
