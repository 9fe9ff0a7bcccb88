//! Hooks that settings configure: programs and servers that are told of calls.
//!
//! The format is the one that people have: `hooks.<Event>[] = { matcher?, hooks: [handler] }`, the same JSON on
//! standard input, the same environment names, the same exit codes, timeouts in seconds.
//! What differs, and is said in `docs/hooks.md`: hooks run one after the other in the order in which they are
//! written, and a hook that cannot do its work refuses the call unless it says `onFailure: continue`.
//!
//! One file for each part: [`plan`] gathers the handlers, [`matcher`] and [`condition`] say which calls they see,
//! [`input`] writes what they are told, [`output`] reads what they say, [`command`], [`http`] and [`tool`] run them, and
//! [`configured`] is the hook that the gate knows.

mod command;
mod condition;
mod configured_hook;
mod http;
mod input;
mod matcher;
mod mcp_tool;
mod output;
mod plan;

pub(crate) use mcp_tool::GateSessionCell;
pub(crate) use output::{HookOutput, PermissionBehavior, PermissionResponse};
pub(crate) use plan::{HookContext, PlannedHook, build_hooks, hook_tool_servers, plan_hooks};
