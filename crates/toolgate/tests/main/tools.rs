//! `toolgate tools`, and the properties that every built-in tool has.

use super::cli_fixture::CliFixture;
use serde_json::Value;
use toolgate::{Toolgate, Toolset};
use toolgate_testkit::{check_source_properties, check_tool_properties, tool_names};

#[test]
fn every_builtin_tool_keeps_the_laws() {
    let dir = tempfile::tempdir().unwrap();
    for toolset in Toolset::ALL {
        let toolgate = Toolgate::builder(dir.path()).toolset(toolset).tool_group("all").build().unwrap();
        check_tool_properties(toolgate.gate(), toolgate.session());
        assert!(!tool_names(toolgate.gate(), toolgate.session()).is_empty());
    }
}

#[test]
fn definitions_are_the_same_bytes_in_every_run() {
    let fixture = CliFixture::new();
    for format in ["anthropic", "openai", "gemini", "mcp", "json"] {
        let output = fixture.run(&["tools", "--format", format]);
        assert_eq!(output.code, 0, "{}", output.stderr);
        assert_eq!(output.stdout, fixture.run(&["tools", "--format", format]).stdout);
        let value: Value = serde_json::from_str(&output.stdout).unwrap();
        assert!(value.to_string().contains("\"Read\""));
    }
}

#[test]
fn definitions_say_where_a_tool_differs_from_what_models_expect() {
    let definitions = CliFixture::new().run(&["tools", "--format", "anthropic"]).stdout;
    let definitions: Value = serde_json::from_str(&definitions).unwrap();
    for (tool, part) in [
        ("Edit", "if another program changed it since, a unique `old_string` is still replaced"),
        ("Glob", "Ignored and hidden files are included"),
        ("Glob", "absolute or relative to the working directory"),
        ("Grep", "absolute or relative to the working directory"),
    ] {
        let found =
            definitions.as_array().unwrap().iter().find(|definition| definition["name"] == tool).unwrap();
        assert!(found.to_string().contains(part), "{part} is not in {found}");
    }
}

#[test]
fn tools_lists_all_tools_or_describes_one() {
    let fixture = CliFixture::new();
    let output = fixture.run(&["tools"]);
    assert!(output.stdout.lines().any(|line| line.starts_with("Read ")), "{}", output.stdout);
    let output = fixture.run(&["tools", "LS"]);
    assert!(output.stdout.contains("toolgate call ls '"), "{}", output.stdout);
    assert_eq!(fixture.run(&["tools", "nothing"]).code, 2);
}

#[tokio::test]
async fn the_built_in_tools_have_the_properties_of_a_source() {
    for toolset in Toolset::ALL {
        check_source_properties(|| std::sync::Arc::new(toolgate_tools::BuiltinTools::new(toolset))).await;
    }
}
