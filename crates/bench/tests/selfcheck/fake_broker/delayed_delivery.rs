//! Delivers messages later, at the time that the law defines.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use thrum_bench::clock;

use super::router::{Message, Router};

/// Messages on their way to the delivery: more than a test sends while the broker is stalled.
const ORDERS_MAX: usize = 65_536;

/// Longest wait for an order if there is none to deliver.
const IDLE: Duration = Duration::from_mins(1);

/// A message and when it is to be delivered.
pub(super) type Order = (u64, Message);

pub(super) fn orders() -> (SyncSender<Order>, Receiver<Order>) {
    sync_channel(ORDERS_MAX)
}

/// Delivers until the broker is gone.
pub(super) fn run(orders: &Receiver<Order>, router: &Mutex<Router>) {
    // By time and then by arrival.
    let mut waiting: BTreeMap<(u64, u64), Message> = BTreeMap::new();
    let mut arrivals = 0;
    loop {
        let now_ns = clock::monotonic_ns();
        let wait = waiting.first_key_value().map_or(IDLE, |((due_ns, _), _)| {
            Duration::from_nanos(due_ns.saturating_sub(now_ns))
        });
        match orders.recv_timeout(wait) {
            Ok((due_ns, message)) => {
                waiting.insert((due_ns, arrivals), message);
                arrivals += 1;
            }
            Err(RecvTimeoutError::Timeout) => deliver_due(&mut waiting, router),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn deliver_due(waiting: &mut BTreeMap<(u64, u64), Message>, router: &Mutex<Router>) {
    while let Some(entry) = waiting.first_entry() {
        if entry.key().0 > clock::monotonic_ns() {
            return;
        }
        let message = entry.remove();
        super::wait_out_stall(router);
        router.lock().unwrap().deliver(&message);
    }
}
