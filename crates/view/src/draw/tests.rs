//! Whole frames at the sizes where the arrangement changes.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Color;
use thrum_report::RunResult;
use thrum_report::result::{Stage, Withheld};

use super::render;
use crate::sample;
use crate::snapshot::{Figures, Now, Snapshot};
use crate::view::{Glyphs, Look, Palette, ViewState, handle_key};

fn drawn((width, height): (u16, u16), snapshot: &Snapshot, view: &ViewState) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal
        .draw(|frame| render(frame, snapshot, view))
        .unwrap();
    terminal.backend().buffer().clone()
}

fn lines(size: (u16, u16), snapshot: &Snapshot, view: &ViewState) -> Vec<String> {
    let buffer = drawn(size, snapshot, view);
    let line = |y| -> String { (0..size.0).map(|x| buffer[(x, y)].symbol()).collect() };
    (0..size.1).map(|y| line(y).trim_end().to_owned()).collect()
}

fn text(size: (u16, u16), snapshot: &Snapshot, view: &ViewState) -> String {
    lines(size, snapshot, view).join("\n")
}

fn after_keys(keys: &str) -> ViewState {
    let mut view = ViewState::default();
    for key in keys.chars() {
        handle_key(
            KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE),
            &mut view,
        );
    }
    view
}

fn check(size: (u16, u16), expected: &str) {
    check_frame(size, &sample::snapshot(133), expected);
}

#[track_caller]
fn check_frame(size: (u16, u16), snapshot: &Snapshot, expected: &str) {
    let frame = text(size, snapshot, &ViewState::default());
    assert!(
        frame.trim_end() == expected.trim_end(),
        "the frame is now:\n{frame}"
    );
}

#[test]
fn frame_of_a_large_terminal() {
    check((120, 30), include_str!("frames/120x30.txt"));
}

#[test]
fn frame_of_the_usual_terminal() {
    check((80, 24), include_str!("frames/80x24.txt"));
}

#[test]
fn frame_of_a_small_terminal() {
    check((60, 20), include_str!("frames/60x20.txt"));
}

#[test]
fn frame_of_the_smallest_terminal() {
    check((40, 10), include_str!("frames/40x10.txt"));
}

#[test]
fn frame_of_connecting_in_a_series() {
    let snapshot = sample::connecting(42);
    check_frame((80, 24), &snapshot, include_str!("frames/connecting.txt"));
}

#[test]
fn the_place_in_the_series_is_seen_while_a_run_goes_on() {
    let snapshot = Snapshot {
        series: Some("round 2 of 6, trial 3 of ≤ 60 · 1m12s gone · 2m10s to ≤ 11m00s left".into()),
        ..sample::snapshot(133)
    };
    for (width, height) in [(200, 50), (120, 40), (80, 24), (60, 20)] {
        let frame = text((width, height), &snapshot, &ViewState::default());
        // What is left comes before what is gone, which a narrow terminal leaves out.
        let place = "round 2 of 6, trial 3 of ≤ 60  2m10s to ≤ 11m00s left";
        assert!(frame.contains(place), "{frame}");
        assert_eq!(frame.contains("1m12s gone"), width >= 80, "{frame}");
        let keys = "q end run";
        assert!(
            frame.contains(keys) && frame.contains("^C end all"),
            "{frame}"
        );
        // Its load stays as planned, and no key changes it.
        assert!(!frame.contains("rate  space"), "{frame}");
        let help = text((width, height), &snapshot, &after_keys("?"));
        assert_eq!(help.matches("not in a series").count(), 3, "{help}");
    }
    let alone = text((80, 24), &sample::snapshot(133), &ViewState::default());
    assert!(
        !alone.contains("left") && alone.contains("q stop & report"),
        "{alone}"
    );
}

#[test]
fn there_is_no_box_for_nothing() {
    let mut result = sample::result(20);
    let boxes = ["errors ", "marks ", "thresholds", "limits ", "broker "];
    for size in [(80, 24), (120, 40), (200, 50)] {
        let frame = text(size, &with_result(&result), &ViewState::default());
        for title in ["errors ", "marks ", "thresholds", "broker "] {
            assert!(frame.contains(&format!(" {title}")), "{title}: {frame}");
        }
    }
    result.errors.clear();
    let frame = text((120, 40), &with_result(&result), &ViewState::default());
    assert!(
        !frame.contains(" errors ") && frame.contains(" marks "),
        "{frame}"
    );
    result.marks.clear();
    result.thresholds.clear();
    for second in &mut result.series {
        second.broker = None;
    }
    for size in [(80, 24), (120, 40), (200, 50), (60, 20)] {
        let frame = text(size, &with_result(&result), &ViewState::default());
        for title in boxes {
            let is_there = frame.contains(&format!(" {title}"));
            let is_line = title == "broker " && size.0 == 60;
            assert!(!is_there || is_line, "{title}: {frame}");
        }
        assert!(!frame.contains("none"), "{frame}");
    }
}

#[test]
fn a_box_is_as_high_as_its_lines() {
    let mut result = sample::result(20);
    result.errors.clear();
    result.marks.clear();
    result.thresholds.truncate(1);
    for size in [(80, 24), (120, 40), (200, 50)] {
        let lines = lines(size, &with_result(&result), &ViewState::default());
        let at = |title: &str| lines.iter().position(|line| line.contains(title)).unwrap();
        assert_eq!(
            at(" generator health") - at(" thresholds: "),
            2,
            "{lines:#?}"
        );
        let bottom = lines.len() - 2;
        let resources = &lines[at(" generator health") + 1..bottom];
        assert!(!resources.is_empty(), "{lines:#?}");
        let is_blank = |line: &String| line.chars().all(|letter| "│ ".contains(letter));
        assert!(!resources.iter().any(is_blank), "{lines:#?}");
    }
}

#[test]
fn a_run_that_only_connects_shows_connections_instead_of_messages() {
    for size in [(80, 24), (120, 40), (200, 50), (60, 20)] {
        let frame = text(size, &sample::connecting(42), &ViewState::default());
        assert!(frame.contains("connections/s, last 2 min"), "{frame}");
        for word in ["offered", "received", "msg/s", "lost 0  dup"] {
            assert!(!frame.contains(word), "{word}: {frame}");
        }
    }
}

#[test]
fn below_the_smallest_size_there_is_one_line() {
    let lines = lines((60, 5), &sample::snapshot(133), &ViewState::default());
    assert_eq!(lines[0], "hold 02:13 / 05:00  sent 49 458  p99 3.9ms");
    assert!(lines[1..].iter().all(String::is_empty));
}

#[test]
fn every_size_is_drawn() {
    let starting = Snapshot::default();
    for width in (0..=200).step_by(7) {
        for height in (0..=60).step_by(3) {
            for snapshot in [&starting, &sample::snapshot(200), &sample::connecting(9)] {
                let buffer = drawn((width, height), snapshot, &after_keys("?"));
                assert_eq!((buffer.area.width, buffer.area.height), (width, height));
            }
        }
    }
}

#[test]
fn unknown_figures_are_not_shown_as_zero() {
    let snapshot = Snapshot {
        title: "conn-10k → mqtt://10.0.0.5".into(),
        ..Snapshot::default()
    };
    let frame = text((80, 24), &snapshot, &ViewState::default());
    for expected in [
        "conn-10k → mqtt://10.0.0.5",
        "connecting",
        "lost –",
        "nothing measured yet",
    ] {
        assert!(frame.contains(expected), "{expected} is missing:\n{frame}");
    }
    assert!(!frame.contains("VALID"), "{frame}");
}

#[test]
fn a_ramp_counts_clients() {
    let snapshot = Snapshot {
        now: Some(Now {
            stage: Stage::Ramp,
            elapsed: Duration::from_secs(5),
            planned: Duration::from_secs(10),
            clients: 10_000,
            ready: 4_900,
            failed: 3,
            ..Now::default()
        }),
        ..Snapshot::default()
    };
    let frame = text((80, 24), &snapshot, &ViewState::default());
    assert!(
        frame.contains("ramp 00:05 / 00:10 ████████████████████····"),
        "{frame}"
    );
    assert!(frame.contains("up     4 900/10 000"), "{frame}");
    assert!(frame.contains("failed 3"), "{frame}");
}

#[test]
fn an_invalid_run_shows_the_reason() {
    let mut result = sample::result(10);
    result.validity.valid = false;
    result.validity.limits = vec!["sends were late: 12ms at p99".to_owned()];
    for size in [(80, 24), (60, 20), (40, 10)] {
        let snapshot = with_result(&result);
        let frame = text(size, &snapshot, &ViewState::default());
        assert!(frame.contains("✗ INVALID"), "{frame}");
        assert!(frame.contains("sends were late"), "{frame}");
    }
}

#[test]
fn connections_do_not_make_a_run_of_messages_invalid() {
    let mut result = sample::result(10);
    result.validity.valid = false;
    result.validity.limits = vec!["connections were opened late".to_owned()];
    result.latency_ns.connect = result.latency_ns.e2e.take();
    for size in FULL_SIZES {
        let frame = text(size, &with_result(&result), &ViewState::default());
        assert!(!frame.contains("INVALID"), "{frame}");
        assert!(frame.contains("validity not known yet"), "{frame}");
    }
    // Without publishers they are what the run is about.
    result.scenario.payload.clear();
    let frame = text((80, 24), &with_result(&result), &ViewState::default());
    assert!(frame.contains("✗ INVALID: connections"), "{frame}");
}

/// Sizes at which every panel is shown.
const FULL_SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 50)];

/// The words of a frame without borders and line breaks.
fn words(frame: &str) -> String {
    let words =
        frame.split(|letter: char| letter.is_whitespace() || "│┌┐└┘├┤┬┴┼─".contains(letter));
    words
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn the_whole_reason_of_an_invalid_run_is_in_the_header() {
    let why = "up to 12ms of e2e.p99 21ms may be the generator's: its thread bench-1 read its sockets \
               up to 300ms late; a generator thread was busy 97 % of the time";
    let mut result = sample::result(10);
    result.validity.valid = false;
    result.validity.limits = why.split("; ").map(str::to_owned).collect();
    for size in FULL_SIZES {
        let frame = text(size, &with_result(&result), &ViewState::default());
        assert!(
            words(&frame).contains(&format!("✗ INVALID: {why}")),
            "{frame}"
        );
    }
}

#[test]
fn the_generators_part_stands_beside_the_figures() {
    for size in FULL_SIZES {
        let frame = text(size, &sample::snapshot(133), &ViewState::default());
        for expected in [
            "p50 810µs ≤61µs",
            "p99 3.9ms ≤290µs",
            "p99.9 11ms",
            "max 41ms",
        ] {
            assert!(words(&frame).contains(expected), "{expected}: {frame}");
        }
    }
}

#[test]
fn withheld_figures_are_shown_as_in_the_summary() {
    let mut result = sample::result(10);
    let e2e = result.latency_ns.e2e.as_mut().unwrap();
    let reasons = [
        (
            "p50",
            Withheld::Generator {
                bound: 700_000,
                seen: 810_000,
            },
        ),
        (
            "p99",
            Withheld::Missing {
                missing: 30,
                of: 1_000,
                over: 5_000_000_000,
            },
        ),
        (
            "p99.9",
            Withheld::TooFew {
                values: 1_000,
                needed: 10_000,
            },
        ),
        (
            "max",
            Withheld::Missing {
                missing: 30,
                of: 1_000,
                over: 5_000_000_000,
            },
        ),
    ];
    e2e.withheld = reasons.map(|(figure, why)| (figure.to_owned(), why)).into();
    for size in FULL_SIZES {
        let frame = text(size, &with_result(&result), &ViewState::default());
        for expected in ["p50 withheld ≤61µs", "p99 > 5s", "p99.9 –", "max > 5s"] {
            assert!(words(&frame).contains(expected), "{expected}: {frame}");
        }
    }
}

#[test]
fn a_withheld_threshold_is_not_called_unmeasured() {
    let mut result = sample::result(10);
    let threshold = &mut result.thresholds[0];
    (threshold.measured, threshold.pass) = (None, false);
    threshold.withheld = Some("970 values are too few: it takes 1 000".to_owned());
    let frame = text((120, 40), &with_result(&result), &ViewState::default());
    assert!(
        frame.contains("· e2e.p99 < 50ms (withheld so far)"),
        "{frame}"
    );
}

#[test]
fn missed_thresholds_come_first_and_those_without_a_figure_are_no_failures() {
    let frame = text((120, 40), &sample::snapshot(20), &ViewState::default());
    let at = [
        "thresholds: 2 of 4 kept, 1 open",
        "✗ broker.rss < 1GB (1.1 GiB)",
        "✓ e2e.p99 < 50ms (3.9ms)",
        "· connect.errors == 0 (no figure yet)",
    ]
    .map(|expected| {
        frame
            .find(expected)
            .unwrap_or_else(|| panic!("{expected}: {frame}"))
    });
    assert!(at.is_sorted(), "{frame}");
}

#[test]
fn losses_and_lost_figures_are_seen() {
    let mut result = sample::result(10);
    result.delivery.lost = 17;
    result.delivery.duplicated = 3;
    result.brokers.clear();
    let frame = text((120, 30), &with_result(&result), &ViewState::default());
    assert!(frame.contains("lost 17  dup 3"), "{frame}");
    let small = text((60, 20), &with_result(&result), &ViewState::default());
    assert!(small.contains("broker    not seen from here"), "{small}");
}

#[test]
fn the_time_scale_is_named_over_the_charts() {
    let snapshot = sample::snapshot(1_000);
    for (keys, title) in [("", "last 2 min"), ("t", "last 5 min"), ("tt", "whole run")] {
        let frame = text((80, 24), &snapshot, &after_keys(keys));
        assert_eq!(frame.matches(title).count(), 2, "{frame}");
    }
}

#[test]
fn pause_and_stop_are_seen_in_words() {
    let snapshot = sample::snapshot(10);
    let paused = text((80, 24), &snapshot, &after_keys(" "));
    assert!(
        paused.contains("PAUSED") && paused.contains("space resume"),
        "{paused}"
    );
    let stopping = text((80, 24), &snapshot, &after_keys("q"));
    assert!(
        stopping.contains("STOPPING") && stopping.contains("^C end at once"),
        "{stopping}"
    );
}

#[test]
fn a_note_is_seen_while_it_is_written() {
    let lines = lines((80, 24), &sample::snapshot(10), &after_keys("nnew queue"));
    let last = lines.last().unwrap();
    assert_eq!(last, " note: new queue_  Enter keeps it, Esc drops it");
}

#[test]
fn the_help_names_every_key() {
    for size in [(80, 24), (40, 10)] {
        let frame = text(size, &sample::snapshot(10), &after_keys("?"));
        for key in ["+ -", "space", "e ", "n ", "t ", "q ", "^C"] {
            assert!(
                frame.contains(&format!("│ {key}")),
                "{key} is missing:\n{frame}"
            );
        }
    }
}

#[test]
fn a_terminal_without_unicode_gets_ascii() {
    let view = ViewState::new(
        Look {
            glyphs: Glyphs::Ascii,
            palette: Palette::Colour,
        },
        false,
    );
    let frame = text((120, 30), &sample::snapshot(133), &view);
    assert!(frame.is_ascii(), "{frame}");
    assert!(
        frame.contains("v VALID") && frame.contains("x broker.rss"),
        "{frame}"
    );
}

#[test]
fn no_colour_is_used_where_none_is_wanted() {
    let view = ViewState::new(
        Look {
            glyphs: Glyphs::Unicode,
            palette: Palette::Plain,
        },
        false,
    );
    let is_coloured = |buffer: Buffer| buffer.content.iter().any(|cell| cell.fg != Color::Reset);
    let snapshot = sample::snapshot(133);
    assert!(is_coloured(drawn(
        (120, 30),
        &snapshot,
        &ViewState::default()
    )));
    assert!(!is_coloured(drawn((120, 30), &snapshot, &view)));
}

fn with_result(result: &RunResult) -> Snapshot {
    Snapshot {
        figures: Some(Figures::new(result).into()),
        ..sample::snapshot(10)
    }
}
