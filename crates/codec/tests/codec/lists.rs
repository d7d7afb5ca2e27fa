//! Lists inside packets: equality by content, and no panic for any bytes.

use proptest::collection::vec;
use proptest::prelude::*;
use thrum_codec::packet::{
    ReasonCodes, SubscriptionOptions, SubscriptionRequest, SubscriptionRequests, TopicFilters,
};
use thrum_codec::properties::{SubscriptionIdentifiers, UserProperties};
use thrum_codec::{QoS, ReasonCode, TopicFilter, Version};

#[test]
fn wire_bytes_equal_the_list_they_hold() {
    let block = b"\x1F\x00\x01s\x26\x00\x01k\x00\x01v\x0B\x07\x26\x00\x00\x00\x00";
    let pairs = UserProperties::Wire(block);
    assert_eq!(pairs, UserProperties::Listed(&[("k", "v"), ("", "")]));
    assert_ne!(pairs, UserProperties::Listed(&[("", ""), ("k", "v")]));
    assert_ne!(pairs, UserProperties::Listed(&[("k", "v")]));
    assert_ne!(pairs, UserProperties::default());
    let identifiers = SubscriptionIdentifiers::Wire(block);
    assert_eq!(identifiers, SubscriptionIdentifiers::Listed(&[7]));
    assert_ne!(identifiers, SubscriptionIdentifiers::default());

    let filters = [
        TopicFilter::parse("a").unwrap(),
        TopicFilter::parse("b/#").unwrap(),
    ];
    assert_eq!(
        TopicFilters::Wire(b"\x00\x01a\x00\x03b/#"),
        TopicFilters::Listed(&filters)
    );
    assert_ne!(
        TopicFilters::Wire(b"\x00\x01a"),
        TopicFilters::Listed(&filters)
    );

    let options = SubscriptionOptions {
        qos: QoS::AtLeastOnce,
        ..SubscriptionOptions::default()
    };
    let listed = [SubscriptionRequest {
        filter: filters[0],
        options,
    }];
    for version in [Version::V31, Version::V311, Version::V5] {
        let wire = SubscriptionRequests::Wire {
            bytes: b"\x00\x01a\x01",
            version,
        };
        assert_eq!(wire, SubscriptionRequests::Listed(&listed));
        assert_ne!(wire, SubscriptionRequests::Listed(&[]));
    }

    let codes = ReasonCodes::Wire(b"\x00\x87");
    assert_eq!(
        codes,
        ReasonCodes::Listed(&[ReasonCode::Success, ReasonCode::NotAuthorized])
    );
    assert_ne!(
        codes,
        ReasonCodes::Listed(&[ReasonCode::NotAuthorized, ReasonCode::Success])
    );
}

#[test]
fn lists_know_their_length() {
    let block = b"\x26\x00\x01k\x00\x01v\x26\x00\x00\x00\x00\x0B\x81\x01";
    assert_eq!(UserProperties::Wire(block).len(), 2);
    assert_eq!(
        SubscriptionIdentifiers::Wire(block)
            .iter()
            .collect::<Vec<_>>(),
        [129]
    );
    assert!(UserProperties::Wire(b"\x01\x00").is_empty());
    assert!(!UserProperties::Listed(&[("", "")]).is_empty());
    assert_eq!(ReasonCodes::Wire(b"\x00\x01\x02").len(), 3);
    assert_eq!(TopicFilters::Wire(b"\x00\x01a\x00\x01b").len(), 2);
    assert!(SubscriptionRequests::Listed(&[]).is_empty());
}

#[test]
fn qos_and_packet_identifiers_hold_no_invalid_value() {
    use thrum_codec::PacketId;
    for bits in 0..=u8::MAX {
        let qos = QoS::from_u8(bits);
        assert_eq!(qos.is_some(), bits < 3);
        assert_eq!(QoS::try_from(bits), qos.ok_or(bits));
        assert!(qos.is_none_or(|qos| u8::from(qos) == bits && qos.granted().as_u8() == bits));
    }
    assert_eq!(PacketId::new(0), None);
    assert_eq!(PacketId::new(65_535).map(PacketId::as_u16), Some(65_535));
}

#[test]
fn reason_codes_keep_their_byte() {
    let mut known = 0;
    for byte in 0..=u8::MAX {
        if let Some(reason) = ReasonCode::from_u8(byte) {
            assert_eq!(reason.as_u8(), byte);
            assert_eq!(reason.is_error(), byte >= 0x80);
            known += 1;
        }
    }
    assert_eq!(known, 43, "table 2-6 has 43 values");
}

proptest! {
    /// A list made from unchecked bytes ends early; it does not panic.
    #[test]
    fn unchecked_bytes_end_a_list_early(bytes in vec(any::<u8>(), 0..60)) {
        let at_most = bytes.len();
        prop_assert!(UserProperties::Wire(&bytes).len() <= at_most);
        prop_assert!(SubscriptionIdentifiers::Wire(&bytes).len() <= at_most);
        prop_assert!(TopicFilters::Wire(&bytes).len() <= at_most);
        prop_assert!(ReasonCodes::Wire(&bytes).len() <= at_most);
        for version in [Version::V31, Version::V311, Version::V5] {
            let requests = SubscriptionRequests::Wire { bytes: &bytes, version };
            prop_assert!(requests.len() <= at_most);
        }
    }
}
