//! Tools of MCP servers as hooks and as the one who is asked, with a real server process.

use super::desk::Desk;
use serde_json::{Value, json};

/// A server of the older era: `guard` denies whatever mentions a secret, `approve` says yes to one directory, and
/// `odd` cannot be asked.
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
            said = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                    "permissionDecisionReason": "it speaks of a secret"}} if no else {}
        else:
            yes = given["input"].get("path") == "/etc"
            said = {"behavior": "allow"} if yes else {"behavior": "deny", "message": "not there"}
        result = {"content": [{"type": "text", "text": json.dumps(said)}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

fn desk() -> (Desk, String) {
    let desk = Desk::new();
    let script = desk.beside("server.py");
    std::fs::write(&script, SERVER).unwrap();
    let servers = json!({ "mcpServers": { "t": { "command": "python3", "args": [script] } } });
    (desk, servers.to_string())
}

#[test]
fn a_tool_of_a_server_guards_as_a_hook() {
    let (desk, servers) = desk();
    desk.write("secret.txt", "x");
    desk.write("plain.txt", "y");
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
        desk.run(&args)
    };
    let servers = ["--mcp-config", servers.as_str()];
    let said = call(&handler(json!({})), "plain.txt", &servers);
    assert_eq!((said.code, said.out.trim()), (0, "y"), "{}", said.err);
    let said = call(&handler(json!({})), "secret.txt", &servers);
    assert_eq!(said.code, 3, "{}", said.err);
    assert!(said.err.contains("it speaks of a secret"), "{}", said.err);

    // A server that is not there, a tool that is not there, and one that no rule allows: the guard could not guard.
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
fn a_tool_of_a_server_is_asked_in_a_persons_place() {
    let (desk, servers) = desk();
    let call = |prompt: &str, path: &str| {
        let input = json!({ "path": path }).to_string();
        desk.run(&[
            "--mcp-config",
            &servers,
            "--allowed-tools",
            "mcp__t__approve",
            "--permission-prompt-tool",
            prompt,
            "call",
            "ls",
            &input,
        ])
    };
    let said = call("mcp__t__approve", "/etc");
    assert!(said.code == 0 && said.out.contains("passwd"), "{}{}", said.out, said.err);
    let said = call("mcp__t__approve", "/usr");
    assert!(said.code == 3 && said.err.contains("not there"), "{}", said.err);
    for (prompt, why) in [
        ("mcp__t__nothing", "is not there, so nobody could be asked"),
        ("mcp__x__approve", "is not there, so nobody could be asked"),
        ("mcp__t__odd", "wants `colour`"),
        ("nonsense", "is not there, so nobody could be asked"),
    ] {
        let said = call(prompt, "/etc");
        assert!(said.code == 2 && said.err.contains(why), "{prompt}: {} {}", said.code, said.err);
        let served =
            desk.run(&["--mcp-config", &servers, "--permission-prompt-tool", prompt, "mcp", "serve"]);
        assert!(served.code == 2 && served.err.contains(why), "{prompt}: {} {}", served.code, served.err);
    }
}
