//! Exported types: a program that embeds the library can name every type that a public signature of it names.
//!
//! This reads text and not types, which is enough because no type name is used twice in the workspace.

use super::{foreign_types, growing_structs};
use std::collections::BTreeSet;

/// Crates whose exports are the library's, by `pub use …::*`, and the library itself.
const REEXPORTED_CRATES: &[&str] =
    &["crates/agent/src/", "crates/host/src/", "crates/lsp/src/", "crates/mcp/src/", "crates/toolgate/src/"];
/// Modules of other crates that the library exports as a whole.
const REEXPORTED_MODULES: &[&str] = &["crates/gate/src/ledger/mod.rs"];
/// Sources that are not part of the library.
const OUTSIDE_LIBRARY: &[&str] = &["crates/testkit/", "crates/toolgate/src/cli/", "xtask/"];

/// Reports the types that are named by a field, a variant or a method of an exported type or by an exported function, and
/// are not exported themselves; and the exported structs that cannot grow. `sources` are the files with their texts.
pub(super) fn check_exported_types(sources: &[(String, String)], broken: &mut Vec<String>) {
    let library: Vec<&(String, String)> = sources
        .iter()
        .filter(|(file, _)| !OUTSIDE_LIBRARY.iter().any(|outside| file.starts_with(outside)))
        .collect();
    let public: BTreeSet<&str> = library.iter().flat_map(|(_, text)| public_types(text)).collect();
    let exported: BTreeSet<&str> =
        library.iter().flat_map(|(file, text)| exported_names(file, text, sources)).collect();
    let foreign = foreign_types::exported_paths(sources);
    for (file, text) in &library {
        let imports = foreign_types::imported_paths(text);
        for (number, owner, line) in signature_lines(text) {
            if !exported.contains(owner) {
                continue;
            }
            let inner = type_names(line).filter(|name| public.contains(name) && !exported.contains(name));
            let outer = foreign_types::foreign_types(line, text, &imports);
            let missing = inner.map(str::to_owned).chain(outer.into_iter().filter(|path| !foreign.has(path)));
            for name in missing {
                broken.push(format!(
                    "{file}:{number}: `{owner}` names `{name}`, which crates/toolgate/src/lib.rs does not export"
                ));
            }
        }
    }
    growing_structs::check_growing_structs(&library, &exported, broken);
}

/// The public types that a file defines.
fn public_types(text: &str) -> impl Iterator<Item = &str> {
    super::names::code_lines(text).filter_map(|(_, line)| {
        let item = line.strip_prefix("pub ")?;
        let name = ["struct ", "enum ", "trait ", "type "].iter().find_map(|kind| item.strip_prefix(kind))?;
        type_names(name).next()
    })
}

/// The names that a file makes part of the library: by `pub use`, or because its module is public.
fn exported_names<'t>(file: &str, text: &'t str, sources: &[(String, String)]) -> Vec<&'t str> {
    let is_reexported = REEXPORTED_CRATES.iter().any(|dir| file.starts_with(dir));
    if !is_reexported && !REEXPORTED_MODULES.contains(&file) {
        return Vec::new();
    }
    let statements = text.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next());
    let mut names: Vec<&str> = statements.flat_map(words).collect();
    let module =
        file.trim_end_matches("/mod.rs").trim_end_matches(".rs").rsplit('/').next().unwrap_or_default();
    let declaration = format!("pub mod {module};");
    let is_public_module = sources.iter().any(|(other, text)| {
        REEXPORTED_CRATES.iter().any(|dir| other.starts_with(dir) && file.starts_with(dir))
            && text.lines().any(|line| line == declaration)
    });
    // Any type of the library itself may be reached by a path of its own.
    if is_public_module || file.starts_with("crates/toolgate/src/") {
        names.extend(public_types(text));
    }
    if is_public_module {
        names.extend(super::names::code_lines(text).filter_map(|(_, line)| free_function(line)));
    }
    names
}

/// The name of the public function that begins on this line, outside of any type.
fn free_function(line: &str) -> Option<&str> {
    let mut words = words(line.strip_prefix("pub ")?);
    let keyword = words.find(|word| !matches!(*word, "async" | "const" | "unsafe"))?;
    (keyword == "fn").then(|| words.next())?
}

/// The lines of a file that belong to the signature of a public type or function: the number, its name, and the line.
fn signature_lines(text: &str) -> Vec<(usize, &str, &str)> {
    let mut found = Vec::new();
    let (mut owner, mut kind, mut in_signature) = ("", "", false);
    for (number, line) in super::names::code_lines(text) {
        let is_comment = line.trim_start().starts_with("//");
        // The closing parenthesis of a function's parameters, or its bounds.
        let goes_on = in_signature && kind == "fn" && (line.starts_with(')') || line == "where");
        if !line.starts_with([' ', '}']) && !is_comment && !line.is_empty() && !goes_on {
            if let Some(function) = free_function(line) {
                (owner, kind) = (function, "fn");
                found.push((number, owner, line));
                in_signature = !line.ends_with(['{', '}', ';']);
                continue;
            }
            let item = line.strip_prefix("pub ").unwrap_or(line);
            kind = ["struct", "enum", "trait", "impl", "type"]
                .into_iter()
                .find(|kind| item.starts_with(kind))
                .unwrap_or("");
            let is_item =
                kind == "impl" && !line.contains(" for ") || kind != "impl" && line.starts_with("pub ");
            owner = if is_item { type_names(item).next().unwrap_or("") } else { "" };
            in_signature = false;
            if kind == "type" && !owner.is_empty() {
                found.push((number, owner, line));
            }
            continue;
        }
        if owner.is_empty() || is_comment {
            continue;
        }
        let is_member = line.starts_with("    ") && !line.starts_with("     ");
        let begins = match kind {
            "struct" => is_member && line.starts_with("    pub "),
            "enum" => true,
            "trait" => is_member && line.contains("fn "),
            "fn" | "type" => false,
            _ => is_member && line.starts_with("    pub ") && line.contains("fn "),
        };
        let continues = in_signature && (kind == "fn" || !is_member || line.starts_with("    )"));
        in_signature = begins && !line.contains("pub(") || continues;
        if in_signature {
            found.push((number, owner, line));
        }
        if matches!(kind, "trait" | "impl" | "fn") && line.trim_end().ends_with(['{', ';']) {
            in_signature = false;
        }
    }
    found
}

/// The words of a text that are names of types.
pub(super) fn type_names(text: &str) -> impl Iterator<Item = &str> {
    words(text).filter(|word| {
        word.starts_with(|c: char| c.is_ascii_uppercase()) && word.contains(char::is_lowercase)
    })
}

/// The words of a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_that_a_signature_names_must_be_exported() {
        let check = |exports: &str, text: &str| {
            let sources = [
                ("crates/toolgate/src/lib.rs".to_owned(), format!("pub use toolgate_gate::{{{exports}}};\n")),
                ("crates/gate/src/a.rs".to_owned(), text.to_owned()),
            ];
            let mut broken = Vec::new();
            check_exported_types(&sources, &mut broken);
            broken.len()
        };
        let inner = "pub struct InnerPart;\n";
        let by_method = format!(
            "{inner}impl OuterPart {{\n    pub fn get(\n        &self,\n    ) -> InnerPart {{\n    }}\n}}\n"
        );
        assert_eq!(check("OuterPart", &by_method), 1);
        assert_eq!(check("OuterPart, InnerPart", &by_method), 0);
        assert_eq!(check("Other", &by_method), 0);
        let private = by_method.replace("pub fn", "fn");
        assert_eq!(check("OuterPart", &private), 0);
        let by_field = format!(
            "{inner}#[non_exhaustive]\npub struct OuterPart {{\n    /// See [`InnerPart`].\n    pub part: InnerPart,\n}}\n"
        );
        assert_eq!(check("OuterPart", &by_field), 1);
        assert_eq!(check("OuterPart", &by_field.replace("pub part", "part")), 0);
        let by_variant = format!("{inner}pub enum OuterPart {{\n    One(InnerPart),\n}}\n");
        assert_eq!(check("OuterPart", &by_variant), 1);
        let in_body = format!(
            "{inner}impl OuterPart {{\n    pub fn get(&self) -> u8 {{\n        InnerPart::new()\n    }}\n}}\n"
        );
        assert_eq!(check("OuterPart", &in_body), 0);
        let by_function =
            format!("{inner}pub async fn get_part(\n    input: u8,\n) -> InnerPart {{\n    other()\n}}\n");
        assert_eq!(check("get_part", &by_function), 1);
        assert_eq!(check("get_part, InnerPart", &by_function), 0);
        assert_eq!(check("other", &by_function), 0);
        let by_alias = format!("{inner}pub type PartList = Vec<InnerPart>;\n");
        assert_eq!(check("PartList", &by_alias), 1);
    }

    #[test]
    fn a_type_of_a_foreign_crate_must_be_exported() {
        let check = |exports: &str, text: &str| {
            let lib = format!("mod inner;\npub use inner::OuterPart;\n{exports}");
            let sources = [
                ("crates/toolgate/src/lib.rs".to_owned(), lib),
                ("crates/toolgate/src/inner.rs".to_owned(), text.to_owned()),
            ];
            let mut broken = Vec::new();
            check_exported_types(&sources, &mut broken);
            broken.len()
        };
        let method =
            |path: &str| format!("impl OuterPart {{\n    pub fn get(&self) -> {path} {{\n    }}\n}}\n");
        let by_import = format!("use tokio::sync::{{broadcast, watch}};\n{}", method("watch::Receiver<u64>"));
        assert_eq!(check("", &by_import), 1);
        assert_eq!(check("pub use tokio::sync::watch::Receiver as WatchReceiver;\n", &by_import), 0);
        assert_eq!(check("pub use tokio::sync::broadcast::Receiver as EventReceiver;\n", &by_import), 1);
        assert_eq!(check("", &method("tokio::net::TcpListener")), 1);
        assert_eq!(check("pub use tokio::{self, io};\n", &method("tokio::net::TcpListener")), 0);
        assert_eq!(check("", &method("std::io::Result<super::Part>")), 0);
        assert_eq!(check("", &format!("use std::fmt;\n{}", method("fmt::Result"))), 0);
    }
}
