//! Growing structs: an exported struct whose fields are all public can get another field without breaking programs.

use super::exported_types::type_names;
use super::names::code_lines;
use std::collections::BTreeSet;

/// Exported structs that are not `#[non_exhaustive]`, with the reason.
const EXHAUSTIVE_STRUCTS: &[(&str, &str)] = &[
    ("AgentHookList", "a name for a list, which has no second part"),
    ("CardSize", "a width and a height, which constants are made of"),
    (
        "PolicyRequest",
        "all that a decision depends on: a default for a new field would be a decision without it",
    ),
];

/// Reports exported structs with public fields only that are neither `#[non_exhaustive]` nor listed. A private field does
/// the same as the attribute. `library` are the files with their texts, `exported` the names that the library exports.
pub(super) fn check_growing_structs(
    library: &[&(String, String)],
    exported: &BTreeSet<&str>,
    broken: &mut Vec<String>,
) {
    for (file, text) in library {
        for (number, name) in exhaustive_structs(text) {
            let is_listed = EXHAUSTIVE_STRUCTS.iter().any(|(listed, _)| *listed == name);
            if exported.contains(name) && !is_listed {
                broken.push(format!(
                    "{file}:{number}: `{name}` is exported with public fields: make it `#[non_exhaustive]`, with constructors"
                ));
            }
        }
    }
}

/// The public structs of a file that other crates can build field by field: the line and the name of each.
fn exhaustive_structs(text: &str) -> Vec<(usize, &str)> {
    let lines: Vec<(usize, &str)> = code_lines(text).collect();
    let mut found = Vec::new();
    let mut is_marked = false;
    for (index, (number, line)) in lines.iter().enumerate() {
        // Attributes and documentation are of the item below them.
        is_marked = *line == "#[non_exhaustive]"
            || is_marked && (line.starts_with(['#', '/', ' ', ')']) || line.starts_with("pub struct "));
        let Some(name) = line.strip_prefix("pub struct ").and_then(|rest| type_names(rest).next()) else {
            continue;
        };
        let body = lines.iter().skip(index + 1).map(|(_, line)| *line).take_while(|line| *line != "}");
        let fields: Vec<&str> = if line.ends_with('{') {
            body.filter_map(|line| line.strip_prefix("    ")).filter(|line| is_field(line)).collect()
        } else {
            line.split_once('(').map(|(_, fields)| fields).into_iter().collect()
        };
        let is_open = !fields.is_empty() && fields.iter().all(|field| field.starts_with("pub "));
        if is_open && !is_marked {
            found.push((*number, name));
        }
        is_marked = false;
    }
    found
}

/// Whether a line of a struct, without its indentation, begins a field.
fn is_field(line: &str) -> bool {
    !line.starts_with(['#', '/', ' ', ')', ']'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_structs_that_others_can_build_are_found() {
        let found = |text: &str| exhaustive_structs(text).len();
        let open = "#[derive(Debug)]\npub struct OpenPart {\n    /// One.\n    pub one: u8,\n}\n";
        assert_eq!(found(open), 1);
        assert_eq!(found(&format!("#[non_exhaustive]\n{open}")), 0);
        assert_eq!(found(&open.replace("pub struct", "#[non_exhaustive]\npub struct")), 0);
        assert_eq!(found(&format!("#[non_exhaustive]\npub enum Kind {{\n    One,\n}}\n\n{open}")), 1);
        assert_eq!(found(&open.replace("}\n", "    two: u8,\n}\n")), 0);
        assert_eq!(found(&open.replace("pub one", "pub(crate) one")), 0);
        assert_eq!(
            found("pub struct OpenPart(pub u8);\npub struct ClosedPart(u8);\npub struct EmptyPart;\n"),
            1
        );
    }

    #[test]
    fn exported_structs_are_marked_or_listed() {
        let text =
            "pub struct OpenPart {\n    pub one: u8,\n}\n\npub struct CardSize {\n    pub one: u8,\n}\n";
        let source = ("crates/gate/src/a.rs".to_owned(), text.to_owned());
        let check = |exported: &[&'static str]| {
            let mut broken = Vec::new();
            check_growing_structs(&[&source], &exported.iter().copied().collect(), &mut broken);
            broken.len()
        };
        assert_eq!(check(&["OpenPart", "CardSize"]), 1);
        assert_eq!(check(&["CardSize"]), 0);
    }
}
