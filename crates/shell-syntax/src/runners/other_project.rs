//! Options of JavaScript package managers that choose another configuration, another project or another program.
//!
//! A rule such as `npm test *` is about the scripts of this project as its settings run them. These options may stand
//! anywhere before `--`, and npm takes every unique abbreviation of them, with any number of dashes.

use crate::shell_arg::ShellArg;
use crate::word_list::WordList;

/// Options whose value is a file with settings, code, or a program.
const FOREIGN_OPTIONS: WordList = WordList(
    "userconfig globalconfig script-shell shell node-options call init-module git editor viewer browser \
     python node-gyp nodedir onload-script use-yarnrc pnpmfile global-pnpmfile config preload require \
     import env-file tsconfig-override no-ignore-scripts",
);

/// Options whose value is the directory of a project.
const DIRECTORY_OPTIONS: WordList = WordList(
    "prefix local-prefix global-prefix dir cwd workspace-dir global-dir modules-folder global-folder",
);

/// How many letters an abbreviation has at least: a shorter one is never unique.
const MIN_ABBREVIATION: usize = 3;

/// Whether an option of a package manager chooses another configuration, project or program than the rule is about.
///
/// A directory inside the working directory is not another project: `cd sub && npm test` needs no other rule either.
pub(super) fn chooses_other_project(name: &str, args: &[ShellArg]) -> bool {
    if !matches!(name, "npm" | "npx" | "pnpm" | "pnpx" | "yarn" | "bun" | "bunx") {
        return false;
    }
    let options = args.iter().enumerate().take_while(|(_, arg)| arg.text != "--");
    options.filter(|(_, arg)| arg.text.starts_with('-')).any(|(at, arg)| {
        let (option, attached) = match arg.text.split_once('=') {
            Some((option, value)) => (option, Some(ShellArg { text: value.to_owned(), ..arg.clone() })),
            None => (arg.text.as_str(), None),
        };
        let value = attached.as_ref().or_else(|| args.get(at + 1));
        let long = option.trim_start_matches('-');
        let may_be = |list: WordList| {
            list.iter().any(|full| full == long || long.len() >= MIN_ABBREVIATION && full.starts_with(long))
        };
        // `-C` is `--prefix`, `--dir` or `--cwd`; `-c` is `--call` or `--config`. Letters may be a cluster.
        let letters = if option.starts_with("--") { "" } else { long };
        let leaves = value.is_none_or(|value| !stays_inside(value));
        may_be(FOREIGN_OPTIONS)
            || long.starts_with("config.")
            || letters.contains('c')
            || (may_be(DIRECTORY_OPTIONS) || letters.contains('C')) && leaves
            || long == "ignore-scripts" && value.is_some_and(|value| !turns_on(value))
    })
}

/// Whether the value of `--ignore-scripts` leaves it on. Any word but these is not a value.
fn turns_on(value: &ShellArg) -> bool {
    value.live.is_none() && !matches!(value.text.as_str(), "false" | "0" | "null" | "no" | "")
}

/// Whether a directory is certainly inside the working directory.
fn stays_inside(directory: &ShellArg) -> bool {
    directory
        .known()
        .is_some_and(|path| !path.starts_with(['/', '~', '-']) && path.split('/').all(|name| name != ".."))
}
