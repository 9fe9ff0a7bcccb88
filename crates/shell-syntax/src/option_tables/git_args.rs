//! The words after a git subcommand, taken apart by its entry: options with their values, operands, paths.

use super::super::expand::ShellArg;
use super::OptionTable;

/// Options whose value is the next word, but may be missing at the end.
const DEFAULT_AT_END: &[&str] =
    &["contains", "no-contains", "merged", "no-merged", "points-at", "with", "without"];

/// What the words of one use come to.
#[derive(Debug, Default)]
pub(super) struct GitArgs {
    /// Every option is one that the entry lists.
    pub(super) listed: bool,
    /// An option was seen, or may be there, that writes, runs or sends something.
    pub(super) hazard: bool,
    /// The options by name (one letter for short ones), with their values.
    pub(super) options: Vec<(String, Option<ShellArg>)>,
    /// Files that options name.
    pub(super) files: Vec<ShellArg>,
    /// Other words: revisions, or paths.
    pub(super) operands: Vec<ShellArg>,
    /// Words after `--`.
    pub(super) paths: Vec<ShellArg>,
    /// `--` was there.
    pub(super) divided: bool,
}

enum GitOptionValueKind {
    Nothing,
    Value,
    File,
}

impl GitArgs {
    /// Takes the words apart.
    pub(super) fn parse(entry: &OptionTable, args: &[ShellArg]) -> Self {
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
                // It may be any option, and any number of words.
                out.listed = false;
                out.hazard |= !entry.hazards.is_empty();
                out.operands.push(arg.clone());
                continue;
            }
            if arg.text == "--" {
                out.divided = true;
                continue;
            }
            let (name, takes, attached) = match arg.text.strip_prefix("--") {
                Some(long) => out.parse_long_option(entry, long),
                None => out.parse_cluster(entry, arg.text.strip_prefix('-').unwrap_or_default()),
            };
            let value = match (&takes, attached) {
                (GitOptionValueKind::Nothing, attached)
                | (GitOptionValueKind::Value | GitOptionValueKind::File, attached @ Some(_)) => attached,
                (GitOptionValueKind::Value | GitOptionValueKind::File, None) => {
                    let next = words.next().cloned();
                    out.listed &= match &next {
                        Some(next) => !next.splits,
                        None => DEFAULT_AT_END.contains(&name.as_str()),
                    };
                    next
                }
            };
            if let (GitOptionValueKind::File, Some(file)) = (&takes, &value) {
                out.files.push(file.clone());
            }
            out.options.push((name, value));
        }
        // An operand whose value is not known may be a revision of any form.
        let told = |arg: &ShellArg| arg.live.is_none() || arg.pattern.is_some();
        out.listed &= out.operands.iter().chain(&out.paths).all(told);
        out
    }

    fn parse_long_option(
        &mut self,
        entry: &OptionTable,
        long: &str,
    ) -> (String, GitOptionValueKind, Option<ShellArg>) {
        let (name, attached) = match long.split_once('=') {
            Some((name, value)) => (name, Some(ShellArg::literal(value))),
            None => (long, None),
        };
        let mut known = entry.long.split_ascii_whitespace().chain(entry.more_long.split_ascii_whitespace());
        let kind = known.find_map(|spec| {
            let rest = spec.strip_prefix(name)?;
            matches!(rest, "" | "=" | "?" | "<").then_some(rest)
        });
        let takes = match kind {
            Some("") if attached.is_none() => GitOptionValueKind::Nothing,
            Some("?") => GitOptionValueKind::Nothing,
            Some("=") => GitOptionValueKind::Value,
            Some("<") => GitOptionValueKind::File,
            Some(_) | None => {
                self.listed = false;
                self.hazard |= entry.hazards.iter().any(|hazard| {
                    hazard.strip_prefix("--").is_some_and(|full| !name.is_empty() && full.starts_with(name))
                });
                GitOptionValueKind::Nothing
            }
        };
        (name.to_owned(), takes, attached)
    }

    /// A cluster of short options; every one but the last is noted here.
    fn parse_cluster(
        &mut self,
        entry: &OptionTable,
        cluster: &str,
    ) -> (String, GitOptionValueKind, Option<ShellArg>) {
        let is_hazard = |flag: char| {
            entry
                .hazards
                .iter()
                .any(|hazard| hazard.strip_prefix('-').is_some_and(|rest| rest.chars().eq([flag])))
        };
        if entry.numbers && !cluster.is_empty() && cluster.bytes().all(|byte| byte.is_ascii_digit()) {
            return ("n".to_owned(), GitOptionValueKind::Nothing, Some(ShellArg::literal(cluster)));
        }
        if cluster == "cc" && entry.flags.contains('c') {
            return ("cc".to_owned(), GitOptionValueKind::Nothing, None);
        }
        let mut rest = cluster.chars();
        while let Some(flag) = rest.next() {
            let after = Some(rest.as_str()).filter(|after| !after.is_empty()).map(ShellArg::literal);
            let name = flag.to_string();
            if entry.flags.contains(flag) {
                self.options.push((name, None));
            } else if entry.attached.contains(flag) {
                return (name, GitOptionValueKind::Nothing, after);
            } else if entry.valued.contains(flag) {
                return (name, GitOptionValueKind::Value, after);
            } else if entry.files.contains(flag) {
                return (name, GitOptionValueKind::File, after);
            } else {
                self.listed = false;
                self.hazard |= is_hazard(flag) || rest.any(is_hazard);
                return (name, GitOptionValueKind::Nothing, after);
            }
        }
        (String::new(), GitOptionValueKind::Nothing, None)
    }

    /// Whether one of the options is there.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.options.iter().any(|(name, _)| names.contains(&name.as_str()))
    }

    /// The values of an option.
    pub(super) fn values(&self, names: &[&str]) -> impl Iterator<Item = &ShellArg> {
        self.options
            .iter()
            .filter(move |(name, _)| names.contains(&name.as_str()))
            .filter_map(|(_, value)| value.as_ref())
    }
}
