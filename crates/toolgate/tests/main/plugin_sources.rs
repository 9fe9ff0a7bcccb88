//! Where plugins come from: repositories over https and ssh, and the list of an administrator.

use super::cli_fixture::{CliFixture, CliRun, cli_run};
use super::plugins::{git, write_file};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Serves the repositories below a directory with git's own program, over TLS. Prints its port.
const HTTPS_SERVER: &str = r#"
import http.server, os, ssl, subprocess, sys
root, cert, key = sys.argv[1:4]
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        path, _, query = self.path.partition("?")
        if path.startswith("/moved"):
            self.send_response(302); self.send_header("Location", "http://127.0.0.1:1" + path[6:]); self.end_headers(); return
        if path.startswith("/private"):
            self.send_response(401); self.send_header("WWW-Authenticate", "Basic"); self.end_headers(); return
        length = int(self.headers.get("Content-Length") or 0)
        env = dict(os.environ, GIT_PROJECT_ROOT=root, GIT_HTTP_EXPORT_ALL="1", PATH_INFO=path, QUERY_STRING=query,
            REQUEST_METHOD=self.command, CONTENT_TYPE=self.headers.get("Content-Type", ""), CONTENT_LENGTH=str(length),
            GIT_PROTOCOL=self.headers.get("Git-Protocol", ""), HTTP_CONTENT_ENCODING=self.headers.get("Content-Encoding", ""))
        out = subprocess.run(["git", "http-backend"], env=env, input=self.rfile.read(length), capture_output=True).stdout
        head, _, body = out.partition(b"\r\n\r\n")
        lines = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        status = next((int(value.split()[0]) for name, value in lines if name == "Status"), 200)
        self.send_response(status)
        for name, value in lines:
            if name != "Status": self.send_header(name, value)
        self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    do_GET = do_POST = answer
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain(cert, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

/// A server that ends with the test.
struct HttpsServer {
    child: Child,
    port: String,
    cert: PathBuf,
}

impl Drop for HttpsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl HttpsServer {
    fn start(dir: &Path, repositories: &Path) -> Self {
        let (cert, key) = (dir.join("cert.pem"), dir.join("key.pem"));
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"])
            .args(["-addext", "subjectAltName=IP:127.0.0.1", "-keyout"])
            .arg(&key)
            .arg("-out")
            .arg(&cert)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut child = Command::new("python3")
            .args(["-c", HTTPS_SERVER])
            .args([repositories, &cert, &key])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { child, port: port.trim().to_owned(), cert }
    }

    fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}/{path}", self.port)
    }

    /// Runs the program with the certificate of the server, and without any proxy.
    fn run(&self, fixture: &CliFixture, args: &[&str]) -> CliRun {
        let mut command = fixture.command(args);
        cli_run(command.env("SSL_CERT_FILE", &self.cert).env("NO_PROXY", "127.0.0.1").output().unwrap())
    }
}

/// A repository with a plugin of one skill, as `name` below a directory.
fn write_repository(dir: &Path, name: &str, text: &str) -> PathBuf {
    let repository = dir.join(name);
    write_file(&repository, ".claude-plugin/plugin.json", r#"{ "name": "far", "version": "1.0.0" }"#);
    write_file(&repository, "skills/hello/SKILL.md", &format!("---\ndescription: d\n---\n{text}\n"));
    git(&repository, &["init", "--quiet", "-b", "main"]);
    git(&repository, &["add", "."]);
    git(&repository, &["commit", "--quiet", "-m", "one"]);
    repository
}

#[test]
fn a_plugin_is_installed_and_updated_over_https() {
    let fixture = CliFixture::new();
    let repositories = fixture.beside("repositories");
    let repository = write_repository(&repositories, "far", "Hello from afar.");
    // What a repository on a server could try.
    write_file(&repository, ".gitattributes", "* filter=evil\n");
    write_file(&repository, ".gitmodules", "[submodule \"x\"]\n\tpath = x\n\turl = ext::touch ran\n");
    git(&repository, &["add", "."]);
    git(&repository, &["commit", "--quiet", "-m", "two"]);
    let server = HttpsServer::start(&fixture.beside(""), &repositories);
    let url = server.url("far/.git");
    let untrusted = fixture.run(&["plugin", "add", &url, "--yes"]);
    assert!(untrusted.code == 2 && untrusted.stderr.contains("SSL_CERT_FILE"), "{untrusted:?}");
    let added = server.run(&fixture, &["plugin", "add", &url, "--yes"]);
    assert!(added.code == 0 && added.stdout.contains("installed plugin `far@git`"), "{added:?}");
    assert!(fixture.run(&["skill", "run", "far:hello"]).stdout.contains("Hello from afar."));
    write_file(&repository, "skills/hello/SKILL.md", "---\ndescription: d\n---\nHello again.\n");
    git(&repository, &["commit", "--quiet", "-am", "three"]);
    let updated = server.run(&fixture, &["plugin", "update", "--yes"]);
    assert_eq!(updated.code, 0, "{updated:?}");
    assert!(fixture.run(&["skill", "run", "far:hello"]).stdout.contains("Hello again."));
    assert!(!fixture.path("ran").exists());
    for (path, message) in [
        ("nothing/.git", "cannot be fetched"),
        ("private/far", "use its ssh address"),
        // A redirect to an address that is not encrypted.
        ("moved/far", "cannot be fetched"),
    ] {
        let refused = server.run(&fixture, &["plugin", "add", &server.url(path), "--yes"]);
        assert!(refused.code == 2 && refused.stderr.contains(message), "{path}: {refused:?}");
    }
}

#[test]
fn a_marketplace_over_https_brings_its_plugins_and_no_files_of_this_machine() {
    let fixture = CliFixture::new();
    let repositories = fixture.beside("repositories");
    write_repository(&repositories, "far", "Hello from afar.");
    let local = write_repository(&fixture.beside("elsewhere"), "local", "Mine.");
    let server = HttpsServer::start(&fixture.beside(""), &repositories);
    let market = repositories.join("market");
    let list = serde_json::json!({ "name": "shop", "owner": { "name": "o" }, "plugins": [
        { "name": "near", "source": "./near" },
        { "name": "far", "source": { "source": "url", "url": server.url("far/.git") } },
        { "name": "sneaky", "source": { "source": "url", "url": format!("file://{}", local.display()) } } ] });
    write_file(&market, ".claude-plugin/marketplace.json", &list.to_string());
    write_file(&market, "near/skills/hi/SKILL.md", "---\ndescription: d\n---\nHi.\n");
    git(&market, &["init", "--quiet", "-b", "main"]);
    git(&market, &["add", "."]);
    git(&market, &["commit", "--quiet", "-m", "one"]);
    let url = server.url("market/.git");
    let added = server.run(&fixture, &["plugin", "add", &url, "near", "far", "--yes"]);
    assert_eq!(added.code, 0, "{added:?}");
    assert!(fixture.run(&["skill", "run", "near:hi"]).stdout.contains("Hi."));
    assert!(fixture.run(&["skill", "run", "far:hello"]).stdout.contains("Hello from afar."));
    let sneaky = server.run(&fixture, &["plugin", "add", &url, "sneaky", "--yes"]);
    assert!(sneaky.code == 2 && sneaky.stderr.contains("a repository on this machine"), "{sneaky:?}");
}

#[test]
fn a_plugin_is_installed_over_ssh_with_what_the_user_has() {
    let fixture = CliFixture::new();
    let repository = write_repository(&fixture.beside("repositories"), "far", "Hello by ssh.");
    // In place of ssh: notes how it is called, and runs the command on this machine.
    let bin = fixture.beside("bin");
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> {}\nfor last; do :; done\neval \"$last\"\n",
        fixture.beside("ssh-calls").display()
    );
    write_file(&bin, "ssh.sh", &script);
    std::fs::rename(bin.join("ssh.sh"), bin.join("ssh")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    for url in [
        format!("ssh://git@host.example{}", repository.display()),
        format!("git@host.example:{}", repository.display()),
    ] {
        let added =
            cli_run(fixture.command(&["plugin", "add", &url, "--yes"]).env("PATH", &path).output().unwrap());
        assert_eq!(added.code, 0, "{url}: {added:?}");
        assert!(fixture.run(&["skill", "run", "far:hello"]).stdout.contains("Hello by ssh."), "{url}");
        assert_eq!(fixture.run(&["plugin", "remove", "far"]).code, 0);
    }
    let calls = std::fs::read_to_string(fixture.beside("ssh-calls")).unwrap();
    assert!(
        calls.lines().all(|line| line.contains("BatchMode=yes") && line.contains("git@host.example")),
        "{calls}"
    );
    for (url, message) in [
        ("http://127.0.0.1:1/x.git", "use its https:// or ssh:// address"),
        ("git://127.0.0.1/x.git", "use its https:// or ssh:// address"),
        ("https://me:secret@127.0.0.1/x.git", "it has a password in it"),
        ("ssh://-oProxyCommand=id/x", "not the name of a machine"),
        ("ext::sh -c id", "there is no directory"),
    ] {
        let refused = fixture.run(&["plugin", "add", url, "--yes"]);
        assert!(refused.code == 2 && refused.stderr.contains(message), "{url}: {refused:?}");
        assert!(!refused.stderr.contains("secret@") || message.contains("password"), "{refused:?}");
    }
}

#[test]
fn plugins_come_only_from_where_managed_settings_allow() {
    use toolgate::AbsPath;
    use toolgate::plugins::PluginStatus;
    use toolgate::settings::{LoadedSettings, SettingsOptions};
    let fixture = CliFixture::new();
    let dir = fixture.beside("near");
    write_file(&dir, "skills/hi/SKILL.md", "---\ndescription: d\n---\nHi.\n");
    assert_eq!(fixture.run(&["plugin", "add", &dir.display().to_string(), "--yes"]).code, 0);
    let managed = fixture.beside("managed");
    let mut options = SettingsOptions::new(AbsPath::new(fixture.path("")).unwrap());
    options.managed_dirs = vec![AbsPath::new(&managed).unwrap()];
    options.state_dir = Some(AbsPath::new(fixture.beside("state")).unwrap());
    let status = |list: &str| {
        write_file(&managed, "managed-settings.json", &format!(r#"{{ "strictKnownMarketplaces": {list} }}"#));
        let settings = LoadedSettings::load(&options).unwrap();
        let source = toolgate::plugins::PluginSource::parse("x", &AbsPath::new(&dir).unwrap()).unwrap();
        let may_add = settings.known_marketplaces().check(&source).is_ok();
        (settings.plugins().plugins[0].status, settings.plugins().places().len(), may_add)
    };
    let here = serde_json::json!([{ "source": "directory", "path": dir }]).to_string();
    assert_eq!(status("null"), (PluginStatus::Active, 1, true));
    assert_eq!(status(&here), (PluginStatus::Active, 1, true));
    for list in ["[]", r#"[{ "source": "github", "repo": "o/r" }]"#, r#""everything""#] {
        assert_eq!(status(list), (PluginStatus::Unusable, 0, false), "{list}");
    }
    // Only the administrator's own settings have a say.
    std::fs::remove_dir_all(&managed).unwrap();
    let own = ["plugin", "list", "--settings", r#"{ "strictKnownMarketplaces": [] }"#];
    assert!(fixture.run(&own).stdout.contains("active"));
}
