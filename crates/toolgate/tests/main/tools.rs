//! `toolgate tools`, and the laws of the tools that ship.

use super::desk::Desk;
use serde_json::Value;
use toolgate::{Toolgate, Toolset};
use toolgate_testkit::{check_tool_properties, tool_names};

#[test]
fn every_builtin_tool_keeps_the_laws() {
    let dir = tempfile::tempdir().unwrap();
    for toolset in Toolset::ALL {
        let toolgate = Toolgate::builder(dir.path()).toolset(toolset).build().unwrap();
        check_tool_properties(toolgate.gate(), toolgate.session());
        assert!(!tool_names(toolgate.gate(), toolgate.session()).is_empty());
    }
}

#[test]
fn definitions_are_the_same_bytes_run_after_run() {
    let desk = Desk::new();
    for format in ["anthropic", "openai", "gemini", "mcp", "json"] {
        let said = desk.run(&["tools", "--format", format]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert_eq!(said.out, desk.run(&["tools", "--format", format]).out);
        let value: Value = serde_json::from_str(&said.out).unwrap();
        assert!(value.to_string().contains("\"Read\""));
    }
}

#[test]
fn a_list_for_people_and_one_tool_in_full() {
    let desk = Desk::new();
    let said = desk.run(&["tools"]);
    assert!(said.out.lines().any(|line| line.starts_with("Read ")), "{}", said.out);
    let said = desk.run(&["tools", "LS"]);
    assert!(said.out.contains("toolgate call ls '"), "{}", said.out);
    assert_eq!(desk.run(&["tools", "nothing"]).code, 2);
}
