//! The HTTP port: the interface for people, programs and probes elsewhere.
//!
//! ```text
//!   accept (places) -> TLS -> HTTP/1.1 or 2 (connection) -> sender (forwarded) -> router
//!                  \-> MQTT over WebSocket: a worker of the broker (websocket)
//! ```
//!
//! It has a thread of its own, so that a flood of requests delays no client of the broker.

mod accept;
mod answers;
mod assets;
mod connection;
mod forwarded;
mod headers;
mod held;
mod pages;
mod places;
mod probes;
mod websocket;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::{Router, middleware};
use thrum_broker::{HttpPort, Queries};
use thrum_files::stand_back;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::api::{self, Entrance, Shares};
use crate::{Managed, Security};
use connection::Shared;
use held::Room;
use places::Places;

/// Orders of the broker's thread that wait; each is carried out at once.
const ORDERS_MAX: usize = 4;
/// The figures of the history are read at this interval, while a port is open: some 50 µs.
const HISTORY_INTERVAL: Duration = Duration::from_secs(1);
/// Longest time of requests that are under way at the end of the broker.
const STOP_TIME: Duration = Duration::from_secs(1);

/// The thread that answers HTTP at the ports of a broker.
#[derive(Debug)]
pub struct HttpServer {
    orders: mpsc::Sender<Order>,
    thread: JoinHandle<()>,
}

/// What the server is to do.
#[derive(Debug)]
enum Order {
    /// Answer at these ports, and no others.
    Renew(Vec<HttpPort>),
    /// Accept no more, and answer no further request.
    Close,
    /// The broker has ended.
    End,
}

impl HttpServer {
    /// Begins to answer at the ports of a broker.
    ///
    /// # Errors
    /// The system gives no thread or event queue.
    pub fn start(
        ports: Vec<HttpPort>,
        managed: impl Into<Managed>,
        security: Security,
    ) -> io::Result<Self> {
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(api::BLOCKING_MAX)
            .enable_all()
            .build()?;
        let managed = managed.into();
        let queries = managed.queries.clone();
        let (router, changes) = router(managed, security);
        let (orders, received) = mpsc::channel(ORDERS_MAX);
        let thread = std::thread::Builder::new()
            .name("http".to_owned())
            .spawn(move || {
                stand_back();
                runtime.block_on(serve(ports, router, changes, queries, received));
                // Threads that wait for an answer of the broker end with it.
                runtime.shutdown_background();
            })?;
        Ok(Self { orders, thread })
    }

    /// Answers at these ports from now on, and no others; existing connections stay.
    pub fn renew(&self, ports: Vec<HttpPort>) {
        if self.orders.blocking_send(Order::Renew(ports)).is_err() {
            tracing::error!("the thread of the HTTP port has ended");
        }
    }

    /// Accepts no more connections; requests under way go on. Clients of MQTT stay until the broker
    /// has ended.
    pub fn close(&self) {
        // The thread may have ended.
        self.orders.blocking_send(Order::Close).ok();
    }

    /// Ends after the broker: what it has sent its clients reaches them, and requests under way are
    /// answered, as far as one second allows.
    pub fn stop(self) {
        self.orders.blocking_send(Order::End).ok();
        if self.thread.join().is_err() {
            tracing::error!("the thread of the HTTP port ended by a panic");
        }
    }
}

fn router(managed: Managed, security: Security) -> (Router, Shares) {
    let queries = managed.queries.clone();
    let counts = Arc::clone(&security.counts);
    let (router, changes) = api::router_and_changes(managed, security, Entrance::Port);
    let router = router
        // Pages and probes are small, or not in memory of their own.
        .layer(middleware::from_fn(held::hold))
        .layer(middleware::from_fn_with_state(counts, api::count_answer))
        .merge(assets::router().unwrap_or_else(pages::router))
        .merge(probes::router(queries))
        .method_not_allowed_fallback(api::no_method)
        .layer(middleware::from_fn(headers::protect));
    (router, changes)
}

/// Serves the ports until the order to stop.
async fn serve(
    ports: Vec<HttpPort>,
    router: Router,
    changes: Shares,
    queries: Queries,
    mut orders: mpsc::Receiver<Order>,
) {
    let (stop, stopping) = watch::channel(false);
    let shared = Arc::new(Shared {
        router,
        places: Places::new(),
        room: Room::default(),
        stopping,
    });
    let mut open = BTreeMap::new();
    renew(&mut open, ports, &shared);
    let mut seconds = interval(HISTORY_INTERVAL);
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let order = tokio::select! {
            order = orders.recv() => order,
            // Without a port nobody sees the history.
            _ = seconds.tick(), if !open.is_empty() => {
                queries.live().enter_second();
                continue;
            }
        };
        match order {
            Some(Order::Renew(ports)) => renew(&mut open, ports, &shared),
            Some(Order::Close) => {
                renew(&mut open, Vec::new(), &shared);
                stop.send_replace(true);
            }
            Some(Order::End) | None => break,
        }
    }
    renew(&mut open, Vec::new(), &shared);
    stop.send_replace(true);
    let ended = async {
        shared.places.all_free().await;
        // Changes go on without their requests.
        changes.all_free().await;
    };
    if timeout(STOP_TIME, ended).await.is_err() {
        tracing::debug!("requests at the HTTP port are cut off by the end of the broker");
    }
}

/// Opens and closes ports until they are these.
fn renew(open: &mut BTreeMap<u32, AbortHandle>, ports: Vec<HttpPort>, shared: &Arc<Shared>) {
    open.retain(|number, accepting| {
        let stays = ports.iter().any(|port| port.number() == *number);
        if !stays {
            accepting.abort();
        }
        stays
    });
    for port in ports {
        // Its settings are read for each connection.
        open.entry(port.number()).or_insert_with(|| {
            let accepting = accept::accept(port, Arc::clone(shared));
            tokio::spawn(accepting).abort_handle()
        });
    }
}
