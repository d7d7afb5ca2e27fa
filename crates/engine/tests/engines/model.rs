//! Model of the messages that clients must receive, without workers, mail or turns.

use std::collections::{BTreeMap, BTreeSet};

use thrum_codec::QoS;
use thrum_codec::topic::matches;

use crate::client::Message;

/// The number of a client that receives messages.
pub(crate) type Receiver = usize;

/// A message that one receiver must read.
#[derive(Debug)]
struct Expected {
    qos: QoS,
    /// The message may be lost because the connection of the receiver was.
    may_be_lost: bool,
    times: usize,
}

/// The expected state of one receiver.
#[derive(Debug, Default)]
struct Known {
    is_connected: bool,
    /// The receiver has neither connected nor disconnected since the last moment without packets in
    /// transit.
    is_steady: bool,
    /// Subscriptions that are not shared, by filter.
    subscriptions: BTreeMap<String, QoS>,
    /// Messages that the receiver must read, by payload.
    expected: BTreeMap<String, Expected>,
    /// Payloads in the order of their first read.
    read: Vec<String>,
    /// Payloads of retained messages that a new subscription must deliver.
    replayed: BTreeSet<String>,
}

/// A message for shared groups.
#[derive(Debug)]
struct ForGroups {
    /// Number of groups, of each of which one member must read the message.
    groups: usize,
    qos: QoS,
    /// A member that may have read the message lost its connection before the acknowledgement, so
    /// that another member may read the message too.
    may_repeat: bool,
    times: usize,
}

/// The expected state of all receivers.
#[derive(Debug)]
pub(crate) struct Model {
    receivers: Vec<Known>,
    /// Members by the shared filter of the group.
    groups: BTreeMap<String, BTreeSet<Receiver>>,
    for_groups: BTreeMap<String, ForGroups>,
    /// The last retained payload by topic.
    retained: BTreeMap<String, String>,
}

/// The filter of a shared subscription without its group.
fn shared(filter: &str) -> Option<&str> {
    let (_, filter) = filter.strip_prefix("$share/")?.split_once('/')?;
    Some(filter)
}

impl Model {
    pub(crate) fn new(receivers: usize) -> Self {
        Self {
            receivers: (0..receivers).map(|_| Known::default()).collect(),
            groups: BTreeMap::new(),
            for_groups: BTreeMap::new(),
            retained: BTreeMap::new(),
        }
    }

    /// Records that a receiver connects or disconnects: unread messages with QoS 0 may be lost.
    pub(crate) fn connection_changes(&mut self, receiver: Receiver, is_connected: bool) {
        let known = &mut self.receivers[receiver];
        known.is_connected = is_connected;
        known.is_steady = false;
        for expected in known.expected.values_mut() {
            expected.may_be_lost |= expected.qos == QoS::AtMostOnce;
        }
        for message in self.for_groups.values_mut() {
            message.may_repeat |= message.qos == QoS::AtLeastOnce;
        }
    }

    /// Records that the session of a receiver ends.
    pub(crate) fn session_ends(&mut self, receiver: Receiver) {
        self.receivers[receiver] = Known::default();
        for members in self.groups.values_mut() {
            members.remove(&receiver);
        }
    }

    pub(crate) fn subscribes(&mut self, receiver: Receiver, filter: &str, qos: QoS) {
        if shared(filter).is_some() {
            let members = self.groups.entry(filter.to_owned()).or_default();
            members.insert(receiver);
            return;
        }
        let known = &mut self.receivers[receiver];
        known.subscriptions.insert(filter.to_owned(), qos);
        let retained = self.retained.iter();
        let matching = retained.filter(|(topic, _)| matches(filter, topic));
        known
            .replayed
            .extend(matching.map(|(_, payload)| payload.clone()));
    }

    pub(crate) fn unsubscribes(&mut self, receiver: Receiver, filter: &str) {
        self.receivers[receiver].subscriptions.remove(filter);
        if let Some(members) = self.groups.get_mut(filter) {
            members.remove(&receiver);
        }
    }

    pub(crate) fn publishes(&mut self, message: &Message) {
        if message.retain {
            self.retained
                .insert(message.topic.clone(), message.payload.clone());
        }
        for known in &mut self.receivers {
            let filters = known.subscriptions.iter();
            let matching = filters.filter(|(filter, _)| matches(filter, &message.topic));
            let Some(qos) = matching.map(|(_, qos)| (*qos).min(message.qos)).max() else {
                continue;
            };
            let expected = Expected {
                qos,
                may_be_lost: qos == QoS::AtMostOnce && !(known.is_connected && known.is_steady),
                times: 0,
            };
            known.expected.insert(message.payload.clone(), expected);
        }
        let groups = self.groups.iter();
        let matching = groups.filter(|(filter, members)| {
            let filter = shared(filter).expect("it is a shared one");
            !members.is_empty() && matches(filter, &message.topic)
        });
        let for_groups = ForGroups {
            groups: matching.count(),
            qos: message.qos,
            may_repeat: false,
            times: 0,
        };
        if for_groups.groups > 0 {
            self.for_groups.insert(message.payload.clone(), for_groups);
        }
    }

    /// Checks a message that a receiver has read.
    ///
    /// # Errors
    /// The receiver must not read the message.
    pub(crate) fn reads(&mut self, receiver: Receiver, message: &Message) -> Result<(), String> {
        let known = &mut self.receivers[receiver];
        if message.retain {
            return if known.replayed.remove(&message.payload) {
                Ok(())
            } else {
                Err(format!("{receiver} has no use for retained {message:?}"))
            };
        }
        if let Some(expected) = known.expected.get_mut(&message.payload) {
            expected.times += usize::from(!message.is_repeated);
            if expected.times != 1 {
                return Err(format!("{receiver} has read {message:?}: {expected:?}"));
            }
            if !message.is_repeated {
                known.read.push(message.payload.clone());
            }
            if message.qos != expected.qos {
                return Err(format!("{receiver} has read {message:?}, not {expected:?}"));
            }
            return Ok(());
        }
        match self.for_groups.get_mut(&message.payload) {
            Some(for_groups) => {
                for_groups.times += usize::from(!message.is_repeated);
                if for_groups.times > for_groups.groups && !for_groups.may_repeat {
                    return Err(format!("too many have read {message:?}: {for_groups:?}"));
                }
                Ok(())
            }
            None => Err(format!("{receiver} has not asked for {message:?}")),
        }
    }

    /// Checks that every connected receiver has read all of its messages; called when no packet is
    /// in transit.
    ///
    /// # Errors
    /// A message is missing, or was read in another order than it was published in.
    pub(crate) fn settled(&mut self) -> Result<(), String> {
        let is_anybody_away = self.receivers.iter().any(|known| !known.is_connected);
        for (receiver, known) in self.receivers.iter_mut().enumerate() {
            known.check_order(receiver)?;
            known.is_steady = true;
            if !known.is_connected {
                continue;
            }
            let is_missing = |expected: &Expected| expected.times == 0 && !expected.may_be_lost;
            let mut expected = known.expected.iter();
            if let Some((payload, _)) = expected.find(|(_, expected)| is_missing(expected)) {
                return Err(format!("{receiver} misses {payload}"));
            }
            if let Some(payload) = known.replayed.first() {
                return Err(format!("{receiver} misses the retained {payload}"));
            }
        }
        if is_anybody_away {
            // The missing message may be queued for a disconnected member.
            return Ok(());
        }
        let is_missing = |one: &ForGroups| one.qos != QoS::AtMostOnce && one.times < one.groups;
        let mut for_groups = self.for_groups.iter();
        if let Some((payload, one)) = for_groups.find(|(_, one)| is_missing(one)) {
            return Err(format!("members miss {payload}: {one:?}"));
        }
        self.for_groups.clear();
        Ok(())
    }
}

impl Known {
    /// Checks the order of the messages of one publisher, topic and quality of service: a payload
    /// begins with the publisher and the topic, and ends with a number.
    fn check_order(&self, receiver: Receiver) -> Result<(), String> {
        let mut last: BTreeMap<(&str, QoS), u32> = BTreeMap::new();
        for payload in &self.read {
            let (lane, number) = payload.rsplit_once(' ').expect("it ends with a number");
            let number = number.parse().expect("it ends with a number");
            let qos = self.expected[payload].qos;
            let before = last.insert((lane, qos), number);
            if before.is_some_and(|before| before > number) {
                return Err(format!("{receiver} has read {payload} behind {before:?}"));
            }
        }
        Ok(())
    }
}
