//! The flat list of figures.

use std::collections::BTreeMap;

use super::{Broker, Distribution, RunResult, ThreadLoad};
use thrum_figures::{fraction, ratio};

impl RunResult {
    /// Computes `metrics` from the other fields; unmeasured figures are omitted. With several
    /// brokers, `broker.*` is the first.
    pub fn fill_metrics(&mut self) {
        let mut metrics = Metrics(BTreeMap::new());
        self.rates_and_delivery(&mut metrics);
        self.connections(&mut metrics);
        if let Some(broker) = self.brokers.first() {
            self.of_broker(broker, &mut metrics);
        }
        self.of_generator(&mut metrics);
        for (name, distribution) in self.latency_ns.named() {
            let figures = distribution.map(Distribution::figures_in_use);
            for (figure, value) in figures.into_iter().flatten() {
                metrics.count(&format!("{name}.{figure}"), value);
            }
        }
        for name in self.validity.withheld.keys() {
            metrics.0.remove(name);
        }
        self.metrics = metrics.0;
    }

    /// Whether a figure was measured and is not to be used.
    pub fn withholds(&self, metric: &str) -> bool {
        let of_latency = || {
            let (distribution, figure) = metric.split_once('.')?;
            let found = self.latency_ns.find(distribution)?;
            Some(found.withheld.contains_key(figure))
        };
        self.validity.withheld.contains_key(metric) || of_latency().unwrap_or(false)
    }

    /// Whether messages were sent or due; a run without is one of connections.
    pub fn has_load(&self) -> bool {
        self.delivery.sent_messages > 0 || self.rates.offered > 0.0
    }

    /// The busiest and the longest waiting thread of all generators; none if none was watched.
    pub fn busiest_threads(&self) -> Option<ThreadLoad> {
        let agents = self
            .agents
            .iter()
            .flat_map(|agent| &agent.generator.threads);
        self.generator
            .threads
            .iter()
            .chain(agents)
            .copied()
            .reduce(|most, load| ThreadLoad {
                busy: most.busy.max(load.busy),
                busy_max: most.busy_max.max(load.busy_max),
                waited_for_core: most.waited_for_core.max(load.waited_for_core),
            })
    }

    fn rates_and_delivery(&self, metrics: &mut Metrics) {
        metrics.set("rate.offered", self.rates.offered);
        metrics.set("rate.sent", self.rates.sent);
        metrics.set("rate.received", self.rates.received);
        metrics.count("held_back", self.rates.held_back_messages);
        let delivery = &self.delivery;
        let promised = delivery.expected.saturating_sub(delivery.excused);
        if promised > 0 {
            metrics.set("delivered", ratio(delivery.delivered, promised));
        }
        for (name, count) in [
            ("lost", delivery.lost),
            ("excused", delivery.excused),
            ("duplicated", delivery.duplicated),
            ("reordered", delivery.reordered),
            ("misdelivered", delivery.misdelivered),
            ("wrong_qos", delivery.wrong_qos),
            ("wrong_topic", delivery.wrong_topic),
            ("wrong_retain", delivery.wrong_retain),
            ("wrong_payload", delivery.wrong_payload),
            ("refused", delivery.refused),
            ("errors", self.errors.iter().map(|error| error.count).sum()),
        ] {
            metrics.count(name, count);
        }
    }

    fn connections(&self, metrics: &mut Metrics) {
        let clients = &self.clients;
        metrics.count("clients.ready", clients.ready);
        metrics.count("connect.errors", clients.failed);
        metrics.set("connect.rate", clients.connect_rate);
        metrics.count("connections.lost", clients.lost);
        metrics.count("connections.reconnected", clients.reconnected);
    }

    fn of_broker(&self, broker: &Broker, metrics: &mut Metrics) {
        let usage = &broker.usage;
        metrics.set("broker.cores", usage.cores_avg);
        metrics.set("broker.cores.max", usage.cores_max);
        // The cores of another machine are not known.
        let cores = u64::try_from(self.machine.cores).unwrap_or(0);
        if broker.host.is_empty() && cores > 0 {
            metrics.set("broker.cpu", usage.cores_avg / fraction(cores));
            metrics.set("broker.cpu.max", usage.cores_max / fraction(cores));
        }
        let hold = self.scenario.stages.hold;
        if hold > 0.0 {
            let switches = usage.voluntary_context_switches + usage.involuntary_context_switches;
            metrics.set("broker.context_switches", fraction(switches) / hold);
        }
        for (name, bytes) in [
            ("broker.rss", usage.rss_max_bytes),
            ("broker.rss.avg", usage.rss_avg_bytes),
            ("broker.threads", usage.threads_max),
            ("broker.open_files", usage.open_files_max),
        ] {
            // No process has none of these: it was not read.
            if bytes > 0 {
                metrics.count(name, bytes);
            }
        }
        metrics.maybe("broker.cores.idle", usage.cores_idle);
        metrics.maybe("broker.cpu_per_message", usage.cpu_us_per_message);
        metrics.maybe("machine.cpu_per_message", usage.machine.cpu_us_per_message);
        metrics.set("machine.stolen", usage.machine.stolen);
        metrics.maybe("broker.messages_per_core", usage.messages_per_core_second);
        metrics.maybe("broker.rss.stable", usage.rss_stable_seconds);
        metrics.maybe("broker.bytes_per_connection", usage.bytes_per_connection);
        let of_kernel = usage.machine.kernel_bytes_per_connection;
        metrics.maybe("machine.kernel_bytes_per_connection", of_kernel);
    }

    fn of_generator(&self, metrics: &mut Metrics) {
        let busiest = self.busiest_threads().map(|threads| threads.busy);
        metrics.maybe("generator.busiest_thread", busiest);
        let Some(usage) = &self.generator.usage else {
            return;
        };
        metrics.set("generator.cores", usage.cores_avg);
        metrics.maybe("generator.cpu_per_message", usage.cpu_us_per_message);
        metrics.maybe("generator.bytes_per_connection", usage.bytes_per_connection);
    }
}

struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    fn set(&mut self, name: &str, value: f64) {
        // JSON has no infinity, and NaN cannot be compared.
        if value.is_finite() {
            self.0.insert(name.to_owned(), value);
        }
    }

    fn count(&mut self, name: &str, value: u64) {
        self.set(name, fraction(value));
    }

    fn maybe(&mut self, name: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::metric;
    use crate::result::{Delivery, RunResult};
    use crate::sample;

    #[test]
    fn every_figure_has_a_name_of_the_list() {
        let run = sample::run();
        for name in run.metrics.keys() {
            assert!(metric::find(name).is_some(), "{name}");
        }
        let missing: Vec<_> = metric::names()
            .filter(|name| !run.metrics.contains_key(*name))
            .collect();
        assert_eq!(missing, Vec::<&str>::new());
    }

    #[test]
    fn unmeasured_figures_are_left_out() {
        let mut run = RunResult::default();
        run.fill_metrics();
        for name in ["delivered", "broker.rss", "e2e.p99", "generator.cores"] {
            assert!(!run.metrics.contains_key(name), "{name}");
        }
        assert!(run.metrics.contains_key("lost"));
    }

    #[test]
    fn excused_deliveries_are_not_missed() {
        let mut run = RunResult {
            delivery: Delivery {
                expected: 110,
                delivered: 99,
                lost: 1,
                excused: 10,
                ..Delivery::default()
            },
            ..RunResult::default()
        };
        run.fill_metrics();
        assert!((run.metrics["delivered"] - 0.99).abs() < 1e-12);
    }

    #[test]
    fn figures_of_the_broker_are_derived_from_its_usage() {
        let run = sample::run();
        let of = |name: &str| run.metrics[name];
        assert!((of("broker.cpu") - 0.25).abs() < 1e-12);
        assert!((of("broker.context_switches") - 100.0).abs() < 1e-9);
        assert!((of("generator.busiest_thread") - 0.4).abs() < 1e-12);
    }
}
