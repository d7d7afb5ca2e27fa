//! The wait of a task until its changes are on the disk, as far as the settings require it.

use thrum_engine::Engine;
use thrum_storage::Ticket;

use super::tasks::TaskProgress;

/// How far the changes of a task are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Committing {
    /// They are made in this turn.
    #[default]
    New,
    /// They are submitted to the storage at the end of the turn.
    Submitting,
    /// They are written to the disk.
    Writing(Ticket),
}

impl Committing {
    /// To be called when all changes are made, and then until it is done.
    pub(super) fn advance<A>(
        &mut self,
        engine: &Engine,
        answer: impl FnOnce() -> A,
    ) -> TaskProgress<A> {
        let Some(journal) = engine.core.durable.journal.as_deref() else {
            return TaskProgress::Done(answer());
        };
        let ticket = match *self {
            Self::New => {
                *self = Self::Submitting;
                return TaskProgress::More;
            }
            Self::Submitting if journal.is_stuck() => return TaskProgress::Blocked,
            Self::Submitting => journal.submitted(),
            Self::Writing(ticket) => ticket,
        };
        if journal.durable() >= ticket {
            return TaskProgress::Done(answer());
        }
        *self = Self::Writing(ticket);
        TaskProgress::Blocked
    }
}
