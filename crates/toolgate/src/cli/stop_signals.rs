//! The signals that end a command. Without a handler they would end the process at once: a call in flight would leave no
//! record, and its private directory would stay.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// SIGINT (Ctrl-C), SIGTERM, and SIGHUP, which a terminal sends when it is closed.
pub(crate) struct StopSignals {
    interrupts: Signal,
    terminations: Signal,
    /// `None` where the process was started to outlive its terminal, as by `nohup`.
    hangups: Option<Signal>,
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopRequest {
    /// SIGINT: the user gives up what is under way.
    Interrupt,
    /// SIGTERM or SIGHUP: the process is to end.
    End,
}

impl StopSignals {
    /// Handles the signals from now on. Must be called inside a runtime.
    pub(crate) fn listen() -> io::Result<Self> {
        let hangups = match toolgate_process::ignores_hangup() {
            true => None,
            false => Some(signal(SignalKind::hangup())?),
        };
        Ok(Self {
            interrupts: signal(SignalKind::interrupt())?,
            terminations: signal(SignalKind::terminate())?,
            hangups,
        })
    }

    /// Waits for the next one.
    pub(crate) async fn recv(&mut self) -> StopRequest {
        let hangup = async {
            match &mut self.hangups {
                Some(hangups) => hangups.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupts.recv() => StopRequest::Interrupt,
            _ = self.terminations.recv() => StopRequest::End,
            _ = hangup => StopRequest::End,
        }
    }
}

/// Cancels the token at the first signal, on a task of its own, because a blocked tool would delay it. Must be called
/// inside a runtime.
pub(crate) fn cancel_at_signal(cancel: CancellationToken) -> io::Result<()> {
    let mut signals = StopSignals::listen()?;
    tokio::spawn(async move {
        signals.recv().await;
        cancel.cancel();
    });
    Ok(())
}
