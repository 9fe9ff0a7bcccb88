//! What is known of one program and its words: tables, grammars, wrappers, edits, the network.

use super::analysis::{Danger, DangerKind, Inferred, Origin, Phase, Standing};
use super::assign;
use super::dirs::is_nowhere;
use super::edits;
use super::expand::Arg;
use super::grammars;
use super::network;
use super::part::{Draft, base_name, fed_words, inferred, is_pipe, joined, placeholders};
use super::removal;
use super::table::{self, Use, builtins, git, versions};
use super::walk::{Place, Walk};
use super::wrappers::{self, Runs};
use toolgate_proto::{Effect, Scope, Severity, WriteKind};

/// How many places are tried for the command of a wrapper whose options are not known.
const MOST_GUESSES: usize = 8;

impl Walk<'_> {
    /// Looks up what is known of the program.
    pub(super) fn program_use(
        &mut self,
        draft: &mut Draft,
        program: &Arg,
        args: &[Arg],
        fed: bool,
        input: Option<Option<String>>,
        place: &Place<'_>,
    ) {
        let name = base_name(&program.text).to_owned();
        let name = name.as_str();
        // Only the bare word is the program that the tables speak of; a path may lead to anything of that name.
        let bare = !program.text.contains('/') && !program.tilde && !fed;
        draft.part.plain &= !wrappers::NEVER_BY_WILDCARD.contains(&name);
        self.removals(draft, name, args, place);
        if matches!(name, "sudo" | "doas" | "su" | "pkexec") {
            self.warn(DangerKind::Privilege, Severity::High, || {
                format!("`{}` changes rights", draft.part.text)
            });
        }
        if looks_up(name, args) {
            draft.part.read_only = bare;
            return;
        }
        let words: Option<Vec<&str>> = args.iter().map(Arg::known).collect();
        if words.is_some_and(|words| versions::asks_version(name, &words)) {
            draft.part.read_only = bare;
            return;
        }
        if let Some(runs) = wrappers::runs(name, args) {
            // The words that `xargs` adds may be what runs.
            draft.coverable &= !fed;
            self.wrapper(draft, name, args, runs, input, place);
            return;
        }
        if builtins::STATE.contains(&name) && !harmless_state(name, args) {
            draft.coverable = false;
            self.warn(DangerKind::ShellState, Severity::Medium, || {
                format!("`{}` changes the shell", draft.part.text)
            });
            return;
        }
        if matches!(name, "source" | ".") {
            self.warn(DangerKind::CodeFromText, Severity::High, || {
                format!("`{}` runs a file in the shell", draft.part.text)
            });
            let files = args.first().map(|file| (file.clone(), Scope::Entry)).into_iter().collect();
            self.apply(draft, Use { reads: files, ..Use::default() }, args, place);
            draft.part.unknown_effects = true;
            return;
        }
        if name == "git" {
            self.git(draft, args, bare, place);
            return;
        }
        let known = if harmless_state(name, args) {
            Some(Use { read_only: true, text: true, ..Use::default() })
        } else {
            grammars::judge(name, args).or_else(|| table::entry(name).map(|entry| entry.judge(args)))
        };
        if name == "find" || name == "gfind" {
            draft.payloads.extend(grammars::find_payloads(args).into_iter().map(placeholders));
        }
        let only_reads = known.as_ref().is_some_and(|used| used.read_only);
        let edit = if only_reads { None } else { edits::edit(name, args) };
        let is_known = known.is_some();
        if let Some(used) = known {
            if fed
                && used.hazard | table::entry(name).is_none_or(|entry| !entry.hazards.is_empty())
                && !used.text
            {
                draft.part.plain = false;
            }
            let read_only = used.read_only && edit.is_none();
            self.apply(draft, used, args, place);
            draft.part.read_only = read_only && bare && !draft.part.unknown_effects;
            draft.part.unknown_effects |= !read_only && edit.is_none();
        }
        if let Some(edit) = edit {
            self.edit(draft, edit, place);
            draft.part.file_edit &= bare;
        } else if !is_known {
            draft.part.unknown_effects = true;
            self.live_arguments(draft, name, args);
        }
        draft.part.unknown_effects |= fed;
        self.network(draft, name, args, place);
    }

    fn wrapper(
        &mut self,
        draft: &mut Draft,
        name: &str,
        args: &[Arg],
        runs: Runs,
        input: Option<Option<String>>,
        place: &Place<'_>,
    ) {
        draft.part.unknown_effects = true;
        let is_shell = wrappers::SHELLS.contains(&name);
        match runs {
            Runs::Words(at) => {
                let payload: Vec<Arg> = args.get(at..).unwrap_or_default().to_vec();
                // With an option of unknown meaning the command may begin later than it seems.
                if args.iter().take(at).any(|arg| arg.text.starts_with("--") || arg.live.is_some()) {
                    for later in (at..args.len()).take(MOST_GUESSES) {
                        draft.deny(joined(args.get(later..).unwrap_or_default()));
                    }
                }
                draft.payloads.push(if matches!(name, "xargs" | "parallel") {
                    fed_words(payload)
                } else {
                    payload
                });
            }
            Runs::Text(Some(text)) => {
                self.warn(DangerKind::CodeFromText, Severity::High, || {
                    format!("`{name}` runs a text as a program")
                });
                draft.texts.push(text);
            }
            Runs::Text(None) => {
                self.warn(DangerKind::HiddenProgram, Severity::High, || {
                    format!("what `{}` runs cannot be known", draft.part.text)
                });
                draft.coverable = false;
            }
            Runs::Nothing if is_shell && wrappers::reads_program(args) => match input {
                Some(Some(text)) => draft.texts.push(text),
                Some(None) => draft.coverable = false,
                None => {
                    // What comes through a pipe is a program that nobody has seen.
                    if place.piped {
                        draft.part.plain = false;
                        self.warn(DangerKind::CodeFromText, Severity::High, || {
                            format!("`{}` runs what it is sent", draft.part.text)
                        });
                    }
                }
            },
            Runs::Nothing => {
                if is_shell
                    && let Some(script) = args.iter().position(|arg| !arg.text.starts_with(['-', '+']))
                {
                    // A rule against the file holds for the shell that runs it.
                    draft.unwrapped(args.get(script..).unwrap_or_default());
                }
                if name == "exec" {
                    draft.coverable = false;
                    self.warn(DangerKind::ShellState, Severity::Medium, || {
                        "`exec` changes the shell's own streams".to_owned()
                    });
                }
            }
        }
        if matches!(name, "eval" | "trap" | "mapfile" | "readarray" | "compgen" | "complete" | "emulate") {
            draft.coverable = false;
        }
        self.live_arguments(draft, name, args);
        self.network(draft, name, args, place);
    }

    fn git(&mut self, draft: &mut Draft, args: &[Arg], bare: bool, place: &Place<'_>) {
        let judged = git::judge(args);
        if let Some(at) = judged.subcommand
            && at > 0
        {
            let words: Vec<&str> = std::iter::once("git")
                .chain(args.get(at..).unwrap_or_default().iter().map(|arg| arg.text.as_str()))
                .collect();
            draft.deny(words.join(" "));
        }
        let mut read_only = judged.used.read_only && bare;
        if judged.used.hazard {
            self.warn(DangerKind::UnusualOption, Severity::High, || {
                format!("`{}` carries an option that can run or write something", draft.part.text)
            });
        }
        if read_only && !place.dirs.is_only(self.start) {
            read_only = false;
            self.warn(DangerKind::Directory, Severity::Medium, || {
                "git runs in another directory, which may be another repository".to_owned()
            });
        }
        draft.part.git_reader = read_only;
        let known = judged.used.read_only;
        let shows = judged.shows;
        let used = Use { reads: judged.used.reads.into_iter().chain(shows.here).collect(), ..judged.used };
        self.apply(draft, used, args, place);
        self.shown_by_git(draft, shows.whole, &shows.top, place);
        draft.part.read_only = read_only && !draft.part.unknown_effects;
        draft.part.unknown_effects |= !known;
    }

    /// Adds the reads of what git shows from the top of the repository down. Where the top is cannot be known: it is
    /// the working directory or one above it, and git that only reads does not run if it lies outside the workspace.
    fn shown_by_git(&mut self, draft: &mut Draft, whole: bool, top: &[(String, Scope)], place: &Place<'_>) {
        let start = [self.start.clone()];
        let dirs = if place.dirs.is_unknown() { &start[..] } else { place.dirs.all() };
        for dir in dirs {
            let dir = dir.lexical();
            let root = self.workspace.roots.iter().filter(|root| dir.is_under(root));
            let root = root.min_by_key(|root| root.as_path().as_os_str().len()).unwrap_or(&dir);
            if whole {
                let effect = Effect::Read { path: root.clone(), scope: Scope::Tree };
                draft.part.effects.push(inferred(effect, Origin::Program));
            }
            let mut above = Some(dir.clone());
            while let Some(candidate) = above.filter(|candidate| candidate.is_under(root)) {
                for (path, scope) in top {
                    let effect = Effect::Read { path: candidate.join(path), scope: *scope };
                    draft.part.effects.push(inferred(effect, Origin::Argument));
                }
                above = candidate.parent();
            }
        }
    }

    /// Turns what a table says into effects, and decides whether a rule may cover the words.
    fn apply(&mut self, draft: &mut Draft, used: Use, args: &[Arg], place: &Place<'_>) {
        let mut unknown = used.unknown;
        for (file, scope) in &used.reads {
            unknown |= self.reads(draft, file, *scope, place);
        }
        for file in &used.writes {
            unknown |= self.writes(draft, file, WriteKind::Put, Vec::new(), place);
        }
        if let Some(scope) = used.here {
            unknown |= place.dirs.is_unknown();
            for path in place.dirs.all() {
                draft
                    .part
                    .effects
                    .push(inferred(Effect::Read { path: path.clone(), scope }, Origin::Program));
            }
        }
        draft.part.plain &= !used.hazard;
        if used.hazard {
            let text = format!("`{}` can write or run something", draft.part.text);
            self.warn(DangerKind::UnusualOption, Severity::Medium, || text);
        }
        if unknown {
            draft.coverable = false;
            draft.part.unknown_effects = true;
            self.warn(DangerKind::HiddenArgument, Severity::Medium, || {
                format!("which files `{}` means cannot be known", draft.part.text)
            });
        }
        if used.text {
            self.printed(draft, args, used.silent, place);
        } else {
            let name = draft.part.program.clone().unwrap_or_default();
            self.live_arguments(draft, &name, args);
        }
    }

    /// Words that are only printed: what they tell must be no secret.
    fn printed(&mut self, draft: &mut Draft, args: &[Arg], silent: bool, place: &Place<'_>) {
        for arg in args {
            if arg.pattern.is_some() {
                self.reads(draft, arg, Scope::Entry, place);
            }
            if !silent
                && !arg
                    .variables
                    .iter()
                    .all(|name| assign::is_printable(name, &self.set_here, &self.text_here))
            {
                draft.part.unknown_effects = true;
            }
        }
    }

    /// A live word that may turn out to be an option leaves a command that no rule covers.
    fn live_arguments(&mut self, draft: &mut Draft, name: &str, args: &[Arg]) {
        let mut before: Option<&Arg> = None;
        for arg in args {
            if before.and_then(Arg::known) == Some("--") {
                break;
            }
            let is_value =
                before.and_then(Arg::known).is_some_and(|option| takes_text(name, option)) && !arg.splits;
            if arg.live.is_some() && arg.pattern.is_none() && arg.may_be_option() && !is_value {
                draft.coverable = false;
                self.warn(DangerKind::HiddenArgument, Severity::Medium, || {
                    format!("`{}` may turn out to be an option", arg.text)
                });
            }
            before = Some(arg);
        }
    }

    /// Adds the effects of reading a file; tells whether it is unknown.
    fn reads(&mut self, draft: &mut Draft, file: &Arg, scope: Scope, place: &Place<'_>) -> bool {
        if file.known().is_some_and(|text| text == "-" || text.is_empty() || is_nowhere(text))
            || is_pipe(file)
        {
            return false;
        }
        let effects = place.dirs.reads(file, scope, Origin::Argument, self.workspace);
        let unknown = effects.is_none();
        draft.part.effects.extend(effects.unwrap_or_default());
        for path in place.dirs.likely(file, self.workspace) {
            draft.part.effects.push(inferred(Effect::Read { path, scope }, Origin::Argument));
        }
        unknown
    }

    fn writes(
        &mut self,
        draft: &mut Draft,
        file: &Arg,
        kind: WriteKind,
        entries: Vec<String>,
        place: &Place<'_>,
    ) -> bool {
        if file.known().is_some_and(|text| text.is_empty() || is_nowhere(text)) || is_pipe(file) {
            return false;
        }
        let effects = place.dirs.writes(file, kind, Origin::Argument, self.workspace);
        let unknown = effects.is_none();
        draft.part.effects.extend(
            effects
                .unwrap_or_default()
                .into_iter()
                .map(|inferred| Inferred { entries: entries.clone(), ..inferred }),
        );
        for path in place.dirs.likely(file, self.workspace) {
            draft.part.effects.push(inferred(Effect::Write { path, kind }, Origin::Argument));
        }
        unknown
    }

    fn edit(&mut self, draft: &mut Draft, edit: edits::Edit, place: &Place<'_>) {
        let mut unknown = false;
        for (file, scope) in &edit.reads {
            unknown |= self.reads(draft, file, *scope, place);
        }
        for target in edit.writes {
            unknown |= self.writes(draft, &target.file, target.kind, target.entries, place);
        }
        draft.part.file_edit = edit.everyday && edit.complete && !unknown;
        draft.part.unknown_effects |= unknown || !edit.complete;
        if unknown {
            draft.coverable = false;
            self.warn(DangerKind::HiddenArgument, Severity::High, || {
                format!("which files `{}` changes cannot be known", draft.part.text)
            });
        }
    }

    fn removals(&mut self, draft: &Draft, name: &str, args: &[Arg], place: &Place<'_>) {
        let removed: Vec<Arg> = match name {
            "find" | "gfind" => match grammars::judge(name, args) {
                Some(used) if used.removes => {
                    used.reads.into_iter().map(|(start, _)| start).filter(|start| start.text != ".").collect()
                }
                Some(_) | None => Vec::new(),
            },
            "rm" | "rmdir" | "unlink" | "shred" => {
                edits::edit(name, args).map(|edit| edit.removed).unwrap_or_default()
            }
            _ => return,
        };
        for file in removed {
            let likely = place.dirs.likely(&file, self.workspace);
            let likely = likely
                .iter()
                .any(|path| removal::holds_too_much(&path.lexical(), self.start, self.workspace));
            if likely || removal::is_critical(&file, &place.dirs, self.start, self.workspace) {
                self.danger(Danger {
                    kind: DangerKind::DangerousRemoval,
                    severity: Severity::Critical,
                    phase: Phase::Ask,
                    standing: Standing::Binding,
                    text: format!("`{}` removes a directory that much depends on", draft.part.text),
                });
            }
        }
    }

    fn network(&mut self, draft: &mut Draft, name: &str, args: &[Arg], place: &Place<'_>) {
        if !network::reaches_out(name) {
            return;
        }
        draft.part.unknown_effects = true;
        self.warn(DangerKind::Network, Severity::Medium, || {
            format!("`{}` reaches the network", draft.part.text)
        });
        for url in network::addresses(name, args) {
            draft.part.effects.push(inferred(Effect::Fetch { url }, Origin::Argument));
        }
        for file in network::sent_files(name, args) {
            if self.reads(draft, &file, Scope::Entry, place) {
                draft.coverable = false;
            }
        }
    }
}

/// Options whose value is prose, so that a live one picks nothing.
fn takes_text(program: &str, option: &str) -> bool {
    match program {
        "git" => git::takes_prose(option),
        "gh" | "glab" => matches!(option, "-t" | "--title" | "-b" | "--body" | "-n" | "--notes"),
        "jj" | "hg" | "svn" => matches!(option, "-m" | "--message"),
        _ => false,
    }
}

/// Uses of stateful builtins that change nothing a later command could trip over.
fn harmless_state(name: &str, args: &[Arg]) -> bool {
    match name {
        "set" => {
            !args.is_empty()
                && args.iter().all(|arg| {
                    matches!(
                        arg.known(),
                        Some(
                            "-e" | "-u"
                                | "-o"
                                | "-eu"
                                | "-euo"
                                | "-eo"
                                | "-uo"
                                | "+e"
                                | "+u"
                                | "pipefail"
                                | "errexit"
                                | "nounset"
                        )
                    )
                })
        }
        "export" | "declare" | "typeset" | "local" | "readonly" => {
            !args.is_empty()
                && args.iter().all(|arg| {
                    arg.known()
                        .and_then(|text| text.split_once('='))
                        .is_some_and(|(name, value)| assign::is_harmless(name, &Arg::literal(value)))
                })
        }
        "umask" | "caller" | "shift" => args.is_empty(),
        "ulimit" => matches!(args, [] | [_]) && args.iter().all(|arg| arg.known() == Some("-a")),
        _ => false,
    }
}

/// `command -v` finds a program and runs nothing.
fn looks_up(name: &str, args: &[Arg]) -> bool {
    let asks = matches!(args.first().and_then(Arg::known), Some("-v" | "-V"));
    name == "command" && asks && args.iter().all(|arg| arg.live.is_none())
}
