//! Latencies of deliveries that are not in their histograms yet. Between two deliveries the kernel
//! works for thousands of instructions and takes the caches: entering many in a row costs a
//! fraction of entering each as it comes.

use thrum_load::histogram::{enter, enter_many};

use crate::record::Latencies;

/// Deliveries, and reads, that wait at most: 56 KiB.
const SAMPLES_MAX: usize = 1_024;

/// The latencies of a delivery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) response_ns: u64,
    pub(super) service_ns: u64,
    pub(super) floor: Floor,
}

/// What of the latencies is certainly not the generator's.
#[derive(Clone, Copy, Debug)]
pub(super) enum Floor {
    /// Response and service time have one floor.
    Both { ns: u64 },
    /// The broker held the message back.
    HeldBack { response_ns: u64, service_ns: u64 },
}

/// Messages that one read brought.
#[derive(Clone, Copy, Debug)]
struct Batch {
    waited_ns: u64,
    messages: u64,
}

/// The deliveries that wait, all of one second.
#[derive(Debug, Default)]
pub(super) struct Samples {
    deliveries: Vec<Sample>,
    reads: Vec<Batch>,
}

impl Samples {
    /// A delivery of the second under way.
    pub(super) fn add(&mut self, sample: Sample, latencies: &mut Latencies) {
        if self.deliveries.len() >= SAMPLES_MAX {
            self.enter_all(latencies);
        }
        self.deliveries.push(sample);
    }

    /// Messages that may have waited in their socket for this long.
    pub(super) fn add_read(&mut self, waited_ns: u64, messages: u64, latencies: &mut Latencies) {
        if self.reads.len() >= SAMPLES_MAX {
            self.enter_all(latencies);
        }
        self.reads.push(Batch {
            waited_ns,
            messages,
        });
    }

    /// Enters all that wait.
    pub(super) fn enter_all(&mut self, latencies: &mut Latencies) {
        let floors = &mut latencies.floors;
        for sample in self.deliveries.drain(..) {
            enter(&mut latencies.response, sample.response_ns);
            enter(&mut latencies.service, sample.service_ns);
            match sample.floor {
                Floor::Both { ns } => enter(&mut floors.delivery, ns),
                Floor::HeldBack {
                    response_ns,
                    service_ns,
                } => {
                    enter(&mut floors.held_response, response_ns);
                    enter(&mut floors.held_service, service_ns);
                }
            }
        }
        for read in self.reads.drain(..) {
            enter_many(&mut latencies.receive_lag, read.waited_ns, read.messages);
        }
    }
}
