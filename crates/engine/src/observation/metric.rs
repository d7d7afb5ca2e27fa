//! Figures of the messages that match a filter, chosen by the operator.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_utils::CachePadded;
use thrum_codec::{QoS, topic};
use thrum_protocol::Time;

use super::tree::Seen;
use super::window::{SharedWindow, Window};
use crate::workers::WorkerId;

/// Filters of a node with figures: each is compared with each message.
pub const TOPIC_METRICS_MAX: usize = 32;

/// The filters with figures, as a worker has them.
pub type TopicMetricList = Arc<[Arc<TopicMetric>]>;

/// A filter, and what was counted for it.
#[derive(Debug)]
pub struct TopicMetric {
    filter: Box<str>,
    /// When counting began.
    began: Time,
    /// Each worker writes its own row; any thread reads them, without a lock.
    rows: Box<[CachePadded<Row>]>,
}

#[derive(Debug, Default)]
struct Row {
    received: [AtomicU64; 3],
    received_bytes: AtomicU64,
    delivered: AtomicU64,
    delivered_bytes: AtomicU64,
    dropped: AtomicU64,
    rate: SharedWindow,
    delivered_rate: SharedWindow,
}

/// The figures of a filter at one moment; counts are since `began`.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicMetricFigures {
    /// The filter.
    pub filter: Box<str>,
    /// When counting began.
    pub began: Time,
    /// Messages that were published with QoS 0, 1 and 2.
    pub received: [u64; 3],
    /// Bytes of their payloads.
    pub received_bytes: u64,
    /// Messages that sessions took: sent, or queued.
    pub delivered: u64,
    /// Bytes of their payloads.
    pub delivered_bytes: u64,
    /// Messages that sessions did not get, as far as their topics are known.
    pub dropped: u64,
    /// Messages published in a second, of the last seconds.
    pub received_per_second: f64,
    /// Messages that sessions took in a second, of the last seconds.
    pub delivered_per_second: f64,
}

/// Adds to a number that only this thread writes.
fn add(number: &AtomicU64, amount: u64) {
    let sum = number.load(Ordering::Relaxed).wrapping_add(amount);
    number.store(sum, Ordering::Relaxed);
}

impl TopicMetric {
    fn new(filter: &str, workers: usize, began: Time) -> Self {
        Self {
            filter: filter.into(),
            began,
            rows: (0..workers).map(|_| CachePadded::default()).collect(),
        }
    }

    /// The filter.
    pub fn filter(&self) -> &str {
        &self.filter
    }

    pub(super) fn is_about(&self, topic: &str) -> bool {
        topic::matches(&self.filter, topic)
    }

    /// Counts a message that was published.
    pub(super) fn received(&self, worker: WorkerId, seen: &Seen<'_>) {
        let row = &self.rows[worker.index()];
        let class = match seen.qos {
            QoS::AtMostOnce => 0,
            QoS::AtLeastOnce => 1,
            QoS::ExactlyOnce => 2,
        };
        add(&row.received[class], 1);
        add(&row.received_bytes, seen.payload.len() as u64);
        row.rate.add(seen.now, 1);
    }

    /// Counts deliveries of a message.
    pub(super) fn delivered(&self, worker: WorkerId, seen: &Seen<'_>, deliveries: u32) {
        let row = &self.rows[worker.index()];
        add(&row.delivered, deliveries.into());
        let bytes = u64::from(deliveries) * seen.payload.len() as u64;
        add(&row.delivered_bytes, bytes);
        row.delivered_rate.add(seen.now, deliveries);
    }

    /// Counts messages that a session did not get.
    pub(super) fn dropped(&self, worker: WorkerId, count: u64) {
        add(&self.rows[worker.index()].dropped, count);
    }

    /// The figures of all workers.
    pub fn figures(&self, now: Time) -> TopicMetricFigures {
        let sum = |one: fn(&Row) -> &AtomicU64| {
            let rows = self.rows.iter();
            rows.map(|row| one(row).load(Ordering::Relaxed)).sum()
        };
        let rate = |one: fn(&Row) -> &SharedWindow| {
            let rows = self.rows.iter().map(|row| one(row).load());
            rows.fold(Window::default(), Window::plus)
                .per_second(now, self.began)
        };
        TopicMetricFigures {
            filter: self.filter.clone(),
            began: self.began,
            received: [
                sum(|row| &row.received[0]),
                sum(|row| &row.received[1]),
                sum(|row| &row.received[2]),
            ],
            received_bytes: sum(|row| &row.received_bytes),
            delivered: sum(|row| &row.delivered),
            delivered_bytes: sum(|row| &row.delivered_bytes),
            dropped: sum(|row| &row.dropped),
            received_per_second: rate(|row| &row.rate),
            delivered_per_second: rate(|row| &row.delivered_rate),
        }
    }
}

/// The filters with figures of a node.
#[derive(Debug, Default)]
pub struct TopicMetrics {
    /// Guards the list, for as long as it is copied or replaced; workers have copies.
    list: Mutex<TopicMetricList>,
}

impl TopicMetrics {
    /// The filters, in the order of their texts.
    pub fn current(&self) -> TopicMetricList {
        let list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&list)
    }

    /// Adds a filter, unless there are too many; false also if it is there.
    pub fn add(&self, filter: &str, workers: usize, now: Time) -> bool {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let place = list.binary_search_by(|one| one.filter().cmp(filter));
        let Err(place) = place else {
            return false;
        };
        if list.len() >= TOPIC_METRICS_MAX {
            return false;
        }
        let mut more = list.to_vec();
        more.insert(place, Arc::new(TopicMetric::new(filter, workers, now)));
        *list = more.into();
        true
    }

    /// Removes a filter; false if it is not there.
    pub fn remove(&self, filter: &str) -> bool {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let before = list.len();
        let rest = list.iter().filter(|one| one.filter() != filter);
        *list = rest.cloned().collect();
        list.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_in_order_once_each_and_bounded() {
        let metrics = TopicMetrics::default();
        let now = Time::from_millis(0);
        assert!(metrics.add("b/#", 1, now) && metrics.add("a/+", 1, now));
        assert!(!metrics.add("b/#", 1, now), "it is there");
        let filters: Vec<_> = metrics
            .current()
            .iter()
            .map(|one| one.filter.clone())
            .collect();
        assert_eq!(filters, ["a/+".into(), "b/#".into()]);
        for number in 0..TOPIC_METRICS_MAX {
            metrics.add(&format!("n/{number}"), 1, now);
        }
        assert_eq!(metrics.current().len(), TOPIC_METRICS_MAX);
        assert!(metrics.remove("b/#") && !metrics.remove("b/#"));
        assert_eq!(metrics.current().len(), TOPIC_METRICS_MAX - 1);
    }

    #[test]
    fn the_rows_of_all_workers_add_up() {
        let metric = TopicMetric::new("a/#", 2, Time::from_millis(0));
        assert!(metric.is_about("a/b") && !metric.is_about("b"));
        let now = Time::from_millis(2_000);
        for (worker, qos) in [(0, QoS::AtMostOnce), (1, QoS::ExactlyOnce)] {
            let seen = Seen {
                topic: "a/b",
                payload: b"12345",
                qos,
                retain: false,
                now,
            };
            let worker = WorkerId::new(worker);
            metric.received(worker, &seen);
            metric.delivered(worker, &seen, 3);
            metric.dropped(worker, 2);
        }
        let figures = metric.figures(now);
        assert_eq!(figures.received, [1, 0, 1]);
        assert_eq!((figures.received_bytes, figures.delivered), (10, 6));
        assert_eq!((figures.delivered_bytes, figures.dropped), (30, 4));
        assert!((figures.received_per_second - 1.0).abs() < 0.01);
        assert!((figures.delivered_per_second - 3.0).abs() < 0.01);
    }
}
