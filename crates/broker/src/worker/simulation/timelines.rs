//! The timelines of the clients agree with what the clients have seen and done.

use super::history::{ClientNumber, Event};
use super::world::{Failure, World};
use crate::control::Timeline;
use crate::control::test_queries::{queries, timeline, whole_timeline};
use thrum_engine::timeline::{ClientEvent, EndCause};

/// Turns of all workers within which a timeline is complete.
const ROUNDS_MAX: usize = 200;
/// Extra milliseconds before the keep alive ends a connection that the node does not read.
const GRACE_MILLIS: u64 = 31_000;

impl World {
    /// Compares the timelines of all clients, which have disconnected, with the history since the
    /// last restart: a restart forgets them.
    pub(super) fn check_timelines(&mut self) -> Result<(), Failure> {
        for client in 0..self.clients.len() {
            let found = self.timeline(client)?;
            self.check_timeline(client, &found)
                .map_err(|what| format!("client {client}: {what} in its timeline {found:#?}"))?;
        }
        Ok(())
    }

    fn timeline(&mut self, client: ClientNumber) -> Result<Timeline, Failure> {
        let queries = queries(&self.machine.node);
        let mut pending = timeline(&queries, &format!("c{client}"));
        for _ in 0..ROUNDS_MAX {
            if let Some(answers) = pending.take() {
                return Ok(whole_timeline(&queries, answers));
            }
            for worker in &mut self.machine.workers {
                worker.run_turn();
            }
        }
        Err("the workers do not answer a query for a timeline".to_owned())
    }

    fn check_timeline(&self, client: ClientNumber, found: &Timeline) -> Result<(), Failure> {
        let events = || found.events.iter().map(|event| &event.event);
        let mut ends = events().filter_map(|event| match event {
            ClientEvent::Disconnected { cause, .. } => Some(*cause),
            _ => None,
        });
        if !ends.clone().all(is_possible) {
            return Err("an end with impossible figures".to_owned());
        }
        if found.forgotten > 0 {
            return Ok(());
        }
        let accepted = events().filter_map(|event| match event {
            ClientEvent::Connected(connection) => Some(connection.session_present),
            _ => None,
        });
        let (connections, all) = (accepted.clone().count(), ends.clone().count());
        if connections != all {
            return Err(format!("{connections} connections and {all} ends"));
        }
        let mut accepted = accepted;
        if !self
            .accepted(client)
            .all(|seen| accepted.any(|told| told == seen))
        {
            return Err("not every connection that the client saw".to_owned());
        }
        let last = ends.next_back();
        if last != Some(EndCause::ByClient { with_will: false }) && last.is_some() {
            return Err("another end than the DISCONNECT of the client".to_owned());
        }
        self.check_subscriptions(client, found)
    }

    /// The session present flags of the connections that the client has seen accepted.
    fn accepted(&self, client: ClientNumber) -> impl Iterator<Item = bool> {
        self.since_restart().filter_map(move |event| match event {
            Event::Connected {
                client: of,
                session_present,
            } if of == client => Some(session_present),
            _ => None,
        })
    }

    fn since_restart(&self) -> impl Iterator<Item = Event> {
        let restart = |event| matches!(event, Event::Restarted);
        let events = self.history.iter().map(|entry| entry.event);
        let before = events.clone().rposition(restart).map_or(0, |at| at + 1);
        events.skip(before)
    }

    /// Each subscription that the client has seen granted is listed, or counted with others.
    fn check_subscriptions(&self, client: ClientNumber, found: &Timeline) -> Result<(), Failure> {
        let granted = self.since_restart().filter_map(|event| match event {
            Event::Subscribed {
                client: of,
                filter,
                granted: Some(_),
            } if of == client => Some(filter),
            _ => None,
        });
        let others: u32 = found.events.iter().map(|event| event.others).sum();
        let mut missing = granted.filter(|granted| {
            !found.events.iter().any(|event| match &event.event {
                ClientEvent::Subscribed { filter, .. } => **filter == **granted,
                _ => false,
            })
        });
        match missing.next() {
            Some(filter) if others == 0 => Err(format!("no subscription to {filter}")),
            _ => Ok(()),
        }
    }
}

/// Whether the figures of an end fit together.
fn is_possible(cause: EndCause) -> bool {
    match cause {
        EndCause::KeepAlive {
            keep_alive_secs,
            silent_millis,
        } => {
            let least = u64::from(keep_alive_secs) * 1500;
            keep_alive_secs > 0 && (least..=least + GRACE_MILLIS).contains(&silent_millis)
        }
        EndCause::ByClient { .. }
        | EndCause::Lost
        | EndCause::TakenOver { .. }
        | EndCause::ByBroker { .. } => true,
    }
}
