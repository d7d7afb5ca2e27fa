//! `thrum rr`: publish a request and print the response.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use thrum_codec::packet::{Publish, RetainHandling, SubscriptionOptions, SubscriptionRequest};
use thrum_codec::properties::PublishProperties;
use thrum_codec::{QoS, Version};
use thrum_protocol::Time;
use thrum_protocol::client::Event;

use crate::{
    Application, ConnectionArgs, Defaults, Outbox, PayloadArgs, Plan, PrintArgs, Printer, Progress,
    Received, Stop, check_filter, check_topic, finish, parse_qos, print_help, run as run_client,
};

const EXAMPLES: &str = "\
Examples:
  thrum rr -t clock/get -e clock/answer -m now -W 5   ask, and wait up to five seconds for the answer";

/// Send a request and print the response, with the options of Mosquitto's client.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, after_help = EXAMPLES)]
pub struct RequestArgs {
    /// Topic to publish the request to
    #[arg(short, long, allow_hyphen_values = true, help_heading = "Request")]
    topic: Option<String>,

    /// Topic on which the response is awaited
    #[arg(
        short = 'e',
        long,
        value_name = "TOPIC",
        allow_hyphen_values = true,
        help_heading = "Request"
    )]
    response_topic: Option<String>,

    #[command(flatten)]
    payload: PayloadArgs,

    /// Quality of service of request and response: 0, 1 or 2
    #[arg(short, long, default_value = "0", value_parser = parse_qos, help_heading = "Request")]
    qos: QoS,

    /// A retained message is no response
    #[arg(short = 'R', help_heading = "Response")]
    no_retained: bool,

    /// Ends after so many seconds, with exit code 27
    #[arg(
        short = 'W',
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u32).range(1..),
        help_heading = "Response",
    )]
    timeout: Option<u32>,

    #[command(flatten)]
    print: PrintArgs,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Asks and prints the answer.
///
/// # Errors
/// Standard output cannot be written; failures of the command itself are its exit code.
pub fn run(args: &RequestArgs) -> anyhow::Result<ExitCode> {
    if args.connection.wants_help() {
        return print_help::<RequestArgs>("thrum rr");
    }
    Ok(finish(request(args), args.connection.is_quiet()))
}

fn request(args: &RequestArgs) -> Result<(), Stop> {
    if args.payload.count() != 1 {
        let ways = "-m TEXT, -f FILE, -s (standard input) or -n (nothing)";
        return Err(Stop::usage(format!(
            "a request is one message: give it with one of {ways}"
        )));
    }
    let defaults = Defaults {
        id_prefix: "thrum-rr-",
        version: Version::V5,
        needs_5: None,
    };
    let mut plan = Plan::new(&args.connection, defaults)?;
    let printer = args.print.printer(plan.console)?;
    let Some(topic) = args.topic.clone().or_else(|| plan.url_topic.take()) else {
        return Err(Stop::usage("no topic for the request: give one with -t"));
    };
    check_topic(&topic)?;
    let Some(response_topic) = args.response_topic.clone() else {
        return Err(Stop::usage("no topic for the response: give one with -e"));
    };
    check_topic(&response_topic)?;
    let properties = &mut plan.properties.publish;
    properties
        .response_topic
        .get_or_insert_with(|| response_topic.clone());
    let payload = args.payload.read()?;
    let mut requester = Requester {
        args,
        plan: &plan,
        topic,
        response_topic,
        payload,
        printer,
        timeout: args.timeout,
        deadline: None,
        state: State::Subscribing,
    };
    run_client(&plan, &mut requester)
}

/// Asks once the subscription to the response is in place, and waits for one message.
struct Requester<'a> {
    args: &'a RequestArgs,
    plan: &'a Plan,
    topic: String,
    response_topic: String,
    payload: Vec<u8>,
    printer: Printer,
    timeout: Option<u32>,
    deadline: Option<Time>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// SUBACK is awaited.
    Subscribing,
    /// The request can go out.
    Ready,
    /// The response is awaited.
    Requested,
}

impl Requester<'_> {
    fn ask(&mut self, outbox: &mut Outbox<'_>) -> Result<(), Stop> {
        let ask = |properties: PublishProperties<'_>| {
            outbox.publish(&Publish {
                dup: false,
                qos: self.args.qos,
                retain: false,
                topic: &self.topic,
                packet_id: None,
                properties,
                payload: &self.payload,
            })
        };
        if self.plan.properties.publish.with_publish(ask)?.is_some() {
            self.state = State::Requested;
        }
        Ok(())
    }
}

impl Application for Requester<'_> {
    fn handle_connected(&mut self, outbox: &mut Outbox<'_>) -> Result<(), Stop> {
        let options = SubscriptionOptions {
            qos: self.args.qos,
            no_local: false,
            retain_as_published: false,
            retain_handling: RetainHandling::Send,
        };
        let request = SubscriptionRequest {
            filter: check_filter(&self.response_topic)?,
            options,
        };
        self.plan
            .properties
            .with_subscribe(|properties| {
                outbox
                    .client
                    .subscribe(properties, &[request], outbox.now, outbox.bytes)
            })
            .map_err(|error| Stop::failed(format!("cannot subscribe: {error}")))?;
        Ok(())
    }

    fn handle_event(
        &mut self,
        event: &Event<'_>,
        _outbox: &mut Outbox<'_>,
    ) -> Result<Progress, Stop> {
        match event {
            Event::Subscribed(ack) => {
                if let Some(code) = ack.codes.iter().find(|code| code.is_error()) {
                    let what = format!(
                        "subscription to {:?} refused by the broker",
                        self.response_topic
                    );
                    return Err(Stop::refused(&what, code, ack.properties.reason_string));
                }
                self.state = State::Ready;
            }
            Event::Message { publish, alias } if self.state == State::Requested => {
                if self.args.no_retained && publish.retain {
                    return Ok(Progress::Continue);
                }
                let topic = alias.as_deref().unwrap_or(publish.topic);
                self.printer.print(Received { topic, publish })?;
                return Ok(Progress::Done);
            }
            Event::Acknowledged { reason, .. } if reason.is_error() => {
                return Err(Stop::refused(
                    "request refused by the broker",
                    *reason,
                    None,
                ));
            }
            _ => {}
        }
        Ok(Progress::Continue)
    }

    fn advance(&mut self, outbox: &mut Outbox<'_>) -> Result<Progress, Stop> {
        if self.state == State::Ready {
            self.ask(outbox)?;
        }
        Ok(Progress::Continue)
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
}
