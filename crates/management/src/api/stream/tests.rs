//! The tasks behind streams.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use thrum_broker::config::Workers;
use thrum_broker::{Access, Broker, Config};
use tokio::time::{sleep, timeout};

use super::declared::{Declared, Part};
use super::hub::PARTS_OF_ONE_MAX;
use super::viewer::Viewer;
use super::watcher::{Live as _, Watcher};
use crate::Security;
use crate::api::entrance::{Entrance, Sender};
use crate::api::{ApiState, Problem};
use crate::login::Caller;

/// A broker without listeners, and the state of its interface.
pub(in crate::api) fn broker_and_api() -> (Broker, ApiState) {
    let mut config = Config::default();
    config.node.workers = Workers::Count(1);
    config.listeners.clear();
    let broker = Broker::start(config, Access::default()).expect("it needs no port");
    let security = Security::open(None, None).expect("it is in memory");
    let api = ApiState::new(broker.queries(), security, Entrance::Local);
    (broker, api)
}

pub(super) async fn viewer(api: &ApiState, query: &str) -> Result<Viewer, Problem> {
    let sender = Sender {
        caller: Caller::local(),
        session: None,
        is_tls: false,
        port: None,
    };
    let declared = Declared::read(query, &sender)?;
    let watcher = Watcher::begin(api, sender, declared.scopes())?;
    Viewer::begin(api, watcher, declared, None).await
}

async fn text(viewer: &mut Viewer) -> Option<String> {
    let next = timeout(Duration::from_mins(1), viewer.next()).await;
    let bytes = next.expect("a comment at least")?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[tokio::test(start_paused = true)]
async fn viewers_share_the_work_and_nothing_runs_without_them() {
    let (broker, api) = broker_and_api();
    let first = viewer(&api, "clients=&every=1s").await.expect("a place");
    let second = viewer(&api, "clients=&every=1s&figures=all").await;
    let mut second = second.expect("a place");
    assert_eq!((api.live.tasks(), api.live.viewers()), (2, 2));
    drop(first);
    text(&mut second).await;
    let both = text(&mut second).await.expect("the first states");
    assert!(
        both.contains("event: clients") && both.contains("event: figures"),
        "{both}"
    );
    drop(second);
    sleep(Duration::from_secs(1)).await;
    assert_eq!((api.live.tasks(), api.live.viewers()), (0, 0));
    broker.stop();
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_has_comments_and_ends_with_the_broker() {
    let (broker, api) = broker_and_api();
    let mut viewer = viewer(&api, "clients=&every=1s").await.expect("a place");
    assert!(
        text(&mut viewer)
            .await
            .is_some_and(|text| text.contains("retry: 2000"))
    );
    assert!(
        text(&mut viewer)
            .await
            .is_some_and(|text| text.contains("\"matching\":0"))
    );
    let begin = tokio::time::Instant::now();
    assert_eq!(
        text(&mut viewer).await.as_deref(),
        Some(": nothing new\n\n")
    );
    assert!(begin.elapsed() >= Duration::from_secs(14));
    broker.stop();
    let end = text(&mut viewer).await.expect("why it ends");
    assert!(
        end.contains("event: end") && end.contains("stopping"),
        "{end}"
    );
    assert_eq!(text(&mut viewer).await, None);
}

#[tokio::test(start_paused = true)]
async fn one_caller_cannot_take_all_parts() {
    let (broker, api) = broker_and_api();
    let sender = Sender {
        caller: Caller::local(),
        session: None,
        is_tls: false,
        port: None,
    };
    let every = Declared::read("clients=", &sender).expect("right").every;
    let subscribe = |number: usize, caller: &str| {
        let part = Part::Client(number.to_string());
        api.live.subscribe(&api, (part, every), &Arc::from(caller))
    };
    let mut kept = Vec::new();
    for number in 0..PARTS_OF_ONE_MAX {
        kept.push(subscribe(number, "one").expect("a place"));
    }
    let refused = subscribe(PARTS_OF_ONE_MAX, "one").expect_err("too many");
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS.as_u16());
    // What is made already costs nothing more, and others have their own.
    assert!(subscribe(0, "one").is_ok());
    kept.push(subscribe(PARTS_OF_ONE_MAX, "other").expect("a place"));
    drop(kept);
    sleep(Duration::from_secs(1)).await;
    assert!(subscribe(PARTS_OF_ONE_MAX, "one").is_ok());
    broker.stop();
}
