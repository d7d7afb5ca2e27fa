//! `thrum pub`: publish a message, or a line of standard input after the other.

use std::os::fd::BorrowedFd;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use thrum_codec::packet::Publish;
use thrum_codec::{PacketId, QoS, ReasonCode, Version};
use thrum_protocol::Time;
use thrum_protocol::client::Event;

use crate::{
    Application, ConnectionArgs, Defaults, Lines, Outbox, PayloadArgs, Plan, Progress,
    PublishValues, Stop, check_topic, finish, parse_qos, print_help, run as run_client,
};

const EXAMPLES: &str = "\
Examples:
  thrum pub -t hello -m world                         one message
  thrum pub -t sensors/door -m open -q 1 -r           acknowledged, and kept for later subscribers
  tail -f log | thrum pub -t logs -l                  every line a message
  thrum pub -t orders -f order.json -D publish content-type application/json
  thrum pub -L mqtts://broker.example/hello -m world  over TLS; also ws://, wss://, quic:// and unix://";

/// Publish messages, with the options of Mosquitto's client.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, after_help = EXAMPLES)]
pub struct PublishArgs {
    /// Topic to publish to
    #[arg(short, long, allow_hyphen_values = true, help_heading = "Message")]
    topic: Option<String>,

    #[command(flatten)]
    payload: PayloadArgs,

    /// Every line of standard input is a message
    #[arg(short = 'l', long, help_heading = "Message")]
    stdin_line: bool,

    /// Quality of service: 0, 1 or 2
    #[arg(short, long, default_value = "0", value_parser = parse_qos, help_heading = "Message")]
    qos: QoS,

    /// Publish as retained
    #[arg(short, long, help_heading = "Message")]
    retain: bool,

    /// How often the message is published
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..),
        conflicts_with = "stdin_line",
        help_heading = "Message",
    )]
    repeat: u32,

    /// Seconds between a message that is delivered and its repetition
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = parse_delay, help_heading = "Message")]
    repeat_delay: Duration,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Publishes.
///
/// # Errors
/// Standard output cannot be written; failures of the command itself are its exit code.
pub fn run(args: &PublishArgs) -> anyhow::Result<ExitCode> {
    if args.connection.wants_help() {
        return print_help::<PublishArgs>("thrum pub");
    }
    Ok(finish(publish(args), args.connection.is_quiet()))
}

fn publish(args: &PublishArgs) -> Result<(), Stop> {
    match args.payload.count() + usize::from(args.stdin_line) {
        1 => {}
        0 => {
            let ways = "-m TEXT, -f FILE, -s (standard input), -l (its lines) or -n (nothing)";
            return Err(Stop::usage(format!("no message: give one with {ways}")));
        }
        _ => {
            return Err(Stop::usage(
                "more than one message: use only one of -m, -f, -s, -l and -n",
            ));
        }
    }
    let defaults = Defaults {
        id_prefix: "thrum-pub-",
        version: Version::V311,
        needs_5: None,
    };
    let mut plan = Plan::new(&args.connection, defaults)?;
    let Some(topic) = args.topic.clone().or_else(|| plan.url_topic.take()) else {
        return Err(Stop::usage("no topic: give one with -t"));
    };
    check_topic(&topic)?;
    let source = if args.stdin_line {
        Source::Lines(Lines::of_stdin()?)
    } else {
        Source::Once {
            payload: args.payload.read()?,
            left: args.repeat,
            delay: args.repeat_delay,
            not_before: None,
        }
    };
    let mut publisher = Publisher {
        topic,
        qos: args.qos,
        retain: args.retain,
        properties: std::mem::take(&mut plan.properties.publish),
        source,
        refused: None,
    };
    run_client(&plan, &mut publisher)?;
    publisher.refused.map_or(Ok(()), Err)
}

fn parse_delay(text: &str) -> Result<Duration, String> {
    let seconds = text
        .parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "must be a number of seconds, 0 or more".to_owned())
}

/// Publishes what its source gives.
#[derive(Debug)]
struct Publisher {
    topic: String,
    qos: QoS,
    retain: bool,
    properties: PublishValues,
    source: Source,
    /// The first message that the broker refused.
    refused: Option<Stop>,
}

/// The source of the messages.
#[derive(Debug)]
enum Source {
    /// One message, published once or more often.
    Once {
        payload: Vec<u8>,
        left: u32,
        delay: Duration,
        not_before: Option<Time>,
    },
    /// A message per line.
    Lines(Lines),
}

impl Publisher {
    /// Publishes what can go now: within the window, and for repetitions once the last one is
    /// delivered.
    fn publish_next(&mut self, outbox: &mut Outbox<'_>) -> Result<bool, Stop> {
        let payload = match &mut self.source {
            Source::Once { left: 0, .. } => return Ok(false),
            Source::Once {
                delay, not_before, ..
            } if !delay.is_zero() && not_before.is_none() => {
                if outbox.client.inflight() != 0 {
                    return Ok(false);
                }
                *not_before = Some(outbox.now.plus(*delay));
                return Ok(false);
            }
            Source::Once {
                not_before: Some(at),
                ..
            } if *at > outbox.now => return Ok(false),
            Source::Once { payload, .. } => &payload[..],
            Source::Lines(lines) => match lines.peek() {
                Some(line) => line,
                None => return Ok(false),
            },
        };
        let (topic, qos, retain) = (&self.topic, self.qos, self.retain);
        let sent = self.properties.with_publish(|properties| {
            let packet_id = None;
            outbox.publish(&Publish {
                dup: false,
                qos,
                retain,
                topic,
                packet_id,
                properties,
                payload,
            })
        })?;
        if sent.is_none() {
            return Ok(false);
        }
        match &mut self.source {
            Source::Once {
                left, not_before, ..
            } => {
                *left -= 1;
                *not_before = None;
            }
            Source::Lines(lines) => lines.consume(),
        }
        Ok(true)
    }

    fn is_exhausted(&self) -> bool {
        match &self.source {
            Source::Once { left, .. } => *left == 0,
            Source::Lines(lines) => lines.is_finished(),
        }
    }

    fn note_outcome(&mut self, packet_id: PacketId, reason: ReasonCode, outbox: &Outbox<'_>) {
        if !reason.is_error() {
            return;
        }
        let what = format!(
            "message {} to {:?} refused by the broker",
            packet_id.as_u16(),
            self.topic
        );
        let stop = Stop::refused(&what, reason, None);
        match self.refused {
            None => self.refused = Some(stop),
            Some(_) => outbox.console.warn(stop.message()),
        }
    }
}

impl Application for Publisher {
    fn handle_connected(&mut self, _outbox: &mut Outbox<'_>) -> Result<(), Stop> {
        // The first message waits for nothing.
        if let Source::Once { not_before, .. } = &mut self.source {
            *not_before = Some(Time::default());
        }
        Ok(())
    }

    fn handle_event(
        &mut self,
        event: &Event<'_>,
        outbox: &mut Outbox<'_>,
    ) -> Result<Progress, Stop> {
        if let Event::Acknowledged { packet_id, reason } = event {
            self.note_outcome(*packet_id, *reason, outbox);
        }
        Ok(Progress::Continue)
    }

    fn advance(&mut self, outbox: &mut Outbox<'_>) -> Result<Progress, Stop> {
        while outbox.has_room() && self.publish_next(outbox)? {}
        if self.is_exhausted() && outbox.client.inflight() == 0 {
            return Ok(Progress::Done);
        }
        Ok(Progress::Continue)
    }

    fn next_deadline(&self) -> Option<Time> {
        match &self.source {
            Source::Once {
                not_before, left, ..
            } if *left != 0 => *not_before,
            Source::Once { .. } | Source::Lines(_) => None,
        }
    }

    fn input(&self) -> Option<BorrowedFd<'_>> {
        match &self.source {
            Source::Lines(lines) => lines.descriptor(),
            Source::Once { .. } => None,
        }
    }

    fn handle_input(&mut self) -> Result<(), Stop> {
        match &mut self.source {
            Source::Lines(lines) => lines.fill(),
            Source::Once { .. } => Ok(()),
        }
    }
}
