//! Small programs with odd arguments.

use super::super::analysis::ShellExpansionKind;
use super::super::expand::ShellArg;
use super::super::option_tables::ProgramUse;
use toolgate_proto::PathScope;

fn text_only_use() -> ProgramUse {
    ProgramUse { read_only: true, text: true, ..ProgramUse::default() }
}

/// `echo` prints whatever it is given.
pub(super) fn judge_echo(_args: &[ShellArg]) -> ProgramUse {
    text_only_use()
}

/// `printf` prints, unless `-v` makes it set a variable, whose subscript would be evaluated.
pub(super) fn judge_printf(args: &[ShellArg]) -> ProgramUse {
    match args.split_first() {
        Some((first, _)) if !first.may_be_option() => text_only_use(),
        Some((first, rest))
            if first.known() == Some("--") && rest.first().is_some_and(|format| format.live.is_none()) =>
        {
            text_only_use()
        }
        Some(_) => ProgramUse { hazard: true, unknown: true, text: true, ..ProgramUse::default() },
        None => ProgramUse::default(),
    }
}

/// `test` and `[`: looks at files and compares, unless `-v` or `-R` evaluate a subscript.
pub(super) fn judge_test(program: &str, args: &[ShellArg]) -> ProgramUse {
    let args = match (program, args.split_last()) {
        ("[", Some((last, rest))) if last.known() == Some("]") => rest,
        ("[", _) => return ProgramUse::default(),
        _ => args,
    };
    let mut used = ProgramUse { silent: true, ..text_only_use() };
    if (0..args.len()).any(|at| may_be_operator(args, at)) {
        used.read_only = false;
        used.unknown = true;
    }
    let mut words = args.iter().peekable();
    while let Some(word) = words.next() {
        // A word that splits can become an operator, and `-v` evaluates what follows it.
        used.maybe_unknown_option |= word.splits && word.pattern.is_none();
        match word.known() {
            Some("-v" | "-R") => {
                used.read_only = false;
                used.unknown = true;
            }
            Some(
                "-a" | "-b" | "-c" | "-d" | "-e" | "-f" | "-g" | "-h" | "-k" | "-L" | "-N" | "-O" | "-G"
                | "-p" | "-r" | "-s" | "-S" | "-u" | "-w" | "-x",
            ) => {
                if let Some(file) = words.peek() {
                    used.reads.push(((*file).clone(), PathScope::Entry));
                }
            }
            Some("-nt" | "-ot" | "-ef") => used.read_only = false,
            Some(_) | None => {}
        }
    }
    // Whether a file of unknown name exists is no secret worth a question, but which file is asked for stays unknown.
    used.reads.retain(|(file, _)| file.live.is_none());
    used
}

/// Whether a live word of a test stands where it may turn out to be `-v`, which evaluates the word after it.
fn may_be_operator(args: &[ShellArg], at: usize) -> bool {
    let known = |at: Option<usize>| at.and_then(|at| args.get(at)).and_then(ShellArg::known);
    let live = args.get(at).is_some_and(|word| {
        !matches!(word.live, None | Some(ShellExpansionKind::Harmless))
            && word.pattern.is_none()
            && !word.first_char_known
    });
    let compares = |text: &str| matches!(text, "=" | "==" | "!=" | "<" | ">") || text.starts_with('-');
    let is_operand =
        known(at.checked_add(1)).is_some_and(compares) || known(at.checked_sub(1)).is_some_and(compares);
    live && at + 1 < args.len() && !is_operand
}

/// `date` prints the time, unless a word that is no format sets the clock.
pub(super) fn judge_date(args: &[ShellArg]) -> ProgramUse {
    let mut used = text_only_use();
    let mut words = args.iter();
    while let Some(arg) = words.next() {
        match arg.known() {
            Some(
                "-u" | "--utc" | "--universal" | "-R" | "--rfc-email" | "--debug" | "--help" | "--version",
            ) => {}
            Some("-d" | "--date") => used.read_only &= words.next().is_some_and(|value| !value.splits),
            Some("-r" | "--reference") => {
                used.reads.extend(words.next().map(|file| (file.clone(), PathScope::Entry)))
            }
            Some(text) if text.starts_with('+') || text.starts_with("-I") || text.starts_with("-d") => {}
            Some(text)
                if ["--date=", "--iso-8601", "--rfc-3339="].iter().any(|option| text.starts_with(option)) => {
            }
            Some(text) => {
                used.read_only = false;
                used.hazard |= text.starts_with("-s") || text.starts_with("--s");
            }
            None => {
                used.read_only &= arg.emptied().starts_with('+')
                    && !arg.splits
                    && arg.live != Some(ShellExpansionKind::Glob)
            }
        }
    }
    used
}

/// `ps` lists processes, unless it is told to print their environments.
pub(super) fn judge_ps(args: &[ShellArg]) -> ProgramUse {
    let mut used = text_only_use();
    let mut words = args.iter();
    while let Some(arg) = words.next() {
        let Some(text) = arg.known() else {
            used.read_only = false;
            continue;
        };
        let harmless = match text {
            "-o" | "-O" | "o" | "O" | "-p" | "-u" | "-U" | "-C" | "-g" | "-G" | "-t" | "--sort"
            | "--ppid" | "--pid" | "--user" | "-eo" | "-Ao" | "axo" | "-axo" | "--format" => {
                words.next().and_then(ShellArg::known).is_some_and(|value| !value.contains("env"))
            }
            "--forest" | "--no-headers" | "--headers" | "--help" | "--version" => true,
            _ if text.starts_with("--sort=") || text.starts_with("--ppid=") || text.starts_with("--pid=") => {
                true
            }
            _ if text.starts_with("--") => false,
            _ => match text.strip_prefix('-') {
                Some(cluster) => cluster.chars().all(|flag| "AaefFlHjLNTMcwdxy".contains(flag)),
                None => text.chars().all(|flag| "auxwflhsvjTrn".contains(flag) || flag.is_ascii_digit()),
            },
        };
        used.read_only &= harmless;
    }
    used
}

/// `cd` changes only where the rest of the line runs, which the walk keeps track of.
pub(super) fn judge_cd(args: &[ShellArg]) -> ProgramUse {
    let operands: Vec<&ShellArg> =
        args.iter().skip_while(|arg| matches!(arg.text.as_str(), "-L" | "-P" | "--")).collect();
    match operands.as_slice() {
        [] => ProgramUse { read_only: true, ..ProgramUse::default() },
        [directory] if directory.live.is_none() && directory.text != "-" => ProgramUse {
            read_only: !directory.text.starts_with('-'),
            reads: vec![((*directory).clone(), PathScope::Entry)],
            ..ProgramUse::default()
        },
        _ => ProgramUse { unknown: true, ..ProgramUse::default() },
    }
}

/// `xxd` has a way of its own with options: none after the first file, and the second file is written.
pub(super) fn judge_xxd(args: &[ShellArg]) -> ProgramUse {
    let mut used = ProgramUse::default();
    let mut words = args.iter().peekable();
    while let Some(option) = words.next_if(|arg| arg.text.starts_with('-') && arg.text.len() > 1) {
        match option.known() {
            Some("-a" | "-b" | "-e" | "-i" | "-p" | "-ps" | "-plain" | "-u" | "-C" | "-h" | "-v") => {}
            Some("-c" | "-g" | "-l" | "-o" | "-s") => {
                let number = |text: &str| {
                    text.chars().all(|character| character.is_ascii_hexdigit() || "x+-".contains(character))
                };
                if !words.next().and_then(ShellArg::known).is_some_and(number) {
                    return used;
                }
            }
            Some(_) | None => {
                used.hazard = option.text.starts_with("-r");
                return used;
            }
        }
    }
    let files: Vec<&ShellArg> = words.collect();
    used.read_only = matches!(files.as_slice(), [] | [_])
        && files.iter().all(|file| !file.splits && !file.may_be_option());
    used.reads = files.into_iter().map(|file| (file.clone(), PathScope::Entry)).collect();
    used
}

/// The variables that the builtin `read` sets; `None` if an option is not known or a word is no plain name.
pub(in super::super) fn read_builtin_names(args: &[ShellArg]) -> Option<Vec<&str>> {
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

/// The variables whose values `printenv` or `declare -p` is asked for; `None` if it is used in another way.
pub(in super::super) fn printed_variables<'a>(program: &str, args: &'a [ShellArg]) -> Option<Vec<&'a str>> {
    let names = match (program, args.split_first()) {
        ("printenv", Some(_)) => args,
        ("declare" | "typeset", Some((option, names))) if option.known() == Some("-p") => names,
        _ => return None,
    };
    let plain = |name: &&str| {
        !name.is_empty()
            && name.chars().all(|character| character == '_' || character.is_ascii_alphanumeric())
    };
    let names: Option<Vec<&str>> = names.iter().map(|name| name.known().filter(plain)).collect();
    names.filter(|names| !names.is_empty())
}
