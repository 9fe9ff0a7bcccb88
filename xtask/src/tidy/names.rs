//! The naming rules of `docs/glossary.md` ("How things are named"): type names, module names, constants, and words that
//! do not belong in comments and messages.

use std::collections::{BTreeMap, BTreeSet};

/// Type names of one word that need no second one: the words of the glossary.
const GLOSSARY_TYPES: &[&str] = &[
    "Approver",
    "Cleared",
    "Code",
    "Effect",
    "Enforcement",
    "Event",
    "Gate",
    "Hook",
    "Intent",
    "Journal",
    "Judgement",
    "Layer",
    "Mode",
    "Output",
    "Permit",
    "Policy",
    "Principal",
    "Refusal",
    "Registry",
    "Risk",
    "Session",
    "Sink",
    "Source",
    "Stage",
    "Terms",
    "Tool",
    "Toolgate",
    "Toolset",
    "Verdict",
    "Visibility",
    "Workspace",
];

/// Words to avoid, with what to write instead.
const REPLACED_WORDS: &[(&str, &str)] = &[
    ("whoever", "name who it is: the caller, the client, another thread"),
    ("somebody", "the user, an approver, another process"),
    ("a person", "the user; for another human: a reader, an author"),
    ("the person", "the user"),
    ("someone", "the user, an approver, another process"),
    ("nobody", "no approver, no client, no caller"),
    ("anybody", "any caller, any user"),
    ("everybody", "every caller, every user"),
    ("in vain", "what does not happen: `no user is asked`, `that does not come`"),
    ("go round", "bypass"),
    ("goes round", "bypasses"),
    ("gone round", "bypassed"),
    ("the box", "the sandbox"),
    ("litter", "temporary files"),
    ("led astray", "follows a symlink"),
    ("link that leads", "symlink"),
    ("is no field", "unknown field"),
    ("to let it pass", "to allow it"),
    ("where no rule speaks", "when no rule matches"),
    ("law of settings", "tighten-only property"),
    ("the house", "the repository"),
    ("heard", "read, received, awaited"),
    ("seat", "slot"),
    ("seats", "slots"),
];

/// This file, which has to contain the words of [`REPLACED_WORDS`].
const WORD_LIST_FILE: &str = "xtask/src/tidy/names.rs";
/// The user `nobody` of the kernel, in the documents and tests that are about user ids.
const NOBODY_USER: &str = "`nobody`";

/// Parts of the name of a constant that say what the number is, or its unit.
const NUMBER_NAME_PARTS: &[&str] = &[
    "MAX",
    "MIN",
    "DEFAULT",
    "TIMEOUT",
    "LIMIT",
    "INTERVAL",
    "DELAY",
    "GRACE",
    "TTL",
    "BYTES",
    "CHARS",
    "LINES",
    "LEN",
    "SIZE",
    "COUNT",
    "WIDTH",
    "HEIGHT",
    "DEPTH",
    "MS",
    "SECS",
    "NANOS",
    "PERCENT",
    "PORT",
    "VERSION",
    "MASK",
    "FLAGS",
    "SEED",
    "CODE",
    "SHIFT",
    "OFFSET",
    "BITS",
    "MODE",
    "LEVEL",
    "PRIORITY",
    "WEIGHT",
    "SATURATION",
    "FD",
];

/// The types of constants that are numbers.
const NUMBER_TYPES: &[&str] = &[
    "usize", "u128", "u64", "u32", "u16", "u8", "isize", "i128", "i64", "i32", "i16", "i8", "f64", "f32",
    "Duration",
];

/// A type that is defined in the sources of a crate, without its tests.
pub(super) struct TypeDefinition {
    /// The name, without generics.
    pub(super) name: String,
    /// File and line, for messages.
    pub(super) place: String,
}

/// The lines of a file before its tests. A `#[cfg(test)]` on a declaration such as `mod tests;` does not end it.
pub(super) fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let ends = |index: usize| {
        lines.get(index).is_some_and(|line| *line == "#[cfg(test)]")
            && lines.get(index + 1).is_none_or(|next| !next.ends_with(';'))
    };
    let count = (0..lines.len()).find(|index| ends(*index)).unwrap_or(lines.len());
    lines.into_iter().take(count).enumerate().map(|(index, line)| (index + 1, line))
}

/// Every struct, enum, trait, union and type alias of a file, without its tests and without associated types.
pub(super) fn type_definitions(file: &str, text: &str) -> Vec<TypeDefinition> {
    find_type_definitions(file, code_lines(text))
}

/// The same in numbered lines.
fn find_type_definitions<'t>(
    file: &str,
    lines: impl Iterator<Item = (usize, &'t str)>,
) -> Vec<TypeDefinition> {
    let mut found = Vec::new();
    for (number, line) in lines {
        let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
        let visibility_tail = |word: &&str| word.ends_with(')') || *word == "in";
        let keyword = words.by_ref().find(|word| !visibility_tail(word));
        let is_alias = keyword == Some("type");
        if !matches!(keyword, Some("struct" | "enum" | "trait" | "union" | "type"))
            || is_alias && line.starts_with(' ')
        {
            continue;
        }
        let name: String =
            words.next().unwrap_or_default().chars().take_while(|c| c.is_alphanumeric()).collect();
        if name.starts_with(|c: char| c.is_ascii_uppercase()) {
            found.push(TypeDefinition { name, place: format!("{file}:{number}") });
        }
    }
    found
}

/// Rule 1, first part: a type name has two words or is in the glossary.
pub(super) fn check_type_names(types: &[TypeDefinition], broken: &mut Vec<String>) {
    for TypeDefinition { name, place } in types {
        let words = name.chars().filter(char::is_ascii_uppercase).count();
        if words < 2 && !GLOSSARY_TYPES.contains(&name.as_str()) {
            broken.push(format!("{place}: `{name}` needs a second word that says what it is"));
        }
    }
}

/// Rule 1, second part: a type name is used once in the workspace, with its tests, examples and benchmarks.
pub(super) fn check_unique_type_names(sources: &[(String, String)], broken: &mut Vec<String>) {
    let mut places: BTreeMap<String, String> = BTreeMap::new();
    for (file, text) in sources {
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        for TypeDefinition { name, place } in find_type_definitions(file, lines) {
            match places.get(&name) {
                Some(first) => {
                    broken.push(format!("{place}: the type name `{name}` is used at {first} already"))
                }
                None => _ = places.insert(name, place),
            }
        }
    }
}

/// Each word that is a type name by itself has a row in the glossary, whose text this is. `Toolgate` is the program.
pub(super) fn check_glossary_rows(glossary: &str, broken: &mut Vec<String>) {
    for word in GLOSSARY_TYPES.iter().map(|name| name.to_lowercase()).filter(|word| word != "toolgate") {
        if !glossary.contains(&format!("\n| {word} |")) {
            broken.push(format!("docs/glossary.md: no row for `{word}`, which is the name of a type"));
        }
    }
}

/// Rule 2: a module is named after its main type or function, so one of its items has the words of its name.
pub(super) fn check_module_name(file: &str, text: &str, broken: &mut Vec<String>) {
    let stem = file.rsplit('/').next().and_then(|name| name.strip_suffix(".rs")).unwrap_or_default();
    if matches!(stem, "mod" | "lib" | "main" | "tests" | "build") || !file.contains("/src/") {
        return;
    }
    if stem.ends_with("_words") {
        broken.push(format!("{file}: name it after its main type; `_words` fits any content"));
    }
    let items: BTreeSet<String> = code_lines(text).filter_map(|(_, line)| item_name(line)).collect();
    let known = stem.split('_').all(|word| {
        let root = word.strip_suffix('s').unwrap_or(word);
        let root: String = root.chars().take(5).collect();
        items.iter().any(|item| item.contains(&root))
    });
    if !known {
        broken.push(format!("{file}: no type or function in it has the words of `{stem}`"));
    }
}

/// The lower-case name of the item that a line defines.
fn item_name(line: &str) -> Option<String> {
    let mut words = line.split_whitespace().peekable();
    while let Some(word) = words.next() {
        if matches!(
            word,
            "struct" | "enum" | "trait" | "type" | "fn" | "const" | "static" | "mod" | "macro_rules!"
        ) {
            let name = words.peek()?;
            return Some(
                name.chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect::<String>()
                    .to_lowercase(),
            );
        }
        if !word.starts_with("pub")
            && !matches!(word, "async" | "unsafe" | "extern" | "\"C\"" | "in")
            && !word.ends_with(')')
        {
            return None;
        }
    }
    None
}

/// Rule 3: the name of a constant number says what it limits, and its type or name has the unit.
pub(super) fn check_constants(file: &str, text: &str, broken: &mut Vec<String>) {
    for (number, line) in code_lines(text) {
        let Some(rest) = line.trim_start().trim_start_matches("pub ").split_once("const ") else { continue };
        let Some((name, value)) = rest.1.split_once(':') else { continue };
        if !rest.0.chars().all(|c| c.is_alphanumeric() || "() ".contains(c))
            || !name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        {
            continue;
        }
        let is_number = NUMBER_TYPES.iter().any(|kind| value.trim_start().starts_with(kind));
        let is_described = name.split('_').any(|part| NUMBER_NAME_PARTS.contains(&part));
        if name.split('_').any(|part| matches!(part, "MOST" | "LONGEST" | "FEWEST" | "LEAST"))
            || is_number && !is_described
        {
            broken.push(format!(
                "{file}:{number}: `{name}` says neither MAX_, MIN_, DEFAULT_, _TIMEOUT nor a unit"
            ));
        }
    }
}

/// Words that the glossary replaces, in comments, messages and test names.
pub(super) fn check_words(file: &str, text: &str, broken: &mut Vec<String>) {
    if file == WORD_LIST_FILE {
        return;
    }
    for (index, line) in text.lines().enumerate() {
        let line = split_names(line).to_lowercase().replace(NOBODY_USER, "").replace('_', " ");
        for (word, instead) in REPLACED_WORDS {
            let stands_alone = line.match_indices(word).any(|(at, _)| {
                let before = line.get(..at).and_then(|text| text.chars().next_back());
                let after = line.get(at + word.len()..).and_then(|text| text.chars().next());
                !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
            });
            if stands_alone {
                broken.push(format!("{file}:{}: `{word}`: {instead}", index + 1));
            }
        }
    }
}

/// The text with a blank before each capital that follows a small letter: `TheBox` has the words of "The Box".
fn split_names(line: &str) -> String {
    let mut split = String::with_capacity(line.len());
    let mut is_after_small = false;
    for c in line.chars() {
        if is_after_small && c.is_uppercase() {
            split.push(' ');
        }
        split.push(c);
        is_after_small = c.is_lowercase();
    }
    split
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_module_of_tests_ends_the_code_of_a_file() {
        let text = "#[cfg(test)]\nmod tests;\nstruct A;\n#[cfg(test)]\nmod more {\n    struct B;\n}\n";
        let lines: Vec<&str> = code_lines(text).map(|(_, line)| line).collect();
        assert_eq!(lines, ["#[cfg(test)]", "mod tests;", "struct A;"]);
    }

    #[test]
    fn replaced_words_are_found_in_comments_and_names_but_not_inside_of_words() {
        let count = |text: &str| {
            let mut broken = Vec::new();
            check_words("a.rs", text, &mut broken);
            broken.len()
        };
        assert_eq!(
            count(
                "// nobody waits\nfn a_user_is_not_asked_in_vain() {}\nlet x = the_box;\nstruct NobodyToAsk;\n\
                 // Ask a person\nfn someone_answers() {}"
            ),
            6
        );
        assert_eq!(count("// files of the user `nobody`; the boxes, glitter, a personal key"), 0);
    }

    #[test]
    fn a_type_needs_two_words_and_a_name_of_its_own() {
        let in_tests = "#[cfg(test)]\nmod tests {\n    struct LockTable;\n}\n";
        let files = [("a.rs", "struct Thing;\nenum LockTable {}"), ("b.rs", in_tests)];
        let types: Vec<TypeDefinition> =
            files.iter().flat_map(|(file, text)| type_definitions(file, text)).collect();
        let mut broken = Vec::new();
        check_type_names(&types, &mut broken);
        assert_eq!(broken.len(), 1, "{broken:?}");
        let sources = files.map(|(file, text)| (file.to_owned(), text.to_owned()));
        check_unique_type_names(&sources, &mut broken);
        assert_eq!(broken.len(), 2, "{broken:?}");
    }
}
