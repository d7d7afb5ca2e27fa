//! The newest state of a part, and the event that takes a viewer from one state to the next.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;
use thrum_broker::{LIVE_FIGURES, LiveSecond};

use super::super::Problem;
use super::super::clients::Client;
use super::super::history::value;
use super::super::topics::Topic;
use super::declared::Part;

/// Bytes of the rows of an event; further ones are left out. Rows are small unless clients have
/// names of kilobytes.
const ROWS_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a row beside its names, about: the names of its members, figures and times.
const ROW_BYTES: usize = 600;

/// What a part looks like at one moment.
#[derive(Debug)]
pub(super) struct State {
    /// Milliseconds of the Unix epoch.
    pub(super) at_ms: u64,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    Figures(Box<LiveSecond>),
    Rows(Rows),
    /// An object of JSON, without its braces.
    One(String),
    /// The broker did not answer.
    Failed(Problem),
}

/// The rows of a list.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Members of the event beside the rows, as JSON, without braces.
    head: String,
    list: Vec<Row>,
    left_out: usize,
    bytes: usize,
}

/// A row of a list. Its JSON is made when it is sent.
#[derive(Debug)]
pub(super) enum Row {
    Client(Box<Client>),
    Topic(Box<Topic>),
}

impl Row {
    fn key(&self) -> &str {
        match self {
            Self::Client(client) => &client.client_id,
            Self::Topic(topic) => &topic.name,
        }
    }

    /// Whether a viewer that has the other one needs this one.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Client(one), Self::Client(other)) => differ_in_age_only(one, other),
            (Self::Topic(one), Self::Topic(other)) => one == other,
            _ => false,
        }
    }

    fn json(&self) -> String {
        match self {
            Self::Client(client) => json(&**client),
            Self::Topic(topic) => json(&**topic),
        }
    }

    /// Bytes of its JSON, about.
    fn bytes(&self) -> usize {
        match self {
            Self::Client(client) => {
                let user = client.user.as_deref().map_or(0, str::len);
                ROW_BYTES + client.client_id.len() + user
            }
            Self::Topic(topic) => ROW_BYTES + topic.topic.len() + topic.name.len(),
        }
    }
}

/// Ages grow by themselves, and a page lets them.
fn differ_in_age_only(one: &Client, other: &Client) -> bool {
    let Client {
        client_id,
        user,
        connected,
        connected_at,
        away_since,
        peer,
        listener,
        protocol_version,
        session_expiry_secs,
        queued_messages,
        queued_bytes,
        inflight,
        subscriptions,
        messages_received,
        messages_sent,
        messages_dropped,
        idle_secs: _,
        oldest_queued_secs: _,
        oldest_unacknowledged_secs: _,
        problems,
    } = one;
    // Figures first: they differ most often.
    *messages_received == other.messages_received
        && *messages_sent == other.messages_sent
        && *messages_dropped == other.messages_dropped
        && *queued_messages == other.queued_messages
        && *queued_bytes == other.queued_bytes
        && *inflight == other.inflight
        && *subscriptions == other.subscriptions
        && *connected == other.connected
        && *connected_at == other.connected_at
        && *away_since == other.away_since
        && *session_expiry_secs == other.session_expiry_secs
        && *client_id == other.client_id
        && *user == other.user
        && *peer == other.peer
        && *listener == other.listener
        && *protocol_version == other.protocol_version
        && *problems == other.problems
}

/// JSON of a value; empty if it cannot be written, which no type here can cause.
fn json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

impl Rows {
    /// With members of an object beside the rows.
    pub(super) fn new<T: Serialize>(head: &T) -> Self {
        Self {
            head: members(head),
            ..Self::default()
        }
    }

    /// Adds a row, if there is room for it.
    pub(super) fn push(&mut self, row: Row) {
        let bytes = row.bytes();
        if self.bytes + bytes > ROWS_BYTES_MAX {
            self.left_out += 1;
            return;
        }
        self.bytes += bytes;
        self.list.push(row);
    }

    fn keys(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(Row::key)
    }

    /// Whether a viewer that has the other ones needs none of these.
    fn is_same(&self, other: &Self) -> bool {
        self.head == other.head
            && self.left_out == other.left_out
            && self.list.len() == other.list.len()
            && self
                .list
                .iter()
                .zip(&other.list)
                .all(|(one, other)| one.is_same(other))
    }

    /// What changed since `before`, as members of JSON; none if nothing did.
    fn changes(&self, before: Option<&Self>) -> Option<String> {
        let known: HashMap<&str, &Row> = before
            .into_iter()
            .flat_map(|before| before.list.iter())
            .map(|row| (row.key(), row))
            .collect();
        let is_same_order = before.is_some_and(|before| before.keys().eq(self.keys()));
        let is_same_head = before
            .is_some_and(|before| before.head == self.head && before.left_out == self.left_out);
        let is_known = |row: &Row| known.get(row.key()).is_some_and(|known| row.is_same(known));
        let changed = self.list.iter().filter(|row| !is_known(row));
        let changed: Vec<String> = changed.map(Row::json).collect();
        if changed.is_empty() && is_same_order && is_same_head {
            return None;
        }
        let mut text = format!("\"whole\":{}", before.is_none());
        if !self.head.is_empty() {
            text.push(',');
            text.push_str(&self.head);
        }
        if !is_same_order {
            let order: Vec<&str> = self.keys().collect();
            text.push_str(",\"order\":");
            text.push_str(&json(&order));
        }
        text.push_str(",\"rows\":[");
        text.push_str(&changed.join(","));
        text.push(']');
        if self.left_out > 0 {
            push_number(&mut text, "left_out", self.left_out as u64);
        }
        Some(text)
    }
}

/// The members of an object, without its braces.
fn members<T: Serialize>(object: &T) -> String {
    let text = json(object);
    let inner = text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    inner.unwrap_or_default().to_owned()
}

fn push_number(text: &mut String, name: &str, number: u64) {
    // Writing into a text cannot fail.
    write!(text, ",\"{name}\":{number}").ok();
}

impl State {
    /// The state of one thing.
    pub(super) fn one<T: Serialize>(at_ms: u64, thing: &T) -> Self {
        let text = members(thing);
        let content = if text.len() > ROWS_BYTES_MAX {
            Content::Failed(too_long(text.len()))
        } else {
            Content::One(text)
        };
        Self { at_ms, content }
    }

    /// Whether a viewer would see no difference.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (&self.content, &other.content) {
            (Content::Rows(one), Content::Rows(other)) => one.is_same(other),
            (Content::One(one), Content::One(other)) => one == other,
            (Content::Failed(one), Content::Failed(other)) => one == other,
            _ => false,
        }
    }

    /// The members of the event that takes a viewer from `before` to this state; none if there is
    /// nothing to tell.
    pub(super) fn event(&self, before: Option<&Self>, figures: &[usize]) -> Option<String> {
        match &self.content {
            Content::Figures(second) => {
                let named = figures.iter().map(|place| {
                    let value = json(&value(second, *place));
                    format!("\"{}\":{value}", LIVE_FIGURES[*place].name)
                });
                let named: Vec<String> = named.collect();
                Some(format!("\"figures\":{{{}}}", named.join(",")))
            }
            Content::Rows(rows) => {
                let before = before.and_then(|before| match &before.content {
                    Content::Rows(rows) => Some(rows),
                    _ => None,
                });
                rows.changes(before)
            }
            Content::One(text) => Some(text.clone()),
            Content::Failed(problem) => Some(format!("\"problem\":{}", json(problem))),
        }
    }
}

fn too_long(bytes: usize) -> Problem {
    Problem::new(
        axum::http::StatusCode::PAYLOAD_TOO_LARGE,
        "too long for a stream",
        format!("it takes {bytes} bytes, and an event at most {ROWS_BYTES_MAX}"),
        "ask for it alone, without the stream",
    )
}

impl Part {
    /// The name of its events.
    pub(super) const fn event_name(&self) -> &'static str {
        match self {
            Self::Figures => "figures",
            Self::Clients(_) => "clients",
            Self::Client(_) => "client",
            Self::Topics(..) => "topics",
            Self::Topic(..) => "topic",
        }
    }

    /// The member that tells which of several it is.
    pub(super) fn subject(&self) -> Option<String> {
        let (name, value) = match self {
            Self::Figures | Self::Clients(_) => return None,
            Self::Client(client_id) => ("client_id", Value::from(client_id.as_str())),
            Self::Topics(query, _) => ("under", Value::from(prefix(query.under.as_deref()))),
            Self::Topic(topic, _) => ("topic", Value::from(topic.as_str())),
        };
        Some(format!("\"{name}\":{value}"))
    }
}

/// The prefix of a level, as the query declares it.
fn prefix(under: Option<&str>) -> String {
    under.map_or_else(String::new, |under| format!("{under}/"))
}

/// An event.
pub(super) struct Event<'a> {
    pub(super) name: &'a str,
    pub(super) at_ms: u64,
    /// Members of its object of JSON.
    pub(super) members: Vec<String>,
}

impl Event<'_> {
    /// As it is sent.
    pub(super) fn text(&self) -> String {
        let Self {
            name,
            at_ms,
            members,
        } = self;
        let mut data = format!("\"at_ms\":{at_ms}");
        for more in members.iter().filter(|more| !more.is_empty()) {
            data.push(',');
            data.push_str(more);
        }
        format!("id: {at_ms}\nevent: {name}\ndata: {{{data}}}\n\n")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn client(client_id: &str, queued_messages: u64, idle_secs: u64) -> Row {
        Row::Client(Box::new(Client {
            client_id: client_id.to_owned(),
            queued_messages,
            idle_secs,
            ..Client::default()
        }))
    }

    fn rows(rows: &[(&str, u64, u64)]) -> State {
        let mut state = Rows::new(&json!({ "matching": rows.len() }));
        for (name, queued, idle) in rows {
            state.push(client(name, *queued, *idle));
        }
        State {
            at_ms: 1,
            content: Content::Rows(state),
        }
    }

    /// Names, queues and ages of the rows of an event.
    fn told(event: &Value) -> Vec<Value> {
        let rows = event["rows"].as_array().unwrap().iter();
        rows.map(|row| json!([row["client_id"], row["queued_messages"], row["idle_secs"]]))
            .collect()
    }

    fn event(state: &State, before: Option<&State>) -> Option<Value> {
        let members = state.event(before, &[])?;
        Some(serde_json::from_str(&format!("{{{members}}}")).unwrap())
    }

    #[test]
    fn a_viewer_gets_all_rows_first_and_then_those_that_changed() {
        let first = rows(&[("a", 1, 5), ("b", 2, 5)]);
        let all = event(&first, None).unwrap();
        assert_eq!(all["whole"], true);
        assert_eq!(all["order"], json!(["a", "b"]));
        assert_eq!(all["rows"].as_array().unwrap().len(), 2);
        let older = rows(&[("a", 1, 6), ("b", 2, 6)]);
        assert_eq!(event(&older, Some(&first)), None, "only their ages differ");
        assert!(older.is_same(&first));
        let changed = rows(&[("a", 1, 7), ("b", 3, 7)]);
        let next = event(&changed, Some(&first)).unwrap();
        assert_eq!(told(&next), [json!(["b", 3, 7])]);
        assert_eq!(
            (&next["whole"], &next["order"]),
            (&json!(false), &Value::Null)
        );
        let moved = event(&rows(&[("b", 3, 8), ("c", 1, 8)]), Some(&changed)).unwrap();
        assert_eq!(moved["order"], json!(["b", "c"]));
        assert_eq!(told(&moved), [json!(["c", 1, 8])]);
    }

    #[test]
    fn rows_that_are_too_long_are_left_out_and_counted() {
        let mut state = Rows::new(&json!({}));
        let names = ["a", "b", "c", "d"].map(|name| name.repeat(30_000));
        for name in &names {
            state.push(client(name, 1, 1));
        }
        let state = State {
            at_ms: 1,
            content: Content::Rows(state),
        };
        let all = event(&state, None).unwrap();
        assert_eq!(all["order"], json!(&names[..2]));
        assert_eq!(all["left_out"], 2);
    }

    #[test]
    fn an_event_is_one_line_of_data() {
        let event = Event {
            name: "client",
            at_ms: 7,
            members: vec![
                Part::Client("a\nb".to_owned()).subject().unwrap(),
                String::new(),
                "\"x\":1".to_owned(),
            ],
        };
        assert_eq!(
            event.text(),
            "id: 7\nevent: client\ndata: {\"at_ms\":7,\"client_id\":\"a\\nb\",\"x\":1}\n\n"
        );
    }
}
