//! Scrapes of a broker that does not answer, and of what the interface itself does.

use super::*;

#[test]
fn a_scrape_needs_no_answer_of_the_workers() {
    let mut broker = TestBroker::new("without-workers", 2);
    broker.inner.take().unwrap().stop();
    assert_eq!(broker.get("/api/v1/status").status, 503);
    let (head, body) = scrape(&broker, "text/plain");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(body.contains("\nthrum_worker_sessions{worker=\"1\"} 0\n"));
    assert_eq!(broker.get("/api/v1/metrics").status, 200);
}

#[test]
fn a_scrape_tells_how_requests_were_answered() {
    let broker = TestBroker::new("answers", 1);
    assert_eq!(broker.get("/api/v1/nothing").status, 404);
    let (_, body) = scrape(&broker, "text/plain");
    let counted = "\nthrum_management_answers_total{status=\"404\"} 1\n";
    assert!(body.contains(counted), "{body}");
}
