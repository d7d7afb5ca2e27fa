//! An agent in a run, from joining to the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thrum_codec::QoS;
use thrum_figures::{SECOND_NS, latency, span};
use thrum_load::pacing::Warp;

use super::channel::{Channel, ChannelError, SILENCE_NS_MAX, unfragmented};
use super::control_connection::{
    ControlConnection, ControlError, ControlSetup, Incoming, Outgoing,
};
use super::load::{Load, LoadError};
use super::message::{Clock, FromAgent, Join, Refusal, ToAgent};
use super::offset::{ClockEstimate, Exchange};
use super::registry::{ORDER_DELAY_NS, VERSION};
use super::serve::AgentOptions;
use super::topic::{Topics, unique};
use super::watch::Watch;
use crate::clock;
use crate::machine::machine;
use crate::run::RunError;
use crate::swarm::Timeline;

/// Exchanges before the run: enough that some meet no queue.
const EXCHANGES: usize = 30;

/// Longest wait for the answer to an exchange.
const ANSWER_NS_MAX: u64 = 2 * SECOND_NS;

/// Interval of clock comparisons during the run: a crystal drifts by microseconds in this time.
const COMPARE_NS: u64 = SECOND_NS / 4;

/// Exchanges in a row: the first one wakes the threads, the later ones are faster.
const EXCHANGES_IN_A_ROW: u32 = 4;

/// Interval of progress reports to the coordinator.
const PROGRESS_NS: u64 = SECOND_NS / 10;

/// Longest single wait for a message, and the interval at which seconds are handed over.
const LISTEN: Duration = Duration::from_millis(20);

/// Why an agent's part in a run ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum AgentRunError {
    /// The connection to the control broker ended.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// Messages cannot be sent or read.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// This machine cannot do its part.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The clients ended.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The coordinator refused this agent.
    #[error("the coordinator refuses this agent: {0:?}")]
    Refused(Refusal),
    /// The coordinator is silent or gone.
    #[error("the coordinator is gone: {0}")]
    CoordinatorLost(String),
    /// The coordinator's clock was not answered.
    #[error(
        "the coordinator's clock cannot be read: no answer within {}",
        span(Duration::from_nanos(ANSWER_NS_MAX))
    )]
    NoClock,
    /// An order arrived after it should have taken effect.
    #[error("an order of the coordinator arrived {} after it was sent: the connection to it is too slow", latency(*late_ns))]
    LateOrder {
        /// Time on the way.
        late_ns: u64,
    },
    /// Interrupted from outside.
    #[error("interrupted")]
    Interrupted,
}

/// An agent that takes part in a run.
pub(super) struct AgentRun {
    connection: ControlConnection,
    topics: Topics,
    id: String,
    channel: Channel,
    watches: Vec<Watch>,
    interrupt: Arc<AtomicBool>,
    heard_ns: u64,
    estimate: Option<ClockEstimate>,
    load: Option<Load>,
    is_over: bool,
    compare_at_ns: u64,
    exchanges_to_come: u32,
    progress_at_ns: u64,
}

impl AgentRun {
    /// Joins a run and measures the clocks.
    ///
    /// # Errors
    /// The coordinator refuses this agent, or is gone.
    pub(super) fn begin(
        options: &AgentOptions,
        name: &str,
        threads: u32,
        session: &str,
    ) -> Result<Self, AgentRunError> {
        let (id, topics) = (unique(), Topics::new(session));
        let to_coordinator = topics.coordinator(&id);
        let gone = unfragmented(&to_coordinator, &FromAgent::Gone);
        let connection = ControlConnection::open(ControlSetup {
            endpoint: &options.control,
            client_id: &format!("thrum-agent-{id}"),
            will: Some((gone.topic, gone.payload)),
            filters: vec![topics.agent(&id), topics.answer(&id), topics.all()],
            pulse: Some(unfragmented(&to_coordinator, &FromAgent::Alive)),
        })?;
        let mut run = Self {
            connection,
            channel: Channel::new(to_coordinator),
            topics,
            id,
            watches: options.watches.clone(),
            interrupt: Arc::clone(&options.interrupt),
            heard_ns: clock::monotonic_ns(),
            estimate: None,
            load: None,
            is_over: false,
            compare_at_ns: u64::MAX,
            exchanges_to_come: 0,
            progress_at_ns: u64::MAX,
        };
        let watches = options.watches.iter().map(|watch| watch.target.clone());
        run.say(&FromAgent::Join(Box::new(Join {
            version: VERSION.to_owned(),
            name: name.to_owned(),
            threads,
            watches: watches.collect(),
            machine: machine(),
        })))?;
        let begun = run.await_welcome();
        let begun = begun.and_then(|()| run.compare_clocks());
        if let Err(error) = begun {
            run.report_failure(&error);
            return Err(error);
        }
        Ok(run)
    }

    /// Executes the coordinator's orders until the run is over.
    ///
    /// # Errors
    /// The coordinator is gone, or this machine failed, which is reported to the coordinator.
    pub(super) fn attend(&mut self, log: &mut dyn FnMut(&str)) -> Result<(), AgentRunError> {
        let ended = self.follow(log);
        if let Some(mut load) = self.load.take() {
            load.give_up();
        }
        if let Err(error) = &ended {
            self.report_failure(error);
        }
        ended
    }

    /// Tells the coordinator why this agent leaves.
    fn report_failure(&mut self, error: &AgentRunError) {
        // The coordinator may be gone.
        self.say(&FromAgent::Failed(error.to_string())).ok();
    }

    fn follow(&mut self, log: &mut dyn FnMut(&str)) -> Result<(), AgentRunError> {
        while !self.is_over {
            let mut timeout = LISTEN;
            while let Some(incoming) = self.listen(timeout)? {
                self.handle(&incoming, log)?;
                timeout = Duration::ZERO;
            }
            self.look()?;
        }
        Ok(())
    }

    /// The next message of the coordinator, if one arrives in time.
    fn listen(&mut self, timeout: Duration) -> Result<Option<Incoming>, AgentRunError> {
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(AgentRunError::Interrupted);
        }
        if let Some(incoming) = self.connection.receive(timeout)? {
            self.heard_ns = self.heard_ns.max(incoming.at_ns);
            return Ok(Some(incoming));
        }
        let silence_ns = clock::monotonic_ns().saturating_sub(self.heard_ns);
        if silence_ns > SILENCE_NS_MAX {
            let limit = span(Duration::from_nanos(SILENCE_NS_MAX));
            let why = format!("silent for more than {limit}");
            return Err(AgentRunError::CoordinatorLost(why));
        }
        Ok(None)
    }

    fn await_welcome(&mut self) -> Result<(), AgentRunError> {
        loop {
            let Some(incoming) = self.listen(LISTEN)? else {
                continue;
            };
            let (message, _) = self.channel.take::<ToAgent>(&incoming)?;
            match message {
                Some(ToAgent::Welcome) => return Ok(()),
                Some(ToAgent::Refused(refusal)) => return Err(AgentRunError::Refused(refusal)),
                Some(ToAgent::End | ToAgent::Gone) => {
                    let why = "it ended before the run began".to_owned();
                    return Err(AgentRunError::CoordinatorLost(why));
                }
                _ => {}
            }
        }
    }

    /// Measures the coordinator's clock before the run.
    fn compare_clocks(&mut self) -> Result<(), AgentRunError> {
        let mut exchanges = Vec::with_capacity(EXCHANGES);
        while exchanges.len() < EXCHANGES {
            exchanges.push(self.make_exchange()?);
        }
        let estimate = ClockEstimate::from_exchanges(&exchanges).ok_or(AgentRunError::NoClock)?;
        let now_ns = clock::monotonic_ns();
        self.say(&FromAgent::Synced(Clock {
            offset_ns: estimate.offset_ns(),
            error_ns: estimate.error_ns_until(now_ns),
        }))?;
        self.estimate = Some(estimate);
        self.compare_at_ns = now_ns + COMPARE_NS;
        Ok(())
    }

    /// Asks for the coordinator's clock and waits for the answer.
    fn make_exchange(&mut self) -> Result<Exchange, AgentRunError> {
        self.ask()?;
        let asked_ns = clock::monotonic_ns();
        while clock::monotonic_ns().saturating_sub(asked_ns) < ANSWER_NS_MAX {
            let incoming = self.listen(LISTEN)?;
            if let Some(exchange) = incoming.and_then(|incoming| self.exchange(&incoming)) {
                return Ok(exchange);
            }
        }
        Err(AgentRunError::NoClock)
    }

    /// Asks for the coordinator's clock.
    fn ask(&self) -> Result<(), ControlError> {
        self.connection.send(Outgoing {
            topic: self.topics.ask(&self.id),
            payload: clock::monotonic_ns().to_string().into_bytes(),
            qos: QoS::AtMostOnce,
        })
    }

    /// The exchange that a message completes, if it is an answer about the clock.
    fn exchange(&self, incoming: &Incoming) -> Option<Exchange> {
        if incoming.topic != self.topics.answer(&self.id) {
            return None;
        }
        let text = std::str::from_utf8(&incoming.payload).ok()?;
        let mut times = text.split(' ').map(str::parse);
        let mut next = || times.next()?.ok();
        Some(Exchange {
            asked_ns: next()?,
            received_ns: next()?,
            answered_ns: next()?,
            heard_ns: incoming.at_ns,
        })
    }

    fn handle(
        &mut self,
        incoming: &Incoming,
        log: &mut dyn FnMut(&str),
    ) -> Result<(), AgentRunError> {
        if incoming.topic == self.topics.answer(&self.id) {
            return self.handle_answer(incoming);
        }
        let (message, confirm) = self.channel.take::<ToAgent>(incoming)?;
        if let Some((message_id, fragments)) = confirm {
            let taken = FromAgent::Taken(message_id, fragments);
            self.channel.confirm(&self.connection, &taken)?;
        }
        match message {
            Some(message) => self.obey(message, log),
            None => Ok(()),
        }
    }

    /// Takes an answer about the coordinator's clock.
    fn handle_answer(&mut self, incoming: &Incoming) -> Result<(), AgentRunError> {
        let exchange = self.exchange(incoming);
        if let (Some(estimate), Some(exchange)) = (&mut self.estimate, exchange) {
            estimate.enter(&exchange);
        }
        self.exchanges_to_come = self.exchanges_to_come.saturating_sub(1);
        if self.exchanges_to_come > 0 {
            self.ask()?;
        }
        Ok(())
    }

    /// Sets or changes the times of the load.
    fn obey_order(
        &mut self,
        said_ns: u64,
        timeline: Timeline,
        warp: &Warp,
    ) -> Result<(), AgentRunError> {
        let late_ns = self.coordinators_ns().saturating_sub(said_ns);
        if late_ns > ORDER_DELAY_NS {
            return Err(AgentRunError::LateOrder { late_ns });
        }
        let Some(load) = &mut self.load else {
            return Ok(());
        };
        if let Some(estimate) = self.estimate.as_mut().filter(|_| !load.has_times()) {
            estimate.begin(clock::monotonic_ns());
        }
        load.order(timeline, warp);
        Ok(())
    }

    fn obey(&mut self, message: ToAgent, log: &mut dyn FnMut(&str)) -> Result<(), AgentRunError> {
        match message {
            ToAgent::Prepare(assignment) => {
                let watches = self.watches.clone();
                let load = self.saying(|say| Ok(Load::prepare(*assignment, &watches, say)?))?;
                let (clients, threads) = load.size();
                log(&format!(
                    "run of {}: {clients} clients, {threads} threads, clock within {}",
                    load.name(),
                    latency(self.clock_error_ns())
                ));
                self.load = Some(load);
                self.say(&FromAgent::Prepared)?;
            }
            ToAgent::Go { ramp_start_ns } => {
                let offset_ns = self.estimate.map_or(0, |estimate| estimate.offset_ns());
                if let Some(load) = &mut self.load {
                    load.go(ramp_start_ns, offset_ns).map_err(RunError::from)?;
                    self.progress_at_ns = 0;
                }
            }
            ToAgent::Order {
                said_ns,
                timeline,
                warp,
            } => self.obey_order(said_ns, timeline, &warp)?,
            ToAgent::Mark(moment) => {
                let now_ns = self.coordinators_ns();
                self.with_load(|load, say| {
                    load.mark(moment, now_ns, say);
                    Ok(())
                })?;
            }
            ToAgent::Stop => {
                let estimate = self.estimate.ok_or(AgentRunError::NoClock)?;
                self.progress_at_ns = u64::MAX;
                self.with_load(|load, say| Ok(load.finish(&estimate, say)?))?;
            }
            ToAgent::End => self.is_over = true,
            ToAgent::Taken(message_id, fragments) => {
                self.channel
                    .confirmed(&self.connection, message_id, fragments)?;
            }
            ToAgent::Gone => {
                let why = "its connection to the control broker ended".to_owned();
                return Err(AgentRunError::CoordinatorLost(why));
            }
            ToAgent::Welcome | ToAgent::Refused(_) | ToAgent::Alive => {}
        }
        Ok(())
    }

    /// Hands over complete seconds, and compares the clocks when due.
    fn look(&mut self) -> Result<(), AgentRunError> {
        let now_ns = clock::monotonic_ns();
        if now_ns >= self.compare_at_ns {
            self.compare_at_ns = now_ns + COMPARE_NS;
            self.exchanges_to_come = EXCHANGES_IN_A_ROW;
            self.ask()?;
        }
        let at_ns = self.coordinators_ns();
        self.with_load(|load, say| Ok(load.look(at_ns, say)?))?;
        if now_ns >= self.progress_at_ns {
            self.progress_at_ns = now_ns + PROGRESS_NS;
            let progress = self.load.as_ref().and_then(Load::progress);
            if let Some(progress) = progress {
                self.say(&FromAgent::Progress(progress))?;
            }
        }
        Ok(())
    }

    fn with_load(
        &mut self,
        act: impl FnOnce(&mut Load, &mut dyn FnMut(FromAgent)) -> Result<(), AgentRunError>,
    ) -> Result<(), AgentRunError> {
        let Some(mut load) = self.load.take() else {
            return Ok(());
        };
        let done = self.saying(|say| act(&mut load, say));
        self.load = Some(load);
        done
    }

    /// Runs `act` with a function that sends to the coordinator; a failed send is the result.
    fn saying<T>(
        &mut self,
        act: impl FnOnce(&mut dyn FnMut(FromAgent)) -> Result<T, AgentRunError>,
    ) -> Result<T, AgentRunError> {
        let mut said = Ok(());
        let (channel, connection) = (&mut self.channel, &self.connection);
        let done = act(&mut |message| {
            if said.is_ok() {
                said = channel.say(connection, &message);
            }
        })?;
        said?;
        Ok(done)
    }

    fn say(&mut self, message: &FromAgent) -> Result<(), ChannelError> {
        self.channel.say(&self.connection, message)
    }

    fn coordinators_ns(&self) -> u64 {
        let here_ns = clock::monotonic_ns();
        self.estimate
            .map_or(here_ns, |estimate| estimate.coordinators_ns(here_ns))
    }

    fn clock_error_ns(&self) -> u64 {
        let now_ns = clock::monotonic_ns();
        self.estimate
            .map_or(0, |estimate| estimate.error_ns_until(now_ns))
    }
}
