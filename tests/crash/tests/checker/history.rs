//! Small histories, written as a client sees them.

use thrum_crash::checker::Checker;
use thrum_crash::event::{
    ClientEvent, ClientIndex, Connect, Delivery, Disconnect, Event, MessageNumber, Millis, NEVER,
    Observed, Publish, Will,
};

/// The publisher in these histories.
pub(crate) const PUBLISHER: ClientIndex = 0;
/// The subscriber.
pub(crate) const ANNA: ClientIndex = 1;
/// The second subscriber.
pub(crate) const BEN: ClientIndex = 2;

/// A history that grows.
#[derive(Clone)]
pub(crate) struct History {
    at: Millis,
    checker: Checker,
}

impl History {
    /// The broker has started, and the publisher is there.
    pub(crate) fn new() -> Self {
        let mut history = Self {
            at: 0,
            checker: Checker::new(3),
        };
        history.event(Event::Started);
        history.meet(PUBLISHER, false);
        history
    }

    pub(crate) fn event(&mut self, event: Event) -> &mut Self {
        self.at += 1;
        self.checker.observe(&Observed { at: self.at, event });
        self
    }

    pub(crate) fn does(&mut self, client: ClientIndex, event: ClientEvent) -> &mut Self {
        self.event(Event::Client(client, event))
    }

    pub(crate) fn wait(&mut self, millis: Millis) -> &mut Self {
        self.at += millis;
        self
    }

    /// The broker is killed and starts again.
    pub(crate) fn crash(&mut self) -> &mut Self {
        self.event(Event::Killed).event(Event::Started)
    }

    /// A client with a lasting session connects.
    pub(crate) fn meet(&mut self, client: ClientIndex, present: bool) -> &mut Self {
        self.connect(client, lasting())
            .does(client, ClientEvent::Connected(present))
    }

    pub(crate) fn connect(&mut self, client: ClientIndex, connect: Connect) -> &mut Self {
        self.does(client, ClientEvent::Connecting(connect))
    }

    pub(crate) fn leave(&mut self, client: ClientIndex, ends_session: bool) -> &mut Self {
        let disconnect = Disconnect {
            with_will: false,
            ends_session,
        };
        self.does(client, ClientEvent::Disconnecting(disconnect))
            .does(client, ClientEvent::Disconnected)
    }

    pub(crate) fn subscribe(&mut self, client: ClientIndex, filter: &str, qos: u8) -> &mut Self {
        self.does(client, ClientEvent::Subscribing(filter.to_owned(), qos))
            .does(client, ClientEvent::Subscribed(filter.to_owned()))
    }

    pub(crate) fn unsubscribe(&mut self, client: ClientIndex, filter: &str) -> &mut Self {
        self.does(client, ClientEvent::Unsubscribing(filter.to_owned()))
            .does(client, ClientEvent::Unsubscribed(filter.to_owned()))
    }

    pub(crate) fn send(&mut self, number: MessageNumber, topic: &str, qos: u8) -> &mut Self {
        self.does(
            PUBLISHER,
            ClientEvent::Publishing(number, publish(topic, qos, false)),
        )
    }

    pub(crate) fn accept(&mut self, number: MessageNumber) -> &mut Self {
        self.does(PUBLISHER, ClientEvent::Accepted(number))
    }

    pub(crate) fn publish(&mut self, number: MessageNumber, topic: &str, qos: u8) -> &mut Self {
        self.send(number, topic, qos).accept(number)
    }

    pub(crate) fn get(&mut self, client: ClientIndex, delivery: &Delivery) -> &mut Self {
        self.does(client, ClientEvent::Received(delivery.clone()))
    }

    /// PUBLISH and PUBACK.
    pub(crate) fn take(&mut self, client: ClientIndex, delivery: &Delivery) -> &mut Self {
        self.get(client, delivery)
            .does(client, ClientEvent::Acknowledged(delivery.packet_id))
    }

    /// The whole handshake of `QoS` 2.
    pub(crate) fn complete(&mut self, client: ClientIndex, delivery: &Delivery) -> &mut Self {
        self.get(client, delivery)
            .does(client, ClientEvent::Recorded(delivery.packet_id))
            .does(client, ClientEvent::Released(delivery.packet_id))
    }

    /// Checks the history; each violation contains the text at its index.
    pub(crate) fn check(&mut self, expected: &[&str]) {
        self.checker.expect_waiting_wills();
        self.checker.close_epoch();
        let found: Vec<_> = self
            .checker
            .violations()
            .iter()
            .map(ToString::to_string)
            .collect();
        let is_expected = found.len() == expected.len()
            && found
                .iter()
                .zip(expected)
                .all(|(found, expected)| found.contains(expected));
        assert!(is_expected, "expected {expected:?}, found {found:#?}");
    }
}

/// A CONNECT for a session that lasts.
pub(crate) fn lasting() -> Connect {
    Connect {
        clean: false,
        expiry_secs: NEVER,
        will: None,
    }
}

/// The same with a will.
pub(crate) fn with_will(number: MessageNumber, delay: Millis) -> Connect {
    let will = Will {
        number,
        publish: publish("will/p", 2, false),
        delay,
    };
    Connect {
        will: Some(will),
        ..lasting()
    }
}

pub(crate) fn publish(topic: &str, qos: u8, retain: bool) -> Publish {
    Publish {
        topic: topic.to_owned(),
        qos,
        retain,
        is_empty: false,
    }
}

/// A PUBLISH of the broker; its packet identifier is the number of the message.
pub(crate) fn delivery(number: MessageNumber, topic: &str, qos: u8) -> Delivery {
    Delivery {
        number: Some(number),
        topic: topic.to_owned(),
        qos,
        retain: false,
        dup: false,
        packet_id: u16::try_from(number).expect("numbers of stories are small"),
    }
}

/// The same, sent again.
pub(crate) fn again(delivery: &Delivery) -> Delivery {
    Delivery {
        dup: true,
        ..delivery.clone()
    }
}
