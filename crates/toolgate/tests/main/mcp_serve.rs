//! `toolgate mcp serve` over pipes, HTTP and Unix sockets, alone and with an upstream server.

use super::cli_fixture::CliFixture;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

pub(super) fn opening() -> String {
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } });
    let open = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    format!("{open}\n{}\n", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
}

pub(super) fn request(id: u64, method: &str, params: Value) -> String {
    format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

pub(super) fn reply(out: &str, id: u64) -> Value {
    out.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|message| message["id"] == id)
        .unwrap_or_else(|| panic!("no reply to {id} in {out}"))
}

/// Sends the input and closes it after this many answers, so that the test does not depend on timing.
pub(super) fn answered(mut command: std::process::Command, input: &str, answers: usize) -> String {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let out = lines.map(Result::unwrap).filter(|line| line.contains("\"id\":")).take(answers);
    let out = out.collect::<Vec<_>>().join("\n");
    drop(stdin);
    assert!(child.wait().unwrap().success());
    out
}

#[test]
fn it_answers_and_ends_with_its_input() {
    let fixture = CliFixture::new();
    let file = fixture.write("a.txt", "hello\n");
    let input = opening()
        + &request(1, "tools/list", json!({}))
        + &request(2, "tools/call", json!({ "name": "Read", "arguments": { "file_path": file } }))
        + &request(3, "tools/call", json!({ "name": "Read", "arguments": { "file_path": "/etc/hostname" } }));
    let output = fixture.run_with_input(&["mcp", "serve", "--quiet"], &input);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(
        reply(&output.stdout, 1)["result"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .any(|tool| tool["name"] == "Read")
    );
    assert!(reply(&output.stdout, 2)["result"]["content"][0]["text"].as_str().unwrap().contains("hello"));
    assert_eq!(reply(&output.stdout, 3)["result"]["isError"], true);
    let log = fixture.run(&["log", "--json"]);
    assert_eq!(log.stdout.lines().count(), 2, "both calls are in the ledger: {}", log.stdout);
}

#[test]
fn rules_apply_to_the_tools_of_an_upstream_server() {
    let fixture = CliFixture::new();
    let file = fixture.write("a.txt", "hello\n");
    let program = env!("CARGO_BIN_EXE_toolgate");
    // It must be there for the list, however busy the machine is.
    let entry =
        json!({ "command": program, "args": ["mcp", "serve", "--quiet"], "alwaysLoad": true }).to_string();
    let added = fixture.run(&["mcp", "add-json", "inner", &entry]);
    assert_eq!(added.code, 0, "{}", added.stderr);
    let call = |tool: &str| json!({ "name": tool, "arguments": { "file_path": file } });
    let input = opening()
        + &request(1, "tools/list", json!({}))
        + &request(2, "tools/call", call("mcp__inner__Read"))
        + &request(3, "tools/call", json!({ "name": "mcp__inner__ls", "arguments": {} }));
    let args = [
        "mcp",
        "serve",
        "--quiet",
        "--no-builtin-tools",
        "--allowed-tools",
        "mcp__inner__Read",
        "--disallowed-tools",
        "mcp__inner__ls",
    ];
    let out = answered(fixture.command(&args), &input, 4);
    let names: Vec<Value> = reply(&out, 1)["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].clone())
        .collect();
    assert!(names.contains(&json!("mcp__inner__Read")), "{names:?}");
    assert!(!names.contains(&json!("Read")) && !names.contains(&json!("mcp__inner__ls")), "{names:?}");
    assert!(reply(&out, 2)["result"]["content"][0]["text"].as_str().unwrap().contains("hello"));
    assert_eq!(reply(&out, 3)["error"]["code"], -32602, "denied by a bare rule: it is not there");
}

/// Sends one HTTP request and returns the status of the response.
fn status(mut stream: impl Read + Write, headers: &[&str]) -> String {
    let body = request(
        1,
        "initialize",
        json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } }),
    );
    let mut text = "POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nConnection: close\r\n\
                    Accept: application/json, text/event-stream\r\n"
        .to_owned();
    for header in headers {
        text += &format!("{header}\r\n");
    }
    text += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(text.as_bytes()).unwrap();
    let mut first = String::new();
    BufReader::new(stream).read_line(&mut first).unwrap();
    first.split(' ').nth(1).unwrap_or_default().to_owned()
}

/// A running server, killed on drop.
struct Serving(std::process::Child);

impl Drop for Serving {
    fn drop(&mut self) {
        // Gone already is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the program and waits until it prints that it serves.
fn serving(mut command: std::process::Command) -> (Serving, Vec<String>) {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut output = Vec::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        output.push(line.unwrap());
        if output.last().unwrap().contains("serving on") {
            break;
        }
    }
    (Serving(child), output)
}

#[test]
fn a_quiet_server_still_says_where_it_is_and_what_its_token_is() {
    let fixture = CliFixture::new();
    let (_serving, output) = serving(fixture.command(&["-q", "mcp", "serve", "--http", "127.0.0.1:0"]));
    assert!(output.len() == 2 && output[0].contains("Authorization: Bearer "), "{output:?}");
    assert!(output[1].contains("serving on http://127.0.0.1:"), "{output:?}");
}

#[test]
fn an_address_that_cannot_be_served_is_named_with_the_next_step() {
    let fixture = CliFixture::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let long = format!("{}/x.sock", "d".repeat(120));
    for (option, place, hint) in [
        ("--http", address.as_str(), "choose another port"),
        ("--unix", "/nonexistent/x.sock", "create the directory of the socket first"),
        ("--unix", long.as_str(), "choose a shorter path"),
    ] {
        let output = fixture.run(&["mcp", "serve", option, place]);
        assert_eq!(output.code, 2, "{output:?}");
        assert!(output.stderr.contains("cannot listen on ") && output.stderr.contains(place), "{output:?}");
        assert!(output.stderr.contains(hint), "{output:?}");
    }
}

#[test]
fn http_requests_need_the_token_and_a_known_host_and_origin() {
    let fixture = CliFixture::new();
    let mut command =
        fixture.command(&["mcp", "serve", "--http", "127.0.0.1:0", "--allow-host", "gate.test"]);
    command.env("TOOLGATE_MCP_TOKEN", "s3cret");
    let (_serving, output) = serving(command);
    let last = output.last().unwrap();
    assert!(!output.concat().contains("s3cret"), "{output:?}");
    let address = last.split("http://").nth(1).unwrap().split('/').next().unwrap();
    let host = format!("Host: {address}");
    let token = "Authorization: Bearer s3cret";
    let own = format!("Origin: http://{address}");
    for (headers, expected) in [
        (vec![host.as_str(), token], "200"),
        (vec![host.as_str(), token, own.as_str()], "200"),
        (vec!["Host: gate.test", token], "200"),
        (vec![host.as_str()], "401"),
        (vec![host.as_str(), "Authorization: Bearer s3cre"], "401"),
        (vec!["Host: evil.test", token], "403"),
        (vec![host.as_str(), token, "Origin: https://evil.test"], "403"),
    ] {
        let stream = std::net::TcpStream::connect(address).unwrap();
        assert_eq!(status(stream, &headers), expected, "{headers:?}");
    }
}

#[test]
fn a_token_is_generated_if_none_is_configured() {
    let fixture = CliFixture::new();
    let (_serving, output) = serving(fixture.command(&["mcp", "serve", "--http", "127.0.0.1:0"]));
    let token = output.iter().find_map(|line| line.split("Bearer ").nth(1)).unwrap();
    let token = token.split('`').next().unwrap();
    assert!(token.len() >= 32, "{output:?}");
    let address = output.last().unwrap().split("http://").nth(1).unwrap().split('/').next().unwrap();
    let host = format!("Host: {address}");
    let given = format!("Authorization: Bearer {token}");
    assert_eq!(status(std::net::TcpStream::connect(address).unwrap(), &[&host, &given]), "200");
    assert_eq!(status(std::net::TcpStream::connect(address).unwrap(), &[&host]), "401");
}

#[test]
fn a_unix_socket_is_accessible_only_to_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = CliFixture::new();
    let path = fixture.beside("door");
    let (_serving, _) = serving(fixture.command(&["mcp", "serve", "--unix", path.to_str().unwrap()]));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
    assert_eq!(status(stream, &["Host: anything"]), "200");
}
