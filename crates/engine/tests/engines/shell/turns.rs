//! The turns of the workers: input, timers, output.

use std::collections::VecDeque;

use thrum_codec::packet::{Packet, Subscribe};
use thrum_codec::{ReasonCode, decode, frame};
use thrum_engine::access::{Verdict, Wanted};
use thrum_engine::core::release_safe;
use thrum_engine::events::publish_events;
use thrum_engine::ids::{ConnectionId, ConnectionKey, Slot};
use thrum_engine::mail::EngineMail;
use thrum_engine::node::metrics::Counter;
use thrum_engine::packets::Handled;
use thrum_engine::stages::{self, MovedBytes};
use thrum_engine::timeline::trim_timelines;
use thrum_engine::timers::{Target, TimedSession};
use thrum_engine::workers::WorkerId;
use thrum_protocol::Time;
use thrum_protocol::server::{Handshake, Timeout};

use super::{Link, LinkId, Mail, PositionedMail, Shell, WorkerState};

/// The connection of the current packet.
#[derive(Clone, Copy, Debug)]
struct At {
    link: LinkId,
    connection: ConnectionId,
    slot: Slot,
}

/// More turns than a test needs until nothing more can happen.
const TURNS_MAX: usize = 1_000;

impl Shell {
    /// Runs a whole turn of a worker.
    pub(crate) fn turn(&mut self, worker: usize) {
        self.read_inputs(worker);
        self.write_outputs(worker);
    }

    /// Runs the first half of a turn, which reads packets and mail.
    pub(crate) fn read_inputs(&mut self, worker: usize) {
        let level = self.node.memory.level();
        let engine = &mut self.workers[worker].engine;
        let core = &mut engine.core;
        core.turn.begin(self.now);
        core.memory.level = level;
        release_safe(core);
        engine.end_lanes();
        engine.replay_waiting();
        self.fire_timers(worker);
        let links: Vec<LinkId> = self.workers[worker].links.values().copied().collect();
        for link in links {
            self.take_packets(worker, link);
        }
        self.take_mail(worker);
        self.resume_held(worker);
        let engine = &mut self.workers[worker].engine;
        publish_events(engine);
        engine.send_room_notices();
    }

    fn fire_timers(&mut self, worker: usize) {
        let mut fired = Vec::new();
        let timers = &mut self.workers[worker].engine.core.timers;
        timers.advance(self.now, &mut fired);
        for target in fired {
            match target {
                Target::Session(timed) => self.session_timer(worker, timed),
                Target::Held => {
                    let engine = &mut self.workers[worker].engine;
                    engine.held.are_due(&mut engine.core);
                }
                Target::Timelines => trim_timelines(&mut self.workers[worker].engine.core),
                Target::Stages => stages::sweep_is_due(&mut self.workers[worker].engine.core),
                other => panic!("the engine sets no timer for {other:?}"),
            }
            self.workers[worker].engine.core.durable.end_unit();
        }
    }

    /// Handles a deadline of a session.
    pub(super) fn session_timer(&mut self, worker: usize, timed: TimedSession) {
        let now = self.now;
        let engine = &mut self.workers[worker].engine;
        let Some(slot) = engine.core.sessions.slot_of(timed) else {
            return;
        };
        let client = &mut engine.core.sessions[slot];
        if now < client.armed {
            return;
        }
        client.armed = Time::from_millis(u64::MAX);
        let connection = client.connection;
        match client.session.handle_timeout(now) {
            Timeout::Pending => engine.core.arm(slot),
            Timeout::KeepAlive | Timeout::NotAuthorized => {
                let key = connection.expect("it has one");
                self.disconnect(worker, key, ReasonCode::KeepAliveTimeout);
            }
            Timeout::Will(will) => {
                engine.core.record_steps(slot);
                if let Some(will) = engine.authorize_will(slot, will) {
                    engine.publish_will(will);
                }
                engine.core.arm(slot);
            }
            Timeout::Expired(will) => {
                engine.core.row().add(Counter::SessionsExpired, 1);
                let will = will.and_then(|will| engine.authorize_will(slot, will));
                engine.end_session(slot);
                if let Some(will) = will {
                    engine.publish_will(will);
                }
            }
        }
    }

    fn disconnect(&mut self, worker: usize, key: ConnectionKey, reason: ReasonCode) {
        let core = &mut self.workers[worker].engine.core;
        let slot = core.outputs[key].session().expect("it has a session");
        core.outputs[key].drop_held();
        core.write_last_packet(slot, |session, out| session.disconnect(reason, None, out));
        self.lose(worker, key, slot);
    }

    fn resume_held(&mut self, worker: usize) {
        let engine = &mut self.workers[worker].engine;
        engine.held.begin_resuming(&mut engine.core);
        loop {
            let engine = &mut self.workers[worker].engine;
            let Some(connection) = engine.held.next_resumed(&mut engine.core) else {
                return;
            };
            let link = self.workers[worker].links[&connection.key];
            self.links[link].is_held = false;
            self.take_packets(worker, link);
            let engine = &mut self.workers[worker].engine;
            if !engine.held.may_resume(&engine.core) {
                return;
            }
        }
    }

    fn take_packets(&mut self, worker: usize, link: LinkId) {
        self.workers[worker].engine.core.outboxes.begin_connection();
        while !self.links[link].is_closed
            && let Some(connection) = self.links[link].connection
            && let Some(slot) = self.workers[worker].engine.core.outputs.session(connection)
            && let Some(bytes) = self.links[link].next_packet()
        {
            let at = At {
                link,
                connection,
                slot,
            };
            if !self.take_packet(worker, at, bytes) {
                return;
            }
        }
    }

    /// Handles one packet; false if it has to wait, or was the last one.
    fn take_packet(&mut self, worker: usize, at: At, bytes: Vec<u8>) -> bool {
        let At {
            link,
            connection,
            slot,
        } = at;
        let frame = frame::split(&bytes, u32::MAX).expect("it is well formed");
        let packet = decode(frame.expect("it is whole"), self.links[link].version);
        let packet = packet.expect("it is well formed");
        let (waiting, _) = self.node.mailbox_level(WorkerId::new(worker)).waiting();
        if matches!(packet, Packet::Unsubscribe(_)) && waiting > 0 {
            // It follows the mail that waits already.
            self.links[link].to_engine.push_front(bytes);
            return false;
        }
        self.look_up(worker, slot, &packet);
        let engine = &mut self.workers[worker].engine;
        if engine.has_to_inquire(connection, slot, &packet) {
            self.links[link].is_inquiring = true;
            self.links[link].to_engine.push_front(bytes);
            return false;
        }
        let verdict = match (&packet, engine.core.sessions[slot].checked()) {
            (Packet::Publish(publish), Some(access)) => {
                let (topic, qos, retain) = (publish.topic, publish.qos, publish.retain);
                access.publish(Wanted { topic, qos, retain }, self.now)
            }
            _ => Verdict::Allowed,
        };
        let Some(cleared) = engine.clearance(connection, slot, &packet, verdict) else {
            self.links[link].is_held = true;
            self.links[link].to_engine.push_front(bytes);
            return false;
        };
        match engine.packet(slot, packet, cleared) {
            Ok(Handled::Nothing | Handled::Published) => {}
            Ok(Handled::Disconnected) => {
                self.lose(worker, connection.key, slot);
                return false;
            }
            Ok(Handled::Authenticate(auth)) => panic!("an unexpected AUTH: {auth:?}"),
            Err(violation) => {
                self.disconnect(worker, connection.key, violation.reason);
                return false;
            }
        }
        engine.core.durable.end_unit();
        engine.core.outputs.wrote(connection.key);
        self.links[link].found_full |= !engine.core.outboxes.take_full().is_empty();
        true
    }

    /// Checks the filters of a SUBSCRIBE against the rules.
    fn look_up(&mut self, worker: usize, slot: Slot, packet: &Packet<'_>) {
        let core = &mut self.workers[worker].engine.core;
        let filters_max = core.settings.subscriptions.packet_filters_max;
        if let Packet::Subscribe(Subscribe { requests, .. }) = packet
            && let Some(access) = core.sessions[slot].access.as_deref_mut()
        {
            for request in requests.iter().take(filters_max) {
                let filter = request.filter.matched_part();
                let grant = access.subscribe(filter, request.options.qos, self.now);
                access.grants().push(grant);
            }
        }
    }

    fn take_mail(&mut self, worker: usize) {
        let mut messages = 0;
        let mut bytes = 0;
        while let Some(mail) = self.workers[worker].inbox.pop_front() {
            messages += 1;
            match mail {
                Mail::Engine(mail) => {
                    bytes += mail.bytes_len();
                    self.take_engine_mail(worker, mail);
                }
                Mail::Adopt(link, handshake) => self.adopt(worker, link, handshake),
            }
            self.workers[worker].engine.core.durable.end_unit();
        }
        let level = self.node.mailbox_level(WorkerId::new(worker));
        level.fall(messages, bytes);
    }

    fn take_engine_mail(&mut self, worker: usize, mail: EngineMail) {
        let answered = self.workers[worker].engine.take_mail(mail);
        let links = &self.workers[worker].links;
        if let Some(link) = answered.and_then(|answered| links.get(&answered)) {
            self.links[*link].is_inquiring = false;
        }
    }

    fn adopt(&mut self, worker: usize, link: LinkId, handshake: Handshake) {
        let owner = self.owner(worker, handshake.client_id());
        if owner.index() != worker {
            // The session moved while the connection was handed over.
            self.send_mail(worker, owner, Mail::Adopt(link, handshake));
            return;
        }
        let is_cut = self.links[link].is_closed;
        self.attach(worker, link, handshake);
        if is_cut {
            self.cut(link);
        }
    }

    /// Runs the second half of a turn, which submits changes, mail and output.
    pub(crate) fn write_outputs(&mut self, worker: usize) {
        if self.workers[worker].engine.core.settle() {
            self.deliver_mail(worker);
        }
        let listed = self.workers[worker].engine.core.outputs.take_listed();
        for key in &listed {
            if self.workers[worker].engine.core.outputs.take_turn(*key) {
                self.write(worker, *key);
            }
        }
        let engine = &mut self.workers[worker].engine;
        engine.core.outputs.give_back(listed);
        if !engine.core.is_unsettled() {
            self.deliver_mail(worker);
            self.workers[worker].engine.release_ended();
        }
        let core = &mut self.workers[worker].engine.core;
        core.read_memory_if_due(self.now);
    }

    fn deliver_mail(&mut self, from: usize) {
        self.workers[from].engine.core.outboxes.empty_into_sinks();
        for to in WorkerId::all(self.workers.len()) {
            let state = &mut self.workers[from];
            if !state.engine.core.outboxes.has_mail(to) {
                continue;
            }
            let mail = state.mail_for(to);
            let bytes = mail.iter().map(|mail| match mail {
                Mail::Engine(mail) => mail.bytes_len(),
                Mail::Adopt(..) => 0,
            });
            self.node.mailbox_level(to).rise(mail.len(), bytes.sum());
            self.workers[to.index()].inbox.extend(mail);
        }
    }

    /// Writes the output of a connection that may be sent.
    pub(super) fn write(&mut self, worker: usize, key: ConnectionKey) {
        let link = self.workers[worker].links[&key];
        let outputs = &mut self.workers[worker].engine.core.outputs;
        if self.links[link].is_slow {
            outputs[key].sendable();
            outputs[key].was_sent();
            return;
        }
        let before = outputs[key].waiting();
        if let Some(out) = outputs[key].sendable() {
            self.links[link].to_client.extend(out.to_vec());
            out.clear();
        }
        let taken = before - outputs[key].waiting();
        if outputs[key].is_followed {
            let moved = MovedBytes {
                from_output: taken,
                into_socket: taken,
                in_layers: 0,
            };
            stages::written(&mut self.workers[worker].engine.core, key, moved);
        }
        let outputs = &mut self.workers[worker].engine.core.outputs;
        outputs[key].was_sent();
        if let Some(spare) = outputs[key].take_spare() {
            outputs.recycle(spare);
        }
        self.refill(worker, key);
    }

    /// Sends the next messages of its queue to a client that has read its output.
    fn refill(&mut self, worker: usize, key: ConnectionKey) {
        let engine = &mut self.workers[worker].engine;
        let limit = engine.core.settings.output_bytes;
        let output = &mut engine.core.outputs[key];
        if output.waiting() <= limit / 2
            && std::mem::take(&mut output.is_congested)
            && let Some(slot) = output.session()
        {
            engine.resume_queue(slot, limit);
        }
    }

    /// Commits waiting records to the disk; false if there were none.
    pub(crate) fn commit(&mut self) -> bool {
        let stepper = self.storage.as_mut().map(|(_, stepper)| stepper);
        stepper.is_some_and(|stepper| stepper.step().expect("the disk has no faults"))
    }

    /// Runs turns of all workers until nothing more can happen.
    pub(crate) fn settle(&mut self) {
        for _ in 0..TURNS_MAX {
            for worker in 0..self.workers.len() {
                self.turn(worker);
            }
            if !self.commit() && self.is_quiet() {
                return;
            }
        }
        panic!("the node does not become idle");
    }

    fn is_quiet(&self) -> bool {
        let is_quiet = |state: &WorkerState| {
            let core = &state.engine.core;
            let is_settled = core.outputs.is_empty() && core.rooms.is_quiet();
            is_settled
                && state.inbox.is_empty()
                && !core.is_unsettled()
                && !core.events.are_waiting()
                && !state.engine.replays.is_waiting()
        };
        let has_packets =
            |link: &Link| !link.is_closed && !link.is_held && !link.to_engine.is_empty();
        let are_listed = |state: &WorkerState| state.engine.held.are_listed();
        !self.workers.iter().any(are_listed)
            && self.workers.iter().all(is_quiet)
            && !self.links.iter().any(has_packets)
    }
}

impl Link {
    /// Behind a held PUBLISH only acknowledgements and pings are handled.
    fn next_packet(&mut self) -> Option<Vec<u8>> {
        let may_be = |bytes: &Vec<u8>| match bytes[0] >> 4 {
            4..=7 | 12 => true,
            _ => !self.is_held && !self.is_inquiring,
        };
        let place = self.to_engine.iter().position(may_be)?;
        self.to_engine.remove(place)
    }
}

impl WorkerState {
    /// Returns all mail for a worker, in order.
    fn mail_for(&mut self, to: WorkerId) -> Vec<Mail> {
        let is_for = |placed: &PositionedMail| placed.to == to.index();
        let (mut own, others): (VecDeque<PositionedMail>, VecDeque<PositionedMail>) =
            std::mem::take(&mut self.shell_mail)
                .into_iter()
                .partition(is_for);
        self.shell_mail = others;
        let mut mail: Vec<Mail> = Vec::new();
        for (place, piece) in self.engine.core.outboxes.take(to).enumerate() {
            while let Some(placed) = own.pop_front_if(|placed| placed.place <= place) {
                mail.push(placed.mail);
            }
            mail.push(Mail::Engine(piece));
        }
        mail.extend(own.into_iter().map(|placed| placed.mail));
        mail
    }
}
