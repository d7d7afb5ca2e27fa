//! Settings of this machine that colour the figures without making them wrong.

use thrum_figures::count;

use super::needs::Needs;
use crate::kernel_text;
use crate::machine::GOVERNOR_PATH;

/// A broker may be busy for this part of a second without refusing connections.
const STALLS_PER_SECOND: u32 = 2;

/// Conditions of the machine that affect the figures of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Advice {
    /// Generator and broker take each other's CPU.
    #[error(
        "the generator shares the {cores} cores of this machine with the broker: its own CPU lowers the broker's results; use another machine, or give each its cores (taskset)"
    )]
    SharedMachine {
        /// Cores that both may use.
        cores: usize,
    },
    /// The scheduler shares out CPU by terminal instead of by thread.
    #[error(
        "kernel.sched_autogroup_enabled is 1: broker and generator get equal shares of the CPU if they were started from different terminals, independent of their threads; set it to 0 (sysctl)"
    )]
    Autogroup,
    /// The cores clock down.
    #[error(
        "the CPU governor is '{governor}': cores that are not busy run slower, which lengthens latencies at low rates; set it to 'performance' (cpupower frequency-set -g performance)"
    )]
    Governor {
        /// Its name.
        governor: String,
    },
    /// A short stall of the broker overflows its queue of connections.
    #[error(
        "{} connections per second fill the queue of {} (net.core.somaxconn) within {} ms: a broker that is busy for longer refuses some; lower the connect rate to {}, or raise somaxconn and the broker's backlog",
        count(u64::from(*connect_rate)),
        count(u64::from(*somaxconn)),
        count(queue_ms(*somaxconn, *connect_rate)),
        count(u64::from(*somaxconn) * u64::from(STALLS_PER_SECOND)),
    )]
    Backlog {
        /// Connections opened per second.
        connect_rate: u32,
        /// Longest queue of a listener.
        somaxconn: u32,
    },
    /// The firewall forgets connections, or refuses new ones.
    #[error("the firewall tracks at most {} connections (net.netfilter.nf_conntrack_max), {} clients may need more: raise it, or exempt the broker's port", count(*tracked_max), count(u64::from(*clients)))]
    ConnectionTracking {
        /// Clients of the run.
        clients: u32,
        /// Connections that are tracked.
        tracked_max: u64,
    },
}

/// Notes about this machine for a run.
pub fn advice(needs: &Needs<'_>) -> Vec<Advice> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    advise(needs, cores, |path| kernel_text::setting(path))
}

/// The advice for a machine with these cores and settings; `read` gives the text at a path.
fn advise(needs: &Needs<'_>, cores: usize, read: impl Fn(&str) -> Option<String>) -> Vec<Advice> {
    let number = |path: &str| read(path).and_then(|text| text.parse::<u64>().ok());
    let is_shared = needs
        .targets
        .iter()
        .any(|target| target.pid.is_some() || target.address.ip().is_loopback());
    let mut advice = Vec::new();
    if is_shared {
        advice.push(Advice::SharedMachine { cores });
        if number("/proc/sys/kernel/sched_autogroup_enabled") == Some(1) {
            advice.push(Advice::Autogroup);
        }
        // Over QUIC connections wait in no queue of the kernel.
        let has_tcp = needs.targets.iter().any(|target| !target.is_quic());
        let somaxconn = number("/proc/sys/net/core/somaxconn").filter(|_| has_tcp);
        let somaxconn = somaxconn.and_then(|somaxconn| u32::try_from(somaxconn).ok());
        advice.extend(somaxconn.and_then(|somaxconn| backlog(needs.connect_rate, somaxconn)));
    }
    let governor = read(GOVERNOR_PATH).filter(|governor| governor != "performance");
    advice.extend(governor.map(|governor| Advice::Governor { governor }));
    let tracked_max = number("/proc/sys/net/netfilter/nf_conntrack_max");
    let tracked_max = tracked_max.filter(|most| *most < u64::from(needs.clients()));
    advice.extend(tracked_max.map(|tracked_max| Advice::ConnectionTracking {
        clients: needs.clients(),
        tracked_max,
    }));
    advice
}

fn backlog(connect_rate: u32, somaxconn: u32) -> Option<Advice> {
    (connect_rate / STALLS_PER_SECOND > somaxconn).then_some(Advice::Backlog {
        connect_rate,
        somaxconn,
    })
}

/// Capacity of a queue at a rate, in milliseconds.
fn queue_ms(somaxconn: u32, connect_rate: u32) -> u64 {
    u64::from(somaxconn) * 1_000 / u64::from(connect_rate.max(1))
}

#[cfg(test)]
mod tests {
    use thrum_transport::Endpoint;

    use super::super::needs::TargetNeeds;
    use super::*;

    fn check(target: &str, connect_rate: u32, settings: &[(&str, &str)]) -> Vec<Advice> {
        let target = Endpoint::parse(target).unwrap();
        let needs = Needs {
            targets: vec![TargetNeeds {
                target: &target,
                address: target.resolve().unwrap(),
                pid: None,
                clients: 5_000,
                proxied: 0,
            }],
            connect_rate,
            source_addresses: Vec::new(),
        };
        advise(&needs, 4, |path| {
            let found = settings.iter().find(|(name, _)| path.ends_with(name));
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_broker_elsewhere_shares_nothing() {
        let settings = [
            ("sched_autogroup_enabled", "1"),
            ("somaxconn", "1"),
            ("scaling_governor", "performance"),
            ("nf_conntrack_max", "5000"),
        ];
        assert_eq!(check("192.0.2.1:1883", 100_000, &settings), []);
    }

    #[test]
    fn a_broker_on_this_machine_shares_its_cores() {
        let shared = Advice::SharedMachine { cores: 4 };
        let autogroup = ("sched_autogroup_enabled", "1");
        assert_eq!(check("127.0.0.1", 100, &[]), std::slice::from_ref(&shared));
        assert_eq!(
            check("127.0.0.1", 100, &[autogroup]),
            [shared.clone(), Advice::Autogroup]
        );
        let off = ("sched_autogroup_enabled", "0");
        assert_eq!(check("127.0.0.1", 100, &[off]), [shared]);
    }

    #[test]
    fn a_queue_that_half_a_second_fills_is_short() {
        let settings = [("somaxconn", "4096")];
        assert_eq!(check("127.0.0.1", 8_193, &settings).len(), 1);
        let advice = check("127.0.0.1", 10_000, &settings);
        assert_eq!(
            advice[1].to_string(),
            "10 000 connections per second fill the queue of 4 096 (net.core.somaxconn) within 409 ms: a broker \
             that is busy for longer refuses some; lower the connect rate to 8 192, or raise somaxconn and the \
             broker's backlog"
        );
    }

    #[test]
    fn cores_that_clock_down_and_few_tracked_connections_matter_anywhere() {
        let settings = [
            ("scaling_governor", "powersave"),
            ("nf_conntrack_max", "4999"),
        ];
        let expected = [
            Advice::Governor {
                governor: "powersave".to_owned(),
            },
            Advice::ConnectionTracking {
                clients: 5_000,
                tracked_max: 4_999,
            },
        ];
        assert_eq!(check("192.0.2.1:1883", 10, &settings), expected);
    }
}
