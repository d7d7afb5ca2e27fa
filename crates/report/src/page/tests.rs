//! Pages of results as text.

use super::*;
use crate::result::RunResult;
use crate::sample;

fn run(minute: usize, valid: bool) -> RunResult {
    let mut run = sample::run();
    run.started = format!("2026-11-26T09:{minute:02}:00Z");
    run.validity.valid = valid;
    if !valid {
        run.validity.limits = vec!["the generator was the limit".to_owned()];
    }
    run.fill_metrics();
    run
}

fn broker(name: &str, valid: &[bool]) -> VersusBroker {
    VersusBroker {
        name: name.to_owned(),
        version: "1.0".to_owned(),
        configuration: format!("{name} --port 1883"),
        runs: (0..)
            .zip(valid)
            .map(|(minute, valid)| run(minute, *valid))
            .collect(),
        ..VersusBroker::default()
    }
}

fn page(brokers: Vec<VersusBroker>) -> Page {
    Page {
        title: "Two cores".to_owned(),
        text: "What was *measured*.".to_owned(),
        command: "thrum bench page two-cores.toml".to_owned(),
        tables: vec![PageTable {
            title: "Pairs".to_owned(),
            rows: vec![PageRow {
                label: "p2p-1K --rate 5/s".to_owned(),
                scenario: VersusScenario {
                    brokers,
                    ..VersusScenario::default()
                },
                failures: Vec::new(),
            }],
            ..PageTable::default()
        }],
        ..Page::default()
    }
}

fn lines_of<'a>(text: &'a str, part: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.contains(part)).collect()
}

#[test]
fn a_row_has_rounds_validity_promises_and_what_may_be_the_generators() {
    let text = markdown(&page(vec![
        broker("thrum", &[true, true, false]),
        broker("other", &[true, true, true]),
    ]));
    let row = lines_of(&text, "| thrum |")[0];
    assert!(row.contains("| 2 of 3 VALID | 3 of 3 |"), "{row}");
    assert!(row.contains("(≤ "), "{row}");
    assert!(lines_of(&text, "| other |")[0].contains("3 of 3 VALID"));
    assert!(
        text.contains("3 rounds of 10 s, open loop. Medians"),
        "{text}"
    );
    assert!(text.contains("What was *measured*."));
    assert!(text.contains("Measured** 2026-11-26 with"), "{text}");
    assert!(text.contains("### Start of thrum 1.0"));
}

#[test]
fn a_row_without_a_valid_round_says_so_and_why() {
    let text = markdown(&page(vec![broker("thrum", &[false, false])]));
    assert!(lines_of(&text, "| thrum |")[0].contains("| INVALID, 2 of 2 |"));
    let note = lines_of(&text, "INVALID in every round")[0];
    assert!(note.contains("the generator was the limit"), "{note}");
}

#[test]
fn runs_without_figures_are_told() {
    let mut page = page(vec![broker("thrum", &[true])]);
    page.tables[0].rows[0].failures = vec![Failure {
        broker: "thrum".to_owned(),
        why: "crashed: signal 11".to_owned(),
    }];
    let text = markdown(&page);
    assert!(lines_of(&text, "| thrum |")[0].contains("1 of 1 VALID, 1 without figures"));
    assert!(text.contains("p2p-1K --rate 5/s, thrum: crashed: signal 11"));
}

#[test]
fn the_note_of_a_broker_is_told_once() {
    let mut page = page(vec![broker("thrum", &[true]), broker("relay", &[true])]);
    page.tables[0].rows[0].scenario.brokers[1].note = "not a broker".to_owned();
    let twice = page.tables[0].rows[0].clone();
    page.tables[0].rows.push(twice);
    let text = markdown(&page);
    assert_eq!(
        lines_of(&text, "not a broker"),
        ["- **relay** not a broker"]
    );
}

#[test]
fn a_withheld_figure_is_not_a_dash() {
    let mut page = page(vec![broker("thrum", &[true])]);
    let run = &mut page.tables[0].rows[0].scenario.brokers[0].runs[0];
    let e2e = run.latency_ns.e2e.as_mut().unwrap();
    let few = crate::result::Withheld::TooFew {
        values: 5,
        needed: 100,
    };
    e2e.withheld.insert("p99".to_owned(), few);
    run.fill_metrics();
    let text = markdown(&page);
    let row = lines_of(&text, "| thrum |")[0];
    assert!(row.contains("| withheld |"), "{row}");
}

#[test]
fn conclusions_need_three_valid_rounds_of_every_broker() {
    let shown = |valid: &[bool]| {
        let brokers = vec![broker("thrum", &[true; 3]), broker("other", valid)];
        markdown(&page(brokers)).contains("thrum and other")
    };
    assert!(shown(&[true; 3]));
    assert!(!shown(&[true, true, false]));
}

#[test]
fn a_page_of_a_bound_generator_is_repeated_on_the_same_cores() {
    let mut page = page(vec![broker("thrum", &[true])]);
    page.machine.cores = 4;
    assert!(markdown(&page).contains("```\nthrum bench page two-cores.toml\n```"));
    let settings = &mut page.machine.settings;
    settings.insert(AFFINITY.to_owned(), "2-3".to_owned());
    let text = markdown(&page);
    let command = "```\ntaskset -c 2-3 thrum bench page two-cores.toml\n```";
    assert!(text.contains(command), "{text}");
    let machine = "4 cores (generator and brokers bound to 2-3), ";
    assert!(text.contains(machine), "{text}");
}

#[test]
fn a_figure_that_some_rounds_withhold_says_of_how_many_rounds_it_is() {
    let mut page = page(vec![broker("thrum", &[true, true, true])]);
    for run in &mut page.tables[0].rows[0].scenario.brokers[0].runs[1..] {
        let few = crate::result::Withheld::TooFew {
            values: 5,
            needed: 100,
        };
        let e2e = run.latency_ns.e2e.as_mut().unwrap();
        e2e.withheld.insert("p99".to_owned(), few);
        run.fill_metrics();
    }
    let text = markdown(&page);
    assert!(
        lines_of(&text, "| thrum |")[0].contains("(1 of 3) |"),
        "{text}"
    );
}
