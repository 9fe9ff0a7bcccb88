//! `xargs`: options, then a command to which words from the input are added.

use super::super::analysis::ShellExpansionKind;
use super::super::expand::ShellArg;

/// What the words of `xargs` come to.
pub(in super::super) struct XargsUse {
    /// The command as it would be run, with the words that are added.
    pub(in super::super) payload: Vec<ShellArg>,
    /// Files that it reads words from.
    pub(in super::super) reads: Vec<ShellArg>,
}

/// Reads the words; `None` if an option is not known, or if no command follows.
pub(in super::super) fn parse(args: &[ShellArg]) -> Option<XargsUse> {
    let mut reads = Vec::new();
    let mut replaced: Option<String> = None;
    let mut words = args.iter();
    let payload = loop {
        let rest = words.as_slice();
        let Some(text) = words.next()?.known() else { break rest };
        if text == "--" {
            break words.as_slice();
        }
        if !text.starts_with('-') || text.len() < 2 {
            break rest;
        }
        if let Some(long) = text.strip_prefix("--") {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            match name {
                "null" | "no-run-if-empty" | "verbose" | "exit" if value.is_none() => {}
                "delimiter" | "max-args" | "max-chars" | "max-procs" => {
                    if value.is_none() {
                        words.next()?.known()?;
                    }
                }
                "max-lines" | "eof" => {}
                "replace" => replaced = Some(value.unwrap_or("{}").to_owned()),
                "arg-file" => reads.push(match value {
                    Some(file) => ShellArg::literal(file),
                    None => words.next()?.clone(),
                }),
                _ => return None,
            }
            continue;
        }
        let mut cluster = text.trim_start_matches('-').chars();
        while let Some(flag) = cluster.next() {
            let attached = Some(cluster.as_str()).filter(|rest| !rest.is_empty()).map(str::to_owned);
            let mut value = || attached.clone().map(ShellArg::literal).or_else(|| words.next().cloned());
            match flag {
                '0' | 'r' | 't' | 'x' => continue,
                'n' | 'P' | 'L' | 's' | 'd' | 'E' => {
                    value()?.known()?;
                }
                'I' => replaced = Some(value()?.known()?.to_owned()),
                'i' => replaced = Some(attached.unwrap_or_else(|| "{}".to_owned())),
                // The value is optional, and attached if there is one.
                'l' | 'e' => {}
                'a' => reads.push(value()?),
                _ => return None,
            }
            break;
        }
    };
    let (program, _) = payload.split_first()?;
    if replaced.as_ref().is_some_and(|mark| mark.is_empty() || program.text.contains(mark.as_str())) {
        return None;
    }
    let unknown = |arg: &ShellArg| ShellArg {
        live: Some(ShellExpansionKind::Substitution),
        splits: false,
        emptied: arg.text.clone(),
        first_char_known: replaced.as_ref().is_some_and(|mark| !arg.text.starts_with(mark.as_str())),
        ..arg.clone()
    };
    let mut payload: Vec<ShellArg> = match &replaced {
        Some(mark) => payload
            .iter()
            .map(|arg| if arg.text.contains(mark.as_str()) { unknown(arg) } else { arg.clone() })
            .collect(),
        None => payload.to_vec(),
    };
    if replaced.is_none() {
        payload.push(ShellArg {
            text: "…".to_owned(),
            live: Some(ShellExpansionKind::Substitution),
            splits: true,
            ..ShellArg::default()
        });
    }
    Some(XargsUse { payload, reads })
}
