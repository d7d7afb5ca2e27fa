//! `thrum retained ls`.

use clap::Args;
use serde_json::json;

use super::Topics;
use crate::command::data_dir::DataDir;
use crate::command::listing::{self, Cell, Column, ListArgs, ListForm, Listing, Row, View};
use crate::command::shown::time;
use crate::command::stored::{Place, Stored};

/// Arguments of `thrum retained ls`.
#[derive(Debug, Args)]
pub(super) struct LsArgs {
    #[command(flatten)]
    stored: Stored,
    #[command(flatten)]
    topics: Topics,
    /// The same as -o json.
    #[arg(long, conflicts_with = "form")]
    json: bool,
    #[command(flatten)]
    list: ListArgs,
}

static RETAINED: Listing = Listing {
    member: "messages",
    columns: &[
        Column::new("qos", "QOS", Cell::Text(0)),
        Column::new("payload_bytes", "SIZE", Cell::Bytes),
        Column::new("published_at", "PUBLISHED", Cell::Text(0)),
        Column::new("expires_at", "EXPIRES", Cell::Text(0)),
        Column::wide("publisher.client_id", "PUBLISHER", Cell::Text(0)),
        Column::new("topic", "TOPIC", Cell::Text(0)),
    ],
    one: "retained message",
    many: "retained messages",
    aliases: &[
        ("size", "payload_bytes"),
        ("published", "published_at"),
        ("expires", "expires_at"),
    ],
    identity: "",
    sum: "payload_bytes",
};

/// Lists.
pub(super) fn run(args: &LsArgs) -> anyhow::Result<()> {
    let mut list = args.list.unlimited();
    if args.json {
        list = list.in_form(ListForm::Json);
    }
    let view = View::of(&RETAINED, &list);
    match args.stored.place()? {
        #[cfg(feature = "management")]
        Place::Broker(broker) => {
            let question = listing::Question::new("/retained");
            let question = question.with("filter", args.topics.filter.as_deref());
            listing::run_at(&broker, &view, &question)
        }
        Place::Directory(data_dir) => listing::run_rows(&view, || rows(&data_dir, &args.topics)),
    }
}

fn rows(data_dir: &DataDir, topics: &Topics) -> anyhow::Result<Vec<Row>> {
    let state = data_dir.read()?;
    let places = state.retained.iter().map(|retained| retained.message);
    let messages = places.filter_map(|place| state.messages.get(place));
    let messages = messages.filter(|message| topics.fit(message.content.topic()));
    let rows = messages.map(|message| {
        Row::of(&json!({
            "topic": message.content.topic(),
            "qos": message.qos.as_u8(),
            "payload_bytes": message.content.payload().len(),
            "published_at": time(message.published_at),
            "expires_at": message.expires_at.map(time),
        }))
    });
    Ok(rows.collect::<serde_json::Result<_>>()?)
}
