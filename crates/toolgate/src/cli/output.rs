//! Printing: results to standard output, everything else to standard error.

use super::args::ColorWhen;
use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use std::io::{self, Write};
use toolgate::render::escape_invisible;

/// Styles used throughout.
pub(crate) mod style {
    use super::{AnsiColor, Style};

    pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
    pub(crate) const ASK: Style = AnsiColor::Yellow.on_default().bold();
    pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
    pub(crate) const FAINT: Style = Style::new().dimmed();
    pub(crate) const BOLD: Style = Style::new().bold();

    /// The style of a verdict's word.
    pub(crate) fn verdict(word: &str) -> Style {
        match word {
            "allow" => GOOD,
            "ask" => ASK,
            _ => BAD,
        }
    }
}

/// Where a command prints.
pub(crate) struct CliOutput {
    stdout: io::BufWriter<anstream::AutoStream<io::Stdout>>,
    stderr: anstream::AutoStream<io::Stderr>,
    quiet: bool,
    color: ColorWhen,
}

impl CliOutput {
    pub(crate) fn new(color: ColorWhen, quiet: bool) -> Self {
        let choice = match color {
            // Each stream looks for itself whether it is a terminal.
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

    /// Whether a person at the terminal is shown colour.
    pub(crate) fn is_colorful(&self) -> bool {
        match self.color {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto => anstream::AutoStream::choice(&io::stderr()) != ColorChoice::Never,
        }
    }

    /// A line of the result.
    pub(crate) fn print_line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.stdout, "{text}")
    }

    /// Text of the result as it is.
    pub(crate) fn print_raw(&mut self, text: &str) -> io::Result<()> {
        self.stdout.write_all(text.as_bytes())
    }

    /// Makes sure that the result is out.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }

    /// Something worth knowing beside the result.
    pub(crate) fn print_note(&mut self, text: &str) {
        if !self.quiet {
            // Standard error may be closed; a note is not worth failing for.
            let _ = writeln!(
                self.stderr,
                "{}note:{} {}",
                style::FAINT,
                style::FAINT.render_reset(),
                escape_invisible(text)
            );
        }
    }

    /// Why the command failed.
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

    /// A refusal or a tool's failure, for people.
    pub(crate) fn print_failure(&mut self, text: &str) {
        let _ = self.flush();
        let _ = writeln!(self.stderr, "{text}");
    }
}

impl Drop for CliOutput {
    fn drop(&mut self) {
        let _ = self.stdout.flush();
    }
}

/// Text in a style.
pub(crate) fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Text of others on one line of a terminal, with nothing in it that the terminal would act on.
pub(crate) fn to_one_line(text: &str) -> String {
    escape_invisible(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// JSON text in which characters that could fool the eye or the terminal are escapes; it means the same.
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
