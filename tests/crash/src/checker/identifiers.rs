//! Packet identifiers of deliveries, as their receiver has to keep them.

use std::collections::BTreeMap;

use super::client::Place;
use crate::event::{Delivery, MessageNumber};

/// Identifiers of one session.
#[derive(Clone, Debug, Default)]
pub(super) struct Identifiers {
    /// PUBLISH was received, and PUBACK was not sent or PUBREL was not received.
    in_use: BTreeMap<u16, Use>,
    /// PUBCOMP was sent on this connection.
    completed: BTreeMap<u16, u32>,
}

#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts that do not depend on each other"
)]
struct Use {
    number: Option<MessageNumber>,
    qos: u8,
    retain: bool,
    is_its_own: bool,
    place: Place,
    /// PUBREC was sent.
    is_recorded: bool,
    /// The session of this identifier may have ended without the client's knowing.
    is_doubtful: bool,
}

/// The kind of a PUBLISH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The first of its handshake, or a repeated `QoS` 1.
    Handed,
    /// `QoS` 2 whose handshake is under way: not handed to the application.
    KnownAlready,
}

impl Identifiers {
    /// Notes a PUBLISH; `is_its_own` if no other client may get it and its publisher sent it once.
    ///
    /// # Errors
    /// Why its identifier is wrong.
    pub(super) fn arrives(
        &mut self,
        delivery: &Delivery,
        place: Place,
        is_its_own: bool,
    ) -> Result<Arrival, String> {
        let id = delivery.packet_id;
        if delivery.qos == 0 {
            return Ok(Arrival::Handed);
        }
        if id == 0 {
            return Err("packet identifier 0".to_owned());
        }
        self.completed.remove(&id);
        let Some(before) = self.in_use.get(&id).copied() else {
            let result = self.is_first_use(delivery, place, is_its_own);
            self.take(delivery, place, is_its_own, false);
            return result.map(|()| Arrival::Handed);
        };
        let is_same = before.number == delivery.number
            && before.qos == delivery.qos
            && before.retain == delivery.retain;
        self.take(delivery, place, is_its_own, is_same && before.is_recorded);
        if before.place.connection == place.connection {
            return Err(format!(
                "packet identifier {id} is in use on this connection by {before:?}"
            ));
        }
        let crashed = before.place.run < place.run;
        // QoS 1 leaves before it is on the disk: after a crash it may be a first one, and its
        // identifier another's. In a shared group another member may have got it meanwhile.
        let may_be_free =
            before.is_doubtful || (before.qos == 1 && (crashed || !before.is_its_own));
        // Another copy of the same message is sent as new: one that another member left, or that
        // its publisher sent again.
        let is_another = !is_same || (before.qos == 1 && !delivery.dup);
        if (before.qos == 1 && crashed) || (may_be_free && is_another) {
            return Ok(Arrival::Handed);
        }
        if !is_same {
            return Err(format!(
                "packet identifier {id} still belongs to {before:?}"
            ));
        }
        if !delivery.dup {
            return Err(format!("sent again without DUP, first as {before:?}"));
        }
        Ok(match delivery.qos {
            1 => Arrival::Handed,
            _ => Arrival::KnownAlready,
        })
    }

    /// It is unknown whether the session is still the one that used them.
    pub(super) fn doubt(&mut self) {
        self.in_use
            .values_mut()
            .for_each(|used| used.is_doubtful = true);
    }

    /// PUBACK is sent; the message, unless it came because it was retained.
    pub(super) fn acknowledge(&mut self, id: u16) -> Option<MessageNumber> {
        let used = self.in_use.remove(&id)?;
        used.number.filter(|_| !used.retain)
    }

    /// PUBREC is sent.
    pub(super) fn record(&mut self, id: u16) {
        if let Some(used) = self.in_use.get_mut(&id) {
            used.is_recorded = true;
        }
    }

    /// PUBREL was received and PUBCOMP is sent; true if it was received before.
    ///
    /// # Errors
    /// Why it is forbidden.
    pub(super) fn release(&mut self, id: u16, place: Place) -> Result<bool, String> {
        match self.in_use.get(&id) {
            Some(used) if used.qos == 2 && used.is_recorded => {
                self.in_use.remove(&id);
                self.completed.insert(id, place.connection);
                Ok(false)
            }
            // QoS 1 leaves before it is on the disk, and so before the PUBCOMP that freed its
            // identifier: after a crash the identifier may be the older exchange's again.
            Some(used) if used.qos == 1 && used.place.run < place.run => {
                match self.completed.insert(id, place.connection) {
                    Some(connection) if connection == place.connection => {
                        Err(format!("PUBREL {id} twice on a connection"))
                    }
                    _ => Ok(true),
                }
            }
            Some(used) => Err(format!("PUBREL {id} without PUBREC, for {used:?}")),
            None => match self.completed.insert(id, place.connection) {
                Some(connection) if connection < place.connection => Ok(true),
                Some(_) => Err(format!("PUBREL {id} twice on a connection")),
                None => Err(format!("PUBREL {id} for no message")),
            },
        }
    }

    fn is_first_use(
        &self,
        delivery: &Delivery,
        place: Place,
        is_its_own: bool,
    ) -> Result<(), String> {
        // Each SUBSCRIBE brings the retained messages again.
        if delivery.retain {
            return Ok(());
        }
        let is_this = |used: &Use| {
            let is_kept = delivery.qos == 2 || (is_its_own && used.place.run == place.run);
            !used.is_doubtful
                && used.number.is_some()
                && used.number == delivery.number
                && !used.retain
                && is_kept
        };
        let other = self.in_use.iter().find(|(_, used)| is_this(used));
        other.map_or(Ok(()), |(id, used)| {
            let now = delivery.packet_id;
            Err(format!(
                "sent again as packet identifier {now}, before as {id}: {used:?}"
            ))
        })
    }

    fn take(&mut self, delivery: &Delivery, place: Place, is_its_own: bool, is_recorded: bool) {
        let used = Use {
            number: delivery.number,
            qos: delivery.qos,
            retain: delivery.retain,
            is_its_own,
            place,
            is_recorded,
            is_doubtful: false,
        };
        self.in_use.insert(delivery.packet_id, used);
    }
}
