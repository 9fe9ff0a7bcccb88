//! Folding of names: case, Unicode compatibility forms and invisible characters are removed.
//!
//! Protected names, deny rules and ask rules apply to every spelling that some file system treats as the same name, on
//! every platform, because the tree may be copied to such a file system. Allow rules compare exact names: a folded
//! comparison would allow more than their author wrote.
//!
//! `.GIT`, `.git.`, `.g\u{200c}it` and `．git` (with a full-width dot) all fold to `.git`.

use std::borrow::Cow;
use unicode_normalization::UnicodeNormalization;

/// Folds one name: NFKC, lower case, without code points that file systems ignore, and without the trailing dots and
/// spaces that Windows drops. The result is one name: it is never empty and never contains a slash.
pub(crate) fn fold_name(name: &str) -> Cow<'_, str> {
    let folded = fold(name);
    if folded.is_empty() { Cow::Borrowed(name) } else { folded }
}

/// Folds a name, which may leave nothing of it.
fn fold(name: &str) -> Cow<'_, str> {
    if !name.bytes().all(is_simple) {
        return trim_end(Cow::Owned(fold_any(name)));
    }
    trim_end(lower(name))
}

/// Lower case of a name that is simple throughout.
fn lower(simple: &str) -> Cow<'_, str> {
    let has_capitals = simple.bytes().any(|byte| byte.is_ascii_uppercase());
    if has_capitals { Cow::Owned(simple.to_ascii_lowercase()) } else { Cow::Borrowed(simple) }
}

/// Whether folding changes the byte in no other way than by case.
fn is_simple(byte: u8) -> bool {
    byte.is_ascii() && !byte.is_ascii_control()
}

/// The slow path for any name, before its end is trimmed.
fn fold_any(name: &str) -> String {
    name.nfkc()
        .filter(|c| !is_ignorable(*c))
        .flat_map(char::to_lowercase)
        // Lower-casing can produce a combining character again (`İ` gives `i` and a combining dot).
        .filter(|c| *c != '\u{307}')
        .collect::<String>()
        .nfkc()
        // The compatibility form of `℀` contains a slash, which would split the name.
        .map(|c| if c == '/' { '\u{2215}' } else { c })
        .collect()
}

/// Folds each name of a path in text form.
pub(crate) fn fold_path(path: &str) -> Cow<'_, str> {
    // A search calls this for every file, and nearly every path is simple: one pass over its bytes decides.
    if is_simple_path(path.as_bytes()) {
        return lower(path);
    }
    if path
        .split('/')
        .all(|name| matches!(fold_name(name), Cow::Borrowed(folded) if folded.len() == name.len()))
    {
        return Cow::Borrowed(path);
    }
    let mut out = String::with_capacity(path.len());
    for (at, name) in path.split('/').enumerate() {
        if at > 0 {
            out.push('/');
        }
        out.push_str(&fold_name(name));
    }
    Cow::Owned(out)
}

/// Whether a path is ASCII without control characters, and no name in it ends in a dot or a space.
fn is_simple_path(path: &[u8]) -> bool {
    let next = path.iter().skip(1).chain(b"/");
    path.iter()
        .zip(next)
        .all(|(byte, next)| is_simple(*byte) && !(*next == b'/' && matches!(byte, b'.' | b' ')))
}

/// Removes the trailing dots and spaces that Windows drops; `..` stays.
fn trim_end(name: Cow<'_, str>) -> Cow<'_, str> {
    let is_dropped = |c: char| c == '.' || c.is_whitespace();
    if !name.ends_with(is_dropped) || name.chars().all(|c| c == '.') {
        return name;
    }
    match name {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim_end_matches(is_dropped)),
        Cow::Owned(text) => Cow::Owned(text.trim_end_matches(is_dropped).to_owned()),
    }
}

/// Whether some file systems ignore the code point when they compare names.
pub(crate) fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
        || c.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_spelling_of_a_name_folds_to_it() {
        for (spelled, name) in [
            (".git", ".git"),
            (".GIT", ".git"),
            (".g\u{200c}it", ".git"),
            ("\u{ff0e}git", ".git"),
            (".git. .", ".git"),
            (".env\u{a0}", ".env"),
            ("\u{212a}ey", "key"),
            ("\u{130}d", "id"),
            ("...", "..."),
            ("..", ".."),
            ("a..b", "a..b"),
            ("日本語.md", "日本語.md"),
            ("\u{200b}", "\u{200b}"),
            (" ", " "),
            ("x\u{2100}b", "xa\u{2215}cb"),
        ] {
            assert_eq!(fold_name(spelled), name, "{spelled:?}");
        }
        assert_eq!(fold_path("/WS/a/.Env."), "/ws/a/.env");
        assert_eq!(fold_path("/WS/README.md"), "/ws/readme.md");
        assert!(matches!(fold_path("/ws/a.b/c"), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn the_fast_path_gives_the_result_of_the_slow_one(path in "(/[ -~]{0,6}|/[A-C.]{1,3}|/[ -~é\u{2100}İ]{1,4}){1,4}") {
            let slow: Vec<String> = path
                .split('/')
                .map(|name| {
                    let folded = trim_end(Cow::Owned(fold_any(name))).into_owned();
                    if folded.is_empty() { name.to_owned() } else { folded }
                })
                .collect();
            prop_assert_eq!(fold_path(&path), slow.join("/"));
        }
    }
}
