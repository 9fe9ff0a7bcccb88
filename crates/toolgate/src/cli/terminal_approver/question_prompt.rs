//! Questions of a tool at the terminal: draws the menu of each, and restores the terminal.

use super::question_menu::{MenuResult, QuestionMenu, fit};
use super::render::ColorPainter;
use crate::cli::output::style;
use crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, Event, EventStream, KeyCode, KeyEventKind, KeyModifiers,
};
use crossterm::terminal::{Clear, ClearType, disable_raw_mode, enable_raw_mode, size};
use crossterm::{cursor, queue};
use futures_util::StreamExt;
use std::io::{self, Write};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use toolgate::{QuestionAnswer, QuestionOutcome, QuestionRequest, UserQuestion};
use toolgate_process::ControllingTerminal;

/// How long a question is shown before its keys count: what was typed for something else must not answer it.
const KEY_ACCEPT_DELAY: Duration = Duration::from_millis(300);

/// How the questions ended.
pub(super) enum QuestionPromptOutcome {
    /// The user answered or declined, or the questions were withdrawn.
    Outcome(QuestionOutcome),
    /// The user pressed Ctrl-C.
    Interrupt,
}

/// Asks the questions one after the other.
pub(super) async fn ask_questions(
    terminal: ControllingTerminal,
    request: &QuestionRequest,
    color: bool,
) -> io::Result<QuestionPromptOutcome> {
    let mut screen = QuestionScreen::enter(terminal, ColorPainter(color))?;
    let mut events = EventStream::new();
    let mut answers = Vec::new();
    for (question, number) in request.questions.iter().zip(1..) {
        screen.print_question(question, number, request.questions.len())?;
        let mut menu = QuestionMenu::new(question);
        match run_menu(&mut screen, &mut events, &mut menu, request).await? {
            MenuEnd::Answered(answer) => {
                screen.print_answer(&answer)?;
                answers.push(answer);
            }
            MenuEnd::Declined => {
                screen.replace_menu(&["  not answered".to_owned()])?;
                return Ok(QuestionPromptOutcome::Outcome(QuestionOutcome::Declined { message: None }));
            }
            MenuEnd::Withdrawn => {
                screen.replace_menu(&["  (the question was withdrawn)".to_owned()])?;
                let why = "the question was withdrawn".to_owned();
                return Ok(QuestionPromptOutcome::Outcome(QuestionOutcome::Lost { why }));
            }
            MenuEnd::Interrupted => {
                screen.replace_menu(&["  interrupted".to_owned()])?;
                return Ok(QuestionPromptOutcome::Interrupt);
            }
        }
    }
    Ok(QuestionPromptOutcome::Outcome(QuestionOutcome::Answered(answers)))
}

/// How the menu of one question ended.
enum MenuEnd {
    Answered(QuestionAnswer),
    Declined,
    Withdrawn,
    Interrupted,
}

async fn run_menu(
    screen: &mut QuestionScreen,
    events: &mut EventStream,
    menu: &mut QuestionMenu<'_>,
    request: &QuestionRequest,
) -> io::Result<MenuEnd> {
    let accept_at = Instant::now() + KEY_ACCEPT_DELAY;
    let mut is_accepting = false;
    screen.draw(menu, is_accepting)?;
    loop {
        let event = tokio::select! {
            biased;
            () = request.cancel.cancelled() => return Ok(MenuEnd::Withdrawn),
            () = sleep_until(accept_at), if !is_accepting => {
                screen.terminal.discard_input()?;
                is_accepting = true;
                screen.draw(menu, is_accepting)?;
                continue;
            }
            event = events.next() => match event {
                Some(event) => event?,
                None => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            },
        };
        let result = match event {
            Event::Key(key) if key.kind == KeyEventKind::Press => {
                if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
                    return Ok(MenuEnd::Interrupted);
                }
                if is_accepting { menu.handle_key(&key) } else { MenuResult::Changed }
            }
            Event::Paste(text) if is_accepting => {
                menu.paste(&text);
                MenuResult::Changed
            }
            _ => MenuResult::Changed,
        };
        match result {
            MenuResult::Changed => screen.draw(menu, is_accepting)?,
            MenuResult::Answered(answer) => return Ok(MenuEnd::Answered(answer)),
            MenuResult::Declined => return Ok(MenuEnd::Declined),
        }
    }
}

/// The terminal in raw mode with the rows of the menu. Dropping it restores the mode.
struct QuestionScreen {
    terminal: ControllingTerminal,
    painter: ColorPainter,
    /// The rows that the menu takes now.
    rows: u16,
}

impl QuestionScreen {
    fn enter(terminal: ControllingTerminal, painter: ColorPainter) -> io::Result<Self> {
        terminal.discard_input()?;
        enable_raw_mode()?;
        let mut screen = Self { terminal, painter, rows: 0 };
        queue!(screen.terminal, EnableBracketedPaste)?;
        screen.terminal.flush()?;
        Ok(screen)
    }

    /// Columns of the terminal.
    fn width() -> usize {
        usize::from(size().map_or(80, |(columns, _)| columns).max(20))
    }

    fn print_question(&mut self, question: &UserQuestion, number: usize, count: usize) -> io::Result<()> {
        self.rows = 0;
        let place = if count > 1 { format!(" ({number} of {count})") } else { String::new() };
        let header = fit(&format!("[{}]{place}", question.header), Self::width());
        let header = self.painter.paint(style::ASK, &header);
        write!(self.terminal, "\r\n{header}\r\n")?;
        for line in question.question.lines() {
            write!(self.terminal, "{}\r\n", fit(line, usize::MAX))?;
        }
        self.terminal.flush()
    }

    /// Draws the menu; the line of the keys only once they count.
    fn draw(&mut self, menu: &QuestionMenu<'_>, is_accepting: bool) -> io::Result<()> {
        let mut lines = menu.render(self.painter, Self::width() - 1);
        if !is_accepting {
            lines.pop();
        }
        self.replace_menu(&lines)
    }

    /// Puts lines in the place of the menu.
    fn replace_menu(&mut self, lines: &[String]) -> io::Result<()> {
        if self.rows > 0 {
            queue!(self.terminal, cursor::MoveUp(self.rows))?;
        }
        queue!(self.terminal, cursor::MoveToColumn(0), Clear(ClearType::FromCursorDown))?;
        for line in lines {
            write!(self.terminal, "\r{line}\r\n")?;
        }
        self.rows = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        self.terminal.flush()
    }

    /// Leaves the answer on the screen in place of the menu.
    fn print_answer(&mut self, answer: &QuestionAnswer) -> io::Result<()> {
        let words: Vec<&str> = answer.chosen.iter().chain(&answer.text).map(String::as_str).collect();
        let line = fit(&format!("  {}", words.join(", ")), Self::width() - 1);
        let line = self.painter.paint(style::GOOD, &line);
        self.replace_menu(&[line])
    }
}

impl Drop for QuestionScreen {
    fn drop(&mut self) {
        // If the terminal is closed, there is no mode to restore.
        let _ = queue!(self.terminal, DisableBracketedPaste);
        let _ = self.terminal.flush();
        let _ = disable_raw_mode();
    }
}
