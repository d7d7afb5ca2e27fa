//! The interface for decisions that the broker cannot make at once.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Debug;

use thrum_codec::QoS;

use crate::{Answer, Exchange, Identity, Login};

/// Takes the answer, once, on any thread.
pub type Reply<T> = Box<dyn FnOnce(T) + Send>;

/// Authentication, and authorization by other systems. No call blocks: answers come through the
/// reply, within the time limits of the backends, and always: a dropped reply counts as a denial.
pub trait Gatekeeper: Send + Sync + Debug {
    /// A client logs in, or proves its identity again (re-authentication).
    fn login(&self, login: Login, reply: Reply<Answer>);

    /// Next step of enhanced authentication; denied where it is not supported.
    fn step(&self, _exchange: Exchange, _data: Vec<u8>, reply: Reply<Answer>) {
        drop(reply);
    }

    /// The client's own rules may have changed: admits it again, without its password. An end
    /// (`expires_at`) and a time of refresh (`refresh_secs`) that the new admission lacks stay
    /// unchanged. A gatekeeper that cannot answer now returns "server unavailable" or "server
    /// busy", and the client keeps its rights.
    fn refresh(&self, _identity: Arc<Identity>, reply: Reply<Answer>) {
        reply(Answer::Unchanged);
    }

    /// Whether other systems make some decisions about topics, so that [`Gatekeeper::authorize`]
    /// has to be asked when no rule decides.
    fn has_authorizers(&self) -> bool {
        false
    }

    /// May the client do this? `None` if no authorizer has an opinion.
    fn authorize(&self, _question: Question, reply: Reply<Option<bool>>) {
        reply(None);
    }

    /// Reports its counts since its start, each figure by a topic such as `authentication/denied`.
    /// To be called now and then; a gatekeeper that counts nothing reports nothing.
    fn figures(&self, _tell: &mut dyn FnMut(&str, u64)) {}
}

/// A question to an authorizer of another system.
#[derive(Clone, Debug)]
pub struct Question {
    /// The client.
    pub identity: Arc<Identity>,
    /// Publishes to the topic, or subscribes to it as a filter.
    pub is_publish: bool,
    /// Topic name or topic filter, without `$share/group/` and without the listener's mount point.
    pub topic: Box<str>,
    /// Quality of service.
    pub qos: QoS,
    /// The retain flag.
    pub retain: bool,
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// A gatekeeper that keeps the default methods.
    #[derive(Debug)]
    struct Plain;

    impl Gatekeeper for Plain {
        fn login(&self, _login: Login, _reply: Reply<Answer>) {}
    }

    /// Counts its drops.
    struct Counted(Arc<AtomicU32>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_gatekeeper_without_enhanced_authentication_denies_its_steps() {
        let (answered, dropped) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (counter, guard) = (Arc::clone(&answered), Counted(Arc::clone(&dropped)));
        let reply: Reply<Answer> = Box::new(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            drop(guard);
        });
        Plain.step(Exchange(Box::new(())), Vec::new(), reply);
        assert_eq!(answered.load(Ordering::Relaxed), 0);
        assert_eq!(
            dropped.load(Ordering::Relaxed),
            1,
            "a lost reply is a denial"
        );
    }

    #[test]
    fn a_gatekeeper_without_authorizers_changes_nothing_and_has_no_opinion() {
        let calls = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&calls);
        let identity = Arc::new(Identity::default());
        let refreshed = move |answer| {
            assert!(matches!(answer, Answer::Unchanged));
            counter.fetch_add(1, Ordering::Relaxed);
        };
        Plain.refresh(Arc::clone(&identity), Box::new(refreshed));
        let counter = Arc::clone(&calls);
        let question = Question {
            identity,
            is_publish: true,
            topic: "t".into(),
            qos: QoS::AtMostOnce,
            retain: false,
        };
        let decided = move |opinion| {
            assert_eq!(opinion, None);
            counter.fetch_add(1, Ordering::Relaxed);
        };
        Plain.authorize(question, Box::new(decided));
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        assert!(!Plain.has_authorizers());
    }
}
