//! Programs that run another program: where its command begins in their arguments.
//!
//! A transparent wrapper, such as `timeout 5`, runs exactly the command behind it, so that a rule for the command
//! covers it. Any other wrapper changes what runs or as whom, and needs a rule of its own.

use crate::shell_arg::ShellArg;
use crate::word_list::WordList;

/// Shells: `-c` takes shell code, and without a file they read it from standard input.
pub(crate) const SHELLS: WordList = WordList("sh bash dash zsh ksh mksh ash rbash fish csh tcsh yash posh");

/// Programs that no wildcard rule covers, because the command that they run is what matters.
pub(crate) const NEVER_BY_WILDCARD: WordList =
    WordList("watch setsid ionice flock sudo doas su pkexec exec source .");

/// How many options of its own a wrapper may have.
const MAX_WRAPPER_OPTIONS: usize = 16;

/// What a wrapper runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WrapperPayload {
    /// The arguments from this position on: 1 for `env A=b cmd`.
    Words(usize),
    /// A string of shell code; `None` if it is not known.
    Text(Option<String>),
    /// No command in the arguments.
    Nothing,
}

/// How many arguments of a transparent wrapper come before its command; `None` if it is not transparent.
/// A wrapper with an option that is not known is not.
///
/// `xargs` counts as transparent without options; the words that it appends are added by the caller.
pub(crate) fn skip_transparent_wrapper(name: &str, args: &[ShellArg]) -> Option<usize> {
    let literal: Vec<&str> = args.iter().take(MAX_WRAPPER_OPTIONS).map_while(ShellArg::known).collect();
    let skip = match name {
        "nohup" | "builtin" | "noglob" => usize::from(literal.first() == Some(&"--")),
        "command" => literal.iter().take_while(|word| matches!(**word, "-p" | "--")).count(),
        "time" => literal.iter().take_while(|word| matches!(**word, "-p" | "--")).count(),
        "nice" => count_options(&literal, "n", &["--adjustment="], true)?,
        "timeout" => {
            count_options(
                &literal,
                "ks",
                &["--kill-after=", "--signal=", "--foreground", "--preserve-status", "--verbose", "-v"],
                false,
            )? + 1
        }
        "stdbuf" => count_options(&literal, "ioe", &["--input=", "--output=", "--error="], false)?,
        "xargs" => 0,
        _ => return None,
    };
    let command = args.get(skip)?;
    if args.iter().take(skip).any(may_move_command) {
        return None;
    }
    (!command.may_be_option() || command.live.is_some()).then_some(skip)
}

/// Whether an argument before the command of a wrapper may be none, several or an option, so that the command begins
/// elsewhere: `x='1 rm'; timeout $x cat f` runs `rm`.
pub(crate) fn may_move_command(arg: &ShellArg) -> bool {
    arg.live.is_some() && (arg.splits || arg.may_be_option())
}

/// Counts the leading options: short ones with a value (`valued`), the `known` long ones, and `-5` if `numbers`.
/// `None` if another option is among them.
fn count_options(words: &[&str], valued: &str, known: &[&str], numbers: bool) -> Option<usize> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        if !word.starts_with('-') || *word == "-" {
            break;
        }
        if *word == "--" {
            return Some(at + 1);
        }
        let is_known = known
            .iter()
            .any(|option| if option.ends_with('=') { word.starts_with(option) } else { word == option });
        let mut letters = word.chars().skip(1);
        let takes_value = letters.next().is_some_and(|flag| valued.contains(flag));
        at += if is_known || (numbers && word.bytes().skip(1).all(|byte| byte.is_ascii_digit())) {
            1
        } else if takes_value {
            if letters.next().is_some() { 1 } else { 2 }
        } else {
            return None;
        };
    }
    Some(at)
}

/// How the arguments of a wrapper are parsed.
struct WrapperSpec {
    /// The programs that share the entry.
    names: WordList,
    /// The short options with a value in the next word.
    valued: &'static str,
    /// How many operands come before the command: one for `timeout 5 cmd`.
    before: usize,
}

/// The wrappers whose command is part of their arguments.
const WRAPPERS: &[WrapperSpec] = &[
    WrapperSpec { names: WordList("env"), valued: "uC", before: 0 },
    WrapperSpec { names: WordList("sudo doas pkexec"), valued: "ugpCTUrtDRh", before: 0 },
    WrapperSpec { names: WordList("exec"), valued: "a", before: 0 },
    WrapperSpec {
        names: WordList(
            "setsid nohup command builtin noglob fakeroot unbuffer catchsegv caffeinate \
             dbus-run-session eatmydata",
        ),
        valued: "",
        before: 0,
    },
    WrapperSpec { names: WordList("busybox toybox"), valued: "", before: 0 },
    WrapperSpec { names: WordList("time"), valued: "fo", before: 0 },
    WrapperSpec { names: WordList("nice"), valued: "n", before: 0 },
    WrapperSpec { names: WordList("ionice"), valued: "cnpPu", before: 0 },
    WrapperSpec { names: WordList("timeout"), valued: "ks", before: 1 },
    WrapperSpec { names: WordList("stdbuf"), valued: "ioe", before: 0 },
    WrapperSpec { names: WordList("xargs parallel"), valued: "aEILPdnsjSN", before: 0 },
    WrapperSpec { names: WordList("taskset chrt chroot gosu su-exec setarch"), valued: "TPD", before: 1 },
    WrapperSpec { names: WordList("linux64 linux32 i386 x86_64"), valued: "", before: 0 },
    WrapperSpec {
        names: WordList("unshare nsenter setpriv prlimit systemd-run systemd-inhibit"),
        valued: "tSGpEuGH",
        before: 0,
    },
    WrapperSpec { names: WordList("strace ltrace valgrind"), valued: "eopPsuEabIOSUX", before: 0 },
    WrapperSpec { names: WordList("flock"), valued: "wE", before: 1 },
    WrapperSpec {
        names: WordList(
            "xvfb-run rlwrap firejail proot bwrap numactl cpulimit trickle torsocks proxychains \
             proxychains4",
        ),
        valued: "nsefpwalru",
        before: 0,
    },
    WrapperSpec { names: WordList("ssh"), valued: "BbcDEeFIiJLlmOopQRSWw", before: 1 },
    WrapperSpec { names: WordList("entr"), valued: "", before: 0 },
];

/// What a program runs, as far as its arguments tell; `None` if it is no wrapper.
pub(crate) fn wrapper_payload(name: &str, args: &[ShellArg]) -> Option<WrapperPayload> {
    if SHELLS.contains(name) {
        return Some(shell_payload(args));
    }
    let text_option = |options: &[&str]| option_value(args, options).map(WrapperPayload::Text);
    match name {
        "eval" => return Some(WrapperPayload::Text(join_known_words(args))),
        "watch" => return Some(watch_payload(args)),
        "trap" => {
            let code = args.iter().find(|arg| !arg.text.starts_with('-'));
            return Some(WrapperPayload::Text(code.and_then(ShellArg::known).map(str::to_owned)));
        }
        "su" | "runuser" | "script" => {
            return text_option(&["-c", "--command", "-qc", "-ec"]).or(Some(WrapperPayload::Nothing));
        }
        "mapfile" | "readarray" | "compgen" | "complete" => return text_option(&["-C"]),
        "emulate" => return text_option(&["-c"]),
        "flock" => {
            if let Some(payload) = text_option(&["-c", "--command"]) {
                return Some(payload);
            }
        }
        "env" => {
            if let Some(payload) = text_option(&["-S", "--split-string"]) {
                return Some(payload);
            }
        }
        _ => {}
    }
    let is_loader = name.starts_with("ld-linux") || name == "ld.so" || name.starts_with("ld-musl");
    let loader = WrapperSpec { names: WordList(""), valued: "", before: 0 };
    let wrapper =
        if is_loader { &loader } else { WRAPPERS.iter().find(|wrapper| wrapper.names.contains(name))? };
    Some(find_payload_words(wrapper, name, args))
}

/// The payload of `watch`, which joins its words to one string of shell code.
fn watch_payload(args: &[ShellArg]) -> WrapperPayload {
    let spec = WrapperSpec { names: WordList(""), valued: "nq", before: 0 };
    match find_payload_words(&spec, "watch", args) {
        WrapperPayload::Words(at) => {
            WrapperPayload::Text(join_known_words(args.get(at..).unwrap_or_default()))
        }
        WrapperPayload::Text(_) | WrapperPayload::Nothing => WrapperPayload::Nothing,
    }
}

/// Finds where the command of a wrapper begins: behind its options, assignments and operands.
///
/// An option that is not known is assumed to have no value; the caller lists the alternatives.
fn find_payload_words(wrapper: &WrapperSpec, name: &str, args: &[ShellArg]) -> WrapperPayload {
    let mut before = wrapper.before;
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let text = arg.text.as_str();
        if text == "--" {
            at += 1;
            break;
        }
        if arg.live.is_none() && text.starts_with('-') && text.len() > 1 {
            let mut letters = text.chars().skip(1);
            let valued = !text.starts_with("--")
                && letters.next().is_some_and(|flag| wrapper.valued.contains(flag))
                && letters.next().is_none();
            at += if valued { 2 } else { 1 };
            continue;
        }
        let assigns = matches!(name, "env" | "sudo")
            && text.split_once('=').is_some_and(|(name, _)| !name.contains('/'));
        if assigns {
            at += 1;
            continue;
        }
        if before == 0 {
            break;
        }
        before -= 1;
        at += 1;
    }
    at += before;
    if at < args.len() { WrapperPayload::Words(at) } else { WrapperPayload::Nothing }
}

/// The shell code of `sh -c`; nothing if the shell runs a file or standard input.
fn shell_payload(args: &[ShellArg]) -> WrapperPayload {
    let mut words = args.iter();
    let mut from_text = false;
    while let Some(arg) = words.next() {
        if arg.live.is_some() {
            return if from_text || arg.may_be_option() {
                WrapperPayload::Text(None)
            } else {
                WrapperPayload::Nothing
            };
        }
        match arg.text.as_str() {
            "--" | "-" => {}
            "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file" => {
                words.next();
            }
            text if text.starts_with("--") => {}
            text if text.starts_with(['-', '+']) => {
                from_text |= text.contains('c');
                // The value of `o` in `-co pipefail` is the next word.
                if text.contains(['o', 'O']) {
                    words.next();
                }
            }
            text => {
                return if from_text {
                    WrapperPayload::Text(Some(text.to_owned()))
                } else {
                    WrapperPayload::Nothing
                };
            }
        }
    }
    if from_text { WrapperPayload::Text(None) } else { WrapperPayload::Nothing }
}

/// Whether a shell gets neither code nor a file, so that it runs what it reads from standard input.
pub(crate) fn reads_program(args: &[ShellArg]) -> bool {
    args.iter().all(|arg| arg.text == "-" || arg.text.starts_with(['-', '+']))
        || args.iter().any(|arg| matches!(arg.text.as_str(), "-s" | "/dev/stdin"))
}

/// The value of the first of these options; inner `None` if it is not known.
fn option_value(args: &[ShellArg], options: &[&str]) -> Option<Option<String>> {
    let mut words = args.iter().take(MAX_WRAPPER_OPTIONS);
    while let Some(arg) = words.next() {
        if options.contains(&arg.text.as_str()) {
            return Some(words.next().and_then(ShellArg::known).map(str::to_owned));
        }
        let attached = options.iter().find_map(|option| {
            let rest = arg.text.strip_prefix(option)?;
            let rest = if option.starts_with("--") { rest.strip_prefix('=')? } else { rest };
            (!rest.is_empty()).then_some(rest)
        });
        if let Some(text) = attached {
            return Some(arg.known().map(|_| text.to_owned()));
        }
    }
    None
}

/// The words joined by blanks; `None` if one of them is not known.
fn join_known_words(args: &[ShellArg]) -> Option<String> {
    let words: Option<Vec<&str>> = args.iter().map(ShellArg::known).collect();
    words.map(|words| words.join(" "))
}
