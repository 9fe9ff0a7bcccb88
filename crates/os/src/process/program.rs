//! The files that must be executable for a program to start: itself, its interpreters, its loader.

use rustix::fs::{Access, access};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use toolgate_proto::{AbsPath, EntryKind};

/// Scripts whose interpreter is a script again.
const MAX_SCRIPTS: usize = 4;
/// As much of a first line as the kernel reads.
const MAX_FIRST_LINE: usize = 256;
/// Entries of a program header table; real programs have about a dozen.
const MAX_HEADERS: u16 = 64;

/// A program as a command line names it, found where bash would find it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundProgram {
    /// The file, symlinks resolved.
    pub file: AbsPath,
    /// What the kernel executes with it: interpreters of scripts, the dynamic loader.
    pub interpreters: Vec<AbsPath>,
}

/// Finds programs on a search path. Names with a slash are paths from `cwd`.
/// What lies below one of `untrusted` is left out: there the workspace, and not the system, says what a name means.
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
        let mut interpreters = Vec::new();
        collect_interpreters(&file, search_path, cwd, MAX_SCRIPTS, &mut interpreters);
        interpreters.retain(|path| !untrusted.iter().any(|root| path.is_under(root)));
        out.push(FoundProgram { file, interpreters });
    }
    out
}

fn find_file(name: &str, search_path: &str, cwd: &AbsPath) -> Option<AbsPath> {
    if name.contains('/') {
        return real_program(&cwd.join(name));
    }
    search_path
        .split(':')
        .filter(|directory| directory.starts_with('/'))
        .filter_map(|directory| AbsPath::new(directory).ok())
        .find_map(|directory| real_program(&directory.join(name)))
}

fn real_program(path: &AbsPath) -> Option<AbsPath> {
    let fact = crate::resolve(path);
    let usable = fact.problem.is_none()
        && fact.kind == EntryKind::File
        && access(fact.real.as_path(), Access::EXEC_OK).is_ok();
    usable.then_some(fact.real)
}

fn collect_interpreters(
    file: &AbsPath,
    search_path: &str,
    cwd: &AbsPath,
    depth: usize,
    out: &mut Vec<AbsPath>,
) {
    let Some(named) = interpreters_of(file.as_path()) else { return };
    for name in named {
        let Some(interpreter) = find_file(&name, search_path, cwd) else { continue };
        if !out.contains(&interpreter) {
            out.push(interpreter.clone());
            if depth > 0 {
                collect_interpreters(&interpreter, search_path, cwd, depth - 1, out);
            }
        }
    }
}

/// What a file names as its interpreter: the first line of a script, the loader of a dynamic program.
fn interpreters_of(path: &Path) -> Option<Vec<String>> {
    let mut file = File::open(path).ok()?;
    let mut head = Vec::new();
    file.by_ref().take(MAX_FIRST_LINE as u64).read_to_end(&mut head).ok()?;
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let mut words = line.split_whitespace();
        let interpreter = words.next()?.to_owned();
        let mut out = vec![interpreter.clone()];
        if interpreter.ends_with("/env") {
            out.extend(words.find(|word| !word.starts_with('-') && !word.contains('=')).map(str::to_owned));
        }
        return Some(out);
    }
    loader_of(&file, &head).map(|loader| vec![loader])
}

/// The loader that an ELF file of this machine's kind names.
fn loader_of(file: &File, head: &[u8]) -> Option<String> {
    const LOADER: u32 = 3;
    let number = |from: usize, bytes: &[u8]| -> Option<u64> {
        let slice = bytes.get(from..from + 8)?;
        Some(u64::from_le_bytes(slice.try_into().ok()?))
    };
    let short = |from: usize| Some(u16::from_le_bytes(head.get(from..from + 2)?.try_into().ok()?));
    // 64 bits, little-endian.
    if head.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let (table, size, count) = (number(32, head)?, short(54)?, short(56)?);
    if size < 56 || count > MAX_HEADERS {
        return None;
    }
    for index in 0..count {
        let mut entry = [0u8; 56];
        file.read_exact_at(&mut entry, table + u64::from(index) * u64::from(size)).ok()?;
        let kind = u32::from_le_bytes(entry.get(..4)?.try_into().ok()?);
        if kind == LOADER {
            let (offset, length) = (number(8, &entry)?, number(32, &entry)?);
            let mut name = vec![0u8; usize::try_from(length.min(4096)).ok()?];
            file.read_exact_at(&mut name, offset).ok()?;
            name.retain(|byte| *byte != 0);
            return String::from_utf8(name).ok();
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
        let sh = crate::resolve(&AbsPath::new("/bin/sh").unwrap()).real.to_string();
        assert!(needed.contains(&sh), "{needed:?}");
        assert!(needed.iter().any(|name| name.contains("ld-")), "{needed:?}");
        assert_eq!(find_programs(&["tool".into()], &path, &top, std::slice::from_ref(&top)), []);
    }
}
