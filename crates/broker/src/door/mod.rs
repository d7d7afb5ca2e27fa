//! Admission and authorization of one worker: admission of clients, their sessions, the rights of
//! their packets, and checks that these still hold.
//!
//! Admission is a state machine. A CONNECT, an answer of the gatekeeper, a step of enhanced
//! authentication or the end of a review leads to an [`Outcome`], which [`Door::carry_out`] carries
//! out. Pending state and a certificate are kept in the connection's phase.

mod admission;
mod answers;
mod attaching;
mod authorizing;
mod checks;
mod enhanced;
mod guard;
mod judging;
mod reauthentication;
mod recheck;
mod review_queue;
mod sources;
mod wills;

use thrum_engine::Engine;

pub(crate) use self::admission::{Admitted, Awaited, Outcome, Pending, awaits_review};
pub(crate) use self::answers::{AnswerTo, Answered};
pub(crate) use self::authorizing::{Authorizing, Decided};
use self::checks::Checks;
pub(crate) use self::enhanced::{Challenge, challenge, challenged};
use self::guard::Guard;
pub(crate) use self::guard::is_disconnected_by_ban;
#[cfg(test)]
pub(crate) use self::reauthentication::ask_again;
pub(crate) use self::reauthentication::{Reauthentication, is_at};
pub(crate) use self::recheck::{Recheck, Rechecking};
pub(crate) use self::sources::{SourceReviews, review_at_start};
pub(crate) use self::wills::will_decided;
use crate::edge::Edge;
use crate::shell_mail::ShellMail;
use crate::traffic::Inbox;

/// See above.
#[derive(Debug)]
pub(crate) struct Door<'a> {
    pub(crate) edge: &'a mut Edge,
    pub(crate) engine: &'a mut Engine,
    pub(crate) recheck: &'a mut Recheck,
    pub(crate) inbox: &'a Inbox,
    pub(crate) shell_mail: &'a mut ShellMail,
}

impl Door<'_> {
    const fn checks(&mut self) -> Checks<'_> {
        Checks {
            edge: self.edge,
            engine: self.engine,
        }
    }

    const fn guard(&mut self) -> Guard<'_> {
        Guard {
            edge: self.edge,
            engine: self.engine,
        }
    }

    const fn rechecking(&mut self) -> Rechecking<'_> {
        Rechecking {
            recheck: self.recheck,
            edge: self.edge,
            engine: self.engine,
        }
    }

    pub(crate) const fn authorizing(&mut self) -> Authorizing<'_> {
        Authorizing {
            edge: self.edge,
            engine: self.engine,
        }
    }
}
