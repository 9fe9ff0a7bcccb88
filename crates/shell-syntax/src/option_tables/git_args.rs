//! Parses the arguments after a git subcommand by its option table: options with their values, operands, paths.
//!
//! [`OptionTable::judge`] only tells whether a use is read-only. Which files a git command shows depends on the options
//! themselves, so that they are kept here.

use super::{OptionTable, OptionValueKind};
use crate::shell_arg::ShellArg;
use crate::word_list::WordList;

/// Options whose value is the next word, and `HEAD` if there is none.
const DEFAULT_AT_END: WordList = WordList("contains no-contains merged no-merged points-at with without");

/// The arguments of one subcommand.
///
/// The order of options is kept, but nothing depends on it: an option that adds content wins over one that removes
/// it.
#[derive(Debug, Default)]
pub(super) struct GitArgs {
    /// Every option is listed, and every operand is known.
    pub(super) listed: bool,
    /// It has, or may have, an option that writes a file, runs a program or uses the network.
    pub(super) hazard: bool,
    /// The options in order, by name (one letter for a short one), with their values.
    pub(super) options: Vec<(String, Option<ShellArg>)>,
    /// Files that options name.
    pub(super) files: Vec<ShellArg>,
    /// Arguments before `--` that are no options: revisions or paths.
    pub(super) operands: Vec<ShellArg>,
    /// Arguments after `--`.
    pub(super) paths: Vec<ShellArg>,
    /// `--` separates operands and paths.
    pub(super) divided: bool,
    /// What may be the value of an option that is not listed, attached to it in a cluster.
    pub(super) unlisted_values: Vec<ShellArg>,
}

/// How many places of a cluster are tried for the beginning of a value.
const MAX_CLUSTER_VALUES: usize = 32;

impl GitArgs {
    /// Parses the arguments of a subcommand.
    pub(super) fn parse(table: &OptionTable, args: &[ShellArg]) -> Self {
        let mut out = Self { listed: true, ..Self::default() };
        let mut words = args.iter();
        while let Some(arg) = words.next() {
            if out.divided {
                out.paths.push(arg.clone());
                continue;
            }
            if !arg.may_be_option() {
                out.operands.push(arg.clone());
                continue;
            }
            if arg.live.is_some() {
                // It may become any option, and any number of words.
                out.listed = false;
                out.hazard |= !table.hazards.is_empty();
                out.operands.push(arg.clone());
                continue;
            }
            if arg.text == "--" {
                out.divided = true;
                continue;
            }
            let (name, takes, attached) = match arg.text.strip_prefix("--") {
                Some(long) => out.parse_long_option(table, long),
                None => out.parse_cluster(table, arg.text.strip_prefix('-').unwrap_or_default()),
            };
            let value = if takes == OptionValueKind::None || attached.is_some() {
                attached
            } else {
                let next = words.next().cloned();
                out.listed &= match &next {
                    Some(next) => !next.splits,
                    None => DEFAULT_AT_END.contains(&name),
                };
                next
            };
            if let (OptionValueKind::File, Some(file)) = (&takes, &value) {
                out.files.push(file.clone());
            }
            out.options.push((name, value));
        }
        // An unknown operand may be a revision of any form.
        let is_known = |arg: &ShellArg| arg.live.is_none() || arg.pattern.is_some();
        out.listed &= out.operands.iter().chain(&out.paths).all(is_known);
        out
    }

    /// Parses a long option; returns its name, the kind of its value, and the value if it is attached.
    fn parse_long_option(
        &mut self,
        table: &OptionTable,
        long: &str,
    ) -> (String, OptionValueKind, Option<ShellArg>) {
        let (name, attached) = match long.split_once('=') {
            Some((name, value)) => (name, Some(ShellArg::literal(value))),
            None => (long, None),
        };
        let value = table.long_option_value(name, attached.is_some()).unwrap_or_else(|| {
            self.listed = false;
            self.hazard |= table.is_long_hazard(name);
            OptionValueKind::None
        });
        (name.to_owned(), value, attached)
    }

    /// Parses a cluster of short options: adds all but the last one, which is returned with the kind of its value and
    /// the value if it is attached.
    fn parse_cluster(
        &mut self,
        table: &OptionTable,
        cluster: &str,
    ) -> (String, OptionValueKind, Option<ShellArg>) {
        if table.is_count(cluster) {
            return ("n".to_owned(), OptionValueKind::None, Some(ShellArg::literal(cluster)));
        }
        if cluster == "cc" && table.flags.contains('c') {
            return ("cc".to_owned(), OptionValueKind::None, None);
        }
        let mut rest = cluster.chars();
        while let Some(flag) = rest.next() {
            let after = Some(rest.as_str()).filter(|after| !after.is_empty()).map(ShellArg::literal);
            let name = flag.to_string();
            if table.flags.contains(flag) {
                self.options.push((name, None));
            } else if table.attached.contains(flag) {
                return (name, OptionValueKind::None, after);
            } else if table.valued.contains(flag) {
                return (name, OptionValueKind::Plain, after);
            } else if table.files.contains(flag) {
                return (name, OptionValueKind::File, after);
            } else {
                self.listed = false;
                self.unlisted_values.extend(cluster_values(rest.as_str()));
                self.hazard |= table.is_short_hazard(flag) || rest.any(|flag| table.is_short_hazard(flag));
                return (name, OptionValueKind::None, after);
            }
        }
        (String::new(), OptionValueKind::None, None)
    }

    /// Whether one of the options is used.
    pub(super) fn has(&self, names: WordList) -> bool {
        self.options.iter().any(|(name, _)| names.contains(name))
    }

    /// The values of the options with one of these names.
    pub(super) fn values(&self, names: WordList) -> impl Iterator<Item = &ShellArg> {
        self.options
            .iter()
            .filter(move |(name, _)| names.contains(name))
            .filter_map(|(_, value)| value.as_ref())
    }
}

/// What may be a value at the end of a cluster in which it is not known which letter takes one.
pub(super) fn cluster_values(cluster: &str) -> impl Iterator<Item = ShellArg> {
    cluster
        .char_indices()
        .take(MAX_CLUSTER_VALUES)
        .filter_map(|(at, _)| cluster.get(at..))
        .map(ShellArg::literal)
}
