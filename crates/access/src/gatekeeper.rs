//! Who decides what the broker cannot decide at once.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Debug;

use thrum_codec::QoS;

use crate::{Answer, Exchange, Identity, Login};

/// Takes the answer, once, from whatever thread.
pub type Reply<T> = Box<dyn FnOnce(T) + Send>;

/// Authentication and the authorization that others decide. No call blocks: answers come through
/// the reply, within the time limits of the backends, and always: a reply that is dropped counts as
/// a denial.
pub trait Gatekeeper: Send + Sync + Debug {
    /// A client wants to come in, or to prove itself again (re-authentication).
    fn login(&self, login: Login, reply: Reply<Answer>);

    /// Next step of enhanced authentication; denied where there is none.
    fn step(&self, _exchange: Exchange, _data: Vec<u8>, reply: Reply<Answer>) {
        drop(reply);
    }

    /// The client's own rules may have changed: the admission anew, without its password. An end
    /// (`expires_at`) and a time of refresh (`refresh_secs`) that the new one lacks stay as they
    /// were. Who cannot tell now says that the server is unavailable or busy, and the client keeps
    /// what it has.
    fn refresh(&self, _identity: Arc<Identity>, reply: Reply<Answer>) {
        reply(Answer::Unchanged);
    }

    /// Whether some decisions about topics are made by others, so that [`Gatekeeper::authorize`]
    /// has to be asked when no rule decides.
    fn has_authorizers(&self) -> bool {
        false
    }

    /// May the client do this? `None` if no authorizer has an opinion.
    fn authorize(&self, _question: Question, reply: Reply<Option<bool>>) {
        reply(None);
    }

    /// Tells what it has counted since its start, each figure by a topic such as
    /// `authentication/denied`. To be called now and then; who counts nothing tells nothing.
    fn figures(&self, _tell: &mut dyn FnMut(&str, u64)) {}
}

/// A question to an authorizer of another system.
#[derive(Clone, Debug)]
pub struct Question {
    /// Who.
    pub identity: Arc<Identity>,
    /// Publishes to the topic, or subscribes to it as a filter.
    pub is_publish: bool,
    /// Topic name or topic filter, without `$share/group/` and without the listener's mount point.
    pub topic: Box<str>,
    /// Quality of service.
    pub qos: QoS,
    /// To be retained.
    pub retain: bool,
}
