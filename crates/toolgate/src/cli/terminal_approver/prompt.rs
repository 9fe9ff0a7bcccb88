//! One question at the terminal: display, keys, line input, and restoring the terminal mode.

use super::line_editor::{LineEditResult, LineEditor};
use super::render::{self, ColorPainter, PromptLayout};
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
use toolgate::{ApprovalAnswer, ApprovalRequest, GrantScope, RuleWidth};
use toolgate_gate::QuestionPosition;
use toolgate_process::ControllingTerminal;
use toolgate_proto::RiskLevel;
use toolgate_proto::json::{JsonLimits, parse_object};

/// How long a question is displayed before its keys count, so that a user who is typing something else has time to
/// stop.
const KEY_ACCEPT_DELAY: Duration = Duration::from_millis(300);
/// How long the size of the screen must stay the same before the question is displayed again.
const RESIZE_DELAY: Duration = Duration::from_millis(150);

/// How a question is displayed.
pub(super) struct PromptOptions<'a> {
    /// Whether to use colors.
    pub(super) color: bool,
    /// The place of the question among the open ones, and the description of the next.
    pub(super) queue_position: &'a (dyn Fn() -> (QuestionPosition, Option<String>) + Sync),
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
        width: RuleWidth::Exact,
        is_cut: false,
        displayed_position: None,
        has_explained_keys: false,
        redraw_at: None,
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
    /// Which form of the rules is offered.
    width: RuleWidth,
    /// Whether the card does not fit on the screen.
    is_cut: bool,
    /// The row with the place in the queue that was displayed last.
    displayed_position: Option<String>,
    /// Whether a key without a meaning was answered by a list of those that have one.
    has_explained_keys: bool,
    /// When to display the question again, because the screen has another size.
    redraw_at: Option<Instant>,
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
                    self.erase_typed_line()?;
                    self.screen.print(&["  (the question was withdrawn)".to_owned()])?;
                    let why = "the question was withdrawn".to_owned();
                    return Ok(PromptOutcome::Answer(ApprovalAnswer::Lost { why }));
                }
                () = self.options.queue_changed.notified(), if matches!(self.state, PromptState::Choosing) => {
                    self.print_position()?;
                    continue;
                }
                () = self.request.queue.changed(), if matches!(self.state, PromptState::Choosing) => {
                    self.print_position()?;
                    continue;
                }
                () = sleep_until(self.redraw_at.unwrap_or_else(Instant::now)), if self.redraw_at.is_some() => {
                    self.redraw()?;
                    continue;
                }
                () = sleep_until(accept_keys_at), if matches!(self.state, PromptState::IgnoringInput) => {
                    self.screen.terminal.discard_input()?;
                    self.print_position()?;
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

    /// Applies an event. Keys before the delay, pastes and clicks have no effect while an answer is chosen.
    fn handle_event(&mut self, event: &Event) -> io::Result<Option<PromptOutcome>> {
        if let Event::Key(key) = event
            && is_interrupt(key)
        {
            self.erase_typed_line()?;
            self.screen.print(&["  interrupted".to_owned()])?;
            return Ok(Some(PromptOutcome::Interrupt));
        }
        if matches!(event, Event::Resize(..)) {
            self.redraw_at = Some(Instant::now() + RESIZE_DELAY);
            return Ok(None);
        }
        match (&self.state, event) {
            (PromptState::Choosing, Event::Key(key)) if key.kind == KeyEventKind::Press => {
                self.handle_choice(key)
            }
            (PromptState::Typing { .. }, event) => self.handle_typing(event),
            (PromptState::IgnoringInput | PromptState::Choosing, _) => Ok(None),
        }
    }

    /// Erases the line that is typed, if there is one: the question ends without it, and a note takes its place.
    fn erase_typed_line(&mut self) -> io::Result<()> {
        match self.state {
            PromptState::Typing { rows, .. } => self.screen.erase(rows),
            PromptState::IgnoringInput | PromptState::Choosing => Ok(()),
        }
    }

    /// Applies a key that selects an answer.
    fn handle_choice(&mut self, key: &KeyEvent) -> io::Result<Option<PromptOutcome>> {
        match choose(key, self.request, self.width) {
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
                let rows = self.layout().render_everything(&self.request.card);
                self.screen.print(&rows)?;
                self.print_keys()?;
            }
            PromptChoice::ChangeWidth => {
                self.width = self.layout().other_width();
                self.screen.print(&[String::new()])?;
                self.print_keys()?;
            }
            PromptChoice::Nothing => self.explain_keys(key)?,
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

    /// How the question is displayed on the screen as it is now.
    fn layout(&self) -> PromptLayout {
        let (columns, rows) = size().map_or((80, 24), |(columns, rows)| (columns.into(), rows.into()));
        PromptLayout { painter: self.painter, columns, rows, width: self.width }
    }

    /// Prints the question, as large as the screen permits.
    fn print_question(&mut self) -> io::Result<()> {
        let (rows, is_cut) = self.layout().render_question(&self.request.card);
        self.is_cut = is_cut;
        self.screen.print(&rows)
    }

    /// Prints the keys and their answers.
    fn print_keys(&mut self) -> io::Result<()> {
        self.screen.print(&self.layout().render_keys(&self.request.card, self.is_cut))
    }

    /// Prints the place of the question in the queue, if it is not on the screen already.
    fn print_position(&mut self) -> io::Result<()> {
        let (position, next) = (self.options.queue_position)();
        let row = self.layout().render_position(position, next.as_deref());
        if row.is_some() && row != self.displayed_position {
            self.screen.print(row.as_slice())?;
            self.displayed_position = row;
        }
        Ok(())
    }

    /// Displays the question again after the screen changed its size.
    fn redraw(&mut self) -> io::Result<()> {
        self.redraw_at = None;
        match &mut self.state {
            PromptState::IgnoringInput => self.print_question(),
            PromptState::Choosing => {
                self.displayed_position = None;
                self.print_question()?;
                self.print_position()?;
                self.print_keys()
            }
            PromptState::Typing { purpose, line, rows } => {
                *rows = self.screen.draw(*purpose, line, *rows)?;
                Ok(())
            }
        }
    }

    /// Says once which keys there are.
    fn explain_keys(&mut self, key: &KeyEvent) -> io::Result<()> {
        if self.has_explained_keys || key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return Ok(());
        }
        self.has_explained_keys = true;
        let text = "that key has no meaning here: press a letter in brackets; Ctrl-C cancels the call";
        let rows = self.layout().wrap_note(text);
        self.screen.print(&rows)
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
    /// The rules are offered in their other form.
    ChangeWidth,
    /// The key has no meaning.
    Nothing,
}

/// The meaning of a key. Keys with Control or Alt never answer: they are commands of the terminal or its multiplexer.
fn choose(key: &KeyEvent, request: &ApprovalRequest, width: RuleWidth) -> PromptChoice {
    if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
        return PromptChoice::Nothing;
    }
    let card = &request.card;
    let rules = || card.rules_of_width(width);
    let offers = |scope: GrantScope| card.scopes.contains(&scope);
    match key.code {
        KeyCode::Char('y' | 'Y') if card.risk == RiskLevel::Critical => {
            PromptChoice::Type(PromptLinePurpose::Confirmation)
        }
        KeyCode::Char('y' | 'Y') => PromptChoice::Answer(ApprovalAnswer::Once, "yes, once"),
        KeyCode::Char('s' | 'S') if offers(GrantScope::Session) => {
            PromptChoice::Answer(ApprovalAnswer::Session { rules: rules() }, "yes, for this session")
        }
        KeyCode::Char('a' | 'A') if offers(GrantScope::Project) => {
            PromptChoice::Answer(ApprovalAnswer::Always { rules: rules() }, "yes, always")
        }
        KeyCode::Char('w' | 'W') if !card.scopes.is_empty() && card.has_wider_rules() => {
            PromptChoice::ChangeWidth
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
        // A line that shows progress is not finished: the question takes its place.
        queue!(
            screen.terminal,
            cursor::MoveToColumn(0),
            Clear(ClearType::CurrentLine),
            EnableBracketedPaste
        )?;
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

    /// Erases the last rows, of which the cursor is in the last one.
    fn erase(&mut self, rows: u16) -> io::Result<()> {
        if rows > 1 {
            queue!(self.terminal, cursor::MoveUp(rows - 1))?;
        }
        queue!(self.terminal, cursor::MoveToColumn(0), Clear(ClearType::FromCursorDown))
    }

    /// Draws the typed line over the `rows` that it took before, and returns how many it takes now.
    fn draw(&mut self, purpose: PromptLinePurpose, line: &LineEditor, rows: u16) -> io::Result<u16> {
        let prompt = match purpose {
            PromptLinePurpose::Confirmation => "  type yes to approve: ",
            PromptLinePurpose::Message => "  message to the model: ",
            PromptLinePurpose::Input => "  input: ",
        };
        let width = usize::from(size().map_or(80, |(columns, _)| columns).max(20));
        self.erase(rows)?;
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
