//! Names that hold all parameters: `p2p-200-200-200-200` is 200 pairs at 200 messages per second in
//! all.

/// Numbers of the longest name.
const NUMBERS_MAX: usize = 4;

/// The scenario of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// `conn-tcp-<connections>-<connections per second>`.
    Connections { connections: u64, rate: u64 },
    /// `fanout-<publishers>-<subscribers>-<topics>-<messages received per second>`.
    FanOut {
        publishers: u64,
        subscribers: u64,
        received: u64,
    },
    /// `p2p-<publishers>-<subscribers>-<messages sent>-<messages received per second>`.
    PointToPoint { pairs: u64, rate: u64 },
    /// `sharedsub-<publishers>-<subscribers>-<messages sent>-<messages received per second>`.
    SharedSubscription {
        publishers: u64,
        subscribers: u64,
        rate: u64,
    },
}

/// Parses a name; none if it does not have one of these forms, an explanation if its numbers are
/// contradictory.
pub(super) fn parse(name: &str) -> Option<Result<Named, String>> {
    const TOPOLOGY: &str = "singlenode-";
    const FAMILIES: [(&str, Family); 5] = [
        ("conn-tcp-", connections),
        ("fanout-", fan_out),
        ("p2p-", point_to_point),
        ("sharedsub-", shared_subscription),
        ("sharesub-", shared_subscription),
    ];
    let name = name.to_ascii_lowercase();
    let name = name.strip_prefix(TOPOLOGY).unwrap_or(&name);
    let (numbers, family) = FAMILIES
        .iter()
        .find_map(|(prefix, family)| Some((name.strip_prefix(prefix)?, family)))?;
    let numbers: Vec<u64> = numbers.split('-').map(number).collect::<Option<_>>()?;
    if numbers.len() > NUMBERS_MAX {
        return None;
    }
    if numbers.contains(&0) {
        return Some(Err("every number must be at least 1".to_owned()));
    }
    Some(family(&numbers))
}

type Family = fn(&[u64]) -> Result<Named, String>;

fn connections(numbers: &[u64]) -> Result<Named, String> {
    match *numbers {
        [connections, rate] => Ok(Named::Connections { connections, rate }),
        _ => Err("write conn-tcp-<connections>-<connections per second>".to_owned()),
    }
}

fn fan_out(numbers: &[u64]) -> Result<Named, String> {
    let (publishers, subscribers, topics, received) = match *numbers {
        [publishers, subscribers] => (
            publishers,
            subscribers,
            publishers,
            publishers.saturating_mul(subscribers),
        ),
        [publishers, subscribers, topics, received] => (publishers, subscribers, topics, received),
        _ => {
            return Err(
                "write fanout-<publishers>-<subscribers>, or fanout-<publishers>-<subscribers>-<topics>-<messages received per second>"
                    .to_owned(),
            );
        }
    };
    if topics != publishers {
        return Err(format!(
            "each publisher has a topic of its own: {publishers} publishers have {publishers} topics, not {topics}"
        ));
    }
    if !received.is_multiple_of(subscribers) {
        return Err(format!(
            "each message goes to all of {subscribers} subscribers: {received} received per second is not a multiple of that"
        ));
    }
    Ok(Named::FanOut {
        publishers,
        subscribers,
        received,
    })
}

fn point_to_point(numbers: &[u64]) -> Result<Named, String> {
    match *numbers {
        [pairs] => Ok(Named::PointToPoint { pairs, rate: pairs }),
        [pairs, subscribers, sent, received] => {
            equal("publishers", pairs, "subscribers", subscribers)?;
            equal("sent per second", sent, "received", received)?;
            Ok(Named::PointToPoint { pairs, rate: sent })
        }
        _ => Err(
            "write p2p-<pairs>, or p2p-<publishers>-<subscribers>-<messages sent>-<messages received per second>"
                .to_owned(),
        ),
    }
}

fn shared_subscription(numbers: &[u64]) -> Result<Named, String> {
    let (publishers, subscribers, sent, received) = match *numbers {
        [publishers, subscribers] => (publishers, subscribers, publishers, publishers),
        [publishers, subscribers, sent, received] => (publishers, subscribers, sent, received),
        _ => {
            return Err(
                "write sharedsub-<publishers>-<subscribers>, or sharedsub-<publishers>-<subscribers>-<messages sent>-<messages received per second>"
                    .to_owned(),
            );
        }
    };
    equal("sent per second", sent, "received", received)?;
    Ok(Named::SharedSubscription {
        publishers,
        subscribers,
        rate: sent,
    })
}

fn equal(left: &str, number: u64, right: &str, other: u64) -> Result<(), String> {
    if number == other {
        return Ok(());
    }
    Err(format!(
        "each message is received once: {number} {left} need {number} {right}, not {other}"
    ))
}

impl Named {
    /// The scenario as a file.
    pub(super) fn toml(self) -> String {
        let (short, summary) = (self.short_name(), self.summary());
        let (version, connect_rate, groups) = match self {
            Self::Connections { connections, rate } => {
                let groups = format!("[groups.connections]\nclients = {connections}\n");
                (
                    "3.1.1",
                    format!("connect_rate = {rate}\nstages = [\"warmup 0s\"]\n"),
                    groups,
                )
            }
            Self::FanOut {
                publishers,
                subscribers,
                received,
            } => {
                let sent = each(received / subscribers, publishers);
                let groups = groups(subscribers, "test/{run}/{p}", publishers, &sent);
                ("3.1.1", String::new(), groups)
            }
            Self::PointToPoint { pairs, rate } => {
                let groups = groups(pairs, "test/{run}/{i}", pairs, &each(rate, pairs));
                ("3.1.1", String::new(), groups)
            }
            Self::SharedSubscription {
                publishers,
                subscribers,
                rate,
            } => {
                let filter = "$share/benchmark/test/{run}/#";
                let groups = groups(subscribers, filter, publishers, &each(rate, publishers));
                ("5.0", String::new(), groups)
            }
        };
        format!(
            "name = \"singlenode-{short}\"\nalias = \"{short}\"\nsummary = \"{summary}\"\nversion = \"{version}\"\n{connect_rate}\n{groups}"
        )
    }

    /// Its name with every number, the large ones short.
    fn short_name(self) -> String {
        let (family, numbers) = match self {
            Self::Connections { connections, rate } => ("conn-tcp", vec![connections, rate]),
            Self::FanOut {
                publishers,
                subscribers,
                received,
            } => (
                "fanout",
                vec![publishers, subscribers, publishers, received],
            ),
            Self::PointToPoint { pairs, rate } => ("p2p", vec![pairs, pairs, rate, rate]),
            Self::SharedSubscription {
                publishers,
                subscribers,
                rate,
            } => ("sharedsub", vec![publishers, subscribers, rate, rate]),
        };
        let numbers = numbers
            .into_iter()
            .map(|number| format!("-{}", short(number)));
        format!("{family}{}", numbers.collect::<String>())
    }

    fn summary(self) -> String {
        match self {
            Self::Connections { connections, rate } => {
                format!("{connections} connections at {rate}/s, then idle")
            }
            Self::FanOut {
                publishers,
                subscribers,
                received,
            } => format!(
                "{publishers} publishers to each of {subscribers} subscribers: {received} deliveries/s"
            ),
            Self::PointToPoint { pairs, rate } => {
                format!("{pairs} publishers, each with a subscriber of its own: {rate} messages/s")
            }
            Self::SharedSubscription {
                publishers,
                subscribers,
                rate,
            } => format!(
                "{publishers} publishers to a shared subscription of {subscribers} members: {rate} messages/s"
            ),
        }
    }
}

fn groups(subscribers: u64, filter: &str, publishers: u64, rate: &str) -> String {
    format!(
        "[groups.subscribers]\nclients = {subscribers}\nsubscribe = {{ filter = \"{filter}\", qos = 1 }}\n\n\
         [groups.publishers]\nclients = {publishers}\npublish = {{ topic = \"test/{{run}}/{{i}}\", rate = \"{rate}\", qos = 1, payload = \"16B\" }}\n"
    )
}

/// The rate of each of some clients that together have this rate per second.
fn each(rate: u64, clients: u64) -> String {
    for (unit, factor) in [("s", 1), ("m", 60), ("h", 3_600)] {
        let total = rate.saturating_mul(factor);
        if total.is_multiple_of(clients) {
            return format!("{}/{unit}", total / clients);
        }
    }
    format!("{}/s", thrum_figures::ratio(rate, clients))
}

/// Digits, and `K` for thousands or `M` for millions.
fn number(text: &str) -> Option<u64> {
    let (digits, factor) = match text.as_bytes().last()? {
        b'k' => (&text[..text.len() - 1], 1_000),
        b'm' => (&text[..text.len() - 1], 1_000_000),
        _ => (text, 1),
    };
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

fn short(number: u64) -> String {
    if number.is_multiple_of(1_000_000) {
        format!("{}M", number / 1_000_000)
    } else if number.is_multiple_of(1_000) {
        format!("{}K", number / 1_000)
    } else {
        number.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(name: &str) -> String {
        parse(name).unwrap().unwrap_err()
    }

    #[test]
    fn names_say_clients_and_rates() {
        for (name, wanted) in [
            (
                "conn-tcp-5K-500",
                Named::Connections {
                    connections: 5_000,
                    rate: 500,
                },
            ),
            (
                "fanout-2-100-2-20K",
                Named::FanOut {
                    publishers: 2,
                    subscribers: 100,
                    received: 20_000,
                },
            ),
            (
                "SINGLENODE-P2P-200-200-400-400",
                Named::PointToPoint {
                    pairs: 200,
                    rate: 400,
                },
            ),
            (
                "p2p-2M",
                Named::PointToPoint {
                    pairs: 2_000_000,
                    rate: 2_000_000,
                },
            ),
            (
                "sharesub-10-5-100-100",
                Named::SharedSubscription {
                    publishers: 10,
                    subscribers: 5,
                    rate: 100,
                },
            ),
        ] {
            assert_eq!(parse(name), Some(Ok(wanted)), "{name}");
        }
        for name in [
            "p2p",
            "p2p-",
            "p2p-x",
            "p2p-1-1-1-1-1",
            "conn-10K-100",
            "fanout-1.5K-1",
        ] {
            assert_eq!(parse(name), None, "{name}");
        }
    }

    #[test]
    fn numbers_that_do_not_fit_together_are_explained() {
        assert_eq!(
            explained("p2p-200-100-200-200"),
            "each message is received once: 200 publishers need 200 subscribers, not 100"
        );
        assert_eq!(
            explained("sharedsub-10-5-100-200"),
            "each message is received once: 100 sent per second need 100 received, not 200"
        );
        assert_eq!(
            explained("fanout-2-100-100-20K"),
            "each publisher has a topic of its own: 2 publishers have 2 topics, not 100"
        );
        assert_eq!(
            explained("fanout-2-100-2-250"),
            "each message goes to all of 100 subscribers: 250 received per second is not a multiple of that"
        );
        assert_eq!(explained("p2p-0"), "every number must be at least 1");
        assert!(explained("p2p-1-1").starts_with("write p2p-<pairs>"));
        assert!(explained("conn-tcp-5K").starts_with("write conn-tcp-"));
    }

    #[test]
    fn a_rate_is_dealt_to_its_clients() {
        assert_eq!(each(20_000, 200), "100/s");
        assert_eq!(each(1, 30), "2/m");
        assert_eq!(each(1, 1_200), "3/h");
        assert_eq!(each(100, 8), "750/m");
        assert_eq!(each(100, 7), "14.285714285714286/s");
    }
}
