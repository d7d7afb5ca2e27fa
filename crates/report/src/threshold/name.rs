//! Names of figures as people write them.

use crate::metric::{self, Metric};

/// Other names of figures.
const ALIASES: [(&str, &str); 15] = [
    ("rate", "rate.received"),
    ("throughput", "rate.received"),
    ("delivery", "delivered"),
    ("loss", "lost"),
    ("duplicates", "duplicated"),
    ("disconnects", "connections.lost"),
    ("connect.failed", "connect.errors"),
    ("broker.cores.avg", "broker.cores"),
    ("broker.cpu.avg", "broker.cpu"),
    ("broker.rss.max", "broker.rss"),
    ("broker.memory", "broker.rss"),
    ("broker.memory.avg", "broker.rss.avg"),
    ("cpu", "broker.cpu"),
    ("memory", "broker.rss"),
    ("rss", "broker.rss"),
];

/// Other names of distributions.
const DISTRIBUTION_ALIASES: [(&str, &str); 5] = [
    ("latency", "e2e"),
    ("response", "e2e"),
    ("ack", "publish_ack"),
    ("puback", "publish_ack"),
    ("lag", "generator_lag"),
];

/// Other names of the figures of a distribution.
const FIGURE_ALIASES: [(&str, &str); 4] = [
    ("avg", "mean"),
    ("median", "p50"),
    ("p999", "p99.9"),
    ("p9999", "p99.99"),
];

/// The figure of a name or of another name for it.
pub(super) fn find(name: &str) -> Option<Metric> {
    if let Some(metric) = metric::find(renamed(name, &ALIASES)) {
        return Some(metric);
    }
    let (distribution, figure) = name.split_once('.')?;
    let distribution = renamed(distribution, &DISTRIBUTION_ALIASES);
    let figure = renamed(figure, &FIGURE_ALIASES);
    metric::find(&format!("{distribution}.{figure}"))
}

/// The name of a figure that takes the fewest changes to write.
pub(super) fn closest(name: &str) -> &'static str {
    let aliases = ALIASES.iter().map(|(alias, _)| *alias);
    let known = metric::names().chain(aliases);
    known
        .min_by_key(|known| strsim::levenshtein(name, known))
        .unwrap_or_default()
}

fn renamed<'a>(name: &'a str, aliases: &[(&'static str, &'static str)]) -> &'a str {
    let found = aliases.iter().find(|(alias, _)| *alias == name);
    found.map_or(name, |(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_alias_names_a_figure() {
        for (alias, name) in ALIASES {
            assert_eq!(find(alias).map(|metric| metric.name), Some(name));
        }
        assert_eq!(
            find("ack.p999").map(|metric| metric.name),
            Some("publish_ack.p99.9")
        );
        assert_eq!(find("e2e.avg").map(|metric| metric.name), Some("e2e.mean"));
        assert_eq!(find("e2e"), None);
    }

    #[test]
    fn a_slip_finds_the_name_that_was_meant() {
        assert_eq!(closest("troughput"), "throughput");
        assert_eq!(closest("conections.lost"), "connections.lost");
    }
}
