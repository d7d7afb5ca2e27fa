//! Whole packets cut short, lengthened, with wrong flags or with a wrong remaining length.

use crate::bytes::{frame, join};
use crate::case::{Case, Expect};
use crate::corpus::samples::{Sample, samples};
use crate::corpus::{MALFORMED, MALFORMED_OR_PROTOCOL, PROTOCOL};
use crate::packets::{Version, first};

fn all_samples() -> impl Iterator<Item = Sample> {
    Version::ALL.into_iter().flat_map(samples)
}

fn case(sample: &Sample, what: &str, bytes: Vec<u8>, expect: Expect) -> Case {
    Case {
        name: format!("{} {what}", sample.name),
        version: sample.version,
        connected: sample.connected,
        bytes,
        expect,
    }
}

/// The unchanged samples: the inputs that the other cases corrupt must be valid first.
pub fn valid() -> Vec<Case> {
    all_samples()
        .map(|sample| {
            case(
                &sample,
                "as it is",
                frame(sample.first, &sample.body),
                sample.expect.clone(),
            )
        })
        .collect()
}

/// Every shorter body, with a remaining length that fits it.
pub fn truncations() -> Vec<Case> {
    let cut = |sample: Sample| {
        let lengths: Vec<_> = (0..sample.body.len())
            .filter(|length| !sample.whole_at.contains(length))
            .collect();
        lengths.into_iter().map(move |length| {
            let body = sample.body.get(..length).unwrap_or_default();
            let expect = if sample.forbidden_at.contains(&length) {
                Expect::Refused(PROTOCOL)
            } else {
                sample.refusal(length)
            };
            let what = format!("cut to {length} of {} bytes", sample.body.len());
            case(&sample, &what, frame(sample.first, body), expect)
        })
    };
    all_samples().flat_map(cut).collect()
}

/// One byte more than the packet has; a PUBLISH would take it as payload.
pub fn trailing_bytes() -> Vec<Case> {
    all_samples()
        .filter(|sample| sample.first & 0xF0 != first::PUBLISH)
        .map(|sample| {
            let expect = match (sample.version, sample.first) {
                (_, first::CONNECT) => sample.refusal(sample.body.len()),
                (Version::V31 | Version::V311, first::DISCONNECT) => Expect::ClosedSomehow,
                // 3.1 does not specify surplus bytes.
                (Version::V31, _) => Expect::Anything,
                _ => sample.refusal(sample.body.len()),
            };
            let bytes = frame(sample.first, &join(&[&sample.body, &[0]]));
            case(&sample, "with a trailing byte", bytes, expect)
        })
        .collect()
}

/// Every value of the four flags that the packet type does not have.
pub fn flags() -> Vec<Case> {
    let mut cases = Vec::new();
    for sample in all_samples() {
        for flags in 0..16 {
            let first_byte = (sample.first & 0xF0) | flags;
            if first_byte == sample.first {
                continue;
            }
            let expect = match sample.first & 0xF0 {
                first::PUBLISH if flags & 6 == 6 => Expect::Refused(MALFORMED),
                // Whether a receiver refuses DUP with QoS 0 is left to it.
                first::PUBLISH if flags & 0x0E == 8 => {
                    Expect::LivesOrRefused(MALFORMED_OR_PROTOCOL)
                }
                // Another QoS would shift the fields.
                first::PUBLISH => continue,
                // 3.1 gave the flags a meaning or none; none was an error.
                _ if sample.version == Version::V31 => Expect::Anything,
                _ => wrong_flags(&sample),
            };
            let what = format!("with flags {flags:04b}");
            cases.push(case(
                &sample,
                &what,
                frame(first_byte, &sample.body),
                expect,
            ));
        }
    }
    cases
}

fn wrong_flags(sample: &Sample) -> Expect {
    match (sample.version, sample.first) {
        // The first packet is not a valid CONNECT, so its version counts for nothing yet.
        (_, first::CONNECT) => Expect::ClosedSomehow,
        (Version::V31 | Version::V311, first::DISCONNECT) => Expect::ClosedSomehow,
        _ => sample.refusal(sample.body.len()),
    }
}

/// Remaining lengths of five bytes, and lengths that are longer than necessary.
pub fn lengths() -> Vec<Case> {
    let mut cases = Vec::new();
    for version in Version::ALL {
        for (name, length) in [
            ("five bytes", &[0xFF, 0xFF, 0xFF, 0xFF, 0x01][..]),
            ("five bytes that mean zero", &[0x80, 0x80, 0x80, 0x80, 0x00]),
            ("no end", &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
        ] {
            for first_byte in [
                first::PUBLISH,
                first::SUBSCRIBE,
                first::PINGREQ,
                first::PUBACK,
            ] {
                cases.push(Case::connected(
                    format!("{first_byte:#04x} with a remaining length of {name}"),
                    version,
                    join(&[&[first_byte], length]),
                    Expect::Refused(MALFORMED),
                ));
            }
            cases.push(Case::first(
                format!("CONNECT with a remaining length of {name}"),
                version,
                join(&[&[first::CONNECT], length]),
                Expect::ClosedSomehow,
            ));
        }
    }
    // [MQTT-1.5.5-1] the encoded value uses the minimum number of bytes
    for length in [
        &[0x80, 0x00][..],
        &[0x80, 0x80, 0x00],
        &[0x80, 0x80, 0x80, 0x00],
    ] {
        cases.push(Case::connected(
            format!(
                "PINGREQ with a remaining length of zero in {} bytes",
                length.len()
            ),
            Version::V5,
            join(&[&[first::PINGREQ], length]),
            Expect::Refused(MALFORMED),
        ));
    }
    cases
}
