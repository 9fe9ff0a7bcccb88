//! The sandbox as a caller of the tool sees it: what is refused, what the result says, and which settings allow more.

use super::shell_fixture::{ShellFixture, block_on_runtime, output, structured};
use serde_json::json;
use std::process::Command;
use toolgate_gate::Session;
use toolgate_proto::secret_names::home_secrets;
use toolgate_proto::{Code, Mode, Principal, Workspace};
use toolgate_tools::{ShellConfig, set_shell_config};

#[test]
fn a_refused_access_is_reported_with_the_setting_that_allows_it() {
    block_on_runtime(async {
        let fixture = ShellFixture::new();
        for (command, expected) in [
            (
                "python3 -c \"open('../outside', 'w')\"",
                ["`python3` tried to write `", "`sandbox.filesystem.allowWrite`"],
            ),
            (
                "exec 3<>/dev/tcp/192.0.2.1/80",
                ["tried to use the network", "`sandbox.network.allowedDomains`"],
            ),
            // Policy cannot predict what a program writes; a command line that names the file would need approval.
            (
                "python3 -c \"import os; os.makedirs('.git', exist_ok=True); os.mkdir('.git/hooks')\"",
                ["to the protected file", "can only be changed by the user"],
            ),
            (
                "python3 -c \"import os; os.chmod('../home', 0o777)\"",
                ["tried to change the mode", "`sandbox.filesystem.allowWrite`"],
            ),
        ] {
            let outcome = fixture.bash(command).await;
            let text = output(&outcome).model_text();
            assert!(text.contains("the sandbox refused (observed)"), "{command}: {text}");
            assert!(expected.iter().all(|words| text.contains(words)), "{command}: {text}");
            assert!(outcome.result.unwrap_err().hint.contains("to allow it: "));
        }
        let outcome = fixture.bash("ls / > /dev/null; cat no-such-file").await;
        assert!(!output(&outcome).model_text().contains("sandbox"));
    });
}

#[test]
fn the_sandbox_is_blamed_only_for_a_failure_that_it_caused() {
    let refused = "open('../outside', 'w')";
    let handled = "\ntry:\n    open('../outside', 'w')\nexcept OSError:\n    pass\n";
    block_on_runtime(async {
        let fixture = ShellFixture::new();
        // The command, whether it succeeds, and whether the sandbox is the reason of its failure.
        for (command, succeeds, is_blamed) in [
            (format!("python3 -c \"{refused}\""), false, true),
            (format!("python3 -c \"{refused}\" && echo done"), false, true),
            (format!("python3 -c \"{refused}\" 2> /dev/null"), false, true),
            (format!("python3 -c \"{refused}\" || true"), true, false),
            (format!("python3 -c \"{refused}\"; echo done"), true, false),
            (format!("python3 -c \"{refused}\"; false"), false, false),
            (format!("python3 -c \"{refused}\"\nexit 3"), false, false),
            (format!("python3 -c \"{handled}\""), true, false),
            (format!("python3 -c \"{handled}open('missing')\""), false, false),
            (format!("python3 -c \"{handled}raise SystemExit('wrong answer')\""), false, false),
            (format!("python3 -c \"{handled}assert 1 == 2\""), false, false),
            (format!("python3 -c \"{handled}\"; cat no-such-file"), false, false),
            (format!("python3 -c \"{refused}\"; cat no-such-file"), false, false),
            (format!("python3 -c \"{refused}\"; grep -q a /dev/null"), false, false),
            ("echo 'touch ../outside; cat no-such-file' > s.sh; sh s.sh".to_owned(), false, false),
            ("echo 'touch ../outside' > s.sh; sh s.sh".to_owned(), false, true),
            ("exec 3<>/dev/tcp/192.0.2.1/80".to_owned(), false, true),
            ("(exec 3<>/dev/tcp/192.0.2.1/80) 2> /dev/null; cat no-such-file".to_owned(), false, false),
        ] {
            let outcome = fixture.bash(&command).await;
            let text = output(&outcome).model_text();
            assert!(text.contains("the sandbox refused (observed)"), "{command}: {text}");
            assert_eq!(outcome.result.is_ok(), succeeds, "{command}: {text}");
            let note = match (succeeds, is_blamed) {
                (true, _) => "succeeded without it",
                (false, true) => "; to allow it: ",
                (false, false) => "nothing shows that the command failed because of it",
            };
            assert!(text.contains(note), "{command}: {text}");
            if let Err(refusal) = &outcome.result {
                assert_eq!(
                    refusal.hint.contains("the sandbox refused"),
                    is_blamed,
                    "{command}: {}",
                    refusal.hint
                );
            }
        }
    });
}

/// The rule covers the whole command, so it may read outside the workspace, and its line names none of the files.
#[test]
fn a_command_that_a_rule_allows_as_a_whole_reads_no_secret_of_the_home_directory() {
    block_on_runtime(async {
        let mut fixture = ShellFixture::with_mode(Mode::Default, &["Bash(python3 *)"], |_| ());
        let home = fixture.path("home");
        let workspace = Workspace::new(fixture.path("ws")).with_home(home.clone());
        fixture.session = Session::new("ses_home".into(), Principal::new("test"), workspace);
        let mut config = ShellConfig::new(std::env::vars().collect(), fixture.path("temp"));
        config.sandbox.required = true;
        set_shell_config(&fixture.session, config);
        let names = [".netrc", ".pgpass", ".my.cnf", ".htpasswd", ".env", ".vault-token", ".ssh/id", "notes"];
        for name in home_secrets().chain(names) {
            let path = home.join(name);
            // `.ssh` is written as a directory with `id` in it.
            if name != ".ssh" {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, format!("content of {name};")).unwrap();
            }
        }
        let script = r"
import os
for top, _, names in os.walk('../home'):
    for name in names:
        try: print(open(os.path.join(top, name)).read())
        except OSError: pass
";
        std::fs::write(fixture.path("ws/read.py"), script).unwrap();
        let outcome = fixture.bash("python3 read.py").await;
        let text = output(&outcome).model_text();
        assert!(text.contains("content of notes;"), "{text} {:?}", outcome.result);
        for name in home_secrets().chain(names).filter(|name| *name != "notes") {
            assert!(!text.contains(&format!("content of {name};")), "{name}: {text}");
        }
    });
}

#[test]
fn settings_widen_and_narrow_the_sandbox() {
    block_on_runtime(async {
        let fixture = ShellFixture::with(|config| {
            let top = config.temp_dir.parent().unwrap();
            config.sandbox.writable.push(top.join("home"));
            config.sandbox.unreadable.push(top.join("home/secret"));
            config.sandbox.protected.push(top.join("ws/keep"));
            config.sandbox.local_binding = true;
            config.sandbox.required = true;
        });
        std::fs::write(fixture.path("home/secret"), "hunter2").unwrap();
        assert!(fixture.bash("echo x > ../home/y && cat ../home/y").await.result.is_ok());
        let text = output(&fixture.bash("cat ../home/secret").await).model_text();
        assert!(text.contains("withheld from the command") && !text.contains("hunter2"), "{text}");
        assert!(fixture.bash("echo x > keep").await.result.is_err());
        let server = "python3 -c 'import socket; s = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen(); c = socket.create_connection(s.getsockname()); print(\"met\")'";
        assert_eq!(output(&fixture.bash(server).await).model_text(), "met\n");
    });
}

#[test]
fn leaving_the_sandbox_needs_its_own_approval() {
    block_on_runtime(async {
        // A program, because a path that the command line names is granted with the command line.
        let write = "python3 -c \"open('../outside', 'w')\"";
        let leave = json!({ "command": write, "dangerouslyDisableSandbox": true });
        // Rules and mode allow commands, but no approver is available.
        let fixture = ShellFixture::without_approver();
        let refusal = fixture.call("Bash", leave.clone()).await.result.unwrap_err();
        assert_eq!(refusal.code, Code::ApprovalUnavailable, "{refusal:?}");
        assert!(!fixture.path("outside").as_path().exists());

        // An approver allows it, but settings keep every command in the sandbox.
        let fixture = ShellFixture::with(|config| config.sandbox.allow_unsandboxed = false);
        let outcome = fixture.call("Bash", leave.clone()).await;
        assert!(output(&outcome).model_text().contains("leaving the sandbox was not granted"));
        assert!(!fixture.path("outside").as_path().exists());
        assert_eq!(structured(&outcome)["sandbox"]["enforced"], json!(true));

        // Approval of the command is not approval of leaving the sandbox.
        let fixture = ShellFixture::new();
        let outcome = fixture.bash(write).await;
        assert!(!fixture.path("outside").as_path().exists());
        assert_eq!(structured(&outcome)["sandbox"]["enforced"], json!(true));

        for outcome in [
            ShellFixture::new().call("Bash", leave).await,
            ShellFixture::with(|config| config.sandbox.enabled = false).bash(write).await,
        ] {
            assert!(outcome.result.is_ok(), "{:?}", outcome.result);
            assert_eq!(structured(&outcome)["sandbox"]["enforced"], json!(false));
        }
    });
}

#[test]
fn secrets_of_the_environment_stay_outside() {
    block_on_runtime(async {
        let fixture = ShellFixture::with(|config| {
            for name in ["GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "MY_API_KEY", "LD_PRELOAD", "FLAVOUR"] {
                config.environment.insert(name.into(), "hunter2".into());
            }
            config.pass = vec!["MY_*".into(), "FLAVOUR".into()];
        });
        let text =
            output(&fixture.bash("env; cat /proc/self/environ; cat /proc/$PPID/environ").await).model_text();
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("hunter2")).collect();
        assert!(lines.iter().all(|line| line.contains("FLAVOUR")), "{lines:?}");
        assert!(!lines.is_empty());
    });
}

#[test]
fn git_runs_nothing_that_a_repository_chose() {
    block_on_runtime(async {
        let fixture = ShellFixture::new();
        let ws = fixture.path("ws");
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
        let diff = output(&fixture.bash("git diff").await).model_text();
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
            let outcome = fixture.bash(command).await;
            assert!(outcome.result.is_ok(), "{command}: {:?}", outcome.result);
            let sprung = ws.join("sprung");
            assert!(!sprung.as_path().exists(), "{command}: {:?}", std::fs::read_to_string(sprung));
        }
        let text = output(&fixture.bash("git log --oneline | wc -l").await).model_text();
        assert_eq!(text, "2\n");
    });
}

#[test]
fn terminal_escape_sequences_are_removed_from_output() {
    block_on_runtime(async {
        let fixture = ShellFixture::new();
        let outcome = fixture
            .bash("printf '\\033]0;owned\\007\\033[31mred\\033[0m a\\rb \\342\\200\\256 \\377\\n'")
            .await;
        let output = outcome.result.unwrap();
        assert_eq!(output.model_text(), "b \\u{202e} \u{fffd}\n");
        assert_eq!(output.display_text(), output.model_text());
    });
}

/// Starts a server that answers every request with `met`, and returns its port.
fn start_http_server() -> u16 {
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
    block_on_runtime(async {
        let port = start_http_server();
        let fixture = ShellFixture::with(|config| config.sandbox.hosts = vec!["127.0.0.1".into()]);
        // In a script, because a host that the command line names needs approval and is granted with the command line.
        std::fs::write(fixture.path("ws/ask.sh"), "curl -s -m 10 --noproxy '' \"http://$1:$2/\"; echo")
            .unwrap();
        let ask = |host: &str| format!("bash ask.sh {host} {port}");
        assert_eq!(output(&fixture.bash(&ask("127.0.0.1")).await).model_text(), "met\n");
        let text = output(&fixture.bash(&ask("evil.example")).await).model_text();
        assert!(
            text.contains("the proxy refused (observed): commands may not connect to `evil.example`"),
            "{text}"
        );
        // Without the proxy no connection is possible.
        let direct = format!("curl -sS -m 10 --noproxy '*' http://127.0.0.1:{port}/");
        let text = output(&fixture.bash(&direct).await).model_text();
        assert!(text.contains("tried to connect to `127.0.0.1:"), "{text}");
    });
}

/// Rules for hosts apply to hosts that a command uses without naming them in its command line.
#[test]
fn rules_for_hosts_open_and_close_the_proxy() {
    block_on_runtime(async {
        let port = start_http_server();
        let ask = async |allow: &[&str], deny: &[&str], listed: &[&str], host: &str| {
            let listed = listed.iter().map(|host| (*host).to_owned()).collect();
            let fixture = ShellFixture::with_extra_rules(allow, deny, |config| config.sandbox.hosts = listed);
            let script = "curl -s -m 10 --noproxy '' \"http://$1:$2/\"; echo";
            std::fs::write(fixture.path("ws/ask.sh"), script).unwrap();
            output(&fixture.bash(&format!("bash ask.sh {host} {port}")).await).model_text()
        };
        let allow = ["WebFetch(domain:127.0.0.1)"];
        assert_eq!(ask(&allow, &[], &[], "127.0.0.1").await, "met\n");
        let text = ask(&allow, &[], &[], "evil.example").await;
        assert!(text.contains("an allow rule `WebFetch(domain:evil.example)`"), "{text}");
        // A deny rule takes precedence over the list of hosts.
        let text = ask(&[], &["WebFetch(domain:127.0.0.1)"], &["127.0.0.1"], "127.0.0.1").await;
        assert!(
            text.contains("the proxy refused (observed): connecting to `127.0.0.1` is denied: host `127.0.0.1` is denied by a rule"),
            "{text}"
        );
    });
}

#[test]
fn unix_sockets_are_reached_where_granted() {
    block_on_runtime(async {
        let connect = "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"../home/s\"); print(\"met\")'";
        let fixture = ShellFixture::new();
        let _listener = std::os::unix::net::UnixListener::bind(fixture.path("home/s")).unwrap();
        let text = output(&fixture.bash(connect).await).model_text();
        assert!(text.contains("`sandbox.network.allowUnixSockets`"), "{text}");
        let fixture = ShellFixture::with(|config| {
            let socket = config.temp_dir.parent().unwrap().join("home/s");
            config.sandbox.sockets = vec![socket];
        });
        let _listener = std::os::unix::net::UnixListener::bind(fixture.path("home/s")).unwrap();
        assert_eq!(output(&fixture.bash(connect).await).model_text(), "met\n");
    });
}

/// The analysis treats `egrep` as a read-only program that starts `grep` and nothing else. This `egrep` starts more.
#[test]
fn an_access_that_was_not_predicted_is_refused_and_recorded_as_an_anomaly() {
    if !toolgate_process::sandbox::KernelSupport::detect().enforces_rights() {
        println!("skipped: this kernel does not enforce the rights of commands");
        return;
    }
    block_on_runtime(async {
        let fixture = ShellFixture::read_only(|config| {
            let bin = config.temp_dir.parent().unwrap().join("bin");
            std::fs::create_dir(&bin).unwrap();
            let script = bin.join("egrep");
            std::fs::write(&script, "#!/bin/sh\ntouch planted\n/usr/bin/touch planted\necho x > planted\n")
                .unwrap();
            Command::new("chmod").arg("+x").arg(script.as_path()).status().unwrap();
            let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
            config.environment.insert("PATH".to_owned(), path);
        });
        std::fs::write(fixture.path("ws/f"), "x\n").unwrap();
        let outcome = fixture.bash("egrep x f").await;
        assert!(!fixture.path("ws/planted").as_path().exists());
        let anomalies = &outcome.record.anomalies;
        assert!(anomalies.iter().all(|anomaly| anomaly.code == Code::Unforeseen), "{anomalies:?}");
        let has = |words: &str| anomalies.iter().any(|anomaly| anomaly.text.contains(words));
        assert!(has("tried to start") && has("tried to write"), "{anomalies:?} {:?}", outcome.result);
        assert!(outcome.record.judged.unwrap().rights.is_some_and(|rights| rights.execute.is_some()));
    });
}
