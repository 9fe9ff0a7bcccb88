//! Binding of commands to files: which files a hook or server executes, and their hashes.
//!
//! The user trusts content that can be inspected, so each command is resolved to the files that it executes: the
//! program by its path, and by its content unless only root can change it; the script that an interpreter gets; and
//! files of the workspace that the command or such a script names.
//!
//! | command | bound |
//! |---|---|
//! | `./guard.sh --fast` | `guard.sh`, its interpreter, the scripts that it sources |
//! | `python3 hooks/screen.py` | `python3`, `hooks/screen.py`, its imports, the names of the modules beside it |
//! | `true && sh a.sh | cat` | `true`, `sh`, `a.sh`, `cat` |
//! | `npx guard`, `python3 -m guard`, `$GUARD` | nothing: unresolved |
//!
//! A command that selects its code at run time (a package runner, a task runner, a variable, standard input) cannot be
//! resolved, and trust does not cover it.

use super::code_runners::{
    ASSIGNING_BUILTINS, CODE_EXTENSIONS, CODE_RUNNERS, COMMAND_WRAPPERS, LOADER_VARIABLES,
    OPTIONS_WITH_VALUE, SHELL_BUILTINS, find_interpreter, is_code, is_variable_name, parse_assignments,
    selects_programs,
};
use super::values::{HookHandler, HookHandlerKind};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use toolgate_files::{DEFAULT_SEARCH_PATH, FileStamp};
use toolgate_gate::ledger::sha256_hex;
use toolgate_proto::{AbsPath, CommandLine, EntryKind, ShellKind, Workspace};
use toolgate_shell_syntax::{CommandPart, CommandWord, analyse};

/// Larger files are not hashed, so a command that needs one is not trusted.
const MAX_BOUND_BYTES: u64 = 16 * 1024 * 1024;
/// Larger programs outside the workspace are bound by path, size and modification time: hashing an interpreter at every
/// start would take longer than the rest of the start.
const MAX_OUTSIDE_BYTES: u64 = 1024 * 1024;
/// How many scripts are bound; scripts can name further scripts.
const MAX_SCRIPTS: usize = 256;
/// How many names in scripts are looked up.
const MAX_SCRIPT_NAMES: usize = 4096;

/// A command whose files cannot be determined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnresolvedCommand {
    /// The hook or server, for messages.
    pub what: String,
    /// Why its files cannot be determined.
    pub why: String,
    /// The serialized hook or the name of the server; empty if a variable affects every command.
    pub(crate) key: String,
}

/// Collects the files that commands execute.
#[derive(Debug)]
pub(super) struct CommandBinder<'a> {
    /// The real path of the workspace.
    root: &'a AbsPath,
    /// The home directory, for `~/`.
    home: Option<&'a AbsPath>,
    /// The directories in which programs are looked up.
    search: Vec<String>,
    /// What trust is bound to: a file with its digest, or a path with its symlink target.
    pub(super) bound: BTreeMap<String, String>,
    /// The stamps of these files and of paths where a new file would change the result.
    pub(super) files: Vec<(AbsPath, FileStamp)>,
    /// The files that are executed, except system programs.
    pub(super) scripts: Vec<AbsPath>,
    /// The commands that cannot be resolved.
    pub(super) unresolved: Vec<UnresolvedCommand>,
    /// How many names in scripts were looked up.
    name_count: usize,
}

impl<'a> CommandBinder<'a> {
    /// A binder for the workspace `root`.
    pub(super) fn new(root: &'a AbsPath, home: Option<&'a AbsPath>, search: Option<&str>) -> Self {
        let search = search.unwrap_or(DEFAULT_SEARCH_PATH).split(':').map(str::to_owned).collect();
        Self {
            root,
            home,
            search,
            bound: BTreeMap::new(),
            files: Vec::new(),
            scripts: Vec::new(),
            unresolved: Vec::new(),
            name_count: 0,
        }
    }

    /// Replaces the search path for the commands that follow.
    pub(super) fn set_search_path(&mut self, path: &str) {
        self.search = path.split(':').map(str::to_owned).collect();
    }

    /// Binds a file by its content.
    pub(super) fn bind_file(&mut self, path: &AbsPath, content: &[u8]) {
        self.bound.insert(format!("file {path}"), sha256_hex(content));
    }

    /// Binds the command of a hook. Other types of hooks execute nothing here.
    pub(super) fn bind_hook(&mut self, handler: &HookHandler) {
        if handler.kind != HookHandlerKind::Command {
            return;
        }
        let Some(command) = handler.command.as_deref() else { return };
        let root = self.root.clone();
        let done = match &handler.args {
            Some(args) => {
                let expand = |text: &str| text.replace("${CLAUDE_PROJECT_DIR}", &root.to_string());
                let words: Vec<Option<String>> = std::iter::once(command)
                    .chain(args.iter().map(String::as_str))
                    .map(|word| Some(expand(word)))
                    .collect();
                self.bind_argv(&words, &root, false)
            }
            None => self.bind_shell_line(command, &root),
        };
        if let Err(why) = done {
            self.unresolved.push(UnresolvedCommand {
                what: format!("hook `{command}`"),
                why,
                key: hook_key(handler),
            });
        }
    }

    /// Binds the command of a server, with its arguments and variables.
    pub(super) fn bind_server(&mut self, name: &str, entry: &Value) {
        let Some(command) = entry.get("command").and_then(Value::as_str) else { return };
        let cwd = entry
            .get("cwd")
            .and_then(Value::as_str)
            .map_or_else(|| self.root.clone(), |dir| self.root.join(dir));
        let args =
            entry.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let words: Vec<Option<String>> = std::iter::once(command)
            .chain(args)
            .map(|word| (!word.contains("${")).then(|| word.to_owned()))
            .collect();
        let variables = entry.get("env").and_then(Value::as_object).into_iter().flatten();
        let mut done = Ok(());
        for (variable, value) in variables {
            done = done.and(self.bind_variable(variable, value.as_str().unwrap_or_default()));
        }
        if let Err(why) = done.and_then(|()| self.bind_argv(&words, &cwd, false)) {
            self.unresolved.push(UnresolvedCommand {
                what: format!("server `{name}`"),
                why,
                key: name.to_owned(),
            });
        }
    }

    /// Binds the files that the value of an environment variable names. A variable that selects where code is loaded
    /// from must not name a directory in the workspace, because files added there later would run.
    pub(super) fn bind_variable(&mut self, name: &str, value: &str) -> Result<(), String> {
        let root = self.root.clone();
        for part in value.split([':', ' ', '=', ',', ';']).filter(|part| !part.is_empty()) {
            let fact = toolgate_files::resolve(&self.expand_path(part, &root));
            let inside = fact.problem.is_none() && fact.real.is_under(self.root);
            match fact.kind {
                EntryKind::File if inside => self.bind_real_file(&fact.real)?,
                EntryKind::Directory | EntryKind::Missing
                    if inside && LOADER_VARIABLES.contains(&name) && part.contains(['/', '.']) =>
                {
                    return Err(format!("the variable {name} makes it load code from `{part}`"));
                }
                EntryKind::File | EntryKind::Directory | EntryKind::Missing | EntryKind::Special => {}
            }
        }
        Ok(())
    }

    /// Binds every command of a shell command line.
    fn bind_shell_line(&mut self, line: &str, cwd: &AbsPath) -> Result<(), String> {
        let mut text = line.to_owned();
        let root = self.root.to_string();
        for name in ["CLAUDE_PROJECT_DIR", "TOOLGATE_PROJECT_DIR"] {
            if text.contains(name) {
                let plain =
                    |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ',' | '@');
                if !root.chars().all(plain) {
                    return Err(format!(
                        "the workspace path `{root}` contains characters that the shell would interpret"
                    ));
                }
                text = text.replace(&format!("${{{name}}}"), &root).replace(&format!("${name}"), &root);
            }
        }
        let command = CommandLine::new(text, ShellKind::Bash, cwd.clone());
        let workspace =
            Workspace::new(cwd.clone()).with_roots(vec![self.root.clone()]).with_home(self.home.cloned());
        let analysis = analyse(&command, &workspace);
        if let Some(doubt) = &analysis.doubt {
            return Err(format!("the command line cannot be analysed: {}", doubt.text));
        }
        for part in &analysis.parts {
            self.bind_shell_command(part)?;
        }
        Ok(())
    }

    /// Binds one simple command of a command line, in each directory in which it may run.
    fn bind_shell_command(&mut self, part: &CommandPart) -> Result<(), String> {
        for (variable, value) in parse_assignments(&part.text) {
            self.bind_assignment(variable, value)?;
        }
        self.check_state_change(part)?;
        if part.argv.is_empty() {
            // Only assignments or redirects, or a program that is unknown before the command runs.
            return match (&part.program, &part.allow_text) {
                (None, Some(text)) if text.is_empty() => Ok(()),
                _ => Err(format!("`{}` selects its program at run time", part.text)),
            };
        }
        let words: Vec<Option<String>> = part
            .argv
            .iter()
            .map(|word: &CommandWord| word.live.is_none().then(|| word.text.clone()))
            .collect();
        if part.working_dirs.is_empty() {
            return Err(format!("the directory in which `{}` runs is not known before it runs", part.text));
        }
        for cwd in part.working_dirs.iter() {
            // Wrappers such as `timeout` stand before the words of the command.
            for program in part.executes.iter().filter(|program| !SHELL_BUILTINS.contains(&program.as_str()))
            {
                self.bind_program(program, cwd)?;
            }
            self.bind_argv(&words, cwd, true)?;
        }
        Ok(())
    }

    /// Binds the files that an assignment names; one that selects the code that runs cannot be bound.
    fn bind_assignment(&mut self, variable: &str, value: &str) -> Result<(), String> {
        if selects_programs(variable) {
            return Err(format!("it sets {variable}, which selects the code that runs"));
        }
        self.bind_variable(variable, value)
    }

    /// Binds the assignments among the arguments of a command (`env NAME=value`, `export NAME=value`), and refuses
    /// builtins that change which code later commands run.
    fn check_state_change(&mut self, part: &CommandPart) -> Result<(), String> {
        let Some((program, args)) = part.argv.split_first() else { return Ok(()) };
        // These print their arguments, and set nothing unless `printf` is given a variable.
        let is_text = |word: &CommandWord| word.text == "-v";
        match program.text.as_str() {
            "echo" => return Ok(()),
            "printf" if !args.first().is_some_and(is_text) => return Ok(()),
            "hash" => return Err("`hash` selects the file of a program".to_owned()),
            _ => {}
        }
        let assigns = ASSIGNING_BUILTINS.contains(&program.text.as_str());
        for word in args {
            let assignment = word.text.split_once('=');
            let name = assignment.map_or(word.text.as_str(), |(name, _)| name.trim_end_matches('+'));
            // The source text of a word whose value is not known: only its name must be literal.
            if assigns && word.live.is_some() && !(assignment.is_some() && is_variable_name(name)) {
                return Err(format!("which variable `{}` sets is not known before it runs", part.text));
            }
            match assignment {
                Some((_, value)) => self.bind_assignment(name, value)?,
                None if assigns && LOADER_VARIABLES.contains(&name) => {
                    return Err(format!("it sets {name}, which selects the code that runs"));
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Binds a command given as arguments; `None` is an argument that is unknown before the command runs.
    fn bind_argv(&mut self, words: &[Option<String>], cwd: &AbsPath, in_shell: bool) -> Result<(), String> {
        let Some((program, args)) = words.split_first() else { return Ok(()) };
        let Some(program) = program else {
            return Err("its program is not known before it runs".to_owned());
        };
        let name = program.rsplit('/').next().unwrap_or_default();
        if CODE_RUNNERS.contains(&name) {
            return Err(format!("`{name}` runs code that the command does not name"));
        }
        // In a shell command line the analysis lists the command of a wrapper as a command of its own.
        if COMMAND_WRAPPERS.contains(&name) && !in_shell && !args.is_empty() {
            return self.bind_wrapped_command(program, args, cwd);
        }
        match name {
            "." | "source" if in_shell => {
                let named = args.first().and_then(Option::as_deref);
                let script = named.ok_or("the file that it sources is not known before it runs")?;
                return self.bind_script_argument(script, cwd);
            }
            _ if in_shell && SHELL_BUILTINS.contains(&name) => {}
            _ => self.bind_program(program, cwd)?,
        }
        if let Some((name, code)) = find_interpreter(name) {
            self.bind_interpreter_args(name, code, args, cwd)?;
        }
        for word in args.iter().flatten() {
            let value = word.split_once('=').map_or(word.as_str(), |(_, value)| value);
            for text in [word.as_str(), value] {
                let fact = toolgate_files::resolve(&self.expand_path(text, cwd));
                if fact.problem.is_none() && fact.kind == EntryKind::File && fact.real.is_under(self.root) {
                    self.bind_real_file(&fact.real)?;
                }
            }
        }
        Ok(())
    }

    /// Binds a wrapper such as `env` or `timeout`, the variables that it sets, and the command that it runs.
    fn bind_wrapped_command(
        &mut self,
        wrapper: &str,
        args: &[Option<String>],
        cwd: &AbsPath,
    ) -> Result<(), String> {
        let command_start = args.iter().position(|word| {
            word.as_deref().is_none_or(|word| {
                !word.starts_with('-')
                    && !word.contains('=')
                    && !word.starts_with(|c: char| c.is_ascii_digit())
            })
        });
        self.bind_program(wrapper, cwd)?;
        let (before, command) = match command_start {
            Some(start) => args.split_at_checked(start).unwrap_or_default(),
            None => (args, &[][..]),
        };
        for word in before.iter().flatten() {
            if word.starts_with("-S") || word.starts_with("--split-string") {
                return Err(format!("`{wrapper} {word}` runs words that it splits itself"));
            }
            if let Some((variable, value)) = word.split_once('=') {
                self.bind_assignment(variable, value)?;
            }
        }
        self.bind_argv(command, cwd, false)
    }

    /// Binds the script or the code that an interpreter gets.
    fn bind_interpreter_args(
        &mut self,
        name: &str,
        code: &[&str],
        args: &[Option<String>],
        cwd: &AbsPath,
    ) -> Result<(), String> {
        let mut rest = args.iter();
        while let Some(word) = rest.next() {
            let Some(word) = word else {
                return Err(format!("what `{name}` would run is not known before it runs"));
            };
            if code.contains(&word.as_str()) {
                let Some(Some(text)) = rest.next() else {
                    return Err(format!("the code that `{name}` would run is not known before it runs"));
                };
                return match name {
                    "bash" | "sh" | "dash" | "zsh" | "ksh" => self.bind_shell_line(text, cwd),
                    _ => {
                        if name == "python" || name == "pypy" {
                            self.bind_python_modules(cwd);
                        }
                        self.bind_named_scripts(text, cwd)
                    }
                };
            }
            if word == "-m" || word == "-s" || word == "-" {
                return Err(format!("`{name} {word}` runs code that the command does not name by its file"));
            }
            let runs = matches!((name, word.as_str()), ("deno" | "bun", "run") | ("java", "-jar"));
            if OPTIONS_WITH_VALUE.contains(&word.as_str()) && !runs {
                rest.next();
            } else if !word.starts_with('-') && !runs {
                return self.bind_script_argument(word, cwd);
            }
        }
        // A hook gets the call on standard input, which the model wrote.
        Err(format!("`{name}` without a script runs what it reads"))
    }

    /// The absolute path of a name, with `~/` expanded.
    fn expand_path(&self, text: &str, cwd: &AbsPath) -> AbsPath {
        match (text.strip_prefix("~/"), self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => cwd.join(text),
        }
    }

    /// Binds a program, looked up in the search path as the system does.
    fn bind_program(&mut self, program: &str, cwd: &AbsPath) -> Result<(), String> {
        let found = if program.contains('/') {
            Some(self.expand_path(program, cwd))
        } else {
            let dirs: Vec<AbsPath> = self.search.iter().map(|dir| cwd.join(dir)).collect();
            let mut found = None;
            for dir in dirs {
                let candidate = dir.join(program);
                if toolgate_files::is_executable(&candidate) {
                    found = Some(candidate);
                    break;
                }
                // A program that is created here later would take precedence.
                if candidate.is_under(self.root) {
                    self.watch(&candidate);
                }
            }
            found
        };
        let found = found.ok_or_else(|| format!("program `{program}` not found"))?;
        let fact = toolgate_files::resolve(&found);
        if fact.problem.is_some() || fact.kind != EntryKind::File {
            return Err(format!("program `{program}` not found"));
        }
        self.bound.insert(format!("program {found}"), fact.real.to_string());
        self.bound.insert(format!("executable {found}"), toolgate_files::is_executable(&found).to_string());
        self.watch(&found);
        self.bind_real_file(&fact.real)
    }

    /// Binds a script that an interpreter gets, through its symlinks.
    fn bind_script_argument(&mut self, text: &str, cwd: &AbsPath) -> Result<(), String> {
        let asked = self.expand_path(text, cwd);
        let fact = toolgate_files::resolve(&asked);
        self.watch(&asked);
        if fact.problem.is_some() || fact.kind != EntryKind::File {
            return Err(format!("`{text}` is not a file"));
        }
        self.bound.insert(format!("script {asked}"), fact.real.to_string());
        self.bind_real_file(&fact.real)
    }

    /// Binds a file by its content, with its interpreter and the scripts that it names.
    fn bind_real_file(&mut self, real: &AbsPath) -> Result<(), String> {
        let key = format!("file {real}");
        if self.bound.contains_key(&key) {
            return Ok(());
        }
        let inside = real.is_under(self.root);
        if !inside && toolgate_files::is_system_file(real) {
            self.bound.insert(key, "the system's".to_owned());
            return Ok(());
        }
        if self.scripts.len() >= MAX_SCRIPTS {
            return Err(format!("it names more than {MAX_SCRIPTS} scripts"));
        }
        self.watch(real);
        self.scripts.push(real.clone());
        if let (false, FileStamp::Present { size, modified, .. }) =
            (inside, toolgate_files::read_file_stamp(real))
            && size > MAX_OUTSIDE_BYTES
        {
            self.bound.insert(key, format!("{size} bytes of {modified}"));
            return Ok(());
        }
        let content = toolgate_files::read_named_bytes(real, MAX_BOUND_BYTES)
            .map_err(|problem| format!("`{real}` cannot be read: {problem}"))?;
        self.bound.insert(key, sha256_hex(&content));
        let Ok(text) = String::from_utf8(content) else { return Ok(()) };
        let Some(dir) = real.parent() else { return Ok(()) };
        if let Some(line) = text.lines().next().and_then(|line| line.strip_prefix("#!")) {
            let words: Vec<Option<String>> =
                line.split_whitespace().map(|word| Some(word.to_owned())).collect();
            self.bind_shebang(&words)?;
        }
        if is_code(real, &text) {
            let python = real.as_path().extension().is_some_and(|ending| ending == "py")
                || text.lines().next().is_some_and(|line| line.starts_with("#!") && line.contains("python"));
            if python {
                self.bind_python_modules(&dir);
            }
            self.bind_named_scripts(&text, &dir)?;
        }
        Ok(())
    }

    /// Binds the interpreter in the `#!` line of a script.
    fn bind_shebang(&mut self, words: &[Option<String>]) -> Result<(), String> {
        let root = self.root.clone();
        let mut programs =
            words.iter().flatten().filter(|word| !word.starts_with('-') && !word.contains('='));
        let Some(program) = programs.next() else { return Ok(()) };
        self.bind_program(program, &root)?;
        match programs.next() {
            Some(named) if program.ends_with("/env") => self.bind_program(named, &root),
            _ => Ok(()),
        }
    }

    /// Binds the names of the modules beside a Python script: they take precedence over the standard library, so a new
    /// name is new code.
    fn bind_python_modules(&mut self, dir: &AbsPath) {
        if !dir.is_under(self.root) {
            return;
        }
        let mut names = Vec::new();
        for ending in [".py", ".pyc", ".so"] {
            names.extend(toolgate_files::list_names_with_suffix(dir, ending).unwrap_or_default());
        }
        for name in toolgate_files::list_names_with_suffix(dir, "").unwrap_or_default() {
            if toolgate_files::read_file_stamp(&dir.join(&name).join("__init__.py")) != FileStamp::Absent {
                names.push(name);
            }
        }
        names.sort();
        self.bound.insert(format!("modules {dir}"), names.join("\n"));
        self.watch(dir);
    }

    /// Binds the scripts of the workspace that a script names or imports. This is a heuristic over its words: names that
    /// the script computes are not found.
    fn bind_named_scripts(&mut self, text: &str, dir: &AbsPath) -> Result<(), String> {
        let mut names: BTreeSet<String> = BTreeSet::new();
        let mut imported = false;
        let split = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '-' | '~' | '+' | '@'));
        for word in text.split(split).filter(|word| !word.is_empty() && word.len() < 256) {
            let ending = word.rsplit_once('.').map(|(_, ending)| ending).unwrap_or_default();
            if word.contains('/') || CODE_EXTENSIONS.contains(&ending) {
                names.insert(word.trim_start_matches("./").to_owned());
            }
            if imported {
                names.insert(word.trim_start_matches('.').replace('.', "/"));
            }
            imported = matches!(
                word,
                "import" | "from" | "require" | "require_relative" | "load" | "use" | "source" | "."
            );
        }
        let root = self.root.clone();
        for name in names {
            self.name_count += 1;
            if self.name_count > MAX_SCRIPT_NAMES {
                return Err(format!("its scripts name more than {MAX_SCRIPT_NAMES} files"));
            }
            let endings =
                ["", ".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".rb", "/__init__.py", "/index.js"];
            for place in [dir, &root] {
                // A script that is created here later changes the stamp of the directory.
                if let Some(above) =
                    self.expand_path(&name, place).parent().filter(|above| above.is_under(&root))
                    && toolgate_files::read_file_stamp(&above) != FileStamp::Absent
                {
                    self.watch(&above);
                }
                for ending in endings {
                    let fact = toolgate_files::resolve(&self.expand_path(&format!("{name}{ending}"), place));
                    if fact.problem.is_some() || fact.kind != EntryKind::File || !fact.real.is_under(&root) {
                        continue;
                    }
                    let head =
                        toolgate_files::read_named_bytes(&fact.real, MAX_BOUND_BYTES).unwrap_or_default();
                    if is_code(&fact.real, &String::from_utf8_lossy(&head))
                        || toolgate_files::is_executable(&fact.real)
                    {
                        self.bind_real_file(&fact.real)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes the stamp of a path once.
    fn watch(&mut self, path: &AbsPath) {
        if !self.files.iter().any(|(known, _)| known == path) {
            self.files.push((path.clone(), toolgate_files::read_file_stamp(path)));
        }
    }
}

/// The key of a hook among the unresolved commands.
pub(crate) fn hook_key(handler: &HookHandler) -> String {
    serde_json::to_string(handler).unwrap_or_default()
}
