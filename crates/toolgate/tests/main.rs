//! End-to-end tests of the program and the library, in one binary: linking once is faster.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and start the real program on real files"
)]

mod main {
    #[cfg(feature = "acp")]
    mod acp;
    mod agent_conversation;
    mod agent_faults;
    mod agent_fixture;
    mod agent_hook_events;
    mod agent_kills;
    mod agent_properties;
    mod agent_runs;
    mod agent_sessions;
    mod agent_skills;
    mod agent_sources;
    mod agent_subagents;
    mod automation;
    mod builtin_decisions;
    mod builtin_properties;
    mod calling;
    mod capability_hooks;
    mod checking;
    mod cli_fixture;
    mod config_tool;
    mod corpus;
    mod documents;
    mod examples;
    mod field_synonyms;
    mod hook_events;
    mod hook_examples;
    mod hook_fixture;
    mod hook_scripts;
    mod hook_servers;
    mod host_controls;
    mod host_updates;
    mod hostile;
    mod hostile_plugins;
    mod initialising;
    mod json_output;
    mod language_servers;
    mod logging;
    mod mcp_approvals;
    mod mcp_hooks;
    mod mcp_peers_faults;
    mod mcp_serve;
    mod mcp_servers;
    mod newcomer;
    mod plugin_sessions;
    mod plugin_sources;
    mod plugins;
    mod policy;
    mod prompt_tools;
    mod schedule_commands;
    mod sdk_checklist;
    mod session_events;
    mod settings;
    mod skill_calls;
    mod skills;
    mod spellings;
    mod state_commands;
    mod state_files;
    mod task_hooks;
    #[cfg(feature = "otel")]
    mod telemetry;
    mod terminal_cards;
    mod terminal_prompt;
    mod tmux_cards;
    mod tmux_newcomer;
    mod tmux_session;
    mod tool_search;
    mod tool_synonyms;
    mod tools;
    mod trust_bytes;
    mod trusting;
    mod typos;
    mod undoing;
    mod unknown_names;
    mod web_settings;
}
