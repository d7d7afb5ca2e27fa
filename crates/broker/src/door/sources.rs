//! Retained messages whose publishers have lost rights: one worker searches for them, a portion in
//! each turn.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use thrum_access::{Answer, Identity};
use thrum_engine::Engine;
use thrum_engine::access::Shared;
use thrum_engine::retained::{ReviewStep, SOURCES_PAGE_VISITS, SourceReview};
use thrum_protocol::Time;

use super::answers::{AnswerTo, reply};
use crate::edge::Edge;
use crate::node::Node;

/// The gatekeeper answers within its own limits, which are shorter.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(75);
/// A gatekeeper that could not answer is asked again after this time.
const AGAIN: Duration = Duration::from_secs(30);
/// Longest time that the ports stay closed for the gatekeeper's answers; the messages that it has
/// not decided about by then are reviewed later.
const START_TIME_MAX: Duration = Duration::from_secs(5);

/// The reviews of the node's retained messages, one at a time.
#[derive(Debug, Default)]
pub(crate) struct SourceReviews {
    under_way: Option<Box<SourceReview>>,
    /// Number of reviews so far.
    number: u64,
    /// Number of requested reviews when the last one began.
    seen: u64,
    /// Deadline for the gatekeeper's answer in the review under way.
    waits_until: Option<Time>,
    /// The last review is incomplete: the next one begins then.
    again_at: Option<Time>,
}

impl SourceReviews {
    /// Whether the next turn has to do a portion.
    pub(crate) fn are_due(&self) -> bool {
        self.under_way.is_some() && self.waits_until.is_none()
    }

    /// Each second, on one worker: begins a review if one was requested.
    pub(crate) fn watch(&mut self, engine: &Engine) {
        let now = engine.core.turn.now;
        if let Some(review) = &mut self.under_way {
            if self.waits_until.is_some_and(|until| until <= now) {
                self.waits_until = None;
                review.stop_waiting();
            }
            return;
        }
        let wanted = engine.core.node.retained.reviews_requested();
        let is_again = self.again_at.is_some_and(|at| at <= now);
        if wanted != self.seen || is_again {
            self.seen = wanted;
            self.again_at = None;
            self.number += 1;
            self.under_way = Some(Box::new(SourceReview::new()));
        }
    }

    /// Does the next portion of the review.
    pub(crate) fn advance(&mut self, edge: &Edge, engine: &mut Engine) {
        if !self.are_due() {
            return;
        }
        let Some(mut review) = self.under_way.take() else {
            return;
        };
        let shared = Arc::clone(&engine.core.settings.access);
        let number = self.number;
        engine.core.turn.begin_portion();
        loop {
            let store = &engine.core.node.retained;
            let step = review.step(store, &shared, |question, identity| {
                ask(edge, engine, number, question, identity);
            });
            match step {
                ReviewStep::Worked(units) => engine.core.turn.work += units,
                ReviewStep::Waits => {
                    self.waits_until = Some(engine.core.turn.now.plus(ANSWER_TIME_MAX));
                    break;
                }
                ReviewStep::Done => {
                    review.log_counts(&engine.core.node.retained);
                    let is_again = review.are_some_unanswered();
                    self.again_at = is_again.then(|| engine.core.turn.now.plus(AGAIN));
                    return;
                }
            }
            if engine.core.turn.is_portion_over() {
                break;
            }
        }
        self.under_way = Some(review);
    }

    /// Takes the gatekeeper's answer about the publisher of retained messages.
    pub(crate) fn answered(&mut self, engine: &Engine, number: u64, question: u64, answer: Answer) {
        if let Some(review) = &mut self.under_way
            && self.number == number
        {
            review.answered(question, answer, &engine.core.settings.access);
            self.waits_until = None;
        }
    }
}

fn ask(edge: &Edge, engine: &Engine, review: u64, question: u64, identity: Arc<Identity>) {
    if let Some(gatekeeper) = &engine.core.settings.access.access.gatekeeper {
        let reply = reply(edge, engine, AnswerTo::Source { review, question });
        gatekeeper.refresh(identity, reply);
    }
}

/// Requests a review: the rights of some client, connected or not, to publish may have changed.
pub(super) fn request_source_review(engine: &Engine) {
    let policy = &engine.core.settings.access.access.policy;
    let retained = &engine.core.node.retained;
    // Messages that were withheld are delivered again when the key is turned off.
    if policy.checks_retained_source || retained.withheld() > 0 {
        retained.request_review();
    }
}

/// Reviews the restored messages before the ports open: rules and users may have changed while the
/// broker did not run.
pub(crate) fn review_at_start(node: &Node, shared: &Shared) {
    if !shared.access.policy.checks_retained_source {
        return;
    }
    let mut review = SourceReview::new();
    let (sender, answers) = sync_channel(SOURCES_PAGE_VISITS);
    let end = node.clock.elapsed() + START_TIME_MAX;
    let ask = |question: u64, identity: Arc<Identity>| {
        let sender = sender.clone();
        if let Some(gatekeeper) = &shared.access.gatekeeper {
            let reply = move |answer| {
                // The review no longer waits for an answer that arrives late.
                sender.try_send((question, answer)).ok();
            };
            gatekeeper.refresh(identity, Box::new(reply));
        }
    };
    loop {
        match review.step(&node.state.retained, shared, ask) {
            ReviewStep::Worked(_) => {}
            ReviewStep::Waits => {
                let left = end.saturating_sub(node.clock.elapsed());
                match answers.recv_timeout(left) {
                    Ok((question, answer)) => review.answered(question, answer, shared),
                    Err(_) => review.stop_waiting(),
                }
            }
            ReviewStep::Done => break,
        }
    }
    review.log_counts(&node.state.retained);
    if review.are_some_unanswered() {
        node.state.retained.request_review();
    }
}
