//! The server that the official conformance suite is run against.
//!
//! It is our real protocol layer with the fixtures that the suite calls by name.
//! Every fixture is a tool of a gate, and every call of it crosses that gate.
//!
//! Usage: `conformance_server ADDRESS`, such as `127.0.0.1:3000`.

#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a program for tests says where it is, and fails loudly"
)]

mod jobs;
mod offers;
mod rounds;
mod talk;
mod tools;

use std::net::SocketAddr;
use std::sync::Arc;
use toolgate_gate::{Gate, GateParts, Session};
use toolgate_mcp::{ClientApprover, GateServer, HttpListener, HttpOptions, ServerDescription, serve_http};
use toolgate_policy::RawPolicy;
use toolgate_proto::{AbsPath, Mode, Principal, Workspace};

#[tokio::main]
async fn main() {
    let address: SocketAddr = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:3000".to_owned())
        .parse()
        .expect("give an address such as 127.0.0.1:3000");
    let gate = Arc::new(Gate::new(
        GateParts::default()
            .with_policy(RawPolicy::default().with_mode(Mode::Bypass))
            .with_approvers(vec![Arc::new(ClientApprover)]),
    ));
    tools::register(&gate);
    talk::register(&gate);
    rounds::register(&gate);
    jobs::register(&gate);
    let root = AbsPath::root();
    let workspace = Workspace::new(root);
    let principal = Principal::new("mcp");
    let session = Session::new("conformance".into(), principal, workspace);
    let about = ServerDescription::new("toolgate-conformance", env!("CARGO_PKG_VERSION"));
    let server = GateServer::new(gate, session, Arc::new(offers::Fixtures), about).expect("a server");
    let listener = toolgate_net::listen_tcp(address).await.expect("the address is free");
    println!("serving on http://{}/mcp", listener.local_addr().expect("an address"));
    serve_http(server, HttpListener::Tcp(listener), HttpOptions::default()).await.expect("serving");
}
