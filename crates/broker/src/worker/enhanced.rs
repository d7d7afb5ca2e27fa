//! Enhanced authentication of clients that are not in yet: the steps between CONNECT and CONNACK.

use thrum_access::Exchange;
use thrum_codec::ReasonCode;
use thrum_codec::packet::Packet;
use thrum_protocol::Violation;
use thrum_protocol::server::{AuthenticationStep, Handshake};

use super::admission::{Awaited, Claim, Pending};
use super::answers::AnswerTo;
use super::input::Next;
use super::lifecycle::Ending;
use super::{Target, Worker};
use crate::connection::Phase;
use crate::ids::ConnectionKey;
use crate::metrics::Counter;

impl Worker {
    /// The client has to take a step of enhanced authentication.
    pub(super) fn challenge(
        &mut self,
        key: ConnectionKey,
        (mut handshake, claim): (Handshake, Claim),
        data: &[u8],
        exchange: Exchange,
    ) {
        if let Err(violation) = handshake.challenge(data, self.local.output(key)) {
            self.refuse_pending(key, (&handshake, claim.username()), &violation);
            return;
        }
        let connection = &mut self.local.connections[key];
        let partial = connection.partial.take();
        let target = Target::Connection(connection.id(key));
        let deadline = self.local.now.plus(self.local.settings.connect_timeout);
        self.timers.insert(deadline, target);
        let pending = Pending {
            handshake,
            awaited: Awaited::Step(claim, exchange),
            deadline,
        };
        connection.phase = Phase::Challenged(Some(Box::new(pending)));
        self.local.wrote(key);
        self.go_on_reading(key, &partial);
    }

    /// A packet of a client whose step is awaited.
    pub(super) fn challenged(
        &mut self,
        key: ConnectionKey,
        packet: &Packet<'_>,
        rest: &[u8],
    ) -> Next {
        let Some(Pending {
            mut handshake,
            awaited: Awaited::Step(claim, exchange),
            ..
        }) = self.local.connections[key].take_pending()
        else {
            self.lost(key, Ending::ClosedByPeer);
            return Next::Stop;
        };
        match handshake.authentication_step(packet) {
            Err(violation) => {
                self.local.row().add(Counter::Violations, 1);
                self.refuse_pending(key, (&handshake, claim.username()), &violation);
            }
            Ok(AuthenticationStep::Disconnected) => self.lost(key, Ending::Disconnected),
            Ok(AuthenticationStep::Data(data)) => {
                let Some(gatekeeper) = self.local.settings.access.access.gatekeeper.clone() else {
                    let what = "enhanced authentication is no longer set up";
                    let violation = Violation::new(ReasonCode::BadAuthenticationMethod, what);
                    self.refuse_pending(key, (&handshake, claim.username()), &violation);
                    return Next::Stop;
                };
                let connection = self.hold(key, (handshake, Awaited::Answer(claim)), rest);
                let reply = self.reply(AnswerTo::Connection(connection));
                gatekeeper.step(exchange, data.to_vec(), reply);
            }
        }
        Next::Stop
    }
}
