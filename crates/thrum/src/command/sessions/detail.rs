//! Everything that is kept of one session.

use std::fmt::Write as _;

use serde_json::{Value, json};
use thrum_codec::packet::RetainHandling;
use thrum_storage::{
    Awaiting, Owner, Recovered, RecoveredDelivery, RecoveredMessage, RecoveredSubscription,
    RecoveredWill,
};

use super::row::{Row, content_len};
use crate::command::shown::{NOTHING, name, seconds, size, table, time};

const HEADINGS: [&str; 7] = [
    "PACKET ID",
    "STATE",
    "QOS",
    "RETAIN",
    "SIZE",
    "EXPIRES",
    "TOPIC",
];

/// A session, and the messages of its deliveries.
pub(super) struct Detail<'a> {
    pub(super) row: &'a Row<'a>,
    pub(super) state: &'a Recovered,
    /// Most deliveries that are shown.
    pub(super) limit: usize,
}

impl Detail<'_> {
    /// For people.
    pub(super) fn text(&self) -> String {
        let session = self.row.session;
        let away = session.away_since.map_or_else(|| NOTHING.to_owned(), time);
        let received = session.received.iter().map(|id| id.as_u16().to_string());
        let received: Vec<String> = received.collect();
        let received = if received.is_empty() {
            NOTHING.to_owned()
        } else {
            received.join(", ")
        };
        let mut text = format!(
            "client id        {}\nuser             {}\nversion          {}\nexpiry           {}\naway since       {away}\n\
             last packet id   {}\nawaits PUBREL    {received}\nwill             {}\n",
            name(&session.client_id),
            user(&session.owner),
            session.version.name(),
            seconds(session.expiry_secs),
            session.packet_id_hint,
            session
                .will
                .as_ref()
                .map_or_else(|| NOTHING.to_owned(), will),
        );
        section(&mut text, "subscriptions", session.subscriptions.len());
        let subscriptions = session.subscriptions.iter().map(subscription);
        subscriptions.for_each(|line| text.push_str(&line));
        section(&mut text, "deliveries", session.deliveries.len());
        if !session.deliveries.is_empty() {
            let shown = session.deliveries.iter().take(self.limit);
            let rows: Vec<_> = shown.map(|one| self.columns(one)).collect();
            text.push_str(&table(&HEADINGS, &rows));
        }
        let rest = session.deliveries.len().saturating_sub(self.limit);
        if rest > 0 {
            text.extend([format!("… and {rest} more; --limit N shows N\n")]);
        }
        text
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let session = self.row.session;
        let mut json = self.row.json();
        let deliveries = session.deliveries.iter().take(self.limit);
        let details = json!({
            "user": user_json(&session.owner),
            "packet_id_hint": session.packet_id_hint,
            "awaits_pubrel": session.received.iter().map(|id| id.as_u16()).collect::<Vec<_>>(),
            "will": session.will.as_ref().map(will_json),
            "subscriptions": session.subscriptions.iter().map(subscription_json).collect::<Vec<_>>(),
            "deliveries": deliveries.map(|one| self.delivery_json(one)).collect::<Vec<_>>(),
            "deliveries_total": session.deliveries.len(),
        });
        if let (Value::Object(json), Value::Object(details)) = (&mut json, details) {
            json.extend(details);
        }
        json
    }

    fn message(&self, delivery: &RecoveredDelivery) -> Option<&RecoveredMessage> {
        self.state.messages.get(delivery.message?)
    }

    fn columns(&self, delivery: &RecoveredDelivery) -> Vec<String> {
        let nothing = || NOTHING.to_owned();
        let message = self.message(delivery);
        let of_message =
            |value: fn(&RecoveredMessage) -> String| message.map_or_else(nothing, value);
        let packet_id = delivery.inflight.map(|(id, _)| id.as_u16().to_string());
        let expires = message.and_then(|message| message.expires_at);
        vec![
            packet_id.unwrap_or_else(nothing),
            step(delivery).to_owned(),
            delivery.qos.as_u8().to_string(),
            if delivery.retain { "yes" } else { "no" }.to_owned(),
            of_message(|message| size(content_len(&message.content))),
            expires.map_or_else(nothing, time),
            of_message(|message| name(message.content.topic()).into_owned()),
        ]
    }

    fn delivery_json(&self, delivery: &RecoveredDelivery) -> Value {
        let message = self.message(delivery);
        json!({
            "packet_id": delivery.inflight.map(|(id, _)| id.as_u16()),
            "state": step(delivery),
            "qos": delivery.qos.as_u8(),
            "retain": delivery.retain,
            "bytes": message.map(|message| content_len(&message.content)),
            "published_at": message.map(|message| time(message.published_at)),
            "expires_at": message.and_then(|message| message.expires_at).map(time),
            "topic": message.map(|message| message.content.topic()),
            "shared": delivery.group,
            "subscription_identifiers": delivery.identifiers,
        })
    }
}

fn section(text: &mut String, heading: &str, count: usize) {
    text.extend([format!("\n{heading} ({count})\n")]);
}

/// The last event of a delivery. After PUBREC only the packet identifier is kept.
fn step(delivery: &RecoveredDelivery) -> &'static str {
    match delivery.inflight {
        None => "queued",
        Some((_, Awaiting::PubAck)) => "awaits PUBACK",
        Some((_, Awaiting::PubRec)) => "awaits PUBREC",
        Some((_, Awaiting::PubComp)) => "awaits PUBCOMP",
    }
}

fn user(owner: &Owner<Box<str>>) -> String {
    match owner {
        Owner::Unknown => NOTHING.to_owned(),
        Owner::Anonymous => "(anonymous)".to_owned(),
        Owner::User(user) => name(user).to_string(),
    }
}

fn user_json(owner: &Owner<Box<str>>) -> Value {
    match owner {
        Owner::Unknown | Owner::Anonymous => Value::Null,
        Owner::User(user) => json!(user),
    }
}

fn will(will: &RecoveredWill) -> String {
    format!(
        "{}, qos {}, {}, {}, due {} after leaving",
        name(will.content.topic()),
        will.qos.as_u8(),
        if will.retain {
            "retained"
        } else {
            "not retained"
        },
        size(content_len(&will.content)),
        seconds(will.delay_secs),
    )
}

fn will_json(will: &RecoveredWill) -> Value {
    json!({
        "topic": will.content.topic(),
        "qos": will.qos.as_u8(),
        "retain": will.retain,
        "bytes": content_len(&will.content),
        "delay_secs": will.delay_secs,
        "message_expiry_secs": will.message_expiry_secs,
    })
}

fn subscription(one: &RecoveredSubscription) -> String {
    let mut text = format!("qos {}  {}", one.options.qos.as_u8(), name(&one.filter));
    let mut add = |is_so: bool, what: &str| {
        if is_so {
            text.push_str(", ");
            text.push_str(what);
        }
    };
    add(one.options.no_local, "no local");
    add(one.options.retain_as_published, "retain as published");
    match one.options.retain_handling {
        RetainHandling::Send => {}
        RetainHandling::SendIfNew => add(true, "retained messages only if new"),
        RetainHandling::Never => add(true, "no retained messages"),
    }
    if one.identifier > 0 {
        // A string takes everything.
        write!(text, ", identifier {}", one.identifier).unwrap_or_default();
    }
    text.push('\n');
    text
}

fn subscription_json(one: &RecoveredSubscription) -> Value {
    json!({
        "filter": one.filter,
        "qos": one.options.qos.as_u8(),
        "no_local": one.options.no_local,
        "retain_as_published": one.options.retain_as_published,
        "retain_handling": one.options.retain_handling as u8,
        "identifier": Some(one.identifier).filter(|&identifier| identifier > 0),
    })
}
