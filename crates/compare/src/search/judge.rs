//! The outcome of one trial: the broker held, the broker failed, or the generator was the limit.

use serde::Serialize;
use thrum_figures::{latency, percent};
use thrum_report::RunResult;
use thrum_report::result::Withheld;

/// Part of the offered messages that must have been sent: less means that the broker held the
/// publishers back.
const SENT_PART_MIN: f64 = 0.99;

/// Why a load with a goal for the CPU is not held.
pub const CPU_UNMEASURED: &str = "the CPU of the broker was not measured";

/// The beginning of a verdict's fault that the goal judges instead.
const LOSS: &str = "messages lost";

/// The conditions for holding a load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Goal {
    /// Highest 99th percentile of the response time; of connecting, without publishers.
    pub p99_ns: u64,
    /// Highest part of the promised deliveries that may be lost.
    pub lost_part: f64,
    /// Highest part of the machine's CPU that the broker may use: where that is not measured, no
    /// load is held.
    pub cpu_part: Option<f64>,
}

/// The outcome of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// The broker met the goal.
    Held,
    /// The broker did not.
    Failed,
    /// The generator was the limit: nothing is known about the broker.
    Limited,
}

/// The figures that a trial is judged by.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Messages due per second; clients that got ready per second without publishers.
    pub offered: f64,
    /// Messages sent per second.
    pub sent: f64,
    /// Messages received per second.
    pub received: f64,
    /// 99th percentile in nanoseconds; none if nothing was measured.
    pub p99_ns: Option<u64>,
    /// What of it may be the generator's, at most.
    pub p99_bound_ns: u64,
    /// The longest latency, where too few values stand behind the 99th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_of_few_ns: Option<u64>,
    /// The latencies are those of connecting: a longer hold has no more of them.
    #[serde(skip)]
    pub is_of_connecting: bool,
    /// Deliveries lost.
    pub lost: u64,
    /// Part of the machine's CPU that the broker used.
    pub cpu_part: Option<f64>,
}

/// One trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// The load that was tried, in messages per second or clients.
    pub load: f64,
    /// Its outcome.
    pub grade: Grade,
    /// Why, if it did not go well.
    pub reasons: Vec<String>,
    /// The measured figures.
    pub figures: Figures,
}

impl Trial {
    /// Judges a run.
    pub fn judge(load: f64, result: &RunResult, goal: &Goal) -> Self {
        let figures = Figures::of(result);
        let (grade, reasons) = if result.interrupted {
            let why = "ended early: the limit of the broker is unknown".to_owned();
            (Grade::Limited, vec![why])
        } else if let Some(why) = figures.undecided(goal) {
            (Grade::Limited, vec![why])
        } else {
            figures.grade(result, goal)
        };
        Self {
            load,
            grade,
            reasons,
            figures,
        }
    }

    /// A run that could not even start because of the broker: no client accepted, connections
    /// refused.
    pub fn refused(load: f64, reason: String) -> Self {
        Self {
            load,
            grade: Grade::Failed,
            reasons: vec![reason],
            figures: Figures::default(),
        }
    }
}

impl Figures {
    fn of(result: &RunResult) -> Self {
        let latencies = &result.latency_ns;
        let judged = latencies.main().map(|(_, distribution)| distribution);
        let cpu = result.metrics.get("broker.cpu").copied();
        let is_cpu_withheld = result.validity.withheld.contains_key("broker.cpu");
        let withheld = judged.and_then(|judged| judged.withheld.get("p99"));
        let is_of_few = matches!(withheld, Some(Withheld::TooFew { .. }));
        // A percentile among the missing is longer than the wait for them, which no goal allows.
        let is_missing = matches!(withheld, Some(Withheld::Missing { .. }));
        Self {
            offered: result.rates.offered,
            sent: result.rates.sent,
            received: result.rates.received,
            p99_ns: judged.map(|distribution| {
                if is_missing {
                    u64::MAX
                } else {
                    distribution.quantiles.p99
                }
            }),
            max_of_few_ns: judged
                .filter(|_| is_of_few)
                .map(|distribution| distribution.quantiles.max),
            is_of_connecting: latencies.main().is_some_and(|(name, _)| name == "connect"),
            p99_bound_ns: judged
                .and_then(|distribution| distribution.bound_of("p99"))
                .unwrap_or(0),
            lost: result.delivery.lost,
            cpu_part: cpu.or_else(|| cpu_part(result).filter(|_| !is_cpu_withheld)),
        }
    }
}

impl Figures {
    /// The outcome, and why.
    fn grade(&self, result: &RunResult, goal: &Goal) -> (Grade, Vec<String>) {
        let limits = &result.validity.limits;
        let broken = broken(result, self, goal);
        match (broken.is_empty(), result.validity.valid) {
            (false, true) => return (Grade::Failed, broken),
            (is_met, false) if limits.iter().all(|limit| is_error(limit)) => {
                // The CPU of the broker is another figure.
                match self.cpu_excess(goal) {
                    Some(excess) => return (Grade::Failed, vec![excess]),
                    None if is_met => {}
                    None => return (Grade::Limited, limits.clone()),
                }
            }
            (_, false) => return (Grade::Limited, limits.clone()),
            (true, true) => {}
        }
        if let Some(why) = self.unmeasured(goal) {
            return (Grade::Limited, vec![why]);
        }
        // A latency that meets the goal with the generator's part meets it without.
        let met = limits.iter();
        let met = met.map(|limit| format!("met with the generator's part: {limit}"));
        (Grade::Held, met.collect())
    }

    /// What of the goal for the CPU is broken.
    fn cpu_excess(&self, goal: &Goal) -> Option<String> {
        let (used, allowed) = (self.cpu_part?, goal.cpu_part?);
        (used > allowed).then(|| format!("CPU {} > {}", percent(used), percent(allowed)))
    }

    /// What the goal asks for and the run does not have.
    fn unmeasured(&self, goal: &Goal) -> Option<String> {
        let is_unmeasured = goal.cpu_part.is_some() && self.cpu_part.is_none();
        is_unmeasured.then(|| CPU_UNMEASURED.to_owned())
    }

    /// Why the run does not say whether the goal was met: without the generator's part it was,
    /// with it it was not.
    fn undecided(&self, goal: &Goal) -> Option<String> {
        let p99_ns = self.p99_ns?;
        if let Some(max_ns) = self.max_of_few_ns.filter(|max_ns| *max_ns > goal.p99_ns) {
            let (what, cure) = if self.is_of_connecting {
                ("connections", "more clients are needed (--from 1010)")
            } else {
                ("messages", "give a longer --hold")
            };
            return Some(format!(
                "too few {what} for a p99, and one took {} > {}: {cure}",
                latency(max_ns),
                latency(goal.p99_ns)
            ));
        }
        let least_ns = p99_ns.saturating_sub(self.p99_bound_ns);
        (least_ns <= goal.p99_ns && goal.p99_ns < p99_ns).then(|| {
            format!(
                "p99 {} > {}, but {} of it may be the generator's",
                latency(p99_ns),
                latency(goal.p99_ns),
                latency(self.p99_bound_ns)
            )
        })
    }
}

/// Whether a limit of the generator is only that a latency may be shorter than it looks.
fn is_error(limit: &str) -> bool {
    limit.starts_with("up to ") && limit.contains(" may be the generator's: ")
}

/// The broker's cores in use as a part of those of this machine, if it ran on it.
fn cpu_part(result: &RunResult) -> Option<f64> {
    let broker = result.brokers.first()?;
    let cores = u32::try_from(result.machine.cores).ok()?;
    (broker.host.is_empty() && cores > 0).then(|| broker.usage.cores_avg / f64::from(cores))
}

fn broken(result: &RunResult, figures: &Figures, goal: &Goal) -> Vec<String> {
    let mut reasons = Vec::new();
    match figures.p99_ns {
        Some(u64::MAX) => reasons.push("over 1 % of the messages never arrived".to_owned()),
        Some(p99) if p99 > goal.p99_ns => {
            reasons.push(format!("p99 {} > {}", latency(p99), latency(goal.p99_ns)));
        }
        Some(_) => {}
        None => reasons.push("nothing arrived".to_owned()),
    }
    let lost_part = thrum_figures::ratio(figures.lost, result.delivery.expected);
    if lost_part > goal.lost_part {
        reasons.push(format!(
            "lost {} of {}",
            figures.lost, result.delivery.expected
        ));
    }
    if figures.sent < figures.offered * SENT_PART_MIN {
        reasons.push(format!(
            "the broker took {} of the offered load",
            percent(figures.sent / figures.offered)
        ));
    }
    if let Some(growth) = queue_growth(result) {
        reasons.push(format!(
            "a queue grows: {} of the messages sent did not arrive in their turn",
            percent(growth)
        ));
    }
    reasons.extend(figures.cpu_excess(goal));
    // The goal judged losses; any other violation counts.
    let others = result.verdict.faults.iter();
    let others = others.filter(|fault| !fault.starts_with(LOSS));
    reasons.extend(others.cloned());
    reasons
}

/// Part of the deliveries by which a queue may grow: the last messages of a hold arrive after it,
/// as those before it arrive in it.
const QUEUE_GROWTH_MAX: f64 = 0.005;

/// Messages that a queue must grow by in the hold.
const QUEUE_MESSAGES_MIN: f64 = 10.0;

/// Part of the deliveries of the hold that came to a queue; none if it is small enough for one
/// that stays as it is.
fn queue_growth(result: &RunResult) -> Option<f64> {
    let delivery = &result.delivery;
    let arriving = delivery
        .expected
        .saturating_sub(delivery.lost + delivery.excused);
    let fan_out = thrum_figures::ratio(arriving, delivery.sent_messages);
    let expected = result.rates.sent * fan_out;
    let growth = 1.0 - result.rates.received / expected;
    // A few messages are on their way at any border.
    let messages = growth * expected * result.scenario.stages.hold;
    let grows = growth > QUEUE_GROWTH_MAX && messages >= QUEUE_MESSAGES_MIN;
    (expected > 0.0 && grows).then_some(growth)
}

#[cfg(test)]
mod tests {
    use thrum_report::result::{Broker, Distribution};

    use super::*;

    const GOAL: Goal = Goal {
        p99_ns: 5_000_000,
        lost_part: 0.0,
        cpu_part: Some(0.75),
    };

    fn result() -> RunResult {
        let mut result = RunResult::default();
        result.validity.valid = true;
        result.verdict.pass = true;
        result.machine.cores = 4;
        result.scenario.stages.hold = 10.0;
        result.rates.offered = 1_000.0;
        result.rates.sent = 1_000.0;
        result.rates.received = 1_000.0;
        result.delivery.sent_messages = 10_000;
        result.delivery.expected = 10_000;
        let mut e2e = Distribution::default();
        e2e.quantiles.p99 = 4_000_000;
        result.latency_ns.e2e = Some(e2e);
        let mut broker = Broker::default();
        broker.usage.cores_avg = 2.0;
        result.brokers.push(broker);
        result
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut RunResult), grade: Grade, reason: &str) {
        let mut result = result();
        change(&mut result);
        let trial = Trial::judge(1_000.0, &result, &GOAL);
        assert_eq!(trial.grade, grade, "{:?}", trial.reasons);
        assert_eq!(trial.reasons.join(", "), reason);
    }

    #[test]
    fn a_broker_that_meets_every_limit_holds() {
        check(|_| {}, Grade::Held, "");
    }

    #[test]
    fn each_limit_fails_the_broker_with_its_figure() {
        let slow = |result: &mut RunResult| {
            result.latency_ns.e2e.as_mut().unwrap().quantiles.p99 = 6_000_000;
        };
        check(slow, Grade::Failed, "p99 6ms > 5ms");
        let lossy = |result: &mut RunResult| {
            result.delivery.lost = 3;
            result.verdict.faults = vec!["messages lost: 3".to_owned()];
        };
        check(lossy, Grade::Failed, "lost 3 of 10000");
        let busy = |result: &mut RunResult| result.brokers[0].usage.cores_avg = 3.2;
        check(busy, Grade::Failed, "CPU 80 % > 75 %");
        let blocked = |result: &mut RunResult| result.rates.sent = 900.0;
        check(
            blocked,
            Grade::Failed,
            "the broker took 90 % of the offered load",
        );
        let queued = |result: &mut RunResult| result.rates.received = 985.0;
        let text = "a queue grows: 1.5 % of the messages sent did not arrive in their turn";
        check(queued, Grade::Failed, text);
        check(|result| result.rates.received = 996.0, Grade::Held, "");
        let silent = |result: &mut RunResult| result.latency_ns.e2e = None;
        check(silent, Grade::Failed, "nothing arrived");
        let disordered = |result: &mut RunResult| {
            result.verdict.faults = vec!["messages out of order: 2".to_owned()];
        };
        check(disordered, Grade::Failed, "messages out of order: 2");
    }

    #[test]
    fn a_goal_for_a_cpu_that_is_not_measured_is_not_met() {
        let invisible = |result: &mut RunResult| result.brokers.clear();
        check(invisible, Grade::Limited, CPU_UNMEASURED);
        let elsewhere = |result: &mut RunResult| "10.0.0.5".clone_into(&mut result.brokers[0].host);
        check(elsewhere, Grade::Limited, CPU_UNMEASURED);
        let withheld = |result: &mut RunResult| {
            let reasons = &mut result.validity.withheld;
            reasons.insert("broker.cpu".to_owned(), "others used it".to_owned());
        };
        check(withheld, Grade::Limited, CPU_UNMEASURED);
        // It fails all the same where another condition is broken.
        let lossy = |result: &mut RunResult| {
            result.brokers.clear();
            result.delivery.lost = 3;
        };
        check(lossy, Grade::Failed, "lost 3 of 10000");
        let mut result = result();
        result.brokers.clear();
        let goal = Goal {
            cpu_part: None,
            ..GOAL
        };
        assert_eq!(Trial::judge(1.0, &result, &goal).grade, Grade::Held);
    }

    #[test]
    fn a_run_limited_by_the_generator_does_not_judge_the_broker() {
        let limited = |result: &mut RunResult| {
            result.validity.valid = false;
            result.validity.limits = vec!["a thread was busy 97 %".to_owned()];
            result.latency_ns.e2e.as_mut().unwrap().quantiles.p99 = 60_000_000;
        };
        check(limited, Grade::Limited, "a thread was busy 97 %");
    }

    #[test]
    fn a_latency_that_meets_the_goal_with_the_generators_part_is_held() {
        let figure = thrum_load::validity::Figure {
            name: "e2e.p99".to_owned(),
            seen_ns: 4_000_000,
            bound_ns: Some(3_000_000),
        };
        let cause = thrum_load::validity::Cause::System;
        let error = thrum_load::validity::Limit::Error { figure, cause }.to_string();
        let uncertain = |p99| {
            let error = error.clone();
            move |result: &mut RunResult| {
                result.validity.valid = false;
                result.validity.limits = vec![error];
                result.latency_ns.e2e.as_mut().unwrap().quantiles.p99 = p99;
            }
        };
        let met = format!("met with the generator's part: {error}");
        check(uncertain(4_000_000), Grade::Held, &met);
        check(uncertain(6_000_000), Grade::Limited, &error);
        let greedy = |result: &mut RunResult| {
            uncertain(6_000_000)(result);
            result.brokers[0].usage.cores_avg = 3.2;
        };
        check(greedy, Grade::Failed, "CPU 80 % > 75 %");
        let lossy = |result: &mut RunResult| {
            uncertain(4_000_000)(result);
            result.delivery.lost = 3;
        };
        check(lossy, Grade::Limited, &error);
        let busy = |result: &mut RunResult| {
            uncertain(4_000_000)(result);
            let busy = thrum_load::validity::Limit::Busy { share: 0.97 };
            result.validity.limits.push(busy.to_string());
        };
        let text = format!(
            "{error}, {}",
            thrum_load::validity::Limit::Busy { share: 0.97 }
        );
        check(busy, Grade::Limited, &text);
    }

    #[test]
    fn a_latency_that_only_the_generators_error_takes_beyond_the_goal_judges_nobody() {
        let unclear = |p99, bound| {
            move |result: &mut RunResult| {
                let e2e = result.latency_ns.e2e.as_mut().unwrap();
                e2e.quantiles.p99 = p99;
                let quantiles = thrum_report::result::Quantiles {
                    p99: bound,
                    ..Default::default()
                };
                e2e.bound = Some(quantiles);
            }
        };
        let text = "p99 5.4ms > 5ms, but 600µs of it may be the generator's";
        check(unclear(5_400_000, 600_000), Grade::Limited, text);
        check(
            unclear(5_400_000, 300_000),
            Grade::Failed,
            "p99 5.4ms > 5ms",
        );
        check(unclear(4_900_000, 900_000), Grade::Held, "");
    }

    #[test]
    fn a_withheld_p99_is_not_taken_for_one() {
        let withheld = |why: Withheld, max| {
            move |result: &mut RunResult| {
                let e2e = result.latency_ns.e2e.as_mut().unwrap();
                e2e.quantiles.max = max;
                e2e.withheld.insert("p99".to_owned(), why);
            }
        };
        let few = Withheld::TooFew {
            values: 50,
            needed: 1_000,
        };
        check(withheld(few, 4_000_000), Grade::Held, "");
        let text = "too few messages for a p99, and one took 9ms > 5ms: give a longer --hold";
        check(withheld(few, 9_000_000), Grade::Limited, text);
        let connecting = |result: &mut RunResult| {
            withheld(few, 9_000_000)(result);
            result.latency_ns.connect = result.latency_ns.e2e.take();
        };
        let text = "too few connections for a p99, and one took 9ms > 5ms: more clients are needed (--from 1010)";
        check(connecting, Grade::Limited, text);
        let missing = Withheld::Missing {
            missing: 43,
            of: 100,
            over: 1_000_000,
        };
        let text = "over 1 % of the messages never arrived";
        check(withheld(missing, 0), Grade::Failed, text);
    }

    #[test]
    fn a_run_ended_early_does_not_judge_the_broker() {
        let ended = |result: &mut RunResult| result.interrupted = true;
        check(
            ended,
            Grade::Limited,
            "ended early: the limit of the broker is unknown",
        );
    }

    #[test]
    fn losses_within_the_goal_are_no_failure() {
        let goal = Goal {
            lost_part: 0.001,
            ..GOAL
        };
        let mut result = result();
        result.delivery.lost = 3;
        result.verdict.faults = vec!["messages lost: 3".to_owned()];
        assert_eq!(Trial::judge(1.0, &result, &goal).grade, Grade::Held);
    }

    #[test]
    fn connections_are_judged_without_publishers() {
        let mut result = result();
        result.rates = thrum_report::result::Rates::default();
        result.latency_ns.connect = result.latency_ns.e2e.take();
        assert_eq!(Trial::judge(1.0, &result, &GOAL).grade, Grade::Held);
    }
}
