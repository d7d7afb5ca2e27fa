//! Sessions that are gone, or there although they ended.

use thrum_crash::event::{ClientEvent, Connect, Event};

use crate::story::{ANNA, Story, again, delivery, lasting};

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
    Story::new()
        .meet(ANNA, false)
        .crash()
        .meet(ANNA, true)
        .check(&[]);
    Story::new()
        .meet(ANNA, false)
        .crash()
        .meet(ANNA, false)
        .check(&["the session is gone"]);
}

#[test]
fn before_connack_either_is_right() {
    for present in [false, true] {
        Story::new()
            .connect(ANNA, lasting())
            .crash()
            .meet(ANNA, present)
            .check(&[]);
        let mut story = Story::new();
        story
            .meet(ANNA, false)
            .does(ANNA, ClientEvent::Vanished)
            .connect(ANNA, clean());
        story.crash().meet(ANNA, present).check(&[]);
    }
}

#[test]
fn second_connect_without_connack_does_not_take_the_session_away() {
    let mut story = Story::new();
    story
        .meet(ANNA, false)
        .crash()
        .connect(ANNA, lasting())
        .crash();
    story.meet(ANNA, false).check(&["the session is gone"]);
}

#[test]
fn clean_start_finds_nothing() {
    let mut story = Story::new();
    story.meet(ANNA, false).crash().connect(ANNA, clean());
    story
        .clone()
        .does(ANNA, ClientEvent::Connected(false))
        .check(&[]);
    story
        .does(ANNA, ClientEvent::Connected(true))
        .check(&["after a clean start"]);
}

#[test]
fn session_that_ended_is_gone_but_a_kill_may_undo_its_end() {
    let mut story = Story::new();
    story.meet(ANNA, false).leave(ANNA, true);
    story.clone().meet(ANNA, false).check(&[]);
    story.clone().meet(ANNA, true).check(&["there is none"]);
    story.clone().crash().meet(ANNA, true).check(&[]);
    story.crash().meet(ANNA, false).check(&[]);
}

#[test]
fn session_without_expiry_does_not_survive() {
    let mut story = Story::new();
    story
        .connect(ANNA, expiring(0))
        .does(ANNA, ClientEvent::Connected(false));
    story.crash().meet(ANNA, true).check(&["there is none"]);
}

#[test]
fn session_expires_when_its_time_is_over() {
    let mut story = Story::new();
    story
        .connect(ANNA, expiring(2))
        .does(ANNA, ClientEvent::Connected(false))
        .crash();
    let back = |story: &Story, after: u64, present: bool| {
        let mut story = story.clone();
        story
            .wait(after)
            .connect(ANNA, expiring(2))
            .does(ANNA, ClientEvent::Connected(present));
        story
    };
    back(&story, 1_000, true).check(&[]);
    back(&story, 1_000, false).check(&["the session is gone"]);
    back(&story, 2_500, true).check(&[]);
    back(&story, 2_500, false).check(&[]);
    back(&story, 4_000, false).check(&[]);
    back(&story, 4_000, true).check(&["after its expiry"]);
    // Being away is not counted anew at each start.
    story.wait(2_000).crash();
    back(&story, 2_000, true).check(&["after its expiry"]);
}

#[test]
fn new_session_begins_without_dup() {
    let five = delivery(5, "t/a", 1);
    let mut story = Story::new();
    story
        .meet(ANNA, false)
        .subscribe(ANNA, "t/#", 1)
        .publish(5, "t/a", 1);
    story
        .take(ANNA, &again(&five))
        .check(&["DUP on the first connection", "lost"]);
}

#[test]
fn whole_story_with_everything_in_order_is_right() {
    let mut story = Story::new();
    story.meet(ANNA, false).subscribe(ANNA, "t/#", 2);
    for number in 5..50 {
        let qos = u8::try_from(1 + number % 2).unwrap();
        let message = delivery(number, "t/a", qos);
        story.publish(number, "t/a", qos).get(ANNA, &message);
        if number % 3 == 0 {
            story.crash().meet(ANNA, true).get(ANNA, &again(&message));
        }
        let id = message.packet_id;
        if qos == 1 {
            story.does(ANNA, ClientEvent::Acknowledged(id));
        } else {
            story
                .does(ANNA, ClientEvent::Recorded(id))
                .does(ANNA, ClientEvent::Released(id));
        }
    }
    story.event(Event::Killed).check(&[]);
}
