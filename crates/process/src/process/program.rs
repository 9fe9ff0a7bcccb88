//! Finding the file of a program, and the files that the kernel executes with it: interpreters and the dynamic loader.

use rustix::fs::{Access, AtFlags, CWD, access, accessat, statat};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use toolgate_proto::timestamp::{may_timestamp_repeat, timestamp_nanos};
use toolgate_proto::{AbsPath, EntryKind};

/// How many interpreters may be scripts themselves.
const MAX_SCRIPT_DEPTH: usize = 4;
/// How much of a `#!` line the kernel reads.
const MAX_FIRST_LINE_BYTES: usize = 256;
/// The most toolchains of rustup that are considered.
const MAX_TOOLCHAINS: usize = 16;
/// How much of a file is read for its `#!` line or ELF headers.
const MAX_HEAD_BYTES: usize = 4096;
/// The most files whose interpreters are cached.
const MAX_CACHED_FILES: usize = 1_000;
/// The most ELF program headers that are read; real programs have about a dozen.
const MAX_HEADERS: u16 = 64;

/// A program of a command line, found as bash would find it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundProgram {
    /// The file, symlinks resolved.
    pub file: AbsPath,
    /// What the kernel executes with it: interpreters of scripts, and the dynamic loader.
    pub interpreters: Vec<AbsPath>,
    /// Those of the interpreters that `env` starts, because the `#!` line of a script names them.
    pub env_programs: Vec<EnvProgram>,
}

/// A program that `env` starts for a script: `#!/usr/bin/env node`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvProgram {
    /// The file of `env`.
    pub env: AbsPath,
    /// What it starts.
    pub program: AbsPath,
}

impl FoundProgram {
    /// A program without interpreters.
    fn new(file: AbsPath) -> Self {
        Self { file, interpreters: Vec::new(), env_programs: Vec::new() }
    }

    /// Adds the interpreters of a file, and theirs up to a depth.
    fn collect_interpreters(&mut self, file: &AbsPath, search_path: &str, cwd: &AbsPath, depth: usize) {
        let names = read_interpreters(file.as_path());
        let found: Vec<Option<AbsPath>> =
            names.iter().map(|name| find_file(name, search_path, cwd)).collect();
        // Only a line with `env` names two.
        if let [Some(env), Some(program)] = found.as_slice() {
            self.env_programs.push(EnvProgram { env: env.clone(), program: program.clone() });
        }
        for interpreter in found.into_iter().flatten() {
            if !self.interpreters.contains(&interpreter) {
                self.interpreters.push(interpreter.clone());
                if depth > 0 {
                    self.collect_interpreters(&interpreter, search_path, cwd, depth - 1);
                }
            }
        }
    }
}

/// Finds programs in a search path. Names with a slash are paths relative to `cwd`.
/// Files below `untrusted` are left out: there the workspace, and not the system, decides what a name means.
pub fn find_programs(
    names: &[String],
    search_path: &str,
    cwd: &AbsPath,
    untrusted: &[AbsPath],
) -> Vec<FoundProgram> {
    let mut out: Vec<FoundProgram> = Vec::new();
    for name in names {
        let Some(file) = find_file(name, search_path, cwd) else { continue };
        if untrusted.iter().any(|root| file.is_under(root)) || out.iter().any(|known| known.file == file) {
            continue;
        }
        let mut program = FoundProgram::new(file.clone());
        program.collect_interpreters(&file, search_path, cwd, MAX_SCRIPT_DEPTH);
        let is_trusted = |path: &AbsPath| !untrusted.iter().any(|root| path.is_under(root));
        program.interpreters.retain(is_trusted);
        program.env_programs.retain(|one| is_trusted(&one.env) && is_trusted(&one.program));
        out.push(program);
        out.extend(find_toolchain_programs(&file, name));
    }
    out
}

/// What a rustup proxy executes: the program of the same name, and the compiler, of each installed toolchain.
/// Files of the project can choose the toolchain; the caller checks that there are none.
fn find_toolchain_programs(file: &AbsPath, name: &str) -> Vec<FoundProgram> {
    let cargo_home = file.parent().filter(|bin| bin.as_path().ends_with(".cargo/bin"));
    let home = cargo_home.and_then(|bin| bin.parent()).and_then(|cargo| cargo.parent());
    let Some(toolchains) = home.map(|home| home.join(".rustup/toolchains")) else { return Vec::new() };
    let entries = std::fs::read_dir(toolchains.as_path()).into_iter().flatten().flatten();
    let bins = entries.take(MAX_TOOLCHAINS).map(|entry| toolchains.join(entry.file_name()).join("bin"));
    let base = name.rsplit('/').next().unwrap_or(name);
    let files = bins.flat_map(|bin| [base, "rustc"].map(|program| bin.join(program)));
    files
        .filter_map(|path| resolve_program(&path))
        .map(|file| {
            let mut program = FoundProgram::new(file.clone());
            program.collect_interpreters(&file, "", &file, 0);
            program
        })
        .collect()
}

/// The file that `execvp` would execute for this name, search path and working directory; `None` if there is none.
/// A file that exists and is not executable is returned if there is no better one: executing it gives the reason.
pub(super) fn find_executable(name: &str, search_path: &str, cwd: &AbsPath) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name));
    }
    // An empty entry of the search path is the working directory.
    let candidates = search_path.split(':').map(|directory| cwd.as_path().join(directory).join(name));
    let mut existing = candidates.filter(|path| !name.is_empty() && path.exists());
    let first = existing.next()?;
    let is_executable = |path: &PathBuf| {
        path.is_file() && accessat(CWD, path.as_path(), Access::EXEC_OK, AtFlags::EACCESS).is_ok()
    };
    if is_executable(&first) { Some(first) } else { existing.find(is_executable).or(Some(first)) }
}

/// The real path of a program that can be executed. Relative entries of the search path are skipped: they depend on where
/// the command runs.
fn find_file(name: &str, search_path: &str, cwd: &AbsPath) -> Option<AbsPath> {
    if name.contains('/') {
        return resolve_program(&cwd.join(name));
    }
    search_path
        .split(':')
        .filter(|directory| directory.starts_with('/'))
        .filter_map(|directory| AbsPath::new(directory).ok())
        .find_map(|directory| resolve_program(&directory.join(name)))
}

/// Resolves symlinks; `None` unless the result is an executable file.
fn resolve_program(path: &AbsPath) -> Option<AbsPath> {
    let fact = toolgate_files::resolve(path);
    let usable = fact.problem.is_none()
        && fact.kind == EntryKind::File
        && access(fact.real.as_path(), Access::EXEC_OK).is_ok();
    usable.then_some(fact.real)
}

/// The interpreter that a file names: in the `#!` line of a script, or as the loader of a dynamic program.
/// Cached by the file's version, because commands use the same few programs.
fn read_interpreters(path: &Path) -> Vec<String> {
    static CACHE: Mutex<BTreeMap<ProgramCacheKey, Vec<String>>> = Mutex::new(BTreeMap::new());
    let now_nanos = i128::from(toolgate_files::now_millis()) * 1_000_000;
    let Ok(stat) = statat(CWD, path, AtFlags::empty()) else { return Vec::new() };
    let nanos = |value: u64| i64::try_from(value).unwrap_or(0);
    let changed = timestamp_nanos(stat.st_ctime, nanos(stat.st_ctime_nsec));
    let version = (stat.st_dev, stat.st_ino, changed, stat.st_size);
    if let Some(known) = CACHE.lock().unwrap_or_else(PoisonError::into_inner).get(&version) {
        return known.clone();
    }
    let mut head = vec![0; MAX_HEAD_BYTES];
    let read = File::open(path).and_then(|file| file.read_at(&mut head, 0));
    head.truncate(read.unwrap_or(0));
    let named = match head.strip_prefix(b"#!") {
        Some(line) => parse_shebang(line),
        None => parse_elf_loader(&head).into_iter().collect(),
    };
    if !may_timestamp_repeat(changed, now_nanos) {
        let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.len() >= MAX_CACHED_FILES {
            cache.clear();
        }
        cache.insert(version, named.clone());
    }
    named
}

/// A file as it was: device, inode number, time of its last change in nanoseconds (`ctime`), size.
type ProgramCacheKey = (u64, u64, i128, i64);

/// The interpreter of a `#!` line; for `env`, also the program that it looks up.
fn parse_shebang(line: &[u8]) -> Vec<String> {
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line.get(..MAX_FIRST_LINE_BYTES).unwrap_or(line)).into_owned();
    let mut words = line.split_whitespace();
    let Some(interpreter) = words.next() else { return Vec::new() };
    let mut out = vec![interpreter.to_owned()];
    if interpreter.ends_with("/env") {
        out.extend(words.find(|word| !word.starts_with('-') && !word.contains('=')).map(str::to_owned));
    }
    out
}

/// The dynamic loader (`PT_INTERP`) of a 64-bit little-endian ELF file, if it is within the part that was read.
fn parse_elf_loader(head: &[u8]) -> Option<String> {
    let number = |from: u64| -> Option<u64> {
        let from = usize::try_from(from).ok()?;
        Some(u64::from_le_bytes(head.get(from..from.checked_add(8)?)?.try_into().ok()?))
    };
    let short = |from: usize| Some(u16::from_le_bytes(head.get(from..from + 2)?.try_into().ok()?));
    if head.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let (table, size, count) = (number(32)?, short(54)?, short(56)?);
    for index in 0..u64::from(count.min(MAX_HEADERS)) {
        let entry = table.checked_add(index * u64::from(size))?;
        if number(entry)? & 0xffff_ffff == u64::from(libc::PT_INTERP) {
            let from = usize::try_from(number(entry.checked_add(8)?)?).ok()?;
            let length = usize::try_from(number(entry.checked_add(32)?)?).ok()?;
            let name = head.get(from..from.checked_add(length)?)?;
            return String::from_utf8(name.strip_suffix(b"\0").unwrap_or(name).to_vec()).ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn names(found: &[FoundProgram]) -> Vec<String> {
        found.iter().flat_map(|one| &one.interpreters).map(ToString::to_string).collect()
    }

    #[test]
    fn a_script_needs_its_interpreters_and_a_program_its_loader() {
        let dir = tempfile::tempdir().unwrap();
        let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        let script = top.join("tool");
        std::fs::write(&script, "#!/usr/bin/env -S sh -e\necho\n").unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{top}:/usr/bin:/bin");
        let found = find_programs(&["tool".into(), "cat".into(), "gone".into()], &path, &top, &[]);
        assert_eq!(found.len(), 2);
        let needed = names(&found);
        let sh = toolgate_files::resolve(&AbsPath::new("/bin/sh").unwrap()).real.to_string();
        assert!(needed.contains(&sh), "{needed:?}");
        let env = toolgate_files::resolve(&AbsPath::new("/usr/bin/env").unwrap()).real;
        let looked_up = EnvProgram { env, program: AbsPath::new(&sh).unwrap() };
        assert_eq!((&found[0].env_programs, &found[1].env_programs), (&vec![looked_up], &Vec::new()));
        assert!(needed.iter().any(|name| name.contains("ld-")), "{needed:?}");
        assert_eq!(find_programs(&["tool".into()], &path, &top, std::slice::from_ref(&top)), []);
    }
}
