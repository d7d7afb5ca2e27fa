//! How the states of a part are made.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::json;
use thrum_broker::{Pulse, TopicQuery};

use super::super::client_detail::ClientDetail;
use super::super::clients::Client;
use super::super::topics::{Topic, TopicInFull, TopicMessage};
use super::super::{ApiState, Problem};
use super::declared::{ClientRows, Part, Payloads};
use super::state::{Content, Row, Rows, State};
use crate::timestamp::timestamp;

/// Rates are of this time, however often they are told: at 250 ms they would jump.
const RATE_TIME: Duration = Duration::from_secs(1);
/// A pulse may be younger than that by this much: one that was read late is less than a second
/// older than the next one, and with the pulse before it the rate would be that of two seconds, of
/// which the first was told already.
const RATE_SLACK: Duration = Duration::from_millis(100);
/// Pulses of that time.
const PULSES_MAX: usize = 8;
/// Bytes of a payload in a list of topics.
const LISTED_PAYLOAD_BYTES: usize = 64;

/// The work for one part.
#[derive(Debug)]
pub(super) struct Work {
    part: Part,
    /// The pulses of the last second.
    pulses: VecDeque<Pulse>,
}

impl Work {
    pub(super) fn new(part: &Part) -> Self {
        Self {
            part: part.clone(),
            pulses: VecDeque::new(),
        }
    }

    /// The state at this moment.
    pub(super) async fn make(&mut self, api: &ApiState) -> State {
        let now = api.security.login.now().wall_millis;
        let made = match &self.part {
            Part::Figures => Ok(self.figures(api)),
            Part::Clients(rows) => clients(api, rows, now).await,
            Part::Client(client_id) => client(api, client_id, now).await,
            Part::Topics(query, payloads) => topics(api, query, *payloads, now).await,
            Part::Topic(topic, payloads) => one_topic(api, topic, *payloads, now).await,
        };
        made.unwrap_or_else(|problem| State {
            at_ms: now,
            content: Content::Failed(problem),
        })
    }

    fn figures(&mut self, api: &ApiState) -> State {
        let pulse = api.queries.live().pulse();
        let age = |one: &Pulse| pulse.uptime.saturating_sub(one.uptime);
        keep_one_old(&mut self.pulses, age);
        let second = if let Some(before) = self.pulses.front() {
            pulse.since(before)
        } else {
            // The page begins with the last second that is known, if there is one.
            let recent = pulse.at.saturating_sub(3000);
            let known = api.queries.live().history(recent).unwrap_or_default();
            let last = known.last().copied();
            last.unwrap_or_else(|| pulse.since(&pulse))
        };
        self.pulses.push_back(pulse);
        State {
            at_ms: second.at,
            content: Content::Figures(Box::new(second)),
        }
    }
}

/// Drops the first pulses until the first one is the last that is old enough.
fn keep_one_old<P>(pulses: &mut VecDeque<P>, age: impl Fn(&P) -> Duration) {
    let is_old = |one: &P| age(one) + RATE_SLACK >= RATE_TIME;
    while pulses.len() >= PULSES_MAX || pulses.get(1).is_some_and(is_old) {
        pulses.pop_front();
    }
}

async fn clients(api: &ApiState, rows: &ClientRows, at_ms: u64) -> Result<State, Problem> {
    let query = rows.query()?;
    let found = api.clone().query(move |queries| queries.sessions(&query));
    let found = found.await?;
    let mut rows = Rows::new(&json!({ "matching": found.matching }));
    for row in found.page.rows {
        rows.push(Row::Client(Box::new(Client::from(row))));
    }
    Ok(State {
        at_ms,
        content: Content::Rows(rows),
    })
}

async fn client(api: &ApiState, client_id: &str, at_ms: u64) -> Result<State, Problem> {
    let name = client_id.to_owned();
    let found = api.clone().query(move |queries| queries.session(&name));
    let found = found.await?.map(ClientDetail::from);
    Ok(State::one(at_ms, &json!({ "client": found })))
}

async fn topics(
    api: &ApiState,
    query: &TopicQuery,
    payloads: Payloads,
    at_ms: u64,
) -> Result<State, Problem> {
    let under = query.under.clone();
    let query = query.clone();
    let found = api
        .clone()
        .query(move |queries| queries.topics().list(&query));
    let found = found.await?;
    let shows = payloads.are_shown();
    let node = found.node.map(|row| listed(Topic::whole(row, shows)));
    let head = json!({
        "node": node,
        "others": found.others,
        "more": found.next.is_some(),
        "observed_since": timestamp(found.observed_since),
        "payloads_left_out": payloads.left_out(),
    });
    let mut rows = Rows::new(&head);
    for row in found.rows {
        let topic = listed(Topic::below(under.as_deref(), row, shows));
        rows.push(Row::Topic(Box::new(topic)));
    }
    Ok(State {
        at_ms,
        content: Content::Rows(rows),
    })
}

/// A topic with the beginning of its payload only.
fn listed(mut topic: Topic) -> Topic {
    if let Some(value) = &mut topic.value {
        shorten(value);
    }
    topic
}

fn shorten(value: &mut TopicMessage) {
    if let Some(text) = &mut value.payload
        && text.len() > LISTED_PAYLOAD_BYTES
    {
        text.truncate(text.floor_char_boundary(LISTED_PAYLOAD_BYTES));
        value.cut = true;
    }
    if let Some(text) = &mut value.payload_base64
        && text.len() > LISTED_PAYLOAD_BYTES
    {
        // Four characters are three bytes.
        text.truncate(LISTED_PAYLOAD_BYTES);
        value.cut = true;
    }
}

async fn one_topic(
    api: &ApiState,
    topic: &str,
    payloads: Payloads,
    at_ms: u64,
) -> Result<State, Problem> {
    let name = topic.to_owned();
    let found = api
        .clone()
        .query(move |queries| queries.topics().show(&name));
    let found = TopicInFull::new(topic.to_owned(), found.await?, payloads.are_shown());
    // Its name is in each event.
    let detail = json!({ "detail": found, "payloads_left_out": payloads.left_out() });
    Ok(State::one(at_ms, &detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times between the pulses that give the rates, of pulses at these times in milliseconds.
    fn spans(times: &[u64]) -> Vec<u64> {
        let mut pulses = VecDeque::new();
        let mut spans = Vec::new();
        for at in times {
            keep_one_old(&mut pulses, |one| Duration::from_millis(at - one));
            spans.extend(pulses.front().map(|one| at - one));
            pulses.push_back(*at);
        }
        spans
    }

    #[test]
    fn no_second_is_told_twice_if_a_pulse_was_read_late() {
        assert_eq!(spans(&[0, 1004, 2001, 3003]), [1004, 997, 1002]);
    }

    #[test]
    fn a_rate_is_that_of_a_second_also_where_it_is_told_more_often() {
        let quarters = [0, 251, 499, 752, 1001, 1249, 1503, 1750];
        assert_eq!(spans(&quarters), [251, 499, 752, 1001, 998, 1004, 998]);
    }

    fn value(payload: Option<&str>, base64: Option<&str>) -> TopicMessage {
        let mut value = TopicMessage {
            at: String::new(),
            qos: 0,
            retain: false,
            messages: None,
            payload_bytes: 9,
            payload: payload.map(ToOwned::to_owned),
            payload_base64: base64.map(ToOwned::to_owned),
            cut: false,
            publisher: None,
        };
        shorten(&mut value);
        value
    }

    #[test]
    fn a_list_shows_the_beginning_of_a_payload() {
        assert!(!value(Some("21.5"), None).cut);
        let long = value(Some(&"\u{e4}".repeat(100)), None);
        assert!(long.cut && long.payload.unwrap().len() == LISTED_PAYLOAD_BYTES);
        let long = value(None, Some(&"A".repeat(100)));
        assert!(long.cut && long.payload_base64.unwrap().len() == LISTED_PAYLOAD_BYTES);
    }
}
