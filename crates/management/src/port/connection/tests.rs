//! Connections of HTTP/2 whose peers do not go on.

use std::net::{IpAddr, Ipv4Addr};

use axum::body::Bytes;
use futures_util::stream::once;
use thrum_broker::config::Transport;
use thrum_broker::config::{ListenerConfig, Workers};
use thrum_broker::{Access, Broker, Config};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::net::TcpListener;
use tokio::time::{Instant, interval, sleep};

use super::*;

const PROXY: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const STRANGER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// `GET /` in the static table of HPACK, and an authority.
const HEAD: &[u8] = b"\x82\x86\x84\x41\x01x";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 1;
/// `END_STREAM` and `END_HEADERS`.
const WHOLE: u8 = 5;

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let len = u8::try_from(payload.len()).unwrap();
    [&[0, 0, len, kind, flags, 0, 0, 0, stream], payload].concat()
}

/// A client that answers everything but what is to be tested.
#[derive(Default)]
struct Client {
    /// Bytes that it takes of each answer.
    window: u32,
    /// Bytes that it takes each 20 s of the answer to its last request.
    grants: u32,
    /// It sends two requests at once instead of one.
    asks_twice: bool,
    /// It sends another request when it is told that the connection closes.
    asks_late: bool,
}

/// What a client has seen until the end of its connection.
#[derive(Default)]
struct Seen {
    /// Bytes of the answers.
    bytes: usize,
    after: Duration,
    /// Streams that were reset, and when.
    resets: Vec<(u8, Duration)>,
}

impl Client {
    async fn run(self, mut far: DuplexStream) -> Seen {
        let begun = Instant::now();
        let window = [&[0, 4], &self.window.to_be_bytes()[..]].concat();
        let settings = frame(SETTINGS, 0, 0, &window);
        let last = if self.asks_twice { 3 } else { 1 };
        let requests: Vec<u8> = (1..=last).step_by(2).flat_map(request).collect();
        let first = [PREFACE, &settings, &requests].concat();
        far.write_all(&first).await.unwrap();
        let mut grants = interval(Duration::from_secs(20));
        grants.reset();
        let (mut seen, mut read) = (Seen::default(), Vec::new());
        loop {
            tokio::select! {
                len = far.read_buf(&mut read) => if len.unwrap_or(0) == 0 {
                    seen.after = begun.elapsed();
                    return seen;
                },
                _ = grants.tick(), if self.grants > 0 => {
                    for stream in [0, last] {
                        let more = self.grants.to_be_bytes();
                        far.write_all(&frame(WINDOW_UPDATE, 0, stream, &more)).await.ok();
                    }
                }
            }
            while let Some(frame) = next_frame(&mut read) {
                let is_reset = frame.kind == RST_STREAM;
                let reset = is_reset.then(|| (frame.stream, begun.elapsed()));
                seen.resets.extend(reset);
                seen.bytes += self.take(&frame, &mut far).await;
            }
        }
    }

    /// Answers settings and pings; returns the bytes of an answer that have come.
    async fn take(&self, taken: &Frame, far: &mut DuplexStream) -> usize {
        let last_stream = [0x7f, 0xff, 0xff, 0xff];
        match taken.kind {
            DATA => return taken.payload.len(),
            SETTINGS if taken.flags & ACK == 0 => {
                far.write_all(&frame(SETTINGS, ACK, 0, &[])).await.ok();
            }
            PING if taken.flags & ACK == 0 => {
                far.write_all(&frame(PING, ACK, 0, &taken.payload))
                    .await
                    .ok();
            }
            // The first of two: requests that are on their way are still answered.
            GOAWAY if self.asks_late && taken.payload.starts_with(&last_stream) => {
                far.write_all(&request(3)).await.ok();
            }
            _ => {}
        }
        0
    }
}

fn request(stream: u8) -> Vec<u8> {
    frame(HEADERS, WHOLE, stream, HEAD)
}

struct Frame {
    kind: u8,
    flags: u8,
    stream: u8,
    payload: Vec<u8>,
}

fn next_frame(read: &mut Vec<u8>) -> Option<Frame> {
    let [a, b, c, kind, flags, _, _, _, stream, ..] = **read else {
        return None;
    };
    let end = 9 + u32::from_be_bytes([0, a, b, c]) as usize;
    if read.len() < end {
        return None;
    }
    let rest = read.split_off(end);
    let payload = read.split_off(9);
    *read = rest;
    Some(Frame {
        kind,
        flags,
        stream,
        payload,
    })
}

/// Serves a client until the connection ends, with this answer to its request.
async fn seen(client: Client, body: Body) -> Seen {
    seen_of(STRANGER, client, vec![body]).await
}

/// The same with an answer to each of its requests.
async fn seen_of(end: IpAddr, client: Client, bodies: Vec<Body>) -> Seen {
    let answers = Answers::default();
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (_stop, stopping) = watch::channel(false);
    let progress = Progress::default();
    let connected = Connected {
        address: SocketAddr::from(([127, 0, 0, 1], 1)),
        answers: answers.clone(),
        stopping,
    };
    let near = Stalled::new(near, progress.clone());
    let bodies = std::sync::Mutex::new(bodies.into_iter());
    let route = move |_: Request<Incoming>| {
        progress.note_request();
        let answers = answers.clone();
        let body = bodies.lock().unwrap().next().unwrap();
        async move {
            let under_way = answers.begin(end, |end| end == PROXY);
            Ok(under_way.answered(Response::new(body)))
        }
    };
    tokio::spawn(connected.run(near, route));
    client.run(far).await
}

fn of_len(len: usize) -> Body {
    Body::from(vec![b'x'; len])
}

#[tokio::test(start_paused = true)]
async fn a_peer_of_http2_that_takes_nothing_more_is_cut_off_though_it_answers_pings() {
    for (window, len) in [(0, 100_000), (0, 1), (1, 10), (9, 10), (5000, 100_000)] {
        let client = Client {
            window,
            ..Client::default()
        };
        let seen = seen(client, of_len(len)).await;
        assert_eq!(seen.bytes, window as usize, "of {len}");
        let secs = seen.after.as_secs();
        assert!((30..32).contains(&secs), "{window} of {len}: {secs} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_of_http2_that_takes_its_answer_slowly_gets_all_of_it() {
    let client = Client {
        grants: 10_000,
        ..Client::default()
    };
    let seen = seen(client, of_len(100_000)).await;
    assert_eq!(seen.bytes, 100_000);
    assert!(seen.after > Duration::from_secs(200), "{:?}", seen.after);
}

#[tokio::test(start_paused = true)]
async fn a_connection_of_http2_that_asks_no_more_is_closed_though_it_answers_pings() {
    let client = Client {
        window: 65_535,
        ..Client::default()
    };
    let seen = seen(client, of_len(1000)).await;
    assert_eq!(seen.bytes, 1000);
    let secs = seen.after.as_secs();
    assert!((30..32).contains(&secs), "{secs} s");
}

#[tokio::test(start_paused = true)]
async fn an_answer_over_http2_that_says_nothing_for_long_keeps_its_connection() {
    let late = async {
        sleep(Duration::from_mins(5)).await;
        Ok::<_, Infallible>(Bytes::from_static(b"an event"))
    };
    let client = Client {
        window: 65_535,
        ..Client::default()
    };
    let seen = seen(client, Body::from_stream(once(late))).await;
    assert_eq!(seen.bytes, 8);
    let secs = seen.after.as_secs();
    assert!((330..332).contains(&secs), "{secs} s");
}

#[tokio::test(start_paused = true)]
async fn a_stalled_answer_on_a_connection_of_several_people_ends_alone() {
    let bodies = vec![of_len(100_000), of_len(100_000)];
    let client = Client {
        grants: 10_000,
        asks_twice: true,
        ..Client::default()
    };
    let seen = seen_of(PROXY, client, bodies).await;
    let [(stream, after)] = seen.resets[..] else {
        panic!("{:?}", seen.resets);
    };
    assert_eq!((stream, after.as_secs()), (1, 30));
    assert_eq!(seen.bytes, 100_000, "of the other one");
    assert!(seen.after > Duration::from_secs(200), "{:?}", seen.after);
}

/// A broker whose port trusts one proxy, or none.
fn proxied(proxies: &[IpAddr]) -> Config {
    let mut config = Config::default();
    config.node.workers = Workers::Count(1);
    config.listeners.clear();
    let listener = ListenerConfig {
        bind: vec![SocketAddr::from(([127, 0, 0, 1], 0)).into()],
        transport: Transport::Http,
        proxy_from: proxies
            .iter()
            .map(|address| address.to_string().parse().unwrap())
            .collect(),
        ..ListenerConfig::default()
    };
    config.listeners.insert("http".to_owned(), listener);
    config
}

/// What a proxy sees that asks twice and takes nothing, where the second request comes after this.
async fn seen_at_port(before_second: impl Fn(&mut Broker) + Send + 'static) -> Seen {
    let broker = Broker::start(proxied(&[PROXY]), Access::default()).unwrap();
    let port = broker.http_ports().remove(0);
    let origin = Origin {
        address: SocketAddr::from((PROXY, 1)),
        is_tls: false,
        certificate: None,
        place: Arc::new(Places::new().take(PROXY, true).unwrap()),
        progress: Progress::default(),
        answers: Answers::default(),
        room: Room::default(),
    };
    let whole = || async { vec![b'x'; 100_000] };
    let router = Router::new().route("/", axum::routing::get(whole));
    let (_stop, stopping) = watch::channel(false);
    let connected = Connected {
        address: origin.address,
        answers: origin.answers.clone(),
        stopping,
    };
    let (near, far) = tokio::io::duplex(64 * 1024);
    let near = Stalled::new(near, origin.progress.clone());
    let state = std::sync::Mutex::new((0, broker));
    let answer = move |request: Request<Incoming>| {
        let mut state = state.lock().unwrap();
        state.0 += 1;
        if state.0 == 2 {
            before_second(&mut state.1);
        }
        route(request, origin.clone(), port.clone(), router.clone())
    };
    tokio::spawn(connected.run(near, answer));
    let client = Client {
        asks_twice: true,
        ..Client::default()
    };
    client.run(far).await
}

#[tokio::test(start_paused = true)]
async fn each_request_asks_the_port_whether_its_connection_is_that_of_a_proxy() {
    let seen = seen_at_port(|_| {}).await;
    let resets: Vec<_> = seen.resets.iter().map(|(stream, _)| *stream).collect();
    assert_eq!(resets, [1, 3], "each stalled answer ends alone");
    assert!(seen.after > Duration::from_secs(59), "{:?}", seen.after);
    // A reload that trusts it no more counts from the next request on.
    let seen = seen_at_port(|broker| {
        let (_, settling) = broker.reload(&proxied(&[])).unwrap();
        settling.wait(Duration::from_secs(5)).unwrap();
    })
    .await;
    let secs = seen.after.as_secs();
    assert!((30..32).contains(&secs), "{secs} s");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_comes_when_its_idle_connection_closes_is_answered_wholly() {
    let client = Client {
        window: 65_535,
        asks_late: true,
        ..Client::default()
    };
    let late = async {
        sleep(Duration::from_mins(1)).await;
        Ok::<_, Infallible>(Bytes::from_static(b"an event"))
    };
    let bodies = vec![of_len(1000), Body::from_stream(once(late))];
    let seen = seen_of(STRANGER, client, bodies).await;
    assert_eq!(seen.bytes, 1008);
    let secs = seen.after.as_secs();
    assert!((90..92).contains(&secs), "{secs} s");
}

#[tokio::test(start_paused = true)]
async fn a_late_request_whose_answer_is_not_taken_does_not_keep_its_connection() {
    let client = Client {
        window: 1000,
        asks_late: true,
        ..Client::default()
    };
    let bodies = vec![of_len(1000), of_len(2000)];
    let seen = seen_of(STRANGER, client, bodies).await;
    assert_eq!(seen.bytes, 2000);
    let secs = seen.after.as_secs();
    assert!((60..62).contains(&secs), "{secs} s");
}

#[tokio::test]
async fn little_waits_in_the_system_for_a_reader_that_takes_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let reader = TcpStream::connect(listener.local_addr().unwrap()).await;
    let (mut near, _) = listener.accept().await.unwrap();
    limit_unsent(&near);
    let mut taken = 0;
    while let Ok(written) = timeout(Duration::from_millis(300), near.write(&[0; 8192])).await {
        taken += written.unwrap();
        assert!(taken < 512 * 1024, "{taken} bytes");
    }
    drop(reader);
}
