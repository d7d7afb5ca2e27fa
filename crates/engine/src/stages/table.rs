//! The stamped messages under way: each is followed from the queue of its receiver to the socket
//! and to the acknowledgement.

use std::sync::Arc;
use std::time::Duration;

use thrum_codec::PacketId;
use thrum_protocol::server::{DeliveryEvent, MessageEvent};
use thrum_protocol::{Message, Time};

use super::figures::{MessageStage, StageFigures};
use super::now_ns;
use crate::core::Core;
use crate::ids::{ConnectionId, ConnectionKey, Slot};
#[cfg(any(test, feature = "testing"))]
use crate::stages::Stages;
use crate::timers::Target;

/// Messages that one worker follows at a time. They take 32 KiB; at one of 1,000 messages they
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
    pub(super) since: Time,
}

/// What is followed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A message to a receiver.
    Delivery { routed_ns: u64, queued_ns: u64 },
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

/// Adds to the table, if there is room.
pub(super) fn follow(core: &mut Core, followed: Followed) {
    if core.stages.every == 0 {
        // Another worker stamped it before this one turned stamping off.
        return;
    }
    if core.outputs[followed.connection.key].is_cut {
        let count = |figures: &mut StageFigures| figures.unfinished += 1;
        core.node.stages.record(core.id, count);
        return;
    }
    if core.stages.followed.len() >= FOLLOWED_MAX {
        sweep(core);
    }
    if core.stages.followed.len() >= FOLLOWED_MAX {
        // Those that only wait for an acknowledgement are in the figures already.
        let waits = |one: &Followed| matches!(one.place, Place::Receiver { .. });
        if let Some(oldest) = core.stages.followed.iter().position(waits) {
            core.stages.followed.swap_remove(oldest);
        }
    }
    if core.stages.followed.len() >= FOLLOWED_MAX {
        let count = |figures: &mut StageFigures| figures.table_full += 1;
        core.node.stages.record(core.id, count);
        return;
    }
    core.outputs[followed.connection.key].is_followed = true;
    core.stages.followed.push(followed);
    plan_sweep(core);
}

/// Sets the timer of the next sweep, unless it is set.
fn plan_sweep(core: &mut Core) {
    if !std::mem::replace(&mut core.stages.is_sweep_planned, true) {
        let at = core.turn.now.plus(SWEEP_INTERVAL);
        core.timers.insert(at, Target::Stages);
    }
}

/// The timer of the sweep has fired.
pub fn sweep_is_due(core: &mut Core) {
    core.stages.is_sweep_planned = false;
    sweep(core);
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
    if unfinished > 0 {
        core.node
            .stages
            .record(core.id, |figures| figures.unfinished += unfinished);
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

/// The system has taken output of a connection that is followed.
#[cold]
pub fn written(core: &mut Core, key: ConnectionKey, moved: MovedBytes) {
    let now_ns = now_ns(core);
    let connection = core.outputs.id(key);
    let mut is_followed = false;
    let followed = &mut core.stages.followed;
    core.node.stages.record(core.id, |figures| {
        followed.retain_mut(|one| {
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
    });
    core.outputs[key].is_followed = is_followed;
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
    let Some(found) = found else { return };
    let one = core.stages.followed.swap_remove(found);
    core.node.stages.record(core.id, |figures| match one.place {
        Place::Receiver { written_ns, .. } => {
            let ns = now_ns.saturating_sub(written_ns);
            figures.enter(MessageStage::Acknowledged, ns, one.deliveries);
        }
        // What stands behind it in the output is not written yet, so when it was is not known.
        _ => figures.unfinished += 1,
    });
    let mut rest = core.stages.followed.iter();
    let is_followed = rest.any(|other| other.connection == connection);
    core.outputs[key].is_followed = is_followed;
}

/// Messages have left the queue of a session.
#[cold]
pub(crate) fn left_queue(core: &mut Core, slot: Slot, events: &[MessageEvent]) {
    let client = &mut core.sessions[slot];
    let here = client.session.id();
    let connection = client.connection.map(|key| core.outputs.id(key));
    let held = connection.map_or(0, |connection| core.outputs[connection.key].held());
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
    if unfinished > 0 {
        core.node
            .stages
            .record(core.id, |figures| figures.unfinished += unfinished);
    }
}

impl Followed {
    /// Moves the place by the bytes of a write; enters the stages when the last byte is written.
    fn advance(&mut self, moved: MovedBytes, now_ns: u64, figures: &mut StageFigures) -> Step {
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
        let of_broker = now_ns.saturating_sub(self.read_ns);
        match self.kind {
            Kind::Answer => figures.enter(MessageStage::Answered, of_broker, 1),
            Kind::Delivery {
                routed_ns,
                queued_ns,
            } => {
                for (stage, from, to) in [
                    (MessageStage::Routed, self.read_ns, routed_ns),
                    (MessageStage::Queued, routed_ns, queued_ns),
                    (MessageStage::Written, queued_ns, now_ns),
                    (MessageStage::Broker, self.read_ns, now_ns),
                ] {
                    figures.enter(stage, to.saturating_sub(from), self.deliveries);
                }
            }
        }
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

    fn delivery(packet_id: Option<PacketId>) -> Followed {
        Followed {
            connection: Outputs::default().open(),
            deliveries: 3,
            read_ns: 10,
            kind: Kind::Delivery {
                routed_ns: 20,
                queued_ns: 50,
            },
            place: Place::Output {
                behind: 100,
                packet_id,
            },
            since: Time::from_millis(1),
        }
    }

    fn counts(figures: &StageFigures) -> [(u64, u64); 4] {
        [
            MessageStage::Routed,
            MessageStage::Queued,
            MessageStage::Written,
            MessageStage::Broker,
        ]
        .map(|stage| {
            let series = figures.series(stage);
            (series.histogram.len(), series.sum_ns)
        })
    }

    #[test]
    fn a_message_in_the_layers_is_written_with_the_last_of_their_bytes() {
        let mut figures = StageFigures::new();
        let mut one = delivery(PacketId::new(7));
        let mut advance = |from_output, into_socket, in_layers, now_ns| {
            let moved = MovedBytes {
                from_output,
                into_socket,
                in_layers,
            };
            let step = one.advance(moved, now_ns, &mut figures);
            let counts = counts(&figures);
            (matches!(step, Step::Stays), counts)
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
        let mut figures = StageFigures::new();
        let mut one = delivery(None);
        let moved = |bytes| MovedBytes {
            from_output: bytes,
            into_socket: bytes,
            in_layers: 0,
        };
        assert!(matches!(
            one.advance(moved(99), 60, &mut figures),
            Step::Stays
        ));
        assert!(matches!(
            one.advance(moved(1), 70, &mut figures),
            Step::Ends
        ));
        assert_eq!(counts(&figures)[3], (3, 180));
    }
}
