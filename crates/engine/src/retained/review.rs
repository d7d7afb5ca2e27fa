//! A walk over the store that finds messages whose publishers may not publish them any more, and
//! withholds them from new subscribers; or gives them again.
//!
//! A page of messages at a time: their sources are looked up, the gatekeeper is asked about those
//! that have users, and when it has answered about all of them each message is judged. Nothing of
//! it waits, so a worker does it in portions.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use thrum_access::{Answer, Denial, Identity, Resolved};
use thrum_codec::ReasonCode;
use thrum_protocol::{Message, MountPoint};

use super::source::{RetainedSource, SourceClient};
use super::{Place, RetainedStore, SOURCES_PAGE_VISITS, Sourced};
use crate::access::{OwnRules, Shared, publish_rights};

/// Memory for what is known of sources: when it is used up, what is known is forgotten and asked
/// again.
const KNOWN_BYTES_MAX: usize = 16 << 20;
/// Units of work for a source whose rules are looked up, as of a session that is looked at again.
const SOURCE_UNITS: u64 = 32;
/// Messages of one walk that the log names one by one.
const LOGGED_MAX: usize = 50;
/// One walk.
#[derive(Debug)]
pub struct SourceReview {
    /// Where the next page begins; none at the beginning.
    next: Option<Place>,
    is_last_page: bool,
    /// Messages that are not judged yet.
    page: VecDeque<Sourced>,
    /// Those of them whose sources were looked up.
    looked_up: usize,
    known: HashMap<Arc<[u8]>, KnownSource>,
    known_bytes: usize,
    /// Questions to the gatekeeper that are not answered yet, by their numbers.
    asked: HashMap<u64, Arc<[u8]>>,
    questions: u64,
    /// The gatekeeper is not asked any more.
    gave_up: bool,
    counts: ReviewCounts,
}

/// A source of this walk.
#[derive(Debug)]
struct KnownSource {
    rights: Rights,
    /// As messages name it that are withheld since this walk.
    withheld: Option<Arc<RetainedSource>>,
    /// As messages name it that are given again since this walk.
    given: Option<Arc<RetainedSource>>,
}

/// What a source may do, as far as it could be found out.
#[derive(Debug)]
enum Rights {
    /// Nothing is checked.
    Free,
    Asked,
    /// Nobody can tell now: its messages stay as they are.
    Unknown,
    /// It would not be let in any more.
    Gone,
    Rules {
        rules: Resolved,
        mount: Option<MountPoint>,
    },
}

/// What a walk has done.
#[derive(Clone, Copy, Debug, Default)]
struct ReviewCounts {
    withheld: usize,
    given_again: usize,
    /// Questions without an answer.
    unanswered: usize,
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewStep {
    /// So many units of work were done, and there is more to do.
    Worked(u64),
    /// The gatekeeper has to answer first.
    Waits,
    /// All messages were judged.
    Done,
}

impl SourceReview {
    /// A walk that begins.
    pub fn new() -> Self {
        Self {
            next: None,
            is_last_page: false,
            page: VecDeque::new(),
            looked_up: 0,
            known: HashMap::new(),
            known_bytes: 0,
            asked: HashMap::new(),
            questions: 0,
            gave_up: false,
            counts: ReviewCounts::default(),
        }
    }

    /// Goes a step on. `ask` asks the gatekeeper, whose answer goes to [`SourceReview::answered`]
    /// with the number.
    pub fn step(
        &mut self,
        store: &RetainedStore,
        shared: &Shared,
        ask: impl FnOnce(u64, Arc<Identity>),
    ) -> ReviewStep {
        if let Some(found) = self.page.get(self.looked_up) {
            let source = Arc::clone(&found.source);
            self.looked_up += 1;
            return ReviewStep::Worked(self.look_up(&source, shared, ask));
        }
        if !self.asked.is_empty() {
            return ReviewStep::Waits;
        }
        if let Some(found) = self.page.pop_front() {
            self.looked_up -= 1;
            self.judge(&found, store);
            return ReviewStep::Worked(1);
        }
        if self.is_last_page {
            return ReviewStep::Done;
        }
        if self.known_bytes > KNOWN_BYTES_MAX {
            self.known = HashMap::new();
            self.known_bytes = 0;
        }
        self.next = store.sourced_page(self.next.take(), &mut self.page);
        self.is_last_page = self.next.is_none();
        ReviewStep::Worked(SOURCES_PAGE_VISITS as u64)
    }

    /// Finds out about a source; the units of work that it took.
    fn look_up(
        &mut self,
        source: &RetainedSource,
        shared: &Shared,
        ask: impl FnOnce(u64, Arc<Identity>),
    ) -> u64 {
        if self.known.contains_key(source.bytes()) {
            return 1;
        }
        let bytes = Arc::clone(source.bytes());
        if !shared.access.policy.checks_retained_source {
            self.know(bytes, Rights::Free);
            return 1;
        }
        let Some(client) = source.client() else {
            self.know(bytes, Rights::Unknown);
            return 1;
        };
        // As of connected clients: who has no user name has nothing that could change.
        let is_asked = shared.access.gatekeeper.is_some() && client.identity.username.is_some();
        if !is_asked {
            self.know(bytes, Rights::by_rules(client, shared));
        } else if self.gave_up {
            self.counts.unanswered += 1;
            self.know(bytes, Rights::Unknown);
        } else {
            self.questions += 1;
            self.asked.insert(self.questions, Arc::clone(&bytes));
            self.know(bytes, Rights::Asked);
            ask(self.questions, Arc::new(client.identity));
        }
        SOURCE_UNITS
    }

    fn know(&mut self, bytes: Arc<[u8]>, rights: Rights) {
        self.known_bytes += size_of::<KnownSource>() + bytes.len() + rights.memory_bytes();
        let known = KnownSource {
            rights,
            withheld: None,
            given: None,
        };
        self.known.insert(bytes, known);
    }

    /// The gatekeeper has answered a question of this walk.
    pub fn answered(&mut self, question: u64, answer: Answer, shared: &Shared) {
        let Some(bytes) = self.asked.remove(&question) else {
            return;
        };
        let Some(client) = RetainedSource::stored(Arc::clone(&bytes)).client() else {
            return;
        };
        let rights = match answer {
            Answer::Admit(admission) => Rights::Rules {
                rules: publish_rights(
                    &admission.identity,
                    OwnRules::Known(admission.rules.as_deref()),
                    shared,
                ),
                mount: client.mount,
            },
            Answer::Unchanged | Answer::Challenge { .. } => Rights::by_rules(client, shared),
            Answer::Deny(denial) if is_of_gatekeeper(&denial) => {
                self.unanswered(&client.identity, &denial.detail);
                Rights::Unknown
            }
            Answer::Deny(_) => Rights::Gone,
        };
        self.know(bytes, rights);
    }

    /// The gatekeeper has had its time.
    pub fn give_up(&mut self) {
        self.gave_up = true;
        let mut asked: Vec<_> = self.asked.drain().collect();
        asked.sort_unstable_by_key(|(question, _)| *question);
        for (_, bytes) in asked {
            if let Some(client) = RetainedSource::stored(Arc::clone(&bytes)).client() {
                self.unanswered(&client.identity, "no answer in time");
            }
            self.know(bytes, Rights::Unknown);
        }
    }

    fn unanswered(&mut self, identity: &Identity, reason: &str) {
        self.counts.unanswered += 1;
        if self.counts.unanswered <= LOGGED_MAX {
            tracing::warn!(
                client_id = &*identity.client_id,
                user = identity.username.as_deref(),
                reason,
                "retained messages of this client stay as they are: nobody can tell what it may do"
            );
        }
    }

    /// Sources about which there was no answer.
    pub fn are_some_unanswered(&self) -> bool {
        self.counts.unanswered > 0
    }

    fn judge(&mut self, found: &Sourced, store: &RetainedStore) {
        let Some(known) = self.known.get_mut(found.source.bytes()) else {
            return;
        };
        let Some(is_allowed) = known.rights.allows(&found.message) else {
            return;
        };
        let withholds = !is_allowed;
        if withholds != found.source.is_withheld() {
            let marked = if withholds {
                &mut known.withheld
            } else {
                &mut known.given
            };
            let source = marked.get_or_insert_with(|| found.source.marked(withholds));
            store.remark(found, Arc::clone(source));
            self.log(found);
        }
    }

    fn log(&mut self, found: &Sourced) {
        let (what, count) = if found.source.is_withheld() {
            let count = &mut self.counts.given_again;
            (
                "a retained message is given to new subscribers again",
                count,
            )
        } else {
            let count = &mut self.counts.withheld;
            (
                "a retained message is withheld from new subscribers: its publisher may not publish it any more",
                count,
            )
        };
        *count += 1;
        if *count <= LOGGED_MAX
            && let Some(client) = found.source.client()
        {
            tracing::info!(
                topic = found.message.topic(),
                client_id = &*client.identity.client_id,
                user = client.identity.username.as_deref(),
                "{what}"
            );
        }
    }

    /// Says what the walk has done, if that is something.
    pub fn tell(&self, store: &RetainedStore) {
        let ReviewCounts {
            withheld,
            given_again,
            unanswered,
        } = self.counts;
        if withheld + given_again + unanswered > 0 {
            let in_all = store.withheld();
            tracing::info!(
                withheld,
                given_again,
                unanswered,
                in_all,
                "retained messages were compared with what their publishers may do now"
            );
        }
    }
}

impl Rights {
    /// By the rules that are there, of a client about which the gatekeeper has nothing to say.
    fn by_rules(client: SourceClient, shared: &Shared) -> Self {
        let own = if client.has_own_rules {
            OwnRules::Unknown
        } else {
            OwnRules::Known(None)
        };
        Self::Rules {
            rules: publish_rights(&client.identity, own, shared),
            mount: client.mount,
        }
    }

    /// Whether the source may publish the message; none if it stays as it is. What would be asked
    /// of a service was asked when it was published.
    fn allows(&self, message: &Message) -> Option<bool> {
        match self {
            Self::Free => Some(true),
            Self::Asked | Self::Unknown => None,
            Self::Gone => Some(false),
            Self::Rules { rules, mount } => {
                let topic = message.topic();
                let seen = match mount {
                    None => topic,
                    Some(mount) => mount.seen_topic(topic)?,
                };
                let decision = rules.publish(seen, message.qos(), true);
                Some(decision.allowed != Some(false))
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Self::Rules { rules, .. } => rules.memory_bytes(),
            Self::Free | Self::Asked | Self::Unknown | Self::Gone => 0,
        }
    }
}

/// It says nothing about the client.
fn is_of_gatekeeper(denial: &Denial) -> bool {
    matches!(
        denial.reason,
        ReasonCode::ServerUnavailable | ReasonCode::ServerBusy
    )
}
