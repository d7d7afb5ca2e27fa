//! Bans of a running broker.

use std::io::{self, Write as _};

use serde_json::{Value, json};
use thrum_management::api::BanAdded;
use thrum_protection::{Ban, Subject};

use super::subject::{parts, shown};
use crate::command::Failure;
use crate::command::running::{Broker, Method, encoded};

/// Adds a ban; true if it takes the place of another one.
pub(super) fn add(broker: &Broker, ban: &Ban) -> anyhow::Result<bool> {
    let mut body = json!({
        "reason": ban.reason,
        "secs": ban.until.map(|until| until - ban.since),
        "disconnect": ban.disconnects,
    });
    for (key, name) in parts(&ban.subject) {
        body[key] = Value::String(name);
    }
    let added: BanAdded = broker.call(Method::Post, "/bans", &body.to_string())?;
    warn_of_late(&added.late_workers)?;
    Ok(added.replaced.is_some())
}

/// Tells that clients of a new ban are not disconnected yet.
pub(crate) fn warn_of_late(workers: &[String]) -> io::Result<()> {
    if workers.is_empty() {
        return Ok(());
    }
    let workers = workers.join(", ");
    writeln!(
        io::stderr(),
        "warning: busy workers have not yet disconnected its clients, and do it with their next turn: {workers}"
    )
}

/// Lifts a ban.
pub(super) fn lift(broker: &Broker, subject: &Subject) -> anyhow::Result<()> {
    let parts = parts(subject);
    let parts = parts
        .iter()
        .map(|(key, name)| format!("{key}={}", encoded(name)));
    let query: Vec<String> = parts.collect();
    let path = format!("/bans?{}", query.join("&"));
    let lifted: anyhow::Result<()> = broker.call(Method::Delete, &path, "");
    lifted.map_err(|error| {
        if error.downcast_ref().map(Failure::code) != Some(Failure::NOT_FOUND) {
            return error;
        }
        let what = format!(
            "{} is not banned; thrum bans ls lists the bans, name one exactly",
            shown(subject)
        );
        Failure::with_code(Failure::NOT_FOUND, what)
    })
}
