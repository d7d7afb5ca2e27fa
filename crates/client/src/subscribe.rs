//! `thrum sub`: print the messages of some topics.

use std::collections::VecDeque;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use thrum_codec::packet::{
    Publish, RetainHandling, SubAck, SubscriptionOptions, SubscriptionRequest,
};
use thrum_codec::properties::PublishProperties;
use thrum_codec::topic::matches;
use thrum_codec::{PacketId, QoS, TopicFilter, Version};
use thrum_protocol::Time;
use thrum_protocol::client::{Event, FILTERS_PER_PACKET, SubscribeError};

use crate::{
    Application, ConnectionArgs, Defaults, Outbox, Plan, PrintArgs, Printer, Progress,
    PropertyValues, Received, Stop, check_filter, finish, parse_qos, print_help, run as run_client,
    words,
};

const EXAMPLES: &str = "\
Examples:
  thrum sub -t hello                                  payloads, a line each
  thrum sub -v -t 'sensors/#'                         with their topics
  thrum sub -t status -C 1 -W 5                       one message, or exit code 27 after five seconds
  thrum sub -t '#' -F '@H:@M:@S %t %q %l %p'          time, topic, QoS, length, payload
  thrum sub -t '#' --remove-retained --retained-only  delete all retained messages
  thrum sub -L mqtts://broker.example/hello           over TLS; also ws://, wss://, quic:// and unix://";

/// Subscribe and print messages, with the options of Mosquitto's client.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, after_help = EXAMPLES)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub struct SubscribeArgs {
    /// Topic filter to subscribe to; may be repeated
    #[arg(
        short,
        long = "topic",
        value_name = "FILTER",
        allow_hyphen_values = true,
        help_heading = "Subscription"
    )]
    topics: Vec<String>,

    /// Topic filter to unsubscribe from; may be repeated
    #[arg(
        short = 'U',
        long = "unsubscribe",
        value_name = "FILTER",
        allow_hyphen_values = true,
        help_heading = "Subscription"
    )]
    unsubscribe: Vec<String>,

    /// Highest quality of service to receive with: 0, 1 or 2
    #[arg(short, long, default_value = "0", value_parser = parse_qos, help_heading = "Subscription")]
    qos: QoS,

    /// Receive the retain flag as it was published (5.0)
    #[arg(long, help_heading = "Subscription")]
    retain_as_published: bool,

    /// Topic filter of messages to leave out; may be repeated
    #[arg(
        short = 'T',
        long = "filter-out",
        value_name = "FILTER",
        allow_hyphen_values = true,
        help_heading = "Selection"
    )]
    filter_out: Vec<String>,

    /// Leave out retained messages
    #[arg(short = 'R', help_heading = "Selection")]
    no_retained: bool,

    /// Only retained messages; ends with the first other one
    #[arg(long, help_heading = "Selection")]
    retained_only: bool,

    /// Delete every retained message that is received
    #[arg(long, help_heading = "Selection")]
    remove_retained: bool,

    /// Percentage of messages to print, chosen at random
    #[arg(long, value_name = "PERCENT", value_parser = parse_percentage, help_heading = "Selection")]
    random_filter: Option<f64>,

    /// Ends after so many messages
    #[arg(
        short = 'C',
        value_name = "COUNT",
        value_parser = clap::value_parser!(u64).range(1..),
        help_heading = "End",
    )]
    count: Option<u64>,

    /// Ends after so many seconds, with exit code 27
    #[arg(
        short = 'W',
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u32).range(1..),
        help_heading = "End",
    )]
    timeout: Option<u32>,

    /// Ends once the broker has answered the subscriptions
    #[arg(short = 'E', help_heading = "End")]
    exit_after_suback: bool,

    #[command(flatten)]
    print: PrintArgs,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Subscribes and prints.
///
/// # Errors
/// Standard output cannot be written; failures of the command itself are its exit code.
pub fn run(args: &SubscribeArgs) -> anyhow::Result<ExitCode> {
    if args.connection.wants_help() {
        return print_help::<SubscribeArgs>("thrum sub");
    }
    Ok(finish(subscribe(args), args.connection.is_quiet()))
}

fn subscribe(args: &SubscribeArgs) -> Result<(), Stop> {
    let needs_5 = args.retain_as_published.then_some("--retain-as-published");
    let defaults = Defaults {
        id_prefix: "thrum-sub-",
        version: Version::V311,
        needs_5,
    };
    let mut plan = Plan::new(&args.connection, defaults)?;
    let printer = args.print.printer(plan.console)?;
    let topics: Vec<String> = args
        .topics
        .iter()
        .cloned()
        .chain(plan.url_topic.take())
        .collect();
    if topics.is_empty() && args.unsubscribe.is_empty() {
        return Err(Stop::usage(
            "no topic: give one with -t, all of them with -t '#'",
        ));
    }
    let lists = [&topics, &args.unsubscribe, &args.filter_out];
    for filter in lists.into_iter().flatten() {
        check_filter(filter)?;
    }
    let random = args.random_filter.map(Chance::new);
    let mut subscriber = Subscriber {
        args,
        topics,
        properties: &plan.properties,
        printer,
        random,
        timeout: args.timeout,
        deadline: None,
        answers_missing: 0,
        pending: Vec::new(),
        refused: 0,
        left: args.count,
        to_remove: VecDeque::new(),
        done: false,
    };
    run_client(&plan, &mut subscriber)
}

fn parse_percentage(text: &str) -> Result<f64, String> {
    let percentage = text
        .parse()
        .ok()
        .filter(|percentage| (0.1..=100.0).contains(percentage));
    percentage.ok_or_else(|| "must be a number from 0.1 to 100".to_owned())
}

/// Subscribes, and prints the messages.
struct Subscriber<'a> {
    args: &'a SubscribeArgs,
    topics: Vec<String>,
    properties: &'a PropertyValues,
    printer: Printer,
    random: Option<Chance>,
    timeout: Option<u32>,
    deadline: Option<Time>,
    /// SUBACK and UNSUBACK not yet received.
    answers_missing: usize,
    /// The SUBSCRIBEs of this connection.
    pending: Vec<PendingSubscribe>,
    /// Filters that the broker has refused on this connection.
    refused: usize,
    /// Messages still to be printed.
    left: Option<u64>,
    /// Retained messages to delete.
    to_remove: VecDeque<String>,
    /// Nothing more is printed: the command ends as soon as the rest is sent.
    done: bool,
}

/// A SUBSCRIBE, and the place of its first filter in the list of all.
struct PendingSubscribe {
    packet_id: PacketId,
    first: usize,
}

impl Subscriber<'_> {
    /// Sends all subscriptions; many filters take several packets, because brokers limit the
    /// filters of one.
    fn send_requests(&mut self, outbox: &mut Outbox<'_>) -> Result<(), Stop> {
        (self.answers_missing, self.refused) = (0, 0);
        self.pending.clear();
        let options = SubscriptionOptions {
            qos: self.args.qos,
            retain_as_published: self.args.retain_as_published,
            no_local: false,
            retain_handling: RetainHandling::Send,
        };
        let mut requests = Vec::new();
        for topic in &self.topics {
            requests.push(SubscriptionRequest {
                filter: check_filter(topic)?,
                options,
            });
        }
        for (packet, requests) in requests.chunks(FILTERS_PER_PACKET).enumerate() {
            let (now, out) = (outbox.now, &mut *outbox.bytes);
            let client = &mut *outbox.client;
            let sent = self
                .properties
                .with_subscribe(|properties| client.subscribe(properties, requests, now, out));
            self.pending.push(PendingSubscribe {
                packet_id: sent.map_err(refused_request)?,
                first: packet * FILTERS_PER_PACKET,
            });
            self.answers_missing += 1;
        }
        let mut filters = Vec::new();
        for filter in &self.args.unsubscribe {
            filters.push(check_filter(filter)?);
        }
        for filters in filters.chunks(FILTERS_PER_PACKET) {
            self.properties
                .with_unsubscribe(|user| {
                    outbox
                        .client
                        .unsubscribe(user, filters, outbox.now, outbox.bytes)
                })
                .map_err(refused_request)?;
            self.answers_missing += 1;
        }
        Ok(())
    }

    fn handle_answer(&mut self) {
        self.answers_missing -= 1;
        let only_unsubscribes = self.topics.is_empty();
        if self.answers_missing == 0 && (self.args.exit_after_suback || only_unsubscribes) {
            self.done = true;
        }
    }

    fn handle_suback(&mut self, ack: &SubAck<'_>, outbox: &Outbox<'_>) -> Result<(), Stop> {
        let mut refusals = Vec::new();
        let pending = self
            .pending
            .iter()
            .find(|pending| pending.packet_id == ack.packet_id);
        let first = pending.map_or(0, |pending| pending.first);
        for (topic, code) in self.topics.iter().skip(first).zip(&ack.codes) {
            if code.is_error() {
                let what = format!("subscription to {topic:?} refused by the broker");
                refusals.push(Stop::refused(&what, code, ack.properties.reason_string));
            } else if code < self.args.qos.granted() {
                let granted = words(code);
                let message =
                    format!("{topic:?} is delivered with less than -q asks for: {granted}");
                outbox.console.warn(&message);
            }
        }
        // Brokers report a partly allowed subscription in this way: without the text its silence
        // would be unexplained.
        if let Some(what) = ack.properties.reason_string
            && refusals.is_empty()
        {
            outbox.console.warn(&format!("the broker says: {what}"));
        }
        self.refused += refusals.len();
        if self.refused == self.topics.len() {
            return refusals.pop().map_or(Ok(()), Err);
        }
        for refusal in refusals {
            outbox.console.warn(refusal.message());
        }
        self.handle_answer();
        Ok(())
    }

    fn handle_message(&mut self, received: Received<'_>) -> Result<(), Stop> {
        if self.args.retained_only && !received.publish.retain {
            self.done = true;
            return Ok(());
        }
        let left_out = self
            .args
            .filter_out
            .iter()
            .any(|filter| is_matched(filter, received.topic));
        if left_out {
            return Ok(());
        }
        if self.args.remove_retained && received.publish.retain {
            self.to_remove.push_back(received.topic.to_owned());
        }
        if self.args.no_retained && received.publish.retain {
            return Ok(());
        }
        if self.random.as_mut().is_none_or(Chance::is_in) {
            self.printer.print(received)?;
        }
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(1);
            self.done |= *left == 0;
        }
        Ok(())
    }

    /// Deletes retained messages as far as the window allows.
    fn remove_retained(&mut self, outbox: &mut Outbox<'_>) -> Result<(), Stop> {
        while let Some(topic) = self.to_remove.front() {
            let deletion = Publish {
                dup: false,
                qos: QoS::AtLeastOnce,
                retain: true,
                topic,
                packet_id: None,
                properties: PublishProperties::default(),
                payload: b"",
            };
            if outbox.publish(&deletion)?.is_none() {
                break;
            }
            self.to_remove.pop_front();
        }
        Ok(())
    }
}

impl Application for Subscriber<'_> {
    fn handle_connected(&mut self, outbox: &mut Outbox<'_>) -> Result<(), Stop> {
        self.send_requests(outbox)
    }

    fn handle_event(
        &mut self,
        event: &Event<'_>,
        outbox: &mut Outbox<'_>,
    ) -> Result<Progress, Stop> {
        match event {
            Event::Message { publish, alias } if !self.done => {
                let topic = alias.as_deref().unwrap_or(publish.topic);
                self.handle_message(Received { topic, publish })?;
            }
            Event::Subscribed(ack) => self.handle_suback(ack, outbox)?,
            Event::Unsubscribed(_) => self.handle_answer(),
            Event::Acknowledged { reason, .. } if reason.is_error() => {
                let what = "deletion of a retained message refused by the broker";
                return Err(Stop::refused(what, *reason, None));
            }
            _ => {}
        }
        if self.done {
            // Pending deletions are still sent.
            return self.advance(outbox);
        }
        Ok(Progress::Continue)
    }

    fn advance(&mut self, outbox: &mut Outbox<'_>) -> Result<Progress, Stop> {
        self.remove_retained(outbox)?;
        let finished = self.done && self.to_remove.is_empty() && outbox.client.inflight() == 0;
        Ok(if finished {
            Progress::Done
        } else {
            Progress::Continue
        })
    }

    fn flush(&mut self) -> Result<(), Stop> {
        self.printer.flush()
    }

    fn next_deadline(&self) -> Option<Time> {
        self.deadline
    }

    fn handle_timeout(&mut self, now: Time) -> Result<(), Stop> {
        if let Some(seconds) = self.timeout.take() {
            self.deadline = Some(now.plus(Duration::from_secs(seconds.into())));
        }
        if self.deadline.is_some_and(|at| at <= now) {
            Err(Stop::timed_out())
        } else {
            Ok(())
        }
    }

    fn reconnects(&self) -> bool {
        true
    }
}

fn is_matched(filter: &str, topic: &str) -> bool {
    TopicFilter::parse(filter).is_ok_and(|filter| matches(filter.matched_part(), topic))
}

fn refused_request(error: SubscribeError) -> Stop {
    Stop::failed(format!("cannot subscribe: {error}"))
}

/// Lets a percentage of messages through: a linear congruential generator is random enough for
/// that.
#[derive(Debug)]
struct Chance {
    /// Of `u32::MAX`.
    threshold: f64,
    state: u64,
}

impl Chance {
    fn new(percentage: f64) -> Self {
        use std::hash::{BuildHasher as _, RandomState};
        let state = RandomState::new().hash_one(0);
        Self {
            threshold: percentage / 100.0 * f64::from(u32::MAX),
            state,
        }
    }

    fn is_in(&mut self) -> bool {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        // The upper half has the better bits; it always fits.
        let random = u32::try_from(self.state >> 32).unwrap_or(u32::MAX);
        f64::from(random) <= self.threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_of_messages_is_let_through() {
        let mut all = Chance::new(100.0);
        assert!((0..1000).all(|_| all.is_in()));
        let mut some = Chance {
            threshold: f64::from(u32::MAX) / 4.0,
            state: 1,
        };
        let count = (0..10_000).filter(|_| some.is_in()).count();
        assert!((2300..2700).contains(&count), "{count}");
    }

    #[test]
    fn messages_are_left_out_by_filter() {
        assert!(is_matched("bbc/+", "bbc/one"));
        assert!(is_matched("$share/g/bbc/#", "bbc"));
        assert!(!is_matched("bbc/one", "bbc/two"));
    }
}
