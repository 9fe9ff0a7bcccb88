//! Paths in the arguments of MCP tools.

use super::fake_workspace::{FakeWorkspace, Node, compile, word};
use serde_json::json;

#[test]
fn paths_in_mcp_arguments_are_checked() {
    let settings = json!({ "allow": ["mcp__fs"], "deny": ["Read(private/**)"], "ask": ["Edit(/conf/**)"] });
    for (call, wanted) in [
        (json!({ "path": "/ws/src/a.rs" }), "allow"),
        (json!({ "path": "/ws/.git/config" }), "ask"),
        (json!({ "files": [{ "path": "x/../.claude/settings.json" }] }), "ask"),
        (json!({ "path": "private/key" }), "deny"),
        (json!({ "path": "~/.bashrc" }), "ask"),
        (json!({ "path": "conf/a.toml" }), "ask"),
        (json!({ "text": "see https://example.com/.git/ for more" }), "allow"),
    ] {
        let world = FakeWorkspace::new("/ws");
        let (policy, _) = compile(&settings, &world);
        assert_eq!(word(&world.judge(&policy, "mcp__fs__write", &call)), wanted, "{call}");
    }
}

/// A `file:` URI is judged as the path that it names, however a server would parse it.
#[test]
fn file_uris_in_mcp_arguments_are_judged_as_the_paths_they_name() {
    let settings = json!({ "allow": ["mcp__fs"], "deny": ["Read(private/**)"], "ask": ["Edit(/conf/**)"] });
    let world = FakeWorkspace::new("/ws");
    let (policy, _) = compile(&settings, &world);
    let encode =
        |path: &str| path.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>().replace("%2F", "/");
    for (path, wanted) in [
        ("/ws/src/a.rs", "allow"),
        ("/ws/.git/config", "ask"),
        ("/ws/x/../.claude/settings.json", "ask"),
        ("/ws/private/key", "deny"),
        ("/ws/conf/a.toml", "ask"),
    ] {
        let encoded = encode(path);
        for uri in [
            path.to_owned(),
            format!("file://{path}"),
            format!("file:{path}"),
            format!("FILE://{path}"),
            format!("FiLe://localhost{path}"),
            format!("file://127.0.0.1{path}"),
            format!("file://{encoded}"),
            format!("file://{}", encoded.replace('%', "%25")),
            format!("file://{path}?a=b#c"),
            format!(" file://{path}"),
            format!("fi\nle://{path}"),
            format!("file:///{}", path.replace('/', "\\")),
        ] {
            for call in
                [json!({ "uri": uri }), json!({ "files": [{ "uri": uri }] }), json!({ "map": { &uri: 1 } })]
            {
                assert_eq!(word(&world.judge(&policy, "mcp__fs__write", &call)), wanted, "{call}");
            }
        }
    }
}

#[test]
fn symlinks_in_mcp_arguments_are_judged_by_their_targets() {
    let settings = json!({ "allow": ["mcp__fs"], "deny": ["Read(private/**)"] });
    let world = FakeWorkspace::new("/ws")
        .with("/ws/soft", Node::Link("private/key".to_owned()))
        .with("/ws/conf", Node::Link(".git/config".to_owned()))
        .with("/ws/hard", Node::Shared);
    let (policy, _) = compile(&settings, &world);
    for (name, wanted) in [("soft", "deny"), ("conf", "ask"), ("hard", "ask"), ("plain", "allow")] {
        for text in [format!("/ws/{name}"), format!("./{name}"), format!("file:///ws/{name}")] {
            let call = json!({ "path": text });
            assert_eq!(word(&world.judge(&policy, "mcp__fs__read", &call)), wanted, "{call}");
        }
    }
}
