//! Finds events of a history that are certainly expected: the checker must report their absence.
//!
//! It considers one event and its surroundings and is far simpler than the checker: it excludes
//! every event whose absence could be allowed.

use thrum_codec::{QoS, topic};

use super::history::{ClientNumber, Ending, Entry, Event, Message, MessageNumber};

/// A message that was sent once with QoS 2, and arrived with it.
pub(super) fn is_exactly_once(history: &[Entry], place: usize) -> bool {
    let Event::Received {
        number,
        topic,
        qos: QoS::ExactlyOnce,
        retain: false,
        ..
    } = history[place].event
    else {
        return false;
    };
    topic.starts_with('t') && sendings(history, number).count() == 1
}

/// A message that was accepted, and arrived once at a client that had subscribed to it before it
/// was sent and stayed connected until everything was settled.
pub(super) fn is_expected_message(history: &[Entry], place: usize) -> bool {
    let Event::Received {
        client,
        number,
        topic,
        retain: false,
        ..
    } = history[place].event
    else {
        return false;
    };
    let Some((sent, message)) = sendings(history, number).next() else {
        return false;
    };
    let is_kept = message.qos != QoS::AtMostOnce && message.expiry_secs.is_none();
    if !topic.starts_with('t') || !is_kept || arrivals(history, client, number) != 1 {
        return false;
    }
    let is_accepted = |event: &Event| match event {
        Event::Accepted {
            number: other,
            outcome,
            ..
        } => *other == number && !outcome.is_error(),
        _ => false,
    };
    let Some(accepted) = find(history, 0, is_accepted) else {
        return false;
    };
    let Some(settled) = find(history, accepted.max(place), is_settled) else {
        return false;
    };
    let is_of_client = |event: &Event| connection_of(event) == Some(client);
    let Some(connected) = history[..sent]
        .iter()
        .rposition(|entry| is_of_client(&entry.event))
    else {
        return false;
    };
    let stays = matches!(history[connected].event, Event::Connected { .. })
        && find(history, connected + 1, is_of_client).is_none_or(|next| next > settled);
    stays
        && has_one_subscription(
            &history[connected..settled],
            sent - connected,
            (client, topic),
        )
}

/// Whether there is exactly one subscription to the topic, granted before that position and never
/// changed.
fn has_one_subscription(
    history: &[Entry],
    sent: usize,
    (client, name): (ClientNumber, &str),
) -> bool {
    let mut granted = None;
    let mut touched = 0;
    for (place, entry) in history.iter().enumerate() {
        match entry.event {
            Event::Subscribing {
                client: of, filter, ..
            }
            | Event::Unsubscribing { client: of, filter }
                if of == client && topic::matches(filter, name) =>
            {
                touched += 1;
            }
            Event::Subscribed {
                client: of,
                filter,
                granted: Some(qos),
            } if of == client && qos != QoS::AtMostOnce && topic::matches(filter, name) => {
                granted = Some(place);
            }
            _ => {}
        }
    }
    touched == 1 && granted.is_some_and(|place| place < sent)
}

/// A will without delay that arrived once, and whose connection was up and was cut before
/// everything was settled.
pub(super) fn is_expected_will(history: &[Entry], place: usize) -> bool {
    let Event::Received {
        client: watcher,
        number,
        topic,
        retain: false,
        ..
    } = history[place].event
    else {
        return false;
    };
    if !topic.starts_with('w') || arrivals(history, watcher, number) != 1 {
        return false;
    }
    let begins = |event: &Event| match event {
        Event::Connecting {
            will: Some(note), ..
        } => note.number == number && note.delay_secs == 0,
        _ => false,
    };
    let Some(begun) = find(history, 0, begins) else {
        return false;
    };
    let client = connection_of(&history[begun].event);
    let is_of_client = |event: &Event| connection_of(event) == client;
    let next = |from: usize| find(history, from + 1, is_of_client);
    let before = history[..begun]
        .iter()
        .rposition(|entry| is_of_client(&entry.event));
    let had_answer = before.is_none_or(|before| find(history, before, is_settled) < Some(begun));
    let Some((up, cut)) = next(begun).and_then(|up| Some((up, next(up)?))) else {
        return false;
    };
    let is_cut = matches!(history[up].event, Event::Connected { .. })
        && matches!(
            history[cut].event,
            Event::Disconnected {
                how: Ending::Cut,
                ..
            }
        );
    let settled = find(history, cut, is_settled);
    let ends_it = |event: &Event| is_of_client(event) || *event == Event::Restarted;
    let next_end = find(history, cut + 1, ends_it);
    had_answer && is_cut && settled.is_some() && next_end.is_none_or(|end| settled < Some(end))
}

fn is_settled(event: &Event) -> bool {
    *event == Event::Settled
}

fn find(history: &[Entry], from: usize, is_it: impl Fn(&Event) -> bool) -> Option<usize> {
    let found = history[from..].iter().position(|entry| is_it(&entry.event));
    found.map(|place| from + place)
}

fn sendings(history: &[Entry], number: MessageNumber) -> impl Iterator<Item = (usize, Message)> {
    history
        .iter()
        .enumerate()
        .filter_map(move |(place, entry)| match entry.event {
            Event::Sent { message, .. } if message.number == number => Some((place, message)),
            _ => None,
        })
}

fn arrivals(history: &[Entry], client: ClientNumber, number: MessageNumber) -> usize {
    let is_it = |entry: &&Entry| match entry.event {
        Event::Received {
            client: of,
            number: other,
            ..
        } => (of, other) == (client, number),
        _ => false,
    };
    history.iter().filter(is_it).count()
}

/// The client whose connection begins, is acknowledged or ends.
fn connection_of(event: &Event) -> Option<ClientNumber> {
    match event {
        Event::Connecting { client, .. }
        | Event::Connected { client, .. }
        | Event::Refused { client, .. }
        | Event::Disconnected { client, .. } => Some(*client),
        _ => None,
    }
}
