//! Instructions that users and projects keep in files: `CLAUDE.md`, `AGENTS.md`, and what they import.
//!
//! The files of a project are not trusted to read others, because their text goes to a model: an import of theirs stays
//! inside the project, and what the rules for reading withhold is left out, under whatever name or symlink it is imported.

use std::collections::BTreeSet;
use toolgate_files::{read_settings_text, resolve};
use toolgate_proto::{AbsPath, EntryKind};

/// The most bytes of one file.
const MAX_FILE_BYTES: u64 = 256 * 1024;
/// The most characters of all instructions together.
const MAX_INSTRUCTION_CHARS: usize = 120_000;
/// How deep imports may be nested.
const MAX_IMPORT_DEPTH: usize = 5;

/// Names of files with instructions, in a directory of the project.
const PROJECT_FILES: [&str; 4] = ["AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"];

/// Where instructions are looked for.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct InstructionPlaces {
    /// The user's own files.
    pub user_files: Vec<AbsPath>,
    /// The directories of the project, outermost first; the last is the working directory.
    pub project_dirs: Vec<AbsPath>,
    /// The user's home, for imports in the user's own files.
    pub home: Option<AbsPath>,
}

impl InstructionPlaces {
    /// Sets the files of the user.
    pub fn with_user_files(mut self, files: Vec<AbsPath>) -> Self {
        self.user_files = files;
        self
    }

    /// Sets the directories of the project.
    pub fn with_project_dirs(mut self, dirs: Vec<AbsPath>) -> Self {
        self.project_dirs = dirs;
        self
    }

    /// Sets the home directory.
    pub fn with_home(mut self, home: impl Into<Option<AbsPath>>) -> Self {
        self.home = home.into();
        self
    }
}

/// Whose instructions a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionKind {
    /// The user's, for every project.
    User,
    /// The project's.
    Project,
    /// The user's, for this project.
    Local,
}

impl InstructionKind {
    /// Its name in the input of hooks.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "User",
            Self::Project => "Project",
            Self::Local => "Local",
        }
    }
}

/// A file whose instructions go to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadedInstructions {
    /// The file.
    pub path: AbsPath,
    /// Whose it is.
    pub kind: InstructionKind,
}

impl LoadedInstructions {
    /// Creates the entry of a file.
    pub fn new(path: AbsPath, kind: InstructionKind) -> Self {
        Self { path, kind }
    }
}

/// The instructions of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstructionFile {
    /// The file.
    pub path: AbsPath,
    /// Whose it is.
    pub kind: InstructionKind,
    /// Its text, with imports in place.
    pub text: String,
}

/// Reads all instructions. `is_withheld` says which files a model may not read: those that a rule denies or asks about, and
/// those that may hold secrets. The second value says what was left out and why.
pub fn read_instructions(
    places: &InstructionPlaces,
    is_withheld: &dyn Fn(&AbsPath) -> bool,
) -> (Vec<InstructionFile>, Vec<String>) {
    let mut reader = InstructionReader {
        is_withheld,
        files: Vec::new(),
        problems: Vec::new(),
        seen: BTreeSet::new(),
        chars: 0,
    };
    for file in &places.user_files {
        reader.add_file(file, None, places.home.as_ref());
    }
    if let Some(root) = places.project_dirs.first() {
        let root = resolve(root).real;
        for dir in &places.project_dirs {
            for name in PROJECT_FILES {
                reader.add_file(&dir.join(name), Some(&root), None);
            }
        }
    }
    (reader.files, reader.problems)
}

/// The instructions as one text for the model; none if there are none.
pub fn render_instructions(files: &[InstructionFile]) -> Option<String> {
    if files.is_empty() {
        return None;
    }
    let mut text = "Instructions that the user keeps in files for every session here. They apply where they fit the task, \
                    and the user's own words come first.\n"
        .to_owned();
    for file in files {
        text.push_str(&format!(
            "\n<instructions file=\"{}\">\n{}\n</instructions>\n",
            file.path,
            file.text.trim()
        ));
    }
    Some(text)
}

/// Reads files, each once, up to a limit of all together.
struct InstructionReader<'a> {
    /// Whether a model may not read a file.
    is_withheld: &'a dyn Fn(&AbsPath) -> bool,
    /// What was read.
    files: Vec<InstructionFile>,
    /// What was left out, and why.
    problems: Vec<String>,
    /// The real paths that were read.
    seen: BTreeSet<AbsPath>,
    /// How many characters were read.
    chars: usize,
}

impl InstructionReader<'_> {
    /// Adds a file if it is there. `root` limits where a project's file may be and what it may import.
    fn add_file(&mut self, path: &AbsPath, root: Option<&AbsPath>, home: Option<&AbsPath>) {
        // A file under one of the fixed names is there to be read. A symlink could be there for another file.
        let found = resolve(path);
        if found.kind != EntryKind::Missing && found.real != *path && self.is_kept_back(path, &found.real) {
            return;
        }
        let Some(text) = self.read(path, found.real, root) else { return };
        let text = self.expand_imports(path, &text, (root, home), 0);
        if text.trim().is_empty() {
            return;
        }
        let kind = match root {
            None => InstructionKind::User,
            Some(_) if path.to_string().ends_with(".local.md") => InstructionKind::Local,
            Some(_) => InstructionKind::Project,
        };
        self.files.push(InstructionFile { path: path.clone(), kind, text });
    }

    /// Whether a file is withheld, by its name or by the real file behind it. If so, it is reported.
    fn is_kept_back(&mut self, path: &AbsPath, real: &AbsPath) -> bool {
        let is_withheld = (self.is_withheld)(path) || (self.is_withheld)(real);
        if is_withheld {
            self.problems
                .push(format!("`{path}` is left out, because a rule withholds it or it may hold a secret"));
        }
        is_withheld
    }

    /// The text of one file; none if it is not there, was read before, or may not be read. `real` was resolved once, so
    /// that what was checked is what is read.
    fn read(&mut self, path: &AbsPath, real: AbsPath, root: Option<&AbsPath>) -> Option<String> {
        if root.is_some_and(|root| !real.is_under(root)) {
            self.problems.push(format!("`{path}` is left out, because it leads out of the project"));
            return None;
        }
        if !self.seen.insert(real.clone()) {
            return None;
        }
        let text = match read_settings_text(&real, MAX_FILE_BYTES) {
            Ok(text) => text?,
            Err(problem) => {
                self.problems.push(format!("`{path}` is left out: {problem}"));
                return None;
            }
        };
        self.chars += text.chars().count();
        if self.chars > MAX_INSTRUCTION_CHARS {
            self.problems.push(format!(
                "`{path}` is left out, because the instructions together exceed {MAX_INSTRUCTION_CHARS} characters"
            ));
            return None;
        }
        Some(text)
    }

    /// Replaces each line that is only `@path` by the file.
    fn expand_imports(
        &mut self,
        path: &AbsPath,
        text: &str,
        (root, home): (Option<&AbsPath>, Option<&AbsPath>),
        depth: usize,
    ) -> String {
        let mut out = String::with_capacity(text.len());
        let mut in_fence = false;
        let dir = path.parent().unwrap_or_else(AbsPath::root);
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                in_fence = !in_fence;
            }
            let import = line.trim().trim_start_matches("- ").strip_prefix('@').filter(|rest| is_path(rest));
            let imported = import.filter(|_| !in_fence && depth < MAX_IMPORT_DEPTH).and_then(|given| {
                let target = match (given.strip_prefix("~/"), home) {
                    (Some(rest), Some(home)) => home.join(rest),
                    (Some(_), None) => {
                        self.problems.push(format!(
                            "`@{given}` in `{path}` is left out: a project imports its own files only"
                        ));
                        return None;
                    }
                    (None, _) => dir.join(given),
                };
                let real = resolve(&target).real;
                if self.is_kept_back(&target, &real) {
                    return None;
                }
                let text = self.read(&target, real, root)?;
                Some(self.expand_imports(&target, &text, (root, home), depth + 1))
            });
            match imported {
                Some(imported) => out.push_str(imported.trim_end()),
                None => out.push_str(line),
            }
            out.push('\n');
        }
        out
    }
}

/// Whether the rest of an `@` line is a path: one word with a dot or a slash.
fn is_path(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace) && text.contains(['.', '/'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(files: &[(&str, &str)]) -> (tempfile::TempDir, AbsPath) {
        let dir = tempfile::tempdir().unwrap();
        let root = toolgate_files::resolve(&AbsPath::new(dir.path()).unwrap()).real;
        for (name, text) in files {
            let path = root.join(name);
            toolgate_files::write_private_file(&path, text.as_bytes()).unwrap();
        }
        (dir, root)
    }

    #[test]
    fn imports_are_put_in_place_and_stay_inside_the_project() {
        let (_dir, root) = project(&[
            ("outside.md", "never"),
            (
                "p/CLAUDE.md",
                "one\n@docs/a.md\n```\n@docs/b.md\n```\n@../outside.md\n@~/x.md\n@.env\n@docs/twin.md\nmail a@b.c",
            ),
            ("p/docs/a.md", "two\n@b.md"),
            ("p/docs/b.md", "three\n@a.md"),
            ("p/.env", "SECRET=1"),
        ]);
        std::os::unix::fs::symlink(root.join("p/.env").as_path(), root.join("p/docs/twin.md").as_path())
            .unwrap();
        let places = InstructionPlaces {
            project_dirs: vec![root.join("p")],
            home: Some(root.clone()),
            ..InstructionPlaces::default()
        };
        let (files, problems) = read_instructions(&places, &|path| path.as_path().ends_with(".env"));
        assert_eq!(files.len(), 1);
        assert_eq!(
            files[0].text,
            "one\ntwo\nthree\n@a.md\n```\n@docs/b.md\n```\n@../outside.md\n@~/x.md\n@.env\n@docs/twin.md\nmail a@b.c\n"
        );
        assert_eq!(problems.len(), 4, "{problems:?}");
    }

    #[test]
    fn a_symlink_with_the_name_of_instructions_brings_no_file_that_is_withheld() {
        let (_dir, root) = project(&[("p/.env", "SECRET=1")]);
        std::os::unix::fs::symlink(".env", root.join("p/CLAUDE.md").as_path()).unwrap();
        let places = InstructionPlaces { project_dirs: vec![root.join("p")], ..InstructionPlaces::default() };
        let (files, problems) = read_instructions(&places, &|path| path.as_path().ends_with(".env"));
        assert_eq!((files.len(), problems.len()), (0, 1), "{problems:?}");
    }

    #[test]
    fn too_much_text_is_left_out_and_reported() {
        let long = "x".repeat(100_000);
        let (_dir, root) = project(&[("CLAUDE.md", &long), ("sub/CLAUDE.md", &long)]);
        let places = InstructionPlaces {
            project_dirs: vec![root.clone(), root.join("sub")],
            ..InstructionPlaces::default()
        };
        let (files, problems) = read_instructions(&places, &|_| false);
        assert_eq!((files.len(), problems.len()), (1, 1));
        assert!(render_instructions(&[]).is_none() && render_instructions(&files).is_some());
    }
}
