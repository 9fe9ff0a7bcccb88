//! `dist`: builds the program as it is published.

use crate::cargo::{cargo_command, target_folder};
use crate::root;
use anyhow::{Context, Result, bail};
use std::process::Command;

/// The linker of published binaries, below the root of the repository.
const DIST_LINKER: &str = "scripts/dist/link_in_start_order.py";

/// Builds `toolgate` with the profile `dist`, with the functions of a start next to each other.
pub(crate) fn build_dist() -> Result<()> {
    install_valgrind()?;
    let root = root()?;
    let linker = format!("linker={}", root.join(DIST_LINKER).display());
    let built = cargo_command()
        .args(["rustc", "--profile", "dist", "--locked", "--package", "toolgate", "--bin", "toolgate"])
        .args(["--", "-C", &linker])
        .current_dir(&root)
        .status()
        .context("cannot start cargo")?;
    if !built.success() {
        bail!("the program could not be built");
    }
    println!("{}", target_folder(&root).join("dist/toolgate").display());
    Ok(())
}

/// The linker records with valgrind which functions a start runs.
fn install_valgrind() -> Result<()> {
    if has_valgrind() {
        return Ok(());
    }
    let installed = Command::new("apt-get").args(["install", "-y", "-qq", "valgrind"]).output();
    if !installed.is_ok_and(|output| output.status.success()) || !has_valgrind() {
        bail!(
            "valgrind is missing, with which a start is recorded; install it and run `cargo xtask dist` again"
        );
    }
    Ok(())
}

fn has_valgrind() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// How many of the functions that a start does not run lie between the two that it runs.
    fn count_between(program: &Path) -> usize {
        let listed = Command::new("nm").arg(program).output().expect("nm starts");
        let text = String::from_utf8(listed.stdout).expect("nm prints text");
        let find_offset = |number: usize| {
            let name = format!("function_{number}");
            let line =
                text.lines().find(|line| line.split(' ').nth(2) == Some(&name)).expect("the symbol is there");
            u64::from_str_radix(line.split(' ').next().expect("an offset"), 16).expect("a number")
        };
        let (first, last) = (find_offset(10), find_offset(49));
        let between = first.min(last)..first.max(last);
        (11..49).filter(|number| between.contains(&find_offset(*number))).count()
    }

    #[test]
    fn functions_that_a_start_runs_are_next_to_each_other() {
        if !has_valgrind() {
            let is_required =
                std::env::var_os("TOOLGATE_TEST_TOOLS").is_some_and(|value| value == "required");
            assert!(!is_required, "valgrind is missing");
            println!("skipped: valgrind is not installed");
            return;
        }
        let folder = tempfile::tempdir().expect("a temporary directory");
        let source = folder.path().join("program.rs");
        // 40 functions of a few hundred bytes, of which a start runs the first and the last.
        let functions: String = (10..50)
            .map(|number| {
                format!(
                    "#[inline(never)] #[unsafe(no_mangle)] pub fn function_{number}(n: u64) -> String {{ \
                     format!(\"{{}} {{}} {{}}\", n + {number}, n * {number}, n - {number}) }}\n"
                )
            })
            .collect();
        let all: String = (11..49).map(|number| format!("function_{number}(n);")).collect();
        let text = format!(
            "{functions}\nfn main() {{ let n = std::env::args().count() as u64 + 100; \
             println!(\"{{}}{{}}\", function_10(n), function_49(n)); if n > 1000 {{ {all} }} }}"
        );
        std::fs::write(&source, text).expect("the program is written");
        let linker = format!("linker={}", root().expect("a root").join(DIST_LINKER).display());
        let build = |name: &str, options: &[&str]| {
            let program = folder.path().join(name);
            let compiled = Command::new("rustc")
                .args(["--edition", "2024", "-C", "opt-level=1", "-o"])
                .arg(&program)
                .arg(&source)
                .args(options)
                .output()
                .expect("rustc starts");
            assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
            let ran = Command::new(&program).output().expect("the program starts");
            (count_between(&program), ran.stdout)
        };
        let (scattered, plain) = build("plain", &[]);
        let (adjacent, ordered) = build("ordered", &["-C", &linker]);
        assert_eq!((plain, adjacent), (ordered, 0));
        assert!(scattered > 0, "the linker has this order by itself, so the test shows nothing");
        // Stripped as cargo does it, and only in the end.
        let stripped = folder.path().join("stripped");
        let compiled = Command::new("rustc")
            .args(["--edition", "2024", "-C", "strip=symbols", "-C", &linker, "-o"])
            .arg(&stripped)
            .arg(&source)
            .status()
            .expect("rustc starts");
        assert!(compiled.success());
        let listed = Command::new("nm").arg(&stripped).output().expect("nm starts");
        assert!(listed.stdout.is_empty());
        assert!(Command::new(&stripped).output().expect("the program starts").status.success());
    }
}
