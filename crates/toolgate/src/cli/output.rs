//! The output of a command: results go to standard output, notes, errors and progress to standard error.
//!
//! Untrusted text passes through [`escape_invisible`], so that it cannot move the cursor or reverse the text direction.

use super::args::ColorWhen;
use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use serde_json::Value;
use std::io::{self, Write};
use toolgate::render::escape_invisible;
use toolgate_process::{AmbientEnvironment, StandardStream};

/// The styles of the program.
pub(crate) mod style {
    use super::{AnsiColor, Style};

    /// Allowed, done, intact.
    pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
    /// Needs the user's attention or approval.
    pub(crate) const ASK: Style = AnsiColor::Yellow.on_default().bold();
    /// Denied, failed, broken.
    pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
    /// Labels and secondary details.
    pub(crate) const FAINT: Style = Style::new().dimmed();
    /// Names and headings.
    pub(crate) const BOLD: Style = Style::new().bold();

    /// The style of `allow`, `ask` or `deny`.
    pub(crate) fn verdict(word: &str) -> Style {
        match word {
            "allow" => GOOD,
            "ask" => ASK,
            _ => BAD,
        }
    }
}

/// The two output streams of a command.
pub(crate) struct CliOutput {
    /// Buffered; flushed before each error and at the end.
    stdout: io::BufWriter<anstream::AutoStream<io::Stdout>>,
    /// Unbuffered, so that notes appear at once.
    stderr: anstream::AutoStream<io::Stderr>,
    /// Whether notes are suppressed.
    quiet: bool,
    /// The value of `--color`.
    color: ColorWhen,
}

impl CliOutput {
    /// Streams that remove colors according to `color`.
    pub(crate) fn new(color: ColorWhen, quiet: bool) -> Self {
        let choice = match color {
            // Each stream checks by itself whether it is a terminal.
            ColorWhen::Auto => ColorChoice::Auto,
            ColorWhen::Always => ColorChoice::Always,
            ColorWhen::Never => ColorChoice::Never,
        };
        Self {
            stdout: io::BufWriter::new(anstream::AutoStream::new(io::stdout(), choice)),
            stderr: anstream::AutoStream::new(io::stderr(), choice),
            quiet,
            color,
        }
    }

    /// Whether the approval prompt, which is written to the terminal itself, uses colors.
    pub(crate) fn is_colorful(&self) -> bool {
        match self.color {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto => anstream::AutoStream::choice(&io::stderr()) != ColorChoice::Never,
        }
    }

    /// Prints a line of the result.
    pub(crate) fn print_line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.stdout, "{text}")
    }

    /// Prints what a command did: with `--json` as an object, else as a line.
    pub(crate) fn print_done(&mut self, is_json: bool, value: &Value, text: &str) -> io::Result<()> {
        match is_json {
            true => self.print_line(&value.to_string()),
            false => self.print_line(text),
        }
    }

    /// Prints text of the result without a line break.
    pub(crate) fn print_raw(&mut self, text: &str) -> io::Result<()> {
        self.stdout.write_all(text.as_bytes())
    }

    /// Prints text of the result through the user's pager if standard output is a terminal and the text is longer than
    /// its screen. Without a pager that starts, it is printed as it is.
    pub(crate) fn print_paged(&mut self, ambient: &AmbientEnvironment, text: &str) -> io::Result<()> {
        let rows = || crossterm::terminal::size().map_or(usize::MAX, |(_, rows)| usize::from(rows));
        let is_long = toolgate_process::is_terminal(StandardStream::Stdout) && text.lines().count() >= rows();
        self.flush()?;
        let shown = match self.color {
            ColorWhen::Never => anstream::adapter::strip_str(text).to_string(),
            ColorWhen::Auto | ColorWhen::Always => text.to_owned(),
        };
        if is_long && toolgate_process::page_text(ambient, &shown) {
            return Ok(());
        }
        self.print_raw(text)
    }

    /// Writes buffered results.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }

    /// Prints a note to standard error, unless `--quiet` is given.
    pub(crate) fn print_note(&mut self, text: &str) {
        if !self.quiet {
            self.print_required_note(text);
        }
    }

    /// Prints a note to standard error, also with `--quiet`: without it the user could not go on.
    pub(crate) fn print_required_note(&mut self, text: &str) {
        // Standard error may be closed; a missing note is no reason to fail.
        let _ = writeln!(
            self.stderr,
            "{}note:{} {}",
            style::FAINT,
            style::FAINT.render_reset(),
            escape_invisible(text)
        );
    }

    /// Prints why the command failed.
    pub(crate) fn print_error(&mut self, text: &str) {
        let _ = self.flush();
        let _ = writeln!(
            self.stderr,
            "{}error:{} {}",
            style::BAD,
            style::BAD.render_reset(),
            escape_invisible(text)
        );
    }

    /// Prints why the command failed as JSON to standard output, for `--json`. The hint is the part after `hint: `.
    pub(crate) fn print_json_error(&mut self, text: &str, exit: super::CliExitCode) {
        let (message, hint) = text.split_once("\n  hint: ").unwrap_or((text, ""));
        let mut error = serde_json::json!({ "message": message.trim_end(), "exitCode": exit as u8 });
        if let Some(fields) = error.as_object_mut().filter(|_| !hint.is_empty()) {
            fields.insert("hint".to_owned(), hint.into());
        }
        let _ = self.print_line(&serde_json::json!({ "error": error }).to_string());
        let _ = self.flush();
    }

    /// Prints a refusal, the failure of a tool, or an instruction to the user. The text must be escaped already.
    pub(crate) fn print_failure(&mut self, text: &str) {
        let _ = self.flush();
        let _ = writeln!(self.stderr, "{text}");
    }
}

impl Drop for CliOutput {
    /// Writes buffered output on early returns as well. Errors are ignored: `drop` has no way to report them.
    fn drop(&mut self) {
        let _ = self.stdout.flush();
    }
}

/// Text with the escape sequences of a style; the streams remove them where color is off.
pub(crate) fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Untrusted text on one line, with control characters escaped.
pub(crate) fn to_one_line(text: &str) -> String {
    escape_invisible(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// JSON text in which invisible and control characters are `\u` escapes; it parses to the same value.
pub(crate) fn to_visible_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let mut buffer = [0; 4];
        let shown: &str = c.encode_utf8(&mut buffer);
        if escape_invisible(shown) == shown {
            out.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}
