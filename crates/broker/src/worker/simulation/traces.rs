//! A trace of one client runs beside the other steps: it contains whole packets, and only those
//! that the clients have sent or may receive.

use std::time::Duration;

use thrum_codec::frame;
use thrum_codec::{Packet, decode};

use super::history::{ClientNumber, Event, MessageNumber};
use super::world::{Failure, World};
use crate::control::test_queries::{PendingAnswers, queries, start_trace};
use crate::trace::{Direction, LiveTrace, TraceItem, TraceRequest, TraceSubject, TracedPacket};

/// A trace that runs.
#[derive(Debug)]
pub(super) struct SimTrace {
    live: LiveTrace,
    /// Its begin on the workers, which would be given up with this.
    _started: PendingAnswers<()>,
    client: ClientNumber,
}

impl World {
    /// Begins a trace of a client, unless one runs. Its choice is none of the seed, whose other
    /// choices stay as they are.
    pub(super) fn begin_trace(&mut self) -> Result<(), Failure> {
        if self.trace.is_some() {
            return Ok(());
        }
        let client = self.history.len() % self.clients.len();
        let request = TraceRequest {
            subject: TraceSubject::Client(format!("c{client}").into()),
            payloads: true,
            time: Duration::from_mins(10),
            packets_max: 500,
            bytes_max: 1 << 20,
        };
        let started = start_trace(&queries(&self.machine.node), &request);
        let (live, started) = started.map_err(|error| error.to_string())?;
        self.trace = Some(SimTrace {
            live,
            _started: started,
            client,
        });
        Ok(())
    }

    /// Checks what the trace has told since the last call.
    pub(super) fn check_trace(&mut self) -> Result<(), Failure> {
        while let Some(trace) = &mut self.trace
            && let Some(item) = trace.live.poll()
        {
            let client = trace.client;
            match item {
                TraceItem::Packet(packet) => self
                    .check_packet(client, &packet)
                    .map_err(|what| format!("{what}: {packet:?} in a trace of client {client}"))?,
                TraceItem::LeftOut(_) => {}
                TraceItem::Ended(_) => self.trace = None,
            }
        }
        Ok(())
    }

    fn check_packet(&self, client: ClientNumber, traced: &TracedPacket) -> Result<(), Failure> {
        let bytes = &traced.bytes;
        if bytes.len() < traced.packet_bytes as usize {
            // Longer than an excerpt.
            return Ok(());
        }
        let frame = frame::split(bytes, u32::MAX).ok().flatten();
        let packet = frame.and_then(|frame| decode(frame, traced.version).ok());
        let Some(packet) = packet else {
            return Err("no packet".to_owned());
        };
        if *traced.client_id != *format!("c{client}") {
            return Err("another client".to_owned());
        }
        let Packet::Publish(publish) = packet else {
            return Ok(());
        };
        let Some(number) = publish.payload.first_chunk() else {
            return Ok(());
        };
        let number = MessageNumber::from_be_bytes(*number);
        let is_known = match traced.direction {
            Direction::ToClient => number <= self.next_number,
            Direction::FromClient => self.history.iter().any(|entry| match entry.event {
                Event::Sent {
                    client: of,
                    message,
                } => of == client && message.number == number,
                _ => false,
            }),
        };
        if is_known {
            Ok(())
        } else {
            Err(format!("message {number} is unknown"))
        }
    }
}
