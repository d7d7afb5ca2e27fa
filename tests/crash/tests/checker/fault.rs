//! A failing disk: changes that must not be acknowledged, and requests that may be refused.

use thrum_crash::event::{ClientEvent, Event};

use crate::history::{ANNA, History, PUBLISHER, delivery, lasting};

fn broken() -> History {
    let mut history = History::new();
    history.meet(ANNA, false).subscribe(ANNA, "t/#", 1);
    history.send(5, "t/a", 1).event(Event::Faulty);
    history
}

#[test]
fn only_messages_sent_before_the_fault_may_be_acknowledged() {
    let mut history = broken();
    history.accept(5).take(ANNA, &delivery(5, "t/a", 1));
    history.clone().check(&[]);
    history.send(6, "t/a", 1).take(ANNA, &delivery(6, "t/a", 1));
    history
        .clone()
        .accept(6)
        .check(&["acknowledged while the disk fails"]);
    history.event(Event::Healed).accept(6).check(&[]);
}

#[test]
fn lasting_session_must_not_be_promised_while_the_disk_fails() {
    let mut history = broken();
    history
        .does(ANNA, ClientEvent::Vanished)
        .connect(ANNA, lasting());
    history
        .clone()
        .does(ANNA, ClientEvent::Connected(true))
        .check(&["acknowledged while the disk fails"]);
    history.does(ANNA, ClientEvent::Rejected(0x88)).check(&[]);
}

#[test]
fn refusals_are_for_faults_only() {
    let refuse = |history: &mut History| {
        history.does(PUBLISHER, ClientEvent::Refused(5, 0x97));
        history.does(ANNA, ClientEvent::NotSubscribed("u/#".to_owned(), 0x97));
        history.does(ANNA, ClientEvent::Dropped).clone()
    };
    refuse(&mut broken()).check(&[]);
    refuse(broken().event(Event::Healed)).check(&[]);
    let mut healthy = History::new();
    healthy.meet(ANNA, false).send(5, "t/a", 1);
    refuse(&mut healthy).check(&["refused with 0x97", "u/# refused", "closed by the broker"]);
}
