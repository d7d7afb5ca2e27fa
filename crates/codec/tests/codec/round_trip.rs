//! Properties that hold for every packet and for any bytes.

use proptest::collection::vec;
use proptest::prelude::*;
use thrum_codec::packet::Publish;
use thrum_codec::properties::PublishProperties;
use thrum_codec::testing::{Choices, naive_matches, with_packet};
use thrum_codec::topic::{is_valid_name, level_count, levels, matches};
use thrum_codec::{
    DecodeError, Packet, PacketId, QoS, TopicFilter, Version, decode, encode, encode_publish,
    encode_publish_head, encoded_len, frame,
};

fn version() -> impl Strategy<Value = Version> {
    prop_oneof![Just(Version::V31), Just(Version::V311), Just(Version::V5)]
}

fn encoded(packet: &Packet<'_>, version: Version) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(packet, version, &mut bytes).expect("a valid packet can be written");
    bytes
}

fn decoded(bytes: &[u8], version: Version) -> Packet<'_> {
    let frame = frame::split(bytes, u32::MAX)
        .expect("a valid header")
        .expect("a whole frame");
    assert_eq!(frame.len, bytes.len());
    decode(frame, version).expect("a valid packet")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn decoding_an_encoded_packet_gives_it_back(
        choices in vec(any::<u8>(), 0..220),
        version in version(),
    ) {
        with_packet(&choices, version, |packet| {
            let bytes = encoded(packet, version);
            prop_assert_eq!(&decoded(&bytes, version), packet);
            prop_assert_eq!(encoded_len(packet, version), Ok(bytes.len()));
            // A decoded packet is encoded to the same bytes again.
            prop_assert_eq!(encoded(&decoded(&bytes, version), version), bytes);
            Ok(())
        })?;
    }

    #[test]
    fn an_incomplete_frame_needs_more_bytes(
        choices in vec(any::<u8>(), 0..220),
        version in version(),
    ) {
        with_packet(&choices, version, |packet| {
            let bytes = encoded(packet, version);
            for end in 0..bytes.len().min(600) {
                prop_assert_eq!(frame::split(&bytes[..end], u32::MAX), Ok(None));
                let announced = frame::announced_len(&bytes[..end]);
                prop_assert!(announced.is_none_or(|len| len == bytes.len()));
            }
            prop_assert_eq!(frame::announced_len(&bytes), Some(bytes.len()));
            let len = u32::try_from(bytes.len()).unwrap();
            prop_assert!(matches!(frame::split(&bytes, len), Ok(Some(_))));
            prop_assert_eq!(frame::split(&bytes, len - 1), Err(DecodeError::TooLarge));
            Ok(())
        })?;
    }

    #[test]
    fn bytes_after_a_frame_are_left_in_the_buffer(
        choices in vec(any::<u8>(), 0..220),
        version in version(),
        tail in vec(any::<u8>(), 0..20),
    ) {
        with_packet(&choices, version, |packet| {
            let mut bytes = encoded(packet, version);
            let len = bytes.len();
            bytes.extend_from_slice(&tail);
            let frame = frame::split(&bytes, u32::MAX).unwrap().unwrap();
            prop_assert_eq!(frame.len, len);
            prop_assert_eq!(&decode(frame, version).unwrap(), packet);
            Ok(())
        })?;
    }

    #[test]
    fn a_publish_is_the_same_however_it_is_written(
        choices in vec(any::<u8>(), 0..220),
        version in version(),
    ) {
        // The first choice selects the kind of packet; 0 is PUBLISH.
        let choices = [&[0][..], &choices].concat();
        with_packet(&choices, version, |packet| {
            let Packet::Publish(publish) = packet else { panic!("kind 0 is PUBLISH") };
            let expected = encoded(packet, version);
            let mut whole = Vec::new();
            let frame = encode_publish(publish, version, &mut whole).unwrap();
            prop_assert_eq!(&whole, &expected);
            prop_assert_eq!(frame.len, expected.len());
            let mut head = Vec::new();
            let head_frame = encode_publish_head(publish, version, &mut head).unwrap();
            prop_assert_eq!(head_frame, frame);
            prop_assert_eq!([&head, publish.payload].concat(), expected);
            if let Some(at) = frame.packet_id_at {
                whole[at..at + 2].copy_from_slice(&[0xAB, 0xCD]);
                let Packet::Publish(patched) = decoded(&whole, version) else { panic!("a PUBLISH") };
                prop_assert_eq!(patched.packet_id, PacketId::new(0xABCD));
                prop_assert_eq!(patched.payload, publish.payload);
            }
            Ok(())
        })?;
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in vec(any::<u8>(), 0..200), version in version()) {
        if let Ok(Some(frame)) = frame::split(&bytes, u32::MAX) {
            drop(format!("{:?}", decode(frame, version)));
        }
        let first = bytes.first().copied().unwrap_or(0);
        let frame = frame::Frame { first, body: &bytes, len: 0 };
        drop(format!("{:?}", decode(frame, version)));
    }

    #[test]
    fn a_changed_byte_never_makes_the_decoder_panic(
        choices in vec(any::<u8>(), 0..220),
        version in version(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        with_packet(&choices, version, |packet| {
            let mut bytes = encoded(packet, version);
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let Ok(Some(frame)) = frame::split(&bytes, u32::MAX) else { return Ok(()) };
            let Ok(first) = decode(frame, version) else { return Ok(()) };
            // Every accepted packet can be encoded and decoded again.
            let version = match first { Packet::Connect(connect) => connect.version, _ => version };
            let again = encoded(&first, version);
            prop_assert_eq!(decoded(&again, version), first);
            Ok(())
        })?;
    }

    #[test]
    fn matching_agrees_with_its_definition(choices in vec(any::<u8>(), 0..24)) {
        let mut choices = Choices::new(&choices);
        let (filter, topic) = (choices.filter(), choices.topic());
        prop_assert!(TopicFilter::parse(&filter).is_ok(), "{}", filter);
        prop_assert!(is_valid_name(&topic), "{}", topic);
        let expected = naive_matches(&filter, &topic);
        prop_assert_eq!(matches(&filter, &topic), expected, "{} {}", filter, topic);
        prop_assert!(matches(&topic, &topic));
        prop_assert_eq!(level_count(&filter), levels(&filter).count());
    }

    #[test]
    fn filter_validity_agrees_with_its_definition(text in "[a+#/$\u{0}]{0,6}") {
        let levels: Vec<&str> = text.split('/').collect();
        let expected = !text.is_empty()
            && !text.contains('\0')
            && levels.iter().all(|level| level.len() == 1 || !level.contains(['+', '#']))
            && levels.iter().rev().skip(1).all(|level| *level != "#");
        prop_assert_eq!(TopicFilter::parse(&text).is_ok(), expected);
        prop_assert_eq!(is_valid_name(&text), !text.is_empty() && !text.contains(['\0', '+', '#']));
    }
}

#[test]
fn the_head_of_a_publish_takes_no_memory_for_the_payload() {
    let payload = vec![7; 1024 * 1024];
    let publish = Publish {
        dup: false,
        qos: QoS::AtLeastOnce,
        retain: false,
        topic: "a/b",
        packet_id: PacketId::new(1),
        properties: PublishProperties::default(),
        payload: &payload,
    };
    let mut head = Vec::new();
    let frame = encode_publish_head(&publish, Version::V5, &mut head).unwrap();
    assert_eq!(frame.len, head.len() + payload.len());
    assert!(head.capacity() < 1024, "{}", head.capacity());
}
