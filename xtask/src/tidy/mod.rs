//! `tidy`: the rules of this repository that no compiler checks. They also run as a test.
//!
//! A rule is a function that appends one line for each violation: the file, the line, and what to do instead.
//! Numbers such as I7 are those of the invariants in `docs/architecture.md`.

mod dependencies;
mod exported_types;
mod foreign_types;
mod growing_structs;
mod library_boundary;
mod names;
mod search_hits;
mod source_figures;

use crate::{docs, read};
use anyhow::Result;
use std::path::{Path, PathBuf};

/// No file has more lines, without its tests.
const MAX_FILE_LINES: usize = 600;
/// The path of one call, as one function.
const PIPELINE_FILE: &str = "crates/gate/src/pipeline.rs";
/// It is the first file that a reader opens, so it has fewer lines than others may have.
const MAX_PIPELINE_LINES: usize = 199;

/// Checks every rule, and returns one line for each violation.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    let mut sources: Vec<(String, String)> = Vec::new();
    for path in list_rust_files(root)? {
        sources.push((path.strip_prefix(root).unwrap_or(&path).display().to_string(), read(&path)?));
    }
    let manifest = read(&root.join("crates/toolgate/Cargo.toml"))?;
    let page = read(&root.join("docs/embedding.md"))?;
    library_boundary::check_library_boundary(&sources, &page, &manifest, &mut broken)?;
    for (name, text) in &sources {
        check_file_size(name, text, &mut broken);
        check_forbidden_words(name, text, &mut broken);
        check_restricted_calls(name, text, &mut broken);
        names::check_words(name, text, &mut broken);
    }
    for path in list_files(root)?.into_iter().filter(|path| is_prose(path)) {
        names::check_words(
            &path.strip_prefix(root).unwrap_or(&path).display().to_string(),
            &read(&path)?,
            &mut broken,
        );
    }
    names::check_unique_type_names(&sources, &mut broken);
    sources.retain(|(name, _)| name.contains("/src/") && !name.starts_with("fuzz/"));
    let mut types = Vec::new();
    let mut figures = source_figures::SourceFigures::default();
    for (name, text) in &sources {
        types.extend(names::type_definitions(name, text));
        names::check_module_name(name, text, &mut broken);
        names::check_constants(name, text, &mut broken);
        figures.add(name, text);
    }
    names::check_type_names(&types, &mut broken);
    names::check_glossary_rows(&read(&root.join("docs/glossary.md"))?, &mut broken);
    figures.check(&mut broken);
    search_hits::check_search_hits(&sources, &mut broken);
    exported_types::check_exported_types(&sources, &mut broken);
    check_file_names(root, &mut broken)?;
    check_crate_roots(root, &mut broken)?;
    check_test_modules(root, &mut broken)?;
    dependencies::check_dependencies(root, &mut broken)?;
    check_documents(root, &mut broken)?;
    Ok(broken)
}

/// Whether a file is a document or a script of ours. Skills and plugins of other projects are test data.
fn is_prose(path: &Path) -> bool {
    let is_ours = !path.components().any(|part| part.as_os_str() == "fixtures");
    is_ours && path.extension().is_some_and(|ext| ext == "md" || ext == "py" || ext == "sh")
}

/// I7: no file over 600 lines, without its tests. The path of a call has to fit on a few screens.
fn check_file_size(name: &str, text: &str, broken: &mut Vec<String>) {
    let code = names::code_lines(text).count();
    let max = if name == PIPELINE_FILE { MAX_PIPELINE_LINES } else { MAX_FILE_LINES };
    if !name.contains("/tests/") && code > max {
        broken.push(format!("{name}: {code} lines; it may have at most {max} (I7)"));
    }
}

/// Text that does not belong in the sources: placeholders, ignored tests, suppressed lints, paths of one machine.
fn check_forbidden_words(name: &str, text: &str, broken: &mut Vec<String>) {
    // In two halves, so that this file does not break its own rule.
    for (a, b) in [("todo", "!("), ("#[igno", "re]"), ("/wor", "k/"), ("FIX", "ME"), ("#[all", "ow(")] {
        let word = format!("{a}{b}");
        for (index, line) in text.lines().enumerate() {
            if line.contains(&word) {
                broken.push(format!("{name}:{}: `{word}` does not belong here", index + 1));
            }
        }
    }
}

/// I1, I10: functions that only certain files may call.
fn check_restricted_calls(name: &str, text: &str, broken: &mut Vec<String>) {
    let restricted: &[(&str, &[&str])] = &[
        ("Permit::issue(", &["crates/gate/src/stage/settle.rs"]),
        ("Cleared::new(", &["crates/gate/src/stage/guard.rs"]),
        // The second is a test that gets its arguments from its parent process.
        (
            "env::var",
            &[
                "crates/process/src/ambient.rs",
                "crates/files/src/fault_tests.rs",
                // The length of a test.
                "crates/toolgate/src/settings/untrusted_project/mod.rs",
            ],
        ),
        ("env::current_dir", &["crates/process/src/ambient.rs"]),
        ("AmbientEnvironment::read(", &["crates/toolgate/src/cli/mod.rs"]),
        // File handles without a grant: only the seccomp notification handler, which checks paths itself.
        ("unchecked::", &["crates/process/src/sandbox/seccomp_notify/syscall_path.rs"]),
    ];
    if name.starts_with("xtask/") || name.contains("/tests/") || name.contains("/benches/") {
        return;
    }
    for (call, callers) in restricted {
        for (index, line) in text.lines().take_while(|line| *line != "#[cfg(test)]").enumerate() {
            let line = line.trim_start();
            if line.contains(call) && !line.starts_with("//") && !callers.contains(&name) {
                broken.push(format!("{name}:{}: only {} may call {call}…)", index + 1, callers.join(", ")));
            }
        }
    }
}

/// I7: no source file or directory has a name that fits any content.
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

/// Every crate uses the lints of the workspace, forbids unsafe code (except `process`), and opens with a module comment.
fn check_crate_roots(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    for manifest in list_files(root)?.into_iter().filter(|path| path.ends_with("Cargo.toml")) {
        let dir = manifest.parent().unwrap_or(root);
        if dir == root || dir.ends_with("fuzz") {
            continue;
        }
        let name = dir.strip_prefix(root).unwrap_or(dir).display().to_string();
        if !read(&manifest)?.contains("[lints]\nworkspace = true") {
            broken.push(format!("{name}/Cargo.toml: use the lints of the workspace"));
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
            check_crate_essay(&format!("{name}/{file}"), &text, broken);
            let strict = matches!(name.as_str(), "crates/shell-syntax" | "crates/policy" | "crates/gate");
            if strict && !text.contains("#![deny(clippy::wildcard_enum_match_arm)]") {
                broken.push(format!("{name}/{file}: deny wildcard match arms (I4)"));
            }
        }
    }
    Ok(())
}

/// A crate opens with what it is for; a library also with an example that runs, and with what it does not do.
fn check_crate_essay(file: &str, text: &str, broken: &mut Vec<String>) {
    let essay: Vec<&str> = text.lines().take_while(|line| line.starts_with("//!")).collect();
    let essay = essay.join("\n");
    if essay.is_empty() {
        broken.push(format!("{file}: open with a comment on what the crate is for"));
    }
    if !file.ends_with("lib.rs") {
        return;
    }
    let is_code = |fence: &str| matches!(fence.lines().next(), Some("" | "no_run"));
    if !essay.split("//! ```").skip(1).step_by(2).any(is_code) {
        broken.push(format!("{file}: give an example that runs"));
    }
    let prose = essay.replace("\n//! ", " ");
    if !["does not", "do not", "knows no", "never"].iter().any(|words| prose.contains(words)) {
        broken.push(format!("{file}: say what the crate does not do"));
    }
}

/// Every test file is a module of its test binary: a file without a `mod` line would never run.
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

/// Generated documents are fresh, and every test, file, command and benchmark that a document names exists.
fn check_documents(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    if read(&root.join("docs/errors.md")).unwrap_or_default() != docs::render_errors() {
        broken.push("docs/errors.md is stale: run `cargo xtask docs`".to_owned());
    }
    let mut known = String::new();
    for path in list_rust_files(root)? {
        known.push_str(&read(&path)?);
    }
    for path in list_files(root)?.into_iter().filter(|path| path.extension().is_some_and(|ext| ext == "md")) {
        let document = path.strip_prefix(root).unwrap_or(&path);
        // Decisions are not rewritten when a test gets another name.
        let is_current =
            document.parent().is_some_and(|dir| dir == Path::new("") || dir == Path::new("docs"));
        if !is_current || document == Path::new("CHANGELOG.md") {
            continue;
        }
        let text = read(&path)?;
        for code in text.split('`').skip(1).step_by(2) {
            if let Some(missing) = find_missing_name(root, code, &known) {
                broken.push(format!("{}: {missing}, which does not exist", document.display()));
            }
        }
    }
    Ok(())
}

/// What a piece of code in a document names although it does not exist. `known` is the text of all sources.
fn find_missing_name(root: &Path, code: &str, known: &str) -> Option<String> {
    let mut words = code.split(' ');
    let first = words.next().unwrap_or_default();
    let second = words.next().unwrap_or_default();
    let third = words.next().unwrap_or_default();
    match (first, second, third) {
        ("test", name, "") => {
            (!known.contains(&format!("fn {name}("))).then(|| format!("it names the test `{name}`"))
        }
        ("cargo", "xtask", command) if command.starts_with(|c: char| c.is_ascii_lowercase()) => {
            // The arms of `run_task` in `main.rs`.
            (!known.contains(&format!("\"{command}\" => ")))
                .then(|| format!("it names the command `cargo xtask {command}`"))
        }
        ("cargo", "bench", _) => {
            let after = |option: &str| code.split(option).nth(1).and_then(|rest| rest.split(' ').next());
            let package = after("-p ").or_else(|| after("--package "))?;
            let bench = after("--bench ")?;
            let name = package.strip_prefix("toolgate-").unwrap_or(package);
            let file = root.join(format!("crates/{name}/benches/{bench}.rs"));
            (!file.exists()).then(|| format!("it names the benchmark `{bench}` of `{package}`"))
        }
        _ => {
            let is_path = ["crates/", "scripts/", "xtask/", "fuzz/"].iter().any(|dir| first.starts_with(dir));
            let is_pattern = first.contains(['<', '*', '{', '…']);
            (is_path && !is_pattern && !root.join(first).exists()).then(|| format!("it names `{first}`"))
        }
    }
}

/// Every Rust file below a directory, such as the repository.
pub(crate) fn list_rust_files(root: &Path) -> Result<Vec<PathBuf>> {
    Ok(list_files(root)?.into_iter().filter(|path| path.extension().is_some_and(|ext| ext == "rs")).collect())
}

/// Every file of the repository, except build results and hidden directories.
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
    fn a_library_opens_with_an_example_and_with_what_it_does_not_do() {
        let count = |text: &str| {
            let mut broken = Vec::new();
            super::check_crate_essay("a/src/lib.rs", text, &mut broken);
            broken.len()
        };
        assert_eq!(count("//! Reads.\n//!\n//! ```\n//! use a;\n//! ```\n//!\n//! It does not write.\n"), 0);
        assert_eq!(count("//! Reads.\n//!\n//! ```text\n//! a drawing\n//! ```\n"), 2);
        assert_eq!(count("use a;\n"), 3);
    }

    #[test]
    fn names_in_documents_are_looked_up() {
        let root = crate::root().unwrap();
        let known = "fn a_test_that_exists() {} \"tidy\" => run_tidy(), \"oracle\" => run_oracle(),";
        let missing = |code: &str| super::find_missing_name(&root, code, known).is_some();
        for code in [
            "test a_test_that_exists",
            "cargo xtask tidy",
            "cargo xtask oracle [LINES] [SEED]",
            "cargo bench -p toolgate-gate --bench boundary",
            "crates/gate/src/pipeline.rs",
            "scripts/bench-state.sh 500 20000",
            "crates/tools/src/<name>.rs",
            "cargo build --release",
        ] {
            assert!(!missing(code), "{code}");
        }
        for code in [
            "test a_test_that_is_gone",
            "cargo xtask no-such-command",
            "cargo bench -p toolgate-gate --bench gone",
            "crates/gate/src/gone.rs",
        ] {
            assert!(missing(code), "{code}");
        }
    }

    #[test]
    fn the_repository_is_tidy() {
        let broken = super::check(&crate::root().unwrap()).unwrap();
        assert!(broken.is_empty(), "\n{}", broken.join("\n"));
    }
}
