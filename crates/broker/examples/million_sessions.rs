//! What lists of many sessions cost: `cargo run --release -p thrum-broker --example
//! million_sessions -- FOLDER [SESSIONS] [WORKERS]`.
//!
//! Writes a data directory with durable sessions that have no socket, starts a broker on it in this
//! process, and times pages, facets and a whole listing, while a client on each worker sends pings
//! as fast as they are answered. The time of a ping without and with the queries shows how long the
//! workers are kept. The directory must be new; 1,000,000 sessions take about 300 MB of it.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use thrum_broker::config::{Anonymous, ListenerConfig, Workers};
use thrum_broker::{
    Access, Broker, Config, Figure, Listening, Queries, SessionFilter, SessionQuery, SortKey,
};
use thrum_codec::packet::SubscriptionOptions;
use thrum_codec::{QoS, Version};
use thrum_storage::disk::RealDisk;
use thrum_storage::{
    Batch, Change, Durability, Identifiers, Message, Options, Owner, Queued, Session, Store,
    Subscription,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

const SESSIONS: u64 = 1_000_000;
const WORKERS: u16 = 2;
/// Users of the sessions.
const USERS: u64 = 1000;
/// One of so many sessions has a message in its queue.
const QUEUED_EVERY: u64 = 50;
/// Sessions of one commit.
const AT_ONCE: u64 = 10_000;
/// Rounds of each query; the median and the slowest count.
const ROUNDS: usize = 9;
/// Connections that send pings: with as many, each worker has some.
const PINGERS: usize = 8;
const PAGE: usize = 100;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("name a directory that is new")?;
    let folder = Path::new(&folder);
    let sessions = arguments.next().map_or(Ok(SESSIONS), |text| text.parse())?;
    let workers = arguments.next().map_or(Ok(WORKERS), |text| text.parse())?;
    std::fs::create_dir(folder)?;
    let begin = now();
    write_sessions(&folder.join("state"), sessions)?;
    println!("wrote {sessions} sessions in {:.1?}", begin.elapsed());
    let begin = now();
    let broker = Broker::start(config(folder, workers), Access::default())?;
    println!("started with {workers} workers in {:.1?}", begin.elapsed());
    let addresses = broker.addresses();
    let address = addresses.iter().find_map(Listening::socket_address);
    let pings = Pings::begin(address.ok_or("it listens")?)?;
    pause(Duration::from_secs(3));
    pings.show("without queries");
    measure(&broker.queries(), &pings)?;
    pings.end();
    broker.stop();
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the example measures time")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "the example waits for its pings")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

fn config(folder: &Path, workers: u16) -> Config {
    let mut config = Config::default();
    config.node.workers = Workers::Count(workers);
    folder.clone_into(&mut config.node.data_dir);
    config.auth.anonymous = Anonymous::Allow;
    config.listeners.clear();
    let listener = ListenerConfig {
        bind: vec![SocketAddr::from(([127, 0, 0, 1], 0)).into()],
        ..ListenerConfig::default()
    };
    config.listeners.insert("mqtt".to_owned(), listener);
    config
}

fn write_sessions(state: &Path, sessions: u64) -> Outcome<()> {
    let options = Options {
        durability: Durability::Os,
        ..Options::default()
    };
    let (mut store, _, _) = Store::open(RealDisk::open(state)?, options)?;
    let mut batch = Batch::default();
    for id in 1..=sessions {
        write_session(&mut batch, id);
        if id % AT_ONCE == 0 || id == sessions {
            store.apply(&batch)?;
            batch.clear();
            store.commit()?;
        }
    }
    store.close()?;
    Ok(())
}

fn write_session(batch: &mut Batch, id: u64) {
    let user = format!("user-{:03}", id % USERS);
    let version = if id.is_multiple_of(4) {
        Version::V311
    } else {
        Version::V5
    };
    batch.push(&Change::Session(Session {
        id,
        // In another order than their slots.
        client_id: &format!("meter-{:07}", id.wrapping_mul(7_368_787) % 10_000_000),
        version,
        expiry_secs: u32::MAX,
        away_since: Some(1),
        packet_id_hint: 0,
        owner: Owner::User(&user),
    }));
    batch.push(&Change::Subscription(Subscription {
        session: id,
        filter: &format!("site/{}/orders", id % 10_000),
        options: SubscriptionOptions {
            qos: QoS::AtLeastOnce,
            ..SubscriptionOptions::default()
        },
        identifier: 0,
        owed: None,
    }));
    if id.is_multiple_of(QUEUED_EVERY) {
        batch.push(&Change::Message(Message {
            id,
            publisher: 0,
            published_at: 1,
            expires_at: None,
            qos: QoS::AtLeastOnce,
            retain: false,
            topic: "site/1/orders",
            properties: &[],
            payload: b"{\"order\":1}",
        }));
        batch.push(&Change::Queued(Queued {
            session: id,
            seq: 1,
            message: id,
            qos: QoS::AtLeastOnce,
            retain: false,
            identifiers: Identifiers::NONE,
            group: "",
        }));
    }
    batch.end_unit();
}

/// Times each kind of query, and the pings meanwhile.
fn measure(queries: &Queries, pings: &Pings) -> Outcome<()> {
    let page = |sort, is_descending, filter: &str| -> Outcome<SessionQuery> {
        Ok(SessionQuery {
            filter: filter.parse()?,
            sort,
            is_descending,
            limit: PAGE,
            cursor: None,
        })
    };
    let queued = SortKey::Figure(Figure::QueuedMessages);
    let oldest = SortKey::Figure(Figure::OldestQueued);
    for (name, query) in [
        ("first page", page(SortKey::ClientId, false, "")?),
        ("sort=queued_messages, descending", page(queued, true, "")?),
        (
            "sort=oldest_queued_secs, descending",
            page(oldest, true, "")?,
        ),
        ("sort=user", page(SortKey::User, false, "")?),
        (
            "filter: client=*77*",
            page(SortKey::ClientId, false, "client=*77*")?,
        ),
        (
            "filter: user=user-007 queue>0",
            page(SortKey::ClientId, false, "user=user-007 queue>0")?,
        ),
        (
            "filter: problem=any",
            page(SortKey::ClientId, false, "problem=any")?,
        ),
    ] {
        rounds(name, pings, || {
            queries.sessions(&query)?;
            Ok(())
        })?;
    }
    let after = queries.sessions(&page(SortKey::ClientId, false, "")?)?;
    let second = SessionQuery {
        cursor: after.page.next,
        ..page(SortKey::ClientId, false, "")?
    };
    rounds("second page", pings, || {
        queries.sessions(&second)?;
        Ok(())
    })?;
    let all = SessionFilter::default();
    rounds("facets", pings, || {
        queries.facets(&all)?;
        Ok(())
    })?;
    rounds("one client", pings, || {
        queries.session("meter-0000001")?;
        Ok(())
    })?;
    whole(queries, pings)
}

/// Reads all sessions in no order.
fn whole(queries: &Queries, pings: &Pings) -> Outcome<()> {
    let begin = now();
    let mut query = SessionQuery {
        sort: SortKey::Unsorted,
        limit: 1000,
        ..SessionQuery::default()
    };
    let mut rows = 0;
    loop {
        let found = queries.sessions(&query)?;
        rows += found.page.rows.len();
        query.cursor = found.page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    println!("all {rows} sessions, sort=none: {:.2?}", begin.elapsed());
    pings.show("meanwhile");
    Ok(())
}

fn rounds(name: &str, pings: &Pings, ask: impl Fn() -> Outcome<()>) -> Outcome<()> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let begin = now();
        ask()?;
        times.push(begin.elapsed());
    }
    times.sort();
    let (median, slowest) = (times[ROUNDS / 2], times[ROUNDS - 1]);
    println!("{name}: median {median:.1?}, slowest {slowest:.1?}");
    pings.show("meanwhile");
    Ok(())
}

/// Clients that send a ping when the last one was answered.
struct Pings {
    times: Arc<Mutex<Vec<Duration>>>,
    is_over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

impl Pings {
    fn begin(address: SocketAddr) -> Outcome<Self> {
        let mut streams = Vec::new();
        for number in 0..PINGERS {
            let mut stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            let mut connect = *b"\x10\x0d\0\x04MQTT\x04\x02\0\0\0\x01a";
            connect[14] = b'a' + u8::try_from(number)?;
            stream.write_all(&connect)?;
            stream.read_exact(&mut [0; 4])?;
            streams.push(stream);
        }
        let times = Arc::new(Mutex::new(Vec::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let (measured, ends) = (Arc::clone(&times), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                let times = streams.iter_mut().filter_map(ping);
                let times: Vec<Duration> = times.collect();
                measured
                    .lock()
                    .into_iter()
                    .for_each(|mut all| all.extend(&times));
            }
        });
        Ok(Self {
            times,
            is_over,
            thread,
        })
    }

    /// Prints the times since the last call.
    fn show(&self, when: &str) {
        let Ok(mut times) = self.times.lock() else {
            return;
        };
        let mut times = std::mem::take(&mut *times);
        times.sort();
        let at = |share: usize| times.get(times.len() * share / 1000);
        if let (Some(median), Some(p99), Some(p999), Some(last)) =
            (at(500), at(990), at(999), times.last())
        {
            let count = times.len();
            println!(
                "  {when}: {count} pings, p50 {median:.0?}, p99 {p99:.0?}, p99.9 {p999:.0?}, max {last:.1?}"
            );
        }
    }

    fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().ok();
    }
}

/// The time until the broker has answered a ping.
fn ping(stream: &mut TcpStream) -> Option<Duration> {
    let begin = now();
    stream.write_all(b"\xC0\0").ok()?;
    stream.read_exact(&mut [0; 2]).ok()?;
    Some(begin.elapsed())
}
