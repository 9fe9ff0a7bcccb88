//! Several paths in one deny or ask rule: `Read(.env, .env.local)`.
//!
//! A rule has one pattern, so that such a rule matches only a file whose name contains the separator. Blanks and commas
//! also occur in names (`My Documents`, `Smith, John`, `a,b.txt`), so a separator counts only where both sides look like
//! patterns of their own. A rule that is taken for a list wrongly is refused with the spelling of the separator as a
//! character; one that is not recognised protects nothing.

use super::syntax::{self, RuleSyntaxError};
use super::unmatchable::never;
use toolgate_proto::secret_names::secret_glob_names;

/// A run of separators.
#[derive(Debug, Clone, Copy)]
struct PathSeparator {
    /// Its first byte.
    start: usize,
    /// The byte behind it.
    end: usize,
    /// It consists of blanks only, which are usual in names.
    is_blank: bool,
    /// It contains a blank, `;` or `|`, or several commas: few names do.
    is_loose: bool,
}

/// The two patterns on the sides of a separator.
struct PathPair<'p> {
    first: &'p str,
    second: &'p str,
}

/// Why a rule is probably several rules in one string.
pub(super) fn joined_paths(name: &str, content: &str) -> Option<RuleSyntaxError> {
    let separators = find_separators(content);
    let mut paths = Vec::new();
    let (mut from, mut character) = (0, None);
    for (index, separator) in separators.iter().enumerate() {
        let is_other_end = |other: &&PathSeparator| separator.is_blank || !other.is_blank;
        let before = separators.get(..index)?.iter().rev().find(is_other_end).map_or(0, |it| it.end);
        let behind =
            separators.get(index + 1..)?.iter().find(is_other_end).map_or(content.len(), |it| it.start);
        let (first, second) = (content.get(before..separator.start)?, content.get(separator.end..behind)?);
        let run = content.get(separator.start..separator.end)?;
        if (PathPair { first, second }).is_list(separator, run) {
            paths.push(content.get(from..separator.start)?);
            from = separator.end;
            character = character.or(run.trim().chars().next()).or(Some(' '));
        }
    }
    let character = character?;
    paths.push(content.get(from..)?);
    let rules: Vec<String> =
        paths.iter().map(|path| format!("`{}`", syntax::write_rule(name, path))).collect();
    let what = if character == ' ' { "a blank".to_owned() } else { format!("`{character}`") };
    let fix =
        format!("write one rule for each: {}; {what} of a name is written `[{character}]`", rules.join(", "));
    Some(never("a rule has one path, and the separator is part of it", fix))
}

/// The runs of separators outside brackets and braces.
fn find_separators(content: &str) -> Vec<PathSeparator> {
    let mut found: Vec<PathSeparator> = Vec::new();
    let (mut depth, mut escaped) = (0i64, false);
    for (at, c) in content.char_indices() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match c {
            '\\' => escaped = true,
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            ' ' | ',' | ';' | '|' if depth <= 0 => match found.last_mut().filter(|last| last.end == at) {
                Some(last) => {
                    last.is_blank &= c == ' ';
                    last.is_loose = true;
                    last.end = at + 1;
                }
                None => {
                    let (is_blank, is_loose) = (c == ' ', c != ',');
                    found.push(PathSeparator { start: at, end: at + 1, is_blank, is_loose });
                }
            },
            _ => {}
        }
    }
    found
}

impl PathPair<'_> {
    /// Whether the two are patterns of their own.
    fn is_list(&self, separator: &PathSeparator, run: &str) -> bool {
        let Self { first, second } = self;
        // `a.c,v` is a file of RCS.
        if first.is_empty() || second.is_empty() || (run == "," && *second == "v") {
            return false;
        }
        let (leaf, second_leaf) = (last_name(first), last_name(second));
        // No name ends in `**`, and few begin or end with a blank or a separator.
        if leaf.is_empty() || leaf.ends_with("**") || begins_like_path(second) || is_secret_name(leaf) {
            return true;
        }
        let is_kind = leaf.starts_with("*.") || is_dotfile(leaf);
        let is_path =
            |text: &str| text.contains(['/', '*']) || is_dotfile(text) || has_extension(last_name(text));
        if separator.is_blank {
            // `node.js projects/notes.md` is a path, `src/a.rs src/b.rs` are two.
            let is_alike = !second.contains('/') || extension(leaf) == extension(second_leaf);
            return (is_kind && is_path(second))
                || (leaf == "*" && first.contains('/') && second.ends_with('*') && second.contains('/'))
                || (has_extension(leaf) && second.starts_with('*'))
                || (has_extension(leaf) && has_extension(second_leaf) && is_alike);
        }
        // `Smith, John` and `Report, 2020` are names.
        let is_named = !has_extension(leaf)
            && (second.starts_with(is_number) || (begins_title(leaf) && begins_title(second)));
        let is_loose = separator.is_loose;
        run == "|"
            || (is_kind && (is_loose || is_path(second)))
            || (!is_named && has_extension(leaf) && (is_loose || is_path(second)))
            || (!is_named && (is_loose || first.contains(['/', '*'])) && second.contains(['/', '*']))
    }
}

/// Whether a name is that of a file with secrets, such as `.env` and `id_rsa`, and no word: longer names do not begin so.
fn is_secret_name(name: &str) -> bool {
    !name.chars().all(|c| c.is_ascii_alphabetic()) && secret_glob_names().any(|known| known == name)
}

/// The text behind the last `/`.
fn last_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a text begins as patterns do and parts of names do not. `.NET` is a part of names.
fn begins_like_path(text: &str) -> bool {
    ["/", "./", "~/", "**"].iter().any(|start| text.starts_with(start))
        || text.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
}

/// Whether a name begins with a dot: `.env`.
fn is_dotfile(name: &str) -> bool {
    name.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
}

/// The extension of a name, in small letters as most are: `Mr.Smith` and `v1.2` have none.
fn extension(name: &str) -> Option<&str> {
    const MAX_EXTENSION_CHARS: usize = 10;
    let (stem, extension) = name.trim_end_matches('*').rsplit_once('.')?;
    let is_extension = extension.len() <= MAX_EXTENSION_CHARS
        && extension.starts_with(|c: char| c.is_ascii_lowercase())
        && extension.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    Some(extension).filter(|_| is_extension && !stem.is_empty() && !stem.ends_with([' ', '/']))
}

/// Whether a name has an extension.
fn has_extension(name: &str) -> bool {
    extension(name).is_some()
}

/// Whether a character begins a number in a name: `2020`, `(1)`.
fn is_number(c: char) -> bool {
    c.is_ascii_digit() || c == '('
}

/// Whether a text begins as the words of a title do.
fn begins_title(text: &str) -> bool {
    text.starts_with(|c: char| c.is_uppercase() || is_number(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_paths_in_one_rule_are_named_with_the_rules_to_write() {
        for (content, rules) in [
            ("src/**, docs/**", "`Edit(src/**)`, `Edit(docs/**)`"),
            ("src/** docs/**", "`Edit(src/**)`, `Edit(docs/**)`"),
            ("src/**;docs/**", "`Edit(src/**)`, `Edit(docs/**)`"),
            ("src/** | docs/**", "`Edit(src/**)`, `Edit(docs/**)`"),
            ("src/**,docs", "`Edit(src/**)`, `Edit(docs)`"),
            ("src/*, docs/*", "`Edit(src/*)`, `Edit(docs/*)`"),
            ("src/* docs/*", "`Edit(src/*)`, `Edit(docs/*)`"),
            ("src/, docs/", "`Edit(src/)`, `Edit(docs/)`"),
            ("src, docs/**", "`Edit(src)`, `Edit(docs/**)`"),
            ("src/main, lib/core", "`Edit(src/main)`, `Edit(lib/core)`"),
            (".env, .env.local", "`Edit(.env)`, `Edit(.env.local)`"),
            (".env | .env.local", "`Edit(.env)`, `Edit(.env.local)`"),
            (".env|.env.local", "`Edit(.env)`, `Edit(.env.local)`"),
            (".env .env.local", "`Edit(.env)`, `Edit(.env.local)`"),
            (".env,.env.local,*.pem", "`Edit(.env)`, `Edit(.env.local)`, `Edit(*.pem)`"),
            (".env, secrets", "`Edit(.env)`, `Edit(secrets)`"),
            ("*.pem, id_rsa", "`Edit(*.pem)`, `Edit(id_rsa)`"),
            ("id_rsa, *.pem", "`Edit(id_rsa)`, `Edit(*.pem)`"),
            ("*.pem *.key", "`Edit(*.pem)`, `Edit(*.key)`"),
            ("a.rs b.rs", "`Edit(a.rs)`, `Edit(b.rs)`"),
            ("src/a.rs src/b.rs", "`Edit(src/a.rs)`, `Edit(src/b.rs)`"),
            ("README.md, LICENSE.md", "`Edit(README.md)`, `Edit(LICENSE.md)`"),
            ("~/.ssh/**, ~/.aws/**", "`Edit(~/.ssh/**)`, `Edit(~/.aws/**)`"),
            ("//etc/passwd, //etc/shadow", "`Edit(//etc/passwd)`, `Edit(//etc/shadow)`"),
            ("My Documents/**, .env", "`Edit(My Documents/**)`, `Edit(.env)`"),
            (".env secrets", "`Edit(.env)`, `Edit(secrets)`"),
            ("id_rsa, id_dsa", "`Edit(id_rsa)`, `Edit(id_dsa)`"),
            ("config/.npmrc keys", "`Edit(config/.npmrc)`, `Edit(keys)`"),
            ("secrets|private", "`Edit(secrets)`, `Edit(private)`"),
        ] {
            let problem = joined_paths("Edit", content).unwrap_or_else(|| panic!("{content}"));
            let written = problem.fix.strip_prefix("write one rule for each: ").unwrap();
            assert!(written.starts_with(&format!("{rules}; ")), "{content}: {written}");
        }
    }

    #[test]
    fn blanks_and_commas_of_names_are_no_separators() {
        for content in [
            "My Documents/**",
            "docs/My Documents/**",
            "secrets of the trade",
            ".NET Core",
            "docs/release notes/*.md",
            "a,b.txt",
            "a b",
            "a b.txt",
            "Smith, John/**",
            "docs/Smith, John/letters/**",
            "Smith, John.pdf",
            "docs/Smith, John.pdf",
            "docs/Report, 2020/**",
            "1, A/**",
            "docs/a,b.txt",
            "Report,*.pdf",
            "Foo | Bar.pdf",
            "1,000 lines.txt",
            "v1.2, final.pdf",
            "*.c,v",
            "RCS/*,v",
            "Report *.pdf",
            "* copy.txt",
            "* *",
            "* - Copy*",
            "Learn .NET.pdf",
            "ASP .NET/**",
            "node.js projects/notes.md",
            "notes (1).txt",
            "it's, here",
            "[a, b].env",
            "{a.txt,b.txt}",
            "a.txt[,]b.txt",
            "a.txt\\ b.txt",
            ".env ",
            ".env,",
        ] {
            assert_eq!(joined_paths("Read", content), None, "{content}");
        }
    }

    proptest! {
        /// Words with blanks and commas between them, with directories before and an extension or stars behind.
        #[test]
        fn no_ordinary_name_is_taken_for_a_list(
            directories in proptest::collection::vec("([A-Z][a-z]{1,6}( |, | - | & )){0,2}[A-Z][a-z]{1,6}", 0..3),
            words in proptest::collection::vec("[A-Z][a-z]{0,6}|[0-9]{1,4}|\\([0-9]\\)", 1..4),
            separator in " |, |-|_| - ",
            end in "|\\.txt|\\.tar\\.gz|/\\*\\*|/\\*\\.md|\\*",
        ) {
            let name = words.join(&separator);
            let path = directories.into_iter().chain([name]).collect::<Vec<_>>().join("/");
            let path = format!("{path}{end}");
            prop_assert_eq!(joined_paths("Read", &path), None, "{}", path);
        }

        /// Small words with blanks only.
        #[test]
        fn no_blank_between_words_is_taken_for_a_separator(
            directories in proptest::collection::vec("[a-z]{1,6}( [a-z]{1,6}){0,2}", 0..3),
            name in "[a-z]{1,6}( [a-z]{1,6}){0,3}",
            end in "|\\.txt|/\\*\\*|/\\*\\.md|\\*",
        ) {
            let path = directories.into_iter().chain([name]).collect::<Vec<_>>().join("/");
            let path = format!("{path}{end}");
            prop_assert_eq!(joined_paths("Read", &path), None, "{}", path);
        }

        #[test]
        fn every_list_of_patterns_is_recognised(
            first in "\\.[a-z]{2,5}|\\*\\.[a-z]{2,4}|[a-z]{2,5}/\\*\\*|~/\\.[a-z]{2,4}/\\*\\*",
            second in "\\.[a-z]{2,5}|\\*\\.[a-z]{2,4}|[a-z]{2,5}/\\*\\*|//[a-z]{2,4}/[a-z]{2,4}",
            separator in " |,|, |;|; |\\|| \\| ",
        ) {
            let content = format!("{first}{separator}{second}");
            prop_assert!(joined_paths("Read", &content).is_some(), "{}", content);
        }
    }
}
