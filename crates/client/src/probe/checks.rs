//! What brokers of every version may do: qualities of service, retained messages, wildcards,
//! shared subscriptions, sessions, topics of their own.

use std::time::Duration;

use thrum_codec::packet::{Publish, SubscriptionOptions};
use thrum_codec::{QoS, Version};
use thrum_protocol::client::ClientOptions;

use super::Probe;
use super::finding::{Finding, Findings, Outcome};
use super::talk::{Talk, message};
use crate::Stop;

/// Round trips that are measured.
const ROUND_TRIPS: usize = 5;
/// Time in which a broker sends its own topics, which are retained.
const OWN_TOPICS_TIME: Duration = Duration::from_secs(1);
/// Where brokers say who they are: most of them, and EMQX.
const OWN_TOPICS: [&str; 2] = ["$SYS/broker/version", "$SYS/brokers/+/version"];
/// Seconds that a session is to outlive its connection.
const SESSION_SECS: u32 = 60;

/// Highest quality of service of a subscription.
pub(super) const QOS_2: SubscriptionOptions = SubscriptionOptions {
    qos: QoS::ExactlyOnce,
    no_local: false,
    retain_as_published: false,
    retain_handling: thrum_codec::packet::RetainHandling::Send,
};

/// Adds a finding for each.
pub(super) fn run(probe: &Probe, version: Version, findings: &mut Findings) {
    findings.add(round_trip(probe, version));
    for (name, qos) in [
        ("QoS 0", QoS::AtMostOnce),
        ("QoS 1", QoS::AtLeastOnce),
        ("QoS 2", QoS::ExactlyOnce),
    ] {
        let checked = quality(probe, version, qos);
        findings.add(Finding::of(name, checked));
    }
    let checks: [(&'static str, Check); 5] = [
        ("retained messages", retained),
        ("wildcards", wildcards),
        ("shared subscriptions", shared),
        ("persistent sessions", session),
        ("identifies itself", own_topics),
    ];
    for (name, check) in checks {
        findings.add(Finding::of(name, check(probe, version)));
    }
}

type Check = fn(&Probe, Version) -> Result<String, Stop>;

/// The time of a PUBLISH with QoS 1 and its acknowledgement.
fn round_trip(probe: &Probe, version: Version) -> Finding {
    let name = "round trip";
    let measure = || -> Result<String, Stop> {
        let (mut talk, _) = probe.connect(version, "r")?;
        let topic = probe.topic("round-trip");
        let mut times = Vec::new();
        for _ in 0..ROUND_TRIPS {
            times.push(talk.publish(&message(&topic, QoS::AtLeastOnce, b"x"))?);
        }
        talk.end();
        times.sort_unstable();
        let shown = |time: &Duration| format!("{:.2} ms", time.as_secs_f64() * 1000.0);
        let median = times.get(times.len() / 2).map(shown).unwrap_or_default();
        let longest = times.last().map(shown).unwrap_or_default();
        Ok(format!(
            "{median} from PUBLISH with QoS 1 to PUBACK, the longest of {ROUND_TRIPS} {longest}"
        ))
    };
    Finding::of(name, measure())
}

fn quality(probe: &Probe, version: Version, qos: QoS) -> Result<String, Stop> {
    let (mut talk, _) = probe.connect(version, "q")?;
    let topic = probe.topic("qos");
    let granted = talk.subscribe(&topic, QOS_2, None)?;
    talk.publish(&message(&topic, qos, b"x"))?;
    let arrived = talk.message(&topic)?;
    talk.end();
    let arrived = arrived.ok_or_else(|| Stop::unsupported("the message did not arrive"))?;
    if arrived.qos == qos {
        return Ok("published and delivered".to_owned());
    }
    Err(Stop::unsupported(format!(
        "a subscription with QoS 2 was granted QoS {}, and the message came with QoS {}",
        granted.as_u8(),
        arrived.qos.as_u8()
    )))
}

fn retained(probe: &Probe, version: Version) -> Result<String, Stop> {
    let (mut talk, _) = probe.connect(version, "t")?;
    let topic = probe.topic("retained");
    let retain = |payload: &'static [u8]| Publish {
        retain: true,
        ..message("", QoS::AtLeastOnce, payload)
    };
    let kept = Publish {
        topic: &topic,
        ..retain(b"kept")
    };
    let published = talk.publish(&kept);
    let subscribed = published.and_then(|_| talk.subscribe(&topic, QOS_2, None));
    let arrived = subscribed.and_then(|_| talk.message(&topic));
    let gone = Publish {
        topic: &topic,
        ..retain(b"")
    };
    // Also after a failed check: nothing of the probe stays.
    let removed = talk.publish(&gone).or_else(|_| {
        // The connection may be lost.
        let (mut other, _) = probe.connect(version, "T")?;
        let removed = other.publish(&gone);
        other.end();
        removed
    });
    talk.end();
    let arrived = arrived?;
    removed?;
    match arrived {
        Some(arrived) if arrived.retain && arrived.payload == b"kept" => {
            Ok("kept for a later subscriber, and removed".to_owned())
        }
        Some(_) => Err(Stop::unsupported("it came without the retain flag")),
        None => Err(Stop::unsupported("a later subscriber did not get it")),
    }
}

fn wildcards(probe: &Probe, version: Version) -> Result<String, Stop> {
    let (mut talk, _) = probe.connect(version, "w")?;
    let topic = probe.topic("a/wild/b");
    let mut work = Vec::new();
    for (sign, filter) in [("+", probe.topic("a/+/b")), ("#", probe.topic("a/#"))] {
        talk.subscribe(&filter, QOS_2, None)?;
        talk.publish(&message(&topic, QoS::AtLeastOnce, b"x"))?;
        if talk.message(&topic)?.is_some() {
            work.push(sign);
        }
    }
    talk.end();
    match work[..] {
        ["+", "#"] => Ok("+ and #".to_owned()),
        [one] => Err(Stop::unsupported(format!("only {one}"))),
        _ => Err(Stop::unsupported("the messages did not arrive")),
    }
}

/// Two members get each message once together.
fn shared(probe: &Probe, version: Version) -> Result<String, Stop> {
    let topic = probe.topic("shared");
    let filter = format!("$share/thrum-probe/{topic}");
    let (mut one, _) = probe.connect(version, "s")?;
    one.subscribe(&filter, QOS_2, None)?;
    let (mut other, _) = probe.connect(version, "S")?;
    other.subscribe(&filter, QOS_2, None)?;
    let sent = 4;
    for _ in 0..sent {
        one.publish(&message(&topic, QoS::AtLeastOnce, b"x"))?;
    }
    let patience = probe.timeout.min(Duration::from_secs(1));
    let mut counts = [0, 0];
    for (count, member) in counts.iter_mut().zip([&mut one, &mut other]) {
        while *count <= sent
            && member
                .message_within(patience, |name| name == topic)?
                .is_some()
        {
            *count += 1;
        }
    }
    one.end();
    other.end();
    match counts {
        [0, 0] => Err(Stop::unsupported("no member got a message")),
        [one, other] if one + other == sent => Ok(format!(
            "{sent} messages went to two members as {one} and {other}"
        )),
        [one, other] => Err(Stop::unsupported(format!(
            "of {sent} messages the members got {one} and {other}"
        ))),
    }
}

/// A subscription is still there after a lost connection.
fn session(probe: &Probe, version: Version) -> Result<String, Stop> {
    let mut options = probe.options(version);
    options.clean_start = false;
    options.session_expiry = SESSION_SECS;
    let (talk, _) = probe.connect_with(&options, "p")?;
    let found = kept_session(probe, &options, talk);
    // Also after a failed check: a session of 3.x has no end of its own.
    let forgotten = forget(probe, version);
    let found = found?;
    forgotten?;
    Ok(found)
}

fn kept_session(probe: &Probe, options: &ClientOptions, mut talk: Talk) -> Result<String, Stop> {
    let topic = probe.topic("session");
    talk.subscribe(&topic, QOS_2, None)?;
    talk.end();
    let (mut publisher, _) = probe.connect(options.version, "P")?;
    publisher.publish(&message(&topic, QoS::AtLeastOnce, b"waits"))?;
    publisher.end();
    let (mut talk, agreement) = probe.connect_with(options, "p")?;
    let arrived = talk.message(&topic);
    talk.end();
    match (agreement.session_present, arrived?) {
        (true, Some(_)) => Ok("taken up again, with a message that waited".to_owned()),
        (true, None) => Err(Stop::unsupported(
            "taken up again, but a message that came meanwhile is lost",
        )),
        (false, _) => Err(Stop::unsupported("it was gone after its connection")),
    }
}

/// Ends the session.
fn forget(probe: &Probe, version: Version) -> Result<(), Stop> {
    let (talk, _) = probe.connect(version, "p")?;
    talk.end();
    Ok(())
}

fn own_topics(probe: &Probe, version: Version) -> Result<String, Stop> {
    let (mut talk, _) = probe.connect(version, "y")?;
    let mut denied = None;
    for filter in OWN_TOPICS {
        if let Err(stop) = talk.subscribe(filter, QOS_2, None) {
            if stop.as_outcome() != Outcome::Denied {
                return Err(stop);
            }
            denied = Some(stop);
        }
    }
    let said = version_of(&mut talk)?;
    talk.end();
    match (said, denied) {
        (Some(said), _) => Ok(said),
        (None, Some(stop)) => Err(stop),
        (None, None) => Err(Stop::unsupported("no version below $SYS")),
    }
}

fn version_of(talk: &mut Talk) -> Result<Option<String>, Stop> {
    let arrived = talk.message_within(OWN_TOPICS_TIME, |topic| topic.starts_with("$SYS/"))?;
    Ok(arrived.map(|arrived| {
        let text = String::from_utf8_lossy(&arrived.payload);
        let text: String = text.chars().take(60).collect();
        text.escape_debug().to_string()
    }))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use crate::clock::Clock;
    use crate::target::Target;
    use crate::url::Url;

    /// What the client sent: the first byte of a packet, and the rest behind its length.
    type Packet = (u8, Vec<u8>);

    /// A broker of 3.1.1 that acknowledges no PUBLISH.
    fn answer(mut stream: TcpStream, seen: &mpsc::Sender<Packet>) {
        let mut head = [0; 2];
        while stream.read_exact(&mut head).is_ok() {
            let mut body = vec![0; head[1].into()];
            stream.read_exact(&mut body).unwrap();
            match head[0] >> 4 {
                1 => stream.write_all(&[0x20, 2, 0, 0]).unwrap(),
                8 => stream.write_all(&[0x90, 3, body[0], body[1], 2]).unwrap(),
                _ => {}
            }
            seen.send((head[0], body)).ok();
        }
    }

    /// What the check sends to a broker that acknowledges no PUBLISH.
    fn sent_by(check: Check) -> Vec<Packet> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, packets) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let seen = seen.clone();
                let stream = stream.unwrap();
                thread::spawn(move || answer(stream, &seen));
            }
        });
        let url = Url::parse(&format!("mqtt://{address}")).unwrap();
        let probe = Probe {
            target: Target {
                endpoint: url.endpoint,
                unix: None,
                tls: thrum_transport::TlsOptions::default(),
                bind_address: None,
            },
            options: ClientOptions::default(),
            prefix: "p".to_owned(),
            id: "probe".to_owned(),
            timeout: Duration::from_millis(100),
            clock: Clock::start(),
        };
        let stop = check(&probe, Version::V311).unwrap_err();
        assert_eq!(stop.message(), "no acknowledgement came");
        // All connections are closed by the probe, and read to their ends.
        let patience = Duration::from_millis(200);
        std::iter::from_fn(|| packets.recv_timeout(patience).ok()).collect()
    }

    #[test]
    fn a_failed_check_of_sessions_leaves_no_session() {
        let sent = sent_by(session);
        let connects = sent.iter().filter(|(kind, _)| *kind == 0x10);
        let of_session = connects.filter(|(_, body)| body[12..].starts_with(b"pprobe"));
        let clean: Vec<bool> = of_session.map(|(_, body)| body[7] & 2 != 0).collect();
        assert_eq!(clean, [false, true], "{sent:?}");
    }

    #[test]
    fn a_failed_check_of_retained_messages_leaves_none() {
        let sent = sent_by(retained);
        let publishes = sent.iter().filter(|(kind, _)| kind >> 4 == 3);
        let kept: Vec<bool> = publishes.map(|(_, body)| body.ends_with(b"kept")).collect();
        assert_eq!(kept, [true, false, false], "{sent:?}");
    }
}
