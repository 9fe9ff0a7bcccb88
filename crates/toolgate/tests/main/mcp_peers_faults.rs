//! Faults observed in other MCP servers, as regression tests.

use super::cli_fixture::CliFixture;
use super::mcp_serve::{answered, opening, reply, request};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

/// A search needs a constant number of file descriptors.
#[test]
fn sixty_two_thousand_files_are_searched_with_sixty_four_descriptors() {
    let fixture = CliFixture::new();
    for dir in 0..62 {
        let path = fixture.path(&format!("d{dir}"));
        std::fs::create_dir(&path).unwrap();
        for file in 0..1000 {
            let text = if file == 500 { "the needle\n" } else { "" };
            std::fs::write(path.join(format!("f{file}.txt")), text).unwrap();
        }
    }
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "ulimit -n 64 && exec \"$0\" mcp serve --quiet", env!("CARGO_BIN_EXE_toolgate")])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", fixture.beside("home"))
        .env("TOOLGATE_STATE_DIR", fixture.beside("state"))
        .current_dir(fixture.path(""));
    let grep = json!({ "name": "Grep", "arguments": { "pattern": "the needle", "output_mode": "count" } });
    let glob = json!({ "name": "Glob", "arguments": { "pattern": "**/f500.txt" } });
    let input = opening() + &request(1, "tools/call", grep) + &request(2, "tools/call", glob);
    let out = answered(shell, &input, 3);
    for id in [1, 2] {
        let answer = reply(&out, id);
        assert_ne!(answer["result"]["isError"], true, "{answer}");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        let found = (0..62).filter(|dir| text.contains(&format!("d{dir}/f500.txt"))).count();
        assert_eq!(found, 62, "{text}");
    }
}

/// Keeps 64 calls in flight over two streams until every call is answered once.
fn sixty_four_in_flight(fixture: &CliFixture, mut write: impl Write, read: impl Read) {
    let file = fixture.write("a.txt", &"0123456789abcdef\n".repeat(256));
    let call = |id: u64| match id % 4 {
        0 => request(id, "tools/call", json!({ "name": "ls", "arguments": {} })),
        1 => request(id, "tools/call", json!({ "name": "Grep", "arguments": { "pattern": "9ab" } })),
        _ => request(id, "tools/call", json!({ "name": "Read", "arguments": { "file_path": file } })),
    };
    let mut lines = BufReader::new(read).lines();
    write.write_all(opening().as_bytes()).unwrap();
    lines.next().unwrap().unwrap();
    let total = 1024;
    let mut waiting = BTreeSet::new();
    let mut next = 1;
    let mut answered = 0;
    while answered < total {
        while waiting.len() < 64 && next <= total {
            write.write_all(call(next).as_bytes()).unwrap();
            waiting.insert(next);
            next += 1;
        }
        let answer: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_ne!(answer["result"]["isError"], true, "{answer}");
        assert!(waiting.remove(&answer["id"].as_u64().unwrap()), "answered twice, or never asked: {answer}");
        answered += 1;
    }
}

#[test]
fn sixty_four_calls_in_flight_are_all_answered_over_pipes() {
    let fixture = CliFixture::new();
    let mut child = fixture
        .command(&["mcp", "serve", "--quiet"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    sixty_four_in_flight(&fixture, child.stdin.take().unwrap(), child.stdout.take().unwrap());
    assert!(child.wait().unwrap().success());
}

/// Hosts that run on Node use sockets as standard streams.
#[test]
fn sixty_four_calls_in_flight_are_all_answered_over_sockets() {
    let fixture = CliFixture::new();
    let (input, theirs) = UnixStream::pair().unwrap();
    let (output, back) = UnixStream::pair().unwrap();
    let mut command = fixture.command(&["mcp", "serve", "--quiet"]);
    command.stdin(OwnedFd::from(theirs)).stdout(OwnedFd::from(back));
    let mut child = command.spawn().unwrap();
    drop(command);
    sixty_four_in_flight(&fixture, input, output);
    assert!(child.wait().unwrap().success());
}

/// Calls that are sent together run on several threads, and calls whose effects conflict still run in order: an edit finds
/// its file read and the previous edit made.
#[test]
fn reads_and_edits_that_are_sent_together_begin_one_after_the_other() {
    let fixture = CliFixture::new();
    let call =
        |id, name, arguments| request(id, "tools/call", json!({ "name": name, "arguments": arguments }));
    let other = fixture.write("other.txt", "something else\n");
    let (mut input, mut files, mut id) = (opening(), Vec::new(), 0);
    let mut add = |name, arguments| {
        id += 1;
        input += &call(id, name, arguments);
    };
    for number in 0..24 {
        let file = fixture.write(&format!("{number}.txt"), "step 0\n");
        for _ in 0..number % 6 {
            add("Read", json!({ "file_path": other }));
        }
        add("Read", json!({ "file_path": file }));
        for step in 0..3 {
            let (old, new) = (format!("step {step}"), format!("step {}", step + 1));
            add("Edit", json!({ "file_path": file, "old_string": old, "new_string": new }));
        }
        files.push(file);
    }
    let output = fixture.run_with_input(&["mcp", "serve", "--quiet", "--allowed-tools", "Edit"], &input);
    for id in 1..=id {
        let answer = reply(&output.stdout, id);
        assert_ne!(answer["result"]["isError"], true, "{answer}");
    }
    for file in files {
        assert_eq!(std::fs::read_to_string(file).unwrap(), "step 3\n");
    }
}

/// With a stack size larger than memory no second thread can be started.
#[test]
fn calls_run_on_one_thread_if_no_second_one_can_be_started() {
    let fixture = CliFixture::new();
    let file = fixture.write("a.txt", "hello\n");
    let mut input = opening();
    for id in 1..=40 {
        input += &request(id, "tools/call", json!({ "name": "Read", "arguments": { "file_path": file } }));
    }
    let mut command = fixture.command(&["mcp", "serve", "--quiet"]);
    command.env("RUST_MIN_STACK", (1_u64 << 50).to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let out = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    for id in 1..=40 {
        assert!(reply(&out, id)["result"]["content"][0]["text"].as_str().unwrap().contains("hello"));
    }
}

/// A result contains its text once, not also as structured content.
#[test]
fn text_is_sent_once() {
    let fixture = CliFixture::new();
    let file = fixture.write("big.txt", &"0123456789abcde\n".repeat(256));
    let input =
        opening() + &request(1, "tools/call", json!({ "name": "Read", "arguments": { "file_path": file } }));
    let output = fixture.run_with_input(&["mcp", "serve", "--quiet"], &input);
    assert_eq!(output.stdout.matches("0123456789abcde").count(), 256);
}

/// Requests before the end of the input are answered, and the program ends although an upstream server does not.
#[test]
fn it_ends_with_its_input_and_loses_no_answer() {
    let fixture = CliFixture::new();
    let file = fixture.write("a.txt", "hello\n");
    let script = format!("{}/../mcp/tests/main/fake_server.py", env!("CARGO_MANIFEST_DIR"));
    let mark = fixture.path("mark").display().to_string();
    let servers = json!({ "mcpServers": { "deaf": { "command": "python3", "args": [script, "breeds", mark], "alwaysLoad": true } } });
    let mut input = opening() + &request(1, "tools/list", json!({}));
    for id in 2..66 {
        input += &request(id, "tools/call", json!({ "name": "Read", "arguments": { "file_path": file } }));
    }
    let output =
        fixture.run_with_input(&["mcp", "serve", "--quiet", "--mcp-config", &servers.to_string()], &input);
    assert_eq!(output.code, 0, "{}", output.stderr);
    for id in 2..66 {
        assert!(
            reply(&output.stdout, id)["result"]["content"][0]["text"].as_str().unwrap().contains("hello")
        );
    }
    let left = || -> Vec<_> {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        all.filter(|entry| {
            std::fs::read_to_string(entry.path().join("cmdline")).is_ok_and(|line| line.contains(&mark))
        })
        .collect()
    };
    // A process that was killed is still listed until the kernel has taken it down.
    for _ in 0..4_800 {
        if left().is_empty() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(25));
    }
    panic!("left behind: {:?}", left());
}
