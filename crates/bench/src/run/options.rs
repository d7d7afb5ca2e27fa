//! Options of a run.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use thrum_transport::{Endpoint, TlsOptions};

use crate::agents::AgentsWanted;

/// Most threads.
pub const THREADS_MAX: u32 = 256;

/// Options of a run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The brokers. One without a name is that of every target of the scenario without an address.
    pub targets: Vec<Target>,
    /// Threads of the generator; by default half of the cores, at least 1.
    pub threads: Option<u32>,
    /// The agents that generate the load; this machine if none.
    pub agents: Option<AgentsWanted>,
    /// Set from outside to end the run early; the run is still reported.
    pub interrupt: Arc<AtomicBool>,
    /// Command of the faults that name none.
    pub on_fault: Option<String>,
    /// Destination of the histograms of every second.
    pub latency_log: Option<PathBuf>,
    /// The command line that repeats the run.
    pub command: String,
    /// Asks the broker for the stages of messages inside it, which takes a connection of its own.
    pub asks_for_stages: bool,
}

/// A broker.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its name in the scenario; empty for any.
    pub name: String,
    /// Its address.
    pub endpoint: Endpoint,
    /// Its TLS options.
    pub tls: TlsOptions,
    /// The process to measure.
    pub process: BrokerProcess,
    /// Name and version, for the report.
    pub version: String,
    /// Its configuration, for the report.
    pub configuration: String,
}

/// The process to measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BrokerProcess {
    /// Of the process that listens on the target's port, if the target is on this machine.
    #[default]
    Detect,
    /// Of no process.
    Unknown,
    /// Of this process and its children.
    Pid(u32),
}

impl Target {
    /// A broker of any name that is measured if it is on this machine.
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            name: String::new(),
            endpoint,
            tls: TlsOptions::default(),
            process: BrokerProcess::Detect,
            version: String::new(),
            configuration: String::new(),
        }
    }
}
