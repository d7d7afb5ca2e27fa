//! Retained messages whose publishers have lost rights: one worker looks for them, some in each
//! turn.

use std::sync::Arc;
use std::time::Duration;

use thrum_access::{Answer, Identity};
use thrum_protocol::Time;

use super::answers::{AnswerTo, reply};
use crate::engine::Engine;
use crate::retained::{ReviewStep, SourceReview};

/// The gatekeeper answers within its own limits, which are shorter.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(75);
/// A gatekeeper that could not answer is asked again after this time.
const AGAIN: Duration = Duration::from_secs(30);

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
    /// The next turn has a portion to do.
    pub(crate) fn are_due(&self) -> bool {
        self.under_way.is_some() && self.waits_until.is_none()
    }

    /// Each second, on one worker: begins a review if one was requested.
    pub(crate) fn watch(&mut self, engine: &Engine) {
        let now = engine.core.turn.now;
        if let Some(review) = &mut self.under_way {
            if self.waits_until.is_some_and(|until| until <= now) {
                self.waits_until = None;
                review.give_up();
            }
            return;
        }
        let wanted = engine.core.node.retained.looks_wanted();
        let is_again = self.again_at.is_some_and(|at| at <= now);
        if wanted != self.seen || is_again {
            self.seen = wanted;
            self.again_at = None;
            self.number += 1;
            self.under_way = Some(Box::new(SourceReview::new()));
        }
    }

    /// Does the next portion of the review.
    pub(crate) fn go_on(&mut self, engine: &mut Engine) {
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
                ask(engine, number, question, identity);
            });
            match step {
                ReviewStep::Worked(units) => engine.core.turn.work += units,
                ReviewStep::Waits => {
                    self.waits_until = Some(engine.core.turn.now.plus(ANSWER_TIME_MAX));
                    break;
                }
                ReviewStep::Done => {
                    review.tell(&engine.core.node.retained);
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

    /// The gatekeeper has answered about the publisher of retained messages.
    pub(crate) fn answered(&mut self, engine: &Engine, number: u64, question: u64, answer: Answer) {
        if let Some(review) = &mut self.under_way
            && self.number == number
        {
            review.answered(question, answer, &engine.core.settings.access);
            self.waits_until = None;
        }
    }
}

fn ask(engine: &Engine, review: u64, question: u64, identity: Arc<Identity>) {
    if let Some(gatekeeper) = &engine.core.settings.access.access.gatekeeper {
        let reply = reply(engine, AnswerTo::Source { review, question });
        gatekeeper.refresh(identity, reply);
    }
}

/// Requests a review: some client, connected or not, may have other rights to publish than before.
pub(super) fn want_look_at_sources(engine: &Engine) {
    let policy = &engine.core.settings.access.access.policy;
    let retained = &engine.core.node.retained;
    // Messages that were withheld are delivered again when the key is turned off.
    if policy.checks_retained_source || retained.withheld() > 0 {
        retained.want_look();
    }
}
