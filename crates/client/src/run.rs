//! The loop: bytes to events, events to the command, its output to the socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use thrum_codec::packet::Disconnect;
use thrum_codec::{ReasonCode, decode, frame};
use thrum_protocol::client::{Client, Event};
use thrum_protocol::{Time, Violation};
use thrum_scram::client::{Credentials, Login, ScramError};

use super::application::{name, trace};
use super::clock::Clock;
use super::link::{HANDSHAKE_TIMEOUT, Link, pause};
use super::retry::Retry;
use super::{Application, Outbox, Plan, Progress, Stop};

/// The longest sleep: the longest delay for noticing a signal that arrives just before it.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// Connects and runs the command until it is done.
///
/// # Errors
/// Its failure.
pub(crate) fn run(plan: &Plan, application: &mut dyn Application) -> Result<(), Stop> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))
            .map_err(|error| Stop::failed(format!("cannot catch signals: {error}")))?;
    }
    let client = Client::new(Arc::new(plan.options.clone()), &plan.client_id);
    let mut runner = Runner {
        plan,
        client,
        login: None,
        clock: Clock::start(),
        interrupted,
        accepted: false,
    };
    let mut retry = Retry::new();
    loop {
        let accepted_before = runner.accepted;
        runner.accepted = false;
        let end = runner.connect(application);
        application.flush()?;
        match end {
            Ok(()) => return Ok(()),
            Err(End::Final(stop)) => return Err(stop),
            Err(End::Lost(stop)) => {
                let was_connected = accepted_before || runner.accepted;
                if !was_connected || !application.reconnects() {
                    return Err(stop);
                }
                if runner.accepted {
                    retry.reset();
                }
                runner.accepted = was_connected;
                let wait = retry.wait();
                let seconds = wait.as_secs();
                plan.console.warn(&format!(
                    "{}; connecting again in {seconds} s",
                    stop.message
                ));
                runner.wait_to_retry(wait, application)?;
            }
        }
    }
}

/// How a connection ended.
enum End {
    /// The command ends with it.
    Final(Stop),
    /// It could be made again.
    Lost(Stop),
}

impl From<Stop> for End {
    fn from(stop: Stop) -> Self {
        Self::Final(stop)
    }
}

struct Runner<'a> {
    plan: &'a Plan,
    client: Client,
    /// That of the current connection, if it has one.
    login: Option<Login>,
    clock: Clock,
    interrupted: Arc<AtomicBool>,
    /// The broker has accepted a connection.
    accepted: bool,
}

impl Runner<'_> {
    /// One connection from its beginning to its end.
    fn connect(&mut self, application: &mut dyn Application) -> Result<(), End> {
        let mut link = Link::open(&self.plan.target).map_err(End::Lost)?;
        self.shake_hands(&mut link, application)?;
        self.begin(&mut link)?;
        self.trace(&link, 0);
        let end = self.talk(&mut link, application);
        if !matches!(end, Err(End::Lost(_))) {
            self.say_goodbye(&mut link);
            // [MQTT-3.14.4-2] [MQTT3-3.14.4-1]
            link.close();
        }
        self.client.connection_lost();
        end
    }

    /// The handshakes of TLS and WebSocket.
    fn shake_hands(
        &mut self,
        link: &mut Link,
        application: &mut dyn Application,
    ) -> Result<(), End> {
        let end = self.clock.now().plus(HANDSHAKE_TIMEOUT);
        while !link.is_open() {
            self.check_interrupted()?;
            let now = self.clock.now();
            application.handle_timeout(now)?;
            if now >= end {
                return Err(End::Lost(link.unanswered()));
            }
            link.flush().map_err(End::Lost)?;
            let timeout = self.next_timeout(application).min(end.since(now));
            if link.wait(Some(timeout), None)?.socket {
                link.fill().map_err(End::Lost)?;
            }
        }
        let console = self.plan.console;
        if let Some(security) = link.security() {
            console.debug(|| format!("connected by {security}"));
        }
        Ok(())
    }

    /// CONNECT, with the first step of an enhanced login, if set.
    fn begin(&mut self, link: &mut Link) -> Result<(), Stop> {
        let credentials = self.plan.scram.as_ref();
        let login = credentials.map(Credentials::login).transpose();
        self.login = login.map_err(|error| Stop::failed(format!("cannot connect: {error}")))?;
        let (now, output) = (self.clock.now(), &mut link.output);
        match &self.login {
            Some(login) => self.client.connect_with(Some(&login.first()), now, output),
            None => self.client.connect(now, output),
        }
        .map_err(|error| Stop::usage(format!("cannot connect: {error}")))
    }

    fn talk(&mut self, link: &mut Link, application: &mut dyn Application) -> Result<(), End> {
        loop {
            self.check_time(link, application)?;
            if self.advance(link, application)? == Progress::Done {
                return Ok(());
            }
            link.flush().map_err(End::Lost)?;
            let timeout = self.next_timeout(application);
            let ready = link.wait(Some(timeout), application.input())?;
            if ready.input {
                application.handle_input()?;
            }
            if ready.socket && self.receive(link, application)? == Progress::Done {
                return Ok(());
            }
        }
    }

    fn receive(
        &mut self,
        link: &mut Link,
        application: &mut dyn Application,
    ) -> Result<Progress, End> {
        let filled = link.fill();
        // Bytes before the end of the connection are handled before the end.
        let progress = self.handle_packets(link, application)?;
        application.flush()?;
        if progress == Progress::Continue {
            filled.map_err(End::Lost)?;
        }
        Ok(progress)
    }

    fn check_time(
        &mut self,
        link: &mut Link,
        application: &mut dyn Application,
    ) -> Result<(), End> {
        self.check_interrupted()?;
        let now = self.clock.now();
        application.handle_timeout(now)?;
        let before = link.output.len();
        let overdue = self.client.handle_timeout(now, &mut link.output);
        self.trace(link, before);
        overdue.map_err(|violation| {
            End::Lost(Stop::unreachable(format!(
                "the broker does not answer: {}",
                violation.what
            )))
        })
    }

    fn advance(
        &mut self,
        link: &mut Link,
        application: &mut dyn Application,
    ) -> Result<Progress, Stop> {
        if !self.client.is_connected() {
            return Ok(Progress::Continue);
        }
        let before = link.output.len();
        let progress = application.advance(&mut self.outbox(&mut link.output));
        self.trace(link, before);
        progress
    }

    fn outbox<'o>(&'o mut self, bytes: &'o mut Vec<u8>) -> Outbox<'o> {
        let now = self.clock.now();
        Outbox {
            client: &mut self.client,
            bytes,
            now,
            console: self.plan.console,
        }
    }

    /// Handles every whole packet that was received.
    fn handle_packets(
        &mut self,
        link: &mut Link,
        application: &mut dyn Application,
    ) -> Result<Progress, End> {
        let mut input = std::mem::take(&mut link.input);
        let mut rest = &input[..];
        let limit = self.plan.options.packet_bytes_max();
        let mut progress = Progress::Continue;
        while progress == Progress::Continue {
            let frame = match frame::split(rest, limit) {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => return Err(self.break_off(error.into(), link)),
            };
            rest = &rest[frame.len..];
            let packet = match decode(frame, self.plan.options.version) {
                Ok(packet) => packet,
                Err(error) => return Err(self.break_off(error.into(), link)),
            };
            self.plan
                .console
                .debug(|| format!("received {}, {} bytes", name(&packet), frame.len));
            let before = link.output.len();
            let now = self.clock.now();
            let event = match self.client.handle_packet(packet, now, &mut link.output) {
                Ok(event) => event,
                Err(violation) => return Err(self.break_off(violation, link)),
            };
            progress = self.handle_event(&event, &mut link.output, application)?;
            self.trace(link, before);
        }
        // A long packet arrives in many parts: the kept start is not copied.
        let handled = input.len() - rest.len();
        input.drain(..handled);
        link.input = input;
        Ok(progress)
    }

    fn handle_event(
        &mut self,
        event: &Event<'_>,
        output: &mut Vec<u8>,
        application: &mut dyn Application,
    ) -> Result<Progress, End> {
        match event {
            Event::Connected(ack) => {
                self.check_broker(ack.properties.authentication_data)?;
                self.accepted = true;
                application.handle_connected(&mut self.outbox(output))?;
                Ok(Progress::Continue)
            }
            Event::Refused(ack) => {
                let what = "connection refused by the broker";
                let stop = Stop::refused(what, ack.reason, ack.properties.reason_string);
                Err(End::Final(stop))
            }
            Event::Disconnected(disconnect) => {
                let what = "connection ended by the broker";
                let why = disconnect.properties.reason_string;
                let stop = Stop::refused(what, disconnect.reason, why);
                // Two clients with one identifier would disconnect each other for ever.
                if disconnect.reason == ReasonCode::SessionTakenOver {
                    return Err(End::Final(stop));
                }
                Err(End::Lost(stop))
            }
            Event::Authenticate(auth) => {
                let step = auth.properties.authentication_data.unwrap_or_default();
                self.authenticate(step, output)?;
                Ok(Progress::Continue)
            }
            event => Ok(application.handle_event(event, &mut self.outbox(output))?),
        }
    }

    /// The next step of the login.
    fn authenticate(&mut self, step: &[u8], output: &mut Vec<u8>) -> Result<(), Stop> {
        let Some(login) = &mut self.login else {
            return Err(Stop::failed(
                "the broker asks for a further step of the authentication method, \
                 which this command does not know",
            ));
        };
        let answer = login.answer(step).map_err(|error| unproved(&error))?;
        if !self.client.authenticate(&answer, self.clock.now(), output) {
            return Err(Stop::failed(
                "the broker does not accept packets as large as AUTH",
            ));
        }
        Ok(())
    }

    /// A broker that cannot prove itself gets no messages.
    fn check_broker(&mut self, step: Option<&[u8]>) -> Result<(), Stop> {
        match &mut self.login {
            Some(login) => login
                .finish(step.unwrap_or_default())
                .map_err(|error| unproved(&error)),
            None => Ok(()),
        }
    }

    /// The broker violated the protocol: sends the reason.
    fn break_off(&mut self, violation: Violation, link: &mut Link) -> End {
        self.client
            .disconnect(violation.reason, None, &mut link.output);
        End::Final(Stop::failed(format!(
            "the broker broke the protocol: {violation}"
        )))
    }

    fn say_goodbye(&mut self, link: &mut Link) {
        let before = link.output.len();
        let (client, output) = (&mut self.client, &mut link.output);
        self.plan.properties.with_disconnect(|properties| {
            let disconnect = Disconnect {
                reason: ReasonCode::Success,
                properties,
            };
            client.disconnect_with(&disconnect, output);
        });
        self.trace(link, before);
    }

    fn next_timeout(&self, application: &dyn Application) -> Duration {
        let deadlines = [self.client.next_deadline(), application.next_deadline()];
        let next = deadlines.into_iter().flatten().min();
        let now = self.clock.now();
        // A deadline in the middle of a millisecond is reached only after it.
        let until = |at: Time| at.since(now) + Duration::from_millis(1);
        next.map_or(SLEEP_MAX, until).min(SLEEP_MAX)
    }

    fn wait_to_retry(
        &mut self,
        wait: Duration,
        application: &mut dyn Application,
    ) -> Result<(), Stop> {
        let end = self.clock.now().plus(wait);
        loop {
            self.check_interrupted()?;
            let now = self.clock.now();
            application.handle_timeout(now)?;
            if now >= end {
                return Ok(());
            }
            pause(self.next_timeout(application).min(end.since(now)))?;
        }
    }

    fn check_interrupted(&self) -> Result<(), Stop> {
        if self.interrupted.load(Ordering::Relaxed) {
            Err(Stop::interrupted())
        } else {
            Ok(())
        }
    }

    /// Reports to `-d` the packets that were written behind `from`.
    fn trace(&self, link: &Link, from: usize) {
        let written = link.output.get(from..).unwrap_or_default();
        trace(written, self.plan.options.version, self.plan.console);
    }
}

fn unproved(error: &ScramError) -> Stop {
    Stop::denied(format!("login failed: {error}"))
}
