//! The screen: asks the broker at each interval, and does what keys ask for.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use thrum_management::api::Kicked;
use thrum_view::top::{TopAction, TopClient, TopFigures, TopSnapshot, TopSort, TopView};

use super::sample::{Busy, Look, Rates, busiest};
use super::{Sort, TopArgs};
use crate::command::running::{Broker, Method, encoded};
use crate::command::shown::name;

/// Points of the charts: four minutes at two seconds.
const POINTS_MAX: usize = 120;

/// Longest time until a signal that ends the program is noticed.
const SIGNAL_TIME: Duration = Duration::from_millis(250);

/// Exit code after Ctrl-C, as a key or as a signal from outside.
const INTERRUPTED: u8 = 130;

/// Shows the screen until the user ends it.
pub(super) fn run(args: &TopArgs, broker: &Broker) -> anyhow::Result<ExitCode> {
    let mut watch = Watch::begin(args, broker);
    // Before the terminal is taken: a refusal stays readable.
    watch.look()?;
    let is_ended = Arc::new(AtomicBool::new(false));
    let is_interrupted = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGINT, Arc::clone(&is_interrupted))?;
    for signal in [SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&is_ended))?;
    }
    let mut view = TopView::start(shown_sort(args.sort), &args.filter)?;
    while !is_ended.load(Ordering::Relaxed) && !is_interrupted.load(Ordering::Relaxed) {
        view.draw(&watch.snapshot)?;
        let left = watch.left(args.interval);
        match view.next_action(&watch.snapshot, left.min(SIGNAL_TIME))? {
            Some(TopAction::Quit) => break,
            Some(TopAction::Interrupt) => {
                is_interrupted.store(true, Ordering::Relaxed);
                continue;
            }
            Some(TopAction::Redraw) => continue,
            None if left > SIGNAL_TIME => continue,
            Some(TopAction::Kick(id)) => view.say(&kick(broker, &id)),
            Some(TopAction::Refresh) => {
                watch.sort = asked_sort(view.sort());
                view.filter().clone_into(&mut watch.filter);
            }
            None => {}
        }
        if let Err(error) = watch.look() {
            watch.snapshot.trouble = name(&error.to_string()).into_owned();
        }
    }
    // Dropped, the view gives the terminal back.
    Ok(if is_interrupted.load(Ordering::Relaxed) {
        ExitCode::from(INTERRUPTED)
    } else {
        ExitCode::SUCCESS
    })
}

const fn shown_sort(sort: Sort) -> TopSort {
    match sort {
        Sort::Rate => TopSort::Rate,
        Sort::Queue => TopSort::Queue,
        Sort::Drops => TopSort::Drops,
    }
}

const fn asked_sort(sort: TopSort) -> Sort {
    match sort {
        TopSort::Rate => Sort::Rate,
        TopSort::Queue => Sort::Queue,
        TopSort::Drops => Sort::Drops,
    }
}

/// Disconnects a client; what to say about it.
fn kick(broker: &Broker, id: &str) -> String {
    let path = format!("/clients/{}", encoded(id));
    let shown = name(id);
    match broker.call::<Kicked>(Method::Delete, &path, "") {
        Ok(kicked) if kicked.disconnected => format!("{shown} is disconnected"),
        Ok(_) => format!("{shown} was away"),
        Err(error) => name(&error.to_string()).into_owned(),
    }
}

/// Looks over time.
struct Watch<'a> {
    broker: &'a Broker,
    sort: Sort,
    filter: String,
    began: Instant,
    last: Option<Look>,
    /// Time of the last look since the first, also of a failed one.
    looked_at: Duration,
    snapshot: TopSnapshot,
}

impl<'a> Watch<'a> {
    #[expect(
        clippy::disallowed_methods,
        reason = "rates are measured over the time between two looks"
    )]
    fn begin(args: &TopArgs, broker: &'a Broker) -> Self {
        Self {
            broker,
            sort: args.sort,
            filter: args.filter.clone(),
            began: Instant::now(),
            last: None,
            looked_at: Duration::ZERO,
            snapshot: TopSnapshot {
                place: broker.place(),
                ..TopSnapshot::default()
            },
        }
    }

    /// Time until the next look.
    fn left(&self, interval: Duration) -> Duration {
        (self.looked_at + interval).saturating_sub(self.began.elapsed())
    }

    fn look(&mut self) -> anyhow::Result<()> {
        self.looked_at = self.began.elapsed();
        let look = Look::take(self.broker, self.looked_at, Some(self.sort), &self.filter)?;
        let before = self.last.as_ref();
        let clients = busiest(before, &look, self.sort);
        let rates = before.and_then(|before| Rates::between(before, &look));
        let snapshot = &mut self.snapshot;
        snapshot.trouble.clear();
        snapshot.clients = clients.iter().map(client).collect();
        snapshot.matching = look.matching;
        if let Some(rates) = rates {
            push(&mut snapshot.received, rates.received);
            push(&mut snapshot.sent, rates.sent);
            push(&mut snapshot.dropped, rates.dropped);
        }
        snapshot.figures = figures(&look, rates.unwrap_or_default());
        self.last = Some(look);
        Ok(())
    }
}

fn push(values: &mut Vec<f64>, value: f64) {
    if values.len() >= POINTS_MAX {
        values.remove(0);
    }
    values.push(value);
}

fn figures(look: &Look, rates: Rates) -> TopFigures {
    let status = &look.status;
    TopFigures {
        version: name(&status.version).into_owned(),
        uptime_secs: status.uptime_secs,
        connected: status.clients_connected,
        sessions: status.sessions,
        subscriptions: status.subscriptions,
        retained: status.retained_messages,
        memory_bytes: status.memory.resident_bytes,
        memory_bytes_max: status.memory.limit_bytes,
        bytes_received: rates.bytes_received,
        bytes_sent: rates.bytes_sent,
    }
}

fn client(busy: &Busy) -> TopClient {
    let client = &busy.client;
    TopClient {
        client_id: name(&client.client_id).into_owned(),
        id: client.client_id.clone(),
        user: name(client.user.as_deref().unwrap_or("-")).into_owned(),
        is_connected: client.connected,
        received: busy.received,
        sent: busy.sent,
        queued: client.queued_messages,
        inflight: client.inflight as u64,
        dropped: client.messages_dropped,
        problems: client.problems.join(","),
    }
}
