//! What passes, by topic: a tree of the topics while somebody looks at it, and figures of the
//! messages that match a filter.
//!
//! ```text
//!   publishing.rs, router.rs, shared.rs --is_on?--> Observed, a watch of the routing
//!        Observed::finish -> TopicTree (tree), WatchedTopics (watched), TopicMetric (metric)
//!   a query begins the tree and renews it; a timer ends it, and frees it in parts
//! ```
//!
//! While nobody looks and no filter is counted, a message pays for one branch that it shares with
//! that of stamped messages.

mod flow;
mod metric;
mod search;
mod tree;
mod watched;
mod window;

use std::time::Duration;

use thrum_codec::QoS;
use thrum_protocol::Outgoing;
use thrum_protocol::server::Delivered;

pub use self::flow::TopicFlow;
pub use self::metric::{
    TOPIC_METRICS_MAX, TopicMetric, TopicMetricFigures, TopicMetricList, TopicMetrics,
};
pub use self::search::{TOPIC_PATTERN_BYTES_MAX, TopicPattern, TopicPatternError};
use self::tree::{Blocks, Seen};
pub use self::tree::{
    PREVIEW_BYTES_MAX, TOPIC_BYTES_MAX, TOPIC_LEVELS_MAX, TOPIC_NODES_MAX, TopicNode, TopicNodeId,
    TopicTree, TopicValue,
};
use self::watched::WatchedTopics;
pub use self::watched::{
    PUBLISHERS_MAX, VALUES_MAX, WATCHED_TOPICS_MAX, WatchedTopic, WatchedValue,
};
use crate::core::Core;
use crate::ids::Slot;
use crate::node::metrics::Counter;
use crate::stages::{Stamp, Stamped, Watch};
use crate::timers::Target;

/// The tree ends after this time without a look at it: a page that is reloaded finds it again.
pub const OBSERVATION_TIME: Duration = Duration::from_mins(1);
/// An ended tree is freed in parts, at this interval, so that no turn is long.
const FREE_INTERVAL: Duration = Duration::from_millis(10);

/// What a worker observes.
#[derive(Debug, Default)]
pub struct Observation {
    is_on: bool,
    topics: Option<Box<ObservedTopics>>,
    metrics: TopicMetricList,
    /// Trees that have ended, and are freed.
    ending: Vec<Blocks>,
    has_timer: bool,
}

/// The topics of a worker.
#[derive(Debug)]
struct ObservedTopics {
    tree: TopicTree,
    watched: WatchedTopics,
    /// Somebody looks until then, at least.
    until: thrum_protocol::Time,
}

impl Observation {
    /// Whether messages are observed.
    #[inline]
    pub(crate) const fn is_on(&self) -> bool {
        self.is_on
    }

    /// The tree of topics; none while nobody looks.
    pub fn tree(&self) -> Option<&TopicTree> {
        self.topics.as_ref().map(|topics| &topics.tree)
    }

    /// A topic that is looked at.
    pub fn watched(&self, topic: &str) -> Option<&WatchedTopic> {
        self.topics.as_ref()?.watched.find(topic)
    }

    /// Counts these filters from now on, and no others.
    pub fn set_metrics(&mut self, metrics: TopicMetricList) {
        self.metrics = metrics;
        self.switch();
    }

    fn switch(&mut self) {
        self.is_on = self.topics.is_some() || !self.metrics.is_empty();
    }

    /// Counts messages that a session did not get.
    #[cold]
    pub(crate) fn dropped(&self, worker: crate::workers::WorkerId, topic: &str, count: u64) {
        let metrics = self.metrics.iter();
        for metric in metrics.filter(|metric| metric.is_about(topic)) {
            metric.dropped(worker, count);
        }
    }
}

/// Begins the tree of topics, or keeps it for longer.
pub fn observe_topics(core: &mut Core) {
    let now = core.turn.now;
    let workers = core.node.workers();
    let observation = &mut core.observation;
    let topics = observation.topics.get_or_insert_with(|| {
        Box::new(ObservedTopics {
            tree: TopicTree::new(workers, now),
            watched: WatchedTopics::default(),
            until: now,
        })
    });
    topics.until = now.plus(OBSERVATION_TIME);
    observation.switch();
    plan(core, OBSERVATION_TIME);
}

/// Keeps the values and the publishers of a topic for some time; false if too many topics are
/// looked at.
pub fn watch_topic(core: &mut Core, topic: &str) -> bool {
    observe_topics(core);
    let now = core.turn.now;
    let topics = core.observation.topics.as_mut();
    topics.is_some_and(|topics| topics.watched.watch(topic, now, OBSERVATION_TIME))
}

fn plan(core: &mut Core, after: Duration) {
    if !std::mem::replace(&mut core.observation.has_timer, true) {
        let at = core.turn.now.plus(after);
        core.timers.insert(at, Target::Observation);
    }
}

/// The timer has fired: the tree ends if nobody has looked at it, and ended ones are freed.
pub fn observation_is_due(core: &mut Core) {
    let now = core.turn.now;
    let observation = &mut core.observation;
    observation.has_timer = false;
    if let Some(last) = observation.ending.last_mut()
        && !last.free_some()
    {
        observation.ending.pop();
    }
    let is_over = |topics: &mut Box<ObservedTopics>| topics.until <= now;
    if let Some(over) = observation.topics.take_if(is_over) {
        observation.ending.push(over.tree.into_blocks());
        observation.switch();
    }
    if !observation.ending.is_empty() {
        plan(core, FREE_INTERVAL);
    } else if let Some(topics) = &observation.topics {
        let left = topics.until.since(now);
        plan(core, left);
    }
}

/// Observes the routing of a message, which may be a stamped one.
#[derive(Debug)]
pub(crate) struct Observed {
    stamped: Option<Stamped>,
    origin: MessageOrigin,
    deliveries: u32,
}

/// Where a message comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageOrigin {
    /// A client of this worker.
    Client(Slot),
    /// The node, or the operator.
    Node,
    /// Another worker, which has counted it, or a group that gives it to another member.
    Elsewhere,
}

impl Observed {
    /// A message of that origin.
    pub(crate) const fn new(origin: MessageOrigin, stamped: Option<Stamped>) -> Self {
        Self {
            stamped,
            origin,
            deliveries: 0,
        }
    }
}

impl Watch for Observed {
    fn matched(&mut self, core: &Core) {
        if let Some(stamped) = &mut self.stamped {
            stamped.matched(core);
        }
    }

    fn delivered(&mut self, core: &mut Core, slot: Slot, qos: QoS, delivered: Delivered) {
        self.deliveries += u32::from(!matches!(delivered, Delivered::Dropped(_)));
        if let Some(stamped) = &mut self.stamped {
            stamped.delivered(core, slot, qos, delivered);
        }
    }

    fn stamp(&mut self) -> Option<Box<Stamp>> {
        self.stamped.as_mut().and_then(Watch::stamp)
    }

    fn finish(self, core: &mut Core, outgoing: &mut Outgoing<'_>) {
        self.enter(core, outgoing);
        if let Some(stamped) = self.stamped {
            stamped.finish(core, outgoing);
        }
    }
}

impl Observed {
    #[inline(never)]
    fn enter(&self, core: &mut Core, outgoing: &Outgoing<'_>) {
        let publication = outgoing.publication();
        let seen = Seen {
            topic: publication.topic,
            payload: publication.payload,
            qos: publication.qos,
            retain: publication.retain,
            now: core.turn.now,
        };
        let is_new = self.origin != MessageOrigin::Elsewhere;
        let worker = core.id;
        let observation = &mut core.observation;
        let metrics = observation.metrics.iter();
        for metric in metrics.filter(|metric| metric.is_about(seen.topic)) {
            if is_new {
                metric.received(worker, &seen);
            }
            metric.delivered(worker, &seen, self.deliveries);
        }
        let Some(topics) = &mut observation.topics else {
            return;
        };
        if !is_new || seen.topic.starts_with("$SYS/") {
            return;
        }
        let publisher = match self.origin {
            MessageOrigin::Client(slot) => Some(core.sessions[slot].session.client_id()),
            MessageOrigin::Node | MessageOrigin::Elsewhere => None,
        };
        topics.watched.count(&seen, publisher);
        if !topics.tree.count(&seen) {
            core.row().add(Counter::TopicMessagesUntold, 1);
        }
    }
}
