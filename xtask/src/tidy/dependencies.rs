//! Rules about dependencies: which crates may use which, purity, unused dependencies, licences.

use super::{list_files, list_rust_files};
use crate::cargo::cargo_output;
use crate::read;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Which of our crates may use which (the diagram in docs/architecture.md).
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("toolgate-proto", &[]),
    ("toolgate-shell-syntax", &["toolgate-proto"]),
    ("toolgate-policy", &["toolgate-proto", "toolgate-shell-syntax"]),
    ("toolgate-skills", &["toolgate-proto"]),
    ("toolgate-files", &["toolgate-proto"]),
    ("toolgate-search", &["toolgate-proto", "toolgate-files"]),
    ("toolgate-process", &["toolgate-proto", "toolgate-files"]),
    ("toolgate-net", &["toolgate-proto"]),
    ("toolgate-state", &["toolgate-proto", "toolgate-files"]),
    ("toolgate-gate", &["toolgate-proto", "toolgate-policy", "toolgate-files", "toolgate-process"]),
    (
        "toolgate-tools",
        &[
            "toolgate-proto",
            "toolgate-files",
            "toolgate-process",
            "toolgate-search",
            "toolgate-state",
            "toolgate-net",
            "toolgate-gate",
        ],
    ),
    (
        "toolgate-mcp",
        &["toolgate-proto", "toolgate-files", "toolgate-process", "toolgate-net", "toolgate-gate"],
    ),
    ("toolgate-lsp", &["toolgate-proto", "toolgate-files", "toolgate-process", "toolgate-gate"]),
    (
        "toolgate-agent",
        &["toolgate-proto", "toolgate-files", "toolgate-process", "toolgate-net", "toolgate-gate"],
    ),
    (
        "toolgate-host",
        &["toolgate-proto", "toolgate-files", "toolgate-process", "toolgate-gate", "toolgate-agent"],
    ),
    (
        "toolgate",
        &[
            "toolgate-proto",
            "toolgate-shell-syntax",
            "toolgate-policy",
            "toolgate-files",
            "toolgate-process",
            "toolgate-net",
            "toolgate-state",
            "toolgate-gate",
            "toolgate-skills",
            "toolgate-tools",
            "toolgate-mcp",
            "toolgate-lsp",
            "toolgate-agent",
            "toolgate-host",
        ],
    ),
    ("toolgate-testkit", &["toolgate-proto", "toolgate-policy", "toolgate-files", "toolgate-gate"]),
    ("xtask", &["toolgate-proto"]),
];

/// Crates that a pure crate may not depend on: async runtimes, and whatever does I/O.
const IMPURE_CRATES: &[&str] =
    &["tokio", "async-std", "mio", "rustix", "libc", "reqwest", "hyper", "socket2", "notify"];

/// Licences that are compatible with ours.
const ALLOWED_LICENCES: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-1-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "Unlicense",
    "BSL-1.0",
    "MIT-0",
    "CC0-1.0",
    "0BSD",
    "CDLA-Permissive-2.0",
    "MPL-2.0",
];

/// Checks every rule about dependencies.
pub(super) fn check_dependencies(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    let metadata = load_metadata()?;
    check_crate_dependencies(&metadata, broken);
    check_code_map(&metadata, &read(&root.join("docs/architecture.md"))?, broken);
    check_purity(&metadata, broken)?;
    check_licences(&metadata, broken);
    check_unused_dependencies(root, broken)
}

/// The dependency graph, as cargo resolves it.
fn load_metadata() -> Result<Value> {
    let text = cargo_output(&["metadata", "--format-version", "1", "--locked"])?;
    serde_json::from_str(&text).context("cargo metadata is not JSON")
}

/// The packages of the graph, ours and others.
fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata.get("packages").and_then(Value::as_array).into_iter().flatten()
}

/// A field of a JSON object as text; empty if it has none.
fn text_field<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// I6: our crates use each other as in the diagram.
fn check_crate_dependencies(metadata: &Value, broken: &mut Vec<String>) {
    let ours: BTreeMap<&str, &[&str]> = ALLOWED_DEPENDENCIES.iter().copied().collect();
    for package in packages(metadata).filter(|package| package.get("source").is_none_or(Value::is_null)) {
        let name = text_field(package, "name");
        let Some(allowed) = ours.get(name) else {
            broken
                .push(format!("{name}: a crate that is not in the diagram (xtask/src/tidy/dependencies.rs)"));
            continue;
        };
        let dependencies = package.get("dependencies").and_then(Value::as_array).into_iter().flatten();
        for dependency in dependencies.filter(|d| d.get("kind").is_none_or(Value::is_null)) {
            let to = text_field(dependency, "name");
            if ours.contains_key(to) && !allowed.contains(&to) {
                broken.push(format!("{name} may not use {to} (I6)"));
            }
        }
    }
}

/// Every crate of the workspace has a row in the code map.
fn check_code_map(metadata: &Value, architecture: &str, broken: &mut Vec<String>) {
    for package in packages(metadata).filter(|package| package.get("source").is_none_or(Value::is_null)) {
        let name = text_field(package, "name");
        let short = name.strip_prefix("toolgate-").unwrap_or(name);
        let row = if name == "xtask" { "| `xtask` |".to_owned() } else { format!("| `crates/{short}` |") };
        if !architecture.contains(&row) {
            broken.push(format!("docs/architecture.md: the code map has no row for `{name}`"));
        }
    }
}

/// I3: pure crates depend on no async runtime and on nothing that does I/O, not even indirectly.
fn check_purity(metadata: &Value, broken: &mut Vec<String>) -> Result<()> {
    let nodes: BTreeMap<&str, &Value> = metadata
        .pointer("/resolve/nodes")
        .and_then(Value::as_array)
        .context("cargo metadata has no graph")?
        .iter()
        .map(|node| (text_field(node, "id"), node))
        .collect();
    let names: BTreeMap<&str, &str> =
        packages(metadata).map(|package| (text_field(package, "id"), text_field(package, "name"))).collect();
    for pure in ["toolgate-proto", "toolgate-shell-syntax", "toolgate-policy", "toolgate-skills"] {
        let start = names.iter().find(|(_, name)| **name == pure).map(|(id, _)| *id);
        let mut ahead: Vec<&str> = start.into_iter().collect();
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        while let Some(id) = ahead.pop() {
            if !seen.insert(id) {
                continue;
            }
            let name = names.get(id).copied().unwrap_or_default();
            if IMPURE_CRATES.contains(&name) {
                broken.push(format!("{pure} depends on {name} (I3)"));
            }
            let deps = nodes.get(id).and_then(|node| node.get("deps")).and_then(Value::as_array);
            for dep in deps.into_iter().flatten() {
                let kinds = dep.get("dep_kinds").and_then(Value::as_array);
                // Only linked dependencies count: not those of tests, build scripts and other platforms.
                let linked = kinds.into_iter().flatten().any(|kind| {
                    kind.get("kind").is_none_or(Value::is_null)
                        && kind.get("target").is_none_or(Value::is_null)
                });
                if linked {
                    ahead.push(text_field(dep, "pkg"));
                }
            }
        }
    }
    Ok(())
}

/// A dependency that no source file of its crate uses is not needed, nor is one of the workspace that no crate uses.
fn check_unused_dependencies(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    let mut used_by_crates = String::new();
    for manifest in list_files(root)?.into_iter().filter(|path| path.ends_with("Cargo.toml")) {
        let dir = manifest.parent().unwrap_or(root);
        let text = read(&manifest)?;
        if dir == root || dir.ends_with("fuzz") {
            continue;
        }
        let mut sources = String::new();
        for path in list_rust_files(dir)? {
            sources.push_str(&read(&path)?);
        }
        for name in dependency_names(&text) {
            let in_code = name.replace('-', "_");
            // A feature may enable a dependency for another one.
            let by_feature =
                text.contains(&format!("\"dep:{name}\"")) || text.contains(&format!("\"{name}/"));
            if !sources.contains(&format!("{in_code}::"))
                && !sources.contains(&format!("use {in_code}"))
                && !by_feature
            {
                broken.push(format!("{}: `{name}` is not used", manifest.display()));
            }
        }
        used_by_crates.push_str(&text);
    }
    for name in dependency_names(&read(&root.join("Cargo.toml"))?) {
        if !dependency_names(&used_by_crates).contains(&name) {
            broken.push(format!("Cargo.toml: no crate uses `{name}`"));
        }
    }
    Ok(())
}

/// The names in the dependency tables of a manifest.
pub(super) fn dependency_names(manifest: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut is_table = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_table = line.trim_end().ends_with("dependencies]");
        } else if is_table && line.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            names.extend(line.split(['.', ' ', '=']).next());
        }
    }
    names
}

/// The licences of all dependencies, as in `deny.toml`, without a tool to install.
fn check_licences(metadata: &Value, broken: &mut Vec<String>) {
    for package in packages(metadata) {
        let licence = text_field(package, "license");
        let fits = licence.replace('/', " OR ").split(" OR ").any(|choice| {
            choice.split(" AND ").all(|part| {
                ALLOWED_LICENCES.contains(&part.trim().trim_matches(|c| c == '(' || c == ')').trim())
            })
        });
        if !fits {
            broken.push(format!("{}: licence `{licence}` is not in the list", text_field(package, "name")));
        }
    }
}
