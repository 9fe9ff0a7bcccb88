//! Plugins: directories that bring skills, commands, agents, output styles, hooks, MCP servers and language servers.
//!
//! [`PluginPackage`] is a plugin as it is in its directory, with the hash of all its files. [`PluginStore`] keeps which
//! plugins are installed, which are enabled, and which content the user approved. [`PluginSource`] is where a plugin comes
//! from: a directory, a git repository, or an entry of a marketplace in one of them. [`PluginSet`] is what a session has.
//!
//! Reading and installing a plugin runs nothing of it. Its hooks, servers and programs run only if the user approved
//! exactly this content; a plugin that changed is held back, and the calls that its approved hooks screened are refused
//! until it is approved again.

mod known_marketplaces;
mod package;
mod plugin_servers;
mod plugin_set;
mod plugin_source;
mod plugin_store;
mod plugin_summary;
mod plugin_variables;

pub(crate) use plugin_servers::is_plugin_server;
pub(crate) use plugin_set::PlannedPluginHooks;
pub(crate) use plugin_summary::describe_handler;
pub(crate) use plugin_variables::{PluginVariables, find_unusable_text};

pub use known_marketplaces::KnownMarketplaces;
pub use package::{PluginPackage, PluginServer};
pub use plugin_set::{PluginEntry, PluginSet, PluginStatus};
pub use plugin_source::{PluginSource, SourceContent, StagedPlugin};
pub use plugin_store::{InstalledPlugin, PluginApproval, PluginStore};
pub use plugin_summary::PluginSummary;
pub use toolgate_skills::{ComponentList, MarketplaceEntry, PluginManifest, PluginMarketplace, PluginOrigin};
