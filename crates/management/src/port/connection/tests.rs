//! Connections of HTTP/2 whose peers do not go on.

use axum::body::Bytes;
use futures_util::stream::once;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::net::TcpListener;
use tokio::time::{Instant, interval, sleep};

use super::*;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// `GET /` in the static table of HPACK, and an authority.
const HEAD: &[u8] = b"\x82\x86\x84\x41\x01x";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 1;
/// `END_STREAM` and `END_HEADERS`.
const WHOLE: u8 = 5;

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let len = u8::try_from(payload.len()).unwrap();
    [&[0, 0, len, kind, flags, 0, 0, 0, stream], payload].concat()
}

/// A client that sends one request, and answers everything but what is to be tested.
struct Client {
    /// Bytes that it takes of the answer.
    window: u32,
    /// Bytes that it takes each 20 s.
    grants: u32,
}

/// What a client has seen until the end of its connection.
struct Seen {
    /// Bytes of the answer.
    bytes: usize,
    after: Duration,
}

impl Client {
    async fn run(self, mut far: DuplexStream) -> Seen {
        let begun = Instant::now();
        let window = [&[0, 4], &self.window.to_be_bytes()[..]].concat();
        let settings = frame(SETTINGS, 0, 0, &window);
        let request = frame(HEADERS, WHOLE, 1, HEAD);
        let first = [PREFACE, &settings, &request].concat();
        far.write_all(&first).await.unwrap();
        let mut grants = interval(Duration::from_secs(20));
        grants.reset();
        let (mut bytes, mut read) = (0, Vec::new());
        loop {
            tokio::select! {
                len = far.read_buf(&mut read) => if len.unwrap_or(0) == 0 {
                    let after = begun.elapsed();
                    return Seen { bytes, after };
                },
                _ = grants.tick(), if self.grants > 0 => {
                    for stream in [0, 1] {
                        let more = self.grants.to_be_bytes();
                        far.write_all(&frame(WINDOW_UPDATE, 0, stream, &more)).await.ok();
                    }
                }
            }
            bytes += take_frames(&mut read, &mut far).await;
        }
    }
}

/// Answers settings and pings; returns the bytes of the answer that have come.
async fn take_frames(read: &mut Vec<u8>, far: &mut DuplexStream) -> usize {
    let mut bytes = 0;
    while let Some((kind, flags, payload)) = next_frame(read) {
        if kind == DATA {
            bytes += payload.len();
        }
        if matches!(kind, SETTINGS | PING) && flags & ACK == 0 {
            let same = if kind == PING { &*payload } else { &[] };
            far.write_all(&frame(kind, ACK, 0, same)).await.ok();
        }
    }
    bytes
}

fn next_frame(read: &mut Vec<u8>) -> Option<(u8, u8, Vec<u8>)> {
    let [a, b, c, kind, flags, ..] = **read else {
        return None;
    };
    let end = 9 + u32::from_be_bytes([0, a, b, c]) as usize;
    if read.len() < end {
        return None;
    }
    let rest = read.split_off(end);
    let payload = read.split_off(9);
    *read = rest;
    Some((kind, flags, payload))
}

/// Serves a client until the connection ends, with this answer to its request.
async fn seen(client: Client, body: Body) -> Seen {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (_stop, stopping) = watch::channel(false);
    let (answers, progress) = (Answers::default(), Progress::default());
    let connected = Connected {
        address: SocketAddr::from(([127, 0, 0, 1], 1)),
        answers: answers.clone(),
        stopping,
    };
    let near = Stalled::new(near, progress.clone());
    let body = std::sync::Mutex::new(Some(body));
    let route = move |_: Request<Incoming>| {
        progress.note_request();
        let under_way = answers.begin();
        let body = body.lock().unwrap().take().unwrap();
        async move { Ok(under_way.answered(Response::new(body))) }
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
        let client = Client { window, grants: 0 };
        let seen = seen(client, of_len(len)).await;
        assert_eq!(seen.bytes, window as usize, "of {len}");
        let secs = seen.after.as_secs();
        assert!((30..32).contains(&secs), "{window} of {len}: {secs} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_of_http2_that_takes_its_answer_slowly_gets_all_of_it() {
    let client = Client {
        window: 0,
        grants: 10_000,
    };
    let seen = seen(client, of_len(100_000)).await;
    assert_eq!(seen.bytes, 100_000);
    assert!(seen.after > Duration::from_secs(200), "{:?}", seen.after);
}

#[tokio::test(start_paused = true)]
async fn a_connection_of_http2_that_asks_no_more_is_closed_though_it_answers_pings() {
    let client = Client {
        window: 65_535,
        grants: 0,
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
        grants: 0,
    };
    let seen = seen(client, Body::from_stream(once(late))).await;
    assert_eq!(seen.bytes, 8);
    let secs = seen.after.as_secs();
    assert!((330..332).contains(&secs), "{secs} s");
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
