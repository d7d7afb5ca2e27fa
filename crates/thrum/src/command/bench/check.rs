//! `thrum bench check`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};

use clap::Args;
use thrum_bench::preflight::{self, SourceError};
use thrum_figures::{bytes, count, rate, span};
use thrum_load::plan::Plan;
use thrum_load::scenario::{AddressRange, Scenario};

use super::arguments::{SizeArgs, StageArgs};
use super::complaint::{Complaint, USAGE};
use super::planned::PlannedScenario;
use super::scenario_file;

const EXAMPLES: &str = "\
Examples:
  thrum bench check mine.toml              errors, and the plan
  thrum bench check p2p-1K --scale 50      would this machine do for it";

/// Memory of the generator without clients.
const GENERATOR_BYTES: f64 = 12.0 * 1_048_576.0;

/// Memory of the generator for one client; 240 bytes were measured for an idle one, 500 for one of
/// a pair.
const CLIENT_BYTES: f64 = 1_024.0;

/// Arguments of `thrum bench check`.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct CheckArgs {
    /// Name of the scenario, a file, or - for standard input.
    #[arg(value_name = "NAME|FILE|-")]
    scenario: String,
    #[command(flatten)]
    stages: StageArgs,
    #[command(flatten)]
    size: SizeArgs,
    /// Print the plan as JSON, a line for each scenario.
    #[arg(long)]
    json: bool,
    /// Plan a scenario of up to this many clients, and no sweep: the line of another one has no
    /// load.
    #[arg(long, value_name = "N", requires = "json")]
    plan_up_to: Option<u32>,
}

/// Checks.
pub(super) fn run(args: &CheckArgs) -> anyhow::Result<u8> {
    let changes = args.stages.changes(&args.size);
    if args.json {
        let scenarios = scenario_file::resolve(&args.scenario, &changes)?;
        return print_plans(&scenarios, args.plan_up_to);
    }
    let mut out = std::io::stdout().lock();
    let mut code = 0;
    for scenario in scenario_file::resolve(&args.scenario, &changes)? {
        let plan = thrum_bench::plan(scenario.clone(), "check").map_err(Complaint::usage)?;
        write!(out, "{}", description(&plan))?;
        write!(out, "{}", load(&plan))?;
        for (line, is_met) in needs(scenario.clients(), &scenario.source_addresses) {
            writeln!(out, "  {line}")?;
            code = if is_met { code } else { USAGE };
        }
    }
    let source = &args.scenario;
    match code {
        0 => writeln!(out, "\nIt is right. Run it: thrum bench run {source}")?,
        _ => writeln!(
            std::io::stderr(),
            "error: this machine lacks the items marked with ✗"
        )?,
    }
    Ok(code)
}

/// Prints the plans for programs; what the machine lacks is a finding.
fn print_plans(scenarios: &[Scenario], plan_up_to: Option<u32>) -> anyhow::Result<u8> {
    let mut out = std::io::stdout().lock();
    let mut code = 0;
    let is_sweep = scenarios.len() > 1;
    for scenario in scenarios {
        let is_too_large = plan_up_to.is_some_and(|most| is_sweep || scenario.clients() > most);
        let planned = if is_too_large {
            PlannedScenario::without_load(scenario)
        } else {
            PlannedScenario::new(scenario)?
        };
        code = if planned.findings.is_empty() {
            code
        } else {
            USAGE
        };
        writeln!(out, "{}", serde_json::to_string(&planned)?)?;
    }
    Ok(code)
}

/// A scenario as text.
pub(super) fn description(plan: &Plan) -> String {
    let scenario = &plan.scenario;
    let mut text = format!("{}\n", scenario.name);
    if !scenario.summary.is_empty() {
        writeln!(text, "  {}", scenario.summary).ok();
    }
    let stages = scenario.stages;
    writeln!(
        text,
        "  stages     ramp {} · warm-up {} · hold {} · drain up to {}",
        span(scenario.ramp()),
        span(stages.warm_up),
        span(stages.hold),
        span(stages.drain)
    )
    .ok();
    writeln!(
        text,
        "  clients    {} · {} new per second · MQTT {} · keep alive {} s",
        count(u64::from(scenario.clients())),
        count(u64::from(scenario.connect_rate)),
        scenario.version_text(),
        scenario.keep_alive
    )
    .ok();
    if !scenario.source_addresses.is_empty() {
        let ranges = scenario.source_addresses.iter().map(ToString::to_string);
        let ranges: Vec<String> = ranges.collect();
        writeln!(text, "  from       {}", ranges.join(", ")).ok();
    }
    for (number, group) in scenario.groups.iter().enumerate() {
        let clients = count(u64::from(group.clients));
        writeln!(
            text,
            "  group      {} × {}: {}",
            clients,
            group.name,
            plan.group_text(number)
        )
        .ok();
    }
    text
}

/// The size of the plan.
fn load(plan: &Plan) -> String {
    let (sent, delivered) = plan.messages_per_second();
    if plan.publishers().is_empty() {
        return String::new();
    }
    let topics: BTreeSet<&str> = plan
        .publishers()
        .iter()
        .map(|publisher| &*publisher.topic)
        .collect();
    let topics = count(u64::try_from(topics.len()).unwrap_or(u64::MAX));
    format!(
        "  load       {} in, {} out · {topics} topics\n",
        rate(sent),
        rate(delivered)
    )
}

/// The requirements on this machine, and whether they are met.
pub(super) fn needs(clients: u32, sources: &[AddressRange]) -> Vec<(String, bool)> {
    let memory = format!(
        "memory     about {} for the generator, its sockets left out",
        bytes(GENERATOR_BYTES + f64::from(clients) * CLIENT_BYTES)
    );
    let files = match preflight::raise_open_files(clients) {
        Ok(()) => (
            format!("✓ files    {} open files", count(u64::from(clients))),
            true,
        ),
        Err(error) => (format!("✗ files    {error}"), false),
    };
    let ports = match source_addresses(clients, sources) {
        Ok(sources) => (format!("✓ ports    {sources}"), true),
        Err(error) => (format!("✗ ports    {error}"), false),
    };
    vec![(memory, true), files, ports]
}

/// The source addresses of the clients, as text.
fn source_addresses(clients: u32, ranges: &[AddressRange]) -> Result<String, SourceError> {
    let given = preflight::all_sources(ranges)?;
    // The loopback has many addresses, another host is reached from one.
    let target = given.first().copied();
    let target = target.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let used = preflight::source_addresses(target, clients, &given)?.len();
    let place = if given.is_empty() {
        " on the loopback"
    } else {
        ""
    };
    Ok(match used {
        0 | 1 => format!("1 source address{place}"),
        _ => format!("{used} source addresses{place}"),
    })
}

#[cfg(test)]
mod tests {
    use thrum_load::scenario::find;

    use super::*;

    fn planned(name: &str) -> Plan {
        thrum_bench::plan(find(name).unwrap(), "x").unwrap()
    }

    #[test]
    fn a_description_has_the_stages_and_every_group() {
        let text = description(&planned("sharedsub-1K-5"));
        assert!(
            text.contains("ramp 1.0s · warm-up 5s · hold 1m00s"),
            "{text}"
        );
        assert!(
            text.contains(
                "1 000 × publishers: publish test/{run}/{i} 1/s each, QoS 1, 16 B binary"
            ),
            "{text}"
        );
        assert!(
            text.contains("5 × subscribers: subscribe $share/benchmark/test/{run}/# QoS 1"),
            "{text}"
        );
        let idle = description(&planned("conn-tcp-10K-100"));
        assert!(idle.contains("stay connected"), "{idle}");
    }

    #[test]
    fn the_load_counts_messages_in_and_out_and_topics() {
        let plan = planned("fanout-5-1000-5-250K");
        assert_eq!(
            load(&plan),
            "  load       250/s in, 250 000/s out · 5 topics\n"
        );
        let idle = planned("conn-tcp-10K-100");
        assert_eq!(load(&idle), "");
    }

    #[test]
    fn missing_resources_of_the_machine_are_marked() {
        let lacking = needs(u32::MAX, &[]);
        assert!(
            lacking
                .iter()
                .any(|(line, is_met)| line.starts_with('✗') && !is_met)
        );
        assert!(needs(10, &[]).iter().all(|(_, is_met)| *is_met));
    }

    #[test]
    fn source_addresses_are_counted_and_tried() {
        let ranges = |text: &str| vec![text.parse::<AddressRange>().unwrap()];
        let used = |ranges: &[AddressRange]| source_addresses(100, ranges);
        assert_eq!(used(&[]).unwrap(), "1 source address on the loopback");
        assert_eq!(
            used(&ranges("127.0.0.2-127.0.0.9")).unwrap(),
            "8 source addresses"
        );
        assert!(used(&ranges("192.0.2.1")).is_err());
    }
}
