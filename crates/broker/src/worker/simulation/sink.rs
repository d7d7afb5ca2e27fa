//! A sink of the node, whose writes the test runs and records.

use std::sync::Arc;
use std::time::Duration;

use thrum_codec::topic;
use thrum_engine::sinks::{Offer, Places, QueueLimits, Sink, WhenFull};

use super::history::{Event, known_topic};
use super::machine::Machine;
use super::plan::Plan;
use super::random::Random;
use super::world::{Failure, World};
use crate::node::Node;

/// Its name in the configuration.
const NAME: &str = "simulated";

/// The sinks of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct SinkPlan {
    pub(super) filter: &'static str,
    pub(super) limits: QueueLimits,
}

impl SinkPlan {
    pub(super) fn new(random: &mut Random) -> Option<Self> {
        let plan = Self {
            filter: random.pick(&["#", "t/#", "t/1", "s/+", "r/#", "+/0"]),
            limits: QueueLimits {
                messages: random.pick(&[2, 10, 10_000, 10_000]),
                bytes: 1 << 20,
                when_full: random.pick(&[WhenFull::Refuse, WhenFull::Hold, WhenFull::Drop]),
                is_durable: random.percent(75),
            },
        };
        random.percent(50).then_some(plan)
    }

    /// Whether the queue may be full, so that publishers are refused, or messages without another
    /// receiver are.
    pub(super) fn refuses(&self) -> bool {
        self.limits.messages < 10_000
    }

    /// The guarantees that the checker requires.
    pub(super) fn promise(&self, has_disk: bool) -> SinkPromise {
        SinkPromise {
            filter: self.filter,
            drops: self.limits.when_full == WhenFull::Drop && self.limits.messages < 10_000,
            survives_restarts: self.limits.is_durable && has_disk,
        }
    }
}

/// The messages due to a sink.
#[derive(Clone, Copy, Debug)]
pub(super) struct SinkPromise {
    pub(super) filter: &'static str,
    /// Messages without room skip the sink.
    pub(super) drops: bool,
    pub(super) survives_restarts: bool,
}

impl SinkPromise {
    pub(super) fn includes(&self, topic: &str) -> bool {
        topic::matches(self.filter, topic)
    }
}

/// The sink of a running node.
#[derive(Debug)]
pub(super) struct SimSink {
    sink: Arc<Sink>,
    filter: &'static str,
    pub(super) places: Option<Places>,
    /// Written messages whose stored copies are not cleared yet.
    uncleared: Vec<Offer>,
    /// Number of messages recovered at the start.
    backlog: u64,
}

impl SimSink {
    /// Opens the sink before the node recovers its state.
    pub(super) fn open(plan: &Plan, node: &Node) -> Option<Self> {
        let sink = plan.sink.as_ref()?;
        let opened = node.state.sinks.open(NAME, sink.limits)?;
        node.state.interest.add_sink(sink.filter, opened.id);
        Some(Self {
            sink: Arc::clone(opened),
            filter: sink.filter,
            places: None,
            uncleared: Vec::new(),
            backlog: 0,
        })
    }

    /// Starts the sink after the node has recovered its state.
    pub(super) fn start(&mut self, places: Option<Places>) {
        self.places = places;
        self.backlog = self.sink.queue.counts().waiting;
    }

    /// Removes the sink, as a reload does.
    pub(super) fn remove(&self, node: &Node) {
        node.state.interest.remove_sink(self.filter, self.sink.id);
    }

    /// Writes the oldest messages.
    fn write(&mut self, messages_max: usize) -> Vec<Offer> {
        let taken = self.sink.queue.take(messages_max, 1 << 20, Duration::ZERO);
        let taken = taken.unwrap_or_default();
        self.uncleared.extend(taken.iter().cloned());
        taken
    }

    fn clear(&mut self) -> bool {
        let written = std::mem::take(&mut self.uncleared);
        if let Some(places) = &self.places {
            places.clear(written.iter().filter_map(|offer| offer.place));
            places.flush();
        }
        self.sink.queue.written(&written);
        !written.is_empty()
    }

    /// Checks the length of the queue: each worker may have found room at the same time.
    fn check(&self, plan: &SinkPlan, workers: usize) -> Result<(), Failure> {
        let waiting = self.sink.queue.counts().waiting;
        let workers = workers as u64 + 1;
        let times = if plan.limits.when_full == WhenFull::Hold {
            2
        } else {
            1
        };
        let bound = (plan.limits.messages as u64).saturating_mul(workers * times) + self.backlog;
        if waiting <= bound {
            return Ok(());
        }
        Err(format!(
            "{waiting} messages wait for the sink, over {bound}"
        ))
    }
}

impl World {
    /// Writes some messages, and maybe clears their stored copies.
    pub(super) fn write_some_to_sink(&mut self) -> Result<(), Failure> {
        let most = 1 + self.random.below(5);
        let clears = self.random.percent(70);
        self.write_to_sink(most, clears)?;
        Ok(())
    }

    /// Writes all waiting messages; true if there were any.
    pub(super) fn write_all_to_sink(&mut self) -> Result<bool, Failure> {
        self.write_to_sink(usize::MAX, true)
    }

    fn write_to_sink(&mut self, most: usize, clears: bool) -> Result<bool, Failure> {
        let Machine { sink, .. } = &mut self.machine;
        let Some(sink) = sink else {
            return Ok(false);
        };
        let taken = sink.write(most);
        let has_cleared = clears && sink.clear();
        for offer in &taken {
            let publication = offer.message.publication();
            let topic = known_topic(publication.topic);
            let topic = topic.ok_or_else(|| format!("the sink received {publication:?}"))?;
            // A PUBLISH that removes a retained message has no number.
            if let Some((number, _)) = publication.payload.split_first_chunk() {
                self.record(Event::Written {
                    number: u32::from_be_bytes(*number),
                    topic,
                    qos: publication.qos,
                });
            }
        }
        Ok(has_cleared || !taken.is_empty())
    }

    pub(super) fn check_sink(&self) -> Result<(), Failure> {
        match (&self.machine.sink, &self.plan.sink) {
            (Some(sink), Some(plan)) => sink.check(plan, self.machine.workers.len()),
            _ => Ok(()),
        }
    }
}
