//! Options of the command line that a scenario cannot express, and why.

use super::options::{Line, shown};

/// Options that cannot be expressed, each once.
#[derive(Default)]
pub(super) struct Notes(pub(super) Vec<String>);

impl Notes {
    pub(super) fn add(&mut self, name: &str, why: &str) {
        let note = format!("{}: {why}", shown(name));
        if !self.0.contains(&note) {
            self.0.push(note);
        }
    }

    /// Options without a counterpart in a scenario.
    pub(super) fn without_counterpart(&mut self, line: &Line) {
        for (name, value) in &line.options {
            if let Some(why) = reason(name, value) {
                self.add(name, why);
            }
        }
    }
}

/// Why an option has no counterpart; none for an option that has one.
fn reason(name: &str, value: &str) -> Option<&'static str> {
    Some(match (name, value) {
        (_, "false") | ("num-retry-connect" | "max-random-wait" | "min-random-wait", "0") => {
            return None;
        }
        ("ifaddr", _) => {
            "write the addresses as source_addresses of the file: all groups share them"
        }
        ("startnumber", "0") => return None,
        ("startnumber", _) => "clients of a group are numbered from 1",
        ("num-retry-connect", _) => {
            "a connection that is not accepted counts as failed and is not tried again"
        }
        ("ciphers" | "signature-algs" | "keyex-algs" | "ssl-version", _) => {
            "TLS is negotiated, it cannot be narrowed"
        }
        ("cacertfile", _) => "give it to the run: --cafile",
        ("certfile", _) => "give it to the run: --cert",
        ("keyfile", _) => "give it to the run: --key",
        ("quic", _) => "there is no QUIC transport, the target is TCP",
        ("load-qst", _) => "there is no QUIC transport",
        ("lowmem" | "force-major-gc-interval", _) => "there is no garbage collector to tune",
        ("qoe" | "qoelog" | "prometheus" | "restapi", _) => {
            "latencies are always measured and are in result.json"
        }
        ("log_to", _) => "progress is one line every 5 s",
        ("dist", _) => "agents on other machines belong to the run, not to the scenario",
        ("payload-hdrs", _) => {
            "each message always carries its publisher, its sequence and its send time"
        }
        ("topics-payload", _) => "write each of its topics as a group",
        ("wait-before-publishing", _) => return None,
        ("max-random-wait" | "min-random-wait", _) => {
            "publishers are spread evenly over one period from the start"
        }
        ("retry-interval", "0") => return None,
        ("retry-interval", _) => {
            "messages are sent again only after a reconnect, as MQTT 5.0 demands"
        }
        ("keep-connected", _) => "clients always stay until the end of the run",
        _ => return None,
    })
}
