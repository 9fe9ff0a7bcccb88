//! One question at the terminal: display, keys, line input, and restoring the terminal mode.

use super::line_editor::{LineEditResult, LineEditor};
use super::render::{self, ColorPainter, DetailLevel};
use crate::cli::output::style;
use crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, Event, EventStream, KeyCode, KeyEvent, KeyEventKind,
    KeyModifiers,
};
use crossterm::terminal::{Clear, ClearType, disable_raw_mode, enable_raw_mode, size};
use crossterm::{cursor, queue};
use futures_util::StreamExt;
use std::io::{self, Write};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use toolgate::render::escape_invisible;
use toolgate::{ApprovalAnswer, ApprovalRequest};
use toolgate_process::ControllingTerminal;
use toolgate_proto::RiskLevel;
use toolgate_proto::json::{JsonLimits, parse_object};

/// How long a question is displayed before its keys count, so that a user who is typing something else has time to
/// stop.
const KEY_ACCEPT_DELAY: Duration = Duration::from_millis(300);

/// How a question is displayed.
pub(super) struct PromptOptions<'a> {
    /// Whether to use colors.
    pub(super) color: bool,
    /// The descriptions of the questions that wait.
    pub(super) waiting_questions: &'a (dyn Fn() -> Vec<String> + Sync),
    /// Notified when another question waits.
    pub(super) queue_changed: &'a Notify,
}

/// How a prompt ended.
pub(super) enum PromptOutcome {
    /// The user answered, or the question was withdrawn.
    Answer(ApprovalAnswer),
    /// The user pressed Ctrl-C.
    Interrupt,
}

/// What keys mean at the moment.
enum PromptState {
    /// The question was just displayed; keys are discarded.
    IgnoringInput,
    /// A key selects an answer.
    Choosing,
    /// Keys edit a line, which was last drawn over so many rows.
    Typing { purpose: PromptLinePurpose, line: LineEditor, rows: u16 },
}

/// What a typed line is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PromptLinePurpose {
    /// The word `yes`, for a critical call.
    Confirmation,
    /// A message to the model, with a denial.
    Message,
    /// The edited input of the call.
    Input,
}

/// Asks one question and restores the terminal mode afterwards.
pub(super) async fn ask(
    terminal: ControllingTerminal,
    request: &ApprovalRequest,
    options: &PromptOptions<'_>,
) -> io::Result<PromptOutcome> {
    let screen = RawModeTerminal::enter(terminal)?;
    let painter = ColorPainter(options.color);
    let mut prompt = ActivePrompt {
        screen,
        request,
        options,
        painter,
        detail: DetailLevel::Short,
        displayed_waiting: Vec::new(),
        state: PromptState::IgnoringInput,
    };
    prompt.print_question()?;
    prompt.run().await
}

/// A question on the screen.
struct ActivePrompt<'a> {
    /// The terminal in raw mode.
    screen: RawModeTerminal,
    /// The question.
    request: &'a ApprovalRequest,
    /// How it is displayed.
    options: &'a PromptOptions<'a>,
    /// Applies colors, if they are on.
    painter: ColorPainter,
    /// How much of the input or diff is displayed.
    detail: DetailLevel,
    /// The waiting questions that were displayed already.
    displayed_waiting: Vec<String>,
    /// What keys mean at the moment.
    state: PromptState,
}

impl ActivePrompt<'_> {
    /// Handles events until there is an outcome.
    async fn run(&mut self) -> io::Result<PromptOutcome> {
        let mut events = EventStream::new();
        let accept_keys_at = Instant::now() + KEY_ACCEPT_DELAY;
        loop {
            let event = tokio::select! {
                biased;
                () = self.request.cancel.cancelled() => {
                    self.screen.print(&["  (the question was withdrawn)".to_owned()])?;
                    let why = "the question was withdrawn".to_owned();
                    return Ok(PromptOutcome::Answer(ApprovalAnswer::Lost { why }));
                }
                () = self.options.queue_changed.notified(), if matches!(self.state, PromptState::Choosing) => {
                    self.print_waiting()?;
                    continue;
                }
                () = sleep_until(accept_keys_at), if matches!(self.state, PromptState::IgnoringInput) => {
                    self.screen.terminal.discard_input()?;
                    self.print_waiting()?;
                    self.print_keys()?;
                    self.state = PromptState::Choosing;
                    continue;
                }
                event = events.next() => match event {
                    Some(event) => event?,
                    None => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
                },
            };
            if let Some(outcome) = self.handle_event(&event)? {
                return Ok(outcome);
            }
        }
    }

    /// Applies an event. Keys before the delay, pastes, clicks and resizes have no effect while an answer is chosen.
    fn handle_event(&mut self, event: &Event) -> io::Result<Option<PromptOutcome>> {
        if let Event::Key(key) = event
            && is_interrupt(key)
        {
            self.screen.print(&["  interrupted".to_owned()])?;
            return Ok(Some(PromptOutcome::Interrupt));
        }
        match (&self.state, event) {
            (PromptState::Choosing, Event::Key(key)) if key.kind == KeyEventKind::Press => {
                self.handle_choice(key)
            }
            (PromptState::Typing { .. }, event) => self.handle_typing(event),
            (PromptState::IgnoringInput | PromptState::Choosing, _) => Ok(None),
        }
    }

    /// Applies a key that selects an answer.
    fn handle_choice(&mut self, key: &KeyEvent) -> io::Result<Option<PromptOutcome>> {
        match choose(key, self.request) {
            PromptChoice::Answer(answer, label) => {
                self.screen.print(&[format!("  {}", self.painter.paint(style::BOLD, label))])?;
                return Ok(Some(PromptOutcome::Answer(answer)));
            }
            PromptChoice::Type(purpose) => {
                let line = match purpose {
                    PromptLinePurpose::Input => {
                        LineEditor::with_text(&render::editable_json(&self.request.input))
                    }
                    PromptLinePurpose::Confirmation | PromptLinePurpose::Message => LineEditor::default(),
                };
                let rows = self.screen.draw(purpose, &line, 0)?;
                self.state = PromptState::Typing { purpose, line, rows };
            }
            PromptChoice::ShowAll => {
                self.detail = DetailLevel::Full;
                self.print_question()?;
                self.print_keys()?;
            }
            PromptChoice::Nothing => {}
        }
        Ok(None)
    }

    /// Applies an event to the line that is typed.
    fn handle_typing(&mut self, event: &Event) -> io::Result<Option<PromptOutcome>> {
        let PromptState::Typing { purpose, line, rows } = &mut self.state else { return Ok(None) };
        let result = match event {
            Event::Key(key) if key.kind == KeyEventKind::Press => line.handle_key(key),
            Event::Paste(text) if *purpose != PromptLinePurpose::Confirmation => {
                line.insert(text);
                LineEditResult::Changed
            }
            _ => LineEditResult::Changed,
        };
        match result {
            LineEditResult::Changed => *rows = self.screen.draw(*purpose, line, *rows)?,
            LineEditResult::Cancelled => {
                self.screen.print(&[String::new()])?;
                self.print_keys()?;
                self.state = PromptState::Choosing;
            }
            LineEditResult::Entered => match parse_entered(*purpose, &line.text()) {
                Ok(answer) => {
                    self.screen.print(&[String::new()])?;
                    return Ok(Some(PromptOutcome::Answer(answer)));
                }
                Err(problem) => {
                    let message = format!("  {}", self.painter.paint(style::BAD, &problem));
                    self.screen.print(&[String::new(), message])?;
                    *rows = self.screen.draw(*purpose, line, 0)?;
                }
            },
        }
        Ok(None)
    }

    /// Prints the question with the current level of detail.
    fn print_question(&mut self) -> io::Result<()> {
        self.screen.print(&render::render_question(self.request, self.painter, self.detail))
    }

    /// Prints the keys and their answers.
    fn print_keys(&mut self) -> io::Result<()> {
        self.screen.print(&render::render_keys(self.request, self.painter, self.detail))
    }

    /// Prints the waiting questions that were not displayed before.
    fn print_waiting(&mut self) -> io::Result<()> {
        let mut questions = (self.options.waiting_questions)();
        questions.retain(|question| !self.displayed_waiting.contains(question));
        self.displayed_waiting.extend(questions.iter().cloned());
        self.screen.print(&render::render_waiting(&questions, self.painter))
    }
}

/// Whether a key is Ctrl-C.
fn is_interrupt(key: &KeyEvent) -> bool {
    key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)
}

/// What a key selects.
enum PromptChoice {
    /// An answer, and the label that is printed for it.
    Answer(ApprovalAnswer, &'static str),
    /// A line is typed first.
    Type(PromptLinePurpose),
    /// The question is printed again without truncation.
    ShowAll,
    /// The key has no meaning.
    Nothing,
}

/// The meaning of a key. Keys with Control or Alt never answer: they are commands of the terminal or its multiplexer.
fn choose(key: &KeyEvent, request: &ApprovalRequest) -> PromptChoice {
    if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
        return PromptChoice::Nothing;
    }
    let rules = || request.question.suggestions.iter().map(|suggestion| suggestion.rule.clone()).collect();
    let offered = !request.question.suggestions.is_empty();
    match key.code {
        KeyCode::Char('y' | 'Y') if request.question.risk == RiskLevel::Critical => {
            PromptChoice::Type(PromptLinePurpose::Confirmation)
        }
        KeyCode::Char('y' | 'Y') => PromptChoice::Answer(ApprovalAnswer::Once, "yes, once"),
        KeyCode::Char('s' | 'S') if offered => {
            PromptChoice::Answer(ApprovalAnswer::Session { rules: rules() }, "yes, for this session")
        }
        KeyCode::Char('a' | 'A') if offered => {
            PromptChoice::Answer(ApprovalAnswer::Always { rules: rules() }, "yes, always")
        }
        KeyCode::Char('n' | 'N') | KeyCode::Esc => {
            PromptChoice::Answer(ApprovalAnswer::No { message: None }, "no")
        }
        KeyCode::Char('m' | 'M') => PromptChoice::Type(PromptLinePurpose::Message),
        KeyCode::Char('e' | 'E') => PromptChoice::Type(PromptLinePurpose::Input),
        KeyCode::Char('d' | 'D') => PromptChoice::ShowAll,
        _ => PromptChoice::Nothing,
    }
}

/// The answer that a completed line gives, or why the line is invalid.
fn parse_entered(purpose: PromptLinePurpose, text: &str) -> Result<ApprovalAnswer, String> {
    match purpose {
        PromptLinePurpose::Confirmation if text.trim().eq_ignore_ascii_case("yes") => {
            Ok(ApprovalAnswer::Once)
        }
        PromptLinePurpose::Confirmation => Err("type yes to approve, or press Escape".to_owned()),
        PromptLinePurpose::Message => {
            let message = text.trim();
            Ok(ApprovalAnswer::No { message: (!message.is_empty()).then(|| message.to_owned()) })
        }
        PromptLinePurpose::Input => parse_object(text, JsonLimits::CALL)
            .map(|input| ApprovalAnswer::Revise { input })
            .map_err(|problem| format!("{problem}; correct it, or press Escape")),
    }
}

/// The terminal in raw mode. Dropping it restores the mode, also after an error or a cancellation.
struct RawModeTerminal {
    /// The controlling terminal, which is not one of the standard streams.
    terminal: ControllingTerminal,
}

impl RawModeTerminal {
    /// Discards type-ahead and enters raw mode.
    fn enter(terminal: ControllingTerminal) -> io::Result<Self> {
        terminal.discard_input()?;
        enable_raw_mode()?;
        let mut screen = Self { terminal };
        queue!(screen.terminal, EnableBracketedPaste)?;
        screen.terminal.flush()?;
        Ok(screen)
    }

    /// Prints whole lines.
    fn print(&mut self, lines: &[String]) -> io::Result<()> {
        for line in lines {
            // In raw mode a line feed does not return to the first column.
            write!(self.terminal, "\r{line}\r\n")?;
        }
        self.terminal.flush()
    }

    /// Draws the typed line over the `rows` that it took before, and returns how many it takes now.
    fn draw(&mut self, purpose: PromptLinePurpose, line: &LineEditor, rows: u16) -> io::Result<u16> {
        let prompt = match purpose {
            PromptLinePurpose::Confirmation => "  type yes to approve: ",
            PromptLinePurpose::Message => "  message to the model: ",
            PromptLinePurpose::Input => "  input: ",
        };
        let width = usize::from(size().map_or(80, |(columns, _)| columns).max(20));
        if rows > 1 {
            queue!(self.terminal, cursor::MoveUp(rows - 1))?;
        }
        queue!(self.terminal, cursor::MoveToColumn(0), Clear(ClearType::FromCursorDown))?;
        write!(self.terminal, "{prompt}{}", escape_invisible(&line.text()))?;
        let (at, count) = line.cursor_and_len();
        let back = count - at;
        if back > 0 {
            let steps = u16::try_from(back.min(width)).unwrap_or(u16::MAX);
            queue!(self.terminal, cursor::MoveLeft(steps))?;
        }
        self.terminal.flush()?;
        Ok(u16::try_from((prompt.len() + count) / width + 1).unwrap_or(u16::MAX))
    }
}

impl Drop for RawModeTerminal {
    fn drop(&mut self) {
        // If the terminal is closed, there is no mode to restore.
        let _ = queue!(self.terminal, DisableBracketedPaste);
        let _ = self.terminal.flush();
        let _ = disable_raw_mode();
    }
}
