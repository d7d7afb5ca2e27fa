//! Every property in every packet: where it belongs and where not, twice, out of range, cut short.

use crate::bytes::{binary, block, frame, join, text, two, user_property};
use crate::case::{Case, Expect};
use crate::corpus::{MALFORMED, MALFORMED_OR_PROTOCOL, PROTOCOL};
use crate::packets::{Version, first, unique};

/// The places that a client sends properties in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Connect,
    Will,
    Publish,
    PubAck,
    PubRec,
    PubRel,
    PubComp,
    Subscribe,
    Unsubscribe,
    Disconnect,
    Auth,
}

use Place::{
    Auth, Connect, Disconnect, PubAck, PubComp, PubRec, PubRel, Publish, Subscribe, Unsubscribe,
    Will,
};

const PLACES: [Place; 11] = [
    Connect,
    Will,
    Publish,
    PubAck,
    PubRec,
    PubRel,
    PubComp,
    Subscribe,
    Unsubscribe,
    Disconnect,
    Auth,
];

/// A property of the specification.
struct Property {
    identifier: u8,
    name: &'static str,
    /// A right value.
    value: Vec<u8>,
    /// The packets in which a client may send it.
    places: &'static [Place],
    /// Values that are forbidden, with the reasons.
    forbidden: Vec<(Vec<u8>, &'static [u8])>,
}

fn property(
    identifier: u8,
    name: &'static str,
    value: &[u8],
    places: &'static [Place],
) -> Property {
    Property {
        identifier,
        name,
        value: value.to_vec(),
        places,
        forbidden: Vec::new(),
    }
}

impl Property {
    fn forbids(mut self, value: &[u8], reasons: &'static [u8]) -> Self {
        self.forbidden.push((value.to_vec(), reasons));
        self
    }

    /// Anything but 0 and 1.
    fn boolean(self) -> Self {
        self.forbids(&[2], PROTOCOL).forbids(&[255], PROTOCOL)
    }
}

/// A topic name where none with wildcards may be: no reason code is named for it.
const TOPIC: &[u8] = &[0x81, 0x82, 0x90];

fn of_messages() -> Vec<Property> {
    vec![
        property(0x01, "payload format indicator", &[1], &[Publish, Will])
            .forbids(&[2], MALFORMED_OR_PROTOCOL)
            .forbids(&[255], MALFORMED_OR_PROTOCOL),
        property(
            0x02,
            "message expiry interval",
            &[0, 0, 0, 9],
            &[Publish, Will],
        ),
        property(0x03, "content type", &text("text"), &[Publish, Will]),
        property(0x08, "response topic", &text("answer"), &[Publish, Will])
            .forbids(&text("answer/+"), TOPIC)
            .forbids(&text("#"), TOPIC),
        property(
            0x09,
            "correlation data",
            &binary(&[0, 255]),
            &[Publish, Will],
        ),
        property(0x18, "will delay interval", &[0, 0, 0, 0], &[Will]),
        // [MQTT-3.3.2-8] an alias is not zero
        property(0x23, "topic alias", &two(1), &[Publish]).forbids(&two(0), &[0x81, 0x82, 0x94]),
        property(0x0B, "subscription identifier", &[1], &[Subscribe])
            .forbids(&[0], PROTOCOL)
            // [MQTT-1.5.5-1] five bytes, and two where one would do
            .forbids(&[0x80, 0x80, 0x80, 0x80, 0x01], MALFORMED)
            .forbids(&[0x81, 0x00], MALFORMED),
    ]
}

fn of_connections() -> Vec<Property> {
    vec![
        property(
            0x11,
            "session expiry interval",
            &[0, 0, 0, 0],
            &[Connect, Disconnect],
        ),
        property(
            0x15,
            "authentication method",
            &text("method"),
            &[Connect, Auth],
        ),
        property(0x16, "authentication data", &binary(&[1]), &[Connect, Auth]),
        property(0x17, "request problem information", &[1], &[Connect]).boolean(),
        property(0x19, "request response information", &[1], &[Connect]).boolean(),
        property(0x21, "receive maximum", &two(10), &[Connect]).forbids(&two(0), PROTOCOL),
        property(0x22, "topic alias maximum", &two(10), &[Connect]),
        property(0x27, "maximum packet size", &[0, 1, 0, 0], &[Connect])
            .forbids(&[0, 0, 0, 0], PROTOCOL),
        property(
            0x1F,
            "reason string",
            &text("why"),
            &[PubAck, PubRec, PubRel, PubComp, Disconnect, Auth],
        ),
        property(0x1C, "server reference", &text("other"), &[]),
        property(0x12, "assigned client identifier", &text("id"), &[]),
        property(0x13, "server keep alive", &two(9), &[]),
        property(0x1A, "response information", &text("r"), &[]),
        property(0x24, "maximum QoS", &[1], &[]),
        property(0x25, "retain available", &[1], &[]),
        property(0x28, "wildcard subscription available", &[1], &[]),
        property(0x29, "subscription identifier available", &[1], &[]),
        property(0x2A, "shared subscription available", &[1], &[]),
    ]
}

fn user() -> Property {
    let value = user_property("key", "value")
        .get(1..)
        .unwrap_or_default()
        .to_vec();
    property(0x26, "user property", &value, &PLACES)
}

/// The packet with this property block, correct but for the block.
fn packet(place: Place, properties: &[u8]) -> Vec<u8> {
    let block = block(properties);
    let with_id = |rest: &[u8]| join(&[&two(7), rest]);
    let acked = || with_id(&join(&[&[0], &block]));
    match place {
        Connect => {
            let body = join(&[
                &Version::V5.protocol(),
                &[2],
                &two(0),
                &block,
                &text(&unique("p")),
            ]);
            frame(first::CONNECT, &body)
        }
        Will => {
            let head = join(&[
                &Version::V5.protocol(),
                &[6],
                &two(0),
                &[0],
                &text(&unique("p")),
            ]);
            frame(
                first::CONNECT,
                &join(&[&head, &block, &text("spoiled/w"), &text("w")]),
            )
        }
        Publish => frame(first::PUBLISH, &join(&[&text("spoiled/p"), &block])),
        PubAck => frame(first::PUBACK, &acked()),
        PubRec => frame(first::PUBREC, &acked()),
        PubRel => frame(first::PUBREL, &acked()),
        PubComp => frame(first::PUBCOMP, &acked()),
        Subscribe => frame(
            first::SUBSCRIBE,
            &with_id(&join(&[&block, &text("spoiled/s"), &[0]])),
        ),
        Unsubscribe => frame(
            first::UNSUBSCRIBE,
            &with_id(&join(&[&block, &text("spoiled/s")])),
        ),
        Disconnect => frame(first::DISCONNECT, &join(&[&[0], &block])),
        Auth => frame(first::AUTH, &join(&[&[0x19], &block])),
    }
}

fn case(place: Place, what: &str, properties: &[u8], expect: Expect) -> Case {
    let bytes = packet(place, properties);
    let name = format!("{place:?} with {what}");
    if matches!(place, Connect | Will) {
        Case::first(name, Version::V5, bytes, expect)
    } else {
        Case::connected(name, Version::V5, bytes, expect)
    }
}

fn refused(place: Place, reasons: &'static [u8]) -> Expect {
    // An AUTH is forbidden in itself when CONNECT named no method.
    Expect::Refused(if place == Auth {
        MALFORMED_OR_PROTOCOL
    } else {
        reasons
    })
}

fn encoded(property: &Property) -> Vec<u8> {
    join(&[&[property.identifier], &property.value])
}

fn accepted(place: Place, property: &Property) -> Expect {
    match (place, property.name) {
        // No method is configured.
        (Connect, "authentication method") => Expect::Refused(&[0x8C, 0x87]),
        (Connect, "authentication data") => Expect::Refused(PROTOCOL),
        (Auth, _) => Expect::Refused(MALFORMED_OR_PROTOCOL),
        (Disconnect, _) => Expect::Closed,
        (PubAck | PubRec | PubComp, _) => Expect::LivesOrRefused(PROTOCOL),
        _ => Expect::Lives,
    }
}

fn misplaced(place: Place, property: &Property) -> Expect {
    match (place, property.name) {
        // Only a server sends it, in a packet that both send.
        (Disconnect, "server reference") => Expect::ClosedSomehow,
        // [MQTT-3.3.4-6] only a server sends it, in a packet that both send
        (Publish, "subscription identifier") => Expect::Refused(MALFORMED_OR_PROTOCOL),
        // 2.2.2.2: an identifier that is not valid for its packet type
        _ => refused(place, MALFORMED),
    }
}

/// All cases about properties.
pub fn properties() -> Vec<Case> {
    let mut cases = Vec::new();
    let all = of_messages()
        .into_iter()
        .chain(of_connections())
        .chain([user()]);
    for property in all {
        for place in PLACES {
            cases.extend(of_property(place, &property));
        }
    }
    for place in PLACES {
        cases.extend(of_blocks(place));
    }
    cases
}

fn of_property(place: Place, property: &Property) -> Vec<Case> {
    let name = property.name;
    let once = encoded(property);
    if !property.places.contains(&place) {
        let what = format!("the misplaced {name}");
        return vec![case(place, &what, &once, misplaced(place, property))];
    }
    let mut cases = vec![case(place, name, &once, accepted(place, property))];
    let twice = if name == "user property" {
        accepted(place, property)
    } else {
        refused(place, PROTOCOL)
    };
    cases.push(case(
        place,
        &format!("{name} twice"),
        &join(&[&once, &once]),
        twice,
    ));
    for (value, reasons) in &property.forbidden {
        let what = format!("{name} of {value:02x?}");
        let expect = refused(place, reasons);
        cases.push(case(
            place,
            &what,
            &join(&[&[property.identifier], value]),
            expect,
        ));
    }
    for length in 1..once.len() {
        let part = once.get(..length).unwrap_or_default();
        let what = format!("{name} cut to {length} of {} bytes", once.len());
        cases.push(case(place, &what, part, refused(place, MALFORMED)));
    }
    cases
}

fn of_blocks(place: Place) -> Vec<Case> {
    let mut cases = Vec::new();
    let unknown = [
        0x00, 0x04, 0x05, 0x06, 0x07, 0x0A, 0x0C, 0x10, 0x14, 0x1B, 0x1D, 0x20, 0x2B, 0x7F,
    ];
    for identifier in unknown {
        let what = format!("the unknown property {identifier:#04x}");
        cases.push(case(
            place,
            &what,
            &[identifier, 0, 0, 0, 0],
            refused(place, MALFORMED),
        ));
    }
    let what = "a property identifier of two bytes".to_owned();
    cases.push(case(
        place,
        &what,
        &[0xA6, 0x01, 0, 0, 0, 0],
        refused(place, MALFORMED),
    ));
    cases.push(overlong_length(place));
    cases
}

/// The property length of a correct packet without properties, encoded in two bytes.
fn overlong_length(place: Place) -> Case {
    let right = packet(place, &user_property("", ""));
    let block = block(&user_property("", ""));
    let position = right
        .windows(block.len())
        .position(|window| window == block)
        .expect("the packet has the block");
    let mut body = right.get(2..position).unwrap_or_default().to_vec();
    // [MQTT-1.5.5-1] 5 in two bytes
    body.extend([0x85, 0x00]);
    body.extend(right.get(position + 1..).unwrap_or_default());
    let name = format!("{place:?} with a property length longer than it needs to be");
    let bytes = frame(right.first().copied().unwrap_or_default(), &body);
    let connected = !matches!(place, Connect | Will);
    Case {
        name,
        version: Version::V5,
        connected,
        bytes,
        expect: refused(place, MALFORMED),
    }
}
