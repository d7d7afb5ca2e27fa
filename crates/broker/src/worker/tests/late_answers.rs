//! A gatekeeper that answers late, after the client has disconnected or returned.

use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use thrum_access::{Admission, Answer, Gatekeeper, Login, Reply};
use thrum_codec::packet::{Connect, Packet, Will};
use thrum_codec::properties::ConnectProperties;
use thrum_engine::node::metrics::Counter;

use super::{Parts, VERSION, bytes, messages, publish, settle, subscribe, two_workers_with};
use crate::worker::Worker;

/// Admits every client when the test requests it.
#[derive(Default)]
pub(super) struct Hesitant(Mutex<Vec<(Login, Reply<Answer>)>>);

impl Hesitant {
    fn take(&self) -> Vec<(Login, Reply<Answer>)> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *waiting)
    }

    pub(super) fn admit_all(&self) {
        self.take().into_iter().for_each(admit);
    }
}

fn admit((login, reply): (Login, Reply<Answer>)) {
    reply(Answer::Admit(Box::new(Admission {
        identity: login.identity,
        ..Admission::default()
    })));
}

impl fmt::Debug for Hesitant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Hesitant")
    }
}

impl Gatekeeper for Hesitant {
    fn login(&self, login: Login, reply: Reply<Answer>) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push((login, reply));
    }
}

/// CONNECT of a client with a user name, for which the gatekeeper is asked.
pub(super) fn connect(client_id: &str, will: Option<Will<'_>>) -> Vec<u8> {
    bytes(&Packet::Connect(Connect {
        version: VERSION,
        is_bridge: false,
        clean_start: true,
        keep_alive: 60,
        client_id,
        will,
        username: Some("user"),
        password: None,
        properties: ConnectProperties::default(),
    }))
}

fn workers() -> ([Worker; 2], Arc<Hesitant>) {
    let gatekeeper = Arc::new(Hesitant::default());
    let with = |parts: &mut Parts| {
        parts.access.gatekeeper = Some(Arc::clone(&gatekeeper) as Arc<dyn Gatekeeper>);
    };
    (two_workers_with(with), gatekeeper)
}

#[test]
fn a_client_that_disconnects_during_its_login_ends_no_other_connection() {
    let (mut workers, gatekeeper) = workers();
    let mut gone = workers[0].accepted();
    gone.write_all(&connect("a", None)).unwrap();
    settle(&mut workers);
    let late = gatekeeper.take();
    drop(gone);
    settle(&mut workers);
    let mut again = workers[0].accepted();
    again.write_all(&connect("a", None)).unwrap();
    settle(&mut workers);
    gatekeeper.admit_all();
    settle(&mut workers);
    assert_eq!(late.len(), 1);
    late.into_iter().for_each(admit);
    settle(&mut workers);
    let total = |counter| workers[0].node.state.metrics.total(counter);
    assert_eq!(total(Counter::Takeovers), 0);
    assert_eq!(total(Counter::ClientsConnected), 1);
    assert!(messages(&mut again).is_empty(), "it is still open");
}

#[test]
fn packets_of_a_client_that_has_left_are_handled_when_it_is_admitted_late() {
    let (mut workers, gatekeeper) = workers();
    let mut subscriber = workers[1].accepted();
    subscriber.write_all(&connect("subscriber", None)).unwrap();
    subscriber.write_all(&subscribe()).unwrap();
    settle(&mut workers);
    gatekeeper.admit_all();
    settle(&mut workers);
    let mut client = workers[0].accepted();
    client.write_all(&connect("a", None)).unwrap();
    settle(&mut workers);
    client.write_all(&publish(b"x")).unwrap();
    drop(client);
    settle(&mut workers);
    gatekeeper.admit_all();
    settle(&mut workers);
    settle(&mut workers);
    assert_eq!(messages(&mut subscriber), [b"x"]);
    assert_eq!(workers[0].traffic.edge.connections.len(), 0);
}

#[test]
fn a_client_that_is_admitted_where_no_mail_waits_stays_where_it_is() {
    let (mut workers, gatekeeper) = workers();
    let mut client = workers[0].accepted();
    client.write_all(&connect("a", None)).unwrap();
    settle(&mut workers);
    gatekeeper.admit_all();
    workers[0].read_inputs();
    let slot = workers[0]
        .traffic
        .engine
        .core
        .sessions
        .find("a")
        .expect("in the turn of the answer");
    assert!(
        workers[0].traffic.engine.core.sessions[slot]
            .connection
            .is_some()
    );
}
