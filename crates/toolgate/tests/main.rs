//! The command line as a person or a program meets it, in one binary.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and start the real program on real files"
)]

mod main {
    mod at_terminal;
    mod calling;
    mod checking;
    mod corpus;
    mod desk;
    mod documents;
    mod examples;
    mod hook_desk;
    mod hook_examples;
    mod hook_scripts;
    mod hook_servers;
    mod hostile;
    mod logging;
    mod mcp_hooks;
    mod mcp_peers_faults;
    mod mcp_serve;
    mod mcp_servers;
    mod policy;
    mod prompt_tools;
    mod settings;
    #[cfg(feature = "otel")]
    mod telemetry;
    mod tools;
    mod trust_bytes;
    mod trusting;
    mod undoing;
}
