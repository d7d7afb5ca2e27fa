//! Wills that do not come, come twice, too early or although they were discarded.

use thrum_crash::event::{ClientEvent, Delivery};

use crate::story::{ANNA, BEN, Story, delivery, lasting, with_will};

/// Anna watches, and Ben has a will.
fn watched(delay: u64) -> Story {
    let mut story = Story::new();
    story.meet(ANNA, false).subscribe(ANNA, "will/#", 2);
    story
        .connect(BEN, with_will(5, delay))
        .does(BEN, ClientEvent::Connected(false));
    story
}

fn will() -> Delivery {
    delivery(5, "will/p", 2)
}

#[test]
fn will_of_a_session_that_lasts_comes_after_a_kill_once() {
    let mut story = watched(0);
    story.crash().meet(ANNA, true);
    story.clone().check(&["message 5: lost"]);
    story.complete(ANNA, &will());
    story.clone().check(&[]);
    let twice = Delivery {
        packet_id: 6,
        ..will()
    };
    story.complete(ANNA, &twice).check(&["came again"]);
}

#[test]
fn will_of_a_client_that_is_coming_back_need_not_come() {
    let mut story = watched(1_000);
    story.does(BEN, ClientEvent::Vanished);
    story.clone().check(&["message 5: lost"]);
    story.connect(BEN, with_will(6, 1_000)).check(&[]);
}

#[test]
fn will_without_connack_may_come() {
    let mut story = Story::new();
    story.meet(ANNA, false).subscribe(ANNA, "will/#", 2);
    story.connect(BEN, with_will(5, 0)).crash().meet(ANNA, true);
    story.clone().check(&[]);
    story.complete(ANNA, &will()).check(&[]);
}

#[test]
fn will_waits_for_its_delay() {
    let mut story = watched(1_000);
    story.crash().meet(ANNA, true);
    story.clone().check(&["message 5: lost"]);
    story
        .clone()
        .complete(ANNA, &will())
        .check(&["before it was due", "message 5: lost"]);
    story.wait(1_000).complete(ANNA, &will()).check(&[]);
}

#[test]
fn client_that_is_back_in_time_takes_its_will_back() {
    let mut story = watched(1_000);
    story.crash().meet(ANNA, true).meet(BEN, true);
    story.clone().check(&[]);
    story
        .wait(1_000)
        .complete(ANNA, &will())
        .check(&["must not come: the client was back"]);
}

#[test]
fn client_that_is_late_may_have_left_its_will() {
    let mut story = watched(1_000);
    story.crash().meet(ANNA, true).wait(1_001).meet(BEN, true);
    story.clone().check(&[]);
    story.complete(ANNA, &will()).check(&[]);
}

#[test]
fn disconnect_discards_the_will_but_a_kill_may_undo_that() {
    let mut story = watched(0);
    story.leave(BEN, false);
    story.clone().check(&[]);
    story
        .clone()
        .meet(BEN, true)
        .complete(ANNA, &will())
        .check(&["must not come: the client had disconnected"]);
    story
        .crash()
        .meet(ANNA, true)
        .complete(ANNA, &will())
        .check(&[]);
}

#[test]
fn new_connection_ends_the_old_one_with_its_will() {
    let mut story = watched(0);
    story
        .connect(BEN, lasting())
        .does(BEN, ClientEvent::Connected(true));
    story.clone().check(&["message 5: lost"]);
    story.complete(ANNA, &will()).check(&[]);
    let mut delayed = watched(1_000);
    delayed
        .connect(BEN, lasting())
        .does(BEN, ClientEvent::Connected(true))
        .wait(1_000);
    delayed
        .complete(ANNA, &will())
        .check(&["must not come: its session was taken up again"]);
}
