//! What a program that embeds the library must not need: our inner crates, and the dependencies of the command line.

use crate::cargo::cargo_output;
use anyhow::Result;

/// Crates that only the command line uses. The library without default features must reach none of them.
const CLI_CRATES: &[&str] = &["anstream", "clap", "clap_builder", "clap_complete", "crossterm"];

/// Crates that examples may use beside `toolgate`: `tokio`, because the program that embeds the library chooses and starts
/// the runtime.
const ALLOWED_IN_EXAMPLES: &[&str] = &["std", "tokio", "toolgate"];

/// The page whose code blocks are examples too.
const EXAMPLE_PAGE: &str = "docs/embedding.md";

/// Checks every source file of the library, and what it depends on. `manifest` is the text of its `Cargo.toml`.
/// `page` is the text of [`EXAMPLE_PAGE`].
pub(super) fn check_library_boundary(
    sources: &[(String, String)],
    page: &str,
    manifest: &str,
    broken: &mut Vec<String>,
) -> Result<()> {
    let dependencies = super::dependencies::dependency_names(manifest);
    for (name, text) in sources {
        check_imports(name, text, &dependencies, broken);
    }
    check_imports(EXAMPLE_PAGE, page, &dependencies, broken);
    check_dependencies(broken)
}

/// Examples and doc tests of the library import `toolgate`, as a program that embeds it does. `dependencies` are the
/// crates that the manifest of the library names.
fn check_imports(name: &str, text: &str, dependencies: &[&str], broken: &mut Vec<String>) {
    let is_example = name.starts_with("crates/toolgate/examples/") || name == EXAMPLE_PAGE;
    if !is_example && !name.starts_with("crates/toolgate/src/") {
        return;
    }
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        let is_doc = trimmed.starts_with("///") || trimmed.starts_with("//!");
        // Rustdoc hides lines that start so: a reader does not copy them.
        let is_hidden = name == EXAMPLE_PAGE && line.starts_with("# ");
        if is_hidden || !is_doc && !is_example {
            continue;
        }
        let foreign = dependencies.iter().map(|dependency| dependency.replace('-', "_")).find(|dependency| {
            let is_ours = dependency.starts_with("toolgate_");
            let is_checked = is_ours || (is_example && !ALLOWED_IN_EXAMPLES.contains(&dependency.as_str()));
            is_checked && names_crate(line, dependency)
        });
        if let Some(foreign) = foreign {
            broken.push(format!("{name}:{}: use `toolgate`, not `{foreign}`", index + 1));
        }
    }
}

/// Whether a line has a path that starts with this crate.
fn names_crate(line: &str, dependency: &str) -> bool {
    line.match_indices(dependency).any(|(at, _)| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        let after = line.get(at + dependency.len()..).unwrap_or_default();
        let is_root = !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '.'));
        is_root
            && (after.starts_with("::") || (line.trim_start().starts_with("use ") && after.starts_with(';')))
    })
}

/// The library without default features reaches no crate of the command line.
fn check_dependencies(broken: &mut Vec<String>) -> Result<()> {
    let tree = cargo_output(&[
        "tree",
        "--package",
        "toolgate",
        "--no-default-features",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--locked",
    ])?;
    let mut reached: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    reached.sort_unstable();
    reached.dedup();
    for name in CLI_CRATES.iter().filter(|name| reached.contains(name)) {
        broken.push(format!("toolgate without default features reaches `{name}`"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_of_inner_crates_are_found() {
        let check = |name: &str, text: &str| {
            let mut broken = Vec::new();
            check_imports(name, text, &["toolgate-proto", "anyhow", "tokio", "serde_json"], &mut broken);
            broken.len()
        };
        let example = "crates/toolgate/examples/a.rs";
        assert_eq!(check(example, "use toolgate_proto::Effect;\nuse tokio::time;\nuse toolgate::Effect;"), 1);
        assert_eq!(check(example, "fn main() -> anyhow::Result<()> {\n    let x = serde_json::json!(1);"), 2);
        assert_eq!(
            check(EXAMPLE_PAGE, "use toolgate::serde_json::json;\nlet x = json!(1);\nuse serde_json::json;"),
            1
        );
        assert_eq!(
            check("crates/toolgate/src/lib.rs", "use toolgate_proto::A;\n//! use toolgate_proto::A;"),
            1
        );
        assert_eq!(check("crates/gate/src/lib.rs", "//! use toolgate_proto::A;"), 0);
    }
}
