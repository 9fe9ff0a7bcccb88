//! Names that cannot be mistaken for others.

use unicode_normalization::UnicodeNormalization;

/// The longest name.
const MAX_NAME_CHARS: usize = 100;

/// Letters of other scripts that look like Latin ones, and what they look like.
const LOOK_ALIKES: &[(&str, &str)] = &[
    ("аАᎪΑ", "a"),
    ("вВΒ", "b"),
    ("сСϲ", "c"),
    ("ԁ", "d"),
    ("еЕΕ", "e"),
    ("һНΗ", "h"),
    ("іІιΙɩ", "i"),
    ("јЈ", "j"),
    ("кКκΚ", "k"),
    ("ӏⅼ", "l"),
    ("мМΜ", "m"),
    ("Ν", "n"),
    ("оОοΟօ", "o"),
    ("рРρΡ", "p"),
    ("ԛ", "q"),
    ("ѕЅ", "s"),
    ("тТτΤ", "t"),
    ("υս", "u"),
    ("ѵν", "v"),
    ("ԝω", "w"),
    ("хХχΧ", "x"),
    ("уУγΥ", "y"),
    ("Ζ", "z"),
];

/// Whether a name may stand for a skill, a command, an agent or a plugin; the error says why not.
///
/// A model sees only the characters of a name and a user only their shapes, so a name that looks like another one, or
/// that has characters which cannot be seen, is refused.
pub fn check_capability_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("the name is empty".to_owned());
    }
    if name.chars().count() > MAX_NAME_CHARS {
        return Err(format!("the name is longer than {MAX_NAME_CHARS} characters"));
    }
    let shown = escape_name(name);
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if let Some(bad) = name.chars().find(|c| !fits(*c)) {
        let bad = escape_name(&bad.to_string());
        return Err(format!(
            "the name `{shown}` has the character `{bad}`; use letters, digits, `-`, `_` and `.`"
        ));
    }
    if name.starts_with(['-', '.', ':']) || name.split(':').any(|part| part.is_empty() || part == "..") {
        return Err(format!("the name `{shown}` begins with `-`, `.` or `:`, or has an empty part"));
    }
    if name.is_ascii() {
        return Ok(());
    }
    if name.nfkc().collect::<String>() != name {
        return Err(format!(
            "the name `{shown}` has characters that look like others; write it with plain letters"
        ));
    }
    let is_look_alike = |c: char| LOOK_ALIKES.iter().any(|(letters, _)| letters.contains(c));
    let foreign: Vec<char> = name.chars().filter(|c| !c.is_ascii()).collect();
    let has_ascii_letters = name.chars().any(|c| c.is_ascii_alphabetic());
    // Mixed with Latin letters one look-alike is enough; a whole name must consist of them to be taken for another.
    let misleads = if has_ascii_letters {
        foreign.iter().any(|c| is_look_alike(*c))
    } else {
        foreign.iter().all(|c| is_look_alike(*c))
    };
    match misleads {
        true => Err(format!("the name `{shown}` has letters of another script that look like Latin ones")),
        false => Ok(()),
    }
}

/// A name with what is not ASCII written as its number, so that a message shows what a reader cannot see.
fn escape_name(name: &str) -> String {
    let escape = |c: char| match c {
        ' '..='~' => c.to_string(),
        other => other.escape_unicode().to_string(),
    };
    name.chars().take(MAX_NAME_CHARS).map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::check_capability_name;

    #[test]
    fn names_that_can_be_mistaken_for_others_are_refused() {
        for name in ["review", "a-b_c.d", "plugin:skill", "résumé", "überprüfen", "レビュー", "проверка"]
        {
            assert_eq!(check_capability_name(name), Ok(()), "{name}");
        }
        for name in [
            "",
            "-x",
            ".x",
            "..",
            "a:",
            "a::b",
            "a/b",
            "../x",
            "a b",
            "a\nb",
            "re\u{200B}view",
            "rеview",
            "ｒｅｖｉｅｗ",
            "сору",
            "a\u{202E}b",
            "x$(id)",
            "a`b",
        ] {
            assert!(check_capability_name(name).is_err(), "{name:?}");
        }
    }
}
