//! What a run would do, and what speaks against it.

use thrum_management::api::{BenchmarkCheck, BenchmarkFinding, BenchmarkLimits, BenchmarkPlan};

use super::lines::PlanLine;

/// Clients from which a broker with one core less is worth a word.
const FEW_CORES: u32 = 4;

/// What is known of the broker that a run would load.
#[derive(Clone, Debug, Default)]
pub(super) struct Loaded {
    /// Its URL.
    pub(super) url: String,
    /// It is this one.
    pub(super) is_own: bool,
    /// It is on this machine.
    pub(super) is_here: bool,
    /// Connections that this one admits, and those that it has.
    pub(super) connections_max: u32,
    pub(super) connections: u64,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NoPlan {
    pub(super) why: String,
    pub(super) remedy: &'static str,
}

/// The check of a scenario that can be read, or of one that cannot.
pub(super) fn check(
    planned: Result<&[PlanLine], &NoPlan>,
    limits: &BenchmarkLimits,
    loaded: &Loaded,
    may_load_others: bool,
) -> BenchmarkCheck {
    let mut findings = Vec::new();
    let plan = match planned {
        Ok([plan]) => Some(plan),
        Ok(plans) => {
            findings.push(several(plans));
            None
        }
        Err(NoPlan { why, remedy }) => {
            findings.push(error(why, remedy));
            None
        }
    };
    if let Some(plan) = plan {
        within_limits(plan, limits, &mut findings);
        of_machine(plan, &mut findings);
        of_target(plan, loaded, may_load_others, &mut findings);
    }
    if loaded.is_here {
        findings.push(shared_machine(limits));
    }
    BenchmarkCheck {
        ok: findings.iter().all(|finding| finding.level != "error"),
        target: plan
            .and_then(|plan| plan.targets.first())
            .unwrap_or(&loaded.url)
            .clone(),
        plan: plan.and_then(shown),
        toml: plan.map(|plan| plan.toml.clone()).unwrap_or_default(),
        findings,
    }
}

/// None of a scenario that was not planned, because it has too many clients.
fn shown(plan: &PlanLine) -> Option<BenchmarkPlan> {
    Some(BenchmarkPlan {
        clients: plan.clients,
        messages_per_sec_in: plan.messages_per_sec_in?,
        messages_per_sec_out: plan.messages_per_sec_out?,
        duration_secs: plan.duration_secs(),
        payload_bytes: plan.payload_bytes,
        qos: plan.qos,
    })
}

fn several(plans: &[PlanLine]) -> BenchmarkFinding {
    let first = plans
        .first()
        .map(|plan| plan.name.as_str())
        .unwrap_or_default();
    error(
        &format!(
            "this is a sweep of {} runs, and one is started at a time",
            plans.len()
        ),
        &format!("name one of its steps, such as {first}; thrum bench run does all of them"),
    )
}

fn within_limits(plan: &PlanLine, limits: &BenchmarkLimits, findings: &mut Vec<BenchmarkFinding>) {
    if plan.clients > limits.clients_max {
        findings.push(error(
            &format!(
                "{} clients are more than the {} of a run",
                plan.clients, limits.clients_max
            ),
            "ask for fewer clients, or raise management.benchmarks.clients",
        ));
    }
    if plan.duration_secs() > limits.duration_secs_max {
        findings.push(error(
            &format!(
                "its stages take {:.0} s, more than the {:.0} s of a run",
                plan.duration_secs(),
                limits.duration_secs_max
            ),
            "shorten the measured part, or raise management.benchmarks.duration",
        ));
    }
}

fn of_machine(plan: &PlanLine, findings: &mut Vec<BenchmarkFinding>) {
    for lacking in &plan.findings {
        findings.push(error(
            lacking,
            "ask for fewer clients, or do what the text says",
        ));
    }
}

fn of_target(
    plan: &PlanLine,
    loaded: &Loaded,
    may_load_others: bool,
    findings: &mut Vec<BenchmarkFinding>,
) {
    if plan.targets.len() > 1 {
        findings.push(error(
            "the scenario names several brokers",
            "use thrum bench run, which takes the address of each",
        ));
    }
    let named = plan.targets.first().filter(|url| **url != loaded.url);
    if let Some(url) = named {
        findings.push(note(
            &format!("the scenario names its broker itself: {url}"),
            "take target out of it to load the chosen one",
        ));
    }
    let is_own = loaded.is_own && named.is_none();
    if !is_own && !may_load_others {
        findings.push(error(
            "runs may load no other broker than this one",
            "leave target out, or set management.benchmarks.other_targets = true",
        ));
    }
    let room = u64::from(loaded.connections_max).saturating_sub(loaded.connections);
    if is_own && u64::from(plan.clients) > room {
        findings.push(error(
            &format!(
                "{} clients are more than the {room} connections that are left",
                plan.clients
            ),
            "ask for fewer clients, or raise limits.connections and the limit of open files",
        ));
    }
}

fn shared_machine(limits: &BenchmarkLimits) -> BenchmarkFinding {
    let what = format!(
        "the benchmark takes {} of the {} cores that the broker may use, too",
        limits.cores, limits.cores_of
    );
    let remedy = "for figures to publish, run thrum bench on another machine, or keep the broker off \
                  these cores";
    let level = if limits.cores_of < FEW_CORES {
        "warning"
    } else {
        "note"
    };
    finding(level, &what, remedy)
}

fn error(what: &str, remedy: &str) -> BenchmarkFinding {
    finding("error", what, remedy)
}

fn note(what: &str, remedy: &str) -> BenchmarkFinding {
    finding("note", what, remedy)
}

fn finding(level: &str, what: &str, remedy: &str) -> BenchmarkFinding {
    BenchmarkFinding {
        level: level.to_owned(),
        what: what.to_owned(),
        remedy: remedy.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> BenchmarkLimits {
        BenchmarkLimits {
            cores: 1,
            cores_of: 8,
            duration_secs_max: 60.0,
            clients_max: 100,
            ..BenchmarkLimits::default()
        }
    }

    fn loaded() -> Loaded {
        Loaded {
            url: "mqtt://127.0.0.1:1883".to_owned(),
            is_own: true,
            is_here: true,
            connections_max: 50,
            connections: 10,
        }
    }

    fn plan() -> PlanLine {
        PlanLine {
            name: "x/10K".to_owned(),
            clients: 20,
            hold_secs: 30.0,
            toml: "name = \"x\"\n".to_owned(),
            ..PlanLine::default()
        }
    }

    /// The levels of what is found, and the first error.
    fn found(plan: &PlanLine, loaded: &Loaded, may_load_others: bool) -> (Vec<String>, String) {
        let plans = std::slice::from_ref(plan);
        let check = check(Ok(plans), &limits(), loaded, may_load_others);
        let levels: Vec<String> = check.findings.iter().map(|of| of.level.clone()).collect();
        assert_eq!(check.ok, !levels.contains(&"error".to_owned()));
        let first = check.findings.into_iter().find(|of| of.level == "error");
        (levels, first.map(|of| of.what).unwrap_or_default())
    }

    #[test]
    fn a_run_within_all_limits_has_no_error() {
        assert_eq!(
            found(&plan(), &loaded(), false),
            (vec!["note".to_owned()], String::new())
        );
    }

    #[test]
    fn every_limit_is_named() {
        let with = |change: fn(&mut PlanLine)| {
            let mut plan = plan();
            change(&mut plan);
            found(&plan, &loaded(), true).1
        };
        assert!(with(|plan| plan.clients = 101).contains("more than the 100 of a run"));
        assert!(with(|plan| plan.clients = 41).contains("40 connections that are left"));
        assert!(with(|plan| plan.drain_secs = 31.0).contains("take 61 s, more than the 60 s"));
        assert!(with(|plan| plan.findings.push("no files".to_owned())).contains("no files"));
        let two = |plan: &mut PlanLine| plan.targets = vec!["a".to_owned(), "b".to_owned()];
        assert!(with(two).contains("several brokers"));
    }

    #[test]
    fn a_scenario_with_too_many_clients_is_refused_without_a_plan() {
        let large = PlanLine {
            clients: 2_000_000,
            ..plan()
        };
        let check = check(Ok(&[large]), &limits(), &loaded(), true);
        assert_eq!((check.ok, check.plan), (false, None));
        assert!(!check.toml.is_empty());
        assert!(check.findings[0].what.contains("2000000 clients"));
    }

    #[test]
    fn another_broker_is_refused_where_only_this_one_may_be_loaded() {
        let other = Loaded {
            is_own: false,
            is_here: false,
            ..loaded()
        };
        let many = PlanLine {
            clients: 99,
            ..plan()
        };
        assert_eq!(found(&many, &other, true).0, [""; 0]);
        assert!(found(&plan(), &other, false).1.contains("no other broker"));
        let named = PlanLine {
            targets: vec!["mqtt://elsewhere:1883".to_owned()],
            ..plan()
        };
        assert!(
            found(&named, &loaded(), false)
                .1
                .contains("no other broker")
        );
        let plans = [named];
        let checked = check(Ok(&plans), &limits(), &loaded(), true);
        assert_eq!(checked.target, "mqtt://elsewhere:1883");
    }

    #[test]
    fn a_sweep_and_a_scenario_that_cannot_be_read_have_no_plan() {
        let sweep = check(Ok(&[plan(), plan()]), &limits(), &loaded(), true);
        assert!(!sweep.ok && sweep.plan.is_none());
        assert!(sweep.findings[0].remedy.contains("x/10K"));
        let no_plan = NoPlan {
            why: "line 3: unknown key".to_owned(),
            remedy: "correct it",
        };
        let wrong = check(Err(&no_plan), &limits(), &loaded(), true);
        assert_eq!(wrong.findings[0].what, "line 3: unknown key");
        assert_eq!(wrong.findings[0].remedy, "correct it");
        assert!(!wrong.ok && wrong.toml.is_empty());
    }
}
