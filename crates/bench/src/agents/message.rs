//! Messages between coordinator and agents: JSON, so that a person can read them with any MQTT
//! client.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
use serde::{Deserialize, Serialize};
use thrum_load::floors::Delays;
use thrum_load::histogram::add;
use thrum_load::pacing::Warp;
use thrum_load::scenario::Scenario;
use thrum_load::thread_report::ThreadReport;
use thrum_report::result::{Machine, Resources, ThreadLoad, Usage};
use thrum_transport::{Endpoint, Scheme, TlsOptions, TlsVersion};

use crate::monitor::{Moment, Reading};
use crate::record::{Slice, SliceCounts};
use crate::run::Target;
use crate::swarm::{Progress, Timeline};

/// To the agents that wait for a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Announcement {
    /// Part of the topics of the run.
    pub(super) session: String,
    /// Version of the coordinator.
    pub(super) version: String,
}

/// From the coordinator to an agent, or to all.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ToAgent {
    /// The agent takes part and measures its clock.
    Welcome,
    /// The agent does not take part.
    Refused(Refusal),
    /// The agent prepares this run.
    Prepare(Box<Assignment>),
    /// All agents are ready; the first connection opens at this time.
    Go { ramp_start_ns: u64 },
    /// Times and changes of the load.
    Order {
        /// Time of sending.
        said_ns: u64,
        timeline: Timeline,
        warp: Warp,
    },
    /// Time to read CPU and other accounts.
    Mark(Moment),
    /// The clients disconnect, and the agent sends its report.
    Stop,
    /// The run is over.
    End,
    /// Confirms fragments of a message.
    Taken(u32, u32),
    /// Heartbeat of the coordinator.
    Alive,
    /// Will of the coordinator: its connection was lost.
    Gone,
}

/// From an agent to the coordinator.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FromAgent {
    /// The agent offers to take part.
    Join(Box<Join>),
    /// The agent has measured its clock.
    Synced(Clock),
    /// The agent can start.
    Prepared,
    /// Progress of its clients.
    Progress(Progress),
    /// The generator's resources in a second, and when that ended.
    Used { at_ns: u64, resources: Resources },
    /// The measurements of one of its threads in a second.
    Slice(Box<WireSlice>),
    /// Accounts of a process of its machine.
    Reading {
        /// Number of the process among those it watches.
        watch: usize,
        pid: u32,
        at_ns: u64,
        reading: Box<Reading>,
    },
    /// Its counts.
    Report(Box<Report>),
    /// The agent failed.
    Failed(String),
    /// Confirms fragments of a message.
    Taken(u32, u32),
    /// Heartbeat of the agent.
    Alive,
    /// Will of the agent: its connection was lost.
    Gone,
}

/// The identity of an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Join {
    pub(super) version: String,
    pub(super) name: String,
    /// Threads that make load; 0 if it only watches.
    pub(super) threads: u32,
    /// Names of the targets that it watches a process of; empty for the first one.
    pub(super) watches: Vec<String>,
    pub(super) machine: Machine,
}

/// Why an agent cannot take part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Refusal {
    /// The run has enough agents.
    Full,
    /// Figures of different versions are not comparable.
    Version(String),
    /// Another agent has its name.
    Name,
}

/// The assignment of an agent.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Assignment {
    pub(super) scenario: Scenario,
    pub(super) run_tag: String,
    pub(super) targets: Vec<WireTarget>,
    /// Its number among all agents.
    pub(super) machine: usize,
    /// Threads of all agents.
    pub(super) threads: Vec<u32>,
}

/// The offset of an agent's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Clock {
    /// The coordinator's clock minus the agent's.
    pub(super) offset_ns: i64,
    /// Largest error of the offset.
    pub(super) error_ns: u64,
}

/// The counts of an agent.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) threads: Vec<ThreadReport>,
    pub(super) loads: Vec<ThreadLoad>,
    pub(super) usage: Option<Usage>,
    pub(super) clients: u64,
    pub(super) clock: Clock,
}

/// A broker as sent to an agent.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireTarget {
    name: String,
    scheme: String,
    host: String,
    port: u16,
    path: String,
    username: Option<String>,
    password: Option<String>,
    tls: WireTls,
}

/// The TLS options; the files are those of the agent's machine.
#[derive(Debug, Serialize, Deserialize)]
struct WireTls {
    ca_file: Option<std::path::PathBuf>,
    insecure: bool,
    cert_file: Option<std::path::PathBuf>,
    key_file: Option<std::path::PathBuf>,
    server_name: Option<String>,
    alpn: Option<String>,
    /// Version 1.3 or newer.
    needs_1_3: bool,
}

impl WireTarget {
    pub(super) fn new(target: &Target) -> Self {
        let (endpoint, tls) = (target.endpoint.clone(), target.tls.clone());
        Self {
            name: target.name.clone(),
            scheme: endpoint.scheme.as_str().to_owned(),
            host: endpoint.host,
            port: endpoint.port,
            path: endpoint.path,
            username: endpoint.username,
            password: endpoint.password,
            tls: WireTls {
                ca_file: tls.ca_file,
                insecure: tls.insecure,
                cert_file: tls.cert_file,
                key_file: tls.key_file,
                server_name: tls.server_name,
                alpn: tls.alpn,
                needs_1_3: tls.min_version == TlsVersion::V1_3,
            },
        }
    }

    /// The target; none if its scheme is unknown here.
    pub(super) fn target(self) -> Option<Target> {
        let schemes = [
            Scheme::Mqtt,
            Scheme::Mqtts,
            Scheme::Ws,
            Scheme::Wss,
            Scheme::Quic,
        ];
        let scheme = schemes
            .into_iter()
            .find(|scheme| scheme.as_str() == self.scheme)?;
        let endpoint = Endpoint {
            scheme,
            host: self.host,
            port: self.port,
            path: self.path,
            username: self.username,
            password: self.password,
        };
        Some(Target {
            name: self.name,
            tls: TlsOptions {
                ca_file: self.tls.ca_file,
                insecure: self.tls.insecure,
                cert_file: self.tls.cert_file,
                key_file: self.tls.key_file,
                server_name: self.tls.server_name,
                alpn: self.tls.alpn,
                min_version: if self.tls.needs_1_3 {
                    TlsVersion::V1_3
                } else {
                    TlsVersion::V1_2
                },
            },
            ..Target::new(endpoint)
        })
    }
}

/// A second of a thread, its histograms as HDR V2 with deflate in base64.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireSlice {
    start_ns: u64,
    thread: u32,
    counts: SliceCounts,
    delays: Delays,
    /// By name; those without values are left out.
    latencies: BTreeMap<String, String>,
    reasons: BTreeMap<String, u64>,
}

impl WireSlice {
    pub(super) fn new(slice: &Slice) -> Self {
        let full = slice.latencies.all();
        let full = full.filter(|(_, histogram)| !histogram.is_empty());
        Self {
            start_ns: slice.start_ns,
            thread: slice.thread,
            counts: slice.counts,
            delays: slice.delays,
            latencies: full
                .filter_map(|(name, histogram)| Some((name.to_owned(), text_of(histogram)?)))
                .collect(),
            reasons: slice.reasons.clone(),
        }
    }

    /// The slice; none if a histogram is none or has a name unknown here.
    pub(super) fn slice(&self) -> Option<Slice> {
        let mut slice = Slice {
            start_ns: self.start_ns,
            thread: self.thread,
            counts: self.counts,
            delays: self.delays,
            reasons: self.reasons.clone(),
            ..Slice::default()
        };
        let mut known = 0;
        for (name, histogram) in slice.latencies.all_mut() {
            let Some(text) = self.latencies.get(name) else {
                continue;
            };
            add(histogram, &histogram_of(text)?);
            known += 1;
        }
        (known == self.latencies.len()).then_some(slice)
    }
}

/// None if a count exceeds 63 bits.
fn text_of(histogram: &Histogram<u64>) -> Option<String> {
    let mut bytes = Vec::new();
    let written = V2DeflateSerializer::new().serialize(histogram, &mut bytes);
    written.ok().map(|_| STANDARD.encode(&bytes))
}

fn histogram_of(text: &str) -> Option<Histogram<u64>> {
    let bytes = STANDARD.decode(text).ok()?;
    Deserializer::new().deserialize(&mut bytes.as_slice()).ok()
}

/// The bytes of a message.
pub(super) fn written(message: &impl Serialize) -> Vec<u8> {
    // Serialization cannot fail: every map has text keys.
    serde_json::to_vec(message).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use thrum_load::scenario::find;

    use super::*;
    use thrum_load::histogram::{enter, enter_many};

    fn there_and_back<T: Serialize + serde::de::DeserializeOwned>(message: &T) -> T {
        serde_json::from_slice(&written(message)).unwrap()
    }

    #[test]
    fn a_second_arrives_with_every_value() {
        let mut slice = Slice {
            start_ns: 7,
            ..Slice::default()
        };
        slice.counts.sent = 5;
        slice.note("reset", 3);
        enter(&mut slice.latencies.response, 1_234_567);
        enter(&mut slice.latencies.response, 300_000_000_000);
        enter_many(&mut slice.latencies.receive_lag, 99, 4);
        let come = there_and_back(&WireSlice::new(&slice)).slice().unwrap();
        assert_eq!((come.start_ns, come.counts), (7, slice.counts));
        assert_eq!(come.reasons, slice.reasons);
        for ((name, come), (_, sent)) in come
            .latencies
            .named()
            .into_iter()
            .zip(slice.latencies.named())
        {
            assert_eq!(come, sent, "{name}");
        }
    }

    #[test]
    fn a_broken_histogram_is_not_taken() {
        let mut slice = Slice::default();
        enter(&mut slice.latencies.connect, 5);
        let mut wire = WireSlice::new(&slice);
        wire.latencies
            .insert("connect".to_owned(), "nonsense".to_owned());
        assert!(wire.slice().is_none());
        wire.latencies.clear();
        wire.latencies.insert("other".to_owned(), String::new());
        assert!(wire.slice().is_none());
    }

    #[test]
    fn targets_arrive_with_their_credentials_and_tls() {
        let endpoint = Endpoint::parse("wss://ann:secret@[::1]:8084/mqtt?a=b").unwrap();
        let mut target = Target::new(endpoint);
        target.name = "left".to_owned();
        target.tls.ca_file = Some("ca.pem".into());
        target.tls.insecure = true;
        target.tls.min_version = TlsVersion::V1_3;
        let come = there_and_back(&WireTarget::new(&target)).target().unwrap();
        assert_eq!((&come.endpoint, &come.tls), (&target.endpoint, &target.tls));
        assert_eq!(come.name, "left");
    }

    #[test]
    fn an_assignment_arrives_whole() {
        let scenario = find("p2p-1K").unwrap();
        let assignment = Assignment {
            scenario: scenario.clone(),
            run_tag: "abc".to_owned(),
            targets: Vec::new(),
            machine: 1,
            threads: vec![2, 3],
        };
        let message = ToAgent::Prepare(Box::new(assignment));
        let ToAgent::Prepare(come) = there_and_back(&message) else {
            panic!("another message came");
        };
        assert_eq!((come.scenario, come.threads), (scenario, vec![2, 3]));
    }

    #[test]
    fn an_order_with_changes_arrives_whole() {
        let mut warp = Warp::identity();
        warp.change(1_000_000_000, 0.5).unwrap();
        let timeline = Timeline {
            start_ns: 1,
            hold_start_ns: 2,
            hold_end_ns: 3,
        };
        let message = ToAgent::Order {
            said_ns: 4,
            timeline,
            warp: warp.clone(),
        };
        let ToAgent::Order {
            said_ns,
            timeline: come,
            warp: changes,
        } = there_and_back(&message)
        else {
            panic!("another message came");
        };
        assert_eq!((said_ns, come, changes), (4, timeline, warp));
    }
}
