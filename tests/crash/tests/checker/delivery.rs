//! Messages that are lost, duplicated, out of order or not requested.

use std::collections::BTreeMap;

use thrum_crash::event::{ClientEvent, Delivery, Event};

use crate::history::{ANNA, BEN, History, PUBLISHER, again, delivery, publish};

fn subscribed(filter: &str, qos: u8) -> History {
    let mut history = History::new();
    history.meet(ANNA, false).subscribe(ANNA, filter, qos);
    history
}

#[test]
fn acknowledged_message_must_come() {
    subscribed("t/#", 2)
        .publish(5, "t/a", 2)
        .check(&["message 5: lost"]);
    subscribed("t/#", 2)
        .publish(5, "t/a", 1)
        .crash()
        .meet(ANNA, true)
        .check(&["message 5: lost"]);
    subscribed("t/#", 2)
        .publish(5, "t/a", 2)
        .complete(ANNA, &delivery(5, "t/a", 2))
        .check(&[]);
}

#[test]
fn message_without_acknowledgement_may_be_lost() {
    subscribed("t/#", 2)
        .send(5, "t/a", 2)
        .crash()
        .meet(ANNA, true)
        .check(&[]);
}

#[test]
fn message_to_an_absent_subscriber_must_come_when_it_is_back() {
    subscribed("t/#", 1)
        .leave(ANNA, false)
        .publish(5, "t/a", 1)
        .crash()
        .meet(ANNA, true)
        .check(&["message 5: lost"]);
    subscribed("t/#", 1)
        .leave(ANNA, false)
        .publish(5, "t/a", 1)
        .crash()
        .meet(ANNA, true)
        .take(ANNA, &delivery(5, "t/a", 1))
        .check(&[]);
}

#[test]
fn nothing_is_owed_before_suback_and_after_unsubscribe() {
    let mut history = History::new();
    history
        .meet(ANNA, false)
        .does(ANNA, ClientEvent::Subscribing("t/#".to_owned(), 1))
        .publish(5, "t/a", 1)
        .does(ANNA, ClientEvent::Subscribed("t/#".to_owned()))
        .check(&[]);
    subscribed("t/#", 1)
        .publish(5, "t/a", 1)
        .unsubscribe(ANNA, "t/#")
        .check(&[]);
}

#[test]
fn message_from_before_the_subscription_comes_at_once_or_never() {
    let after = |millis| {
        let mut history = History::new();
        history.meet(ANNA, false).publish(5, "t/a", 2).wait(millis);
        history.subscribe(ANNA, "t/#", 2);
        history
    };
    after(100).complete(ANNA, &delivery(5, "t/a", 2)).check(&[]);
    after(2_000)
        .complete(ANNA, &delivery(5, "t/a", 2))
        .check(&["no subscription brings it with QoS 2"]);
}

#[test]
fn message_after_unsuback_must_not_come() {
    subscribed("t/#", 1)
        .unsubscribe(ANNA, "t/#")
        .publish(5, "t/a", 1)
        .take(ANNA, &delivery(5, "t/a", 1))
        .check(&["no subscription"]);
    subscribed("t/#", 1)
        .publish(5, "t/a", 1)
        .unsubscribe(ANNA, "t/#")
        .take(ANNA, &delivery(5, "t/a", 1))
        .check(&[]);
}

#[test]
fn message_comes_with_the_lower_qos_only() {
    subscribed("t/#", 1)
        .publish(5, "t/a", 2)
        .complete(ANNA, &delivery(5, "t/a", 2))
        .check(&["no subscription", "lost"]);
}

#[test]
fn qos2_must_not_come_twice() {
    let five = delivery(5, "t/a", 2);
    let as_six = Delivery {
        packet_id: 6,
        ..five.clone()
    };
    subscribed("t/#", 2)
        .publish(5, "t/a", 2)
        .complete(ANNA, &five)
        .complete(ANNA, &as_six)
        .check(&["came again"]);
    subscribed("t/#", 2)
        .publish(5, "t/a", 2)
        .complete(ANNA, &five)
        .crash()
        .meet(ANNA, true)
        .complete(ANNA, &again(&five))
        .check(&["came again"]);
}

#[test]
fn unfinished_qos2_comes_again_with_dup_and_its_identifier() {
    let five = delivery(5, "t/a", 2);
    let mut history = subscribed("t/#", 2);
    history
        .publish(5, "t/a", 2)
        .get(ANNA, &five)
        .crash()
        .meet(ANNA, true);
    history.clone().complete(ANNA, &again(&five)).check(&[]);
    history
        .clone()
        .complete(ANNA, &five)
        .check(&["without DUP"]);
    let as_six = Delivery {
        packet_id: 6,
        ..again(&five)
    };
    history
        .clone()
        .get(ANNA, &as_six)
        .check(&["as packet identifier 6, before as 5"]);
    history.publish(7, "t/a", 2);
    let another = Delivery {
        packet_id: 5,
        ..delivery(7, "t/a", 2)
    };
    history
        .get(ANNA, &another)
        .check(&["still belongs to", "message 7: lost"]);
}

#[test]
fn pubrel_is_sent_only_for_recorded_messages() {
    let five = delivery(5, "t/a", 2);
    subscribed("t/#", 2)
        .publish(5, "t/a", 2)
        .get(ANNA, &five)
        .does(ANNA, ClientEvent::Released(5))
        .check(&["PUBREL 5 without PUBREC"]);
    subscribed("t/#", 2)
        .does(ANNA, ClientEvent::Released(9))
        .check(&["PUBREL 9 for no message"]);
    subscribed("t/#", 2)
        .publish(5, "t/a", 2)
        .complete(ANNA, &five)
        .crash()
        .meet(ANNA, true)
        .does(ANNA, ClientEvent::Released(5))
        .check(&[]);
}

#[test]
fn pubrel_comes_again_after_a_crash_although_qos1_used_its_identifier_meanwhile() {
    let seven = Delivery {
        packet_id: 5,
        ..delivery(7, "t/a", 1)
    };
    let mut history = subscribed("t/#", 2);
    history
        .publish(5, "t/a", 2)
        .complete(ANNA, &delivery(5, "t/a", 2))
        .publish(7, "t/a", 1)
        .get(ANNA, &seven);
    history
        .clone()
        .does(ANNA, ClientEvent::Released(5))
        .check(&["PUBREL 5 without PUBREC"]);
    history
        .crash()
        .meet(ANNA, true)
        .does(ANNA, ClientEvent::Released(5));
    history
        .clone()
        .does(ANNA, ClientEvent::Released(5))
        .check(&["PUBREL 5 twice on a connection"]);
    history
        .take(ANNA, &again(&delivery(7, "t/a", 1)))
        .check(&[]);
}

#[test]
fn qos1_comes_again_only_if_its_puback_may_be_lost() {
    let five = delivery(5, "t/a", 1);
    let mut history = subscribed("t/#", 1);
    history.publish(5, "t/a", 1).take(ANNA, &five);
    history.clone().take(ANNA, &five).check(&["came again"]);
    history
        .clone()
        .leave(ANNA, false)
        .meet(ANNA, true)
        .take(ANNA, &again(&five))
        .check(&["came again"]);
    history
        .clone()
        .crash()
        .meet(ANNA, true)
        .take(ANNA, &again(&five))
        .check(&[]);
    let mut fenced = history.clone();
    fenced
        .subscribe(ANNA, "fence/a", 0)
        .crash()
        .meet(ANNA, true);
    fenced
        .take(ANNA, &again(&five))
        .check(&["although PUBACK was safe"]);
}

#[test]
fn publisher_that_sends_qos1_again_may_double_it() {
    let five = delivery(5, "t/a", 1);
    let as_six = Delivery {
        packet_id: 6,
        ..five.clone()
    };
    subscribed("t/#", 1)
        .send(5, "t/a", 1)
        .take(ANNA, &five)
        .does(PUBLISHER, ClientEvent::Vanished)
        .meet(PUBLISHER, true)
        .publish(5, "t/a", 1)
        .take(ANNA, &as_six)
        .check(&[]);
}

#[test]
fn first_deliveries_keep_their_order() {
    let (five, six) = (delivery(5, "t/a", 1), delivery(6, "t/a", 1));
    let mut history = subscribed("t/#", 1);
    history.publish(5, "t/a", 1).publish(6, "t/a", 1);
    history
        .clone()
        .take(ANNA, &six)
        .take(ANNA, &five)
        .check(&["came first after message 6"]);
    history
        .take(ANNA, &five)
        .take(ANNA, &six)
        .crash()
        .meet(ANNA, true);
    history
        .take(ANNA, &again(&five))
        .take(ANNA, &again(&six))
        .check(&[]);
    let mut other_topic = subscribed("t/#", 1);
    other_topic.publish(5, "t/a", 1).publish(6, "t/b", 1);
    other_topic
        .take(ANNA, &delivery(6, "t/b", 1))
        .take(ANNA, &five)
        .check(&[]);
}

#[test]
fn group_owes_each_message_once() {
    let filter = "$share/g/t/#";
    let mut history = subscribed(filter, 2);
    history
        .meet(BEN, false)
        .subscribe(BEN, filter, 2)
        .publish(5, "t/a", 2);
    let five = delivery(5, "t/a", 2);
    history.clone().check(&["lost by group"]);
    history.clone().complete(ANNA, &five).check(&[]);
    history.clone().complete(BEN, &five).check(&[]);
    history
        .complete(ANNA, &five)
        .complete(BEN, &five)
        .check(&["had it before"]);
}

#[test]
fn another_copy_of_a_message_of_a_group_may_have_the_identifier_of_the_first() {
    let five = delivery(5, "t/a", 1);
    let reconnected = |filter: &str| {
        let mut history = subscribed(filter, 1);
        history
            .publish(5, "t/a", 1)
            .get(ANNA, &five)
            .does(ANNA, ClientEvent::Vanished)
            .meet(ANNA, true);
        history
    };
    // The group may have given the first copy to another member, and that one may have left it.
    reconnected("$share/g/t/#").take(ANNA, &five).check(&[]);
    reconnected("t/#").take(ANNA, &five).check(&["without DUP"]);
}

#[test]
fn retained_is_the_last_acknowledged_or_a_later_one() {
    let retained = publish("ret/a", 1, true);
    let value = |number: u64| Event::Inspected(BTreeMap::from([("ret/a".to_owned(), number)]));
    let mut history = History::new();
    for number in [5, 6, 7] {
        history.does(PUBLISHER, ClientEvent::Publishing(number, retained.clone()));
    }
    history.accept(5).accept(6).crash().event(Event::Inspecting);
    history.clone().event(value(6)).check(&[]);
    history.clone().event(value(7)).check(&[]);
    history
        .clone()
        .event(value(5))
        .check(&["retained on ret/a"]);
    history
        .clone()
        .event(Event::Inspected(BTreeMap::new()))
        .check(&["retained on ret/a"]);
    let removal = thrum_crash::event::Publish {
        is_empty: true,
        ..retained
    };
    history
        .does(PUBLISHER, ClientEvent::Publishing(8, removal))
        .accept(8)
        .event(Event::NotInspected);
    history.event(Event::Inspecting);
    history
        .clone()
        .event(Event::Inspected(BTreeMap::new()))
        .check(&[]);
    history.event(value(7)).check(&["retained on ret/a"]);
}
