//! `toolgate mcp`: serving over MCP, and the servers behind the gate.

mod entries;
mod serve;
mod test;
mod upstreams;

pub(crate) use upstreams::{UpstreamServers, parse_server_name};

use super::context::CliContext;
use super::output::CliOutput;
use super::{CliError, CliExitCode};
use clap::Subcommand;

#[derive(Debug, clap::Args)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    command: McpCommand,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum McpCommand {
    /// Serve the tools over standard input and output, or over HTTP
    Serve(serve::McpServeArgs),
    /// Put a server behind the gate
    Add(entries::McpAddArgs),
    /// The same, from a JSON object
    AddJson(entries::McpAddJsonArgs),
    /// Take a server away
    Remove(entries::McpRemoveArgs),
    /// List the servers
    List,
    /// Show one server
    Get(entries::McpNameArgs),
    /// Connect to a server and say how it is
    Test(test::McpTestArgs),
    /// Sign in to a server that wants it, in your browser
    Login(entries::McpNameArgs),
    /// Approve a server as it is now: how it is launched, and what its tools say
    Approve(entries::McpNameArgs),
}

/// Of the commands above, the one that clients start and wait for.
#[derive(Debug, Subcommand)]
pub(crate) enum McpServeOnlyCommand {
    Serve(serve::McpServeArgs),
}

impl From<McpServeOnlyCommand> for McpArgs {
    fn from(McpServeOnlyCommand::Serve(args): McpServeOnlyCommand) -> Self {
        Self { command: McpCommand::Serve(args) }
    }
}

pub(crate) fn run(world: &CliContext, args: &McpArgs, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    match &args.command {
        McpCommand::Serve(args) => serve::run(world, args, out),
        McpCommand::Add(args) => entries::add(world, args, out),
        McpCommand::AddJson(args) => entries::add_json(world, args, out),
        McpCommand::Remove(args) => entries::remove(world, args, out),
        McpCommand::List => entries::list(world, out),
        McpCommand::Get(args) => entries::get(world, &args.name, out),
        McpCommand::Test(args) => test::run(world, args, out),
        McpCommand::Login(args) => test::login(world, &args.name, out),
        McpCommand::Approve(args) => entries::approve(world, &args.name, out),
    }
}
