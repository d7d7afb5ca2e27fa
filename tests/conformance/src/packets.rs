//! Correct packets of a client, byte by byte.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::bytes::{binary, block, frame, join, text, two};

/// First bytes of the packets that a client sends.
pub mod first {
    /// CONNECT.
    pub const CONNECT: u8 = 0x10;
    /// PUBLISH with `QoS` 0 and no flag.
    pub const PUBLISH: u8 = 0x30;
    /// PUBACK.
    pub const PUBACK: u8 = 0x40;
    /// PUBREC.
    pub const PUBREC: u8 = 0x50;
    /// PUBREL.
    pub const PUBREL: u8 = 0x62;
    /// PUBCOMP.
    pub const PUBCOMP: u8 = 0x70;
    /// SUBSCRIBE.
    pub const SUBSCRIBE: u8 = 0x82;
    /// UNSUBSCRIBE.
    pub const UNSUBSCRIBE: u8 = 0xA2;
    /// PINGREQ.
    pub const PINGREQ: u8 = 0xC0;
    /// DISCONNECT.
    pub const DISCONNECT: u8 = 0xE0;
    /// AUTH.
    pub const AUTH: u8 = 0xF0;
}

/// Protocol version of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// MQTT 3.1.
    V31,
    /// MQTT 3.1.1.
    V311,
    /// MQTT 5.0.
    V5,
}

impl Version {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::V31, Self::V311, Self::V5];
    /// The two that the Open standard defines.
    pub const STANDARD: [Self; 2] = [Self::V311, Self::V5];

    /// Protocol name and level in the form of CONNECT.
    pub fn protocol(self) -> Vec<u8> {
        match self {
            Self::V31 => join(&[&text("MQIsdp"), &[3]]),
            Self::V311 => join(&[&text("MQTT"), &[4]]),
            Self::V5 => join(&[&text("MQTT"), &[5]]),
        }
    }

    /// The property block with its length in 5.0, nothing before.
    pub fn properties(self, properties: &[u8]) -> Vec<u8> {
        if self == Self::V5 {
            block(properties)
        } else {
            Vec::new()
        }
    }
}

/// A name that no other test of this run uses; short enough for MQTT 3.1.
pub fn unique(prefix: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!(
        "{prefix}{}x{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// The parts of a CONNECT.
#[derive(Clone, Debug)]
pub struct Connect {
    /// Protocol version.
    pub version: Version,
    /// Client identifier.
    pub client_id: String,
    /// Clean start or clean session.
    pub clean: bool,
    /// Seconds; 0 turns it off.
    pub keep_alive: u16,
    /// Properties without their length (5.0).
    pub properties: Vec<u8>,
    /// Will, if any.
    pub will: Option<Will>,
    /// User name, if any.
    pub username: Option<String>,
    /// Password, if any.
    pub password: Option<Vec<u8>>,
}

/// The parts of a will.
#[derive(Clone, Debug)]
pub struct Will {
    /// Topic name.
    pub topic: String,
    /// Payload.
    pub payload: Vec<u8>,
    /// Quality of service.
    pub qos: u8,
    /// Retain flag.
    pub retain: bool,
    /// Properties without their length (5.0).
    pub properties: Vec<u8>,
}

impl Connect {
    /// A clean session with a fresh client identifier and no keep alive.
    pub fn new(version: Version) -> Self {
        Self {
            version,
            client_id: unique("c"),
            clean: true,
            keep_alive: 0,
            properties: Vec::new(),
            will: None,
            username: None,
            password: None,
        }
    }

    /// Another client identifier.
    #[must_use]
    pub fn client_id(mut self, client_id: &str) -> Self {
        client_id.clone_into(&mut self.client_id);
        self
    }

    /// A session that outlives the connection.
    #[must_use]
    pub fn persistent(mut self) -> Self {
        self.clean = false;
        if self.version == Version::V5 {
            // Session expiry interval of an hour.
            self.properties.extend([0x11, 0, 0, 0x0E, 0x10]);
        }
        self
    }

    /// Keep alive in seconds.
    #[must_use]
    pub fn keep_alive(mut self, seconds: u16) -> Self {
        self.keep_alive = seconds;
        self
    }

    /// More properties.
    #[must_use]
    pub fn properties(mut self, properties: &[u8]) -> Self {
        self.properties.extend(properties);
        self
    }

    /// A will.
    #[must_use]
    pub fn will(mut self, will: Will) -> Self {
        self.will = Some(will);
        self
    }

    /// User name and password.
    #[must_use]
    pub fn credentials(mut self, username: &str, password: &str) -> Self {
        self.username = Some(username.to_owned());
        self.password = Some(password.as_bytes().to_vec());
        self
    }

    /// The packet.
    pub fn bytes(&self) -> Vec<u8> {
        let will_flags = self.will.as_ref().map_or(0, |will| {
            0x04 | (will.qos << 3) | if will.retain { 0x20 } else { 0 }
        });
        let set = |is_set, flag| if is_set { flag } else { 0 };
        let flags = will_flags
            | set(self.clean, 0x02)
            | set(self.password.is_some(), 0x40)
            | set(self.username.is_some(), 0x80);
        let mut body = join(&[
            &self.version.protocol(),
            &[flags],
            &two(self.keep_alive),
            &self.version.properties(&self.properties),
            &text(&self.client_id),
        ]);
        if let Some(will) = &self.will {
            body.extend(self.version.properties(&will.properties));
            body.extend(text(&will.topic));
            body.extend(binary(&will.payload));
        }
        body.extend(self.username.iter().flat_map(|username| text(username)));
        body.extend(self.password.iter().flat_map(|password| binary(password)));
        frame(first::CONNECT, &body)
    }
}

impl Will {
    /// A will with `QoS` 1 and the payload `will`.
    pub fn new(topic: &str) -> Self {
        Self {
            topic: topic.to_owned(),
            payload: b"will".to_vec(),
            qos: 1,
            retain: false,
            properties: Vec::new(),
        }
    }
}

/// The parts of a PUBLISH.
#[derive(Clone, Debug)]
pub struct Publish {
    /// Protocol version.
    pub version: Version,
    /// Flags: DUP 8, `QoS` 2 and 4, RETAIN 1.
    pub flags: u8,
    /// Topic name.
    pub topic: String,
    /// Packet identifier, written when the quality of service is above 0.
    pub packet_id: u16,
    /// Properties without their length (5.0).
    pub properties: Vec<u8>,
    /// Payload.
    pub payload: Vec<u8>,
}

impl Publish {
    /// A message with a quality of service; packet identifier 1.
    pub fn new(version: Version, topic: &str, qos: u8, payload: &[u8]) -> Self {
        Self {
            version,
            flags: qos << 1,
            topic: topic.to_owned(),
            packet_id: 1,
            properties: Vec::new(),
            payload: payload.to_vec(),
        }
    }

    /// Another packet identifier.
    #[must_use]
    pub fn packet_id(mut self, packet_id: u16) -> Self {
        self.packet_id = packet_id;
        self
    }

    /// RETAIN.
    #[must_use]
    pub fn retain(mut self) -> Self {
        self.flags |= 1;
        self
    }

    /// DUP.
    #[must_use]
    pub fn dup(mut self) -> Self {
        self.flags |= 8;
        self
    }

    /// More properties.
    #[must_use]
    pub fn properties(mut self, properties: &[u8]) -> Self {
        self.properties.extend(properties);
        self
    }

    /// The packet.
    pub fn bytes(&self) -> Vec<u8> {
        let mut body = text(&self.topic);
        if self.flags & 0x06 != 0 {
            body.extend(two(self.packet_id));
        }
        body.extend(self.version.properties(&self.properties));
        body.extend(&self.payload);
        frame(first::PUBLISH | self.flags, &body)
    }
}

/// SUBSCRIBE with filters and their options.
pub fn subscribe(version: Version, packet_id: u16, requests: &[(&str, u8)]) -> Vec<u8> {
    subscribe_with(version, packet_id, &[], requests)
}

/// SUBSCRIBE with properties.
pub fn subscribe_with(
    version: Version,
    packet_id: u16,
    properties: &[u8],
    requests: &[(&str, u8)],
) -> Vec<u8> {
    let mut body = join(&[&two(packet_id), &version.properties(properties)]);
    for (filter, options) in requests {
        body.extend(text(filter));
        body.push(*options);
    }
    frame(first::SUBSCRIBE, &body)
}

/// UNSUBSCRIBE.
pub fn unsubscribe(version: Version, packet_id: u16, filters: &[&str]) -> Vec<u8> {
    let mut body = join(&[&two(packet_id), &version.properties(&[])]);
    for filter in filters {
        body.extend(text(filter));
    }
    frame(first::UNSUBSCRIBE, &body)
}

/// PUBACK, PUBREC, PUBREL or PUBCOMP that means success.
pub fn ack(first: u8, packet_id: u16) -> Vec<u8> {
    frame(first, &two(packet_id))
}

/// PINGREQ.
pub const PINGREQ: [u8; 2] = [first::PINGREQ, 0];
/// DISCONNECT without a reason.
pub const DISCONNECT: [u8; 2] = [first::DISCONNECT, 0];
