//! Which charts a run has.

use crate::latencies;
use crate::metric::Unit;
use crate::result::{Distribution, Quantiles, Resources, RunResult, Second, Stage};
use crate::svg::{
    Drawing, HeatColumn, HeatMap, Limit, LineChart, PercentileChart, PercentileLine, Point, Series,
    StageBand, TimeMark,
};
use thrum_figures::{self as units, fraction};

/// Shorter pieces of a second have no rate: a few messages would look like a burst.
const RATE_SPAN_MIN: f64 = 0.25;

/// A drawing with what to know about it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chart {
    /// Its anchor.
    pub(crate) id: &'static str,
    /// The drawing.
    pub(crate) drawing: Drawing,
    /// Its contents and its limits.
    pub(crate) caption: String,
    /// The run is INVALID, and what it shows may be the generator's.
    pub(crate) is_void: bool,
}

impl Chart {
    /// Its place among what a reader looks for first: rates, the latency that the run is about, its
    /// percentiles; none for the others.
    pub(crate) fn main_place(&self, result: &RunResult) -> Option<usize> {
        let main = result.latency_ns.main().map(|(name, _)| match name {
            "publish_response" => "publish_ack",
            name => name,
        });
        match self.id {
            "rate" => Some(0),
            id if Some(id) == main => Some(1),
            "percentiles" => Some(2),
            "clients" if !result.has_load() => Some(3),
            _ => None,
        }
    }
}

/// All charts that the run has figures for.
pub(crate) fn charts(result: &RunResult, points_max: usize) -> Vec<Chart> {
    let source = Source::new(result, points_max);
    [
        source.rates(),
        source.latency("e2e", "Response time (e2e)", |second| second.e2e, E2E),
        source.percentiles(),
        source.heat(),
        source.latency("service", "Service time", |second| second.service, SERVICE),
        source.latency(
            "publish_ack",
            "Time to acknowledgement",
            |second| second.publish_ack,
            ACK,
        ),
        source.clients(),
        source.trouble(),
        source.latency("connect", "Connect time", |second| second.connect, CONNECT),
        source.latency(
            "reconnect",
            "Reconnection delay",
            |second| second.reconnect,
            RECONNECT,
        ),
        source.cpu("broker-cpu", "Broker CPU", "broker.cores", |second| {
            second.broker
        }),
        source.memory(),
        source.network(),
        source.cpu(
            "generator-cpu",
            "Generator CPU",
            "generator.cores",
            |second| second.generator,
        ),
        source.latency(
            "generator_lag",
            "Generator lag",
            |second| second.delays.sending,
            LAG,
        ),
    ]
    .into_iter()
    .flatten()
    .map(|chart| Chart {
        is_void: is_void(result, chart.id),
        ..chart
    })
    .collect()
}

/// Whether what a chart shows may be the generator's.
fn is_void(result: &RunResult, id: &str) -> bool {
    let withheld = &result.validity.withheld;
    match id {
        "percentiles" => {
            let main = result.latency_ns.main();
            main.is_some_and(|(name, _)| latencies::is_void(result, name))
        }
        "heat" => latencies::is_void(result, "e2e"),
        "broker-cpu" => withheld.contains_key("broker.cores.max"),
        name => latencies::is_void(result, name),
    }
}

const E2E: &str = "From the moment a message was due to its arrival. A broker that makes the publisher wait does not \
    get a better figure for it. Generator: what of the p99 may be the generator's, at most.";
const SERVICE: &str = "From the actual send to the arrival. The rest of the response time is waiting before the send.";
const ACK: &str = "From PUBLISH to PUBACK (QoS 1) or PUBCOMP (QoS 2).";
const CONNECT: &str = "From opening the connection to CONNACK.";
const RECONNECT: &str = "From the loss of a connection to being ready again.";
const LAG: &str = "How late the generator itself sent. Where this is high, the latencies above are not the broker's.";

/// The run and what all its charts share.
struct Source<'run> {
    result: &'run RunResult,
    seconds: f64,
    stages: Vec<StageBand>,
    marks: Vec<TimeMark>,
    points_max: usize,
}

impl<'run> Source<'run> {
    fn new(result: &'run RunResult, points_max: usize) -> Self {
        let end = result
            .series
            .last()
            .map_or(0.0, |second| second.at + second.span);
        let marks = result.marks.iter().map(|mark| TimeMark {
            at: mark.at,
            text: mark.text.clone(),
        });
        Self {
            result,
            seconds: end,
            stages: stages(&result.series),
            marks: marks.collect(),
            points_max,
        }
    }

    fn line(&self, name: &str, value: impl Fn(&Second) -> Option<f64>) -> Series {
        let points = self
            .result
            .series
            .iter()
            .map(|second| (second.at, value(second)));
        Series {
            name: name.to_owned(),
            points: points.collect(),
        }
    }

    /// Events per second; a piece of a second too short for a rate counts as the one before it in
    /// its stage, and as a gap where a stage begins with it.
    fn rate(&self, name: &str, events: impl Fn(&Second) -> u64) -> Series {
        let mut stage = None;
        let points = self.result.series.iter().filter_map(|second| {
            let is_long = second.span >= RATE_SPAN_MIN;
            let begins = stage.replace(second.stage) != Some(second.stage);
            let rate = is_long.then(|| fraction(events(second)) / second.span);
            (is_long || begins).then_some((second.at, rate))
        });
        Series {
            name: name.to_owned(),
            points: points.collect::<Vec<Point>>(),
        }
    }

    fn chart(&self, title: &str, axis: &str, unit: Unit, series: Vec<Series>) -> LineChart {
        LineChart {
            title: title.to_owned(),
            axis: axis.to_owned(),
            unit,
            series,
            seconds: self.seconds,
            stages: self.stages.clone(),
            marks: self.marks.clone(),
            points_max: self.points_max,
            ..LineChart::default()
        }
    }

    /// Limits of the run on figures that this chart shows.
    fn limits(&self, shown: impl Fn(&str) -> bool) -> Vec<Limit> {
        let here = self
            .result
            .thresholds
            .iter()
            .filter(|threshold| shown(&threshold.metric));
        here.map(|threshold| Limit {
            value: threshold.limit,
            text: format!("limit {} {}", threshold.metric, threshold.condition),
        })
        .collect()
    }

    fn rates(&self) -> Option<Chart> {
        let mut series = vec![
            self.rate("offered", |second| second.offered),
            self.rate("sent", |second| second.sent),
            self.rate("received", |second| second.received),
        ];
        if self.result.series.iter().any(|second| second.held_back > 0) {
            series.push(self.rate("held back", |second| second.held_back));
        }
        let loaded = self
            .result
            .series
            .iter()
            .any(|second| second.offered + second.received > 0);
        let mut chart = self.chart(
            "Message rate",
            "messages per second",
            Unit::PerSecond,
            series,
        );
        chart.limits = self.limits(|metric| metric.starts_with("rate."));
        let caption = "Offered: due by the schedule. Sent: taken by the broker. Received: arrived at subscribers. \
            Held back: due, and not taken in time.";
        loaded
            .then(|| chart.draw())
            .flatten()
            .map(|drawing| chart_of("rate", drawing, caption))
    }

    fn latency(
        &self,
        id: &'static str,
        title: &str,
        quantiles: impl Fn(&Second) -> Option<Quantiles>,
        caption: &str,
    ) -> Option<Chart> {
        let quantiles = &quantiles;
        let line = |name, value: fn(&Quantiles) -> u64| {
            self.line(name, |second| {
                quantiles(second).map(|found| fraction(value(&found)))
            })
        };
        let series = vec![
            line("p50", |quantiles| quantiles.p50),
            line("p99", |quantiles| quantiles.p99),
            line("max", |quantiles| quantiles.max),
        ];
        let axis = "of each second, log scale";
        let mut chart = self.chart(title, axis, Unit::Nanoseconds, series);
        chart.log = true;
        let bound = |second: &Second| second.delays.e2e_bound.map(|bound| fraction(bound.p99));
        let is_known = self
            .result
            .series
            .iter()
            .any(|second| bound(second).is_some());
        if id == "e2e" && is_known {
            chart.band = Some(self.line("generator", bound));
        }
        chart.limits = self.limits(|metric| {
            metric
                .strip_prefix(id)
                .and_then(|rest| rest.strip_prefix('.'))
                .is_some_and(|figure| figure != "count")
        });
        chart.draw().map(|drawing| chart_of(id, drawing, caption))
    }

    fn percentiles(&self) -> Option<Chart> {
        let latencies = &self.result.latency_ns;
        let response = latencies.publish_response.as_ref();
        let line = |name: &str, distribution: Option<&Distribution>| {
            distribution.map(|found| PercentileLine {
                name: name.to_owned(),
                count: found.quantiles.count,
                missing: found.missing,
                curve: found.curve.clone(),
            })
        };
        let lines = [
            line("e2e", latencies.e2e.as_ref()),
            line("service", latencies.service.as_ref()),
            line("response", response.filter(|_| latencies.e2e.is_none())),
            line("ack", latencies.publish_ack.as_ref()),
            line("connect", latencies.connect.as_ref()),
        ];
        let chart = PercentileChart {
            title: "Percentiles of the hold".to_owned(),
            axis: "latency, log scale".to_owned(),
            lines: lines.into_iter().flatten().collect(),
        };
        let caption = "From HDR histograms of every single message of the hold. Each step to the right is ten times rarer. \
            A line ends where fewer than ten messages lie beyond it. e2e: response time. service: service time. ack: \
            publish to acknowledgement.";
        chart
            .draw()
            .map(|drawing| chart_of("percentiles", drawing, caption))
    }

    fn heat(&self) -> Option<Chart> {
        let column = |second: &Second| HeatColumn {
            at: second.at,
            span: second.span,
            quantiles: second.e2e,
        };
        let map = HeatMap {
            title: "Where response times lie".to_owned(),
            axis: "latency, log scale".to_owned(),
            seconds: self.seconds,
            columns: self.result.series.iter().map(column).collect(),
            stages: self.stages.clone(),
            marks: self.marks.clone(),
        };
        let merged = match map.column_seconds() {
            1 => "Each column is one second.".to_owned(),
            seconds => {
                format!("Each column is {seconds} s and shows the highest of each quantile in it.")
            }
        };
        let caption = format!(
            "Shades end at p50, p90, p99, p99.9 and max: half of the messages lie in the darkest, a thousandth in \
             the lightest. Drawn from the quantiles of seconds, not from single messages. {merged}"
        );
        map.draw()
            .map(|drawing| chart_of("heat", drawing, &caption))
    }

    fn clients(&self) -> Option<Chart> {
        let series = vec![
            self.line("up", |second| Some(fraction(second.up))),
            self.rate("ready/s", |second| second.connected),
            self.rate("failed/s", |second| second.failed),
        ];
        let chart = self.chart("Clients", "clients", Unit::Count, series);
        let caption = "Up: connected and subscribed. Ready and failed: clients that became ready or gave up in each second.";
        chart
            .draw()
            .map(|drawing| chart_of("clients", drawing, caption))
    }

    fn trouble(&self) -> Option<Chart> {
        let series = vec![
            self.rate("lost", |second| second.lost),
            self.rate("failed", |second| second.failed),
        ];
        let axis = "connections per second";
        let chart = self.chart("Connections lost and failed", axis, Unit::PerSecond, series);
        let caption = "Lost: were up, those cut on purpose included. Failed: did not get ready.";
        chart
            .draw()
            .map(|drawing| chart_of("trouble", drawing, caption))
    }

    fn cpu(
        &self,
        id: &'static str,
        title: &str,
        metric: &str,
        of: impl Fn(&Second) -> Option<Resources>,
    ) -> Option<Chart> {
        let of = &of;
        let line = |name, cores: fn(&Resources) -> f64| {
            self.line(name, |second| of(second).map(|used| cores(&used)))
        };
        let series = vec![
            line("total", |used| used.cores_user + used.cores_system),
            line("user", |used| used.cores_user),
            line("system", |used| used.cores_system),
        ];
        let mut chart = self.chart(title, "cores in use", Unit::Cores, series);
        chart.limits = self.limits(|name| name == metric || name == format!("{metric}.max"));
        let caption = "1 is one core of the machine, fully busy. Child processes are included.";
        chart.draw().map(|drawing| chart_of(id, drawing, caption))
    }

    fn memory(&self) -> Option<Chart> {
        let resident = |second: &Second| second.broker.map(|used| fraction(used.rss_bytes));
        let series = vec![self.line("resident", resident)];
        let mut chart = self.chart("Broker memory", "resident memory", Unit::Bytes, series);
        chart.limits = self.limits(|metric| metric == "broker.rss" || metric == "broker.rss.avg");
        let caption = "Resident memory of the broker with its children.";
        chart
            .draw()
            .map(|drawing| chart_of("broker-memory", drawing, caption))
    }

    /// Of the broker's machine if it was watched, else of the generator's sockets.
    fn network(&self) -> Option<Chart> {
        let watched = self
            .result
            .series
            .iter()
            .any(|second| second.broker.is_some());
        let (title, caption, series) = if watched {
            let traffic = |name, bytes: fn(&Resources) -> f64| {
                self.line(name, |second| second.broker.map(|used| bytes(&used)))
            };
            (
                "Network of the broker's machine, all processes",
                "All interfaces with the loopback, for all processes: the kernel does not report the broker's part.",
                vec![
                    traffic("in", |used| used.network_in_bytes),
                    traffic("out", |used| used.network_out_bytes),
                ],
            )
        } else {
            (
                "Network of the generator",
                "Bytes written to and read from the generator's sockets.",
                vec![
                    self.rate("sent", |second| second.bytes_sent),
                    self.rate("received", |second| second.bytes_received),
                ],
            )
        };
        let chart = self.chart(title, "bytes per second", Unit::Bytes, series);
        chart
            .draw()
            .map(|drawing| chart_of("network", drawing, caption))
    }
}

fn chart_of(id: &'static str, drawing: Drawing, caption: &str) -> Chart {
    Chart {
        id,
        drawing,
        caption: caption.to_owned(),
        is_void: false,
    }
}

/// Neighbouring seconds of the same stage as one band.
fn stages(series: &[Second]) -> Vec<StageBand> {
    series
        .chunk_by(|left, right| left.stage == right.stage)
        .filter_map(|seconds| {
            let (first, last) = (seconds.first()?, seconds.last()?);
            Some(StageBand {
                stage: first.stage,
                from: first.at,
                to: last.at + last.span,
            })
        })
        .collect()
}

/// A stage and its duration in seconds, as text.
pub(super) fn stage_text(stage: Stage, seconds: f64) -> String {
    let name = match stage {
        Stage::Ramp => "ramp",
        Stage::WarmUp => "warm-up",
        Stage::Hold => "hold",
        Stage::Drain => "drain",
    };
    let span = std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default();
    format!("{name} {}", units::span(span))
}
