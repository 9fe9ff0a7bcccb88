//! A shell in tmux: the program as a user has it in front of them, with the screen as text.

use super::cli_fixture::CliFixture;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a screen may take to show what is waited for.
const SCREEN_TIMEOUT: Duration = Duration::from_secs(300);
/// Time between two looks at the screen.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// A tmux server of its own with one window, ended when this is dropped.
pub(super) struct TmuxSession {
    socket: String,
}

impl TmuxSession {
    /// Whether tmux can be started. A test is left out where it is missing, unless the tools of the tests are required.
    pub(super) fn is_available() -> bool {
        let found =
            Command::new("tmux").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
        let required = std::env::var_os("TOOLGATE_TEST_TOOLS").is_some_and(|value| value == "required");
        assert!(found || !required, "there is no tmux; run scripts/install-test-tools.sh");
        found
    }

    /// A shell in the workspace of the fixture, at a terminal of so many columns and rows.
    pub(super) fn start(fixture: &CliFixture, (columns, rows): (usize, usize)) -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_toolgate"));
        let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
        let socket = fixture.beside("tmux").display().to_string();
        let session = Self { socket };
        let size = [columns.to_string(), rows.to_string()];
        let shell = format!(
            "exec env -i PATH='{path}' HOME='{}' TOOLGATE_STATE_DIR='{}' TERM=screen LC_ALL=C.UTF-8 PS1='> ' sh",
            fixture.beside("home").display(),
            fixture.beside("state").display(),
        );
        session.tmux(&["new-session", "-d", "-x", &size[0], "-y", &size[1], &shell], Some(fixture));
        session.tmux(&["set-option", "-g", "status", "off"], None);
        // With the status line gone, the window has one row more.
        session.tmux(&["resize-window", "-x", &size[0], "-y", &size[1]], None);
        session.wait_for(">");
        session
    }

    /// Runs tmux against this server; what it printed.
    fn tmux(&self, args: &[&str], fixture: Option<&CliFixture>) -> String {
        let mut command = Command::new("tmux");
        command.args(["-u", "-f", "/dev/null", "-S", &self.socket]).args(args).env_remove("TMUX");
        if let Some(fixture) = fixture {
            command.current_dir(fixture.path(""));
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Types a text.
    pub(super) fn type_text(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text], None);
    }

    /// Presses a key by its name, such as `Enter`.
    pub(super) fn press(&self, key: &str) {
        self.tmux(&["send-keys", key], None);
    }

    /// Types a line and enters it on an empty screen.
    pub(super) fn enter_line(&self, line: &str) {
        self.type_text(line);
        self.press("Enter");
    }

    /// The screen without styles, blanks at the ends of rows left out.
    pub(super) fn screen(&self) -> String {
        let rows = self.tmux(&["capture-pane", "-p"], None);
        rows.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }

    /// The screen and everything that scrolled out of it, with wrapped lines joined.
    pub(super) fn history(&self) -> String {
        let rows = self.tmux(&["capture-pane", "-p", "-J", "-S", "-"], None);
        rows.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }

    /// Forgets the screen and what scrolled out of it.
    pub(super) fn clear(&self) {
        // Shown before it is entered: a screen with nothing but the prompt would else be taken for the cleared one, and
        // what is typed next be cleared with the rest.
        self.type_text("clear");
        self.wait_until(|screen| screen.trim_end().ends_with("> clear"), "the command");
        self.press("Enter");
        self.wait_until(|screen| screen.trim() == ">", "an empty screen");
        self.tmux(&["clear-history"], None);
    }

    /// Waits until the screen contains the text, and returns it.
    pub(super) fn wait_for(&self, text: &str) -> String {
        self.wait_until(|screen| screen.contains(text), text)
    }

    /// Waits until the screen is as wanted, and returns it.
    pub(super) fn wait_until(&self, is_wanted: impl Fn(&str) -> bool, what: &str) -> String {
        let deadline = Instant::now() + SCREEN_TIMEOUT;
        loop {
            let screen = self.screen();
            if is_wanted(&screen) {
                return screen;
            }
            assert!(Instant::now() < deadline, "`{what}` was not shown:\n{screen}");
            std::thread::sleep(LOOK_INTERVAL);
        }
    }
}

impl Drop for TmuxSession {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        command.args(["-S", &self.socket, "kill-server"]).stderr(Stdio::null());
        let _ = command.status();
    }
}
