//! Ctrl-C and SIGTERM: the first asks the command to end in good order, the second ends it.

use crate::failure::INTERRUPTED;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Told when the user wants the command to end.
#[derive(Clone)]
pub(crate) struct Interrupt {
    asked: watch::Receiver<bool>,
}

impl Interrupt {
    /// Starts to listen. Must be called within a runtime.
    pub(crate) fn listen() -> std::io::Result<Interrupt> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let (ask, asked) = watch::channel(false);
        tokio::spawn(async move {
            for is_first in [true, false] {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if !is_first {
                    std::process::exit(i32::from(INTERRUPTED));
                }
                ask.send_replace(true);
            }
        });
        Ok(Interrupt { asked })
    }

    /// Waits until the user wants the command to end; at once when that has been so before.
    pub(crate) async fn wait(&mut self) {
        // The sender lives as long as the runtime, so an error means that all ends anyway.
        let _ = self.asked.wait_for(|asked| *asked).await;
    }
}
