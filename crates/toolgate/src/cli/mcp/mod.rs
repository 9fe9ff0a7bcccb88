//! `toolgate mcp`: serves the tools over MCP, and manages the upstream MCP servers whose tools toolgate offers.

mod approve;
mod serve;
mod server_list;
mod test;
mod upstreams;

pub(crate) use upstreams::{
    UpstreamServers, find_server_problems, follow_plugin_servers, open_pins, parse_server_name,
    register_resource_tools,
};

use super::context::CliContext;
use super::output::CliOutput;
use super::{CliError, CliExitCode};
use clap::Subcommand;

/// Arguments of `toolgate mcp`.
#[derive(Debug, clap::Args)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    command: McpCommand,
}

/// The commands of `toolgate mcp`.
#[derive(Debug, Subcommand)]
enum McpCommand {
    /// Serve the tools to an MCP client, over standard input and output or over HTTP
    #[command(after_help = "The output is the protocol, so --json changes nothing.")]
    Serve(serve::McpServeArgs),
    /// Add a server whose tools toolgate offers under the same rules
    Add(server_list::McpAddArgs),
    /// Add a server given as a JSON object
    AddJson(server_list::McpAddJsonArgs),
    /// Remove a server
    Remove(server_list::McpRemoveArgs),
    /// List the servers
    List(server_list::McpListArgs),
    /// Show the configuration of one server
    Get(server_list::McpNameArgs),
    /// Connect to a server and show its tools and problems
    Test(test::McpTestArgs),
    /// Sign in to a server with your browser (OAuth)
    Login(server_list::McpNameArgs),
    /// Approve a server as it is now: its launch command, and the definitions of its tools
    ///
    /// Starts the server, prints which tools are new and how others changed, and approves what it printed.
    Approve(server_list::McpNameArgs),
}

/// Runs one of the commands.
pub(crate) fn run(
    context: &CliContext,
    args: &McpArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    match &args.command {
        McpCommand::Serve(args) => serve::run(context, args, out),
        McpCommand::Add(args) => server_list::add(context, args, out),
        McpCommand::AddJson(args) => server_list::add_json(context, args, out),
        McpCommand::Remove(args) => server_list::remove(context, args, out),
        McpCommand::List(args) => server_list::list(context, args, out),
        McpCommand::Get(args) => server_list::get(context, &args.name, out),
        McpCommand::Test(args) => test::run(context, args, out),
        McpCommand::Login(args) => test::login(context, &args.name, out),
        McpCommand::Approve(args) => approve::run(context, &args.name, out),
    }
}
