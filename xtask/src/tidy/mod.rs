//! Rules of this repository that no compiler checks, run as a test.

mod library_boundary;
mod search_hits;
mod source_figures;
mod source_names;

use crate::{docs, read, run};
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Which of our crates may use which (the drawing in docs/architecture.md).
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("toolgate-proto", &[]),
    ("toolgate-shell-syntax", &["toolgate-proto"]),
    ("toolgate-policy", &["toolgate-proto", "toolgate-shell-syntax"]),
    ("toolgate-files", &["toolgate-proto"]),
    ("toolgate-search", &["toolgate-proto", "toolgate-files"]),
    ("toolgate-process", &["toolgate-proto", "toolgate-files"]),
    ("toolgate-net", &["toolgate-proto"]),
    ("toolgate-gate", &["toolgate-proto", "toolgate-policy", "toolgate-files", "toolgate-process"]),
    (
        "toolgate-tools",
        &["toolgate-proto", "toolgate-files", "toolgate-process", "toolgate-search", "toolgate-gate"],
    ),
    (
        "toolgate-mcp",
        &["toolgate-proto", "toolgate-files", "toolgate-process", "toolgate-net", "toolgate-gate"],
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
            "toolgate-gate",
            "toolgate-tools",
            "toolgate-mcp",
        ],
    ),
    ("toolgate-testkit", &["toolgate-proto", "toolgate-policy", "toolgate-files", "toolgate-gate"]),
    ("xtask", &["toolgate-proto"]),
];

/// What a pure crate may not pull in: runtimes and hands.
const IMPURE_CRATES: &[&str] =
    &["tokio", "async-std", "mio", "rustix", "libc", "reqwest", "hyper", "socket2", "notify"];

/// Licences that fit ours.
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

/// Lists every broken rule.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    let mut sources: Vec<(String, String)> = Vec::new();
    for path in list_rust_files(root)? {
        sources.push((path.strip_prefix(root).unwrap_or(&path).display().to_string(), read(&path)?));
    }
    let manifest = read(&root.join("crates/toolgate/Cargo.toml"))?;
    library_boundary::check_library_boundary(&sources, &manifest, &mut broken)?;
    for (name, text) in &sources {
        check_file_size(name, text, &mut broken);
        check_forbidden_words(name, text, &mut broken);
        check_restricted_calls(name, text, &mut broken);
        source_names::check_words(name, text, &mut broken);
    }
    sources.retain(|(name, _)| name.contains("/src/") && !name.starts_with("fuzz/"));
    let mut types = Vec::new();
    let mut figures = source_figures::SourceFigures::default();
    for (name, text) in &sources {
        types.extend(source_names::type_definitions(name, text));
        source_names::check_module_name(name, text, &mut broken);
        source_names::check_constants(name, text, &mut broken);
        figures.add(name, text);
    }
    source_names::check_type_names(&types, &mut broken);
    figures.check(&mut broken);
    search_hits::check_search_hits(&sources, &mut broken);
    check_file_names(root, &mut broken)?;
    check_crate_roots(root, &mut broken)?;
    check_test_modules(root, &mut broken)?;
    let metadata = load_metadata()?;
    check_crate_dependencies(&metadata, &mut broken);
    check_purity(&metadata, &mut broken)?;
    check_licences(&metadata, &mut broken);
    check_unused_dependencies(root, &mut broken)?;
    check_documents(root, &mut broken)?;
    Ok(broken)
}

/// I7: no file over 600 lines, tests apart.
fn check_file_size(name: &str, text: &str, broken: &mut Vec<String>) {
    let code = text.lines().take_while(|line| *line != "#[cfg(test)]").count();
    if !name.contains("/tests/") && code > 600 {
        broken.push(format!("{name}: {code} lines; no file may have more than 600 (I7)"));
    }
}

/// The project speaks of itself only.
fn check_forbidden_words(name: &str, text: &str, broken: &mut Vec<String>) {
    // Spelled in two halves, so that this file does not break its own rule.
    for (a, b) in [("todo", "!("), ("#[igno", "re]"), ("/wor", "k/"), ("FIX", "ME"), ("#[all", "ow(")] {
        let word = format!("{a}{b}");
        for (index, line) in text.lines().enumerate() {
            if line.contains(&word) {
                broken.push(format!("{name}:{}: `{word}` does not belong here", index + 1));
            }
        }
    }
}

/// I1, I10: doors that have exactly one caller.
fn check_restricted_calls(name: &str, text: &str, broken: &mut Vec<String>) {
    let doors: &[(&str, &[&str])] = &[
        ("Permit::issue(", &["crates/gate/src/stage/settle.rs"]),
        ("Cleared::new(", &["crates/gate/src/stage/guard.rs"]),
        // The second is a test that gets its arguments from its parent process.
        ("env::var", &["crates/process/src/ambient.rs", "crates/files/src/fault_tests.rs"]),
        ("env::current_dir", &["crates/process/src/ambient.rs"]),
        ("AmbientEnvironment::read(", &["crates/toolgate/src/cli/mod.rs"]),
        // File handles without a grant: only the seccomp notification handler, which checks paths itself.
        ("unchecked::", &["crates/process/src/sandbox/seccomp_notify/syscall_path.rs"]),
    ];
    if name.starts_with("xtask/") || name.contains("/tests/") || name.contains("/benches/") {
        return;
    }
    for (door, callers) in doors {
        for (index, line) in text.lines().take_while(|line| *line != "#[cfg(test)]").enumerate() {
            let line = line.trim_start();
            if line.contains(door) && !line.starts_with("//") && !callers.contains(&name) {
                broken.push(format!("{name}:{}: only {} may call {door}…)", index + 1, callers.join(", ")));
            }
        }
    }
}

/// I7: every source file and its folders are named after a noun.
fn check_file_names(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    for path in list_rust_files(root)? {
        for part in path.strip_prefix(root).unwrap_or(&path).components() {
            let part = part.as_os_str().to_string_lossy();
            let stem = part.split('.').next().unwrap_or_default();
            if matches!(stem, "util" | "utils" | "common" | "helper" | "helpers" | "misc" | "manager") {
                broken.push(format!("{}: name the noun instead of `{stem}` (I7)", path.display()));
            }
        }
    }
    Ok(())
}

/// Every crate takes the one lint table, forbids unsafe code (os apart), and opens with an essay.
fn check_crate_roots(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    for manifest in list_files(root)?.into_iter().filter(|path| path.ends_with("Cargo.toml")) {
        let dir = manifest.parent().unwrap_or(root);
        if dir == root || dir.ends_with("fuzz") {
            continue;
        }
        let name = dir.strip_prefix(root).unwrap_or(dir).display().to_string();
        if !read(&manifest)?.contains("[lints]\nworkspace = true") {
            broken.push(format!("{name}/Cargo.toml: take the workspace's lints"));
        }
        for file in ["src/lib.rs", "src/main.rs"] {
            let path = dir.join(file);
            if !path.exists() {
                continue;
            }
            let text = read(&path)?;
            if name != "crates/process" && !text.contains("#![forbid(unsafe_code)]") {
                broken.push(format!("{name}/{file}: forbid unsafe code"));
            }
            if !text.starts_with("//!") {
                broken.push(format!("{name}/{file}: open with what the crate is for"));
            }
            let strict = matches!(name.as_str(), "crates/shell-syntax" | "crates/policy" | "crates/gate");
            if strict && !text.contains("#![deny(clippy::wildcard_enum_match_arm)]") {
                broken.push(format!("{name}/{file}: deny wildcard arms (I4)"));
            }
        }
    }
    Ok(())
}

/// A test file that no `mod` line names would never run.
fn check_test_modules(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    for path in list_rust_files(root)? {
        let Some(dir) = path.parent() else { continue };
        let Some(above) = dir.parent() else { continue };
        if !above.ends_with("tests") {
            continue;
        }
        let runner =
            if above.join("main.rs").exists() { above.join("main.rs") } else { dir.with_extension("rs") };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if runner.exists() && stem != "mod" && !read(&runner)?.contains(&format!("mod {stem};")) {
            broken.push(format!("{}: no `mod {stem};` in {}", path.display(), runner.display()));
        }
    }
    Ok(())
}

fn load_metadata() -> Result<Value> {
    let text = run::cargo_output(&["metadata", "--format-version", "1", "--locked"])?;
    serde_json::from_str(&text).context("cargo metadata is not JSON")
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata.get("packages").and_then(Value::as_array).into_iter().flatten()
}

fn text_field<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// I6: our crates use each other as drawn.
fn check_crate_dependencies(metadata: &Value, broken: &mut Vec<String>) {
    let ours: BTreeMap<&str, &[&str]> = ALLOWED_DEPENDENCIES.iter().copied().collect();
    for package in packages(metadata).filter(|package| package.get("source").is_none_or(Value::is_null)) {
        let name = text_field(package, "name");
        let Some(allowed) = ours.get(name) else {
            broken.push(format!("{name}: a crate that is not in the drawing (xtask/src/tidy.rs)"));
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

/// I3: policy and proto reach no runtime and no hands, not even through others.
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
    for pure in ["toolgate-proto", "toolgate-shell-syntax", "toolgate-policy"] {
        let start = names.iter().find(|(_, name)| **name == pure).map(|(id, _)| *id);
        let mut ahead: Vec<&str> = start.into_iter().collect();
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        while let Some(id) = ahead.pop() {
            if !seen.insert(id) {
                continue;
            }
            let name = names.get(id).copied().unwrap_or_default();
            if IMPURE_CRATES.contains(&name) {
                broken.push(format!("{pure} reaches {name} (I3)"));
            }
            let deps = nodes.get(id).and_then(|node| node.get("deps")).and_then(Value::as_array);
            for dep in deps.into_iter().flatten() {
                let kinds = dep.get("dep_kinds").and_then(Value::as_array);
                // Only what is linked counts: not tests, not build scripts, not other platforms.
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

/// A dependency that no source file of its crate names is not needed; one that no crate names neither.
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
            // A feature may turn on what only another dependency uses.
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
fn dependency_names(manifest: &str) -> Vec<&str> {
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

/// The licence gate: what `deny.toml` says, without a tool to install.
fn check_licences(metadata: &Value, broken: &mut Vec<String>) {
    for package in packages(metadata) {
        let licence = text_field(package, "license");
        let fits = licence.replace('/', " OR ").split(" OR ").any(|choice| {
            choice.split(" AND ").all(|part| {
                ALLOWED_LICENCES.contains(&part.trim().trim_matches(|c| c == '(' || c == ')').trim())
            })
        });
        if !fits {
            broken.push(format!("{}: licence `{licence}` is not on the list", text_field(package, "name")));
        }
    }
}

/// Documents made from code are fresh, and promises name tests that exist.
fn check_documents(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    if read(&root.join("docs/errors.md")).unwrap_or_default() != docs::render_errors() {
        broken.push("docs/errors.md is stale: run `cargo xtask docs`".to_owned());
    }
    let mut known = String::new();
    for path in list_rust_files(root)? {
        known.push_str(&read(&path)?);
    }
    for document in ["docs/specification.md", "docs/architecture.md", "docs/threats.md"] {
        let text = read(&root.join(document)).unwrap_or_default();
        for name in text.split('`').skip(1).step_by(2).filter_map(|code| code.strip_prefix("test ")) {
            if !known.contains(&format!("fn {name}(")) {
                broken.push(format!("{document} names the test `{name}`, which does not exist"));
            }
        }
    }
    Ok(())
}

fn list_rust_files(root: &Path) -> Result<Vec<PathBuf>> {
    Ok(list_files(root)?.into_iter().filter(|path| path.extension().is_some_and(|ext| ext == "rs")).collect())
}

/// Every file of the repository, build results and hidden folders apart.
fn list_files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut ahead = vec![root.to_path_buf()];
    while let Some(dir) = ahead.pop() {
        for entry in std::fs::read_dir(&dir)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') || name == "target" || name == "node_modules" {
                continue;
            }
            if entry.file_type()?.is_dir() {
                ahead.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_repository_is_tidy() {
        let broken = super::check(&crate::root().unwrap()).unwrap();
        assert!(broken.is_empty(), "\n{}", broken.join("\n"));
    }
}
