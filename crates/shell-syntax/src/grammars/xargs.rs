//! `xargs`: options, then a command to which words from the input are appended.

use crate::analysis::ShellExpansionKind;
use crate::shell_arg::ShellArg;
use std::slice::Iter;

/// What the arguments of `xargs` say.
pub(crate) struct XargsUse {
    /// The command as it would run, with an unknown word for those from the input.
    pub(crate) payload: Vec<ShellArg>,
    /// The files that it reads words from, instead of its input.
    pub(crate) reads: Vec<ShellArg>,
}

/// The options of `xargs` that matter for its command.
#[derive(Default)]
struct XargsOptions {
    /// The text that is replaced with words from the input (`-I`).
    placeholder: Option<String>,
    /// The files that words are read from (`-a`).
    reads: Vec<ShellArg>,
}

/// Parses the arguments of `xargs`; `None` if an option is not known, or if no command follows.
///
/// With `-I` the input replaces a placeholder in the words; without it, it is appended as further words, which may be
/// options.
pub(crate) fn parse_xargs(args: &[ShellArg]) -> Option<XargsUse> {
    let mut options = XargsOptions::default();
    let mut words = args.iter();
    let command = loop {
        let rest = words.as_slice();
        let Some(text) = words.next()?.known() else { break rest };
        if text == "--" {
            break words.as_slice();
        }
        if !text.starts_with('-') || text.len() < 2 {
            break rest;
        }
        match text.strip_prefix("--") {
            Some(long) => options.parse_long_option(long, &mut words)?,
            None => options.parse_cluster(text.trim_start_matches('-'), &mut words)?,
        }
    };
    let XargsOptions { placeholder, reads } = options;
    let (program, _) = command.split_first()?;
    let Some(placeholder) = placeholder else {
        let added = ShellArg {
            text: "…".to_owned(),
            live: Some(ShellExpansionKind::Substitution),
            splits: true,
            ..ShellArg::default()
        };
        return Some(XargsUse { payload: command.iter().cloned().chain([added]).collect(), reads });
    };
    if placeholder.is_empty() || program.text.contains(&placeholder) {
        return None;
    }
    let payload = command.iter().map(|arg| replace_placeholder(arg, &placeholder)).collect();
    Some(XargsUse { payload, reads })
}

/// Marks an argument with the placeholder as unknown; it remains one word.
///
/// Its first character is known unless the placeholder begins it, so that `--x={}` is a known option.
fn replace_placeholder(arg: &ShellArg, placeholder: &str) -> ShellArg {
    if !arg.text.contains(placeholder) {
        return arg.clone();
    }
    ShellArg {
        live: Some(ShellExpansionKind::Substitution),
        splits: false,
        emptied: arg.text.clone(),
        first_char_known: !arg.text.starts_with(placeholder),
        ..arg.clone()
    }
}

impl XargsOptions {
    /// Parses a long option; `None` if it is not known.
    fn parse_long_option(&mut self, long: &str, words: &mut Iter<'_, ShellArg>) -> Option<()> {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        match name {
            "null" | "no-run-if-empty" | "verbose" | "exit" if value.is_none() => {}
            "delimiter" | "max-args" | "max-chars" | "max-procs" => {
                if value.is_none() {
                    words.next()?.known()?;
                }
            }
            "max-lines" | "eof" => {}
            "replace" => self.placeholder = Some(value.unwrap_or("{}").to_owned()),
            "arg-file" => self.reads.push(match value {
                Some(file) => ShellArg::literal(file),
                None => words.next().filter(|file| !file.splits)?.clone(),
            }),
            _ => return None,
        }
        Some(())
    }

    /// Parses a cluster of short options; `None` if one of them is not known.
    fn parse_cluster(&mut self, cluster: &str, words: &mut Iter<'_, ShellArg>) -> Option<()> {
        let mut flags = cluster.chars();
        while let Some(flag) = flags.next() {
            let attached = Some(flags.as_str()).filter(|rest| !rest.is_empty()).map(str::to_owned);
            let mut value = || attached.clone().map(ShellArg::literal).or_else(|| words.next().cloned());
            match flag {
                '0' | 'r' | 't' | 'x' => continue,
                'n' | 'P' | 'L' | 's' | 'd' | 'E' => {
                    value()?.known()?;
                }
                'I' => self.placeholder = Some(value()?.known()?.to_owned()),
                'i' => self.placeholder = Some(attached.unwrap_or_else(|| "{}".to_owned())),
                // The value is optional, and always attached.
                'l' | 'e' => {}
                'a' => self.reads.push(value().filter(|file| !file.splits)?),
                _ => return None,
            }
            break;
        }
        Some(())
    }
}
