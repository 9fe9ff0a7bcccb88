//! The builtin `read`: sets variables to a line of its input.
//!
//! It is harmless if the variables steer no program. An argument that is not a plain name may have a subscript, which
//! bash evaluates.

use crate::shell_arg::ShellArg;

/// The variables that `read` sets; `None` if an option is not known or an argument is no valid name.
///
/// Without a name the line is stored in `REPLY`.
pub(crate) fn read_builtin_names(args: &[ShellArg]) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    let mut words = args.iter();
    let mut options = true;
    while let Some(word) = words.next() {
        let text = word.known()?;
        let Some(cluster) = text.strip_prefix('-').filter(|_| options && text.len() > 1) else {
            options = false;
            let first = text.starts_with(|first: char| first == '_' || first.is_ascii_alphabetic());
            let plain = |character: char| character == '_' || character.is_ascii_alphanumeric();
            if !first || !text.chars().all(plain) {
                return None;
            }
            names.push(text);
            continue;
        };
        if cluster == "-" {
            options = false;
            continue;
        }
        let mut flags = cluster.chars();
        while let Some(flag) = flags.next() {
            match flag {
                'r' | 's' => {}
                'd' | 'n' | 'N' | 'p' | 't' | 'u' => {
                    if flags.as_str().is_empty() {
                        words.next()?.known()?;
                    }
                    break;
                }
                _ => return None,
            }
        }
    }
    if names.is_empty() {
        names.push("REPLY");
    }
    Some(names)
}
