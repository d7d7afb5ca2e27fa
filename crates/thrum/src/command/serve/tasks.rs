//! What other threads ask of the thread that has the broker and its configuration. It does one
//! thing after the other, so that two changes never overlap.

use super::reload::Reload;
use crate::assemble::Node;
#[cfg(feature = "management")]
use crate::logging::Level;

/// The broker, and what its configuration was made of.
#[derive(Debug)]
pub(crate) struct Serving {
    pub(crate) broker: Node,
    pub(super) reload: Reload,
}

#[cfg(feature = "management")]
pub(crate) use asked::{Ask, Task};

/// What the management interface needs of the program.
#[cfg(feature = "management")]
#[derive(Clone, Debug)]
pub(crate) struct Around {
    pub(crate) ask: Ask,
    pub(crate) level: Level,
}

/// What the management interface needs of the program: there is none.
#[cfg(not(feature = "management"))]
#[derive(Clone, Debug)]
pub(crate) struct Around;

#[cfg(feature = "management")]
mod asked {
    use std::fmt;
    use std::sync::mpsc::{RecvTimeoutError, SyncSender, TrySendError, sync_channel};
    use std::time::Duration;

    use thrum_management::ProgramError;

    use super::Serving;
    use crate::command::serve::signals::Arrival;

    /// Longest wait for an answer: less than a request may take. A reload waits five seconds for
    /// workers at most.
    const ANSWER_TIME: Duration = Duration::from_secs(12);

    /// Something to do.
    pub(crate) struct Task(Box<dyn FnOnce(&mut Serving) + Send>);

    impl Task {
        /// Does it.
        pub(in crate::command::serve) fn run(self, serving: &mut Serving) {
            (self.0)(serving);
        }
    }

    impl fmt::Debug for Task {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("Task")
        }
    }

    /// Asks that thread.
    #[derive(Clone, Debug)]
    pub(crate) struct Ask(SyncSender<Arrival>);

    impl Ask {
        pub(in crate::command::serve) const fn new(sender: SyncSender<Arrival>) -> Self {
            Self(sender)
        }

        /// Waits until it is done.
        ///
        /// # Errors
        /// Too many others wait, it takes too long, or the broker is stopping.
        pub(crate) fn ask<T: Send + 'static>(
            &self,
            what: impl FnOnce(&mut Serving) -> T + Send + 'static,
        ) -> Result<T, ProgramError> {
            let (answer, answered) = sync_channel(1);
            let task = Task(Box::new(move |serving: &mut Serving| {
                // Who asked may no longer wait.
                answer.try_send(what(serving)).ok();
            }));
            self.0
                .try_send(Arrival::Task(task))
                .map_err(|error| match error {
                    TrySendError::Full(_) => ProgramError::Busy,
                    TrySendError::Disconnected(_) => ProgramError::Stopped,
                })?;
            answered
                .recv_timeout(ANSWER_TIME)
                .map_err(|error| match error {
                    RecvTimeoutError::Timeout => ProgramError::TimedOut,
                    RecvTimeoutError::Disconnected => ProgramError::Stopped,
                })
        }
    }
}
