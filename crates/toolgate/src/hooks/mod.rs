//! Hooks that settings configure: programs, HTTP servers and MCP tools that run before and after calls.
//!
//! The format is that of Claude Code: `hooks.<Event>[] = { matcher?, hooks: [handler] }`, the same JSON on standard
//! input, environment variables and exit codes, timeouts in seconds.
//! Two things differ (`docs/hooks.md`): hooks run one after the other in the order of the file, because a later hook
//! must see the input that an earlier one rewrote; and a hook that fails refuses the call unless it has
//! `onFailure: continue`, because a guard that crashed has not approved anything.
//!
//! [`plan`] collects the handlers, [`matcher`] and [`condition`] select the calls ([`matcher_spelling`],
//! [`mcp_reference`] and [`intended_event`] find hooks that would select none), [`input`] builds the JSON for a
//! handler, [`command`], [`http`], [`mcp_tool`] and [`callback`] run it, [`output`] parses its answer, and [`configured_hook`]
//! implements the trait of the gate. [`capability_hooks`] are those of skills and agents, [`mod@build_agent_hooks`] makes
//! those around calls.

mod build_agent_hooks;
pub(crate) mod callback;
mod capability_hooks;
mod command;
mod command_agent_hook;
mod condition;
mod configured_hook;
mod http;
mod input;
mod intended_event;
mod matcher;
mod matcher_spelling;
mod mcp_reference;
mod mcp_tool;
mod output;
mod plan;
mod split_pieces;

pub(crate) use build_agent_hooks::build_agent_hooks;
pub(crate) use capability_hooks::{BuiltHooks, CapabilityHooks, HookOwner, HookTrustCheck};
pub(crate) use intended_event::{
    find_group_problem, find_intended_event, find_screening_event, known_events,
};
pub(crate) use matcher_spelling::{find_matcher_problem, matches_no_known_tool};
pub(crate) use mcp_tool::GateSessionCell;
pub(crate) use output::{HookOutput, PermissionBehavior, PermissionResponse};
pub(crate) use plan::{
    HookContext, PlannedHook, build_hooks, describe_unraised, find_unusable_hooks, hook_tool_servers,
    plan_hooks, refuses_after_lapse,
};
