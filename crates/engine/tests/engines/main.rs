//! Several engines of one node in one thread, without a socket: the packets that clients receive
//! are compared with a simple model.

mod borders;
mod client;
mod conditions;
mod details;
mod durable;
mod edges;
mod endings;
mod explanations;
mod fields;
mod gatekeepers;
mod groups;
mod lines;
mod memory;
mod model;
mod node;
mod parts;
mod promises;
mod queues;
mod records;
mod refusals;
mod rights;
mod rooms;
mod sessions;
mod shell;
mod sinks;
mod sources;
mod spans;
mod stages;
mod subscriptions;
mod timelines;
mod work;

use proptest::prelude::*;
use thrum_codec::{QoS, Version};
use thrum_storage::disk::sim::SimStorage;

use client::{Client, Message};
use model::Model;
use shell::Shell;

const RECEIVERS: usize = 4;
const PUBLISHERS: usize = 2;
const TOPICS: [&str; 5] = ["t/0", "t/1", "t/2/x", "s/0", "s/1"];
const FILTERS: [&str; 8] = [
    "t/0",
    "t/1",
    "t/+",
    "t/#",
    "t/2/+",
    "$share/g/s/0",
    "$share/g/s/+",
    "$share/h/s/#",
];

/// One step of a test.
#[derive(Clone, Debug)]
enum Step {
    Publish {
        publisher: usize,
        topic: usize,
        qos: QoS,
        retain: bool,
    },
    /// A receiver connects, and abandons its current connection.
    Connect {
        receiver: usize,
        worker: usize,
    },
    Cut {
        receiver: usize,
    },
    Read {
        receiver: usize,
    },
    ReadInputs {
        worker: usize,
    },
    WriteOutputs {
        worker: usize,
    },
    Commit,
    // The following steps happen while no packet or mail is in transit.
    Subscribe {
        receiver: usize,
        filter: usize,
        qos: QoS,
    },
    Unsubscribe {
        receiver: usize,
        filter: usize,
    },
    CleanStart {
        receiver: usize,
        worker: usize,
    },
    Crash,
}

fn a_qos() -> impl Strategy<Value = QoS> {
    prop_oneof![
        Just(QoS::AtMostOnce),
        Just(QoS::AtLeastOnce),
        Just(QoS::ExactlyOnce),
    ]
}

fn a_step() -> impl Strategy<Value = Step> {
    let receiver = || 0..RECEIVERS;
    let worker = || 0..3_usize;
    let publish = (
        0..PUBLISHERS,
        0..TOPICS.len(),
        a_qos(),
        prop::bool::weighted(0.3),
    );
    let subscribe = (receiver(), 0..FILTERS.len(), a_qos());
    prop_oneof![
        10 => publish.prop_map(|(publisher, topic, qos, retain)| Step::Publish {
            publisher,
            topic,
            qos,
            retain,
        }),
        3 => (receiver(), worker())
            .prop_map(|(receiver, worker)| Step::Connect { receiver, worker }),
        2 => receiver().prop_map(|receiver| Step::Cut { receiver }),
        4 => receiver().prop_map(|receiver| Step::Read { receiver }),
        6 => worker().prop_map(|worker| Step::ReadInputs { worker }),
        6 => worker().prop_map(|worker| Step::WriteOutputs { worker }),
        3 => Just(Step::Commit),
        5 => subscribe.prop_map(|(receiver, filter, qos)| Step::Subscribe {
            receiver,
            filter,
            qos,
        }),
        1 => (receiver(), 0..FILTERS.len())
            .prop_map(|(receiver, filter)| Step::Unsubscribe { receiver, filter }),
        1 => (receiver(), worker())
            .prop_map(|(receiver, worker)| Step::CleanStart { receiver, worker }),
        1 => Just(Step::Crash),
    ]
}

/// A node, its clients, and the model of their messages.
#[derive(Debug)]
struct World {
    workers: usize,
    has_disk: bool,
    shell: Option<Shell>,
    model: Model,
    receivers: Vec<Client>,
    publishers: Vec<Client>,
    published: u32,
}

impl World {
    fn new(workers: usize, has_disk: bool) -> Self {
        let version = |number: usize| {
            if number.is_multiple_of(2) {
                Version::V5
            } else {
                Version::V311
            }
        };
        let client = |name: &str, number| Client::new(&format!("{name}{number}"), version(number));
        let disk = has_disk.then(|| SimStorage::new(1));
        let mut world = Self {
            workers,
            has_disk,
            shell: Some(Shell::start(workers, disk)),
            model: Model::new(RECEIVERS),
            receivers: (0..RECEIVERS).map(|one| client("receiver", one)).collect(),
            publishers: (0..PUBLISHERS)
                .map(|one| client("publisher", one))
                .collect(),
            published: 0,
        };
        for receiver in 0..RECEIVERS {
            world.connect(receiver, receiver);
        }
        world.connect_publishers();
        world
    }

    fn shell(&mut self) -> &mut Shell {
        self.shell.as_mut().expect("it is there but for a crash")
    }

    fn connect_publishers(&mut self) {
        let shell = self.shell.as_mut().expect("it is there but for a crash");
        for (number, publisher) in self.publishers.iter_mut().enumerate() {
            publisher.connect(shell, (number + 1) % self.workers, false);
        }
    }

    fn connect(&mut self, receiver: usize, worker: usize) {
        let shell = self.shell.as_mut().expect("it is there but for a crash");
        self.receivers[receiver].connect(shell, worker % self.workers, false);
        self.model.connection_changes(receiver, true);
    }

    fn take(&mut self, step: &Step) -> Result<(), String> {
        let shell = self.shell.as_mut().expect("it is there but for a crash");
        match *step {
            Step::Publish {
                publisher,
                topic,
                qos,
                retain,
            } => self.publish(publisher, topic, qos, retain),
            Step::Connect { receiver, worker } => self.connect(receiver, worker),
            Step::Cut { receiver } => {
                self.receivers[receiver].cut(shell);
                self.model.connection_changes(receiver, false);
            }
            Step::Read { receiver } => self.read(receiver)?,
            Step::ReadInputs { worker } => shell.read_inputs(worker % self.workers),
            Step::WriteOutputs { worker } => shell.write_outputs(worker % self.workers),
            Step::Commit => {
                shell.commit();
            }
            Step::Subscribe {
                receiver,
                filter,
                qos,
            } => {
                self.settle()?;
                self.subscribe(receiver, FILTERS[filter], qos);
                self.settle()?;
            }
            Step::Unsubscribe { receiver, filter } => {
                self.settle()?;
                self.unsubscribe(receiver, FILTERS[filter]);
                self.settle()?;
            }
            Step::CleanStart { receiver, worker } => self.start_clean(receiver, worker)?,
            Step::Crash if self.has_disk => self.crash()?,
            Step::Crash => {}
        }
        Ok(())
    }

    /// Publishes a message. Only one publisher of a topic sets the RETAIN flag, so that the
    /// retained message of the topic is known.
    fn publish(&mut self, publisher: usize, topic: usize, qos: QoS, retain: bool) {
        let shell = self.shell.as_mut().expect("it is there but for a crash");
        self.published += 1;
        let message = Message {
            topic: TOPICS[topic].to_owned(),
            payload: format!("{publisher} {} {}", TOPICS[topic], self.published),
            qos,
            retain: retain && topic % PUBLISHERS == publisher,
            is_repeated: false,
        };
        self.publishers[publisher].publish(shell, &message);
        self.model.publishes(&message);
    }

    fn read(&mut self, receiver: usize) -> Result<(), String> {
        let shell = self.shell.as_mut().expect("it is there but for a crash");
        let was_connected = self.receivers[receiver].is_connected();
        let messages = self.receivers[receiver].read(shell);
        if was_connected && !self.receivers[receiver].is_connected() {
            // An earlier connection of the client reached the session later.
            self.model.connection_changes(receiver, false);
        }
        let mut messages = messages.iter();
        messages.try_for_each(|message| self.model.reads(receiver, message))
    }

    fn subscribe(&mut self, receiver: usize, filter: &str, qos: QoS) {
        let shell = self.shell.as_mut().expect("it is there but for a crash");
        if self.receivers[receiver].is_connected() {
            // All members of a group have the same quality of service, so that the choice of the
            // member does not matter.
            let is_shared = filter.starts_with("$share");
            let qos = if is_shared { QoS::ExactlyOnce } else { qos };
            self.receivers[receiver].subscribe(shell, filter, qos);
            self.model.subscribes(receiver, filter, qos);
        }
    }

    fn unsubscribe(&mut self, receiver: usize, filter: &str) {
        let shell = self.shell.as_mut().expect("it is there but for a crash");
        if self.receivers[receiver].is_connected() {
            self.receivers[receiver].unsubscribe(shell, filter);
            self.model.unsubscribes(receiver, filter);
        }
    }

    fn start_clean(&mut self, receiver: usize, worker: usize) -> Result<(), String> {
        self.settle_all()?;
        let shell = self.shell.as_mut().expect("it is there but for a crash");
        self.model.session_ends(receiver);
        self.receivers[receiver].connect(shell, worker % self.workers, true);
        self.settle()?;
        self.connect(receiver, worker);
        self.settle()
    }

    /// Crashes the node, which must restore all acknowledged state at the next start.
    fn crash(&mut self) -> Result<(), String> {
        self.settle()?;
        self.shell = self.shell.take().map(Shell::crash);
        for receiver in 0..RECEIVERS {
            self.receivers[receiver].forget_link();
            self.model.connection_changes(receiver, false);
        }
        self.publishers.iter_mut().for_each(Client::forget_link);
        self.connect_publishers();
        Ok(())
    }

    /// Lets all clients read and answer until no packet or mail is in transit.
    fn settle(&mut self) -> Result<(), String> {
        // A message with QoS 2 takes a PUBLISH, a PUBREL and a PUBCOMP, and the next message
        // follows after that.
        for _ in 0..8 {
            self.shell().settle();
            for receiver in 0..RECEIVERS {
                self.read(receiver)?;
            }
            let shell = self.shell.as_mut().expect("it is there but for a crash");
            for publisher in &mut self.publishers {
                publisher.read(shell);
            }
        }
        let clients = self.receivers.iter().chain(&self.publishers);
        let mut unanswered = clients.filter(|client| !client.unanswered.is_empty());
        if let Some(client) = unanswered.next() {
            return Err(format!("a request is not answered: {client:?}"));
        }
        self.model.settled()
    }

    /// Connects all receivers, and lets all clients read and answer until no packet or mail is in
    /// transit.
    fn settle_all(&mut self) -> Result<(), String> {
        self.settle()?;
        for receiver in 0..RECEIVERS {
            if !self.receivers[receiver].is_connected() {
                self.connect(receiver, receiver);
            }
        }
        self.settle()
    }
}

fn run(workers: usize, has_disk: bool, steps: &[Step]) -> Result<(), String> {
    let mut world = World::new(workers, has_disk);
    world.settle()?;
    for step in steps {
        world.take(step)?;
    }
    world.settle_all()
}

proptest! {
    /// Subscribers and members of shared groups receive each message once and in order, on any
    /// worker, after takeovers and after reconnects.
    #[test]
    fn every_message_reaches_its_subscribers(
        workers in 1..4_usize,
        steps in prop::collection::vec(a_step(), 1..80),
    ) {
        run(workers, false, &steps).map_err(TestCaseError::fail)?;
    }

    /// With a journal, subscribers and members of shared groups receive each message once and in
    /// order, also after losses of power.
    #[test]
    fn every_message_reaches_its_subscribers_through_crashes(
        workers in 1..4_usize,
        steps in prop::collection::vec(a_step(), 1..80),
    ) {
        run(workers, true, &steps).map_err(TestCaseError::fail)?;
    }
}

#[test]
fn a_message_that_is_lost_between_engines_is_noticed() {
    let mut world = World::new(2, false);
    world.settle().unwrap();
    // The first publisher is connected to the second worker, the receiver to the first one.
    world.subscribe(0, "t/0", QoS::AtLeastOnce);
    world.settle().unwrap();
    world.publish(0, 0, QoS::AtLeastOnce, false);
    world.shell().turn(1);
    assert!(world.shell().lose_message());
    let noticed = world.settle().unwrap_err();
    assert_eq!(noticed, "0 misses 0 t/0 1");
}

#[test]
fn an_answer_that_depends_on_the_disk_waits_for_it() {
    let mut world = World::new(2, true);
    world.settle().unwrap();
    world.subscribe(0, "t/0", QoS::AtLeastOnce);
    world.settle().unwrap();
    world.publish(0, 0, QoS::AtLeastOnce, false);
    for worker in [1, 0, 1] {
        world.shell().turn(worker);
    }
    let shell = world.shell.as_mut().unwrap();
    world.publishers[0].read(shell);
    assert_eq!(
        world.publishers[0].unanswered.len(),
        1,
        "it is not on the disk"
    );
    assert!(shell.commit());
    shell.turn(1);
    world.publishers[0].read(shell);
    assert!(world.publishers[0].unanswered.is_empty());
}
