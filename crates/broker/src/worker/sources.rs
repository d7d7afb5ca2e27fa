//! Retained messages whose publishers may do less than before: one worker looks for them, some in
//! each turn.

use std::sync::Arc;
use std::time::Duration;

use thrum_access::{Answer, Identity};
use thrum_protocol::Time;

use super::Worker;
use super::answers::AnswerTo;
use crate::ids::Slot;
use crate::retained::{RetainedSource, ReviewStep, SourceReview};

/// The gatekeeper answers within its own limits, which are shorter.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(75);
/// A gatekeeper that could not answer is asked again after this.
const AGAIN: Duration = Duration::from_secs(30);

/// The walks over the retained messages of the node, of which one at a time is under way.
#[derive(Debug, Default)]
pub(super) struct SourceReviews {
    under_way: Option<Box<SourceReview>>,
    /// Walks so far.
    number: u64,
    /// How many were wanted when the last one began.
    seen: u64,
    /// The one under way waits for the gatekeeper until then.
    waits_until: Option<Time>,
    /// The last one left something open: the next one begins then.
    again_at: Option<Time>,
}

impl SourceReviews {
    /// There is something to do in the next turn.
    pub(super) fn are_due(&self) -> bool {
        self.under_way.is_some() && self.waits_until.is_none()
    }
}

impl Worker {
    /// Whom retained messages of a client come from; none while that is not to be known.
    pub(crate) fn source_of(&self, slot: Slot) -> Option<Arc<RetainedSource>> {
        let policy = &self.local.settings.access.access.policy;
        if !policy.checks_retained_source {
            return None;
        }
        let client = &self.local.clients[slot];
        client.access.as_deref()?.source()
    }

    /// Some client, connected or not, may publish something else than before.
    pub(super) fn want_look_at_sources(&self) {
        let policy = &self.local.settings.access.access.policy;
        // What is withheld when the key is turned off is given again.
        if policy.checks_retained_source || self.node.retained.withheld() > 0 {
            self.node.retained.want_look();
        }
    }

    /// Each second, one worker: begins a walk if somebody wants one.
    pub(super) fn watch_sources(&mut self) {
        let now = self.local.now;
        let reviews = &mut self.reviews;
        if let Some(review) = &mut reviews.under_way {
            if reviews.waits_until.is_some_and(|until| until <= now) {
                reviews.waits_until = None;
                review.give_up();
            }
            return;
        }
        let wanted = self.node.retained.looks_wanted();
        let is_again = reviews.again_at.is_some_and(|at| at <= now);
        if wanted != reviews.seen || is_again {
            reviews.seen = wanted;
            reviews.again_at = None;
            reviews.number += 1;
            reviews.under_way = Some(Box::new(SourceReview::new()));
        }
    }

    /// The next portion of the walk.
    pub(super) fn go_on_with_sources(&mut self) {
        if !self.reviews.are_due() {
            return;
        }
        let Some(mut review) = self.reviews.under_way.take() else {
            return;
        };
        let shared = Arc::clone(&self.local.settings.access);
        let number = self.reviews.number;
        self.begin_portion();
        loop {
            let step = review.step(&self.node.retained, &shared, |question, identity| {
                self.ask_about_source((number, question), identity);
            });
            match step {
                ReviewStep::Worked(units) => self.local.work += units,
                ReviewStep::Waits => {
                    self.reviews.waits_until = Some(self.local.now.plus(ANSWER_TIME_MAX));
                    break;
                }
                ReviewStep::Done => {
                    review.tell(&self.node.retained);
                    let is_again = review.are_some_unanswered();
                    self.reviews.again_at = is_again.then(|| self.local.now.plus(AGAIN));
                    return;
                }
            }
            if self.is_portion_over() {
                break;
            }
        }
        self.reviews.under_way = Some(review);
    }

    fn ask_about_source(&self, (review, question): (u64, u64), identity: Arc<Identity>) {
        if let Some(gatekeeper) = &self.local.settings.access.access.gatekeeper {
            let reply = self.reply(AnswerTo::Source { review, question });
            gatekeeper.refresh(identity, reply);
        }
    }

    /// The gatekeeper has answered about the client that retained messages came from.
    pub(super) fn source_answered(&mut self, number: u64, question: u64, answer: Answer) {
        let reviews = &mut self.reviews;
        if let Some(review) = &mut reviews.under_way
            && reviews.number == number
        {
            review.answered(question, answer, &self.local.settings.access);
            reviews.waits_until = None;
        }
    }
}
