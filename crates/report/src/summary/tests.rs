//! Summaries of runs whose every figure is known.

use super::*;
use crate::sample;

#[test]
fn the_summary_fits_a_screen() {
    let expected = "  \
  p2p-1K   2 000 clients · 10s hold · QoS1 · 16 B · MQTT 3.1.1   VALID  (p99: generator ≤ 290µs)
  █ VERDICT      PASS   all 15 000 deliveries arrived in order, each once
                 2 × reset by the broker (4.5s to 7.2s)
  █ THRESHOLDS   ✓ e2e.p99 < 50ms     41ms                      18 % below
                 ✓ delivered == 100%  100 % (15 000 of 15 000)  at the limit
                 ✗ broker.rss < 4MiB  8 MiB                     100 % above
  █ RESULTS      rate       1 000/s achieved of 1 000/s offered · 1 000/s received
                 e2e        p50 900µs  p75 3.9ms  p90 41ms  p95 41ms  p99 41ms  p99.9 41ms  max 41ms  mean 12ms
                 generator  ≤61µs      ≤80µs      ≤290µs    ≤290µs    ≤290µs    ≤290µs      ≤290µs    ≤70µs
                 service    p50 450µs  p75 2ms  p90 21ms  p95 21ms  p99 21ms  p99.9 21ms  max 21ms  mean 5.8ms
                 ack        p50 70µs  p75 70µs  p90 70µs  p95 70µs  p99 70µs  p99.9 70µs  max 70µs  mean 70µs
                 connect    p50 1.1ms  p99 1.1ms  max 1.1ms
                 subscribe  p50 36µs  p99 36µs  max 36µs
                 reconnect  p50 5ms  p99 5ms  max 5ms
                 clients    1 000/s connected · failures 0 · 10 of 10 reconnected
                 delivery   lost 0  duplicated 0  out of order 0
                 broker     cpu avg 1 cores max 1.2 · 50µs/message · whole machine 130µs/message · 2 000/s per core · rss max 8 MiB · 1 KiB/connection · kernel 7.6 KiB/connection · machine's net out 60 KiB/s, all processes · pid 42
                 generator  cpu avg 0.5 cores max 0.6 · 70µs/message · 900 B/connection · busiest thread 40 % · waited for a core 1.5 %
  █ MARKS        5s  cut 10 connections · all back within 2s
";
    assert_eq!(summary(&sample::run()), expected);
}

#[test]
fn a_failed_and_invalid_run_shows_reason_and_remedy() {
    let text = summary(&sample::bad_run());
    let lines: Vec<&str> = text.lines().take(4).collect();
    assert!(
        lines[0].ends_with("INVALID  (p99: generator ≤ 290µs)"),
        "{}",
        lines[0]
    );
    assert_eq!(
        lines[1],
        "  █ INVALID      generator lag p99 12ms, more than 10ms: stop other work on this machine"
    );
    assert_eq!(
        lines[2],
        "  █ VERDICT      FAIL   messages lost: 3, connections lost: 2"
    );
    assert_eq!(
        lines[3],
        "                 2 × reset by the broker (4.5s to 7.2s)"
    );
}

#[test]
fn a_run_of_connections_has_no_lines_of_messages() {
    let text = summary(&sample::idle_run());
    for line in ["  rate  ", "delivery ", "e2e "] {
        assert!(!text.contains(line), "{text}");
    }
    assert!(
        text.contains("broker     not measured (give --pid PID"),
        "{text}"
    );
}

#[test]
fn an_interrupted_run_shows_that_instead_of_a_verdict() {
    let mut run = sample::run();
    run.interrupted = true;
    run.verdict.pass = false;
    run.clients.ready = 651;
    run.scenario.stages.hold = 0.0;
    run.verdict.text = "ended while clients were connecting: 651 of 2 000 ready".to_owned();
    let text = summary(&run);
    assert!(
        text.contains("VERDICT      INTERRUPTED   ended while clients were connecting"),
        "{text}"
    );
    let title = text.lines().next().unwrap();
    assert!(title.ends_with("INTERRUPTED"), "{text}");
    assert!(!title.contains("VALID") && !text.contains("PASS"), "{text}");
    assert!(!title.contains("hold"), "{text}");
    for subject in ["rate  ", "delivery  "] {
        assert!(!text.contains(subject), "{text}");
    }
    run.validity.valid = false;
    run.validity.limits = vec!["a limit".to_owned()];
    let text = summary(&run);
    assert!(!text.contains("VALID"), "{text}");
    run.validity.valid = true;
    // A broken promise stays one.
    run.verdict.faults = vec!["messages lost: 3".to_owned()];
    assert!(summary(&run).contains("VERDICT      FAIL"));
}

#[test]
fn a_closed_loop_and_a_scaled_scenario_are_named() {
    let mut run = sample::run();
    run.scenario.load.closed_loop = true;
    run.scenario.load.text = "closed loop, window 10".to_owned();
    run.scenario.scale = 0.1;
    assert_eq!(
        summary(&run).lines().nth(1).unwrap(),
        "  closed loop, window 10: latencies leave out the time spent waiting · scaled: 0.1 of the full scenario"
    );
}

#[test]
fn arrivals_that_are_not_even_are_named_in_every_form() {
    let mut run = sample::run();
    assert!(!summary(&run).contains("arrivals"));
    run.scenario.load.arrivals = "poisson".to_owned();
    assert!(
        summary(&run)
            .lines()
            .next()
            .unwrap()
            .contains("arrivals: poisson")
    );
    let html = crate::html::page(&run, &crate::html::PageOptions::default()).unwrap();
    for page in [crate::markdown(&run), html] {
        assert!(page.contains("poisson") && page.contains("arrivals"));
    }
}

#[test]
fn reasons_and_marks_that_do_not_fit_are_counted() {
    let mut run = sample::run();
    run.errors = vec![run.errors[0].clone(); 7];
    run.marks = vec![run.marks[0].clone(); 12];
    let text = summary(&run);
    assert!(text.contains("and 2 other reasons\n"), "{text}");
    assert!(text.contains("and 2 more\n"), "{text}");
}

#[test]
fn a_baseline_adds_a_line_and_its_warnings() {
    let mut run = sample::run();
    run.latency_ns.e2e = Some(sample::distribution(&[3_900_000; 1_000]));
    run.fill_metrics();
    let mut other = run.clone();
    other.scenario.scale = 0.5;
    let comparison = Comparison::new(&[other], &[run]);
    let text = summary_with_baseline(&sample::run(), &comparison);
    let lines: Vec<&str> = text.lines().rev().take(2).collect();
    assert_eq!(lines[0], "                 ! scale differs: 0.5 | 1");
    assert!(
        lines[1].starts_with("  █ VS baseline  p99 +0.0 %"),
        "{}",
        lines[1]
    );
}

#[test]
fn of_quic_between_machines_it_is_said_what_the_error_leaves_out() {
    let mut run = sample::run();
    let agent = || crate::result::Agent {
        clients: 500,
        ..crate::result::Agent::default()
    };
    run.agents = vec![agent(), agent()];
    let is_said = |run: &RunResult| {
        let mut conditions = conditions(run).into_iter();
        conditions.any(|text| text.starts_with("QUIC between machines: the error leaves out"))
    };
    assert!(!is_said(&run));
    run.scenario.transport = "tcp, quic".to_owned();
    assert!(is_said(&run));
    // On one machine all of them are known.
    run.agents.truncate(1);
    assert!(!is_said(&run));
}

#[test]
fn several_brokers_and_agents_are_distinguished() {
    let mut run = sample::run();
    run.brokers.push(run.brokers[0].clone());
    run.brokers[1].target = "second".to_owned();
    run.agents = vec![crate::result::Agent {
        name: "east".to_owned(),
        clients: 1_000,
        clock_error_ns: 200_000,
        ..crate::result::Agent::default()
    }];
    let text = summary(&run);
    assert!(
        text.contains("broker     second · cpu avg 1 cores"),
        "{text}"
    );
    assert!(
        text.contains("agents     east · 1 000 clients · clocks within 200µs"),
        "{text}"
    );
}

#[test]
fn colour_changes_nothing_but_the_colour() {
    let coloured = summary_styled(&sample::run(), None, Style { colour: true });
    assert!(coloured.contains("\u{1b}[32mVALID\u{1b}[0m"));
    let mut plain = coloured;
    for code in [
        "\u{1b}[0m",
        "\u{1b}[1m",
        "\u{1b}[31m",
        "\u{1b}[32m",
        "\u{1b}[33m",
    ] {
        plain = plain.replace(code, "");
    }
    assert_eq!(plain, summary(&sample::run()));
}

#[test]
fn one_line_tells_the_most_important() {
    assert_eq!(
        summary_line(&sample::run()),
        "p2p-1K  PASS ✗1 · 1 000/s received · e2e p50 900µs p99 41ms · thresholds 2 of 3"
    );
    assert_eq!(
        summary_line(&sample::idle_run()),
        "conn-tcp-10K-100  PASS · connect p50 1.1ms p99 1.1ms"
    );
}

#[test]
fn withheld_figures_of_broker_and_generator_are_withheld_in_every_form() {
    let mut run = sample::run();
    let usage = &mut run.brokers[0].usage;
    (usage.cores_avg, usage.cores_max) = (77.0, 88.0);
    usage.cpu_us_per_message = Some(66.0);
    usage.machine.cpu_us_per_message = Some(55.0);
    usage.messages_per_core_second = Some(4_444.0);
    usage.rss_max_bytes = 333 << 20;
    usage.bytes_per_connection = Some(222.0);
    let generator = run.generator.usage.as_mut().unwrap();
    (generator.cores_avg, generator.cpu_us_per_message) = (99.0, Some(111.0));
    let figures = [
        "77 cores",
        "77/",
        "/77",
        "88/",
        "max 88",
        "88 in the busiest",
        "second 88",
        "66µs",
        " 66 ",
        "55µs",
        "4 444/s",
        "333 MiB",
        "222 B",
        "111µs",
    ];
    let forms = |run: &RunResult| {
        let compat = crate::compat::Compat::xmeter(run).unwrap();
        [
            ("summary", summary(run)),
            ("markdown", crate::markdown(run)),
            ("table", crate::table(std::slice::from_ref(run))),
            ("xmeter", compat.xmeter.text(run)),
            (
                "page",
                crate::html::page(run, &crate::html::PageOptions::default()).unwrap(),
            ),
            ("picture", format!("{:?}", crate::html::tiles(run))),
        ]
    };
    let all = forms(&run).map(|(_, text)| text).concat();
    for figure in figures {
        assert!(all.contains(figure), "{figure} is shown nowhere");
    }
    for name in results::OF_BROKER.iter().chain(&results::OF_GENERATOR) {
        let why = "the broker was not seen all the time".to_owned();
        run.validity.withheld.insert((*name).to_owned(), why);
    }
    run.fill_metrics();
    for (form, text) in forms(&run) {
        for figure in figures {
            assert!(!text.contains(figure), "{figure} in {form}: {text}");
        }
        assert!(text.contains("withheld"), "{form}: {text}");
        if form != "table" {
            assert!(text.contains("was not seen all the time"), "{form}: {text}");
        }
    }
}

#[test]
fn a_limit_of_a_withheld_figure_is_not_called_missed() {
    let mut run = sample::run();
    let why = "the broker was not seen all the time".to_owned();
    run.validity.withheld.insert("broker.rss".to_owned(), why);
    run.fill_metrics();
    let limit = crate::Threshold::parse("broker.rss", "< 4MiB").unwrap();
    run.conclude(&[limit]);
    let line = summary_line(&run);
    assert!(line.contains("PASS INVALID ·"), "{line}");
    assert!(
        summary(&run).contains("✗ broker.rss < 4MiB  withheld: the broker was not seen all"),
        "{}",
        summary(&run)
    );
    let html = crate::html::page(&run, &crate::html::PageOptions::default()).unwrap();
    assert!(html.contains("0 OF 1 LIMITS KEPT") && !html.contains("Limits missed"));
}

#[test]
fn another_tool_shows_the_cpu_of_this_machine_only() {
    let mut run = sample::run();
    let text = |run: &RunResult| crate::compat::Compat::xmeter(run).unwrap().xmeter.text(run);
    assert!(text(&run).contains("30%/25%"), "{}", text(&run));
    run.brokers[0].host = "10.0.0.5".to_owned();
    assert!(!text(&run).contains("max/avg CPU"), "{}", text(&run));
}
