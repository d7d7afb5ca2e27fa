//! What brokers of 5.0 may do, and the limits that they announce.

use std::num::NonZeroU16;
use std::time::Duration;

use thrum_codec::packet::{Publish, SubscriptionOptions};
use thrum_codec::properties::PublishProperties;
use thrum_codec::{QoS, Version};
use thrum_protocol::client::WillOptions;

use super::Probe;
use super::checks::QOS_2;
use super::finding::{Finding, Findings, Outcome};
use super::talk::{Agreement, message};
use crate::Stop;

/// An identifier that no broker makes up.
const IDENTIFIER: u32 = 268_435_455;
/// Seconds that a will is to wait.
const WILL_DELAY_SECS: u32 = 1;
/// Seconds that are asked for, to see whether the broker gives less.
const LONG_EXPIRY_SECS: u32 = u32::MAX;

/// Adds a finding for each.
pub(super) fn run(probe: &Probe, agreement: &Agreement, findings: &mut Findings) {
    let checks: [(&'static str, Check); 5] = [
        ("subscription identifiers", identifiers),
        ("topic aliases", aliases),
        ("no local", no_local),
        ("user properties", user_properties),
        ("will delay", will_delay),
    ];
    for (name, check) in checks {
        findings.add(Finding::of(name, check(probe)));
    }
    for finding in limits(agreement) {
        findings.add(finding);
    }
    findings.add(Finding::of("session expiry", expiry(probe)));
    findings.add(keep_alive(probe));
    findings.add(Finding::of("assigned identifiers", assigned(probe)));
}

type Check = fn(&Probe) -> Result<String, Stop>;

/// What CONNACK announces.
fn limits(agreement: &Agreement) -> Vec<Finding> {
    let number = |name, value: Option<u64>, none: &str| {
        let detail = value.map_or_else(|| none.to_owned(), |value| value.to_string());
        Finding::new(name, Outcome::Yes, &detail)
    };
    let flag = |name, value: Option<bool>| {
        let outcome = if value == Some(false) {
            Outcome::No
        } else {
            Outcome::Yes
        };
        Finding::new(name, outcome, "announced")
    };
    vec![
        number(
            "receive maximum",
            agreement.receive_maximum.map(Into::into),
            "65535",
        ),
        number("maximum QoS", agreement.maximum_qos.map(Into::into), "2"),
        number(
            "maximum packet size",
            agreement.maximum_packet_size.map(Into::into),
            "no limit",
        ),
        number(
            "topic alias maximum",
            agreement.topic_alias_maximum.map(Into::into),
            "0",
        ),
        flag("announces retained", agreement.retain_available),
        flag("announces wildcards", agreement.wildcard_available),
        flag("announces shared", agreement.shared_available),
        flag("announces identifiers", agreement.identifiers_available),
    ]
}

fn identifiers(probe: &Probe) -> Result<String, Stop> {
    let (mut talk, _) = probe.connect(Version::V5, "i")?;
    let topic = probe.topic("identifier");
    talk.subscribe(&topic, QOS_2, Some(IDENTIFIER))?;
    talk.publish(&message(&topic, QoS::AtLeastOnce, b"x"))?;
    let arrived = talk.message(&topic)?;
    talk.end();
    match arrived {
        Some(arrived) if arrived.identifiers == [IDENTIFIER] => {
            Ok("delivered with the message".to_owned())
        }
        Some(_) => Err(Stop::unsupported("the message came without it")),
        None => Err(Stop::unsupported("the message did not arrive")),
    }
}

/// A message whose topic is only an alias arrives with the topic.
fn aliases(probe: &Probe) -> Result<String, Stop> {
    let (mut talk, agreement) = probe.connect(Version::V5, "a")?;
    let most = agreement.topic_alias_maximum.unwrap_or(0);
    if most == 0 {
        return Err(Stop::unsupported(
            "the broker takes none (topic alias maximum 0)",
        ));
    }
    let topic = probe.topic("alias");
    talk.subscribe(&topic, QOS_2, None)?;
    let properties = PublishProperties {
        topic_alias: NonZeroU16::new(1),
        ..PublishProperties::default()
    };
    for topic in [&*topic, ""] {
        talk.publish(&Publish {
            properties,
            ..message(topic, QoS::AtLeastOnce, b"x")
        })?;
    }
    let both = talk.message(&topic)?.is_some() && talk.message(&topic)?.is_some();
    talk.end();
    if both {
        return Ok(format!("up to {most} from a client"));
    }
    Err(Stop::unsupported(
        "a message without its topic did not arrive",
    ))
}

fn no_local(probe: &Probe) -> Result<String, Stop> {
    let (mut talk, _) = probe.connect(Version::V5, "n")?;
    let topic = probe.topic("local");
    let options = SubscriptionOptions {
        no_local: true,
        ..QOS_2
    };
    talk.subscribe(&topic, options, None)?;
    talk.publish(&message(&topic, QoS::AtLeastOnce, b"x"))?;
    let patience = probe.timeout.min(Duration::from_millis(500));
    let arrived = talk.message_within(patience, |name| name == topic)?;
    talk.end();
    match arrived {
        None => Ok("a client does not get its own message".to_owned()),
        Some(_) => Err(Stop::unsupported("a client got its own message")),
    }
}

fn user_properties(probe: &Probe) -> Result<String, Stop> {
    use thrum_codec::properties::UserProperties;
    let (mut talk, _) = probe.connect(Version::V5, "u")?;
    let topic = probe.topic("user");
    talk.subscribe(&topic, QOS_2, None)?;
    let properties = PublishProperties {
        user: UserProperties::Listed(&[("a", "1"), ("a", "2")]),
        ..PublishProperties::default()
    };
    talk.publish(&Publish {
        properties,
        ..message(&topic, QoS::AtLeastOnce, b"x")
    })?;
    let arrived = talk.message(&topic)?;
    talk.end();
    match arrived {
        Some(arrived) if arrived.user_properties == 2 => Ok("passed on".to_owned()),
        Some(_) => Err(Stop::unsupported("they are lost on the way")),
        None => Err(Stop::unsupported("the message did not arrive")),
    }
}

/// A will comes a time after its connection is lost.
fn will_delay(probe: &Probe) -> Result<String, Stop> {
    let topic = probe.topic("will");
    let (mut watcher, _) = probe.connect(Version::V5, "e")?;
    watcher.subscribe(&topic, QOS_2, None)?;
    let mut options = probe.options(Version::V5);
    options.session_expiry = 10 * WILL_DELAY_SECS;
    options.will = Some(WillOptions {
        topic: topic.clone(),
        payload: b"gone".to_vec(),
        delay: Some(WILL_DELAY_SECS),
        ..WillOptions::default()
    });
    let (dying, _) = probe.connect_with(&options, "d")?;
    let before = watcher.now();
    dying.lose();
    let delay = Duration::from_secs(WILL_DELAY_SECS.into());
    let arrived = watcher.message_within(probe.timeout + delay, |name| name == topic)?;
    let waited = watcher.now().since(before);
    watcher.end();
    // The session of the lost client must not stay.
    let (talk, _) = probe.connect(Version::V5, "d")?;
    talk.end();
    let millis = waited.as_millis();
    // The clock of the broker may have a coarse grain.
    match arrived {
        Some(_) if waited + Duration::from_millis(250) >= delay => Ok(format!(
            "it came {millis} ms after the connection, {WILL_DELAY_SECS} s were asked for"
        )),
        Some(_) => Err(Stop::unsupported(format!(
            "it came after {millis} ms already"
        ))),
        None => Err(Stop::unsupported("no will came")),
    }
}

fn expiry(probe: &Probe) -> Result<String, Stop> {
    let mut options = probe.options(Version::V5);
    options.session_expiry = LONG_EXPIRY_SECS;
    let (talk, agreement) = probe.connect_with(&options, "x")?;
    talk.end();
    // The session must not stay for ever.
    let (talk, _) = probe.connect(Version::V5, "x")?;
    talk.end();
    match agreement.session_expiry {
        None => Ok("as the client asks, also for ever".to_owned()),
        Some(0) => Err(Stop::unsupported("sessions end with their connection")),
        Some(secs) => Ok(format!("at most {secs} s")),
    }
}

fn keep_alive(probe: &Probe) -> Finding {
    let name = "keep alive";
    let mut options = probe.options(Version::V5);
    options.keep_alive = u16::MAX;
    let agreed = probe.connect_with(&options, "k");
    Finding::of(
        name,
        agreed.map(|(talk, agreement)| {
            talk.end();
            match agreement.server_keep_alive {
                None => "as the client asks".to_owned(),
                Some(secs) => format!("the broker sets {secs} s in place of 65535 s"),
            }
        }),
    )
}

fn assigned(probe: &Probe) -> Result<String, Stop> {
    let options = probe.options(Version::V5);
    let (talk, agreement) = super::Talk::connect(probe, &options, "")?;
    talk.end();
    match agreement.assigned_client_id {
        Some(id) => Ok(format!("such as {}", id.escape_debug())),
        None => Err(Stop::unsupported("none was assigned")),
    }
}
