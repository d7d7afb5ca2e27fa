//! Everything that repeating a run takes.

use std::fmt::Write as _;

use crate::grid;
use crate::result::{Machine, RunResult, ScenarioDescription};
use thrum_figures::{bytes, count, figure, fraction, latency};

/// Shortest fence of a block of code.
const FENCE_MIN: usize = 3;

/// Writes the section.
pub(super) fn write(text: &mut String, run: &RunResult) {
    text.push_str("\n## Full disclosure\n\n");
    text.push_str(&grid::markdown(&facts(run), 2));
    let command = run.tool.command.as_str();
    if !command.trim().is_empty() {
        block(text, "Command", "sh", &run.machine.bound(command));
    }
    for broker in &run.brokers {
        let name = match broker.target.as_str() {
            "" => "Configuration of the broker".to_owned(),
            target => format!("Configuration of the broker {}", grid::escaped(target)),
        };
        block(text, &name, "", &broker.configuration);
    }
    block(text, "Scenario", "toml", &run.scenario.toml);
}

fn facts(run: &RunResult) -> Vec<Vec<String>> {
    let scenario = &run.scenario;
    let mut facts = Facts(vec![vec![String::new(), "value".to_owned()]]);
    facts.add("started", run.started.clone());
    facts.add(
        "tool",
        format!("{} {}", run.tool.name, run.tool.version)
            .trim()
            .to_owned(),
    );
    facts.add("schema", run.schema.clone());
    facts.add("targets", scenario.targets.join(", "));
    for broker in &run.brokers {
        let place = if broker.host.is_empty() {
            format!("pid {} on the machine of the generator", broker.pid)
        } else {
            format!("on {}", broker.host)
        };
        let version = if broker.version.is_empty() {
            "version unknown"
        } else {
            &broker.version
        };
        let name = format!("broker {}", broker.target);
        facts.add(name.trim_end(), format!("{version}, {place}"));
    }
    facts.scenario(scenario);
    facts.machine("", &run.machine);
    for agent in &run.agents {
        let name = format!("agent {}: ", agent.name);
        facts.machine(&name, &agent.machine);
        facts.add(&format!("{name}clients"), count(agent.clients));
        let offset = latency(agent.clock_offset_ns.unsigned_abs());
        let side = if agent.clock_offset_ns < 0 {
            "behind"
        } else {
            "ahead"
        };
        let error = latency(agent.clock_error_ns);
        facts.add(
            &format!("{name}clock"),
            format!("{offset} {side}, known to {error}"),
        );
    }
    facts.0
}

/// Rows of name and value.
struct Facts(Vec<Vec<String>>);

impl Facts {
    /// Adds a row; none if there is no value.
    fn add(&mut self, name: &str, value: String) {
        if !value.is_empty() {
            self.0.push(vec![name.to_owned(), value]);
        }
    }

    fn scenario(&mut self, scenario: &ScenarioDescription) {
        self.add("MQTT version", scenario.mqtt_version.clone());
        self.add("transport", scenario.transport.clone());
        self.add(
            "QoS",
            scenario.qos.map_or_else(String::new, |qos| qos.to_string()),
        );
        let payload = scenario.payload_bytes.map(|size| {
            format!("{} B {}", count(u64::from(size)), scenario.payload)
                .trim_end()
                .to_owned()
        });
        self.add("payload", payload.unwrap_or_default());
        self.add("keep alive", format!("{} s", scenario.keep_alive_seconds));
        self.add(
            "connect rate",
            format!("{}/s", count(u64::from(scenario.connect_rate))),
        );
        self.add("source addresses", scenario.source_addresses.join(", "));
        self.add("load", scenario.load.text.clone());
        self.add("arrivals", scenario.load.arrivals.clone());
        self.add("scale", figure(scenario.scale));
        let stages = scenario.stages;
        let stages = [stages.ramp, stages.warm_up, stages.hold, stages.drain].map(figure);
        let [ramp, warm_up, hold, drain] = stages;
        self.add(
            "stages",
            format!("ramp {ramp} s, warm-up {warm_up} s, hold {hold} s, drain {drain} s"),
        );
        for group in &scenario.groups {
            let clients = count(u64::from(group.clients));
            self.add(
                &format!("group {}", group.name),
                format!("{clients} clients: {}", group.text),
            );
        }
    }

    fn machine(&mut self, prefix: &str, machine: &Machine) {
        let named = |name: &str| format!("{prefix}{name}");
        self.add(
            &named("CPU"),
            format!("{}, {} cores", machine.cpu, machine.cores),
        );
        self.add(&named("memory"), bytes(fraction(machine.memory_bytes)));
        self.add(&named("kernel"), machine.kernel.clone());
        self.add(&named("system"), machine.os.clone());
        self.add(&named("open files"), count(machine.open_files_max));
        self.add(&named("clock"), machine.clock.clone());
        for (name, value) in &machine.settings {
            self.add(&named(name), value.clone());
        }
    }
}

/// A block of code that its content cannot end; nothing if it is empty.
fn block(text: &mut String, heading: &str, language: &str, code: &str) {
    if code.trim().is_empty() {
        return;
    }
    let longest = code
        .split(|letter| letter != '`')
        .map(str::len)
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(FENCE_MIN.max(longest + 1));
    write!(
        text,
        "\n### {heading}\n\n{fence}{language}\n{}\n{fence}\n",
        code.trim_end()
    )
    .ok();
}
