//! The review of the sources of retained messages: its units of work and its memory.

use std::sync::Arc;

use thrum_access::{Answer, Denial, Gatekeeper, Identity, Login, Reply, Rules};
use thrum_codec::{QoS, ReasonCode};
use thrum_engine::access::{Access, Policy, Shared};
use thrum_engine::retained::{
    RetainedLimits, RetainedSource, RetainedStore, ReviewStep, SourceReview,
};
use thrum_protocol::{Message, Publication, Time};

const NO_LIMITS: RetainedLimits = RetainedLimits {
    message_count: usize::MAX,
    bytes: usize::MAX,
    payload_bytes: usize::MAX,
};

/// Is asked, and answers when the test says so.
#[derive(Debug)]
struct Asked;

impl Gatekeeper for Asked {
    fn login(&self, _login: Login, _reply: Reply<Answer>) {}
}

fn shared(checks_retained_source: bool, has_gatekeeper: bool) -> Shared {
    let gatekeeper = has_gatekeeper.then(|| Arc::new(Asked) as Arc<dyn Gatekeeper>);
    let policy = Policy {
        rules: Arc::new(Rules::parse("allow all pubsub #", "test").expect("they are valid")),
        checks_retained_source,
        ..Policy::default()
    };
    Shared {
        access: Access { gatekeeper, policy },
        generation: 1,
    }
}

fn source(username: Option<&str>, claim: &str) -> Option<Arc<RetainedSource>> {
    let identity = Identity {
        client_id: "client".into(),
        username: username.map(Into::into),
        claims: vec![("claim".into(), claim.into())],
        ..Identity::default()
    };
    RetainedSource::new(&identity, None, false)
}

fn store(store: &RetainedStore, topic: &str, source: Option<Arc<RetainedSource>>) {
    let publication = Publication::new(topic, b"x", QoS::AtLeastOnce);
    let message = Arc::new(Message::new(&publication));
    assert!(store.store(&message, source, Time::default()).kept);
}

/// The steps of a whole review, and the number of questions. Each client is refused.
fn review(store: &RetainedStore, shared: &Shared) -> (Vec<ReviewStep>, usize) {
    let mut review = SourceReview::default();
    let mut steps = Vec::new();
    let mut waiting = Vec::new();
    let mut questions = 0;
    while steps.last() != Some(&ReviewStep::Done) {
        let step = review.step(store, shared, |question, _| waiting.push(question));
        if step == ReviewStep::Waits {
            questions += waiting.len();
            for question in waiting.drain(..) {
                let denial = Denial {
                    reason: ReasonCode::NotAuthorized,
                    what: "not authorized",
                    detail: "gone".into(),
                };
                review.answered(question, Answer::Deny(denial), shared);
            }
        }
        steps.push(step);
    }
    assert!(!review.are_some_unanswered());
    (steps, questions)
}

#[test]
fn a_step_of_a_review_takes_the_units_of_a_page_of_a_source_or_of_a_message() {
    let messages = RetainedStore::new(NO_LIMITS, 1);
    let user = source(Some("user"), "");
    store(&messages, "a", user.clone());
    store(&messages, "b", None);
    store(&messages, "c", user);
    store(
        &messages,
        "d",
        Some(RetainedSource::stored(Arc::from([99_u8]))),
    );
    store(&messages, "e", source(None, ""));
    let worked = ReviewStep::Worked;
    let decisions = [worked(1); 4];
    // The last page is empty.
    let ends = [worked(256), ReviewStep::Done];
    let expected = |look_ups: &[ReviewStep]| [&[worked(256)], look_ups, &decisions, &ends].concat();
    let (steps, questions) = review(&messages, &shared(false, true));
    assert_eq!(steps, expected(&[worked(1); 4]), "nothing is checked");
    assert_eq!(questions, 0);
    let look_ups = [worked(32), worked(1), worked(1), worked(32)];
    let (steps, questions) = review(&messages, &shared(true, false));
    assert_eq!(steps, expected(&look_ups), "by the rules");
    assert_eq!((questions, messages.withheld()), (0, 0));
    let (steps, questions) = review(&messages, &shared(true, true));
    let look_ups = [&look_ups[..], &[ReviewStep::Waits]].concat();
    assert_eq!(steps, expected(&look_ups), "by the gatekeeper");
    assert_eq!((questions, messages.withheld()), (1, 2));
}

#[test]
fn sources_beyond_16_mib_are_forgotten_and_asked_about_again() {
    for (sources, again) in [(2_000, 0), (4_600, 1)] {
        let messages = RetainedStore::new(NO_LIMITS, 1);
        let first = source(Some("first"), "");
        store(&messages, "0", first.clone());
        for number in 0..sources {
            let claim = "x".repeat(3_800);
            let of = source(Some(&format!("user {number}")), &claim);
            store(&messages, &format!("5{number:05}"), of);
        }
        store(&messages, "9", first);
        let (_, questions) = review(&messages, &shared(true, true));
        assert_eq!(questions, 1 + sources + again);
        assert_eq!(messages.withheld(), sources + 2);
    }
}
