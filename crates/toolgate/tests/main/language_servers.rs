//! Language servers through the program: renames and their undo, trust, missing servers, diagnostics after edits, and no
//! process that outlives the program.

use super::cli_fixture::{CliFixture, cli_run};
use super::mcp_serve::opening;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

/// The scripted server of the crate `lsp`, a program for Python.
const FAKE_SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../lsp/tests/fake_server.py");
/// Options that let the server start, and allow edits in the workspace.
const TRUSTED_EDITS: [&str; 3] = ["--trust-workspace", "--permission-mode", "acceptEdits"];

/// Settings with the scripted server.
fn settings(command: &str, args: &[&str]) -> String {
    let server = json!({ "command": command, "args": args, "extensionToLanguage": { ".fake": "fake" } });
    json!({ "lspServers": { "fake": server } }).to_string()
}

/// A workspace of a user whose own settings have the scripted server.
fn fixture(behaviour: &str) -> CliFixture {
    let fixture = CliFixture::new();
    let dir = fixture.beside("home").join(".config/toolgate");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("settings.json"), settings("python3", &[FAKE_SERVER, behaviour])).unwrap();
    fixture
}

/// The input of a call about `a.fake`.
fn input(operation: &str) -> String {
    json!({ "operation": operation, "filePath": "a.fake", "line": 1, "symbol": "target", "newName": "goal" })
        .to_string()
}

/// The processes whose working directory is the workspace.
fn processes_in(fixture: &CliFixture) -> Vec<String> {
    let workspace = fixture.path("").canonicalize().unwrap();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let inside = entries
        .filter(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == workspace));
    inside.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Waits until no process has the workspace as its working directory.
fn wait_no_process(fixture: &CliFixture) {
    let end = Instant::now() + Duration::from_secs(120);
    while !processes_in(fixture).is_empty() {
        assert!(Instant::now() < end, "processes are left: {:?}", processes_in(fixture));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_rename_over_200_files_is_one_undo_and_leaves_no_process() {
    let fixture = fixture("good");
    fixture.write("a.fake", "target 😀 target\n");
    for index in 0..199 {
        fixture.write(&format!("f{index}.fake"), &format!("{index} target\n"));
    }
    let rename = input("rename");
    let output = fixture.run(&[&TRUSTED_EDITS[..], &["call", "LSP", &rename]].concat());
    assert_eq!(output.code, 0, "{} {}", output.stdout, output.stderr);
    assert!(output.stdout.contains("rename to `goal`: 201 edits in 200 files"), "{}", output.stdout);
    wait_no_process(&fixture);
    let texts = |word: &str| {
        let first = std::fs::read_to_string(fixture.path("a.fake")).unwrap() == format!("{word} 😀 {word}\n");
        let rest = (0..199).filter(|index| {
            let text = std::fs::read_to_string(fixture.path(&format!("f{index}.fake"))).unwrap();
            text == format!("{index} {word}\n")
        });
        usize::from(first) + rest.count()
    };
    assert_eq!(texts("goal"), 200);
    let output = fixture.run(&["undo"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(texts("target"), 200, "{}", output.stdout);
    let output = fixture.run(&["redo"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(texts("goal"), 200, "{}", output.stdout);
}

#[test]
fn a_file_that_is_denied_for_writing_stops_the_whole_rename_before_anything_is_written() {
    let fixture = fixture("good");
    for name in ["a.fake", "m.fake", "z.fake"] {
        fixture.write(name, "target\n");
    }
    let rename = input("rename");
    let deny = ["--disallowed-tools", "Edit(m.fake)", "call", "LSP", &rename];
    let output = fixture.run(&[&TRUSTED_EDITS[..], &deny].concat());
    assert_ne!(output.code, 0, "{}", output.stdout);
    assert!(output.stderr.contains("m.fake` is denied by a rule"), "{}", output.stderr);
    for name in ["a.fake", "m.fake", "z.fake"] {
        assert_eq!(std::fs::read_to_string(fixture.path(name)).unwrap(), "target\n");
    }
    assert_ne!(fixture.run(&["undo"]).code, 0, "there is nothing to undo");
    wait_no_process(&fixture);
}

#[test]
fn servers_start_in_trusted_projects_only_and_those_of_a_project_need_trust_in_their_files() {
    let started = fixture("good");
    started.write("a.fake", "target\n");
    let references = input("findReferences");
    let output = started.run(&["call", "LSP", &references]);
    assert_ne!(output.code, 0);
    assert!(
        output.stderr.contains("language server `fake` may not start: this project is not trusted"),
        "{}",
        output.stderr
    );
    assert!(output.stderr.contains("toolgate trust add"), "{}", output.stderr);

    let fixture = CliFixture::new();
    fixture.write("a.fake", "target\n");
    let script = fixture.write("server.sh", &format!("#!/bin/sh\nexec python3 {FAKE_SERVER} good\n"));
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    fixture.write(".toolgate/settings.json", &settings(script.to_str().unwrap(), &[]));
    assert_ne!(
        fixture.run(&["call", "LSP", &references]).code,
        0,
        "a project's server is not used untrusted"
    );
    assert!(fixture.run(&["trust"]).stdout.contains("lspServers"), "trust shows what the project would run");
    assert_eq!(fixture.run(&["trust", "add", "--yes"]).code, 0);
    let output = fixture.run(&["call", "LSP", &references]);
    assert!(output.stdout.contains("a.fake:1:1: target"), "{} {}", output.stdout, output.stderr);
    fixture.write("server.sh", "#!/bin/sh\ntouch started\n");
    assert_ne!(fixture.run(&["call", "LSP", &references]).code, 0, "the script changed after it was trusted");
    assert!(!fixture.path("started").exists());
}

#[test]
fn without_any_server_a_call_says_so_and_not_the_name_of_another_tool() {
    let plain = CliFixture::new();
    for (args, name) in
        [(vec!["call", "LSP", "{}"], "LSP"), (vec!["--toolset", "plain", "call", "lsp", "{}"], "lsp")]
    {
        let output = cli_run(plain.command(&args).env("PATH", plain.path("")).output().unwrap());
        let says = format!("there is no tool `{name}` here, because no language server is installed");
        assert!(output.code == 2 && output.stderr.contains(&says), "{output:?}");
        assert!(
            output.stderr.contains("`toolgate lsp`") && !output.stderr.contains("did you mean"),
            "{output:?}"
        );
    }
}

#[test]
fn a_missing_server_is_named_with_how_to_install_it() {
    let fixture = fixture("good");
    fixture.write("a.zig", "const x = 1;\n");
    fixture.write("a.fake", "target\n");
    let asked = json!({ "operation": "documentSymbol", "filePath": "a.zig" }).to_string();
    let output = fixture.run(&["--trust-workspace", "call", "LSP", &asked]);
    assert_ne!(output.code, 0);
    for part in ["the language server for `a.zig` is not installed: none of `zls` is in PATH", "zigtools/zls"]
    {
        assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
    }
    let output = fixture.run(&["lsp", "status"]);
    let line = |name: &str| {
        let found = output.stdout.lines().find(|line| line.starts_with(name));
        found.unwrap_or_else(|| panic!("no {name} in {}", output.stdout)).to_owned()
    };
    assert!(line("zls").contains("not installed; see the releases of zigtools/zls"), "{}", line("zls"));
    assert!(line("fake").contains("python3"), "{}", line("fake"));
    let output = fixture.run(&["--trust-workspace", "lsp", "test", "a.fake"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("fake 1: 1 symbols after"), "{}", output.stdout);
    wait_no_process(&fixture);
}

/// `toolgate mcp serve` with one request at a time.
struct ServingProgram {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    next: u64,
}

impl ServingProgram {
    fn start(fixture: &CliFixture) -> Self {
        let args = [&TRUSTED_EDITS[..], &["mcp", "serve", "--quiet"]].concat();
        let mut child = fixture.command(&args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        stdin.write_all(opening().as_bytes()).unwrap();
        Self { child, stdin, stdout, next: 0 }
    }

    /// Calls a tool, and returns the text of its result.
    fn call(&mut self, name: &str, arguments: &Value) -> String {
        self.next += 1;
        let params = json!({ "name": name, "arguments": arguments });
        let request = json!({ "jsonrpc": "2.0", "id": self.next, "method": "tools/call", "params": params });
        writeln!(self.stdin, "{request}").unwrap();
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "the program ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == self.next {
                let content = message["result"]["content"].as_array().unwrap();
                return content
                    .iter()
                    .filter_map(|part| part["text"].as_str())
                    .collect::<Vec<_>>()
                    .join("\n");
            }
        }
    }
}

#[test]
fn edits_carry_new_problems_a_restart_is_applied_and_a_killed_program_leaves_no_server() {
    let fixture = fixture("good");
    let file = fixture.write("a.fake", "target\nBAD old\n");
    let mut program = ServingProgram::start(&fixture);
    program.call("Read", &json!({ "file_path": file }));
    let references: Value = serde_json::from_str(&input("findReferences")).unwrap();
    assert!(program.call("LSP", &references).contains("a.fake:1:1: target"));
    let edit = json!({ "file_path": file, "old_string": "target\n", "new_string": "target\nBAD new\n" });
    let result = program.call("Edit", &edit);
    assert!(result.contains("a.fake:2:1: new error[7]: bad: BAD new (fake)"), "{result}");
    assert!(!result.contains("BAD old (fake)"), "{result}");

    let of_program = program.child.id().to_string();
    let servers = |fixture: &CliFixture| {
        processes_in(fixture).into_iter().filter(|pid| *pid != of_program).collect::<Vec<_>>()
    };
    let before = servers(&fixture);
    assert!(!before.is_empty());
    assert_eq!(fixture.run(&["lsp", "restart"]).code, 0);
    assert!(program.call("LSP", &references).contains("a.fake:1:1: target"));
    let after = servers(&fixture);
    assert!(!after.is_empty() && after.iter().all(|pid| !before.contains(pid)), "{before:?} {after:?}");

    program.child.kill().unwrap();
    program.child.wait().unwrap();
    wait_no_process(&fixture);
}

#[test]
fn the_status_lists_the_servers_of_running_programs_and_forgets_those_of_programs_that_are_gone() {
    let fixture = fixture("good");
    fixture.write("a.fake", "target\n");
    let mut program = ServingProgram::start(&fixture);
    let references: Value = serde_json::from_str(&input("findReferences")).unwrap();
    assert!(program.call("LSP", &references).contains("a.fake:1:1: target"));
    let instances = |name: &str| {
        let output = fixture.run(&["--json", "lsp", "status"]);
        let lines = output.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let found = lines.into_iter().find(|line| line["server"] == name).unwrap();
        found["instances"].as_array().unwrap().clone()
    };
    // The file is written beside the call.
    let end = Instant::now() + Duration::from_secs(60);
    while instances("fake").is_empty() {
        assert!(Instant::now() < end, "the server is not listed");
        std::thread::sleep(Duration::from_millis(20));
    }
    let instance = instances("fake").remove(0);
    assert_eq!(instance["toolgatePid"], program.child.id());
    let pid = instance["pid"].as_u64().unwrap().to_string();
    assert!(processes_in(&fixture).contains(&pid), "{instance}");
    let text = fixture.run(&["lsp"]).stdout;
    let wanted = format!("as process {pid} of toolgate {}", program.child.id());
    assert!(text.contains(&wanted), "{text}");

    program.child.kill().unwrap();
    program.child.wait().unwrap();
    assert_eq!(instances("fake"), Vec::<Value>::new());
    let left = std::fs::read_dir(fixture.beside("state").join("lsp-status")).unwrap().count();
    assert_eq!(left, 0, "the file of a program that is gone is removed");
    wait_no_process(&fixture);

    // A program that ends by itself removes its file.
    assert_eq!(fixture.run(&["--trust-workspace", "lsp", "test", "a.fake"]).code, 0);
    let left = std::fs::read_dir(fixture.beside("state").join("lsp-status")).unwrap().count();
    assert_eq!(left, 0);
}

#[test]
fn a_test_without_any_server_says_how_to_install_one() {
    let fixture = CliFixture::new();
    let test = |options: &[&str], file: &str| {
        let args = [options, &["lsp", "test", file]].concat();
        super::cli_fixture::cli_run(fixture.command(&args).env("PATH", "/nowhere").output().unwrap())
    };
    let output = test(&[], "a.go");
    assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{output:?}");
    for part in ["no language server is installed", "install `gopls`: go install"] {
        assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
    }
    let output = test(&["--json"], "a.go");
    let value: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(value["error"]["message"], "no language server is installed", "{output:?}");
    assert!(value["error"]["hint"].as_str().unwrap().starts_with("install `gopls`"), "{output:?}");
    assert!(test(&[], "a.unknown").stderr.contains("add one to `lspServers`"));
}
