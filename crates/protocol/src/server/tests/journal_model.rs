//! The state that results from the steps of a session, and the session restored from it.

use alloc::collections::{BTreeMap, BTreeSet};

use super::super::held::Held;
use super::super::inflight::Kept;
use super::*;

/// The persisted state.
#[derive(Default)]
pub(super) struct Model {
    pub(super) deliveries: BTreeMap<Seq, StoredDelivery>,
    pub(super) seq_max: Seq,
    pub(super) received: BTreeSet<PacketId>,
    pub(super) has_will: bool,
}

impl Model {
    pub(super) fn apply(&mut self, step: &Step, now: Time) {
        match step {
            Step::Queued {
                seq,
                message,
                qos,
                retain,
                identifiers,
                group,
            } => {
                assert!(*seq > self.seq_max, "{seq} was assigned before");
                self.seq_max = *seq;
                let delivery = StoredDelivery {
                    seq: *seq,
                    queued_at: now,
                    message: Some(Arc::clone(message)),
                    inflight: None,
                    qos: *qos,
                    retain: *retain,
                    identifiers: identifiers.clone(),
                    group: *group,
                };
                self.deliveries.insert(*seq, delivery);
            }
            Step::Sent {
                seq,
                packet_id,
                awaiting,
            } => {
                let delivery = self.deliveries.get_mut(seq).unwrap();
                delivery.inflight = Some((*packet_id, *awaiting));
                if *awaiting == Awaiting::PubComp {
                    delivery.message = None;
                }
            }
            Step::Removed { seq } => assert!(self.deliveries.remove(seq).is_some()),
            Step::Received { packet_id } => assert!(self.received.insert(*packet_id)),
            Step::ReceivedRemoved { packet_id } => assert!(self.received.remove(packet_id)),
            Step::WillRemoved => assert!(core::mem::take(&mut self.has_will)),
        }
    }

    pub(super) fn restored(&self, live: &Session) -> Session {
        let copy = |delivery: &StoredDelivery| StoredDelivery {
            message: delivery.message.clone(),
            identifiers: delivery.identifiers.clone(),
            ..*delivery
        };
        let stored = Stored {
            id: live.id(),
            client_id: live.client_id().into(),
            version: live.link.version(),
            session_expiry: live.lifetime.session_expiry(),
            away_since: live.lifetime.last_activity(),
            last_packet_id: live.outbound().last_packet_id(),
            seq_max: self.seq_max,
            deliveries: self.deliveries.values().map(copy).collect(),
            received: self.received.iter().copied().collect(),
            will: None,
        };
        Session::restore(stored, &live.limits)
    }
}

/// The contents of a session that must survive, one line each.
pub(super) fn contents(session: &Session) -> Vec<String> {
    let inflight = session
        .outbound
        .inflight
        .iter()
        .map(|(packet_id, awaiting, kept)| {
            let kept = match kept {
                Some(Kept::Message(held)) => held_line(held),
                Some(Kept::Released(seq)) => format!("{seq}"),
                Some(Kept::Nothing) | None => "not kept".to_string(),
            };
            format!("#{} {awaiting:?} {kept}", packet_id.as_u16())
        });
    let queued = session.outbound.queue.kept().map(held_line);
    let received = session.inbound.packet_ids();
    let received = received.map(|packet_id| format!("received #{}", packet_id.as_u16()));
    inflight.chain(queued).chain(received).collect()
}

fn held_line(held: &Held) -> String {
    let payload = String::from_utf8_lossy(held.message.payload());
    format!(
        "{} q{} {payload} {:?} {:?}",
        held.seq,
        held.qos.as_u8(),
        held.identifiers.as_slice(),
        held.group
    )
}
