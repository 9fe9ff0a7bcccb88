//! Guesses which commands the arguments of a program contain.
//!
//! Guessing errs on the side of too many: each position at which a command may begin is one guess, and each string in a
//! piece of code is another.

use super::runner_entry::{COMMAND_OPTIONS, INTERPRETERS, RUNNERS, names_a_script};
use crate::parser;
use crate::shell_arg::ShellArg;
use crate::word_list::WordList;

/// How many positions of one command are tried, and how many strings of one piece of code.
const MAX_GUESSES: usize = 16;

/// The commands that a program may start.
#[derive(Debug, Default)]
pub(super) struct GuessedCommands {
    /// Words that may be a command: `curl x` of `npx curl x`.
    pub(super) words: Vec<Vec<ShellArg>>,
    /// Strings that a shell may run: the value of `--pre`, a string literal in `python -c`.
    pub(super) texts: Vec<String>,
    /// An option names a program, so that a wildcard rule for this program does not cover the use.
    pub(super) by_option: bool,
}

/// The commands that a use of a program may start; `None` if it is not known to start any.
pub(super) fn guess_commands(name: &str, args: &[ShellArg]) -> Option<GuessedCommands> {
    let mut guesses = GuessedCommands::default();
    if let Some(entry) = RUNNERS.iter().find(|entry| entry.programs.contains(name)) {
        guess_runner_commands(name, entry.words_before, args, &mut guesses);
    }
    for entry in COMMAND_OPTIONS.iter().filter(|entry| entry.programs.contains(name)) {
        guess_option_commands(entry.options, args, &mut guesses);
    }
    if matches!(name, "make" | "gmake") {
        guess_make_commands(args, &mut guesses);
    }
    match name {
        "socat" => guess_socat_commands(args, &mut guesses),
        "nc" | "ncat" | "netcat" => guess_netcat_commands(args, &mut guesses),
        "vim" | "vi" | "nvim" | "view" | "ex" | "gvim" | "vimdiff" => guess_vim_commands(args, &mut guesses),
        _ => {}
    }
    for entry in INTERPRETERS.iter().filter(|entry| entry.programs.contains(name)) {
        for code in interpreter_code(entry.options, args) {
            guesses.texts.extend(extract_strings(&code));
        }
    }
    if matches!(name, "awk" | "gawk" | "mawk" | "nawk") {
        guesses.texts.extend(args.iter().flat_map(|arg| extract_strings(&arg.text)));
    }
    if name == "git" {
        guess_git_commands(args, &mut guesses);
    }
    let found = !guesses.words.is_empty() || !guesses.texts.is_empty() || guesses.by_option;
    found.then_some(guesses)
}

/// Tries every position at which the command of a runner may begin.
///
/// For `docker exec -it web curl x` the guesses are `web curl x` and `curl x`, among others.
fn guess_runner_commands(name: &str, words_before: usize, args: &[ShellArg], guesses: &mut GuessedCommands) {
    let mut plain = 0;
    let mut after_option = false;
    for (at, arg) in args.iter().enumerate().take(MAX_GUESSES * 2) {
        // A string of several words is for a shell.
        if arg.text.contains([' ', '\t', '\n', ';', '|', '&']) && arg.live.is_none() {
            let text = arg.text.trim_start_matches(|first: char| first == '-' || first.is_ascii_alphabetic());
            guesses.texts.push(arg.text.clone());
            if let Some((_, value)) = text.split_once('=') {
                guesses.texts.push(value.to_owned());
            }
        }
        if arg.text == "--" {
            guesses.words.push(args.get(at + 1..).unwrap_or_default().to_vec());
            return;
        }
        if arg.text.starts_with('-') {
            after_option = true;
            continue;
        }
        if plain == 0 && names_a_script(name, &arg.text) {
            return;
        }
        if plain > words_before || guesses.words.len() >= MAX_GUESSES {
            return;
        }
        guesses.words.push(args.get(at..).unwrap_or_default().to_vec());
        // The word after an option may be its value, or the command. An assignment is neither (`cross-env A=b x`).
        plain += usize::from(!after_option && !is_assignment(&arg.text));
        after_option = false;
    }
}

/// Whether a word sets an environment variable for the command behind it.
fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| parser::is_name(name))
}

/// Guesses the commands in addresses of `socat`: `EXEC:cmd,pty`, `SYSTEM:cmd`, `SHELL:cmd`.
fn guess_socat_commands(args: &[ShellArg], guesses: &mut GuessedCommands) {
    for arg in args {
        // Both directions of one address may differ (`a!!b`).
        for address in arg.text.split("!!") {
            let Some((kind, command)) = address.split_once(':') else { continue };
            let kind = kind.to_ascii_lowercase();
            if matches!(kind.as_str(), "exec" | "system" | "shell" | "exec-v" | "shell-v") {
                guesses.by_option = true;
                guesses.texts.push(command.split(',').next().unwrap_or_default().to_owned());
            }
        }
    }
}

/// Guesses the commands of `nc -e` and `nc -c`, also at the end of a cluster of letters (`-lve`).
fn guess_netcat_commands(args: &[ShellArg], guesses: &mut GuessedCommands) {
    for (at, arg) in args.iter().enumerate() {
        let cluster = arg.text.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        let Some((_, attached)) = cluster.and_then(|letters| letters.split_once(['e', 'c'])) else {
            continue;
        };
        guesses.by_option = true;
        guesses.texts.push(attached.to_owned());
        guesses.texts.extend(args.get(at + 1).map(|value| value.text.clone()));
        guesses.words.push(args.get(at + 1..).unwrap_or_default().to_vec());
    }
}

/// Guesses the commands of `vim +cmd`. `+`, `+12` and `+/pattern` only move the cursor.
fn guess_vim_commands(args: &[ShellArg], guesses: &mut GuessedCommands) {
    for command in args.iter().filter_map(|arg| arg.text.strip_prefix('+')) {
        let moves = command.starts_with('/') || command.bytes().all(|byte| byte.is_ascii_digit());
        if !moves {
            guesses.by_option = true;
            guesses.texts.extend(extract_strings(command));
        }
    }
}

/// Guesses the commands that are values of options, attached or in the next word.
///
/// A letter may have its value attached (`-Igzip`), a long option after `=` or in the next word.
fn guess_option_commands(options: WordList, args: &[ShellArg], guesses: &mut GuessedCommands) {
    for (at, arg) in args.iter().enumerate() {
        let text = arg.text.as_str();
        for option in options.iter() {
            let (name, attached) = match text.split_once('=') {
                Some((name, value)) if option.len() > 2 && option.starts_with('-') => (name, Some(value)),
                _ => (text, None),
            };
            let is_long = option.starts_with("--") || option.len() > 2 && option.starts_with('-');
            let matched = name == option || is_long && name.len() >= 4 && option.starts_with(name);
            if matched && guesses.words.len() < MAX_GUESSES {
                guesses.by_option = true;
                match attached {
                    Some(value) => guesses.texts.push(without_key(value).to_owned()),
                    None => {
                        let rest = args.get(at + 1..).unwrap_or_default();
                        guesses.texts.extend(rest.first().map(|value| without_key(&value.text).to_owned()));
                        guesses.words.push(rest.to_vec());
                    }
                }
            } else if !is_long && !text.starts_with("--") {
                // Attached to its letter: `-Igzip`, `-oProxyCommand=x`, `+!x`.
                if let Some(value) = text.strip_prefix(option).filter(|value| !value.is_empty()) {
                    guesses.by_option = true;
                    guesses.texts.push(without_key(value).to_owned());
                }
            }
        }
    }
}

/// The command in a value such as `exec=touch x`, `ProxyCommand=x` or `:!x`.
fn without_key(value: &str) -> &str {
    let value = value.trim_start_matches([':', '!', ' ']);
    match value.split_once('=') {
        Some((key, command)) if key.chars().all(char::is_alphanumeric) => command,
        _ => value,
    }
}

/// Guesses the programs that variables on the command line of `make` name.
fn guess_make_commands(args: &[ShellArg], guesses: &mut GuessedCommands) {
    for arg in args {
        if let Some((variable, value)) = arg.text.split_once('=')
            && matches!(variable, "SHELL" | ".SHELLFLAGS" | "MAKEFLAGS" | "MAKE" | "CC" | "CXX")
        {
            guesses.texts.push(value.to_owned());
            guesses.by_option |= variable != "CC" && variable != "CXX";
        }
    }
}

/// The code in the arguments of an interpreter.
fn interpreter_code(options: WordList, args: &[ShellArg]) -> Vec<String> {
    let mut code = Vec::new();
    for (at, arg) in args.iter().enumerate() {
        for option in options.iter() {
            let in_cluster = !option.starts_with("--")
                && !arg.text.starts_with("--")
                && arg.text.starts_with('-')
                && option.chars().nth(1).is_some_and(|letter| arg.text.ends_with(letter));
            if arg.text == option {
                code.extend(args.get(at + 1).map(|value| value.text.clone()));
            } else if let Some(value) = arg.text.strip_prefix(option) {
                code.push(value.to_owned());
            } else if in_cluster {
                // The last letter of a cluster takes the value: `perl -ne`.
                code.extend(args.get(at + 1).map(|value| value.text.clone()));
            }
        }
    }
    code
}

/// The strings in a piece of code that may be shell commands: each string literal, the literals joined to one
/// command, and the text after the operators with which editors, Perl and Ruby run a command.
fn extract_strings(code: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(['\'', '"', '`']) {
        let Some(quote) = rest.get(at..).and_then(|rest| rest.chars().next()) else { break };
        let Some(after) = rest.get(at + 1..) else { break };
        let Some(end) = after.find(quote) else { break };
        found.extend(after.get(..end).map(str::to_owned));
        rest = after.get(end + 1..).unwrap_or_default();
        if found.len() >= MAX_GUESSES {
            break;
        }
    }
    // `["rm", "-rf", "x"]` is a command whose words are separate strings.
    let joined: Vec<String> =
        (0..found.len().min(4)).map(|from| found.get(from..).unwrap_or_default().join(" ")).collect();
    found.extend(joined);
    if let Some((_, command)) = code.split_once(['!', '`']) {
        found.push(command.trim_end_matches('`').to_owned());
    }
    if let Some((_, command)) = code.split_once(".shell ").or_else(|| code.split_once(".system ")) {
        found.push(command.to_owned());
    }
    // Expect and Tcl take words without quotes (`spawn git push`), Perl a list (`exec qw(git push)`).
    for call in ["exec", "spawn", "system"] {
        if let Some((_, command)) = code.split_once(call) {
            let is_mark = |sign: char| "()[]{}<>'\",;|!/".contains(sign);
            let words = command.split(is_mark).flat_map(str::split_whitespace);
            let words = words.skip_while(|word| matches!(*word, "qw" | "q" | "qq" | "-noecho" | "--"));
            found.push(words.collect::<Vec<_>>().join(" "));
        }
    }
    // Perl and Ruby run `qx{…}` and `%x(…)`.
    for opening in ["qx", "%x"] {
        if let Some((_, command)) = code.split_once(opening) {
            found.push(command.trim_matches(|sign: char| "{}()[]<>/|!;".contains(sign)).to_owned());
        }
    }
    found
}

/// Guesses the commands that subcommands and settings of git run.
fn guess_git_commands(args: &[ShellArg], guesses: &mut GuessedCommands) {
    let position = |word: &str| args.iter().position(|arg| arg.text == word);
    let after = |at: usize| args.get(at + 1..).unwrap_or_default();
    if position("rebase").is_some() {
        guess_rebase_commands(args, guesses);
    }
    if position("submodule").is_some()
        && let Some(at) = position("foreach")
    {
        let words: Vec<ShellArg> =
            after(at).iter().skip_while(|arg| arg.text.starts_with('-')).cloned().collect();
        guesses.texts.push(words.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join(" "));
        guesses.words.push(words);
        guesses.by_option = true;
    }
    if position("bisect").is_some()
        && let Some(at) = position("run")
    {
        guesses.words.push(after(at).to_vec());
        guesses.by_option = true;
    }
    if let Some(at) = position("filter-branch") {
        guesses.texts.extend(after(at).iter().map(|arg| arg.text.clone()));
        guesses.by_option = true;
    }
    let is_helper = |arg: &ShellArg| {
        arg.text.starts_with("credential") || arg.text.starts_with("remote-") || arg.text.contains("ext::")
    };
    guesses.by_option |= args.iter().any(is_helper);
    for arg in args {
        // `-c alias.x=!cmd`, `ext::cmd`.
        if let Some((_, command)) = arg.text.split_once("=!").or_else(|| arg.text.split_once("ext::")) {
            guesses.texts.push(command.to_owned());
        }
    }
}

/// Guesses the commands of `git rebase --exec`, also in a cluster (`-ix`) or abbreviated.
fn guess_rebase_commands(args: &[ShellArg], guesses: &mut GuessedCommands) {
    for (at, arg) in args.iter().enumerate() {
        let text = arg.text.as_str();
        let attached = if text.starts_with("--") {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            (name.len() > 2 && "--exec".starts_with(name)).then_some(value)
        } else {
            text.strip_prefix('-').and_then(|cluster| cluster.split_once('x')).map(|(_, value)| value)
        };
        let Some(value) = attached else { continue };
        guesses.by_option = true;
        match value {
            "" => guesses.texts.extend(args.get(at + 1).map(|next| next.text.clone())),
            value => guesses.texts.push(value.to_owned()),
        }
    }
}
