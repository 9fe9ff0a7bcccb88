//! What a project would run, down to the bytes.
//!
//! Trust holds for bytes that the user could look at, so each command of a hook or server is resolved to the files that
//! it executes: the program by its place, and by its content unless only the administrator can change it; scripts that
//! an interpreter is given; files of the workspace that the command or such a script names.
//! A command that chooses its code elsewhere (a package runner, a task runner, a variable, standard input) cannot be
//! resolved, and is not trusted.

use super::programs::{
    CODE_EXTENSIONS, CODE_RUNNERS, LOADER_VARIABLES, OPTIONS_WITH_VALUE, SHELL_BUILTINS, find_interpreter,
    is_code, parse_assignments,
};
use super::values::{HookHandler, HookHandlerKind};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use toolgate_files::FileStamp;
use toolgate_gate::ledger::sha256_hex;
use toolgate_proto::{AbsPath, CommandLine, EntryKind, ShellKind, Workspace};
use toolgate_shell_syntax::{CommandPart, CommandWord, analyse};

/// Larger files are not read, and so not trusted.
const MAX_BOUND_BYTES: u64 = 16 * 1024 * 1024;
/// Outside the workspace a larger program is bound by its place, size and time: reading a whole interpreter at every
/// start would cost more than all else.
const MAX_OUTSIDE_BYTES: u64 = 1024 * 1024;
/// Scripts that name further scripts are followed no further than this.
const MAX_SCRIPTS: usize = 256;
/// Names in scripts that are looked up.
const MAX_SCRIPT_NAMES: usize = 4096;

/// Where programs are looked up where nothing else is said.
const DEFAULT_SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A command that cannot be resolved to bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnresolvedCommand {
    /// The hook or server, in words.
    pub what: String,
    /// Why.
    pub why: String,
    /// The hook as written, or the server's name.
    pub(crate) key: String,
}

/// Gathers what commands would run.
#[derive(Debug)]
pub(super) struct CommandBinder<'a> {
    root: &'a AbsPath,
    home: Option<&'a AbsPath>,
    search: Vec<String>,
    /// What is bound: a place or a file, and its digest or target.
    pub(super) bound: BTreeMap<String, String>,
    /// Files that belong to it, there or not, as they were.
    pub(super) files: Vec<(AbsPath, FileStamp)>,
    /// What would run out of the workspace, or of other places that are not the system's.
    pub(super) scripts: Vec<AbsPath>,
    pub(super) unresolved: Vec<UnresolvedCommand>,
    name_count: usize,
}

impl<'a> CommandBinder<'a> {
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

    /// Looks programs up in other directories from here on.
    pub(super) fn set_search_path(&mut self, path: &str) {
        self.search = path.split(':').map(str::to_owned).collect();
    }

    /// Binds a whole file.
    pub(super) fn bind_file(&mut self, path: &AbsPath, content: &[u8]) {
        self.bound.insert(format!("file {path}"), sha256_hex(content));
    }

    /// Binds what a hook would run.
    pub(super) fn bind_hook(&mut self, handler: &HookHandler) {
        if handler.kind != HookHandlerKind::Command {
            return;
        }
        let Some(command) = handler.command.as_deref() else { return };
        let root = self.root.clone();
        let done = match &handler.args {
            Some(args) => {
                let filled = |text: &str| text.replace("${CLAUDE_PROJECT_DIR}", &root.to_string());
                let words: Vec<Option<String>> = std::iter::once(command)
                    .chain(args.iter().map(String::as_str))
                    .map(|word| Some(filled(word)))
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

    /// Binds what a server would run.
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

    /// Binds files that the value of an environment variable names. One that chooses where code is loaded from must not
    /// lead into the workspace.
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

    /// A line for the shell.
    fn bind_shell_line(&mut self, line: &str, cwd: &AbsPath) -> Result<(), String> {
        let mut text = line.to_owned();
        let root = self.root.to_string();
        for name in ["CLAUDE_PROJECT_DIR", "TOOLGATE_PROJECT_DIR"] {
            if text.contains(name) {
                let plain =
                    |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ',' | '@');
                if !root.chars().all(plain) {
                    return Err(format!(
                        "the path of the workspace cannot stand in a line for the shell: `{root}`"
                    ));
                }
                text = text.replace(&format!("${{{name}}}"), &root).replace(&format!("${name}"), &root);
            }
        }
        let command = CommandLine { text, shell: ShellKind::Bash, cwd: cwd.clone(), unsandboxed: false };
        let workspace =
            Workspace { cwd: cwd.clone(), roots: vec![self.root.clone()], home: self.home.cloned() };
        let analysis = analyse(&command, &workspace);
        if let Some(doubt) = &analysis.doubt {
            return Err(format!("the line is not understood: {}", doubt.text));
        }
        for part in &analysis.parts {
            self.bind_shell_command(part, cwd)?;
        }
        Ok(())
    }

    fn bind_shell_command(&mut self, part: &CommandPart, cwd: &AbsPath) -> Result<(), String> {
        for (variable, value) in parse_assignments(&part.text) {
            self.bind_variable(variable, value)?;
            if variable == "PATH" || variable.starts_with("LD_") {
                return Err(format!("it sets {variable}, which chooses what is run"));
            }
        }
        if part.argv.is_empty() {
            // Nothing runs here, or nothing that can be named.
            return match (&part.program, &part.allow_text) {
                (None, Some(text)) if text.is_empty() => Ok(()),
                _ => Err(format!("`{}` chooses its program when it runs", part.text)),
            };
        }
        let words: Vec<Option<String>> = part
            .argv
            .iter()
            .map(|word: &CommandWord| word.live.is_none().then(|| word.text.clone()))
            .collect();
        self.bind_argv(&words, cwd, true)
    }

    /// A command as words; a word that is not known before it runs is absent.
    fn bind_argv(&mut self, words: &[Option<String>], cwd: &AbsPath, in_shell: bool) -> Result<(), String> {
        let Some((program, args)) = words.split_first() else { return Ok(()) };
        let Some(program) = program else {
            return Err("its program is not known before it runs".to_owned());
        };
        let name = program.rsplit('/').next().unwrap_or_default();
        if CODE_RUNNERS.contains(&name) {
            return Err(format!("`{name}` runs code that the command does not name"));
        }
        let wrapper =
            ["env", "nohup", "nice", "timeout", "time", "stdbuf", "setsid", "sudo", "command", "exec"];
        // In a line for the shell the analysis lists what a wrapper runs as a part of its own.
        if wrapper.contains(&name) && !in_shell && !args.is_empty() {
            let rest = args.iter().position(|word| {
                word.as_deref().is_none_or(|word| {
                    !word.starts_with('-')
                        && !word.contains('=')
                        && !word.starts_with(|c: char| c.is_ascii_digit())
                })
            });
            self.bind_program(program, cwd)?;
            for (variable, value) in args.iter().flatten().filter_map(|word| word.split_once('=')) {
                if variable == "PATH" || variable.starts_with("LD_") {
                    return Err(format!("it sets {variable}, which chooses what is run"));
                }
                self.bind_variable(variable, value)?;
            }
            return match rest.and_then(|at| args.get(at..)) {
                Some(rest) => self.bind_argv(rest, cwd, false),
                None => Ok(()),
            };
        }
        match name {
            "." | "source" if in_shell => {
                let named = args.first().and_then(Option::as_deref);
                let script = named.ok_or("the file that it takes in is not known before it runs")?;
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

    /// What an interpreter is given to run.
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
        // Its input is the call that it is told of, which a model wrote.
        Err(format!("`{name}` without a script runs what it reads"))
    }

    fn expand_path(&self, text: &str, cwd: &AbsPath) -> AbsPath {
        match (text.strip_prefix("~/"), self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => cwd.join(text),
        }
    }

    /// A program, looked up as the system does.
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
                // What is put there later would come first.
                if candidate.is_under(self.root) {
                    self.watch(&candidate);
                }
            }
            found
        };
        let found = found.ok_or_else(|| format!("there is no program `{program}`"))?;
        let fact = toolgate_files::resolve(&found);
        if fact.problem.is_some() || fact.kind != EntryKind::File {
            return Err(format!("there is no program `{program}`"));
        }
        self.bound.insert(format!("program {found}"), fact.real.to_string());
        self.bound.insert(format!("executable {found}"), toolgate_files::is_executable(&found).to_string());
        self.watch(&found);
        self.bind_real_file(&fact.real)
    }

    /// A script that an interpreter is given.
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

    /// Binds a real file by content, and what it names.
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

    /// The interpreter that a script names in its first line.
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

    /// Python takes modules beside a script before its own, so a new name there is new code.
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

    /// Binds the scripts of the workspace that a script names.
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
                // A script that is put there later shows as a change of its directory.
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

    fn watch(&mut self, path: &AbsPath) {
        if !self.files.iter().any(|(known, _)| known == path) {
            self.files.push((path.clone(), toolgate_files::read_file_stamp(path)));
        }
    }
}

/// A hook as it is known among those that cannot be resolved.
pub(crate) fn hook_key(handler: &HookHandler) -> String {
    serde_json::to_string(handler).unwrap_or_default()
}
