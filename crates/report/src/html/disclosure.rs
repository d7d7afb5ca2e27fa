//! Everything that a reader needs to repeat the run or to doubt it.

use serde::Serialize;

use super::charts::stage_text;
use super::view::{NAME_MAX, brief, cut};
use super::words::clock;
use crate::result::{
    Agent, Broker, Distribution, Generator, Machine, RunResult, ScenarioDescription, Stage, Usage,
};
use thrum_figures::{self as units, fraction};

/// Longest scenario file and broker configuration in a page, escaped.
const TOML_BYTES_MAX: usize = 32 * 1024;
const CONFIGURATION_BYTES_MAX: usize = 6 * 1024;
/// Most rows of each kind.
const BROKERS_MAX: usize = 8;
const GROUPS_MAX: usize = 40;
const AGENTS_MAX: usize = 8;
const SETTINGS_MAX: usize = 40;
const MARKS_MAX: usize = 40;

/// Rows under a heading, and a text below them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) rows: Vec<(String, String)>,
    pub(crate) text: String,
}

impl Section {
    fn new(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            ..Self::default()
        }
    }

    /// Adds a row unless it is empty.
    fn row(&mut self, name: &str, value: impl Into<String>) {
        let value = value.into();
        if !value.is_empty() {
            self.rows
                .push((brief(name, NAME_MAX), brief(&value, NAME_MAX * 4)));
        }
    }
}

/// The scenario, the machine and the tool.
pub(crate) fn disclosure(result: &RunResult) -> Vec<Section> {
    let mut sections = vec![tool(result), scenario(&result.scenario)];
    for broker in result.brokers.iter().take(BROKERS_MAX) {
        sections.push(broker_section(result, broker));
    }
    sections.push(machine("Machine of the generator", &result.machine));
    let agents = result.agents.iter().take(AGENTS_MAX);
    sections.extend(agents.map(|of| agent(result, of)));
    let mut file = Section::new("Scenario file");
    file.text = cut(&result.scenario.toml, TOML_BYTES_MAX);
    if !file.text.is_empty() {
        sections.push(file);
    }
    sections
}

fn tool(result: &RunResult) -> Section {
    let mut section = Section::new("Tool");
    section.row(
        "tool",
        format!("{} {}", result.tool.name, result.tool.version),
    );
    section.row("command", result.machine.bound(&result.tool.command));
    section.row("started", result.started.clone());
    section.row("exit code", result.exit_code.to_string());
    section.row("schema of the figures", result.schema.clone());
    section
}

fn scenario(scenario: &ScenarioDescription) -> Section {
    let mut section = Section::new("Scenario");
    section.row("name", scenario.name.clone());
    section.row("targets", scenario.targets.join(", "));
    section.row("broker and generator", colocation(&scenario.targets));
    section.row("MQTT version", scenario.mqtt_version.clone());
    section.row("transport", scenario.transport.clone());
    section.row(
        "QoS",
        scenario.qos.map_or_else(String::new, |qos| qos.to_string()),
    );
    let payload = scenario
        .payload_bytes
        .map(|bytes| format!("{} B {}", units::count(bytes.into()), scenario.payload));
    section.row("payload", payload.unwrap_or_default());
    section.row("keep alive", format!("{} s", scenario.keep_alive_seconds));
    section.row(
        "connect rate",
        units::rate(f64::from(scenario.connect_rate)),
    );
    section.row("source addresses", scenario.source_addresses.join(", "));
    section.row("load", scenario.load.text.clone());
    section.row("arrivals", scenario.load.arrivals.clone());
    if scenario.load.closed_loop {
        section.row(
            "closed loop",
            "messages wait for acknowledgements, so latencies hide waiting",
        );
    }
    if (scenario.scale - 1.0).abs() > f64::EPSILON && scenario.scale > 0.0 {
        section.row(
            "scale",
            format!("{} of the full scenario", units::percent(scenario.scale)),
        );
    }
    let stages = scenario.stages;
    let stages = [
        stage_text(Stage::Ramp, stages.ramp),
        stage_text(Stage::WarmUp, stages.warm_up),
        stage_text(Stage::Hold, stages.hold),
        stage_text(Stage::Drain, stages.drain),
    ];
    section.row("stages", stages.join(", "));
    for group in scenario.groups.iter().take(GROUPS_MAX) {
        let text = format!(
            "{} clients: {}",
            units::count(group.clients.into()),
            group.text
        );
        section.row(&format!("group {}", group.name), text);
    }
    section
}

/// Whether broker and generator share a machine, as far as the targets show.
fn colocation(targets: &[String]) -> String {
    let local = targets.iter().filter(|target| is_loopback(target)).count();
    if targets.is_empty() {
        String::new()
    } else if local == targets.len() {
        "on the same machine (loopback): they shared its cores, and no network was in between"
            .to_owned()
    } else if local == 0 {
        "connected by a network; the addresses are not those of the loopback".to_owned()
    } else {
        format!(
            "{local} of {} brokers on the generator's machine (loopback)",
            targets.len()
        )
    }
}

fn is_loopback(target: &str) -> bool {
    let rest = target.split_once("://").map_or(target, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or(rest);
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    name == "localhost"
        || host == "::1"
        || name == "[::1]"
        || host == "[::1]"
        || name
            .parse::<std::net::Ipv4Addr>()
            .is_ok_and(|address| address.is_loopback())
}

fn broker_section(result: &RunResult, broker: &Broker) -> Section {
    let name = if broker.target.is_empty() {
        "Broker".to_owned()
    } else {
        format!("Broker {}", broker.target)
    };
    let mut section = Section::new(&brief(&name, NAME_MAX));
    let unknown = |text: &str| {
        if text.is_empty() {
            "unknown".to_owned()
        } else {
            text.to_owned()
        }
    };
    section.row("version", unknown(&broker.version));
    section.row("host", broker.host.clone());
    if broker.pid != 0 {
        section.row("process", broker.pid.to_string());
    }
    usage_rows(&mut section, result, &broker.usage);
    if broker.configuration.is_empty() {
        section.row("configuration", "not given");
    }
    section.text = cut(&broker.configuration, CONFIGURATION_BYTES_MAX);
    section
}

/// A number of bytes.
fn memory(bytes: u64) -> String {
    units::bytes(fraction(bytes))
}

fn usage_rows(section: &mut Section, result: &RunResult, usage: &Usage) {
    cpu_rows(section, result, usage);
    memory_rows(section, result, usage);
    let per_second = |bytes| format!("{}/s", units::bytes(bytes));
    let rows = [
        (
            "threads, open files",
            units::count(usage.threads_max),
            units::count(usage.open_files_max),
        ),
        (
            "context switches",
            format!(
                "{} voluntary",
                units::count(usage.voluntary_context_switches)
            ),
            format!(
                "{} involuntary",
                units::count(usage.involuntary_context_switches)
            ),
        ),
        (
            "network of its machine, all processes",
            format!("{} in", per_second(usage.network_in_bytes)),
            format!("{} out", per_second(usage.network_out_bytes)),
        ),
        (
            "disk",
            format!("{} read", memory(usage.disk_read_bytes)),
            format!("{} written", memory(usage.disk_write_bytes)),
        ),
    ];
    for (name, first, second) in rows {
        section.row(name, format!("{first}, {second}"));
    }
}

fn cpu_rows(section: &mut Section, result: &RunResult, usage: &Usage) {
    let figure = units::figure;
    let of = |name: &str, text: String| result.validity.unless_withheld(name, text);
    let (user, system) = (
        figure(usage.cpu_user_seconds),
        figure(usage.cpu_system_seconds),
    );
    let average = format!(
        "{user} s user, {system} s system; {} cores on average",
        figure(usage.cores_avg)
    );
    section.row(
        "CPU of the hold",
        format!(
            "{}, {} in the busiest second",
            of("broker.cores", average),
            of("broker.cores.max", figure(usage.cores_max))
        ),
    );
    let each = usage.cpu_us_per_message.map(|cost| {
        let cost = format!("{}µs", figure(cost));
        of("broker.cpu_per_message", cost)
    });
    section.row("CPU per message received", each.unwrap_or_default());
    let whole = usage.machine.cpu_us_per_message.map(|cost| {
        let cost = format!("{}µs, all processes and the kernel", figure(cost));
        of("machine.cpu_per_message", cost)
    });
    section.row(
        "CPU of its whole machine per message",
        whole.unwrap_or_default(),
    );
    let per_core = usage.messages_per_core_second.map(units::rate);
    let per_core = per_core.map(|rate| of("broker.messages_per_core", rate));
    section.row("messages per core in use", per_core.unwrap_or_default());
    let idle = usage
        .cores_idle
        .map(|cores| format!("{} cores", figure(cores)));
    section.row("CPU with all clients and no load", idle.unwrap_or_default());
    section.row(
        "CPU of the machine left idle",
        units::percent(usage.machine.idle),
    );
    section.row(
        "CPU that the host of its machine kept (stolen)",
        units::percent(usage.machine.stolen),
    );
    let waited = figure(usage.waited_for_core_seconds);
    section.row("threads waited for a core", format!("{waited} s"));
}

fn memory_rows(section: &mut Section, result: &RunResult, usage: &Usage) {
    let of = |name: &str, text: String| result.validity.unless_withheld(name, text);
    let highest = of("broker.rss", memory(usage.rss_max_bytes));
    let mean = of("broker.rss.avg", memory(usage.rss_avg_bytes));
    section.row(
        "resident memory of the hold",
        format!("{highest} highest, {mean} mean"),
    );
    if usage.pss_max_bytes > 0 {
        let (highest, mean) = (memory(usage.pss_max_bytes), memory(usage.pss_avg_bytes));
        section.row(
            "shared pages divided (PSS)",
            format!("{highest} highest, {mean} mean"),
        );
    }
    let moments = [
        usage.memory_before,
        usage.memory_connected,
        usage.memory_end,
    ];
    let moments = moments.map(|moment| memory(moment.rss_bytes));
    section.row("resident before, connected, at the end", moments.join(", "));
    let stable = usage.rss_stable_seconds;
    let stable = stable.map_or_else(
        || "not by the end".to_owned(),
        |at| format!("{} s", units::figure(at)),
    );
    section.row("memory stable after", of("broker.rss.stable", stable));
    let each = usage.bytes_per_connection.map(units::bytes);
    let each = each.map(|each| of("broker.bytes_per_connection", each));
    section.row("memory per connection", each.unwrap_or_default());
}

pub(super) fn machine(title: &str, machine: &Machine) -> Section {
    let mut section = Section::new(title);
    section.row("CPU", machine.cpu.clone());
    section.row("cores in use", machine.cores.to_string());
    section.row("memory", units::bytes(fraction(machine.memory_bytes)));
    section.row("system", machine.os.clone());
    section.row("kernel", machine.kernel.clone());
    section.row(
        "open files per process",
        units::count(machine.open_files_max),
    );
    section.row("clock", machine.clock.clone());
    for (name, value) in machine.settings.iter().take(SETTINGS_MAX) {
        section.row(name, value.clone());
    }
    section
}

fn agent(result: &RunResult, agent: &Agent) -> Section {
    let mut section = machine(
        &brief(&format!("Agent {}", agent.name), NAME_MAX),
        &agent.machine,
    );
    section.row("clients", units::count(agent.clients));
    section.row(
        "clock offset",
        format!(
            "{} ns, wrong by at most {}",
            agent.clock_offset_ns,
            units::latency(agent.clock_error_ns)
        ),
    );
    generator_rows(&mut section, result, &agent.generator);
    section
}

/// The generator's figures, which make a run valid.
pub(super) fn health(result: &RunResult) -> Section {
    let mut section = Section::new("Generator health");
    let quantiles = |distribution: &Option<Distribution>| {
        distribution.as_ref().map_or_else(String::new, |found| {
            let text = |figure| found.figure_text(figure);
            format!(
                "p50 {}, p99 {}, max {}",
                text("p50"),
                text("p99"),
                text("max")
            )
        })
    };
    section.row(
        "lag behind the schedule",
        quantiles(&result.latency_ns.generator_lag),
    );
    section.row(
        "left messages unread for at most",
        quantiles(&result.latency_ns.receive_lag),
    );
    section.row(
        "opened connections late by",
        quantiles(&result.latency_ns.open_lag),
    );
    section.row(
        "messages held back by the broker",
        units::count(result.rates.held_back_messages),
    );
    generator_rows(&mut section, result, &result.generator);
    section
}

fn generator_rows(section: &mut Section, result: &RunResult, generator: &Generator) {
    let busy = generator
        .threads
        .iter()
        .map(|thread| thread.busy)
        .fold(0.0, f64::max);
    let waited = generator
        .threads
        .iter()
        .map(|thread| thread.waited_for_core)
        .fold(0.0, f64::max);
    if !generator.threads.is_empty() {
        section.row("threads", generator.threads.len().to_string());
        section.row("busiest thread on a core", units::percent(busy));
        section.row("longest wait for a core", units::percent(waited));
    }
    if let Some(usage) = &generator.usage {
        section.row(
            "CPU",
            format!("{} cores on average", units::figure(usage.cores_avg)),
        );
        let cost = usage.cpu_us_per_message.map(|cost| {
            let cost = format!("{}µs", units::figure(cost));
            result
                .validity
                .unless_withheld("generator.cpu_per_message", cost)
        });
        section.row("CPU per message received", cost.unwrap_or_default());
        section.row(
            "resident memory",
            units::bytes(fraction(usage.rss_max_bytes)),
        );
    }
}

/// Intended faults and changes: time and text.
pub(super) fn mark_rows(result: &RunResult) -> Vec<(String, String)> {
    let marks = result.marks.iter().take(MARKS_MAX);
    marks
        .map(|mark| (clock(mark.at), brief(&mark.text, NAME_MAX * 2)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_distinguished_from_a_network() {
        for target in [
            "mqtt://127.0.0.1:1883",
            "mqtts://localhost",
            "127.3.2.1",
            "ws://user:p@localhost:8080/mqtt",
            "mqtt://[::1]:1883",
            "mqtt://[::1]",
        ] {
            assert!(is_loopback(target), "{target}");
        }
        for target in [
            "mqtt://10.0.0.5:1883",
            "mqtt://localhost.example.org",
            "mqtt://[2001:db8::1]:1883",
        ] {
            assert!(!is_loopback(target), "{target}");
        }
        let both = ["mqtt://127.0.0.1".to_owned(), "mqtt://10.0.0.5".to_owned()];
        assert!(colocation(&both).starts_with("1 of 2"));
    }
}
