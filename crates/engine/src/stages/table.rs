//! The stamped messages under way: each is followed from the queue of its receiver to the socket
//! and to the acknowledgement.

use std::cell::LazyCell;
use std::sync::Arc;
use std::time::Duration;

use thrum_codec::PacketId;
use thrum_protocol::server::{DeliveryEvent, MessageEvent};
use thrum_protocol::{Message, Time};

use super::figures::{Fate, MessageStage, WorkerStages};
use super::{nanos, now_ns};
use crate::core::Core;
use crate::ids::{ConnectionId, ConnectionKey, Slot};
use crate::spans;
#[cfg(any(test, feature = "testing"))]
use crate::stages::Stages;
use crate::timers::Target;

/// Messages that one worker follows at a time. They take 40 KiB; at one of 1,000 messages they
/// stand for 256,000 under way.
pub const FOLLOWED_MAX: usize = 256;
/// Messages that have been followed for longer are given up.
const FOLLOWED_TIME: Duration = Duration::from_mins(1);
/// Interval of the search for them while any message is followed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// A delivery, or the answer to a publisher, that is followed.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) connection: ConnectionId,
    /// Deliveries that it stands for: those of the message on this worker.
    pub(super) deliveries: u32,
    pub(super) read_ns: u64,
    pub(super) kind: Kind,
    pub(super) place: Place,
    /// When a message stood in the output; 0 while it is in a queue.
    pub(super) output_ns: u64,
    /// Since when it has waited for the disk, itself or behind other output; 0 if it has not.
    pub(super) held_ns: u64,
    /// When that ended; 0 if it has not.
    pub(super) ready_ns: u64,
    pub(super) since: Time,
}

/// The times of a delivery until it was queued.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_field_names, reason = "the unit is part of each name")]
pub(super) struct DeliveryTimes {
    pub(super) handled_ns: u64,
    pub(super) authorized_ns: u64,
    pub(super) routed_ns: u64,
    /// When it arrived from another worker; 0 if it did not.
    pub(super) arrived_ns: u64,
    pub(super) queued_ns: u64,
}

/// What is followed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A message to a receiver.
    Delivery(DeliveryTimes),
    /// PUBACK or PUBREC to the publisher.
    Answer,
}

/// Where it is.
#[derive(Debug)]
pub(super) enum Place {
    /// In the queue of a session.
    Queue {
        slot: Slot,
        session: u64,
        message: Arc<Message>,
    },
    /// In the output of the connection, which ends with its last byte after that many bytes.
    Output {
        behind: usize,
        packet_id: Option<PacketId>,
    },
    /// In the layers of the connection, encrypted or framed.
    Layers {
        behind: usize,
        packet_id: Option<PacketId>,
    },
    /// With the receiver, whose acknowledgement is awaited.
    Receiver {
        packet_id: PacketId,
        written_ns: u64,
    },
}

impl Place {
    const fn packet_id(&self) -> Option<PacketId> {
        match self {
            Self::Queue { .. } => None,
            Self::Output { packet_id, .. } | Self::Layers { packet_id, .. } => *packet_id,
            Self::Receiver { packet_id, .. } => Some(*packet_id),
        }
    }
}

/// Bytes that one write of a connection has moved.
#[derive(Clone, Copy, Debug)]
pub struct MovedBytes {
    /// From the output into the layers, or into the socket if there are none.
    pub from_output: usize,
    /// Into the socket.
    pub into_socket: usize,
    /// Left in the layers.
    pub in_layers: usize,
}

/// The next step of something that was followed.
enum Step {
    Stays,
    Ends,
}

/// Counts a stamped message.
pub(super) fn count(core: &Core, fate: Fate) {
    if let Some(figures) = core.node.stages.of(core.id) {
        figures.count(fate, 1);
    }
}

/// Adds to the table, if there is room.
pub(super) fn follow(core: &mut Core, mut followed: Followed) {
    if core.stages.every == 0 {
        // Another worker stamped it before this one turned stamping off.
        return;
    }
    let output = &core.outputs[followed.connection.key];
    if output.is_cut {
        count(core, Fate::Unfinished);
        return;
    }
    if followed.waits_for_disk(output.ready()) {
        followed.held_ns = now_ns(core);
    }
    if core.stages.followed.len() >= FOLLOWED_MAX {
        sweep(core);
    }
    if core.stages.followed.len() >= FOLLOWED_MAX {
        // Any of those that only wait for an acknowledgement: their times are in the figures.
        let waits = |one: &Followed| matches!(one.place, Place::Receiver { .. });
        if let Some(waiting) = core.stages.followed.iter().position(waits) {
            core.stages.followed.swap_remove(waiting);
        }
    }
    if core.stages.followed.len() >= FOLLOWED_MAX {
        count(core, Fate::TableFull);
        return;
    }
    core.outputs[followed.connection.key].is_followed = true;
    core.stages.followed.push(followed);
    core.stages.note_followed();
    plan_sweep(core);
}

/// Sets the timer of the next sweep, unless it is set.
pub(crate) fn plan_sweep(core: &mut Core) {
    if !std::mem::replace(&mut core.stages.is_sweep_planned, true) {
        let at = core.turn.now.plus(SWEEP_INTERVAL);
        core.timers.insert(at, Target::Stages);
    }
}

/// The timer of the sweep has fired.
pub fn sweep_is_due(core: &mut Core) {
    core.stages.is_sweep_planned = false;
    sweep(core);
    spans::sweep(core);
    core.stages.note_followed();
    if core.stages.are_followed() {
        plan_sweep(core);
    }
}

/// Gives up what can no longer be written or acknowledged, and what takes too long.
#[cold]
fn sweep(core: &mut Core) {
    let mut unfinished = 0;
    let (outputs, now) = (&core.outputs, core.turn.now);
    core.stages.followed.retain(|followed| {
        let connection = followed.connection;
        let is_there = outputs.contains(connection) && outputs[connection.key].is_followed;
        let stays = is_there && now.since(followed.since) < FOLLOWED_TIME;
        if !stays && matches!(followed.place, Place::Receiver { .. }) {
            // It was written and is in the figures, without an acknowledgement.
        } else if !stays {
            unfinished += 1;
        }
        stays
    });
    give_up(core, unfinished);
}

/// Gives up everything that is followed: stamping changes.
pub(super) fn give_up_all(core: &mut Core) {
    let followed = std::mem::take(&mut core.stages.followed);
    let is_written = |one: &Followed| matches!(one.place, Place::Receiver { .. });
    let unfinished = followed.iter().filter(|one| !is_written(one)).count();
    give_up(core, unfinished as u64);
}

/// Counts what is followed no longer.
fn give_up(core: &Core, unfinished: u64) {
    if let Some(figures) = core.node.stages.of(core.id).filter(|_| unfinished > 0) {
        figures.count(Fate::Unfinished, unfinished);
    }
}

/// What contradicts the output of the connections, for tests.
#[cfg(any(test, feature = "testing"))]
pub fn contradiction(core: &Core) -> Option<String> {
    let Stages {
        followed,
        is_sweep_planned,
        ..
    } = &core.stages;
    let is_empty = followed.is_empty();
    if followed.len() > FOLLOWED_MAX || !(is_empty || *is_sweep_planned) {
        let all = followed.len();
        return Some(format!("{all} are followed, sweep: {is_sweep_planned}"));
    }
    let is_there = |one: &&Followed| {
        let key = one.connection.key;
        core.outputs.contains(one.connection) && core.outputs[key].is_followed
    };
    followed.iter().filter(is_there).find_map(|one| {
        let Place::Output { behind, .. } = one.place else {
            return None;
        };
        let waiting = core.outputs[one.connection.key].waiting();
        (behind == 0 || behind > waiting).then(|| format!("{one:?} of {waiting} waiting bytes"))
    })
}

/// Output of a connection that is followed waits for the disk from now on.
#[cold]
pub(crate) fn held(core: &mut Core, connection: ConnectionId) {
    let now_ns = now_ns(core);
    let ready = core.outputs[connection.key].ready();
    let of_connection = |one: &&mut Followed| one.connection == connection;
    for one in core.stages.followed.iter_mut().filter(of_connection) {
        if one.held_ns == 0 && one.waits_for_disk(ready) {
            one.held_ns = now_ns;
        }
    }
}

/// The disk has changes that output of a connection that is followed has waited for.
#[cold]
pub(crate) fn released(core: &mut Core, connection: ConnectionId) {
    let now_ns = now_ns(core);
    let ready = core.outputs[connection.key].ready();
    let of_connection = |one: &&mut Followed| one.connection == connection;
    for one in core.stages.followed.iter_mut().filter(of_connection) {
        if one.held_ns > 0 && one.ready_ns == 0 && !one.waits_for_disk(ready) {
            one.ready_ns = now_ns;
        }
    }
}

/// The system has taken output of a connection that is followed.
#[cold]
pub fn written(core: &mut Core, key: ConnectionKey, moved: MovedBytes) {
    let now_ns = now_ns(core);
    let connection = core.outputs.id(key);
    let mut is_followed = false;
    if let Some(figures) = core.node.stages.of(core.id) {
        core.stages.followed.retain_mut(|one| {
            if one.connection != connection {
                return true;
            }
            match one.advance(moved, now_ns, figures) {
                Step::Ends => false,
                Step::Stays => {
                    is_followed = true;
                    true
                }
            }
        });
    }
    let is_traced = spans::written(core, connection, moved, now_ns);
    core.outputs[key].is_followed = is_followed || is_traced;
    core.stages.note_followed();
}

/// A client has acknowledged a message: PUBACK, PUBCOMP, or a PUBREC that ends the exchange.
#[cold]
pub(crate) fn acknowledged(core: &mut Core, key: ConnectionKey, packet_id: PacketId) {
    if !core.outputs[key].is_followed {
        return;
    }
    let now_ns = now_ns(core);
    let connection = core.outputs.id(key);
    let found =
        core.stages.followed.iter().position(|one| {
            one.connection == connection && one.place.packet_id() == Some(packet_id)
        });
    if let Some(found) = found {
        let one = core.stages.followed.swap_remove(found);
        enter_acknowledged(core, &one, now_ns);
    }
    spans::acknowledged(core, connection, packet_id, now_ns);
    let mut rest = core.stages.followed.iter();
    let is_followed = rest.any(|other| other.connection == connection);
    core.outputs[key].is_followed = is_followed || core.stages.spans.follow(connection);
    core.stages.note_followed();
}

fn enter_acknowledged(core: &Core, one: &Followed, now_ns: u64) {
    let Some(figures) = core.node.stages.of(core.id) else {
        return;
    };
    match one.place {
        Place::Receiver { written_ns, .. } => {
            let ns = now_ns.saturating_sub(written_ns);
            figures.enter(MessageStage::Acknowledged, ns, one.deliveries);
        }
        // What stands behind it in the output is not written yet, so when it was is not known.
        _ => figures.count(Fate::Unfinished, 1),
    }
}

/// Messages have left the queue of a session.
#[cold]
pub(crate) fn left_queue(core: &mut Core, slot: Slot, events: &[MessageEvent]) {
    let client = &mut core.sessions[slot];
    let here = client.session.id();
    let connection = client.connection.map(|key| core.outputs.id(key));
    let held = connection.map_or(0, |connection| core.outputs[connection.key].held());
    let ready = connection.and_then(|connection| core.outputs[connection.key].ready());
    let now_ns = LazyCell::new(|| nanos(core.host.elapsed()));
    let (mut unfinished, mut is_any_left) = (0, false);
    core.stages.followed.retain_mut(|one| {
        let Place::Queue {
            slot: queue,
            session,
            message,
        } = &one.place
        else {
            return true;
        };
        if (*queue, *session) != (slot, here) {
            return true;
        }
        if connection != Some(one.connection) {
            // Its connection has ended; the session holds the message for another one.
            unfinished += 1;
            return false;
        }
        let is_about = |event: &&MessageEvent| Arc::ptr_eq(&event.message, message);
        let stays = match events.iter().find(is_about).map(|event| event.event) {
            None => {
                is_any_left = true;
                true
            }
            Some(DeliveryEvent::Sent { packet_id, end }) => {
                let behind = held + end;
                one.place = Place::Output { behind, packet_id };
                one.output_ns = *now_ns;
                if one.waits_for_disk(ready) {
                    one.held_ns = *now_ns;
                }
                true
            }
            Some(_) => false,
        };
        unfinished += u64::from(!stays);
        stays
    });
    if is_any_left {
        client.session.outbound_mut().record_events();
    }
    give_up(core, unfinished);
}

impl Followed {
    /// Whether it stands in the output behind bytes that wait for the disk; `ready` is the number
    /// of bytes in front of them, and none if no output waits.
    fn waits_for_disk(&self, ready: Option<usize>) -> bool {
        match self.place {
            Place::Output { behind, .. } => ready.is_some_and(|ready| behind > ready),
            Place::Queue { .. } | Place::Layers { .. } | Place::Receiver { .. } => false,
        }
    }

    /// How long it has waited for the disk.
    fn sync_ns(&self, now_ns: u64) -> u64 {
        match (self.held_ns, self.ready_ns) {
            (0, _) => 0,
            (held_ns, 0) => now_ns.saturating_sub(held_ns),
            (held_ns, ready_ns) => ready_ns.saturating_sub(held_ns),
        }
    }

    /// Enters the stages of something whose last byte is written now.
    fn enter(&self, now_ns: u64, figures: &WorkerStages) {
        let sync_ns = self.sync_ns(now_ns);
        let enter = |stage, ns| figures.enter(stage, ns, self.deliveries);
        let Kind::Delivery(times) = self.kind else {
            enter(MessageStage::AnswerSync, sync_ns);
            enter(MessageStage::Answered, now_ns.saturating_sub(self.read_ns));
            return;
        };
        let DeliveryTimes {
            handled_ns,
            authorized_ns,
            routed_ns,
            arrived_ns,
            queued_ns,
        } = times;
        for (stage, from, to) in [
            (MessageStage::Routed, self.read_ns, routed_ns),
            (MessageStage::Queued, routed_ns, queued_ns),
            (MessageStage::Written, queued_ns, now_ns),
            (MessageStage::Broker, self.read_ns, now_ns),
            (MessageStage::Read, self.read_ns, handled_ns),
            (MessageStage::Authorize, handled_ns, authorized_ns),
            (MessageStage::Route, authorized_ns, routed_ns),
            (MessageStage::Mail, routed_ns, arrived_ns),
            (MessageStage::Queue, routed_ns, self.output_ns),
            (MessageStage::Write, self.output_ns + sync_ns, now_ns),
        ] {
            enter(stage, to.saturating_sub(from));
        }
        enter(MessageStage::Sync, sync_ns);
    }

    /// Moves the place by the bytes of a write; enters the stages when the last byte is written.
    fn advance(&mut self, moved: MovedBytes, now_ns: u64, figures: &WorkerStages) -> Step {
        let packet_id = match self.place {
            Place::Queue { .. } | Place::Receiver { .. } => return Step::Stays,
            Place::Output { behind, packet_id } => {
                let behind = behind.saturating_sub(moved.from_output);
                if behind > 0 {
                    self.place = Place::Output { behind, packet_id };
                    return Step::Stays;
                }
                if moved.in_layers > 0 {
                    let behind = moved.in_layers;
                    self.place = Place::Layers { behind, packet_id };
                    return Step::Stays;
                }
                packet_id
            }
            Place::Layers { behind, packet_id } => {
                let behind = behind.saturating_sub(moved.into_socket);
                if behind > 0 {
                    self.place = Place::Layers { behind, packet_id };
                    return Step::Stays;
                }
                packet_id
            }
        };
        self.enter(now_ns, figures);
        match packet_id {
            None => Step::Ends,
            Some(packet_id) => {
                self.place = Place::Receiver {
                    packet_id,
                    written_ns: now_ns,
                };
                Step::Stays
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outputs::Outputs;
    use crate::stages::{NodeStages, STAGE_PARTS};
    use crate::workers::WorkerId;

    const WORKER: WorkerId = WorkerId::new(0);

    fn delivery(packet_id: Option<PacketId>) -> Followed {
        Followed {
            connection: Outputs::default().open(),
            deliveries: 3,
            read_ns: 10,
            kind: Kind::Delivery(DeliveryTimes {
                handled_ns: 12,
                authorized_ns: 15,
                routed_ns: 20,
                arrived_ns: 0,
                queued_ns: 50,
            }),
            place: Place::Output {
                behind: 100,
                packet_id,
            },
            output_ns: 50,
            held_ns: 0,
            ready_ns: 0,
            since: Time::from_millis(1),
        }
    }

    /// The figures of a worker that stamps messages.
    fn node() -> NodeStages {
        let node = NodeStages::new(1);
        node.switch(WORKER, true);
        node
    }

    /// Numbers and sums of the durations of stages.
    fn sums<const N: usize>(node: &NodeStages, stages: [MessageStage; N]) -> [(u64, u64); N] {
        let figures = node.merged().unwrap();
        stages.map(|stage| {
            let series = figures.series(stage);
            (series.count(), series.sum_ns)
        })
    }

    fn counts(node: &NodeStages) -> [(u64, u64); 4] {
        let stages = [
            MessageStage::Routed,
            MessageStage::Queued,
            MessageStage::Written,
            MessageStage::Broker,
        ];
        sums(node, stages)
    }

    fn moved(bytes: usize) -> MovedBytes {
        MovedBytes {
            from_output: bytes,
            into_socket: bytes,
            in_layers: 0,
        }
    }

    #[test]
    fn a_message_in_the_layers_is_written_with_the_last_of_their_bytes() {
        let node = node();
        let mut one = delivery(PacketId::new(7));
        let mut advance = |from_output, into_socket, in_layers, now_ns| {
            let moved = MovedBytes {
                from_output,
                into_socket,
                in_layers,
            };
            let step = one.advance(moved, now_ns, node.of(WORKER).unwrap());
            (matches!(step, Step::Stays), counts(&node))
        };
        let nothing = [(0, 0); 4];
        assert_eq!(advance(60, 0, 90, 60), (true, nothing));
        // The end of the message is in the layers, and other bytes behind it.
        assert_eq!(advance(50, 70, 80, 70), (true, nothing));
        assert_eq!(advance(30, 79, 40, 80), (true, nothing));
        let written = [(3, 30), (3, 90), (3, 150), (3, 270)];
        assert_eq!(advance(0, 1, 39, 100), (true, written));
        // Its acknowledgement is awaited; later bytes change nothing.
        assert_eq!(advance(90, 90, 0, 200), (true, written));
        assert!(matches!(
            one.place,
            Place::Receiver {
                written_ns: 100,
                ..
            }
        ));
    }

    #[test]
    fn a_message_without_acknowledgement_ends_with_its_last_byte() {
        let node = node();
        let mut one = delivery(None);
        let mut advance = |bytes, now_ns| {
            let step = one.advance(moved(bytes), now_ns, node.of(WORKER).unwrap());
            matches!(step, Step::Stays)
        };
        assert!(advance(99, 60));
        assert!(!advance(1, 70));
        assert_eq!(counts(&node)[3], (3, 180));
    }

    #[test]
    fn the_parts_sum_to_the_time_in_the_broker_with_the_wait_for_the_disk() {
        for (held_ns, ready_ns, sync, write) in [(0, 0, 1, 50), (60, 90, 30, 20), (60, 0, 40, 10)] {
            let node = node();
            let mut one = Followed {
                held_ns,
                ready_ns,
                deliveries: 1,
                ..delivery(None)
            };
            one.advance(moved(100), 100, node.of(WORKER).unwrap());
            let parts = sums(&node, STAGE_PARTS.map(|(_, stage)| stage));
            // No wait counts as one nanosecond.
            let expected = [2, 3, 5, 30, sync, write].map(|ns| (1, ns));
            assert_eq!(parts, expected);
            assert_eq!(sums(&node, [MessageStage::Broker]), [(1, 90)]);
        }
    }

    #[test]
    fn the_way_from_another_worker_is_a_part_of_the_time_until_it_is_queued() {
        for (arrived_ns, mail) in [(45, 25), (0, 1)] {
            let node = node();
            let mut one = delivery(None);
            one.deliveries = 1;
            if let Kind::Delivery(times) = &mut one.kind {
                times.arrived_ns = arrived_ns;
            }
            one.advance(moved(100), 100, node.of(WORKER).unwrap());
            let of = [MessageStage::Mail, MessageStage::Queued];
            assert_eq!(sums(&node, of), [(1, mail), (1, 30)]);
        }
    }

    #[test]
    fn the_answer_to_a_publisher_has_its_own_wait_for_the_disk() {
        let node = node();
        let mut one = Followed {
            kind: Kind::Answer,
            deliveries: 1,
            held_ns: 60,
            ready_ns: 90,
            ..delivery(None)
        };
        one.advance(moved(100), 100, node.of(WORKER).unwrap());
        let of_answer = [MessageStage::AnswerSync, MessageStage::Answered];
        assert_eq!(sums(&node, of_answer), [(1, 30), (1, 90)]);
        assert_eq!(counts(&node), [(0, 0); 4]);
    }
}
