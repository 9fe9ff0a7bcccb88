//! One question on the terminal, from the first line to the restored state.

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

/// How long a question stands before its keys count: whoever was typing has time to stop.
const KEY_ACCEPT_DELAY: Duration = Duration::from_millis(300);

/// How a question is shown.
pub(super) struct PromptOptions<'a> {
    pub(super) color: bool,
    /// What else waits now.
    pub(super) waiting_questions: &'a (dyn Fn() -> Vec<String> + Sync),
    /// Told when that changes.
    pub(super) queue_changed: &'a Notify,
}

/// What came of a question.
pub(super) enum PromptOutcome {
    Answer(ApprovalAnswer),
    /// Ctrl-C.
    Interrupt,
}

/// What the keys mean now.
enum PromptState {
    /// Nothing yet.
    IgnoringInput,
    /// An answer is chosen.
    Choosing,
    /// A line is typed.
    Typing { what: PromptLinePurpose, line: LineEditor, rows: u16 },
}

/// What a line is typed for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PromptLinePurpose {
    Confirmation,
    Message,
    Input,
}

pub(super) async fn ask(
    terminal: ControllingTerminal,
    request: &ApprovalRequest,
    show: &PromptOptions<'_>,
) -> io::Result<PromptOutcome> {
    let mut screen = RawModeTerminal::enter(terminal)?;
    let painter = ColorPainter(show.color);
    let mut length = DetailLevel::Short;
    screen.print(&render::render_question(request, painter, length))?;
    let mut shown: Vec<String> = Vec::new();
    let mut events = EventStream::new();
    let settled = Instant::now() + KEY_ACCEPT_DELAY;
    let mut doing = PromptState::IgnoringInput;
    loop {
        let event = tokio::select! {
            biased;
            () = request.cancel.cancelled() => {
                screen.print(&["  (no longer asked)".to_owned()])?;
                return Ok(PromptOutcome::Answer(ApprovalAnswer::Lost { why: "the question was withdrawn".to_owned() }));
            }
            () = show.queue_changed.notified(), if matches!(doing, PromptState::Choosing) => {
                screen.print(&render::render_waiting(&take_unseen(show, &mut shown), painter))?;
                continue;
            }
            () = sleep_until(settled), if matches!(doing, PromptState::IgnoringInput) => {
                screen.terminal.discard_input()?;
                screen.print(&render::render_waiting(&take_unseen(show, &mut shown), painter))?;
                screen.print(&render::render_keys(request, painter, length))?;
                doing = PromptState::Choosing;
                continue;
            }
            event = events.next() => match event {
                Some(event) => event?,
                None => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            },
        };
        if let Event::Key(key) = &event
            && is_interrupt(key)
        {
            screen.print(&["  interrupted".to_owned()])?;
            return Ok(PromptOutcome::Interrupt);
        }
        match (&mut doing, event) {
            (PromptState::Choosing, Event::Key(key)) if key.kind == KeyEventKind::Press => {
                match choose(&key, request) {
                    PromptChoice::Answer(answer, words) => {
                        screen.print(&[format!("  {}", painter.paint(style::BOLD, words))])?;
                        return Ok(PromptOutcome::Answer(answer));
                    }
                    PromptChoice::Type(what) => {
                        let line = match what {
                            PromptLinePurpose::Input => {
                                LineEditor::with_text(&render::editable_json(&request.input))
                            }
                            PromptLinePurpose::Confirmation | PromptLinePurpose::Message => {
                                LineEditor::default()
                            }
                        };
                        let rows = screen.draw(what, &line, 0)?;
                        doing = PromptState::Typing { what, line, rows };
                    }
                    PromptChoice::ShowAll => {
                        length = DetailLevel::Full;
                        screen.print(&render::render_question(request, painter, length))?;
                        screen.print(&render::render_keys(request, painter, length))?;
                    }
                    PromptChoice::Nothing => {}
                }
            }
            (PromptState::Typing { what, line, rows }, event) => {
                let typed = match &event {
                    Event::Key(key) if key.kind == KeyEventKind::Press => line.handle_key(key),
                    Event::Paste(text) if *what != PromptLinePurpose::Confirmation => {
                        line.insert(text);
                        LineEditResult::Changed
                    }
                    _ => LineEditResult::Changed,
                };
                match typed {
                    LineEditResult::Changed => *rows = screen.draw(*what, line, *rows)?,
                    LineEditResult::Cancelled => {
                        screen.print(&[String::new()])?;
                        screen.print(&render::render_keys(request, painter, length))?;
                        doing = PromptState::Choosing;
                    }
                    LineEditResult::Entered => match parse_entered(*what, &line.text()) {
                        Ok(answer) => {
                            screen.print(&[String::new()])?;
                            return Ok(PromptOutcome::Answer(answer));
                        }
                        Err(problem) => {
                            screen.print(&[
                                String::new(),
                                format!("  {}", painter.paint(style::BAD, &problem)),
                            ])?;
                            *rows = screen.draw(*what, line, 0)?;
                        }
                    },
                }
            }
            // Whatever is pressed before the keys are offered, pasted, clicked or resized means nothing.
            (PromptState::IgnoringInput | PromptState::Choosing, _) => {}
        }
    }
}

/// What waits and has not been shown yet.
fn take_unseen(show: &PromptOptions<'_>, shown: &mut Vec<String>) -> Vec<String> {
    let fresh: Vec<String> =
        (show.waiting_questions)().into_iter().filter(|other| !shown.contains(other)).collect();
    shown.extend(fresh.iter().cloned());
    fresh
}

fn is_interrupt(key: &KeyEvent) -> bool {
    key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)
}

enum PromptChoice {
    Answer(ApprovalAnswer, &'static str),
    Type(PromptLinePurpose),
    ShowAll,
    Nothing,
}

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

/// What a finished line means, or why it cannot be taken.
fn parse_entered(what: PromptLinePurpose, text: &str) -> Result<ApprovalAnswer, String> {
    match what {
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

/// The terminal in raw mode; left as it was when dropped, whatever happens.
struct RawModeTerminal {
    terminal: ControllingTerminal,
}

impl RawModeTerminal {
    fn enter(terminal: ControllingTerminal) -> io::Result<Self> {
        terminal.discard_input()?;
        enable_raw_mode()?;
        let mut screen = Self { terminal };
        queue!(screen.terminal, EnableBracketedPaste)?;
        screen.terminal.flush()?;
        Ok(screen)
    }

    fn print(&mut self, lines: &[String]) -> io::Result<()> {
        for line in lines {
            // Raw mode does not return the carriage by itself.
            write!(self.terminal, "\r{line}\r\n")?;
        }
        self.terminal.flush()
    }

    /// Draws the line being typed over the `rows` it took before, and says how many it takes now.
    fn draw(&mut self, what: PromptLinePurpose, line: &LineEditor, rows: u16) -> io::Result<u16> {
        let prompt = match what {
            PromptLinePurpose::Confirmation => "  type yes to approve: ",
            PromptLinePurpose::Message => "  tell the model: ",
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
        // Nothing more can be done where the terminal is gone.
        let _ = queue!(self.terminal, DisableBracketedPaste);
        let _ = self.terminal.flush();
        let _ = disable_raw_mode();
    }
}
