//! The box as a caller of the tool meets it.

use super::bash_desk::{Desk, on_runtime, output, structured};
use serde_json::json;
use std::process::Command;
use toolgate_proto::Code;

#[test]
fn what_was_refused_is_said_with_what_would_allow_it() {
    on_runtime(async {
        let desk = Desk::new();
        for (command, says) in [
            (
                "python3 -c \"open('../outside', 'w')\"",
                ["`python3` tried to write `", "`sandbox.filesystem.allowWrite`"],
            ),
            (
                "exec 3<>/dev/tcp/192.0.2.1/80",
                ["tried to use the network", "`sandbox.network.allowedDomains`"],
            ),
            // Policy cannot see what a program is going to write; a line that names the file is asked about.
            (
                "python3 -c \"import os; os.makedirs('.git', exist_ok=True); os.mkdir('.git/hooks')\"",
                ["to the protected file", "for the person"],
            ),
            (
                "python3 -c \"import os; os.chmod('../home', 0o777)\"",
                ["tried to change the mode", "`sandbox.filesystem.allowWrite`"],
            ),
        ] {
            let closed = desk.bash(command).await;
            let text = output(&closed).model_text();
            assert!(text.contains("the sandbox refused (observed)"), "{command}: {text}");
            assert!(says.iter().all(|words| text.contains(words)), "{command}: {text}");
            assert!(closed.result.unwrap_err().hint.contains("what would allow it"));
        }
        let closed = desk.bash("ls / > /dev/null; cat no-such-file").await;
        assert!(!output(&closed).model_text().contains("sandbox"));
    });
}

#[test]
fn settings_widen_and_narrow_the_box() {
    on_runtime(async {
        let desk = Desk::with(|surroundings| {
            let top = surroundings.temp_dir.parent().unwrap();
            surroundings.sandbox.writable.push(top.join("home"));
            surroundings.sandbox.unreadable.push(top.join("home/secret"));
            surroundings.sandbox.protected.push(top.join("ws/keep"));
            surroundings.sandbox.local_binding = true;
            surroundings.sandbox.required = true;
        });
        std::fs::write(desk.path("home/secret"), "hunter2").unwrap();
        assert!(desk.bash("echo x > ../home/y && cat ../home/y").await.result.is_ok());
        let text = output(&desk.bash("cat ../home/secret").await).model_text();
        assert!(text.contains("withheld from the command") && !text.contains("hunter2"), "{text}");
        assert!(desk.bash("echo x > keep").await.result.is_err());
        let server = "python3 -c 'import socket; s = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen(); c = socket.create_connection(s.getsockname()); print(\"met\")'";
        assert_eq!(output(&desk.bash(server).await).model_text(), "met\n");
    });
}

#[test]
fn leaving_the_box_needs_its_own_decision() {
    on_runtime(async {
        // Only a program knows where it writes: what a line names is granted with the line.
        let write = "python3 -c \"open('../outside', 'w')\"";
        let leave = json!({ "command": write, "dangerouslyDisableSandbox": true });
        // Every rule and mode that allows commands is there, but nobody who could be asked.
        let desk = Desk::unattended();
        let refusal = desk.call("Bash", leave.clone()).await.result.unwrap_err();
        assert_eq!(refusal.code, Code::NobodyToAsk, "{refusal:?}");
        assert!(!desk.path("outside").as_path().exists());

        // Somebody says yes, but settings keep every command inside.
        let desk = Desk::with(|surroundings| surroundings.sandbox.allow_unsandboxed = false);
        let closed = desk.call("Bash", leave.clone()).await;
        assert!(output(&closed).model_text().contains("leaving the sandbox was not granted"));
        assert!(!desk.path("outside").as_path().exists());
        assert_eq!(structured(&closed)["sandbox"]["enforced"], json!(true));

        // A yes to the command is no yes to leaving.
        let desk = Desk::new();
        let closed = desk.bash(write).await;
        assert!(!desk.path("outside").as_path().exists());
        assert_eq!(structured(&closed)["sandbox"]["enforced"], json!(true));

        for closed in [
            Desk::new().call("Bash", leave).await,
            Desk::with(|surroundings| surroundings.sandbox.enabled = false).bash(write).await,
        ] {
            assert!(closed.result.is_ok(), "{:?}", closed.result);
            assert_eq!(structured(&closed)["sandbox"]["enforced"], json!(false));
        }
    });
}

#[test]
fn secrets_of_the_environment_stay_outside() {
    on_runtime(async {
        let desk = Desk::with(|surroundings| {
            for name in ["GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "MY_API_KEY", "LD_PRELOAD", "FLAVOUR"] {
                surroundings.environment.insert(name.into(), "hunter2".into());
            }
            surroundings.pass = vec!["MY_*".into(), "FLAVOUR".into()];
        });
        let text =
            output(&desk.bash("env; cat /proc/self/environ; cat /proc/$PPID/environ").await).model_text();
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("hunter2")).collect();
        assert!(lines.iter().all(|line| line.contains("FLAVOUR")), "{lines:?}");
        assert!(!lines.is_empty());
    });
}

#[test]
fn git_runs_nothing_that_a_repository_chose() {
    on_runtime(async {
        let desk = Desk::new();
        let ws = desk.path("ws");
        let git = |args: &[&str]| {
            let done = Command::new("git").args(args).current_dir(&ws).output().unwrap();
            assert!(done.status.success(), "{args:?} {done:?}");
        };
        git(&["init", "-q"]);
        git(&["config", "user.name", "n"]);
        git(&["config", "user.email", "e"]);
        std::fs::write(ws.join("f"), "1\n").unwrap();
        git(&["add", "f"]);
        git(&["commit", "-qm", "one"]);
        let trap = ws.join("trap.sh");
        std::fs::write(&trap, format!("#!/bin/sh\necho \"$0 $*\" >> {}/sprung\ncat\n", ws)).unwrap();
        Command::new("chmod").arg("+x").arg(trap.as_path()).status().unwrap();
        let trap = trap.to_string();
        for key in
            ["core.fsmonitor", "core.pager", "diff.external", "core.sshCommand", "core.editor", "gpg.program"]
        {
            git(&["config", key, &trap]);
        }
        git(&["config", "log.showSignature", "true"]);
        for key in
            ["filter.f.clean", "filter.f.smudge", "diff.d.textconv", "diff.e.command", "credential.helper"]
        {
            git(&["config", key, &trap]);
        }
        std::fs::write(ws.join(".gitattributes"), "f filter=f diff=d\ng diff=e\n").unwrap();
        std::fs::write(ws.join("g"), "1\n").unwrap();
        for hook in ["pre-commit", "post-checkout", "post-index-change", "reference-transaction"] {
            std::fs::copy(&trap, ws.join(".git/hooks").join(hook)).unwrap();
        }
        std::fs::write(ws.join("f"), "2\n").unwrap();
        let diff = output(&desk.bash("git diff").await).model_text();
        assert!(diff.contains("-1\n+2\n"), "{diff}");
        for command in [
            "git status --short",
            "git diff",
            "git log",
            "git show",
            "git add -A && git diff --cached",
            "git commit -qam two",
            "git checkout -q -b other",
        ] {
            let closed = desk.bash(command).await;
            assert!(closed.result.is_ok(), "{command}: {:?}", closed.result);
            let sprung = ws.join("sprung");
            assert!(!sprung.as_path().exists(), "{command}: {:?}", std::fs::read_to_string(sprung));
        }
        let text = output(&desk.bash("git log --oneline | wc -l").await).model_text();
        assert_eq!(text, "2\n");
    });
}

#[test]
fn what_a_terminal_would_act_on_reaches_nobody() {
    on_runtime(async {
        let desk = Desk::new();
        let closed =
            desk.bash("printf '\\033]0;owned\\007\\033[31mred\\033[0m a\\rb \\342\\200\\256 \\377\\n'").await;
        let output = closed.result.unwrap();
        assert_eq!(output.model_text(), "b \\u{202e} \u{fffd}\n");
        assert_eq!(output.display_text(), output.model_text());
    });
}

/// The port of a server that answers every request with `met`.
fn greeter() -> u16 {
    use std::io::{Read, Write};
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in server.incoming() {
            let mut client = client.unwrap();
            let _ = client.read(&mut [0; 4096]);
            let _ = client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nmet");
        }
    });
    port
}

#[test]
fn granted_hosts_are_reached_through_the_proxy_and_others_are_named() {
    on_runtime(async {
        let port = greeter();
        let desk = Desk::with(|surroundings| surroundings.sandbox.hosts = vec!["127.0.0.1".into()]);
        // From a script, because a host that stands in the line itself is asked about, and granted with the line.
        std::fs::write(desk.path("ws/ask.sh"), "curl -s -m 10 --noproxy '' \"http://$1:$2/\"; echo").unwrap();
        let ask = |host: &str| format!("bash ask.sh {host} {port}");
        assert_eq!(output(&desk.bash(&ask("127.0.0.1")).await).model_text(), "met\n");
        let text = output(&desk.bash(&ask("evil.example")).await).model_text();
        assert!(text.contains("the proxy refused (observed): `evil.example`"), "{text}");
        // Around the proxy there is nothing, not even its own port elsewhere.
        let direct = format!("curl -sS -m 10 --noproxy '*' http://127.0.0.1:{port}/");
        let text = output(&desk.bash(&direct).await).model_text();
        assert!(text.contains("tried to connect to `127.0.0.1:"), "{text}");
    });
}

/// Rules for hosts hold for commands that name their hosts only while they run.
#[test]
fn rules_for_hosts_open_and_close_the_proxy() {
    on_runtime(async {
        let port = greeter();
        let ask = async |allow: &[&str], deny: &[&str], listed: &[&str], host: &str| {
            let listed = listed.iter().map(|host| (*host).to_owned()).collect();
            let desk = Desk::ruled(allow, deny, |surroundings| surroundings.sandbox.hosts = listed);
            let script = "curl -s -m 10 --noproxy '' \"http://$1:$2/\"; echo";
            std::fs::write(desk.path("ws/ask.sh"), script).unwrap();
            output(&desk.bash(&format!("bash ask.sh {host} {port}")).await).model_text()
        };
        let allow = ["WebFetch(domain:127.0.0.1)"];
        assert_eq!(ask(&allow, &[], &[], "127.0.0.1").await, "met\n");
        let text = ask(&allow, &[], &[], "evil.example").await;
        assert!(text.contains("an allow rule `WebFetch(domain:evil.example)`"), "{text}");
        // A deny rule counts more than a list.
        let text = ask(&[], &["WebFetch(domain:127.0.0.1)"], &["127.0.0.1"], "127.0.0.1").await;
        assert!(
            text.contains("the proxy refused (observed): `127.0.0.1`: host `127.0.0.1` is denied by a rule"),
            "{text}"
        );
    });
}

#[test]
fn sockets_in_the_file_system_are_reached_where_granted() {
    on_runtime(async {
        let connect = "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"../home/s\"); print(\"met\")'";
        let desk = Desk::new();
        let _listener = std::os::unix::net::UnixListener::bind(desk.path("home/s")).unwrap();
        let text = output(&desk.bash(connect).await).model_text();
        assert!(text.contains("`sandbox.network.allowUnixSockets`"), "{text}");
        let desk = Desk::with(|surroundings| {
            let socket = surroundings.temp_dir.parent().unwrap().join("home/s");
            surroundings.sandbox.sockets = vec![socket];
        });
        let _listener = std::os::unix::net::UnixListener::bind(desk.path("home/s")).unwrap();
        assert_eq!(output(&desk.bash(connect).await).model_text(), "met\n");
    });
}

/// The analysis takes `egrep` for a reader that starts `grep` and nothing else. Here it is made to start more.
#[test]
fn what_was_not_foreseen_is_refused_and_stands_in_the_record() {
    if !toolgate_process::sandbox::KernelSupport::detect().enforces_rights() {
        println!("skipped: this kernel does not enforce the rights of commands");
        return;
    }
    on_runtime(async {
        let desk = Desk::reading(|surroundings| {
            let bin = surroundings.temp_dir.parent().unwrap().join("bin");
            std::fs::create_dir(&bin).unwrap();
            let script = bin.join("egrep");
            std::fs::write(&script, "#!/bin/sh\ntouch planted\n/usr/bin/touch planted\necho x > planted\n")
                .unwrap();
            Command::new("chmod").arg("+x").arg(script.as_path()).status().unwrap();
            let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
            surroundings.environment.insert("PATH".to_owned(), path);
        });
        std::fs::write(desk.path("ws/f"), "x\n").unwrap();
        let closed = desk.bash("egrep x f").await;
        assert!(!desk.path("ws/planted").as_path().exists());
        let anomalies = &closed.record.anomalies;
        assert!(anomalies.iter().all(|anomaly| anomaly.code == Code::Unforeseen), "{anomalies:?}");
        let says = |words: &str| anomalies.iter().any(|anomaly| anomaly.text.contains(words));
        assert!(says("tried to start") && says("tried to write"), "{anomalies:?} {:?}", closed.result);
        assert!(closed.record.judged.unwrap().rights.is_some_and(|rights| rights.execute.is_some()));
    });
}
