//! Programs that run other programs: what they run, and whether they change what a grant means.

use super::expand::ShellArg;

/// Shells, whose `-c` takes a program and which read one from standard input.
pub(super) const SHELLS: &[&str] =
    &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "csh", "tcsh", "yash", "posh"];

/// Programs of which a wildcard rule never speaks, because what matters is what they run.
pub(super) const NEVER_BY_WILDCARD: &[&str] =
    &["watch", "setsid", "ionice", "flock", "sudo", "doas", "su", "pkexec", "exec", "source", "."];

/// A transparent wrapper with more words of its own is not looked through.
const MAX_WRAPPER_OPTIONS: usize = 16;

/// What a wrapper runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WrapperPayload {
    /// The words from this position on.
    Words(usize),
    /// A text, read as a shell program; `None` if it is not known.
    Text(Option<String>),
    /// Nothing that can be seen.
    Nothing,
}

/// How many words after a transparent wrapper its command begins; such a wrapper leaves a grant as it is.
/// Only options that are known leave it transparent.
pub(super) fn skip_transparent_wrapper(name: &str, args: &[ShellArg]) -> Option<usize> {
    // A wrapper's own options are few.
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
    (!command.may_be_option() || command.live.is_some()).then_some(skip)
}

/// Counts leading options: short ones with a value, the listed long ones, and `-5` if `numbers`.
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

/// A program that runs others: its short options with a value, and how many words come before the command.
struct WrapperSpec {
    names: &'static [&'static str],
    valued: &'static str,
    before: usize,
}

const WRAPPERS: &[WrapperSpec] = &[
    WrapperSpec { names: &["env"], valued: "uC", before: 0 },
    WrapperSpec { names: &["sudo", "doas", "pkexec"], valued: "ugpCTUrtDRh", before: 0 },
    WrapperSpec { names: &["exec"], valued: "a", before: 0 },
    WrapperSpec {
        names: &[
            "setsid",
            "nohup",
            "command",
            "builtin",
            "noglob",
            "fakeroot",
            "unbuffer",
            "catchsegv",
            "caffeinate",
            "dbus-run-session",
            "eatmydata",
        ],
        valued: "",
        before: 0,
    },
    WrapperSpec { names: &["busybox", "toybox"], valued: "", before: 0 },
    WrapperSpec { names: &["time"], valued: "fo", before: 0 },
    WrapperSpec { names: &["nice"], valued: "n", before: 0 },
    WrapperSpec { names: &["ionice"], valued: "cnpPu", before: 0 },
    WrapperSpec { names: &["timeout"], valued: "ks", before: 1 },
    WrapperSpec { names: &["stdbuf"], valued: "ioe", before: 0 },
    WrapperSpec { names: &["xargs", "parallel"], valued: "aEILPdnsjSN", before: 0 },
    WrapperSpec {
        names: &["taskset", "chrt", "chroot", "gosu", "su-exec", "setarch"],
        valued: "TPD",
        before: 1,
    },
    WrapperSpec { names: &["linux64", "linux32", "i386", "x86_64"], valued: "", before: 0 },
    WrapperSpec {
        names: &["unshare", "nsenter", "setpriv", "prlimit", "systemd-run", "systemd-inhibit"],
        valued: "tSGpEuGH",
        before: 0,
    },
    WrapperSpec { names: &["strace", "ltrace", "valgrind"], valued: "eopPsuEabIOSUX", before: 0 },
    WrapperSpec { names: &["flock"], valued: "wE", before: 1 },
    WrapperSpec {
        names: &[
            "xvfb-run",
            "rlwrap",
            "firejail",
            "proot",
            "bwrap",
            "numactl",
            "cpulimit",
            "trickle",
            "torsocks",
            "proxychains",
            "proxychains4",
        ],
        valued: "nsefpwalru",
        before: 0,
    },
    WrapperSpec { names: &["ssh"], valued: "BbcDEeFIiJLlmOopQRSWw", before: 1 },
    WrapperSpec { names: &["entr"], valued: "", before: 0 },
];

/// What a program runs, as far as its words tell; `None` if it is no wrapper.
pub(super) fn wrapper_payload(name: &str, args: &[ShellArg]) -> Option<WrapperPayload> {
    if SHELLS.contains(&name) {
        return Some(shell_payload(args));
    }
    match name {
        "eval" => return Some(WrapperPayload::Text(join_known_words(args))),
        // The words are joined and handed to a shell.
        "watch" => {
            let at =
                match find_payload_words(&WrapperSpec { names: &[], valued: "nq", before: 0 }, name, args) {
                    WrapperPayload::Words(at) => at,
                    WrapperPayload::Text(_) | WrapperPayload::Nothing => {
                        return Some(WrapperPayload::Nothing);
                    }
                };
            return Some(WrapperPayload::Text(join_known_words(args.get(at..).unwrap_or_default())));
        }
        "trap" => {
            return Some(WrapperPayload::Text(
                args.iter()
                    .find(|arg| !arg.text.starts_with('-'))
                    .and_then(ShellArg::known)
                    .map(str::to_owned),
            ));
        }
        "su" | "runuser" | "script" => {
            return Some(
                option_value(args, &["-c", "--command", "-qc", "-ec"])
                    .map_or(WrapperPayload::Nothing, WrapperPayload::Text),
            );
        }
        "mapfile" | "readarray" | "compgen" | "complete" => {
            return option_value(args, &["-C"]).map(WrapperPayload::Text);
        }
        "flock" => {
            if let Some(text) = option_value(args, &["-c", "--command"]) {
                return Some(WrapperPayload::Text(text));
            }
        }
        "emulate" => return option_value(args, &["-c"]).map(WrapperPayload::Text),
        "env" => {
            if let Some(text) = option_value(args, &["-S", "--split-string"]) {
                return Some(WrapperPayload::Text(text));
            }
        }
        _ => {}
    }
    let loader = WrapperSpec { names: &[], valued: "", before: 0 };
    let wrapper = if name.starts_with("ld-linux") || name == "ld.so" || name.starts_with("ld-musl") {
        &loader
    } else {
        WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&name))?
    };
    Some(find_payload_words(wrapper, name, args))
}

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

/// The program text of `sh -c`; nothing if a file or standard input is run.
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
                // `-co pipefail` takes its value from the next word.
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

/// Whether a shell is given neither a text nor a file, so that it runs what it reads.
pub(super) fn reads_program(args: &[ShellArg]) -> bool {
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

fn join_known_words(args: &[ShellArg]) -> Option<String> {
    let words: Option<Vec<&str>> = args.iter().map(ShellArg::known).collect();
    words.map(|words| words.join(" "))
}
