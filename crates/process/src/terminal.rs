//! The terminal itself, wherever the standard streams lead.
//!
//! A question to a person goes to the controlling terminal, so that it can be asked while input and output are pipes.

use rustix::termios::{QueueSelector, tcflush};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};

/// The controlling terminal of this process.
#[derive(Debug)]
pub struct ControllingTerminal {
    device: File,
}

impl ControllingTerminal {
    /// Opens it. Fails where there is none: a service, a pipeline without a person, a container without a console.
    pub fn open() -> io::Result<Self> {
        let device = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
        Ok(Self { device })
    }

    /// Forgets whatever was typed and not yet read.
    pub fn discard_input(&self) -> io::Result<()> {
        Ok(tcflush(&self.device, QueueSelector::IFlush)?)
    }

    /// Asks for a line, as typed. For questions outside the approval prompt.
    pub fn ask_line(&mut self, prompt: &str) -> io::Result<String> {
        self.discard_input()?;
        self.device.write_all(prompt.as_bytes())?;
        let mut line = String::new();
        BufReader::new(&self.device).read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }
}

impl Write for ControllingTerminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.device.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.device.flush()
    }
}
