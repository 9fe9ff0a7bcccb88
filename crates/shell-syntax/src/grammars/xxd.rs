//! `xxd`: prints a hexadecimal dump, or writes one.
//!
//! Its options have one dash and several letters (`-ps`, `-plain`), so that no [`OptionTable`] describes them: there a
//! dash begins a cluster of letters.
//!
//! [`OptionTable`]: crate::option_tables::OptionTable

use crate::option_tables::ProgramUse;
use crate::shell_arg::ShellArg;
use toolgate_proto::PathScope;

/// Judges `xxd`. It accepts no option after the first file, and writes to the second one.
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
