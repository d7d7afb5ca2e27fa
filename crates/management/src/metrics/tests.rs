//! Whole expositions: their form, the guide, the dashboard and the rules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::Value as Json;
use thrum_broker::config::Workers;
use thrum_broker::{
    Access, Broker, ClassOfTime, CleaningFigures, Config, ExportFigures, ListenerFigures,
    SinkCounts, SinkFigures, StageFigures, StorageFigures,
};

use super::family::{Kind, Unit};
use super::promql::{Named, named};
use super::*;
use crate::program::BenchmarkActivity;

/// The figures of a broker of two workers, without listeners, that has just started.
pub(super) fn figures_of_a_broker() -> Figures {
    let mut config = Config::default();
    config.node.workers = Workers::Count(2);
    config.listeners.clear();
    let broker = Broker::start(config, Access::default()).expect("it needs no port");
    let counted = broker.queries().add_topic_metric("site/#");
    assert_eq!(counted, Ok(true));
    let figures = broker.queries().figures();
    broker.stop();
    figures
}

/// Figures of a broker that has everything.
fn figures_of_everything() -> Figures {
    let counters = [
        "storage/bytes/needed",
        "storage/bytes/used",
        "storage/bytes/maximum",
        "storage/bytes/written",
        "storage/bytes/waiting",
        "storage/sessions",
        "storage/messages",
        "storage/commits",
        "storage/commits/failed",
        "storage/damaged",
    ];
    let class = |micros_below, count| ClassOfTime {
        micros_below,
        count,
    };
    let of_backend = ["allowed", "denied", "ignored", "errors", "timeouts"];
    let of_backend = of_backend.into_iter().chain(["cache/hits", "cache/misses"]);
    let of_logins = ["allowed", "denied", "overloaded", "pending"];
    let of_logins = of_logins.map(|figure| format!("authentication/{figure}"));
    let backends = of_backend
        .flat_map(|figure| {
            let parts = ["authentication", "authorization"];
            parts.map(|part| format!("{part}/backends/users/{figure}"))
        })
        .chain(of_logins);
    let mut figures = figures_of_a_broker();
    figures.node.memory_limit_bytes = Some(1 << 30);
    figures.process.open_files.get_or_insert(20);
    figures.backends = backends.zip(1..).collect();
    figures.exports = ["metrics", "logs", "traces"]
        .map(|signal| ExportFigures {
            signal,
            ..ExportFigures::default()
        })
        .to_vec();
    figures.storage = Some(StorageFigures {
        health: "healthy",
        counters: counters.into_iter().zip(1..).collect(),
        commit_times: vec![class(Some(1), 0), class(Some(2), 3), class(None, 4)],
        commit_micros: 12,
        cleaning: CleaningFigures::default(),
    });
    figures.listeners = vec![ListenerFigures {
        name: "mqtt".into(),
        connections: 3,
        connections_max: Some(10),
    }];
    figures.sinks = vec![SinkFigures {
        name: "file".to_owned(),
        counts: SinkCounts {
            offered: 1,
            written: 2,
            dropped: 3,
            failures: 4,
            waiting: 5,
            waiting_bytes: 6,
        },
    }];
    figures.stages = Some(StageFigures::full(1));
    figures
}

/// Figures of an interface that has just started.
fn interface() -> InterfaceFigures {
    let security = Security::open(None, None).expect("it is in memory");
    InterfaceFigures {
        benchmarks: Some(BenchmarkActivity::default()),
        ..security.figures()
    }
}

/// One alarm is raised.
const ALARMS: [(&str, u64); 2] = [("overload", 1), ("storage_full", 0)];

/// Every family that there can be.
fn everything() -> Vec<Family> {
    families(&figures_of_everything(), Some(&interface()), &ALARMS)
}

fn text(format: Format) -> String {
    let bytes = exposition(
        &figures_of_everything(),
        Some(&interface()),
        &ALARMS,
        format,
    );
    String::from_utf8(bytes).expect("text is UTF-8")
}

/// The labels of a line, and what is in front of and behind them.
fn parsed(line: &str) -> (String, BTreeMap<String, String>, f64) {
    let (series, value) = line.rsplit_once(' ').expect("a value");
    let value = value.parse().expect("a number");
    let Some((name, labels)) = series.split_once('{') else {
        return (series.to_owned(), BTreeMap::new(), value);
    };
    let labels = labels.strip_suffix('}').expect("closed labels");
    let labels = labels.split(',').map(|label| {
        let (name, value) = label.split_once('=').expect("a label");
        let value = value
            .strip_prefix('"')
            .and_then(|value| value.strip_suffix('"'));
        (name.to_owned(), value.expect("in quotes").to_owned())
    });
    (name.to_owned(), labels.collect(), value)
}

/// The values of each label of each metric that Prometheus stores.
static STORED: LazyLock<BTreeMap<String, BTreeMap<String, BTreeSet<String>>>> =
    LazyLock::new(stored);

fn stored() -> BTreeMap<String, BTreeMap<String, BTreeSet<String>>> {
    let mut stored: BTreeMap<_, BTreeMap<_, BTreeSet<_>>> = BTreeMap::new();
    for line in text(Format::Text)
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let (name, labels, _) = parsed(line);
        let known = stored.entry(name).or_default();
        for (label, value) in labels {
            known.entry(label).or_default().insert(value);
        }
    }
    stored
}

#[test]
fn every_series_belongs_to_the_metric_above_it_and_is_there_once() {
    for format in [Format::Text, Format::OpenMetrics] {
        let text = text(format);
        let (mut family, mut kind) = (String::new(), String::new());
        let (mut families, mut series) = (BTreeSet::new(), BTreeSet::new());
        for line in text.lines().filter(|line| *line != "# EOF") {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                family = rest.split(' ').next().unwrap().to_owned();
                assert!(families.insert(family.clone()), "{family} is there twice");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, found) = rest.split_once(' ').unwrap();
                assert_eq!(name, family);
                found.clone_into(&mut kind);
            } else if let Some(rest) = line.strip_prefix("# UNIT ") {
                let (name, unit) = rest.split_once(' ').unwrap();
                assert!(name == family && name.ends_with(unit), "{line}");
            } else {
                let (name, labels, value) = parsed(line);
                let suffix = name.strip_prefix(&*family).expect(line);
                let suffixes: &[&str] = match &*kind {
                    "histogram" => &["_bucket", "_sum", "_count"],
                    "counter" if format == Format::OpenMetrics => &["_total"],
                    "info" => &["_info"],
                    _ => &[""],
                };
                assert!(suffixes.contains(&suffix) && value >= 0.0, "{line}");
                assert!(series.insert((name, labels)), "{line} is there twice");
            }
        }
        assert_eq!(text.ends_with("\n# EOF\n"), format == Format::OpenMetrics);
        assert!(families.len() > 90, "{}", families.len());
    }
}

#[test]
fn buckets_grow_up_to_the_count() {
    let mut last: BTreeMap<_, f64> = BTreeMap::new();
    let mut histograms = 0;
    for line in text(Format::Text)
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let (name, mut labels, value) = parsed(line);
        if let Some(name) = name.strip_suffix("_bucket") {
            labels.remove("le");
            let before = last.insert((name.to_owned(), labels), value);
            assert!(before.unwrap_or_default() <= value, "{line}");
        } else if let Some(name) = name.strip_suffix("_count") {
            assert_eq!(last.get(&(name.to_owned(), labels)), Some(&value), "{line}");
            histograms += 1;
        }
    }
    assert_eq!(histograms, 14);
}

#[test]
fn a_broker_without_parts_tells_nothing_about_them() {
    let mut figures = figures_of_a_broker();
    figures.stages = None;
    let text = exposition(&figures, None, &[], Format::Text);
    let text = String::from_utf8(text).unwrap();
    for absent in [
        "storage",
        "sink_messages_offered",
        "backend",
        "listener",
        "message_stage",
        "stamped",
    ] {
        assert!(!text.contains(&format!("thrum_{absent}")), "{absent}");
    }
    assert!(text.contains("thrum_messages_dropped_total{reason=\"queue_full\"} 0"));
    assert!(text.contains("\nthrum_build_info{version=\""));
}

#[test]
fn names_and_help_follow_the_conventions() {
    for family in everything() {
        let (name, help) = (family.name, family.help);
        let is_ours = name.starts_with("thrum_") || name.starts_with("process_");
        assert!(is_ours && !name.ends_with("_total"), "{name}");
        let sentences = help.matches(". ").count() + usize::from(help.ends_with('.'));
        assert!(sentences == 1 && help.ends_with('.'), "{name}: {help}");
        if family.kind == Kind::Histogram {
            assert_eq!(family.unit, Unit::Seconds, "{name}");
        }
        for sample in &family.samples {
            let mut labels = sample.labels.iter().map(|(label, _)| *label);
            assert!(!labels.any(|label| ["client_id", "topic", "user"].contains(&label)));
        }
    }
}

#[test]
fn the_protobuf_format_has_every_metric() {
    let bytes = exposition(
        &figures_of_everything(),
        Some(&interface()),
        &ALARMS,
        Format::Protobuf,
    );
    for family in everything() {
        let name = family.name.as_bytes();
        assert!(bytes.windows(name.len()).any(|part| part == name));
    }
}

/// The table of the guide.
fn table() -> String {
    let mut table = "| metric | type | labels | meaning |\n|---|---|---|---|\n".to_owned();
    for family in everything() {
        let (suffix, kind) = match family.kind {
            Kind::Counter => ("_total", "counter"),
            Kind::Gauge => ("", "gauge"),
            Kind::Histogram => ("", "histogram"),
            Kind::Info => ("_info", "info"),
        };
        let labels = family.samples[0].labels.iter();
        let labels: Vec<String> = labels.map(|(label, _)| format!("`{label}`")).collect();
        let (name, labels, help) = (family.name, labels.join(", "), family.help);
        let row = [
            format!("`{name}{suffix}`"),
            kind.to_owned(),
            labels,
            help.to_owned(),
        ];
        table.push_str("| ");
        table.push_str(&row.join(" | "));
        table.push_str(" |\n");
    }
    table
}

/// `UPDATE_METRICS=1 cargo test -p thrum-management guide` writes the table.
#[test]
fn the_guide_lists_every_metric() {
    const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/metrics.md");
    const BEGIN: &str = "<!-- metrics: begin -->\n";
    const END: &str = "<!-- metrics: end -->";
    let guide = std::fs::read_to_string(GUIDE).unwrap();
    let (before, rest) = guide
        .split_once(BEGIN)
        .expect("the guide has a place for it");
    let (found, after) = rest.split_once(END).expect("the place ends");
    let expected = table();
    if std::env::var_os("UPDATE_METRICS").is_some() {
        let text = format!("{before}{BEGIN}{expected}{END}{after}");
        std::fs::write(GUIDE, text).unwrap();
        return;
    }
    assert!(found == expected, "the guide should have\n{expected}");
}

/// Labels that Prometheus adds.
const OF_SCRAPES: [&str; 2] = ["job", "instance"];

/// Panics unless each metric, label and value of a query exists.
fn check(query: &str) {
    let stored = &*STORED;
    let Named { selectors, labels } = named(query);
    assert!(!selectors.is_empty(), "{query}: no metric");
    let mut known: BTreeSet<&str> = OF_SCRAPES.into_iter().collect();
    for selector in &selectors {
        let metric = &selector.metric;
        // Prometheus makes it for each target.
        if metric == "up" {
            continue;
        }
        let of_metric = stored
            .get(metric)
            .unwrap_or_else(|| panic!("{query}: no {metric}"));
        known.extend(of_metric.keys().map(String::as_str));
        for matcher in &selector.matchers {
            let label = &*matcher.label;
            if OF_SCRAPES.contains(&label) {
                continue;
            }
            let values = of_metric.get(label);
            let values = values.unwrap_or_else(|| panic!("{query}: {metric} has no {label}"));
            let mut alternatives = matcher.value.split('|');
            let is_text = |value: &&str| !value.contains(['$', '.', '*', '+']);
            assert!(
                alternatives.all(|value| !is_text(&value) || values.contains(value)),
                "{query}: {label} of {metric} is one of {values:?}"
            );
        }
    }
    for label in labels {
        assert!(
            known.contains(&*label),
            "{query}: nothing has the label {label}"
        );
    }
}

#[test]
fn every_query_of_the_dashboard_finds_its_metrics() {
    let text = include_str!("../../../../deploy/grafana/thrum.json");
    let dashboard: Json = serde_json::from_str(text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let (mut queries, mut places) = (0, BTreeSet::new());
    for panel in panels {
        let title = panel["title"].as_str().unwrap();
        assert!(places.insert(panel["id"].as_u64().unwrap()), "{title}");
        if panel["type"] == "row" {
            continue;
        }
        let description = panel["description"].as_str().unwrap();
        assert!(description.ends_with('.'), "{title}: {description}");
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{title} has no query");
        for target in targets {
            let query = target["expr"].as_str().unwrap();
            assert!(query.contains("job=~\"$job\""), "{title}: {query}");
            check(query);
            queries += 1;
        }
    }
    assert!(queries > 40, "{queries}");
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        if variable["type"] == "query" {
            let query = variable["query"]["query"].as_str().unwrap();
            let inside = query.strip_prefix("label_values(").unwrap();
            let (metric, _) = inside.rsplit_once(',').unwrap();
            check(metric);
        }
    }
}

#[test]
fn every_rule_finds_its_metrics_and_says_what_to_do() {
    let rules = include_str!("../../../../deploy/grafana/alerts.yml");
    let mut names = BTreeSet::new();
    let alerts = rules.split("\n      - alert: ").skip(1);
    for alert in alerts {
        let mut lines = alert.lines();
        let name = lines.next().unwrap();
        assert!(names.insert(name), "{name} is there twice");
        let field = |field: &str| {
            let found = alert.lines().find_map(|line| {
                let value = line.trim_start().strip_prefix(field)?;
                value.strip_prefix(": ")
            });
            found.unwrap_or_else(|| panic!("{name} has no {field}"))
        };
        check(field("expr"));
        assert!(["warning", "critical"].contains(&field("severity")));
        assert!(field("for").ends_with('m'), "{name}");
        for text in ["summary", "description"] {
            assert!(field(text).ends_with(".\""), "{name}: {text}");
        }
        // A value of `expr` that the parser of the rules would read otherwise.
        assert!(
            !field("expr").contains(": ") && !field("expr").contains(" #"),
            "{name}"
        );
    }
    assert_eq!(names.len(), rules.matches("alert:").count());
    assert!(names.len() > 15, "{}", names.len());
}

#[test]
#[should_panic(expected = "no thrum_messages_lost_total")]
fn a_query_for_a_metric_that_does_not_exist_is_found() {
    check("sum(rate(thrum_messages_lost_total[5m]))");
}

#[test]
#[should_panic(expected = "has no cause")]
fn a_query_for_a_label_that_does_not_exist_is_found() {
    check("thrum_messages_dropped_total{cause=\"queue_full\"}");
}

#[test]
#[should_panic(expected = "is one of")]
fn a_query_for_a_value_that_does_not_exist_is_found() {
    check("thrum_messages_dropped_total{reason=~\"queue_full|full_queue\"}");
}

#[test]
#[should_panic(expected = "nothing has the label listener")]
fn a_query_that_groups_by_an_unknown_label_is_found() {
    check("sum by (instance, listener) (thrum_clients_connected)");
}
