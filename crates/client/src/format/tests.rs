//! The output of each part of a format.

use std::num::NonZeroU16;

use jiff::Zoned;
use thrum_codec::packet::Publish;
use thrum_codec::properties::{PublishProperties, SubscriptionIdentifiers, UserProperties};
use thrum_codec::{PacketId, QoS};

use super::{Format, NotJson, Received};

fn at() -> Zoned {
    "2016-08-10T09:47:38.012345678+01:00[+01:00]"
        .parse()
        .unwrap()
}

fn message(payload: &[u8]) -> Publish<'_> {
    Publish {
        dup: false,
        qos: QoS::ExactlyOnce,
        retain: true,
        topic: "a/b",
        packet_id: PacketId::new(12),
        properties: PublishProperties {
            payload_format_indicator: Some(true),
            message_expiry: Some(77),
            topic_alias: NonZeroU16::new(3),
            response_topic: Some("re/ply"),
            correlation_data: Some(b"id\x00"),
            content_type: Some("text"),
            subscription_identifiers: SubscriptionIdentifiers::Listed(&[4, 5]),
            user: UserProperties::Listed(&[("k", "v"), ("k", "w")]),
        },
        payload,
    }
}

fn plain(payload: &[u8]) -> Publish<'_> {
    Publish {
        qos: QoS::AtMostOnce,
        retain: false,
        packet_id: None,
        properties: PublishProperties::default(),
        ..message(payload)
    }
}

fn print(format: &str, pretty: bool, publish: &Publish<'_>) -> Result<String, NotJson> {
    let mut out = Vec::new();
    let received = Received {
        topic: publish.topic,
        publish,
    };
    Format::parse(format, pretty)
        .unwrap()
        .write(received, &at(), &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

fn check(format: &str, expected: &str) {
    assert_eq!(
        print(format, false, &message(b"hello")).unwrap(),
        expected,
        "{format}"
    );
}

#[test]
fn every_parameter_prints_its_part_of_the_message() {
    check("%t %p %q %r %m %l %%", "a/b hello 2 1 12 5 %");
    check("%x %X", "68656c6c6f 68656C6C6F");
    check("%A %C %D %E %F %R %S", "3 text id\0 77 1 re/ply 4 5");
    check("%P", "k:v k:w");
    check("%I %U", "2016-08-10T09:47:38+0100 1470818858.012345678");
    let nothing = print("[%A%C%D%E%F%R%S%P] %m", false, &plain(b"")).unwrap();
    assert_eq!(nothing, "[] 0");
}

#[test]
fn fields_are_padded_and_cut() {
    check("|%6t|%-6t|%06t|", "|   a/b|a/b   |   a/b|");
    check("|%.2t|%4.2C|%-4.2R|", "|a/|  te|re  |");
    check("|%4l|%04l|%-4l|%-04l|", "|   5|0005|5   |5   |");
    check("|%7p|%-7p|%012x|", "|  hello|hello  |0068656c6c6f|");
}

#[test]
fn times_and_escapes_are_those_of_strftime_and_c() {
    check(
        "@Y-@m-@dT@H:@M:@S@z @N @@ @j",
        "2016-08-10T09:47:38+0100 012345678 @ 223",
    );
    check(r"\\ \0\a\e\n\r\t\v", "\\ \0\x07\x1b\n\r\t\x0b");
    check("ünï", "ünï");
}

#[test]
fn json_has_the_payload_as_text_or_as_json() {
    let head = r#"{"tst":"2016-08-10T09:47:38.012345+0100","topic":"a/b","qos":0,"retain":0,"payloadlen":"#;
    let json = |format, payload| print(format, false, &plain(payload));
    assert_eq!(
        json("%j", b"a\"\n\x01").unwrap(),
        format!(r#"{head}4,"payload":"a\"\n\u0001"}}"#)
    );
    assert_eq!(
        json("%J", b"{ \"x y\" : [1.0, \"\\\"{\"] }").unwrap(),
        format!(r#"{head}24,"payload":{{"x y":[1.0,"\"{{"]}}}}"#)
    );
    assert_eq!(
        json("%J", b"").unwrap(),
        format!(r#"{head}0,"payload":null}}"#)
    );
    assert_eq!(json("%J", b"{]"), Err(NotJson));
    assert_eq!(json("%J", b"1 2"), Err(NotJson));
}

#[test]
fn json_has_the_properties() {
    let text = print("%j", false, &message(b"x")).unwrap();
    let expected = r#""mid":12,"properties":{"topic-alias":3,"content-type":"text","user-properties":{"k":"v","k":"w"},"correlation-data":"id\u0000","response-topic":"re/ply","payload-format-indicator":1,"message-expiry-interval":77,"subscription-identifier":[4,5]},"payload":"x"}"#;
    assert!(text.ends_with(expected), "{text}");
    serde_json::from_str::<serde_json::Value>(&text).unwrap();
}

#[test]
fn pretty_json_is_indented() {
    let text = print("%J", true, &plain(br#"{"a":[1,{}],"b":[]}"#)).unwrap();
    let tail =
        "\t\"payload\":\t{\n\t\t\"a\":\t[\n\t\t\t1,\n\t\t\t{}\n\t\t],\n\t\t\"b\":\t[]\n\t}\n}";
    assert!(text.starts_with("{\n\t\"tst\":\t\""), "{text}");
    assert!(text.ends_with(tail), "{text}");
}

#[test]
fn a_wrong_format_is_refused_with_the_known_ones() {
    for (format, words) in [
        ("%z", "known: %%"),
        ("%5", "in the middle"),
        ("abc%", "in the middle"),
        ("@", "in the middle"),
        ("@5", "letter of strftime"),
        (r"\q", "known: "),
        ("\\", "in the middle"),
        ("%99999t", "width"),
    ] {
        let error = Format::parse(format, false).unwrap_err();
        assert!(error.contains(words), "{format}: {error}");
    }
}
