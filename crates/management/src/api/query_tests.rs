//! Queries of requests that end early.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::stream::tests::broker_and_api;
use super::*;

/// Much longer than the broker takes for an answer.
const LONG: Duration = Duration::from_secs(30);

/// More answers than a broker gives before a request that has ended is noticed.
const ANSWERS_MAX: u32 = 100_000;

fn runtime() -> Runtime {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build();
    runtime.expect("a runtime")
}

#[test]
fn a_request_that_ends_while_it_waits_for_a_permit_sends_no_query() {
    let (broker, api) = broker_and_api();
    let is_sent = Arc::new(AtomicBool::new(false));
    runtime().block_on(async {
        let permits = Arc::clone(&api.permits);
        let all = u32::try_from(QUERIES_MAX).expect("a few");
        let taken = permits.acquire_many(all).await.expect("it is open");
        let sends = Arc::clone(&is_sent);
        let waits = api.clone().query(move |queries| {
            sends.store(true, Ordering::SeqCst);
            queries.status()
        });
        let ended = timeout(Duration::from_millis(50), waits).await;
        assert!(ended.is_err(), "it waits for a permit");
        drop(taken);
        // All permits are free again, and the other query is later than the one that has ended.
        let other = timeout(LONG, api.query(Queries::status)).await;
        assert!(matches!(other, Ok(Ok(_))), "{other:?}");
    });
    assert!(!is_sent.load(Ordering::SeqCst));
    broker.stop();
}

#[test]
fn a_query_is_cancelled_when_its_request_ends() {
    let (broker, api) = broker_and_api();
    let (begins, begun) = mpsc::channel();
    let (ends, ended) = mpsc::channel();
    runtime().block_on(async {
        let request = api.query(move |queries| -> Result<(), QueryError> {
            begins.send(()).expect("the test listens");
            let mut answers = (0..ANSWERS_MAX).map(|_| queries.status());
            let error = answers.find_map(Result::err);
            ends.send(error.clone()).expect("the test listens");
            error.map_or(Ok(()), Err)
        });
        let request = tokio::spawn(request);
        begun.recv_timeout(LONG).expect("it is sent");
        request.abort();
        assert!(request.await.is_err_and(|error| error.is_cancelled()));
    });
    let error = ended.recv_timeout(LONG).expect("it is answered");
    assert_eq!(error, Some(QueryError::Cancelled));
    broker.stop();
}
