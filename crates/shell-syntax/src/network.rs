//! Programs that use the network, the addresses that their arguments name, and the files that they send.
//!
//! The list of addresses is not complete: a redirect, a configuration file or a proxy leads elsewhere. It serves deny
//! rules for hosts and the text of a prompt; a network program always has unknown effects.

use crate::shell_arg::ShellArg;
use crate::word_list::WordList;

/// Programs whose purpose is to send or fetch data.
const NETWORK_PROGRAMS: WordList = WordList(
    "curl wget aria2c http https xh nc ncat netcat socat telnet ftp sftp scp rsync ssh ping ping6 dig \
     host nslookup whois traceroute tracepath mtr drill getent lynx links w3m nmap openssl mail \
     sendmail mosh",
);

/// Short options of `curl` with a value. The value is no address.
const CURL_VALUED_OPTIONS: &str = "AbcCdDeEFhHKmoPQrtTuUwxXyYz";

/// Whether the purpose of a program is to use the network.
pub(crate) fn uses_network(program: &str) -> bool {
    NETWORK_PROGRAMS.contains(program)
}

/// The addresses that the arguments name.
pub(crate) fn addresses(program: &str, args: &[ShellArg]) -> Vec<String> {
    let mut found = Vec::new();
    let mut words = args.iter();
    while let Some(arg) = words.next() {
        let Some(text) = arg.known() else { continue };
        if text.contains("://") && !text.starts_with('-') {
            found.push(text.to_owned());
            continue;
        }
        match program {
            "curl" | "wget" => {
                if let Some(address) = text.strip_prefix("--url=") {
                    found.push(with_scheme(address));
                } else if let Some(short) = text.strip_prefix('-').filter(|rest| !rest.starts_with('-')) {
                    if short.chars().last().is_some_and(|flag| CURL_VALUED_OPTIONS.contains(flag))
                        && program == "curl"
                    {
                        words.next();
                    }
                } else if !text.starts_with('-') {
                    found.push(with_scheme(text));
                }
            }
            "nc" | "ncat" | "netcat" | "telnet" if !text.starts_with('-') && found.is_empty() => {
                let port = args
                    .iter()
                    .filter_map(ShellArg::known)
                    .filter(|word| !word.starts_with('-'))
                    .nth(1)
                    .unwrap_or_default();
                found.push(format!("tcp://{text}:{port}"));
            }
            "ping" | "dig" | "nslookup" | "host" | "whois"
                if !text.starts_with(['-', '+', '@']) && text.contains('.') =>
            {
                found.push(format!("dns://{text}"));
            }
            _ => {}
        }
    }
    found
}

/// An address with the scheme that `curl` assumes if it has none.
fn with_scheme(address: &str) -> String {
    if address.contains("://") { address.to_owned() } else { format!("http://{address}") }
}

/// The files that `curl` or `wget` sends, or reads options from.
///
/// Reading them is judged like any other read, so that a rule against reading a file also prevents sending it.
pub(crate) fn sent_files(program: &str, args: &[ShellArg]) -> Vec<ShellArg> {
    if program != "curl" && program != "wget" {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut words = args.iter();
    while let Some(arg) = words.next() {
        let (option, attached) = match arg.text.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option, Some(value.to_owned())),
            _ => (arg.text.as_str(), None),
        };
        let mut value =
            || attached.clone().or_else(|| words.next().and_then(ShellArg::known).map(str::to_owned));
        match option {
            "-T" | "--upload-file" | "-K" | "--config" | "--post-file" | "--body-file" | "-b"
            | "--cookie" | "--netrc-file" => found.extend(value()),
            "-d" | "--data" | "--data-binary" | "--data-ascii" | "--json" => {
                found.extend(value().and_then(|value| value.strip_prefix('@').map(str::to_owned)))
            }
            "--data-urlencode" => {
                found.extend(value().and_then(|value| value.split_once('@').map(|(_, file)| file.to_owned())))
            }
            "-F" | "--form" => {
                let file =
                    value().and_then(|value| value.split_once(['@', '<']).map(|(_, file)| file.to_owned()));
                found.extend(file.and_then(|file| file.split(';').next().map(str::to_owned)));
            }
            _ => {}
        }
    }
    found.into_iter().filter(|file| file != "-").map(ShellArg::literal).collect()
}
