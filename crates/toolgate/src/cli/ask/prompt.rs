//! One question on the terminal, from the first line to the restored state.

use super::card::{self, ColorPainter, Length};
use super::line::{Line, Typed};
use crate::cli::out::style;
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
use toolgate::render::visible;
use toolgate::{Answer, ApprovalRequest};
use toolgate_os::ControllingTerminal;
use toolgate_proto::Severity;
use toolgate_proto::json::{Limits, parse_object};

/// How long a question stands before its keys count: whoever was typing has time to stop.
const SETTLE: Duration = Duration::from_millis(300);

/// How a question is shown.
pub(super) struct Show<'a> {
    pub(super) color: bool,
    /// What else waits now.
    pub(super) others: &'a (dyn Fn() -> Vec<String> + Sync),
    /// Told when that changes.
    pub(super) news: &'a Notify,
}

/// What came of a question.
pub(super) enum Said {
    Answer(Answer),
    /// Ctrl-C.
    Interrupt,
}

/// What the keys mean now.
enum PromptState {
    /// Nothing yet.
    Settling,
    /// An answer is chosen.
    Choosing,
    /// A line is typed.
    Typing { what: PromptLinePurpose, line: Line, rows: u16 },
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
    show: &Show<'_>,
) -> io::Result<Said> {
    let mut screen = Screen::enter(terminal)?;
    let painter = ColorPainter(show.color);
    let mut length = Length::Short;
    screen.print(&card::lines(request, painter, length))?;
    let mut shown: Vec<String> = Vec::new();
    let mut events = EventStream::new();
    let settled = Instant::now() + SETTLE;
    let mut doing = PromptState::Settling;
    loop {
        let event = tokio::select! {
            biased;
            () = request.cancel.cancelled() => {
                screen.print(&["  (no longer asked)".to_owned()])?;
                return Ok(Said::Answer(Answer::Lost { why: "the question was withdrawn".to_owned() }));
            }
            () = show.news.notified(), if matches!(doing, PromptState::Choosing) => {
                screen.print(&card::waiting(&unseen(show, &mut shown), painter))?;
                continue;
            }
            () = sleep_until(settled), if matches!(doing, PromptState::Settling) => {
                screen.terminal.discard_input()?;
                screen.print(&card::waiting(&unseen(show, &mut shown), painter))?;
                screen.print(&card::keys(request, painter, length))?;
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
            return Ok(Said::Interrupt);
        }
        match (&mut doing, event) {
            (PromptState::Choosing, Event::Key(key)) if key.kind == KeyEventKind::Press => {
                match choose(&key, request) {
                    Choice::Answer(answer, words) => {
                        screen.print(&[format!("  {}", painter.paint(style::BOLD, words))])?;
                        return Ok(Said::Answer(answer));
                    }
                    Choice::Type(what) => {
                        let line = match what {
                            PromptLinePurpose::Input => Line::with(&card::editable(&request.input)),
                            PromptLinePurpose::Confirmation | PromptLinePurpose::Message => Line::default(),
                        };
                        let rows = screen.draw(what, &line, 0)?;
                        doing = PromptState::Typing { what, line, rows };
                    }
                    Choice::ShowAll => {
                        length = Length::Whole;
                        screen.print(&card::lines(request, painter, length))?;
                        screen.print(&card::keys(request, painter, length))?;
                    }
                    Choice::Nothing => {}
                }
            }
            (PromptState::Typing { what, line, rows }, event) => {
                let typed = match &event {
                    Event::Key(key) if key.kind == KeyEventKind::Press => line.press(key),
                    Event::Paste(text) if *what != PromptLinePurpose::Confirmation => {
                        line.insert(text);
                        Typed::Changed
                    }
                    _ => Typed::Changed,
                };
                match typed {
                    Typed::Changed => *rows = screen.draw(*what, line, *rows)?,
                    Typed::Left => {
                        screen.print(&[String::new()])?;
                        screen.print(&card::keys(request, painter, length))?;
                        doing = PromptState::Choosing;
                    }
                    Typed::Entered => match entered(*what, &line.text()) {
                        Ok(answer) => {
                            screen.print(&[String::new()])?;
                            return Ok(Said::Answer(answer));
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
            (PromptState::Settling | PromptState::Choosing, _) => {}
        }
    }
}

/// What waits and has not been shown yet.
fn unseen(show: &Show<'_>, shown: &mut Vec<String>) -> Vec<String> {
    let fresh: Vec<String> = (show.others)().into_iter().filter(|other| !shown.contains(other)).collect();
    shown.extend(fresh.iter().cloned());
    fresh
}

fn is_interrupt(key: &KeyEvent) -> bool {
    key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)
}

enum Choice {
    Answer(Answer, &'static str),
    Type(PromptLinePurpose),
    ShowAll,
    Nothing,
}

fn choose(key: &KeyEvent, request: &ApprovalRequest) -> Choice {
    if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
        return Choice::Nothing;
    }
    let rules = || request.question.suggestions.iter().map(|suggestion| suggestion.rule.clone()).collect();
    let offered = !request.question.suggestions.is_empty();
    match key.code {
        KeyCode::Char('y' | 'Y') if request.question.risk == Severity::Critical => {
            Choice::Type(PromptLinePurpose::Confirmation)
        }
        KeyCode::Char('y' | 'Y') => Choice::Answer(Answer::Once, "yes, once"),
        KeyCode::Char('s' | 'S') if offered => {
            Choice::Answer(Answer::Session { rules: rules() }, "yes, for this session")
        }
        KeyCode::Char('a' | 'A') if offered => {
            Choice::Answer(Answer::Always { rules: rules() }, "yes, always")
        }
        KeyCode::Char('n' | 'N') | KeyCode::Esc => Choice::Answer(Answer::No { message: None }, "no"),
        KeyCode::Char('m' | 'M') => Choice::Type(PromptLinePurpose::Message),
        KeyCode::Char('e' | 'E') => Choice::Type(PromptLinePurpose::Input),
        KeyCode::Char('d' | 'D') => Choice::ShowAll,
        _ => Choice::Nothing,
    }
}

/// What a finished line means, or why it cannot be taken.
fn entered(what: PromptLinePurpose, text: &str) -> Result<Answer, String> {
    match what {
        PromptLinePurpose::Confirmation if text.trim().eq_ignore_ascii_case("yes") => Ok(Answer::Once),
        PromptLinePurpose::Confirmation => Err("type yes to approve, or press Escape".to_owned()),
        PromptLinePurpose::Message => {
            let message = text.trim();
            Ok(Answer::No { message: (!message.is_empty()).then(|| message.to_owned()) })
        }
        PromptLinePurpose::Input => parse_object(text, Limits::CALL)
            .map(|input| Answer::Revise { input })
            .map_err(|problem| format!("{problem}; correct it, or press Escape")),
    }
}

/// The terminal in raw mode; left as it was when dropped, whatever happens.
struct Screen {
    terminal: ControllingTerminal,
}

impl Screen {
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
    fn draw(&mut self, what: PromptLinePurpose, line: &Line, rows: u16) -> io::Result<u16> {
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
        write!(self.terminal, "{prompt}{}", visible(&line.text()))?;
        let (at, count) = line.place();
        let back = count - at;
        if back > 0 {
            let steps = u16::try_from(back.min(width)).unwrap_or(u16::MAX);
            queue!(self.terminal, cursor::MoveLeft(steps))?;
        }
        self.terminal.flush()?;
        Ok(u16::try_from((prompt.len() + count) / width + 1).unwrap_or(u16::MAX))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nothing more can be done where the terminal is gone.
        let _ = queue!(self.terminal, DisableBracketedPaste);
        let _ = self.terminal.flush();
        let _ = disable_raw_mode();
    }
}
