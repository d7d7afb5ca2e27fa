//! A sink of the node: its target takes what it likes when it likes, and remembers everything.

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

    /// The queue may be full, and a publisher is told so; if messages pass the sink by, of those
    /// that nobody else takes.
    pub(super) fn refuses(&self) -> bool {
        self.limits.messages < 10_000
    }

    /// The promises that the checker may demand.
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

/// The sink of a node that runs.
#[derive(Debug)]
pub(super) struct SimSink {
    sink: Arc<Sink>,
    filter: &'static str,
    pub(super) places: Option<Places>,
    /// Written, and their places are not cleared yet.
    uncleared: Vec<Offer>,
    /// The contents found at the start.
    backlog: u64,
}

impl SimSink {
    /// Before the node takes over what it finds.
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

    /// The node has taken over what it found.
    pub(super) fn begins(&mut self, places: Option<Places>) {
        self.places = places;
        self.backlog = self.sink.queue.counts().waiting;
    }

    /// A reload removes it.
    pub(super) fn remove(&self, node: &Node) {
        node.state.interest.remove_sink(self.filter, self.sink.id);
    }

    /// The target takes the oldest messages.
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

    /// The queue holds no more than it may: what each worker found room for at once.
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
    /// The target writes some messages, and maybe their places are cleared.
    pub(super) fn sink_writes(&mut self) -> Result<(), Failure> {
        let most = 1 + self.random.below(5);
        let clears = self.random.percent(70);
        self.sink_takes(most, clears)?;
        Ok(())
    }

    /// The target writes all that there is; true if that was anything.
    pub(super) fn sink_writes_all(&mut self) -> Result<bool, Failure> {
        self.sink_takes(usize::MAX, true)
    }

    fn sink_takes(&mut self, most: usize, clears: bool) -> Result<bool, Failure> {
        let Machine { sink, .. } = &mut self.machine;
        let Some(sink) = sink else {
            return Ok(false);
        };
        let taken = sink.write(most);
        let has_cleared = clears && sink.clear();
        for offer in &taken {
            let publication = offer.message.publication();
            let topic = known_topic(publication.topic);
            let topic = topic.ok_or_else(|| format!("the sink got {publication:?}"))?;
            // A PUBLISH that removes a retained message has no number.
            if let Some((number, _)) = publication.payload.split_first_chunk() {
                self.note(Event::Written {
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
            (Some(sink), Some(plan)) => sink.check(plan, self.machine.seats.len()),
            _ => Ok(()),
        }
    }
}
