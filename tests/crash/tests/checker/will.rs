//! Wills that are not published, published twice, too early or although they were discarded.

use thrum_crash::event::{ClientEvent, Delivery};

use crate::history::{ANNA, BEN, History, delivery, lasting, with_will};

/// Anna watches, and Ben has a will.
fn watched(delay: u64) -> History {
    let mut history = History::new();
    history.meet(ANNA, false).subscribe(ANNA, "will/#", 2);
    history
        .connect(BEN, with_will(5, delay))
        .does(BEN, ClientEvent::Connected(false));
    history
}

fn will() -> Delivery {
    delivery(5, "will/p", 2)
}

#[test]
fn will_of_a_session_that_lasts_comes_after_a_kill_once() {
    let mut history = watched(0);
    history.crash().meet(ANNA, true);
    history.clone().check(&["message 5: lost"]);
    history.complete(ANNA, &will());
    history.clone().check(&[]);
    let twice = Delivery {
        packet_id: 6,
        ..will()
    };
    history.complete(ANNA, &twice).check(&["came again"]);
}

#[test]
fn will_of_a_client_that_is_coming_back_need_not_come() {
    let mut history = watched(1_000);
    history.does(BEN, ClientEvent::Vanished);
    history.clone().check(&["message 5: lost"]);
    history.connect(BEN, with_will(6, 1_000)).check(&[]);
}

#[test]
fn will_without_connack_may_come() {
    let mut history = History::new();
    history.meet(ANNA, false).subscribe(ANNA, "will/#", 2);
    history
        .connect(BEN, with_will(5, 0))
        .crash()
        .meet(ANNA, true);
    history.clone().check(&[]);
    history.complete(ANNA, &will()).check(&[]);
}

#[test]
fn will_waits_for_its_delay() {
    let mut history = watched(1_000);
    history.crash().meet(ANNA, true);
    history.clone().check(&["message 5: lost"]);
    history
        .clone()
        .complete(ANNA, &will())
        .check(&["before it was due", "message 5: lost"]);
    history.wait(1_000).complete(ANNA, &will()).check(&[]);
}

#[test]
fn client_that_is_back_in_time_takes_its_will_back() {
    let mut history = watched(1_000);
    history.crash().meet(ANNA, true).meet(BEN, true);
    history.clone().check(&[]);
    history
        .wait(1_000)
        .complete(ANNA, &will())
        .check(&["must not come: the client was back"]);
}

#[test]
fn client_that_is_late_may_have_left_its_will() {
    let mut history = watched(1_000);
    history.crash().meet(ANNA, true).wait(1_001).meet(BEN, true);
    history.clone().check(&[]);
    history.complete(ANNA, &will()).check(&[]);
}

#[test]
fn disconnect_discards_the_will_but_a_kill_may_undo_that() {
    let mut history = watched(0);
    history.leave(BEN, false);
    history.clone().check(&[]);
    history
        .clone()
        .meet(BEN, true)
        .complete(ANNA, &will())
        .check(&["must not come: the client had disconnected"]);
    history
        .crash()
        .meet(ANNA, true)
        .complete(ANNA, &will())
        .check(&[]);
}

#[test]
fn new_connection_ends_the_old_one_with_its_will() {
    let mut history = watched(0);
    history
        .connect(BEN, lasting())
        .does(BEN, ClientEvent::Connected(true));
    history.clone().check(&["message 5: lost"]);
    history.complete(ANNA, &will()).check(&[]);
    let mut delayed = watched(1_000);
    delayed
        .connect(BEN, lasting())
        .does(BEN, ClientEvent::Connected(true))
        .wait(1_000);
    delayed
        .complete(ANNA, &will())
        .check(&["must not come: its session was taken up again"]);
}
