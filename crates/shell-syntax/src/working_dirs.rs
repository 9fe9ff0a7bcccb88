//! The working directories in which a command may run, and the paths that its words name from there.
//!
//! `cd a || cd b; cat x` reads one of two files, and the analysis reports both. After a `cd` to an unknown directory,
//! relative names have no path; absolute ones still do.

use crate::analysis::{EffectOrigin, InferredEffect};
use crate::shell_arg::ShellArg;
use std::sync::Arc;
use toolgate_proto::{AbsPath, Effect, PathScope, Workspace, WriteKind};

/// The directories in which a command may run. An empty set means that the directory is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkingDirs(Arc<[AbsPath]>);

/// With more alternatives the directory counts as unknown: every path is resolved against each of them.
const MAX_WORKING_DIRS: usize = 4;

impl WorkingDirs {
    /// Exactly this one.
    pub(crate) fn single(directory: AbsPath) -> Self {
        Self(Arc::new([directory]))
    }

    /// Any directory.
    pub(crate) fn unknown() -> Self {
        Self(Arc::new([]))
    }

    /// Whether any directory is possible.
    pub(crate) fn is_unknown(&self) -> bool {
        self.0.is_empty()
    }

    /// The possible directories; none if they are not known.
    pub(crate) fn all(&self) -> &[AbsPath] {
        &self.0
    }

    /// The same, to be kept with a command.
    pub(crate) fn share(&self) -> Arc<[AbsPath]> {
        Arc::clone(&self.0)
    }

    /// Whether `directory` is the only possible one.
    pub(crate) fn is_only(&self, directory: &AbsPath) -> bool {
        matches!(&*self.0, [only] if only == directory)
    }

    /// The directories of both, after commands of which only one may have run.
    pub(crate) fn merge(&self, other: &Self) -> Self {
        if self.is_unknown() || other.is_unknown() {
            return Self::unknown();
        }
        if Arc::ptr_eq(&self.0, &other.0) {
            return self.clone();
        }
        let mut all = self.0.to_vec();
        for directory in other.0.iter() {
            if !all.contains(directory) {
                all.push(directory.clone());
            }
        }
        if all.len() > MAX_WORKING_DIRS { Self::unknown() } else { Self(all.into()) }
    }

    /// The directories after a successful `cd` with these arguments. Without `-P` the shell resolves `..` in the text
    /// of
    /// the path, before it follows symlinks.
    pub(crate) fn after_cd(&self, args: &[ShellArg], workspace: &Workspace) -> Self {
        // The last of `-L` and `-P` applies.
        let options = args.iter().take_while(|arg| matches!(arg.text.as_str(), "-L" | "-P")).count();
        let (options, words) = args.split_at_checked(options).unwrap_or_default();
        let physical = options.last().is_some_and(|option| option.text == "-P");
        let words = match words.split_first() {
            Some((first, rest)) if first.text == "--" => rest,
            _ => words,
        };
        let mut operands = words.iter();
        let target = match (operands.next(), operands.next()) {
            (None, _) => workspace.home.clone().map(Self::single),
            (Some(directory), None) if !directory.text.starts_with('-') => {
                self.resolve(directory, workspace).map(|paths| {
                    Self(paths.into_iter().map(|path| if physical { path } else { path.lexical() }).collect())
                })
            }
            (Some(_), _) => None,
        };
        target.unwrap_or_else(Self::unknown)
    }

    /// The paths that a literal word may name; `None` if they are not known.
    pub(crate) fn resolve(&self, arg: &ShellArg, workspace: &Workspace) -> Option<Vec<AbsPath>> {
        if arg.live.is_some() {
            return None;
        }
        self.resolve_text(&arg.text, arg.tilde, workspace)
    }

    /// The paths that a text may name. `tilde`: it begins with the home directory.
    fn resolve_text(&self, text: &str, tilde: bool, workspace: &Workspace) -> Option<Vec<AbsPath>> {
        if tilde {
            let rest = text.trim_start_matches('~').trim_start_matches('/');
            return Some(vec![workspace.home.as_ref()?.join(rest)]);
        }
        if text.starts_with('/') {
            return AbsPath::new(text).ok().map(|path| vec![path]);
        }
        if self.is_unknown() {
            return None;
        }
        Some(self.0.iter().map(|directory| directory.join(text)).collect())
    }

    /// The effects of reading what a word names; `None` if the path is not known.
    pub(crate) fn read_effects(
        &self,
        arg: &ShellArg,
        scope: PathScope,
        origin: EffectOrigin,
        workspace: &Workspace,
    ) -> Option<Vec<InferredEffect>> {
        self.path_effects(arg, origin, workspace, |path, wide| Effect::Read {
            path,
            scope: if wide { PathScope::Tree } else { scope },
        })
    }

    /// The effects of writing what a word names; `None` if the path is not known.
    pub(crate) fn write_effects(
        &self,
        arg: &ShellArg,
        kind: WriteKind,
        origin: EffectOrigin,
        workspace: &Workspace,
    ) -> Option<Vec<InferredEffect>> {
        self.path_effects(arg, origin, workspace, |path, wide| Effect::Write {
            path,
            kind: if wide { WriteKind::Tree } else { kind },
        })
    }

    /// The effects on what a word names. `effect` gets each path, and whether everything below it is meant.
    fn path_effects(
        &self,
        arg: &ShellArg,
        origin: EffectOrigin,
        workspace: &Workspace,
        effect: impl Fn(AbsPath, bool) -> Effect,
    ) -> Option<Vec<InferredEffect>> {
        if let Some(pattern) = &arg.pattern {
            return self.glob_effects(arg, pattern, origin, workspace, effect);
        }
        let paths = self.resolve(arg, workspace)?;
        Some(
            paths
                .into_iter()
                .map(|path| InferredEffect {
                    effect: effect(path, false),
                    origin,
                    glob: None,
                    entries: Vec::new(),
                })
                .collect(),
        )
    }

    /// The effects on what a glob matches: on the directory that its literal components name, with the pattern.
    ///
    /// The policy matches the pattern against rules, and the facts about the directory tell which files exist.
    fn glob_effects(
        &self,
        arg: &ShellArg,
        pattern: &str,
        origin: EffectOrigin,
        workspace: &Workspace,
        effect: impl Fn(AbsPath, bool) -> Effect,
    ) -> Option<Vec<InferredEffect>> {
        let components: Vec<&str> = pattern.split('/').collect();
        let literal: Vec<&str> = components
            .iter()
            .take_while(|component| !component.contains(['*', '?', '[', '\\']))
            .copied()
            .collect();
        // An absolute pattern has an empty first component.
        let head = if literal == [""] { "/".to_owned() } else { literal.join("/") };
        let rest = components.get(literal.len()..).unwrap_or_default();
        let wide = rest.len() > 1 || rest.iter().any(|component| component.contains("**"));
        let directories = if head.is_empty() {
            (!self.is_unknown()).then(|| self.0.to_vec())?
        } else {
            self.resolve_text(&head, arg.tilde, workspace)?
        };
        let inferred = directories.into_iter().map(|directory| {
            let glob = format!("{}/{}", directory.to_string().trim_end_matches('/'), rest.join("/"));
            InferredEffect { effect: effect(directory, wide), origin, glob: Some(glob), entries: Vec::new() }
        });
        Some(inferred.collect())
    }

    /// The paths that `$HOME/x` or `$PWD/x` most likely name. The line or the environment may have changed the
    /// variable, so that they are good enough to deny by, but not to allow by.
    ///
    /// They are added as effects beside the unknown one, so that a rule against reading `~/.ssh` matches `cat
    /// "$HOME/.ssh/x"`.
    pub(crate) fn likely_paths(&self, arg: &ShellArg, workspace: &Workspace) -> Vec<AbsPath> {
        let bases = match arg.variables.as_slice() {
            [name] if name == "HOME" => workspace.home.clone().into_iter().collect(),
            [name] if name == "PWD" => self.0.to_vec(),
            _ => Vec::new(),
        };
        let leads = arg.text.trim_start_matches('"').starts_with('$');
        let below = |base: AbsPath| base.join(arg.emptied().trim_start_matches('/'));
        let mut paths: Vec<AbsPath> = bases.into_iter().filter(|_| leads).map(below).collect();
        // What is unknown in `/et$x/passwd` does not make it a path of the workspace, nor does the user in `~root/x`.
        let is_absolute = arg.first_char_known && arg.emptied().starts_with('/');
        if arg.live.is_some() && arg.pattern.is_none() && (is_absolute || arg.text.starts_with('~')) {
            paths.push(below(AbsPath::root()));
        }
        paths
    }
}

/// The working directories after a command, by its exit status: `cd x && a || b` runs `a` in `x` and `b` where it
/// started.
pub(crate) struct WorkingDirsByStatus {
    /// The directories if the command succeeded.
    pub(crate) success: WorkingDirs,
    /// The directories if it failed.
    pub(crate) failure: WorkingDirs,
}

impl WorkingDirsByStatus {
    /// The same directories whatever the exit status is.
    pub(crate) fn unchanged(dirs: WorkingDirs) -> Self {
        Self { failure: dirs.clone(), success: dirs }
    }

    /// The directories if the exit status does not matter.
    pub(crate) fn either(&self) -> WorkingDirs {
        self.success.merge(&self.failure)
    }
}

/// Whether a path is no file: the null device, or one of the streams of the command itself.
pub(crate) fn is_null_or_stream_device(text: &str) -> bool {
    matches!(text, "/dev/null" | "/dev/stdin" | "/dev/stdout" | "/dev/stderr" | "/dev/zero")
        || text
            .strip_prefix("/dev/fd/")
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The address of a redirect to `/dev/tcp/host/port` or `/dev/udp/host/port`, which bash opens as a socket.
pub(crate) fn parse_network_redirect(text: &str) -> Option<String> {
    let (protocol, rest) = [("tcp", "/dev/tcp/"), ("udp", "/dev/udp/")]
        .into_iter()
        .find_map(|(protocol, prefix)| text.strip_prefix(prefix).map(|rest| (protocol, rest)))?;
    Some(format!("{protocol}://{}", rest.replacen('/', ":", 1)))
}
