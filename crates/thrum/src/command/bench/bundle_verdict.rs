//! Whether verdict and validity of a bundle follow from its scenario and its counts: what the file
//! says of itself, computed again by the rules of a run.

use thrum_figures::whole;
use thrum_load::delivered::Wrong;
use thrum_load::floors::Floors;
use thrum_load::histogram::histogram;
use thrum_load::scenario::{Changes, FaultKind, Scenario};
use thrum_load::validity::{Health, Limit, ThreadLoad, figures_in_use};
use thrum_load::verdict::{Connections, Delivery, Judged, Promise, faults};
use thrum_report::RunResult;

/// Faults of counts that a result does not keep: only their absence of others is checked.
const NOT_KEPT: [&str; 2] = [
    "messages not acknowledged: ",
    "clients that did not reconnect: ",
];

/// Latencies of the generator itself: they are its errors, and have none.
const OF_GENERATOR: [&str; 3] = ["generator_lag", "receive_lag", "open_lag"];

/// Most agents of a run, as `--agents` has it.
const AGENTS_MAX: usize = 64;

/// The scenario of a run, of which a bundle has the file. `origin` names it.
pub(super) fn scenario(run: &RunResult, origin: &str) -> Result<Scenario, String> {
    let scenarios = Changes::default().of_file(&run.scenario.toml, origin);
    let mut scenarios = scenarios.map_err(|error| error.to_string())?;
    match (scenarios.pop(), scenarios.len()) {
        (Some(scenario), 0) => Ok(scenario),
        _ => Err(format!("{origin} is not one scenario")),
    }
}

/// Checks a run that agrees with itself; returns a sentence about each check.
pub(super) fn check(run: &RunResult) -> Result<Vec<String>, String> {
    let scenario = scenario(run, "scenario.toml")?;
    if run.agents.len() > AGENTS_MAX {
        let agents = run.agents.len();
        return Err(format!(
            "result.json has {agents} agents, more than the limit AGENTS_MAX: {AGENTS_MAX}"
        ));
    }
    described(run, &scenario)?;
    verdict(run, &scenario)?;
    validity(run, &scenario)?;
    let errors = errors(run)?;
    Ok(vec![
        errors,
        "scenario.toml: the clients, loads and thresholds of result.json".to_owned(),
        format!("verdict: {} judged again", run.verdict_word()),
        "validity: the limits that result.json has the facts of, found again".to_owned(),
    ])
}

/// The result describes the scenario.
fn described(run: &RunResult, scenario: &Scenario) -> Result<(), String> {
    let of = &run.scenario;
    let groups: Vec<String> = scenario
        .groups
        .iter()
        .map(|group| format!("{} {}", group.clients, group.name))
        .collect();
    let kept_groups: Vec<String> = of
        .groups
        .iter()
        .map(|group| format!("{} {}", group.clients, group.name))
        .collect();
    let thresholds = scenario.thresholds.iter();
    let thresholds: Vec<String> = thresholds
        .map(|threshold| format!("{} {}", threshold.metric.name, threshold.text))
        .collect();
    let kept_thresholds = run.thresholds.iter();
    let kept_thresholds: Vec<String> = kept_thresholds
        .map(|threshold| format!("{} {}", threshold.metric, threshold.condition))
        .collect();
    let qos = scenario.delivery_qos().map(|qos| qos as u8);
    let facts = [
        ("name", of.name.clone(), scenario.name.clone()),
        ("QoS", format!("{:?}", of.qos), format!("{qos:?}")),
        (
            "MQTT version",
            of.mqtt_version.clone(),
            scenario.version_text(),
        ),
        ("load", of.load.text.clone(), scenario.load_text()),
        (
            "closed loop",
            of.load.closed_loop.to_string(),
            scenario.has_closed_loop().to_string(),
        ),
        (
            "arrivals",
            of.load.arrivals.clone(),
            scenario.arrivals_text(),
        ),
        ("groups", kept_groups.join(", "), groups.join(", ")),
        (
            "clients",
            run.clients.wanted.to_string(),
            scenario.clients().to_string(),
        ),
        (
            "thresholds",
            kept_thresholds.join(", "),
            thresholds.join(", "),
        ),
    ];
    for (name, kept, given) in facts {
        if kept != given {
            return Err(format!(
                "result.json has {name} '{kept}', and scenario.toml gives '{given}'"
            ));
        }
    }
    Ok(())
}

/// The faults follow from the counts, the word from the faults, and the sentence has its counts.
fn verdict(run: &RunResult, scenario: &Scenario) -> Result<(), String> {
    let of = &run.delivery;
    let delivery = Delivery {
        expected: of.expected,
        lost: of.lost,
        excused: of.excused,
        duplicated: of.duplicated,
        reordered: of.reordered,
        late: of.late,
        wrong: Wrong {
            misdelivered: of.misdelivered,
            foreign: of.foreign,
            qos: of.wrong_qos,
            topic: of.wrong_topic,
            retain: of.wrong_retain,
            payload: of.wrong_payload,
        },
    };
    if delivery.delivered() != of.delivered {
        return Err(format!(
            "result.json has {} deliveries, and its other counts give {}",
            of.delivered,
            delivery.delivered()
        ));
    }
    let connections = Connections {
        failed: run.clients.failed,
        lost: if is_rough(scenario) {
            0
        } else {
            run.clients.lost
        },
        refused: of.refused,
        ..Connections::default()
    };
    let found = faults(Promise::of(scenario), &delivery, &connections);
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    let is_known = |fault: &&String| !NOT_KEPT.iter().any(|start| fault.starts_with(start));
    let kept: Vec<&String> = run.verdict.faults.iter().filter(is_known).collect();
    if found.iter().collect::<Vec<_>>() != kept {
        let kept: Vec<&str> = kept.into_iter().map(String::as_str).collect();
        return Err(format!(
            "result.json has the faults '{}', and its counts give '{}'",
            kept.join(", "),
            found.join(", ")
        ));
    }
    let judged = Judged {
        faults: run.verdict.faults.clone(),
        wanted: run.clients.wanted,
        ready: run.clients.ready,
        failed: run.clients.failed,
        is_without_figures: run.is_without_figures(),
        publishes: scenario.publishers() > 0,
        delivery,
    };
    if run.verdict.pass != judged.passes() {
        let word = |passes| if passes { "PASS" } else { "FAIL" };
        let (kept, found) = (word(run.verdict.pass), word(judged.passes()));
        return Err(format!(
            "result.json says {kept}, and its counts give {found}"
        ));
    }
    let (kept, found) = (&run.verdict.text, judged.text());
    if *kept == found {
        Ok(())
    } else {
        Err(format!(
            "the verdict of result.json says '{kept}', and its counts say '{found}'"
        ))
    }
}

/// Whether the scenario itself makes connections fail: then those lost are no fault of the broker.
fn is_rough(scenario: &Scenario) -> bool {
    let mut faults = scenario.faults.iter();
    let mut networks = scenario
        .groups
        .iter()
        .filter_map(|group| group.client.network);
    faults.any(|fault| !matches!(fault.kind, FaultKind::StopReading { .. }))
        || networks.any(|network| network.cut_after.is_some())
}

/// The limits of the generator that the result has the facts of: errors of the figures in use,
/// busy threads, messages not sent, a host that keeps CPU. Of the others it has only the text.
fn validity(run: &RunResult, scenario: &Scenario) -> Result<(), String> {
    let found = health(run, scenario).limits();
    let kept = &run.validity.limits;
    let error = " may be the generator's: ";
    for limit in &found {
        let text = limit.to_string();
        let is_kept = match limit {
            Limit::Error { .. } => {
                // The reason comes from accounts that a result does not keep.
                let (head, _) = text.split_once(error).unwrap_or((&text, ""));
                kept.iter()
                    .any(|kept| kept.split_once(error).is_some_and(|(kept, _)| kept == head))
            }
            // Of messages that were held back it is not known how many were so at the end.
            Limit::NotSent { .. } => kept.iter().any(|kept| kept.ends_with("were not sent")),
            _ => kept.contains(&text),
        };
        if !is_kept {
            return Err(format!("result.json leaves out why it is INVALID: {text}"));
        }
    }
    let has = |is_of: fn(&Limit) -> bool| found.iter().any(is_of);
    let unfounded = kept.iter().find(|kept| {
        (kept.contains(error) && !has(|limit| matches!(limit, Limit::Error { .. })))
            || (kept.starts_with("a generator thread was busy")
                && !has(|limit| matches!(limit, Limit::Busy { .. })))
            || (kept.starts_with("the host of this machine kept")
                && !has(|limit| matches!(limit, Limit::Stolen { .. })))
            || (kept.starts_with("the coordinator was")
                && !run.validity.withheld.contains_key("broker.cores.max"))
    });
    match unfounded {
        Some(kept) => Err(format!(
            "result.json says '{kept}', and its figures do not show it"
        )),
        None => Ok(()),
    }
}

/// The error beside each figure follows from the floors.
fn errors(run: &RunResult) -> Result<String, String> {
    let latencies = || run.latency_ns.named().into_iter();
    let mut kept = latencies().filter_map(|(name, of)| Some((name, of?.bound?)));
    if run.latency_ns.floors.is_empty() {
        let is_of_this_version = run.tool.version == env!("CARGO_PKG_VERSION");
        return match kept.next().filter(|_| is_of_this_version) {
            Some((name, _)) => Err(format!(
                "result.json has an error of {name}, and not what it follows from"
            )),
            None => Ok("errors: the run keeps nothing that they follow from".to_owned()),
        };
    }
    let mut floors = Floors::default();
    for (name, floor) in floors.named_mut() {
        let found = run.latency_ns.floor(name);
        let found = found.map_err(|error| format!("{name} of result.json: {error}"))?;
        *floor = found.unwrap_or_else(histogram);
    }
    let mut computed = 0;
    for (name, of) in latencies() {
        let Some(of) = of.filter(|_| !OF_GENERATOR.contains(&name)) else {
            continue;
        };
        let seen = of.histogram();
        let seen = seen.map_err(|error| format!("{name} of result.json: {error}"))?;
        let again = |clocks_ns| floors.bound_of(name, &seen, of.missing, clocks_ns);
        // Whether messages went from one machine to another, the file does not say.
        if of.bound != again(0) && of.bound != again(clock_error_ns(run)) {
            return Err(format!(
                "the error of {name} in result.json is not what its floors give"
            ));
        }
        computed += 1;
    }
    Ok(format!(
        "errors: those of {computed} distributions computed again"
    ))
}

/// Largest error of the time between two of the machines.
fn clock_error_ns(run: &RunResult) -> u64 {
    let mut errors: Vec<u64> = run.agents.iter().map(|of| of.clock_error_ns).collect();
    errors.sort_unstable();
    errors
        .iter()
        .rev()
        .take(2)
        .fold(0, |sum, of| sum.saturating_add(*of))
}

fn health(run: &RunResult, scenario: &Scenario) -> Health {
    let thresholds = scenario.thresholds.iter();
    let judged: Vec<&str> = thresholds.map(|threshold| threshold.metric.name).collect();
    let agents = || run.agents.iter().map(|agent| &agent.generator);
    let generators = || std::iter::once(&run.generator).chain(agents());
    let threads = generators().flat_map(|generator| &generator.threads);
    let stolen = generators().filter_map(|generator| generator.usage.as_ref());
    let messages = |rate: f64| whole((rate * run.scenario.stages.hold).round());
    Health {
        figures: figures_in_use(&run.latency_ns, &judged),
        offered: messages(run.rates.offered),
        sent: messages(run.rates.sent),
        held_back: run.rates.held_back_messages,
        threads: threads
            .map(|load| ThreadLoad {
                busy: load.busy,
                busy_max: load.busy_max,
            })
            .collect(),
        has_closed_loop: scenario.has_closed_loop(),
        stolen: stolen.map(|usage| usage.machine.stolen).fold(0.0, f64::max),
        ..Health::default()
    }
}

#[cfg(test)]
mod tests {
    use thrum_load::histogram::enter_many;
    use thrum_load::scenario::find;
    use thrum_report::result::{Distribution, GroupDescription, Quantiles};

    use super::*;

    /// A run of the built-in pairs in which nothing happened that was not to happen.
    fn run() -> RunResult {
        let scenario = find("p2p-1K").unwrap();
        let mut run = RunResult::default();
        run.scenario.toml = thrum_load::scenario::to_toml(&scenario);
        run.scenario.name.clone_from(&scenario.name);
        run.scenario.qos = Some(1);
        run.scenario.mqtt_version = scenario.version_text();
        run.scenario.load.text = scenario.load_text();
        run.scenario.load.arrivals = scenario.arrivals_text();
        run.scenario.stages.hold = 10.0;
        let groups = scenario.groups.iter().map(|group| GroupDescription {
            name: group.name.clone(),
            clients: group.clients,
            ..GroupDescription::default()
        });
        run.scenario.groups = groups.collect();
        run.clients.wanted = u64::from(scenario.clients());
        run.clients.ready = run.clients.wanted;
        (run.delivery.expected, run.delivery.delivered) = (15_000, 15_000);
        (run.rates.offered, run.rates.sent) = (1_000.0, 1_000.0);
        run.validity.valid = true;
        run.verdict.pass = true;
        run.verdict.text =
            "all 15 000 deliveries arrived unaltered, in order, each once".to_owned();
        run
    }

    #[track_caller]
    fn check_changed(change: impl Fn(&mut RunResult), expected: &str) {
        let mut run = run();
        change(&mut run);
        let refused = check(&run).unwrap_err();
        assert!(refused.contains(expected), "{refused}");
    }

    fn lose(run: &mut RunResult, lost: u64) {
        (run.delivery.lost, run.delivery.delivered) = (lost, 15_000 - lost);
    }

    #[test]
    fn a_run_by_the_rules_stands_the_checks() {
        assert_eq!(check(&run()).unwrap().len(), 4);
        let mut failed = run();
        lose(&mut failed, 3);
        failed.verdict.faults = vec![
            "messages lost: 3".to_owned(),
            "messages not acknowledged: 2".to_owned(),
        ];
        failed.verdict.text = failed.verdict.faults.join(", ");
        failed.verdict.pass = false;
        assert!(check(&failed).is_ok(), "{:?}", check(&failed));
        let mut again = run();
        again.delivery.duplicated = 12;
        again.verdict.text =
            "all 15 000 deliveries arrived unaltered, in order, 12 again, which QoS 1 allows"
                .to_owned();
        assert!(check(&again).is_ok(), "{:?}", check(&again));
    }

    #[test]
    fn losses_that_qos_0_allows_are_told_as_a_run_tells_them() {
        let mut lossy = run();
        lossy.scenario.toml = lossy.scenario.toml.replace("qos = 1", "qos = 0");
        lossy.scenario.qos = Some(0);
        let of = &mut lossy.delivery;
        (of.lost, of.excused, of.delivered) = (30, 7, 14_963);
        lossy.verdict.text = "30 of 15 000 deliveries lost (0.2 %), which QoS 0 allows".to_owned();
        assert!(check(&lossy).is_ok(), "{:?}", check(&lossy));
        lossy.verdict.text = lossy.verdict.text.replace("allows", "demands");
        assert!(check(&lossy).unwrap_err().contains("which QoS 0 allows'"));
    }

    #[test]
    fn a_verdict_that_its_counts_deny_is_found() {
        check_changed(
            |run| lose(run, 3),
            "has the faults '', and its counts give 'messages lost: 3'",
        );
        check_changed(
            |run| run.delivery.lost = 3,
            "has 15000 deliveries, and its other counts give 14997",
        );
        check_changed(|run| run.clients.lost = 1, "give 'connections lost: 1'");
        check_changed(
            |run| run.verdict.faults = vec!["messages refused: 9".to_owned()],
            "has the faults 'messages refused: 9', and its counts give ''",
        );
        check_changed(
            |run| run.verdict.pass = false,
            "says FAIL, and its counts give PASS",
        );
        check_changed(|run| run.clients.ready -= 1, "its counts give FAIL");
        check_changed(
            |run| run.verdict.text = "all 16 000 deliveries arrived".to_owned(),
            "says 'all 16 000 deliveries arrived', and its counts say 'all 15 000 deliveries",
        );
        check_changed(
            |run| run.agents = vec![thrum_report::result::Agent::default(); 65],
            "has 65 agents, more than the limit AGENTS_MAX: 64",
        );
        check_changed(
            |run| run.delivery.duplicated = 12,
            "and its counts say 'all 15 000 deliveries arrived unaltered, in order, 12 again",
        );
    }

    #[test]
    fn a_validity_that_its_figures_deny_is_found() {
        let spoiled = |run: &mut RunResult| {
            let mut e2e = Distribution::default();
            (e2e.quantiles.count, e2e.quantiles.p50) = (10_000, 2_000_000);
            e2e.bound = Some(Quantiles {
                p50: 900_000,
                ..Quantiles::default()
            });
            run.latency_ns.e2e = Some(e2e);
        };
        check_changed(
            spoiled,
            "leaves out why it is INVALID: up to 900µs of e2e.p50 2ms may be the generator's",
        );
        let mut told = run();
        spoiled(&mut told);
        let limit = "up to 900µs of e2e.p50 2ms may be the generator's: its thread bench-0 sent messages late";
        told.validity.limits = vec![limit.to_owned()];
        assert!(check(&told).is_ok(), "{:?}", check(&told));
        check_changed(
            |run| run.validity.limits = vec![limit.to_owned()],
            "and its figures do not show it",
        );
        check_changed(
            |run| {
                let thread = thrum_report::result::ThreadLoad {
                    busy: 0.95,
                    ..thrum_report::result::ThreadLoad::default()
                };
                run.generator.threads = vec![thread];
            },
            "a generator thread was busy 95 % of the time",
        );
        check_changed(
            |run| run.rates.sent = 900.0,
            "1 000 of 10 000 messages were not sent",
        );
        check_changed(
            |run| {
                let mut usage = thrum_report::result::Usage::default();
                usage.machine.stolen = 0.2;
                run.generator.usage = Some(usage);
            },
            "the host of this machine kept 20 % of its CPU",
        );
    }

    /// A run of this version whose latencies have an error of 4 ms, of 9.
    fn with_errors() -> RunResult {
        let mut run = run();
        let mut seen = histogram();
        enter_many(&mut seen, 9_000_000, 15_000);
        let mut floors = Floors::default();
        enter_many(&mut floors.delivery, 5_000_000, 15_000);
        let bound = floors.bound_of("e2e", &seen, 0, 0);
        run.tool.version = env!("CARGO_PKG_VERSION").to_owned();
        run.latency_ns.e2e = Some(Distribution::from_histogram(&seen).with_bound(bound));
        run.latency_ns
            .keep_floor("floor.delivery", &floors.delivery);
        run
    }

    #[test]
    fn an_error_that_does_not_follow_from_its_floors_is_found() {
        let errors = errors(&with_errors()).unwrap();
        assert_eq!(errors, "errors: those of 1 distributions computed again");
        let refused = |change: fn(&mut RunResult)| {
            let mut run = with_errors();
            change(&mut run);
            super::errors(&run).unwrap_err()
        };
        let forged = refused(|run| {
            let e2e = run.latency_ns.e2e.as_mut().unwrap();
            e2e.bound.as_mut().unwrap().p99 = 100_000;
        });
        assert_eq!(
            forged,
            "the error of e2e in result.json is not what its floors give"
        );
        let left_out = refused(|run| run.latency_ns.floors.clear());
        assert!(left_out.ends_with("an error of e2e, and not what it follows from"));
        let cut_off = refused(|run| {
            let text = run.latency_ns.floors.get_mut("floor.delivery").unwrap();
            text.truncate(20);
        });
        assert!(
            cut_off.starts_with("floor.delivery of result.json: "),
            "{cut_off}"
        );
    }

    #[test]
    fn between_machines_an_error_has_that_of_their_clocks() {
        let mut run = with_errors();
        let e2e = run.latency_ns.e2e.as_mut().unwrap();
        let bound = e2e.bound.as_mut().unwrap();
        for of in [
            &mut bound.min,
            &mut bound.mean,
            &mut bound.p50,
            &mut bound.p75,
        ] {
            *of += 3_000;
        }
        for of in [
            &mut bound.p90,
            &mut bound.p95,
            &mut bound.p99,
            &mut bound.p99_9,
        ] {
            *of += 3_000;
        }
        bound.p99_99 += 3_000;
        bound.max += 3_000;
        assert!(errors(&run).is_err());
        let agents = [1_000, 2_000, 500].map(|clock_error_ns| thrum_report::result::Agent {
            clock_error_ns,
            ..thrum_report::result::Agent::default()
        });
        run.agents = agents.into();
        assert!(errors(&run).is_ok(), "{:?}", errors(&run));
    }

    #[test]
    fn a_description_that_is_not_of_the_scenario_is_found() {
        check_changed(
            |run| run.scenario.qos = Some(0),
            "has QoS 'Some(0)', and scenario.toml gives 'Some(1)'",
        );
        check_changed(|run| run.scenario.load.closed_loop = true, "closed loop");
        check_changed(|run| run.clients.wanted = 10, "has clients '10'");
        check_changed(|run| run.scenario.groups[0].clients = 1, "has groups '1 ");
        check_changed(
            |run| {
                run.scenario
                    .toml
                    .push_str("\n[thresholds]\nlost = \"== 0\"\n");
            },
            "has thresholds '', and scenario.toml gives 'lost == 0'",
        );
    }
}
