//! Tools of a real MCP server as hooks and as the prompt tool.

use super::cli_fixture::CliFixture;
use serde_json::{Value, json};

/// A server with an older protocol version: `guard` denies inputs that contain `secret`, `approve` allows one
/// directory, and the input schema of `odd` does not fit a question.
const SERVER: &str = r#"
import json, sys
def tool(name, fields):
    return {"name": name, "description": name, "inputSchema": {"type": "object",
            "properties": {field: {} for field in fields}, "required": fields}}
TOOLS = [tool("guard", ["what"]), tool("approve", ["tool_name", "input", "tool_use_id"]), tool("odd", ["colour"])]
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "t", "version": "1"}}
    elif asked["method"] == "tools/list":
        result = {"tools": TOOLS}
    elif asked["method"] == "tools/call":
        given = asked["params"]["arguments"]
        if asked["params"]["name"] == "guard":
            no = "secret" in json.dumps(given)
            output = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                    "permissionDecisionReason": "it speaks of a secret"}} if no else {}
        else:
            yes = given["input"].get("path") == "/etc"
            output = {"behavior": "allow"} if yes else {"behavior": "deny", "message": "not there"}
        result = {"content": [{"type": "text", "text": json.dumps(output)}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

fn fixture() -> (CliFixture, String) {
    let fixture = CliFixture::new();
    let script = fixture.beside("server.py");
    std::fs::write(&script, SERVER).unwrap();
    let servers = json!({ "mcpServers": { "t": { "command": "python3", "args": [script] } } });
    (fixture, servers.to_string())
}

#[test]
fn an_mcp_tool_can_be_a_hook() {
    let (fixture, servers) = fixture();
    fixture.write("secret.txt", "x");
    fixture.write("plain.txt", "y");
    let handler = |more: Value| {
        let mut handler = json!({ "type": "mcp_tool", "server": "t", "tool": "guard",
            "input": { "what": "${tool_input.path}" } });
        handler.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "permissions": { "allow": ["mcp__t__guard"] },
            "hooks": { "PreToolUse": [{ "matcher": "*", "hooks": [handler] }] } })
        .to_string()
    };
    let call = |settings: &str, path: &str, more: &[&str]| {
        let input = json!({ "path": path }).to_string();
        let mut args = vec!["--toolset", "plain", "--settings", settings, "call", "read_file", &input];
        args.extend(more);
        fixture.run(&args)
    };
    let servers = ["--mcp-config", servers.as_str()];
    let output = call(&handler(json!({})), "plain.txt", &servers);
    assert_eq!((output.code, output.stdout.trim()), (0, "y"), "{}", output.stderr);
    let output = call(&handler(json!({})), "secret.txt", &servers);
    assert_eq!(output.code, 3, "{}", output.stderr);
    assert!(output.stderr.contains("it speaks of a secret"), "{}", output.stderr);

    // A missing server, a missing tool, and a tool that no rule allows: the hook fails, so the call is refused.
    assert_eq!(call(&handler(json!({})), "plain.txt", &[]).code, 3);
    assert_eq!(call(&handler(json!({ "tool": "none" })), "plain.txt", &servers).code, 3);
    assert_eq!(
        call(&handler(json!({ "tool": "none", "onFailure": "continue" })), "plain.txt", &servers).code,
        0
    );
    let forbidden = handler(json!({})).replace("mcp__t__guard", "mcp__t__other");
    assert_eq!(call(&forbidden, "plain.txt", &servers).code, 3);
}

#[test]
fn an_mcp_tool_can_answer_permission_requests() {
    let (fixture, servers) = fixture();
    let call = |prompt: &str, path: &str| {
        let input = json!({ "path": path }).to_string();
        fixture.run(&["--mcp-config", &servers, "--permission-prompt-tool", prompt, "call", "ls", &input])
    };
    let output = call("mcp__t__approve", "/etc");
    assert!(output.code == 0 && output.stdout.contains("passwd"), "{}{}", output.stdout, output.stderr);
    // To name the tool is to allow the questions, and nothing else.
    let asked = json!({ "tool_name": "ls", "input": {}, "tool_use_id": "c" }).to_string();
    let direct = fixture.run(&["--mcp-config", &servers, "call", "mcp__t__approve", &asked]);
    assert!(direct.code != 0 && direct.stderr.contains("TG-502"), "{} {}", direct.code, direct.stderr);
    let denied = fixture.run(&[
        "--mcp-config",
        &servers,
        "--disallowed-tools",
        "mcp__t__approve",
        "--permission-prompt-tool",
        "mcp__t__approve",
        "call",
        "ls",
        r#"{"path":"/etc"}"#,
    ]);
    assert_ne!(denied.code, 0, "{}", denied.stdout);
    let output = call("mcp__t__approve", "/usr");
    assert!(output.code == 3 && output.stderr.contains("not there"), "{}", output.stderr);
    for (prompt, why) in [
        ("mcp__t__nothing", "does not exist, so no question could be answered"),
        ("mcp__x__approve", "does not exist, so no question could be answered"),
        ("mcp__t__odd", "requires the input field `colour`"),
        ("nonsense", "does not exist, so no question could be answered"),
    ] {
        let output = call(prompt, "/etc");
        assert!(
            output.code == 2 && output.stderr.contains(why),
            "{prompt}: {} {}",
            output.code,
            output.stderr
        );
        let served =
            fixture.run(&["--mcp-config", &servers, "--permission-prompt-tool", prompt, "mcp", "serve"]);
        assert!(
            served.code == 2 && served.stderr.contains(why),
            "{prompt}: {} {}",
            served.code,
            served.stderr
        );
    }
}
