//! Property blocks: identifiers in the wrong packet, twice, out of range or truncated.

use thrum_codec::DecodeError;

use super::{FIVE, TRUNCATED, accept, malformed, protocol, refuse, variable};

/// A property with a valid value.
type Sample = (u8, &'static [u8]);

const SAMPLES: [Sample; 27] = [
    (0x01, b"\x01"),
    (0x02, b"\x00\x00\x00\x01"),
    (0x03, b"\x00\x01c"),
    (0x08, b"\x00\x01r"),
    (0x09, b"\x00\x01\xFF"),
    (0x0B, b"\x01"),
    (0x11, b"\x00\x00\x00\x01"),
    (0x12, b"\x00\x01i"),
    (0x13, b"\x00\x01"),
    (0x15, b"\x00\x01m"),
    (0x16, b"\x00\x01\xFF"),
    (0x17, b"\x00"),
    (0x18, b"\x00\x00\x00\x01"),
    (0x19, b"\x01"),
    (0x1A, b"\x00\x01i"),
    (0x1C, b"\x00\x01o"),
    (0x1F, b"\x00\x01s"),
    (0x21, b"\x00\x01"),
    (0x22, b"\x00\x00"),
    (0x23, b"\x00\x01"),
    (0x24, b"\x01"),
    (0x25, b"\x01"),
    (0x26, b"\x00\x01k\x00\x01v"),
    (0x27, b"\x00\x00\x00\x01"),
    (0x28, b"\x01"),
    (0x29, b"\x00"),
    (0x2A, b"\x01"),
];

/// A position in a packet that has a property block.
struct Place {
    first: u8,
    before: &'static [u8],
    after: &'static [u8],
    /// Identifiers of table 2-4 that are allowed here.
    allowed: &'static [u8],
    /// Identifiers that are allowed more than once.
    repeatable: &'static [u8],
    /// A property that must come first: AUTH must name its method, and so must a CONNECT with data.
    needed: &'static [u8],
}

const METHOD: &[u8] = b"\x15\x00\x01m";
const OF_ACKS: &[u8] = &[0x1F, 0x26];

const fn answer(first: u8, before: &'static [u8], after: &'static [u8]) -> Place {
    Place {
        first,
        before,
        after,
        allowed: OF_ACKS,
        repeatable: &[0x26],
        needed: b"",
    }
}

const PLACES: [Place; 13] = [
    Place {
        first: 0x10,
        before: b"\x00\x04MQTT\x05\x02\x00\x00",
        after: b"\x00\x00",
        allowed: &[0x11, 0x15, 0x16, 0x17, 0x19, 0x21, 0x22, 0x26, 0x27],
        repeatable: &[0x26],
        needed: METHOD,
    },
    // The will.
    Place {
        first: 0x10,
        before: b"\x00\x04MQTT\x05\x06\x00\x00\x00\x00\x00",
        after: b"\x00\x01w\x00\x00",
        allowed: &[0x01, 0x02, 0x03, 0x08, 0x09, 0x18, 0x26],
        repeatable: &[0x26],
        needed: b"",
    },
    Place {
        first: 0x20,
        before: b"\x00\x00",
        after: b"",
        allowed: &[
            0x11, 0x12, 0x13, 0x15, 0x16, 0x1A, 0x1C, 0x1F, 0x21, 0x22, 0x24, 0x25, 0x26, 0x27,
            0x28, 0x29, 0x2A,
        ],
        repeatable: &[0x26],
        needed: b"",
    },
    Place {
        first: 0x30,
        before: b"\x00\x01t",
        after: b"payload",
        allowed: &[0x01, 0x02, 0x03, 0x08, 0x09, 0x0B, 0x23, 0x26],
        repeatable: &[0x0B, 0x26],
        needed: b"",
    },
    answer(0x40, b"\x00\x01\x00", b""),
    answer(0x50, b"\x00\x01\x00", b""),
    answer(0x62, b"\x00\x01\x00", b""),
    answer(0x70, b"\x00\x01\x00", b""),
    answer(0x90, b"\x00\x01", b"\x00"),
    answer(0xB0, b"\x00\x01", b"\x00"),
    Place {
        first: 0x82,
        before: b"\x00\x01",
        after: b"\x00\x01a\x00",
        allowed: &[0x0B, 0x26],
        repeatable: &[0x26],
        needed: b"",
    },
    Place {
        first: 0xA2,
        before: b"\x00\x01",
        after: b"\x00\x01a",
        allowed: &[0x26],
        repeatable: &[0x26],
        needed: b"",
    },
    Place {
        first: 0xE0,
        before: b"\x00",
        after: b"",
        allowed: &[0x11, 0x1C, 0x1F, 0x26],
        repeatable: &[0x26],
        needed: b"",
    },
];

const AUTH: Place = Place {
    first: 0xF0,
    before: b"\x18",
    after: b"",
    allowed: &[0x15, 0x16, 0x1F, 0x26],
    repeatable: &[0x26],
    needed: METHOD,
};

fn places() -> impl Iterator<Item = &'static Place> {
    PLACES.iter().chain([&AUTH])
}

impl Place {
    fn body(&self, block: &[u8]) -> Vec<u8> {
        [self.before, &variable(block.len()), block, self.after].concat()
    }

    #[track_caller]
    fn refuse(&self, block: &[u8], error: DecodeError) {
        refuse(FIVE, &[(self.first, &self.body(block), error)]);
    }

    #[track_caller]
    fn accept(&self, block: &[u8]) {
        accept(FIVE, self.first, &self.body(block));
    }

    fn allows(&self, identifier: u8) -> bool {
        self.allowed.contains(&identifier)
    }

    /// The property that must precede this one.
    fn needed_by(&self, identifier: u8) -> &'static [u8] {
        if identifier == 0x15 { b"" } else { self.needed }
    }
}

fn bytes_of((identifier, value): Sample) -> Vec<u8> {
    [&[identifier], value].concat()
}

#[test]
fn properties_only_where_the_specification_has_them() {
    for place in places() {
        for sample in SAMPLES {
            let block = [place.needed_by(sample.0), &bytes_of(sample)].concat();
            if place.allows(sample.0) {
                place.accept(&block);
            } else {
                place.refuse(&block, malformed("property that this packet cannot have"));
            }
        }
    }
}

#[test]
fn identifiers_that_do_not_exist() {
    let error = malformed("property that this packet cannot have");
    for place in places() {
        for identifier in 0..=u8::MAX {
            if SAMPLES.iter().all(|sample| sample.0 != identifier) {
                place.refuse(&[identifier, 0, 0, 0, 0], error);
            }
        }
        // Known, but in two bytes: not the shortest form.
        place.refuse(b"\xA6\x00\x00\x00\x00\x00", error);
    }
}

#[test]
fn properties_that_occur_twice() {
    for place in places() {
        for sample in SAMPLES.into_iter().filter(|sample| place.allows(sample.0)) {
            let once = bytes_of(sample);
            let block = [place.needed_by(sample.0), &once, &once].concat();
            if place.repeatable.contains(&sample.0) {
                place.accept(&block);
            } else {
                place.refuse(&block, protocol("property more than once"));
            }
        }
    }
}

#[test]
fn properties_that_are_truncated() {
    for place in places() {
        for sample in SAMPLES.into_iter().filter(|sample| place.allows(sample.0)) {
            let whole = bytes_of(sample);
            for end in 1..whole.len() {
                // The block ends within the property, regardless of the bytes after it.
                place.refuse(
                    &[place.needed_by(sample.0), &whole[..end]].concat(),
                    TRUNCATED,
                );
            }
        }
    }
}

#[test]
fn flags_that_are_neither_0_nor_1() {
    let error = protocol("property that is neither 0 nor 1");
    for place in places() {
        let flags = [0x01, 0x17, 0x19, 0x24, 0x25, 0x28, 0x29, 0x2A];
        for identifier in flags
            .into_iter()
            .filter(|identifier| place.allows(*identifier))
        {
            place.accept(&[identifier, 0]);
            place.accept(&[identifier, 1]);
            for value in 2..=u8::MAX {
                place.refuse(&[identifier, value], error);
            }
        }
    }
}

#[test]
fn numbers_that_must_not_be_0() {
    let error = protocol("property that is 0");
    for place in places() {
        for identifier in [0x21, 0x23] {
            if place.allows(identifier) {
                place.refuse(&[identifier, 0, 0], error);
                place.accept(&[identifier, 0xFF, 0xFF]);
            }
        }
        if place.allows(0x27) {
            place.refuse(b"\x27\x00\x00\x00\x00", error);
            place.accept(b"\x27\xFF\xFF\xFF\xFF");
        }
        if place.allows(0x0B) {
            place.refuse(b"\x0B\x00", protocol("subscription identifier 0"));
            place.accept(b"\x0B\xFF\xFF\xFF\x7F");
        }
    }
}

/// [MQTT-1.5.5-1]
#[test]
fn variable_byte_integers_not_in_their_shortest_form() {
    let error = malformed("variable byte integer not in its shortest form");
    let too_long = malformed("variable byte integer over four bytes");
    for place in places() {
        for len in [&b"\x80\x00"[..], b"\x80\x80\x00", b"\x80\x80\x80\x00"] {
            let body = [place.before, len, place.after].concat();
            refuse(FIVE, &[(place.first, &body, error)]);
        }
        let body = [place.before, b"\x80\x80\x80\x80\x00", place.after].concat();
        refuse(FIVE, &[(place.first, &body, too_long)]);
        if place.allows(0x0B) {
            place.refuse(b"\x0B\x81\x00", error);
            place.refuse(b"\x0B\xFF\xFF\xFF\xFF\x01", too_long);
        }
    }
}

/// [MQTT-2.2.2-1]
#[test]
fn block_longer_than_the_packet() {
    for place in places() {
        let len = variable(place.after.len() + 1);
        refuse(
            FIVE,
            &[(
                place.first,
                &[place.before, &len, place.after].concat(),
                TRUNCATED,
            )],
        );
        let len = b"\xFF\xFF\xFF\x7F";
        refuse(
            FIVE,
            &[(
                place.first,
                &[place.before, len, place.after].concat(),
                TRUNCATED,
            )],
        );
    }
}

#[test]
fn authentication_data_without_method_in_connect() {
    let error = protocol("authentication data without authentication method");
    PLACES[0].refuse(b"\x16\x00\x01d", error);
    PLACES[0].accept(b"\x16\x00\x01d\x15\x00\x01m");
}
