//! The forms of a report that are drawn, seen from outside.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use resvg::usvg::roxmltree::Document;
use thrum_report::html::{PAGE_BYTES_MAX, PageError, PageOptions, page, versus_page};
use thrum_report::result::{ErrorCount, GroupDescription, Mark, RunResult, Second, Stage};
use thrum_report::svg::Palette;
use thrum_report::{png, versus};

mod sample;

/// Markup that must be escaped in the output, in a name of any kind.
const HOSTILE: &str = "</script><svg onload=alert(1)>\"'&{{ 7*7 }}]]>\u{1}\u{202e}";

fn options() -> PageOptions {
    PageOptions {
        comparison: Some(sample::comparison()),
        markdown: "# a run".to_owned(),
        template: None,
    }
}

fn draw(result: &RunResult) -> String {
    page(result, &options()).unwrap()
}

/// The charts of a page, each as a document.
fn charts(html: &str) -> Vec<&str> {
    html.split("<figure")
        .skip(1)
        .map(|figure| {
            let start = figure.find("<svg").unwrap();
            let end = figure
                .find("<figcaption")
                .or_else(|| figure.find("</figure"))
                .unwrap();
            &figure[start..end]
        })
        .collect()
}

fn embedded(html: &str) -> RunResult {
    let (_, rest) = html.split_once("id=\"result\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// A run whose every text is `text`.
fn run_named(text: &str, copies: usize) -> RunResult {
    let mut result = sample::run(60);
    let text = || text.to_owned();
    result.scenario.name = text();
    result.scenario.summary = text();
    result.scenario.toml = text();
    result.scenario.targets = vec![text(); copies];
    result.scenario.groups = vec![
        GroupDescription {
            name: text(),
            clients: 1,
            text: text()
        };
        copies
    ];
    result.tool.command = text();
    result.verdict.text = text();
    result.verdict.faults = vec![text(); copies];
    result.validity.limits = vec![text(); copies];
    result.validity.advice = vec![text(); copies];
    result.machine.cpu = text();
    result.brokers = vec![result.brokers[0].clone(); copies];
    for broker in &mut result.brokers {
        broker.version = text();
        broker.configuration = text();
    }
    result.errors = vec![
        ErrorCount {
            reason: text(),
            count: 3,
            ..ErrorCount::default()
        };
        copies
    ];
    result.marks = (0_u32..)
        .take(copies)
        .map(|at| Mark {
            at: f64::from(at),
            text: text(),
            ..Mark::default()
        })
        .collect();
    let mut threshold = result.thresholds[0].clone();
    threshold.metric = format!("e2e.{}", text());
    threshold.condition = text();
    result.thresholds = vec![threshold; copies];
    result
}

#[test]
fn a_page_has_all_its_sections() {
    let html = draw(&sample::run(120));
    for id in [
        "limits",
        "figures",
        "charts",
        "errors",
        "comparison",
        "health",
        "disclosure",
        "raw",
    ] {
        assert!(html.contains(&format!("<section id=\"{id}\">")), "{id}");
    }
    let wanted = [
        "rate",
        "e2e",
        "percentiles",
        "heat",
        "service",
        "publish_ack",
        "clients",
        "trouble",
        "broker-cpu",
        "broker-memory",
        "network",
        "generator-cpu",
        "generator_lag",
    ];
    for chart in wanted {
        assert!(
            html.contains(&format!("<figure id=\"{chart}\">")),
            "{chart}"
        );
    }
    for text in [
        "VALID",
        "PASS",
        "2 OF 5 LIMITS MISSED",
        "10 % above",
        "not measured",
        "on the same machine",
    ] {
        assert!(html.contains(text), "{text}");
    }
}

/// The element with this beginning, up to the end of its kind.
fn element<'html>(html: &'html str, beginning: &str, end: &str) -> &'html str {
    let at = html
        .find(beginning)
        .unwrap_or_else(|| panic!("{beginning}"));
    let rest = &html[at..];
    &rest[..rest.find(end).unwrap()]
}

#[test]
fn every_latency_stands_beside_what_of_it_may_be_the_generators() {
    let html = draw(&sample::run(60));
    let table = element(&html, "<section id=\"latencies\">", "</section>");
    for name in ["e2e", "service", "publish_ack", "connect"] {
        let row = element(table, &format!("<code>{name}</code>"), "</tr>");
        assert_eq!(row.matches("<small>generator ≤ ").count(), 10, "{row}");
    }
    let tile = element(&html, "<span>Response time p99</span>", "</div>");
    assert!(tile.contains("<small>generator ≤ "), "{tile}");
    let chart = element(&html, "<figure id=\"e2e\">", "</figure>");
    assert!(chart.contains("data-n=\"generator\""), "no band");
    let tile = element(&html, "<span>Broker CPU</span>", "</div>");
    for text in [
        "busiest second 4.4",
        "82µs&#x2f;message",
        "whole machine 94µs&#x2f;message",
        "stolen",
    ] {
        assert!(tile.contains(text), "{text}: {tile}");
    }
}

#[test]
fn an_invalid_run_names_thread_and_cure_and_greys_what_is_void() {
    let html = draw(&sample::invalid());
    let banner = element(&html, "<div class=\"banner\">", "</div>");
    assert!(banner.contains("its thread bench-1 read its sockets up to 300ms late"));
    assert!(banner.contains("Cure: use more --threads"), "{banner}");
    for id in ["e2e", "service", "percentiles", "heat", "broker-cpu"] {
        assert!(
            html.contains(&format!("<figure id=\"{id}\" class=\"void\">")),
            "{id}"
        );
    }
    for id in [
        "rate",
        "connect",
        "clients",
        "broker-memory",
        "generator_lag",
    ] {
        assert!(html.contains(&format!("<figure id=\"{id}\">")), "{id}");
    }
    let table = element(&html, "<section id=\"latencies\">", "</section>");
    assert_eq!(table.matches("<tr class=\"void\">").count(), 2);
    assert!(table.contains(">withheld<sup>1</sup>"), "{table}");
    assert!(table.contains("<li>broker.cores.max: the coordinator was up to 180ms late</li>"));
    assert_eq!(html.matches("<div class=\"tile void\"").count(), 2);
    assert!(html.contains("busiest second withheld"));
    let valid = draw(&sample::run(60));
    assert!(!valid.contains("class=\"banner\"") && !valid.contains("class=\"void\""));
}

#[test]
fn deliveries_that_never_arrived_are_no_latency_of_the_survivors() {
    let html = draw(&sample::missing());
    let table = element(&html, "<section id=\"latencies\">", "</section>");
    assert!(table.contains("> 5s<sup>1</sup>") || table.contains("&gt; 5s<sup>1</sup>"));
    assert!(table.contains("1 760 + 40 missing"));
    assert!(table.contains("40 of 1 800 never arrived</li>"), "{table}");
    let chart = element(&html, "<figure id=\"percentiles\">", "</figure>");
    assert!(chart.contains(">e2e: 40 never arrived<"));
    assert!(html.contains("99 % more than 5s, the slowest never arrived."));
}

#[test]
fn a_run_of_connections_begins_with_their_charts() {
    let html = draw(&sample::connections());
    let main = element(&html, "<div class=\"grid main\">", "<details");
    for id in ["percentiles", "clients", "connect"] {
        assert!(main.contains(&format!("<figure id=\"{id}\">")), "{id}");
    }
    assert!(!html.contains("<figure id=\"rate\">"));
    assert!(html.contains("<span>Connect time p99</span>"));
}

#[test]
fn a_page_asks_nothing_of_the_network() {
    let html = draw(&sample::run(60));
    assert!(html.contains("default-src &#39;none&#39;") || html.contains("default-src 'none'"));
    for forbidden in [
        "http://", "https://", "src=", "href=", "url(", "@import", "<link",
    ] {
        let found = html
            .replace("http://www.w3.org/2000/svg", "")
            .contains(forbidden);
        assert!(!found, "{forbidden}");
    }
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    let result = sample::run(60);
    assert_eq!(draw(&result), draw(&result.clone()));
    let picture = || png::picture(&result).standalone(&Palette::LIGHT);
    assert_eq!(picture(), picture());
}

#[test]
fn a_day_of_seconds_stays_within_the_size_and_keeps_its_spike() {
    let html = draw(&sample::run(86_380));
    assert!(html.len() <= PAGE_BYTES_MAX, "{} bytes", html.len());
    assert!(html.contains("Left out to keep the page small: the series of seconds"));
    let result = embedded(&html);
    assert!(result.series.is_empty() && result.latency_ns.e2e.is_some());
    let most = charts(&html).iter().map(|chart| chart.len()).max().unwrap();
    assert!(most > 10_000, "the charts lost their points: {most}");
}

#[test]
fn a_short_run_is_embedded_whole() {
    let result = sample::run(40);
    let html = draw(&result);
    assert!(html.len() <= PAGE_BYTES_MAX);
    let read = embedded(&html);
    assert_eq!(read.series.len(), result.series.len());
    assert_eq!(read.series[30].e2e, result.series[30].e2e);
    assert_eq!(read.scenario, result.scenario);
    assert!(!html.contains("Left out"));
}

#[test]
fn huge_texts_and_tables_stay_within_the_size() {
    let html = draw(&run_named(&"\"<&/'>".repeat(8_000), 64));
    assert!(html.len() <= PAGE_BYTES_MAX, "{} bytes", html.len());
    assert!(html.contains("cut off here: 48000 bytes in all"));
}

#[test]
fn hostile_names_stay_text() {
    let html = draw(&run_named(HOSTILE, 2));
    assert!(!html.contains("<svg onload"));
    assert_eq!(
        html.matches("</script>").count(),
        2,
        "the two of the page itself"
    );
    assert_eq!(embedded(&html).scenario.name, HOSTILE);
    for chart in charts(&html) {
        let document = Document::parse(chart).unwrap();
        assert!(
            document
                .descendants()
                .all(|node| node.attribute("onload").is_none())
        );
    }
}

#[test]
fn every_chart_is_well_formed_and_drawn_with_finite_numbers() {
    let mut result = sample::run(60);
    result.series[20].offered = u64::MAX;
    result.series[21].span = 0.0;
    result.series[22].broker.as_mut().unwrap().cores_user = f64::NAN;
    result.series[23].broker.as_mut().unwrap().cores_system = f64::INFINITY;
    let html = draw(&result);
    let charts = charts(&html);
    assert!(charts.len() >= 13);
    for chart in charts {
        let document = Document::parse(chart).unwrap();
        assert!(document.descendants().any(|node| node.has_tag_name("path")));
        assert!(!chart.contains("NaN") && !chart.contains("inf"), "{chart}");
    }
}

#[test]
fn an_empty_run_is_a_page_and_a_picture() {
    let html = page(&RunResult::default(), &PageOptions::default()).unwrap();
    assert!(html.contains("INVALID") && html.contains("FAIL"));
    assert!(!html.contains("<figure"));
    assert!(!html.contains("id=\"copy\""));
    assert!(
        Document::parse(&png::picture(&RunResult::default()).standalone(&Palette::DARK)).is_ok()
    );
}

#[test]
fn another_template_is_used_and_its_faults_are_named() {
    let with = |template: &str| {
        let template = Some(template.to_owned());
        page(
            &sample::run(40),
            &PageOptions {
                template,
                ..PageOptions::default()
            },
        )
    };
    assert_eq!(
        with("{{ title }}: {{ tiles[3].value }}").unwrap(),
        "fan-in-50k: 50 500"
    );
    let Err(PageError::Template { reason }) = with("a\n{{ titel }}") else {
        unreachable!()
    };
    assert!(reason.contains(":2"), "{reason}");
    assert!(with("{% if %}").is_err());
}

#[test]
fn the_script_is_small() {
    let html = draw(&sample::run(40));
    let script = html.rsplit_once("<script>").unwrap().1;
    assert!(script.len() < 6 * 1024, "{} bytes", script.len());
}

#[test]
fn the_picture_has_resolved_colours_and_the_wanted_width() {
    let svg = png::picture(&sample::run(60)).standalone(&Palette::LIGHT);
    assert!(
        !svg.contains("var("),
        "renderers of pictures know no variables"
    );
    match png::report(&sample::run(60)) {
        Ok(bytes) => {
            assert_eq!(bytes[..8], *b"\x89PNG\r\n\x1a\n");
            assert_eq!(bytes[16..20], 1_200_u32.to_be_bytes());
        }
        // A machine without fonts gets an error; the drawing itself is still checked.
        Err(error) => {
            assert!(matches!(error, png::PngError::NoFont));
            assert!(Document::parse(&svg).is_ok());
        }
    }
}

#[test]
fn brokers_side_by_side_show_medians_ranges_and_verdicts() {
    let report = sample::versus();
    let text = versus::markdown(&report);
    assert!(
        text.contains("| protocol | PASS | PASS | FAIL in 1 of 3 |  |  |"),
        "{text}"
    );
    assert!(
        text.contains(
            "| figure | thrum 0.1.0 | broker B 2.1.2 | broker C 5.8.6 | winner | noise |"
        )
    );
    assert!(text.contains("\n| rounds | 3 of 3 count |"), "{text}");
    let at = |row: &str| text.find(&format!("\n| {row} |")).unwrap();
    assert!(at("p99") < at("CPU per message") && at("CPU per message") < at("message rate"));
    assert!(at("connect p99") < at("connect rate"));
    assert!(text.contains("544µs [502µs..587µs]"), "{text}");
    assert!(text.contains("## Full disclosure") && text.contains(&report.command));
    let html = versus_page(&report).unwrap();
    // A note appears once, though its broker is in both scenarios; the page has the Markdown too.
    let page = html.split_once("<textarea").unwrap().0;
    for page in [&text, page] {
        assert_eq!(page.matches("broker C: queues up to 1 000").count(), 1);
    }
    assert_eq!(html.matches("<table").count(), 2);
    assert!(html.contains("FAIL in 1 of 3"));
    for chart in charts(&html) {
        assert!(Document::parse(chart).is_ok());
    }
    assert!(charts(&html)[1].contains("class=\"w\""), "no whisker");
}

#[test]
fn a_comparison_of_brokers_begins_with_sentences_and_marks_winners() {
    let report = sample::versus_invalid();
    let html = versus_page(&report).unwrap();
    let sentence = element(&html, "<p class=\"conclusion\">", "</p>");
    assert!(sentence.contains("thrum needs 0.6"), "{sentence}");
    assert!(
        sentence.contains(" times the CPU of broker B per message"),
        "{sentence}"
    );
    let row = element(&html, "<tr><th>CPU per message</th>", "</tr>");
    assert!(row.contains("<td class=\"n win\">"), "{row}");
    assert!(row.contains("<td class=\"w\">thrum<small>±"), "{row}");
    assert_eq!(html.matches(">4 of 5 count<").count(), 2);
    assert_eq!(
        html.matches("INVALID in 1 of 5").count(),
        2 + 2,
        "table and Markdown"
    );
    assert!(html.contains("<button type=\"button\" id=\"copy\">"));
    assert!(html.contains("swatch c2") && html.contains("class=\"bar c2\""));
    let text = versus::markdown(&report);
    assert!(text.contains("\n**thrum needs 0.6"), "{text}");
}

#[test]
fn unlike_rounds_are_refused_with_the_line_that_differs() {
    let mut report = sample::versus_invalid();
    for run in &mut report.scenarios[0].brokers[1].runs {
        run.scenario.stages.hold = 60.0;
    }
    let html = versus_page(&report).unwrap();
    let sentence = element(&html, "<p class=\"conclusion\">", "</p>");
    assert!(
        sentence.ends_with("are not compared: hold differs: 60 s | 5 s."),
        "{sentence}"
    );
    assert!(!html.contains("class=\"n win\""));
}

#[test]
fn hostile_names_of_brokers_stay_text() {
    let mut report = sample::versus();
    report.title = HOSTILE.to_owned();
    report.scenarios[0].name = HOSTILE.to_owned();
    report.scenarios[0].brokers[0].name = format!("a|b\n{HOSTILE}");
    report.scenarios[0].brokers[0].note = HOSTILE.to_owned();
    report.scenarios[0].brokers[0].configuration = "```\n# not a heading".to_owned();
    assert!(!versus_page(&report).unwrap().contains("<svg onload"));
    let text = versus::markdown(&report);
    let lines: Vec<_> = text.lines().filter(|line| line.contains("a\\|b")).collect();
    assert!(
        lines.iter().all(|line| line.contains("\\<svg")),
        "{lines:?}"
    );
    // The sentence about it, its note, and its column of the table.
    let has = |beginning: &str, end: &str| {
        let mut lines = lines.iter();
        lines.any(|line| line.starts_with(beginning) && line.ends_with(end))
    };
    assert!(has("**", ".**") && has("- ", ""), "{lines:?}");
    assert!(has("| figure | a\\|b ", "| winner | noise |"), "{lines:?}");
    assert!(text.contains("\n````\n```\n# not a heading\n````\n"));
}

#[test]
fn a_comparison_survives_being_written_and_read() {
    let report = sample::versus();
    let text = serde_json::to_string(&report).unwrap();
    let read: versus::VersusReport = serde_json::from_str(&text).unwrap();
    assert_eq!(read.scenarios[1].brokers[2].runs.len(), 3);
    assert_eq!(versus::markdown(&read), versus::markdown(&report));
}

#[test]
fn a_comparison_with_another_run_begins_with_its_conclusion_and_marks_the_winners() {
    let html = draw(&sample::run(4));
    let (_, section) = html.split_once("<section id=\"comparison\">").unwrap();
    let (section, _) = section.split_once("</section>").unwrap();
    let at = |text: &str| {
        section
            .find(text)
            .unwrap_or_else(|| panic!("{text}: {section}"))
    };
    assert!(at("p99 of B is 0.88 ± 0.04 times that of A.") < at("<table>"));
    assert!(at("<tr class=\"good\"><td><code>e2e.p99") < at("<tr><td><code>rate.received"));
    assert!(at("<tr class=\"bad\"><td><code>broker.rss") < at("| figure | A | B |"));
}

#[test]
fn brokers_of_which_no_round_counts_are_marked() {
    let mut report = sample::versus();
    let html = versus_page(&report).unwrap();
    assert!(!html.contains("bar void\"") && !html.contains("INVALID rounds do not count"));
    for run in &mut report.scenarios[0].brokers[1].runs {
        run.validity.valid = false;
    }
    let html = versus_page(&report).unwrap();
    assert!(html.contains("class=\"bar void\"") && html.contains("class=\"n void\""));
    for page in [&html, &versus::markdown(&report)] {
        assert!(page.contains("broker B, p2p-1K: every round was INVALID"));
        assert!(page.contains("INVALID rounds do not count"));
    }
}

#[test]
fn a_configuration_keeps_its_lines_and_stands_once() {
    let mut report = sample::versus();
    for scenario in &mut report.scenarios {
        scenario.brokers[0].configuration = "serve --port 1\n\nlistener 1\nlog none".to_owned();
    }
    for page in [versus_page(&report).unwrap(), versus::markdown(&report)] {
        assert_eq!(
            page.matches("\n\nlistener 1\nlog none").count(),
            1,
            "{page}"
        );
    }
}

#[test]
fn a_ramp_of_one_second_has_a_connect_time_to_see() {
    let mut result = sample::run(4);
    let second = result
        .series
        .iter_mut()
        .find(|second| second.connect.is_some());
    let connect = second.and_then(|second| second.connect.take());
    for second in &mut result.series {
        second.connect = None;
    }
    result.series[0].connect = connect;
    let html = draw(&result);
    let (_, chart) = html.split_once("<figure id=\"connect\">").unwrap();
    let (_, path) = chart.split_once("data-n=\"p50\" d=\"").unwrap();
    let path = path.split_once('"').unwrap().0;
    let (_, length) = path.split_once('h').unwrap();
    assert!(length.parse::<u32>().unwrap() > 50, "{path}");
}

#[test]
fn rates_end_where_the_hold_ends() {
    let mut result = sample::run(4);
    let hold = result
        .series
        .iter()
        .rposition(|second| second.stage == Stage::Hold)
        .unwrap();
    let end = result.series[hold].at + result.series[hold].span;
    result.series.truncate(hold + 1);
    for (at, span) in [(end, 0.1), (end + 0.1, 0.1)] {
        result.series.push(Second {
            at,
            span,
            stage: Stage::Drain,
            ..Second::default()
        });
    }
    let html = draw(&result);
    let (_, chart) = html.split_once("<figure id=\"rate\">").unwrap();
    let (_, path) = chart.split_once("data-n=\"sent\" d=\"").unwrap();
    let path = path.split_once('"').unwrap().0;
    // Along to the end of the hold, where nothing goes down to 0.
    let last = path.rsplit_once(['h', 'v']).unwrap().0.len();
    assert_eq!(&path[last..=last], "h", "{path}");
}
