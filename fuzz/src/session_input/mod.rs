//! Any behaviour of a client against the server's session: bytes, silence, lost connections.
//!
//! An input is a script: each step is a byte that selects it and its arguments. For any script the
//! session replies with valid frames, stays within its limits, or ends the connection.

mod client;
mod node;

use thrum_codec::testing::Choices;

use self::node::Node;
use crate::{Sight, sight};

/// Number of steps of one script; enough for several connections, few enough for many scripts per
/// second.
const STEPS_MAX: usize = 400;

/// Runs the script.
///
/// # Panics
/// If the session writes an invalid frame, or exceeds its limits.
pub fn target(input: &[u8]) -> Sight {
    let mut script = Script { rest: input };
    let mut node = Node::default();
    for _ in 0..STEPS_MAX {
        let Some(step) = script.byte() else { break };
        match step % 16 {
            // Most steps are bytes of the client.
            0..=8 => {
                let len = script.byte().unwrap_or(0);
                node.feed(script.bytes(usize::from(len)));
            }
            9 => node.finish_publish(script.byte().unwrap_or(0)),
            10 | 11 => node.deliver(&mut Choices::new(script.bytes(8))),
            12 => node.pass_time(u64::from(script.byte().unwrap_or(0))),
            13 => node.set_congested(script.byte().unwrap_or(0) & 1 == 1),
            14 => node.pump(),
            _ => node.lose_connection(),
        }
        node.check();
    }
    sight(&node.shown())
}

struct Script<'a> {
    rest: &'a [u8],
}

impl<'a> Script<'a> {
    fn byte(&mut self) -> Option<u8> {
        self.rest.split_off_first().copied()
    }

    fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = rest;
        taken
    }
}
