//! Judges the arguments of a program by its [`OptionTable`].
//!
//! Options are parsed as `getopt_long` does: clusters of letters, values attached or in the next word, and operands
//! between options, up to `--`.

use super::{OperandKind, OptionTable, OptionValueKind, ProgramUse};
use crate::shell_arg::ShellArg;
use toolgate_proto::PathScope;

/// What the options of one use say about its operands.
struct OperandScan<'a> {
    /// The arguments that are no options.
    operands: Vec<&'a ShellArg>,
    /// Directories are read with everything below them.
    tree: bool,
    /// An option gives the pattern, so that the first operand is a file.
    pattern_given: bool,
}

impl ProgramUse {
    /// Notes a live word that may turn out to be an option which does more than read. For a glob that depends on the
    /// files that exist, which the policy knows.
    pub(crate) fn add_possible_hazard(&mut self, arg: &ShellArg) {
        self.hazard = true;
        if arg.pattern.is_some() && !arg.emptied.starts_with('-') {
            self.option_globs.push(arg.clone());
        } else {
            self.read_only = false;
        }
    }
}

impl OptionTable {
    /// Judges the arguments of one use of the program.
    pub(crate) fn judge(&self, args: &[ShellArg]) -> ProgramUse {
        let mut used = ProgramUse {
            read_only: true,
            text: self.operands == OperandKind::Text,
            helpers: self.helpers,
            looks_in: self.looks_in,
            ..ProgramUse::default()
        };
        // Programs with response files expand `@file` in every argument, also after `--`.
        if self.at_files && args.iter().any(|arg| arg.text.trim_start_matches('"').starts_with('@')) {
            used.read_only = false;
        }
        let mut scan = OperandScan {
            operands: Vec::new(),
            tree: matches!(self.operands, OperandKind::Tree | OperandKind::PatternThenTree),
            pattern_given: false,
        };
        let mut options = true;
        let mut words = args.iter();
        while let Some(arg) = words.next() {
            if !options || !arg.may_be_option() {
                scan.operands.push(arg);
            } else if arg.live.is_some() {
                scan.operands.push(arg);
                self.note_live_option(arg, &mut used);
            } else if arg.text == "--" {
                options = false;
                // After `--` a revision is a path.
                if self.operands == OperandKind::Revisions {
                    used.reads.extend(words.by_ref().map(|path| (path.clone(), PathScope::Entry)));
                }
            } else if !self.whole_options.contains(&arg.text.as_str()) {
                let (value, attached) = self.parse_option(&arg.text, &mut scan, &mut used);
                self.add_option_value(value, attached, &mut words, &mut used);
            }
        }
        self.classify_operands(&scan, &mut used);
        used
    }

    /// Parses one argument of options; returns the kind of the last option's value, and the value if it is attached.
    ///
    /// An option that is not listed makes the use not read-only; whether it is also a hazard decides if a wildcard
    /// rule covers it.
    fn parse_option<'a>(
        &self,
        text: &'a str,
        scan: &mut OperandScan<'_>,
        used: &mut ProgramUse,
    ) -> (OptionValueKind, Option<&'a str>) {
        let Some(long) = text.strip_prefix("--") else {
            let cluster = text.strip_prefix('-').unwrap_or_default();
            scan.tree |= cluster.contains(|flag| self.tree.contains(flag));
            scan.pattern_given |= cluster
                .contains(|flag: char| self.pattern.split(' ').any(|option| option == flag.to_string()));
            return self.parse_cluster(cluster, used);
        };
        let (name, attached) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        scan.pattern_given |= self.pattern.split(' ').any(|option| option == name);
        scan.tree |= self.tree_long.split(' ').any(|option| option == name);
        let Some(value) = self.long_option_value(name, attached.is_some()) else {
            used.read_only = false;
            used.hazard |= self.is_long_hazard(name);
            return (OptionValueKind::None, None);
        };
        (value, attached)
    }

    /// Adds the value of an option, which is attached to it or the next word.
    fn add_option_value<'a>(
        &self,
        value: OptionValueKind,
        attached: Option<&str>,
        words: &mut impl Iterator<Item = &'a ShellArg>,
        used: &mut ProgramUse,
    ) {
        match (value, attached) {
            (OptionValueKind::None, _) | (OptionValueKind::Plain, Some(_)) => {}
            (OptionValueKind::Count, Some(count)) => used.read_only &= is_number(count),
            (OptionValueKind::Count, None) => {
                used.read_only &= words.next().and_then(ShellArg::known).is_some_and(is_number);
            }
            (OptionValueKind::NameOrFile, Some(name)) => {
                let file = Some(ShellArg::literal(name)).filter(|_| name.contains('/'));
                used.reads.extend(file.map(|file| (file, PathScope::Entry)));
            }
            (OptionValueKind::NameOrFile, None) => {
                let next = words.next();
                // An unknown name may contain a slash.
                used.read_only &= next.is_some_and(|name| !name.splits);
                let file = next.filter(|name| name.known().is_none_or(|text| text.contains('/')));
                used.reads.extend(file.map(|file| (file.clone(), PathScope::Entry)));
            }
            (OptionValueKind::File, Some(file)) => {
                used.reads.push((ShellArg::literal(file), PathScope::Entry))
            }
            (OptionValueKind::Plain | OptionValueKind::File, None) => {
                let next = words.next();
                match next {
                    // A value that may split into several words may become files and options.
                    Some(next) if next.splits && next.pattern.is_none() && self.hazards.is_empty() => {
                        used.maybe_unknown_option = true;
                    }
                    Some(next) => used.read_only &= !next.splits,
                    None => used.read_only = false,
                }
                if value == OptionValueKind::File {
                    used.reads.extend(next.map(|file| (file.clone(), PathScope::Entry)));
                }
            }
        }
    }

    /// Notes a live word that may turn out to be an option.
    ///
    /// With a hazard among the options of the program, the unknown word may be that one.
    fn note_live_option(&self, arg: &ShellArg, used: &mut ProgramUse) {
        if !self.hazards.is_empty() {
            used.add_possible_hazard(arg);
            return;
        }
        if self.operands == OperandKind::Text {
            return;
        }
        // A file name may begin with a dash. That is harmless if no option of the program is a hazard.
        let never_option = |value: &ShellArg| value.pattern.is_some() || !value.may_be_option();
        let known = !arg.one_of.is_empty() && arg.one_of.iter().all(never_option);
        used.maybe_unknown_option |= arg.pattern.is_none() && !known;
    }

    /// Parses a cluster of short options; returns the kind of the last option's value, and the value if it is
    /// attached.
    ///
    /// In `-nrk2` the letters before the first one with a value are flags, and the rest is that value.
    fn parse_cluster<'a>(
        &self,
        cluster: &'a str,
        used: &mut ProgramUse,
    ) -> (OptionValueKind, Option<&'a str>) {
        if self.hazards.iter().any(|hazard| hazard.strip_prefix('-') == Some(cluster)) {
            used.read_only = false;
            used.hazard = true;
            return (OptionValueKind::None, None);
        }
        if self.is_count(cluster) {
            return (OptionValueKind::None, None);
        }
        let mut rest = cluster.chars();
        while let Some(flag) = rest.next() {
            let after = Some(rest.as_str()).filter(|after| !after.is_empty());
            if self.flags.contains(flag) {
                continue;
            }
            if self.attached.contains(flag) {
                return (OptionValueKind::None, None);
            }
            // In the letters after a value there may be an option that is not listed, and its value moves all others.
            if self.values_in_next_word
                && self.valued.contains(flag)
                && after.is_some_and(|after| !is_number(after))
            {
                used.read_only = false;
                used.hazard |= rest.any(|flag| self.is_short_hazard(flag));
                return (OptionValueKind::None, None);
            }
            if self.valued.contains(flag) {
                return (OptionValueKind::Plain, after);
            }
            if self.counts.contains(flag) {
                return (OptionValueKind::Count, after);
            }
            if self.names_or_files.contains(flag) {
                return (OptionValueKind::NameOrFile, after);
            }
            if self.files.contains(flag) {
                return (OptionValueKind::File, after);
            }
            used.read_only = false;
            used.hazard |= self.is_short_hazard(flag) || rest.any(|flag| self.is_short_hazard(flag));
            return (OptionValueKind::None, None);
        }
        (OptionValueKind::None, None)
    }

    /// Decides what the operands name, and whether their number is allowed.
    ///
    /// Files are read alone or with everything below them, by the kind of the table and the options for recursion.
    fn classify_operands(&self, scan: &OperandScan<'_>, used: &mut ProgramUse) {
        let operands = scan.operands.as_slice();
        // A word that may split may be one operand too many.
        let countable = self.max_operands == usize::MAX || !operands.iter().any(|operand| operand.splits);
        used.read_only &= countable && operands.len() <= self.max_operands;
        let is_subcommand =
            |operand: &&ShellArg| operand.known().is_some_and(|text| self.not_operands.contains(&text));
        used.read_only &= !operands.iter().any(is_subcommand);
        let scope = if scan.tree { PathScope::Tree } else { PathScope::Entry };
        let files: &[&ShellArg] = match self.operands {
            OperandKind::Text => &[],
            OperandKind::Nothing => {
                used.read_only &= operands.is_empty();
                &[]
            }
            OperandKind::Files => operands,
            OperandKind::Here | OperandKind::Tree => {
                if operands.is_empty() {
                    used.here = Some(scope);
                }
                operands
            }
            OperandKind::PatternThenFiles | OperandKind::PatternThenTree => {
                let files = match operands.split_first() {
                    Some((pattern, files)) if !scan.pattern_given => {
                        self.check_pattern(pattern, used);
                        files
                    }
                    Some(_) | None => operands,
                };
                if files.is_empty() && scan.tree {
                    used.here = Some(scope);
                }
                files
            }
            OperandKind::Revisions => {
                for operand in operands {
                    used.read_only &= operand.live.is_none() || operand.pattern.is_some();
                    if operand.tilde || operand.text.starts_with(['/', '.']) || operand.text.contains("/..") {
                        used.reads.push(((*operand).clone(), PathScope::Entry));
                    }
                }
                &[]
            }
        };
        used.reads.extend(files.iter().map(|file| ((*file).clone(), scope)));
    }

    /// Checks an operand that is a pattern: if it may split, its second word may be a file.
    fn check_pattern(&self, pattern: &ShellArg, used: &mut ProgramUse) {
        if pattern.splits && pattern.pattern.is_none() && self.hazards.is_empty() {
            used.maybe_unknown_option = true;
        } else {
            used.read_only &= !pattern.splits;
        }
    }
}

/// Whether a text consists of digits.
fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
