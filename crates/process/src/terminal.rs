//! The controlling terminal, independent of the standard streams.
//!
//! A prompt goes to the controlling terminal, so that the user can be asked while standard input and output are pipes.

use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcsetattr,
};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};

/// A longer line is no answer.
const MAX_LINE_BYTES: usize = 64 * 1024;

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

    /// Prints a prompt and reads one line, without surrounding white space. Ctrl-C is an error of the kind
    /// `Interrupted`, and the end of the input an empty line.
    ///
    /// Ctrl-C counts at once, whatever the program does with SIGINT: a handler would leave the read blocked until the
    /// user presses Enter.
    pub fn ask_line(&mut self, prompt: &str) -> io::Result<String> {
        self.discard_input()?;
        let keys = InterruptKeys::take(&self.device)?;
        self.device.write_all(prompt.as_bytes())?;
        let mut line: Vec<u8> = Vec::new();
        let mut chunk = [0; 4096];
        while line.len() < MAX_LINE_BYTES {
            let count = self.device.read(&mut chunk)?;
            line.extend(chunk.iter().take(count));
            if keys.interrupt != 0 && line.contains(&keys.interrupt) {
                self.device.write_all(b"\n")?;
                return Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted"));
            }
            if count == 0 || line.ends_with(b"\n") {
                return Ok(String::from_utf8_lossy(&line).trim().to_owned());
            }
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "the line is too long"))
    }
}

/// Has the terminal deliver Ctrl-C as the end of a line in place of a signal, until this is dropped.
struct InterruptKeys {
    /// The terminal.
    device: File,
    /// How it was set before.
    before: Termios,
    /// The byte of the key; 0 if there is none.
    interrupt: u8,
}

impl InterruptKeys {
    /// Sets the terminal so.
    fn take(device: &File) -> io::Result<Self> {
        let device = device.try_clone()?;
        let before = tcgetattr(&device)?;
        let interrupt = before.special_codes[SpecialCodeIndex::VINTR];
        let mut during = before.clone();
        during.local_modes.remove(LocalModes::ISIG);
        during.special_codes[SpecialCodeIndex::VEOL] = interrupt;
        tcsetattr(&device, OptionalActions::Now, &during)?;
        Ok(Self { device, before, interrupt })
    }
}

impl Drop for InterruptKeys {
    fn drop(&mut self) {
        // A terminal that is gone needs no settings.
        let _ = tcsetattr(&self.device, OptionalActions::Now, &self.before);
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
