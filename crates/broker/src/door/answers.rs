//! Requests to the gatekeeper, and its answers, which arrive by mail.

use std::borrow::Cow;
use std::sync::Arc;

use thrum_access::{Answer, Denial, Reply};
use thrum_codec::ReasonCode;
use thrum_engine::Engine;
use thrum_engine::ids::{ConnectionId, Slot};
use thrum_engine::workers::WorkerId;

use crate::edge::Edge;
use crate::mailbox::Mail;
use crate::node::Node;

/// The recipient of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AnswerTo {
    /// A connection whose admission is pending.
    Connection(ConnectionId),
    /// A client that re-authenticates over this connection.
    Again {
        slot: Slot,
        id: u64,
        connection: Option<ConnectionId>,
    },
    /// A client whose own rules may have changed, connected or not.
    Refresh {
        slot: Slot,
        id: u64,
        connection: Option<ConnectionId>,
    },
    /// The publisher of retained messages, by the number of the review and of the question.
    Source { review: u64, question: u64 },
}

/// An answer of the gatekeeper.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) to: AnswerTo,
    pub(crate) answer: Answer,
}

/// Sends the answer to the worker, or a denial if no answer arrives.
struct Answering {
    node: Arc<Node>,
    worker: WorkerId,
    to: AnswerTo,
    is_sent: bool,
}

impl Answering {
    fn send(&mut self, answer: Answer) {
        self.is_sent = true;
        let answered = Answered {
            to: self.to,
            answer,
        };
        let mail = Mail::Answered(Box::new(answered));
        self.node.mailbox(self.worker).push(mail);
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if !self.is_sent {
            self.send(Answer::Deny(Denial {
                reason: ReasonCode::ServerUnavailable,
                what: "the server cannot check the credentials now, try again later",
                detail: Cow::Borrowed("the gatekeeper gave no answer"),
            }));
        }
    }
}

/// The function that sends the gatekeeper's answer to this worker.
pub(crate) fn reply(edge: &Edge, engine: &Engine, to: AnswerTo) -> Reply<Answer> {
    let mut answering = Answering {
        node: Arc::clone(&edge.node),
        worker: engine.core.id,
        to,
        is_sent: false,
    };
    Box::new(move |answer| answering.send(answer))
}
