//! A disk that fails: what must not be acknowledged, and what may be refused.

use thrum_crash::event::{ClientEvent, Event};

use crate::story::{ANNA, PUBLISHER, Story, delivery, lasting};

fn broken() -> Story {
    let mut story = Story::new();
    story.meet(ANNA, false).subscribe(ANNA, "t/#", 1);
    story.send(5, "t/a", 1).event(Event::Faulty);
    story
}

#[test]
fn only_what_was_sent_before_the_fault_may_still_be_acknowledged() {
    let mut story = broken();
    story.accept(5).take(ANNA, &delivery(5, "t/a", 1));
    story.clone().check(&[]);
    story.send(6, "t/a", 1).take(ANNA, &delivery(6, "t/a", 1));
    story
        .clone()
        .accept(6)
        .check(&["acknowledged while the disk fails"]);
    story.event(Event::Healed).accept(6).check(&[]);
}

#[test]
fn lasting_session_must_not_be_promised_while_the_disk_fails() {
    let mut story = broken();
    story
        .does(ANNA, ClientEvent::Vanished)
        .connect(ANNA, lasting());
    story
        .clone()
        .does(ANNA, ClientEvent::Connected(true))
        .check(&["acknowledged while the disk fails"]);
    story.does(ANNA, ClientEvent::Rejected(0x88)).check(&[]);
}

#[test]
fn refusals_are_for_faults_only() {
    let refuse = |story: &mut Story| {
        story.does(PUBLISHER, ClientEvent::Refused(5, 0x97));
        story.does(ANNA, ClientEvent::NotSubscribed("u/#".to_owned(), 0x97));
        story.does(ANNA, ClientEvent::Dropped).clone()
    };
    refuse(&mut broken()).check(&[]);
    refuse(broken().event(Event::Healed)).check(&[]);
    let mut healthy = Story::new();
    healthy.meet(ANNA, false).send(5, "t/a", 1);
    refuse(&mut healthy).check(&["refused with 0x97", "u/# refused", "closed by the broker"]);
}
