//! Review of the store: it withholds messages from new subscribers if their publishers may no
//! longer publish them, and shows withheld messages again if they may.
//!
//! The review works on a page of messages at a time: it looks up their sources, asks the gatekeeper
//! about sources with a user, and decides about each message once all answers have arrived. No step
//! blocks, so a worker does the review in portions.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use thrum_access::{Answer, Denial, Identity, Resolved};
use thrum_codec::ReasonCode;
use thrum_protocol::{Message, MountPoint};

use super::source::{RetainedSource, SourceClient};
use super::{Place, RetainedStore, SOURCES_PAGE_VISITS, SourcedMessage};
use crate::access::{OwnRules, Shared, publish_rights};

/// Greatest memory of the known sources in bytes: beyond it they are dropped, and the gatekeeper is
/// asked again.
const KNOWN_BYTES_MAX: usize = 16 << 20;
/// Units of work to resolve the rules of a source.
const SOURCE_UNITS: u64 = 32;
/// Number of messages that one review logs one by one.
const LOGGED_MAX: usize = 50;
/// One review of the store.
#[derive(Debug)]
pub struct SourceReview {
    /// Position of the next page; none at the start.
    next: Option<Place>,
    is_last_page: bool,
    /// Messages that are not decided yet.
    page: VecDeque<SourcedMessage>,
    /// Number of messages in the page whose sources were looked up.
    looked_up: usize,
    known: HashMap<Arc<[u8]>, KnownSource>,
    known_bytes: usize,
    /// Sources about which the gatekeeper has not answered yet, by question number.
    asked: HashMap<u64, Arc<[u8]>>,
    questions: u64,
    /// The gatekeeper is not asked any more, because its time is over.
    gave_up: bool,
    counts: ReviewCounts,
}

/// The rights of a source, as this review knows them.
#[derive(Debug)]
struct KnownSource {
    rights: Rights,
    /// The source of messages that this review withholds; none before the first one.
    withheld: Option<Arc<RetainedSource>>,
    /// The source of messages that this review shows again; none before the first one.
    given: Option<Arc<RetainedSource>>,
}

/// The rights of a source.
#[derive(Debug)]
enum Rights {
    /// The policy does not check sources.
    Unchecked,
    /// The gatekeeper has not answered yet.
    Asked,
    /// The rights cannot be determined now: the messages of the source stay as they are.
    Unknown,
    /// The gatekeeper would not admit the client any more.
    NotAdmitted,
    /// The rights follow from rules.
    Rules {
        rules: Resolved,
        mount: Option<MountPoint>,
    },
}

/// Counts of one review.
#[derive(Clone, Copy, Debug, Default)]
struct ReviewCounts {
    withheld: usize,
    given_again: usize,
    /// Number of sources about which the gatekeeper did not answer.
    unanswered: usize,
}

/// Result of a step of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewStep {
    /// The step took that many units of work, and the review is not complete.
    Worked(u64),
    /// The review continues when the gatekeeper has answered.
    Waits,
    /// The review is complete.
    Done,
}

impl Default for SourceReview {
    fn default() -> Self {
        Self::new()
    }
}

impl SourceReview {
    /// Creates a review that has not begun.
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

    /// Does a step of the review. `ask` sends a question to the gatekeeper, whose answer is passed
    /// to [`SourceReview::answered`] with the number of the question.
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
            self.decide(&found, store);
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

    /// Determines the rights of a source, and returns the units of work that it took.
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
            self.set_rights(bytes, Rights::Unchecked);
            return 1;
        }
        let Some(client) = source.client() else {
            self.set_rights(bytes, Rights::Unknown);
            return 1;
        };
        // As for connected clients, only clients with a user name have rights that the gatekeeper
        // can change.
        let is_asked = shared.access.gatekeeper.is_some() && client.identity.username.is_some();
        if !is_asked {
            self.set_rights(bytes, Rights::by_rules(client, shared));
        } else if self.gave_up {
            self.counts.unanswered += 1;
            self.set_rights(bytes, Rights::Unknown);
        } else {
            self.questions += 1;
            self.asked.insert(self.questions, Arc::clone(&bytes));
            self.set_rights(bytes, Rights::Asked);
            ask(self.questions, Arc::new(client.identity));
        }
        SOURCE_UNITS
    }

    fn set_rights(&mut self, bytes: Arc<[u8]>, rights: Rights) {
        self.known_bytes += size_of::<KnownSource>() + bytes.len() + rights.memory_bytes();
        let known = KnownSource {
            rights,
            withheld: None,
            given: None,
        };
        self.known.insert(bytes, known);
    }

    /// Records the answer of the gatekeeper to a question of this review.
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
            Answer::Deny(denial) if is_gatekeeper_failure(&denial) => {
                self.unanswered(&client.identity, &denial.detail);
                Rights::Unknown
            }
            Answer::Deny(_) => Rights::NotAdmitted,
        };
        self.set_rights(bytes, rights);
    }

    /// Stops waiting for the gatekeeper; the rights of the remaining sources are unknown.
    pub fn stop_waiting(&mut self) {
        self.gave_up = true;
        let mut asked: Vec<_> = self.asked.drain().collect();
        asked.sort_unstable_by_key(|(question, _)| *question);
        for (_, bytes) in asked {
            if let Some(client) = RetainedSource::stored(Arc::clone(&bytes)).client() {
                self.unanswered(&client.identity, "no answer in time");
            }
            self.set_rights(bytes, Rights::Unknown);
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

    /// Whether the gatekeeper did not answer about some sources.
    pub fn are_some_unanswered(&self) -> bool {
        self.counts.unanswered > 0
    }

    fn decide(&mut self, found: &SourcedMessage, store: &RetainedStore) {
        let Some(known) = self.known.get_mut(found.source.bytes()) else {
            return;
        };
        let Some(is_allowed) = known.rights.allows(&found.message) else {
            return;
        };
        let withholds = !is_allowed;
        if withholds != found.source.is_withheld() {
            let known_source = if withholds {
                &mut known.withheld
            } else {
                &mut known.given
            };
            let source = known_source.get_or_insert_with(|| found.source.with_withheld(withholds));
            store.replace_source(found, Arc::clone(source));
            self.log(found);
        }
    }

    fn log(&mut self, found: &SourcedMessage) {
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

    /// Logs the counts of the review if they are not all 0.
    pub fn log_counts(&self, store: &RetainedStore) {
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
    /// Determines the rights of a client by the current rules, without the gatekeeper.
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

    /// Whether the source may publish a message; none if the message stays as it is. Topics about
    /// which the gatekeeper decides are allowed, as it was asked when the message was published.
    fn allows(&self, message: &Message) -> Option<bool> {
        match self {
            Self::Unchecked => Some(true),
            Self::Asked | Self::Unknown => None,
            Self::NotAdmitted => Some(false),
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
            Self::Unchecked | Self::Asked | Self::Unknown | Self::NotAdmitted => 0,
        }
    }
}

/// Whether a denial is a failure of the gatekeeper and not a decision about the client.
fn is_gatekeeper_failure(denial: &Denial) -> bool {
    matches!(
        denial.reason,
        ReasonCode::ServerUnavailable | ReasonCode::ServerBusy
    )
}
