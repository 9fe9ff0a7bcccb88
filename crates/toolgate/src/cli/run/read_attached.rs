//! `--file`: files and resources that go to the model with the first prompt.
//!
//! Each is read by a call of the tool that reads such things, so rules, approvals and records hold as for the model's own.

use super::super::CliError;
use serde_json::{Value, json};
use toolgate::agent::conversation::text_block;
use toolgate::{AbsPath, CallId, Toolgate, render};

/// Something to attach.
#[derive(Debug, Clone, PartialEq, Eq)]
enum AttachedSpec {
    /// A file, or some lines of it: the first and how many.
    File { path: String, lines: Option<(u64, u64)> },
    /// A resource of an MCP server.
    Resource { server: String, uri: String },
}

impl AttachedSpec {
    /// Reads a value of `--file`.
    fn parse(text: &str) -> Result<Self, CliError> {
        let invalid = |why: &str| CliError::Usage(format!("--file `{text}`: {why}"));
        if let Some(rest) = text.strip_prefix("mcp:") {
            let parts = rest.split_once(':').filter(|(server, uri)| !server.is_empty() && !uri.is_empty());
            let (server, uri) = parts.ok_or_else(|| invalid("give mcp:SERVER:URI"))?;
            return Ok(Self::Resource { server: server.to_owned(), uri: uri.to_owned() });
        }
        let ranged = text.rsplit_once(':').and_then(|(path, range)| {
            let (first, last) = range.split_once('-')?;
            Some((path, first.parse::<u64>().ok()?, last.parse::<u64>().ok()?))
        });
        match ranged {
            Some((_, first, last)) if first == 0 || last < first => {
                Err(invalid("lines count from 1, and the first is not after the last"))
            }
            Some((path, first, last)) => {
                Ok(Self::File { path: path.to_owned(), lines: Some((first, last - first + 1)) })
            }
            None if text.is_empty() => Err(invalid("give a path")),
            None => Ok(Self::File { path: text.to_owned(), lines: None }),
        }
    }

    /// The call that reads it, in this toolset.
    fn call(&self, cwd: &AbsPath, has_tool: impl Fn(&str) -> bool) -> (&'static str, Value) {
        match self {
            Self::Resource { server, uri } => ("ReadMcpResource", json!({ "server": server, "uri": uri })),
            Self::File { path, lines } => {
                let (tool, key) =
                    if has_tool("Read") { ("Read", "file_path") } else { ("read_file", "path") };
                let path = AbsPath::new(path).unwrap_or_else(|_| cwd.join(path));
                let mut input = json!({ key: path });
                if let (Some((first, count)), Some(fields)) = (lines, input.as_object_mut()) {
                    fields.insert("offset".to_owned(), json!(first));
                    fields.insert("limit".to_owned(), json!(count));
                }
                (tool, input)
            }
        }
    }
}

/// Reads everything that is to be attached, as blocks for the model. One that cannot be read is an error: the prompt was
/// meant with it.
pub(super) async fn read_attached(toolgate: &Toolgate, specs: &[String]) -> Result<Vec<Value>, CliError> {
    let mut blocks = Vec::new();
    let cwd = toolgate.session().workspace().cwd.clone();
    for text in specs {
        let names: Vec<String> = toolgate.tools().iter().map(|tool| tool.name.to_string()).collect();
        let (tool, input) =
            AttachedSpec::parse(text)?.call(&cwd, |name| names.iter().any(|known| known == name));
        let id = toolgate_files::generate_id("attached_");
        let outcome = toolgate.call(id.clone(), tool, &input.to_string()).await;
        if let Err(refusal) = &outcome.result {
            return Err(CliError::Usage(format!("--file `{text}`: {refusal}")));
        }
        let result = render::anthropic_result(&CallId::from(id.as_str()), &outcome.result);
        blocks.push(text_block(format!("The user attached `{text}`:")));
        match result.get("content") {
            Some(Value::Array(content)) => blocks.extend(content.iter().cloned()),
            Some(Value::String(content)) => blocks.push(text_block(content.clone())),
            _ => {}
        }
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_is_a_path_some_lines_or_a_resource() {
        let file = |path: &str, lines| AttachedSpec::File { path: path.to_owned(), lines };
        for (text, wanted) in [
            ("src/main.rs", file("src/main.rs", None)),
            ("src/main.rs:3-7", file("src/main.rs", Some((3, 5)))),
            ("a:b", file("a:b", None)),
            ("a:1-x", file("a:1-x", None)),
            (
                "mcp:docs:file:///a:1-2",
                AttachedSpec::Resource { server: "docs".to_owned(), uri: "file:///a:1-2".to_owned() },
            ),
        ] {
            assert_eq!(AttachedSpec::parse(text).ok(), Some(wanted), "{text}");
        }
        for wrong in ["", "a:0-3", "a:5-4", "mcp:docs", "mcp::x", "mcp:docs:"] {
            assert!(AttachedSpec::parse(wrong).is_err(), "{wrong}");
        }
    }
}
