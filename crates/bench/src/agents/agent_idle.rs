//! An agent without a run waits for one. The control broker may start after the agent, and stop
//! between two runs.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::control_connection::{ControlConnection, ControlError, ControlSetup};
use super::message::Announcement;
use super::serve::{AgentOptions, RETRY, is_final};
use super::topic::{ANNOUNCEMENTS, unique};
use crate::clock;

/// Longest single wait for a message.
const LISTEN: Duration = Duration::from_millis(100);

/// The session of the next run; none if the agent is to end.
pub(super) fn wait_for_run(
    options: &AgentOptions,
    log: &mut dyn FnMut(&str),
) -> Result<Option<String>, ControlError> {
    let mut said = String::new();
    while !options.interrupt.load(Ordering::Relaxed) {
        let failed = match listen(options) {
            Ok(session) => return Ok(session),
            Err(error) if is_final(&error) => return Err(error),
            Err(error) => error.to_string(),
        };
        if failed != said {
            log(&format!("{failed}; trying again"));
            said = failed;
        }
        clock::rest(RETRY);
    }
    Ok(None)
}

fn listen(options: &AgentOptions) -> Result<Option<String>, ControlError> {
    let connection = ControlConnection::open(ControlSetup {
        endpoint: &options.control,
        client_id: &format!("thrum-agent-{}", unique()),
        will: None,
        filters: vec![ANNOUNCEMENTS.to_owned()],
        pulse: None,
    })?;
    while !options.interrupt.load(Ordering::Relaxed) {
        let Some(incoming) = connection.receive(LISTEN)? else {
            continue;
        };
        // Other messages on this topic are ignored.
        if let Ok(announcement) = serde_json::from_slice::<Announcement>(&incoming.payload) {
            return Ok(Some(announcement.session));
        }
    }
    Ok(None)
}
