//! The script oracle: no script of `awk` or `sed` that needs no approval writes a file, runs a program or reveals a
//! secret.
//!
//! Scripts are generated around payloads that do so. Every installed implementation runs those that need no approval.

use super::oracle::generate::scripts;
use super::random_numbers::{SeededRandom, setting};
use super::simple_policy::analysed;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The names under which implementations are installed.
const IMPLEMENTATIONS: &[(&str, &[&str])] =
    &[("awk", &["mawk", "gawk", "original-awk", "busybox awk"]), ("sed", &["sed", "busybox sed", "gsed"])];

/// What a payload contains; a script without it can do no harm.
const PAYLOAD_SIGNS: &[&str] = &["m6", "\"o\"", " o", ".env", "system"];

/// The content of the secret file.
const SECRET: &str = "TOPSECRET";

fn fixture(root: &Path) {
    let _ = fs::remove_dir_all(root);
    fs::create_dir_all(root.join("work")).unwrap();
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::write(root.join("work/a.txt"), "a 1\n> o\nm6\nab/c\n").unwrap();
    fs::write(root.join("work/.env"), SECRET).unwrap();
    let program = root.join("bin/m6");
    fs::write(&program, format!("#!/bin/sh\necho x >> {}\n", root.join("work/ran").display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The files of a directory.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), fs::read(&path).unwrap_or_default())).collect()
}

/// The implementations of a program that are installed.
fn installed(program: &str) -> Vec<&'static str> {
    let all = IMPLEMENTATIONS.iter().find(|(name, _)| *name == program).unwrap().1;
    let places: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect();
    let exists = |line: &str| {
        let name = line.split(' ').next().unwrap();
        places.iter().any(|place| place.join(name).exists())
    };
    all.iter().copied().filter(|line| exists(line)).collect()
}

/// Runs a line; returns what it printed.
fn run(line: &str, directory: &Path, places: &str) -> String {
    let output = Command::new("/bin/bash")
        .args(["--norc", "--noprofile", "-c", line])
        .env_clear()
        .env("PATH", places)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn scripts_that_pass_only_print() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    fixture(root);
    let work = root.join("work");
    let before = files(&work);
    let mut places = std::env::var("PATH").unwrap();
    places.insert_str(0, &format!("{}:", root.join("bin").display()));
    let mut random = SeededRandom::new(setting("TOOLGATE_ORACLE_SEED", 1) ^ 0x5c1);
    let (mut seen, mut passed, mut ran, mut wrong) = (HashSet::new(), 0_u64, 0_u64, Vec::new());
    for _ in 0..setting("TOOLGATE_SCRIPT_CASES", 8_000) {
        let program = random.pick(&["awk", "sed"]);
        let arguments = scripts::arguments(&mut random, program);
        if arguments.contains('\0') || !seen.insert(arguments.clone()) {
            continue;
        }
        let analysis = analysed(&format!("{program} {arguments}"));
        if analysis.doubt.is_some() || !analysis.parts.iter().all(|part| part.read_only) {
            continue;
        }
        passed += 1;
        if !PAYLOAD_SIGNS.iter().any(|sign| arguments.contains(sign)) {
            continue;
        }
        for implementation in installed(program) {
            ran += 1;
            let line = format!("timeout -s KILL 5 {implementation} {arguments}");
            let printed = run(&line, &work, &places);
            if files(&work) != before || printed.contains(SECRET) {
                wrong.push(format!("{implementation} {arguments:?}"));
                fixture(root);
            }
        }
    }
    println!(
        "scripts: {} different, {passed} passed, {ran} runs of those with a payload, {} violations",
        seen.len(),
        wrong.len()
    );
    assert!(wrong.is_empty(), "{} violations\n{}", wrong.len(), wrong.join("\n"));
    assert!(ran > 0);
}
