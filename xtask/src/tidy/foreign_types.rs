//! Types of foreign crates in signatures: by which path a line names them, and which of them the library exports.

use std::collections::{BTreeMap, BTreeSet};

/// What the library exports of foreign crates.
pub(super) struct ForeignExports(BTreeSet<String>);

impl ForeignExports {
    /// Whether the library exports the type at this path, or the crate that has it.
    pub(super) fn has(&self, path: &str) -> bool {
        let root = path.split("::").next().unwrap_or_default();
        self.0.contains(path) || self.0.contains(root)
    }
}

/// The exports of foreign crates, and the types of them. `sources` are the files with their texts.
pub(super) fn exported_paths(sources: &[(String, String)]) -> ForeignExports {
    let mut exported = BTreeSet::new();
    for (_, text) in sources.iter().filter(|(file, _)| file.ends_with("/src/lib.rs")) {
        for (name, path) in use_statements(text, true) {
            // A crate that an inner crate exports (`toolgate_state::jiff`) has its name at the end of the path.
            exported.insert(name);
            exported.insert(path);
        }
    }
    ForeignExports(exported)
}

/// The paths that a file imports, by the name that they have in it.
pub(super) fn imported_paths(text: &str) -> BTreeMap<String, String> {
    use_statements(text, false).into_iter().collect()
}

/// The full paths of the types of foreign crates that a line of a file names. `text` is the file, `imports` is what it
/// imports.
pub(super) fn foreign_types(line: &str, text: &str, imports: &BTreeMap<String, String>) -> Vec<String> {
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let tokens = line.split(|c: char| !is_path(c)).map(|token| token.trim_matches(':'));
    let resolved = tokens.filter_map(|token| {
        let (first, rest) = token.split_once("::").unwrap_or((token, ""));
        let path = match (imports.get(first), rest) {
            (Some(path), "") => path.clone(),
            (Some(path), rest) => format!("{path}::{rest}"),
            (None, "") => return None,
            (None, _) => token.to_owned(),
        };
        // What follows the name of a type is a part of it.
        let segments: Vec<&str> = path.split("::").collect();
        let end = segments.iter().position(|segment| segment.starts_with(char::is_uppercase))?;
        let path = segments.get(..=end)?.join("::");
        is_foreign(&path, text).then_some(path)
    });
    resolved.collect()
}

/// Whether a path of a file begins with a crate that is neither ours nor of the standard library.
fn is_foreign(path: &str, text: &str) -> bool {
    let Some((root, _)) = path.split_once("::") else { return false };
    !matches!(root, "std" | "core" | "alloc" | "crate" | "self" | "super" | "Self")
        && !root.starts_with("toolgate")
        && !text.contains(&format!("mod {root};"))
        && !text.contains(&format!("mod {root} {{"))
}

/// The names and paths in the `use` statements of a file, or only in those that are public.
fn use_statements(text: &str, only_public: bool) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let line = line.trim_start();
        let public = line.strip_prefix("pub use ");
        let Some(start) = public.or_else(|| line.strip_prefix("use ")) else { continue };
        let mut tree = start.to_owned();
        while !tree.ends_with(';') {
            let Some(next) = lines.next() else { break };
            tree.push_str(next.trim());
        }
        if public.is_some() || !only_public {
            expand_use_tree("", tree.trim_end_matches(';'), &mut found);
        }
    }
    found
}

/// Appends the name and the path of each item of the part of a `use` statement that follows `prefix`.
fn expand_use_tree(prefix: &str, tree: &str, found: &mut Vec<(String, String)>) {
    let tree = tree.trim();
    if let Some((head, group)) = tree.split_once('{') {
        let items = group.strip_suffix('}').unwrap_or(group);
        let (mut depth, mut start) = (0, 0);
        for (at, c) in items.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    expand_use_tree(&format!("{prefix}{head}"), items.get(start..at).unwrap_or(""), found);
                    start = at + 1;
                }
                _ => {}
            }
        }
        expand_use_tree(&format!("{prefix}{head}"), items.get(start..).unwrap_or(""), found);
        return;
    }
    let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, name)| (path, Some(name)));
    let full = format!("{prefix}{path}");
    let full = full.strip_suffix("::self").unwrap_or(&full).to_owned();
    let name = alias.unwrap_or_else(|| full.rsplit("::").next().unwrap_or_default()).to_owned();
    if !path.is_empty() {
        found.push((name, full));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_statements_are_expanded() {
        let text = "use a::{b::{C, D as E}, f, self};\npub use g::h::I;\n    use k;\n";
        let found: Vec<String> =
            imported_paths(text).into_iter().map(|(name, path)| format!("{name}={path}")).collect();
        assert_eq!(found, ["C=a::b::C", "E=a::b::D", "I=g::h::I", "a=a", "f=a::f", "k=k"]);
        assert_eq!(use_statements(text, true), [("I".to_owned(), "g::h::I".to_owned())]);
    }
}
