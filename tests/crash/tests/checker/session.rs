//! Sessions that are gone, or exist although they ended.

use thrum_crash::event::{ClientEvent, Connect, Event};

use crate::history::{ANNA, History, again, delivery, lasting};

fn clean() -> Connect {
    Connect {
        clean: true,
        ..lasting()
    }
}

fn expiring(seconds: u32) -> Connect {
    Connect {
        expiry_secs: seconds,
        ..lasting()
    }
}

#[test]
fn session_must_be_there_after_a_kill() {
    History::new()
        .meet(ANNA, false)
        .crash()
        .meet(ANNA, true)
        .check(&[]);
    History::new()
        .meet(ANNA, false)
        .crash()
        .meet(ANNA, false)
        .check(&["the session is gone"]);
}

#[test]
fn before_connack_either_is_right() {
    for present in [false, true] {
        History::new()
            .connect(ANNA, lasting())
            .crash()
            .meet(ANNA, present)
            .check(&[]);
        let mut history = History::new();
        history
            .meet(ANNA, false)
            .does(ANNA, ClientEvent::Vanished)
            .connect(ANNA, clean());
        history.crash().meet(ANNA, present).check(&[]);
    }
}

#[test]
fn second_connect_without_connack_does_not_take_the_session_away() {
    let mut history = History::new();
    history
        .meet(ANNA, false)
        .crash()
        .connect(ANNA, lasting())
        .crash();
    history.meet(ANNA, false).check(&["the session is gone"]);
}

#[test]
fn clean_start_finds_nothing() {
    let mut history = History::new();
    history.meet(ANNA, false).crash().connect(ANNA, clean());
    history
        .clone()
        .does(ANNA, ClientEvent::Connected(false))
        .check(&[]);
    history
        .does(ANNA, ClientEvent::Connected(true))
        .check(&["after a clean start"]);
}

#[test]
fn session_that_ended_is_gone_but_a_kill_may_undo_its_end() {
    let mut history = History::new();
    history.meet(ANNA, false).leave(ANNA, true);
    history.clone().meet(ANNA, false).check(&[]);
    history.clone().meet(ANNA, true).check(&["there is none"]);
    history.clone().crash().meet(ANNA, true).check(&[]);
    history.crash().meet(ANNA, false).check(&[]);
}

#[test]
fn session_without_expiry_does_not_survive() {
    let mut history = History::new();
    history
        .connect(ANNA, expiring(0))
        .does(ANNA, ClientEvent::Connected(false));
    history.crash().meet(ANNA, true).check(&["there is none"]);
}

#[test]
fn session_expires_when_its_time_is_over() {
    let mut history = History::new();
    history
        .connect(ANNA, expiring(2))
        .does(ANNA, ClientEvent::Connected(false))
        .crash();
    let back = |history: &History, after: u64, present: bool| {
        let mut history = history.clone();
        history
            .wait(after)
            .connect(ANNA, expiring(2))
            .does(ANNA, ClientEvent::Connected(present));
        history
    };
    back(&history, 1_000, true).check(&[]);
    back(&history, 1_000, false).check(&["the session is gone"]);
    back(&history, 2_500, true).check(&[]);
    back(&history, 2_500, false).check(&[]);
    back(&history, 4_000, false).check(&[]);
    back(&history, 4_000, true).check(&["after its expiry"]);
    // A start of the broker does not restart the time of disconnection.
    history.wait(2_000).crash();
    back(&history, 2_000, true).check(&["after its expiry"]);
}

#[test]
fn new_session_begins_without_dup() {
    let five = delivery(5, "t/a", 1);
    let mut history = History::new();
    history
        .meet(ANNA, false)
        .subscribe(ANNA, "t/#", 1)
        .publish(5, "t/a", 1);
    history
        .take(ANNA, &again(&five))
        .check(&["DUP on the first connection", "lost"]);
}

#[test]
fn whole_story_with_everything_in_order_is_right() {
    let mut history = History::new();
    history.meet(ANNA, false).subscribe(ANNA, "t/#", 2);
    for number in 5..50 {
        let qos = u8::try_from(1 + number % 2).unwrap();
        let message = delivery(number, "t/a", qos);
        history.publish(number, "t/a", qos).get(ANNA, &message);
        if number % 3 == 0 {
            history.crash().meet(ANNA, true).get(ANNA, &again(&message));
        }
        let id = message.packet_id;
        if qos == 1 {
            history.does(ANNA, ClientEvent::Acknowledged(id));
        } else {
            history
                .does(ANNA, ClientEvent::Recorded(id))
                .does(ANNA, ClientEvent::Released(id));
        }
    }
    history.event(Event::Killed).check(&[]);
}
