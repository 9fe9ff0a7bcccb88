//! The controlling terminal, independent of the standard streams.
//!
//! A prompt goes to the controlling terminal, so that the user can be asked while standard input and output are pipes.

use rustix::termios::{QueueSelector, tcflush};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};

/// The controlling terminal of this process.
#[derive(Debug)]
pub struct ControllingTerminal {
    /// `/dev/tty`, opened for reading and writing.
    device: File,
}

impl ControllingTerminal {
    /// Opens `/dev/tty`. Fails if the process has no controlling terminal, such as a service or a CI job.
    pub fn open() -> io::Result<Self> {
        let device = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
        Ok(Self { device })
    }

    /// Discards input that was typed and not yet read, so that it does not answer a later prompt.
    pub fn discard_input(&self) -> io::Result<()> {
        Ok(tcflush(&self.device, QueueSelector::IFlush)?)
    }

    /// Prints a prompt and reads one line, without surrounding white space.
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
