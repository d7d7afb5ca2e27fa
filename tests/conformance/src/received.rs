//! Packets of the broker, parsed by hand.

use std::fmt;

use crate::bytes::hex;
use crate::packets::Version;

/// One whole packet.
#[derive(Clone, PartialEq, Eq)]
pub struct Packet {
    /// Type and flags.
    pub first: u8,
    /// Everything after the fixed header.
    pub body: Vec<u8>,
}

impl fmt::Debug for Packet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 16] = [
            "RESERVED",
            "CONNECT",
            "CONNACK",
            "PUBLISH",
            "PUBACK",
            "PUBREC",
            "PUBREL",
            "PUBCOMP",
            "SUBSCRIBE",
            "SUBACK",
            "UNSUBSCRIBE",
            "UNSUBACK",
            "PINGREQ",
            "PINGRESP",
            "DISCONNECT",
            "AUTH",
        ];
        let name = NAMES.get(usize::from(self.first >> 4)).unwrap_or(&"?");
        write!(formatter, "{name}({:02x}: {})", self.first, hex(&self.body))
    }
}

/// Values of a property block in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties(pub Vec<(u8, Value)>);

/// One value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Byte, two or four byte integer, or variable byte integer.
    Number(u32),
    /// String or binary data.
    Bytes(Vec<u8>),
    /// Two strings.
    Pair(Vec<u8>, Vec<u8>),
}

impl Properties {
    /// The first number with this identifier.
    pub fn number(&self, identifier: u8) -> Option<u32> {
        self.numbers(identifier).first().copied()
    }

    /// All numbers with this identifier.
    pub fn numbers(&self, identifier: u8) -> Vec<u32> {
        let number = |(id, value): &(u8, Value)| match value {
            Value::Number(number) if *id == identifier => Some(*number),
            _ => None,
        };
        self.0.iter().filter_map(number).collect()
    }

    /// The first string or binary value with this identifier.
    pub fn bytes(&self, identifier: u8) -> Option<&[u8]> {
        self.0.iter().find_map(|(id, value)| match value {
            Value::Bytes(bytes) if *id == identifier => Some(bytes.as_slice()),
            _ => None,
        })
    }

    /// User properties in order.
    pub fn user(&self) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let pair = |(_, value): &(u8, Value)| match value {
            Value::Pair(key, value) => Some((text(key), text(value))),
            _ => None,
        };
        self.0.iter().filter_map(pair).collect()
    }
}

/// A PUBLISH taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publish {
    /// Sent before.
    pub dup: bool,
    /// Quality of service.
    pub qos: u8,
    /// Retain flag.
    pub retain: bool,
    /// Topic name.
    pub topic: String,
    /// Packet identifier; 0 with `QoS` 0.
    pub packet_id: u16,
    /// Properties; none before 5.0.
    pub properties: Properties,
    /// Payload.
    pub payload: Vec<u8>,
}

/// A CONNACK taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnAck {
    /// Session present.
    pub session_present: bool,
    /// Return code or reason code.
    pub code: u8,
    /// Properties; none before 5.0.
    pub properties: Properties,
}

/// PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK or UNSUBACK taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Packet identifier.
    pub packet_id: u16,
    /// Reason codes; an acknowledgement that is cut short has the one for success.
    pub codes: Vec<u8>,
}

impl Packet {
    /// The packet type, 1 to 15.
    pub fn kind(&self) -> u8 {
        self.first >> 4
    }

    /// As PUBLISH.
    ///
    /// # Panics
    /// It is not one, or not well formed.
    pub fn publish(&self, version: Version) -> Publish {
        assert_eq!(self.kind(), 3, "PUBLISH expected, got {self:?}");
        let qos = (self.first >> 1) & 3;
        assert_ne!(qos, 3, "QoS 3 sent: {self:?}");
        let mut reader = Reader(&self.body);
        let topic = String::from_utf8(reader.binary()).expect("topic is UTF-8");
        let packet_id = if qos == 0 { 0 } else { reader.two() };
        Publish {
            dup: self.first & 8 != 0,
            qos,
            retain: self.first & 1 != 0,
            topic,
            packet_id,
            properties: reader.properties(version),
            payload: reader.0.to_vec(),
        }
    }

    /// As CONNACK.
    ///
    /// # Panics
    /// It is not one, or not well formed.
    pub fn connack(&self, version: Version) -> ConnAck {
        assert_eq!(self.first, 0x20, "CONNACK expected, got {self:?}");
        let mut reader = Reader(&self.body);
        let flags = reader.byte();
        assert_eq!(flags & 0xFE, 0, "reserved flags are zero");
        let code = reader.byte();
        let properties = reader.properties(version);
        assert!(reader.0.is_empty(), "CONNACK has trailing bytes: {self:?}");
        ConnAck {
            session_present: flags == 1,
            code,
            properties,
        }
    }

    /// As an acknowledgement of a publish or a subscription.
    ///
    /// # Panics
    /// It is not well formed.
    pub fn ack(&self, version: Version) -> Ack {
        let mut reader = Reader(&self.body);
        let packet_id = reader.two();
        let subscription = matches!(self.kind(), 9 | 11);
        if subscription {
            reader.properties(version);
            return Ack {
                packet_id,
                codes: reader.0.to_vec(),
            };
        }
        assert!(
            version == Version::V5 || reader.0.is_empty(),
            "3.x has no reason: {self:?}"
        );
        let code = if reader.0.is_empty() {
            0
        } else {
            reader.byte()
        };
        if !reader.0.is_empty() {
            reader.properties(version);
        }
        assert!(
            reader.0.is_empty(),
            "acknowledgement has trailing bytes: {self:?}"
        );
        Ack {
            packet_id,
            codes: vec![code],
        }
    }

    /// The reason code of a 5.0 CONNACK or DISCONNECT.
    pub fn reason(&self) -> Option<u8> {
        match self.kind() {
            2 => self.body.get(1).copied(),
            14 => Some(self.body.first().copied().unwrap_or(0)),
            _ => None,
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take(&mut self, count: usize) -> Vec<u8> {
        let (head, tail) = self
            .0
            .split_at_checked(count)
            .expect("the broker sent a whole field");
        self.0 = tail;
        head.to_vec()
    }

    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().expect("one byte was taken")
    }

    fn two(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    fn four(&mut self) -> u32 {
        u32::from_be_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    fn variable(&mut self) -> u32 {
        let mut value = 0;
        for shift in [0, 7, 14, 21] {
            let byte = self.byte();
            value |= u32::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return value;
            }
        }
        panic!("the broker sent a variable byte integer of more than four bytes");
    }

    fn binary(&mut self) -> Vec<u8> {
        let length = self.two();
        self.take(usize::from(length))
    }

    fn properties(&mut self, version: Version) -> Properties {
        if version != Version::V5 {
            return Properties::default();
        }
        let length = usize::try_from(self.variable()).expect("lengths fit");
        let block = self.take(length);
        let mut reader = Reader(&block);
        let mut found = Vec::new();
        while !reader.0.is_empty() {
            let identifier = reader.byte();
            let value = match identifier {
                0x01 | 0x17 | 0x19 | 0x24 | 0x25 | 0x28 | 0x29 | 0x2A => {
                    Value::Number(u32::from(reader.byte()))
                }
                0x13 | 0x21 | 0x22 | 0x23 => Value::Number(u32::from(reader.two())),
                0x02 | 0x11 | 0x18 | 0x27 => Value::Number(reader.four()),
                0x0B => Value::Number(reader.variable()),
                0x03 | 0x08 | 0x09 | 0x12 | 0x15 | 0x16 | 0x1A | 0x1C | 0x1F => {
                    Value::Bytes(reader.binary())
                }
                0x26 => Value::Pair(reader.binary(), reader.binary()),
                _ => panic!("the broker sent the unknown property {identifier:#04x}"),
            };
            found.push((identifier, value));
        }
        Properties(found)
    }
}
