//! A correct packet of each kind, and where it could have ended earlier.

use crate::bytes::{block, join, text, two, user_property};
use crate::case::Expect;
use crate::corpus::{MALFORMED, MALFORMED_OR_PROTOCOL, PROTOCOL};
use crate::packets::{Version, first, unique};

/// A correct packet.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) name: &'static str,
    pub(crate) version: Version,
    /// Whether it follows the handshake.
    pub(crate) connected: bool,
    pub(crate) first: u8,
    pub(crate) body: Vec<u8>,
    /// Shorter bodies that are whole packets too.
    pub(crate) whole_at: Vec<usize>,
    /// Shorter bodies that are well formed but forbidden, so that the reason is another one.
    pub(crate) forbidden_at: Vec<usize>,
    /// The expected result.
    pub(crate) expect: Expect,
}

impl Sample {
    /// The required reaction to the body when it is corrupted and at most `read` bytes are valid.
    pub(crate) fn refusal(&self, read: usize) -> Expect {
        if self.first == first::CONNECT && self.version != Version::V5 {
            return Expect::Closed;
        }
        // Before the level is known, the form of the answer is undefined.
        if self.first == first::CONNECT && read < self.version.protocol().len() {
            return Expect::ClosedSomehow;
        }
        if self.first == first::AUTH {
            // Without a method any AUTH is forbidden; either fault may be seen first.
            return Expect::Refused(MALFORMED_OR_PROTOCOL);
        }
        Expect::Refused(MALFORMED)
    }
}

/// All samples of a version.
pub(crate) fn samples(version: Version) -> Vec<Sample> {
    let mut samples = vec![connect(version), publish(version, 0), publish(version, 1)];
    samples.push(publish(version, 2));
    samples.extend(acknowledgements(version));
    samples.extend([subscribe(version), unsubscribe(version)]);
    samples.push(sample("PINGREQ", version, first::PINGREQ, Vec::new()));
    samples.push(disconnect(version));
    if version == Version::V5 {
        samples.push(auth());
    }
    samples
}

fn sample(name: &'static str, version: Version, first: u8, body: Vec<u8>) -> Sample {
    Sample {
        name,
        version,
        connected: true,
        first,
        body,
        whole_at: Vec::new(),
        forbidden_at: Vec::new(),
        expect: Expect::Lives,
    }
}

fn connect(version: Version) -> Sample {
    let body = join(&[
        &version.protocol(),
        // User name, password, will with QoS 1, clean.
        &[0xCE],
        &two(60),
        &version.properties(&user_property("k", "v")),
        &text(&unique("s")),
        &version.properties(&user_property("k", "v")),
        &text(&unique("spoiled/will/")),
        &text("payload"),
        &text("user"),
        &text("password"),
    ]);
    // 3.1 accepts a CONNECT that ends before the user name or the password it announced.
    let whole_at = match version {
        Version::V31 => {
            let before_password = body.len() - text("password").len();
            vec![before_password - text("user").len(), before_password]
        }
        _ => Vec::new(),
    };
    Sample {
        connected: false,
        whole_at,
        ..sample("CONNECT", version, first::CONNECT, body)
    }
}

fn publish(version: Version, qos: u8) -> Sample {
    let name = ["PUBLISH QoS 0", "PUBLISH QoS 1", "PUBLISH QoS 2"][usize::from(qos)];
    let mut body = text("spoiled/topic");
    if qos > 0 {
        body.extend(two(77));
    }
    body.extend(version.properties(&user_property("k", "v")));
    sample(name, version, first::PUBLISH | (qos << 1), body)
}

fn acknowledgements(version: Version) -> Vec<Sample> {
    let kinds = [
        ("PUBACK", first::PUBACK),
        ("PUBREC", first::PUBREC),
        ("PUBREL", first::PUBREL),
        ("PUBCOMP", first::PUBCOMP),
    ];
    let sample_of = |(name, first)| {
        if version != Version::V5 {
            return sample(name, version, first, two(77));
        }
        let body = join(&[&two(77), &[0], &block(&user_property("k", "v"))]);
        Sample {
            whole_at: vec![2, 3],
            // No message with this identifier was sent: a mismatch, or only a late answer.
            expect: Expect::LivesOrRefused(PROTOCOL),
            ..sample(name, version, first, body)
        }
    };
    kinds.map(sample_of).into()
}

fn subscribe(version: Version) -> Sample {
    let head = join(&[&two(77), &version.properties(&user_property("k", "v"))]);
    let one = join(&[&head, &text("spoiled/a"), &[1]]);
    let body = join(&[&one, &text("spoiled/+"), &[2]]);
    Sample {
        whole_at: vec![one.len()],
        forbidden_at: vec![head.len()],
        ..sample("SUBSCRIBE", version, first::SUBSCRIBE, body)
    }
}

fn unsubscribe(version: Version) -> Sample {
    let head = join(&[&two(77), &version.properties(&user_property("k", "v"))]);
    let one = join(&[&head, &text("spoiled/a")]);
    let body = join(&[&one, &text("spoiled/+")]);
    Sample {
        whole_at: vec![one.len()],
        forbidden_at: vec![head.len()],
        ..sample("UNSUBSCRIBE", version, first::UNSUBSCRIBE, body)
    }
}

fn disconnect(version: Version) -> Sample {
    let body = if version == Version::V5 {
        join(&[&[0], &block(&user_property("k", "v"))])
    } else {
        Vec::new()
    };
    Sample {
        whole_at: if version == Version::V5 {
            vec![0, 1]
        } else {
            Vec::new()
        },
        expect: Expect::Closed,
        ..sample("DISCONNECT", version, first::DISCONNECT, body)
    }
}

fn auth() -> Sample {
    let properties = join(&[&[0x15], &text("method"), &user_property("k", "v")]);
    let body = join(&[&[0x19], &block(&properties)]);
    Sample {
        whole_at: vec![0],
        expect: Expect::Refused(PROTOCOL),
        ..sample("AUTH", Version::V5, first::AUTH, body)
    }
}
