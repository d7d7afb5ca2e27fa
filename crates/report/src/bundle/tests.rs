//! Bundles of a sample run, and what is done to them.

use super::*;
use crate::folder::{Files, RunFolder};
use crate::result::{Distribution, Latencies, Quantiles, Second, Stage};
use crate::threshold::Threshold;
use crate::{hlog, sample};
use hdrhistogram::Histogram;
use tar::{Builder, EntryType, Header};
use thrum_figures::fraction;

/// A run folder of its own for each test.
struct Kept(PathBuf);

impl Kept {
    fn new(test: &str, run: &RunResult) -> Self {
        let name = format!("thrum-bundle-{}-{test}", std::process::id());
        let parent = std::env::temp_dir().join(name);
        let folder = RunFolder::create(&parent, &run.started, &run.scenario.name).unwrap();
        let log = log(run);
        let files = Files {
            hlog: Some(&log),
            ..Files::default()
        };
        folder.write(run, &files).unwrap();
        Self(folder.path().to_owned())
    }

    /// Changes the text of its result.
    fn rewrite(&self, change: impl Fn(&str) -> String) {
        let path = self.0.join(RESULT);
        let before = fs::read_to_string(&path).unwrap();
        let after = change(&before);
        assert_ne!(before, after);
        fs::write(path, after).unwrap();
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        fs::remove_dir_all(self.0.parent().unwrap()).ok();
    }
}

/// The log of the response times of a run's seconds.
fn log(run: &RunResult) -> String {
    let mut log = hlog::header(1_795_252_323.0);
    for second in run.series.iter().filter(|second| second.e2e.is_some()) {
        log.push_str(&hlog::line("e2e", second.at, second.span, &of_second()));
    }
    log
}

fn of_second() -> Histogram<u64> {
    let kept = sample::distribution(&[800_000, 3_900_000]);
    kept.histogram().unwrap()
}

/// A run whose parts follow from each other: of as many seconds, two of them before the hold.
fn honest(seconds: usize) -> RunResult {
    let mut run = sample::run();
    run.series.truncate(seconds);
    // What arrives in the warm-up is in the log, and in no latency of the run.
    run.series[1].stage = Stage::WarmUp;
    run.series[1].e2e = Some(Quantiles::from_histogram(&of_second()));
    let mut all = Histogram::new(3).unwrap();
    let hold = run.series.iter().filter(|of| of.stage == Stage::Hold);
    for _ in hold {
        all.add(of_second()).unwrap();
    }
    let bound = Quantiles {
        mean: 70_000,
        p50: 61_000,
        p99: 290_000,
        ..Quantiles::default()
    };
    run.latency_ns = Latencies {
        e2e: Some(Distribution::with_missing(&all, 0, 0).with_bound(Some(bound))),
        ..Latencies::default()
    };
    let sum = |of: fn(&Second) -> u64| run.series.iter().map(of).sum();
    run.delivery.sent_messages = sum(|second| second.sent);
    run.delivery.acknowledged = sum(|second| second.acknowledged);
    (run.delivery.bytes_sent, run.delivery.bytes_received) = (0, 0);
    (run.clients.cut, run.clients.reconnected) = (0, 0);
    let hold = || run.series.iter().filter(|of| of.stage == Stage::Hold);
    let seconds: f64 = hold().map(|of| of.span).sum();
    let rate = |of: fn(&Second) -> u64| fraction(hold().map(of).sum()) / seconds.max(1.0);
    run.rates.sent = rate(|second| second.sent);
    run.rates.received = rate(|second| second.received);
    run.rates.offered = rate(|second| second.offered);
    run.scenario.stages.hold = seconds;
    run.fill_metrics();
    run.conclude(&thresholds());
    run
}

fn thresholds() -> Vec<Threshold> {
    let limits = [
        ("e2e.p99", "< 50ms"),
        // Not every reader of JSON takes 0.9990000000000001 for what it is.
        ("delivered", ">= 99.9%"),
        ("broker.rss", "< 4MiB"),
    ];
    let read = limits.map(|(metric, condition)| Threshold::parse(metric, condition).unwrap());
    read.into()
}

/// The sample with a short series, so that every byte of its bundle can be tried.
fn small() -> RunResult {
    honest(3)
}

fn packed(test: &str) -> Vec<u8> {
    pack(&Kept::new(test, &small()).0).unwrap().bytes
}

/// The bundle with another text of one file, made to agree with its digests.
fn forged(whole: &[u8], file: &str, change: impl Fn(&str) -> String) -> Vec<u8> {
    let entries = archive::unpack(whole).unwrap();
    let before = std::str::from_utf8(find(&entries, file).unwrap()).unwrap();
    let after = change(before);
    assert_ne!(before, after);
    let with = |other: &Entry<'_>, name: &str, text: &str| other.name == name && !text.is_empty();
    let changed: Vec<Entry<'_>> = entries
        .iter()
        .map(|old| {
            if with(old, file, &after) {
                entry(old.name, after.as_bytes())
            } else {
                *old
            }
        })
        .collect();
    if file == MANIFEST {
        return archive::pack(&changed).unwrap();
    }
    let manifest = manifest::text(find(&changed, RESULT).unwrap(), &changed).unwrap();
    let changed = changed.iter().map(|old| {
        if old.name == MANIFEST {
            entry(MANIFEST, manifest.as_bytes())
        } else {
            *old
        }
    });
    archive::pack(&changed.collect::<Vec<_>>()).unwrap()
}

/// What is said of a run that was changed before its files were written.
#[track_caller]
fn check_changed(test: &str, change: fn(&mut RunResult), expected: &str) {
    let mut run = honest(12);
    change(&mut run);
    let refused = pack(&Kept::new(test, &run).0).map(|_| ());
    let text = refused.unwrap_err().to_string();
    assert!(text.contains(expected), "{text}");
}

fn refusal(bytes: &[u8]) -> String {
    verify(bytes).unwrap_err().to_string()
}

/// An archive of one entry with this header.
fn one(header: &mut Header, bytes: &[u8]) -> Vec<u8> {
    header.set_cksum();
    let mut builder = Builder::new(Vec::new());
    builder.append(header, bytes).unwrap();
    builder.into_inner().unwrap()
}

fn header(name: &str, bytes: u64) -> Header {
    let mut header = Header::new_ustar();
    // A path with `..` is not set by the checked function.
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(EntryType::Regular);
    header.set_size(bytes);
    header.set_mode(0o644);
    header
}

#[test]
fn the_same_run_gives_the_same_bytes_and_is_read_back() {
    let kept = Kept::new("same", &honest(12));
    let packed = pack(&kept.0).unwrap();
    assert_eq!(packed, pack(&kept.0).unwrap());
    let bundle = verify(&packed.bytes).unwrap();
    assert!(bundle.run == honest(12) && bundle == packed.bundle);
    let checks = bundle.checks.join("\n");
    for part in [
        "archive: 5 files",
        "series.csv: 12 seconds",
        "sums: 8 counts of the run are those of its seconds, 4 figures of the hold",
        "11 figures of 1 distributions computed again",
        "conclusions: 3 thresholds judged again",
        "latency.hlog: 11 intervals, 22 values",
    ] {
        assert!(checks.contains(part), "{checks}");
    }
}

#[test]
fn a_run_without_a_log_has_a_bundle() {
    let kept = Kept::new("no-log", &small());
    fs::remove_file(kept.0.join(LOG)).unwrap();
    let bundle = pack(&kept.0).unwrap().bundle;
    assert!(
        bundle
            .checks
            .contains(&"latency.hlog: the run has none".to_owned())
    );
}

#[test]
fn a_changed_byte_anywhere_is_found() {
    let whole = packed("byte");
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        assert!(verify(&changed).is_err(), "byte {at} of {}", whole.len());
    }
}

#[test]
fn an_archive_cut_off_anywhere_is_refused() {
    let whole = packed("cut");
    for length in 0..whole.len() {
        assert!(verify(&whole[..length]).is_err(), "{length} bytes");
    }
    let mut longer = whole;
    longer.push(0);
    assert!(refusal(&longer).contains("of the archive is not what thrum writes"));
}

#[test]
fn a_bundle_of_another_version_is_refused_with_a_sentence() {
    let manifest = br#"{ "schema": "thrum-bench-bundle/2", "files": "elsewhere" }"#;
    let bytes = archive::pack(&[entry(MANIFEST, manifest), entry("new.part", b"")]).unwrap();
    assert_eq!(
        refusal(&bytes),
        "its schema is 'thrum-bench-bundle/2', and this version of thrum reads \
         'thrum-bench-bundle/1': use the version that wrote it"
    );
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    for name in [
        "/etc/passwd",
        "../result.json",
        "a/result.json",
        ".bashrc",
        "..",
        "result\u{1b}[2J",
    ] {
        let text = refusal(&one(&mut header(name, 0), b""));
        assert!(
            text.contains("which is no name of a bundle's file"),
            "{text}"
        );
        assert!(!text.contains('\u{1b}'), "{text}");
    }
    let mut prefixed = header("result.json", 0);
    prefixed.as_ustar_mut().unwrap().prefix[..3].copy_from_slice(b"etc");
    assert!(refusal(&one(&mut prefixed, b"")).contains("etc/result.json"));
}

#[test]
fn only_plain_files_are_taken() {
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Directory,
        EntryType::Char,
        EntryType::Fifo,
        EntryType::GNULongName,
        EntryType::GNUSparse,
        EntryType::XHeader,
    ] {
        let mut header = header("result.json", 0);
        header.set_entry_type(kind);
        assert_eq!(
            refusal(&one(&mut header, b"")),
            "its entry 'result.json' is not a plain file"
        );
    }
}

#[test]
fn a_size_is_a_claim_that_nothing_is_allocated_for() {
    for bytes in [FILE_BYTES_MAX + 1, u64::MAX] {
        let text = refusal(&one(&mut header("result.json", bytes), b""));
        assert!(text.contains(&format!("claims {bytes} bytes")), "{text}");
    }
    let within = one(&mut header("result.json", FILE_BYTES_MAX), b"");
    assert_eq!(refusal(&within), "it is not a tar archive, or was cut off");
    let mut unreadable = header("result.json", 0);
    unreadable.as_old_mut().size.fill(b'x');
    assert!(refusal(&one(&mut unreadable, b"")).contains("is not a number"));
}

#[test]
fn more_files_than_a_bundle_has_are_refused() {
    let names: Vec<String> = (10..40).map(|number| format!("f{number}")).collect();
    let entries: Vec<_> = names.iter().map(|name| entry(name, b"")).collect();
    assert_eq!(
        refusal(&archive::pack(&entries).unwrap()),
        "it has more files than any bundle"
    );
    let twice = [entry(RESULT, b"{}"), entry(RESULT, b"{}")];
    assert!(refusal(&archive::pack(&twice).unwrap()).contains("or there twice"));
}

#[test]
fn files_that_the_manifest_does_not_list_are_refused() {
    let whole = packed("extra");
    let mut entries = archive::unpack(&whole).unwrap();
    entries.push(entry("z.sh", b"#!/bin/sh"));
    assert_eq!(
        refusal(&archive::pack(&entries).unwrap()),
        "'z.sh' is not among the files of its manifest"
    );
    entries.truncate(4);
    assert_eq!(
        refusal(&archive::pack(&entries).unwrap()),
        "'series.csv' is missing"
    );
    entries.remove(1);
    assert_eq!(
        refusal(&archive::pack(&entries).unwrap()),
        "'manifest.json' is missing"
    );
}

#[test]
fn a_figure_that_does_not_follow_from_its_histogram_is_found() {
    let kept = Kept::new("figure", &small());
    let p99 = small().latency_ns.e2e.unwrap().quantiles.p99;
    kept.rewrite(|text| text.replace(&format!("\"p99\": {p99}"), "\"p99\": 5"));
    let text = pack(&kept.0).unwrap_err().to_string();
    assert!(
        text.contains("result.json has 5 ns as e2e.p99, and its histogram has"),
        "{text}"
    );
}

#[test]
fn a_metric_that_does_not_follow_from_the_other_fields_is_found() {
    let kept = Kept::new("metric", &small());
    kept.rewrite(|text| text.replace("\"rate.received\": 1000.0", "\"rate.received\": 2000.0"));
    let text = pack(&kept.0).unwrap_err().to_string();
    assert!(
        text.contains("has 2000 as rate.received, and its other fields give 1000"),
        "{text}"
    );
}

#[test]
fn a_folder_or_a_device_is_no_bundle() {
    for path in ["/dev/zero", "/tmp"] {
        let text = read(Path::new(path)).unwrap_err().to_string();
        assert!(text.ends_with("it is not a file"), "{text}");
    }
}

#[test]
fn conclusions_that_do_not_follow_from_the_figures_are_found() {
    check_changed(
        "valid",
        |run| run.validity.limits.push("a thread was busy".to_owned()),
        "result.json says VALID, and the limits of its figures say INVALID",
    );
    check_changed(
        "threshold",
        |run| run.thresholds[2].pass = true,
        "result.json says that broker.rss < 4MiB was kept, and its figures say missed (8 MiB)",
    );
    check_changed(
        "withheld-threshold",
        |run| {
            let why = "the accounts of the hold were read 3s late".to_owned();
            run.validity.withheld.insert("broker.rss".to_owned(), why);
            run.fill_metrics();
        },
        "its figures say missed (withheld: the accounts of the hold were read 3s late)",
    );
    check_changed(
        "faults",
        |run| run.verdict.faults.push("messages lost: 3".to_owned()),
        "result.json says PASS, and has faults",
    );
    check_changed(
        "code",
        |run| run.exit_code = 0,
        "result.json has exit code 0, and its conclusions give 99",
    );
}

#[test]
fn withheld_figures_and_errors_that_do_not_follow_from_their_histogram_are_found() {
    check_changed(
        "withheld",
        |run| {
            let e2e = run.latency_ns.e2e.as_mut().unwrap();
            e2e.withheld.remove("p99");
            run.fill_metrics();
            run.conclude(&thresholds());
        },
        "e2e.p99: by its histogram and its error it is withheld (20 values are too few: it takes 1 000)",
    );
    check_changed(
        "bound",
        |run| {
            let e2e = run.latency_ns.e2e.as_mut().unwrap();
            e2e.bound.as_mut().unwrap().mean = 300_000_000;
        },
        "e2e.mean: by its histogram and its error it is withheld (up to 300ms of ",
    );
    check_changed(
        "larger",
        |run| {
            let e2e = run.latency_ns.e2e.as_mut().unwrap();
            let histogram = e2e.histogram().unwrap();
            let bound = Quantiles {
                p50: 800_900_000,
                ..Quantiles::default()
            };
            *e2e = Distribution::with_missing(&histogram, 0, 0).with_bound(Some(bound));
            run.fill_metrics();
            run.conclude(&thresholds());
        },
        "has 800900000 ns as error of e2e.p50",
    );
    check_changed(
        "curve",
        |run| run.latency_ns.e2e.as_mut().unwrap().curve[1].1 += 1,
        "the curve of e2e in result.json is not that of its histogram",
    );
    check_changed(
        "left-out",
        |run| {
            run.metrics.remove("broker.rss");
        },
        "result.json has no broker.rss, and its other fields give one",
    );
}

#[test]
fn seconds_that_do_not_add_up_are_found() {
    check_changed(
        "sent",
        |run| run.series[5].sent += 1,
        "result.json has sent: 10000, and the sum of its seconds is 10001",
    );
    check_changed(
        "order",
        |run| run.series.swap(4, 5),
        "the seconds of result.json do not ascend",
    );
    check_changed(
        "quantile",
        |run| run.series[5].e2e.as_mut().unwrap().p99 = 5,
        "latency.hlog: line 10 is not what result.json has of its second",
    );
    check_changed(
        "sum",
        |run| {
            let fast = sample::distribution(&[800_000; 20]).histogram().unwrap();
            run.latency_ns.e2e = Some(Distribution::with_missing(&fast, 0, 0).with_bound(None));
            run.fill_metrics();
            run.conclude(&thresholds());
        },
        "its seconds do not add up to e2e of result.json",
    );
}

#[test]
fn rates_and_a_hold_that_are_not_those_of_its_seconds_are_found() {
    check_changed(
        "rate-sent",
        |run| {
            run.rates.sent *= 1.01;
            run.fill_metrics();
        },
        "result.json has messages sent in the hold: ",
    );
    check_changed(
        "rate-received",
        |run| {
            run.rates.received += 1.0;
            run.fill_metrics();
        },
        "result.json has messages received in the hold: ",
    );
    check_changed(
        "rate-offered",
        |run| {
            run.rates.offered *= 1.01;
            run.fill_metrics();
        },
        "result.json has messages due in the hold: ",
    );
    check_changed(
        "hold",
        |run| run.scenario.stages.hold += 0.5,
        "result.json has a hold of seconds: ",
    );
    check_changed(
        "hold-of-none",
        |run| run.scenario.stages.hold = 1e308,
        "result.json has a hold of seconds: ",
    );
}

#[test]
fn a_changed_row_of_the_series_is_found_whatever_its_digest() {
    let whole = packed("series");
    let row = |text: &str| {
        refusal(&forged(&whole, SERIES, |series| {
            series.replace(text, "7,1,")
        }))
    };
    assert!(row("2,1,").contains("row 3 of series.csv is not that of the seconds"));
    let head = forged(&whole, SERIES, |series| series.replace("at_s", "at"));
    assert!(refusal(&head).contains("the head of series.csv is not that"));
    let longer = forged(&whole, SERIES, |series| format!("{series}3,1,hold\n"));
    assert!(refusal(&longer).contains("more rows than result.json has seconds"));
    let cut = forged(&whole, SERIES, |series| series.trim_end().to_owned());
    assert!(refusal(&cut).contains("row 3 of series.csv"));
}

#[test]
fn a_changed_line_of_the_log_is_found_whatever_its_digest() {
    let whole = pack(&Kept::new("log", &honest(5)).0).unwrap().bytes;
    let fast = sample::distribution(&[700_000, 3_900_000]);
    let fast = hlog::line("e2e", 3.0, 1.0, &fast.histogram().unwrap());
    let second = hlog::line("e2e", 3.0, 1.0, &of_second());
    let check = |change: &dyn Fn(&str) -> String, expected: &str| {
        let text = refusal(&forged(&whole, LOG, change));
        assert!(text.contains(expected), "{text}");
    };
    check(
        &|log| log.replace(&second, &fast),
        "line 8 is not what result.json has of its second",
    );
    check(
        &|log| log.replace(&second, ""),
        "line 8 comes after second 4, whose e2e is missing",
    );
    check(
        &|log| log.replace(&second, &second.repeat(2)),
        "line 9 comes after second 5, whose e2e is missing",
    );
    check(
        &|log| log.replace("Tag=e2e,3.000,1.000,3.9", "Tag=e2e,3.000,1.000,2.9"),
        "line 8 has another time or maximum than its histogram",
    );
    check(
        &|log| log.replace("Tag=e2e,3.000", "Tag=service,3.000"),
        "line 8 comes after second 4, whose e2e is missing",
    );
    check(
        &|log| log.replace("Tag=e2e,3.000", "Tag=other,3.000"),
        "line 8 is of no latency of a run",
    );
    check(
        &|log| format!("{log}# by someone else\n"),
        "line 10 is not an interval",
    );
    check(
        &|log| log.replace("1795252323", "1795252324"),
        "or its header is not that of the run's start",
    );
    check(&|log| log.trim_end().to_owned(), "latency.hlog was cut off");
}

#[test]
fn a_figure_of_another_tool_that_does_not_follow_is_found() {
    let run = small();
    let compat = crate::compat::Compat::xmeter(&run).unwrap();
    let kept = Kept::new("compat", &run);
    let with = crate::compat::WithCompat {
        run: &run,
        compat: Some(&compat),
    };
    let text = serde_json::to_string_pretty(&with).unwrap();
    fs::write(kept.0.join(RESULT), &text).unwrap();
    let whole = pack(&kept.0).unwrap().bytes;
    let changed = forged(&whole, RESULT, |result| {
        result.replace("\"payload_bytes\": 40", "\"payload_bytes\": 16")
    });
    assert!(refusal(&changed).contains("the field compat of result.json does not follow"));
}

#[test]
fn a_text_that_would_take_memory_or_time_is_refused_with_the_limit() {
    let whole = packed("limits");
    let check = |file: &str, change: &dyn Fn(&str) -> String, expected: &str| {
        let text = refusal(&forged(&whole, file, change));
        assert_eq!(text, expected);
    };
    check(
        RESULT,
        &|result| {
            let deep = "[".repeat(20) + &"]".repeat(20);
            result.replace("\"tool\": {", &format!("\"tool\": {{ \"x\": {deep},"))
        },
        "'manifest.json' exceeds the limit DEPTH_MAX: 16",
    );
    check(
        RESULT,
        &|result| {
            result.replace(
                "\"marks\": [",
                &format!("\"marks\": [{}", "{},".repeat(180_000)),
            )
        },
        "'result.json' exceeds the limit ENTRIES_MAX: 172800",
    );
    check(
        RESULT,
        &|result| {
            let long = "x".repeat(1 << 20);
            result.replace("\"started\"", &format!("\"more\": \"{long}\", \"started\""))
        },
        "'result.json' exceeds the limit FIELD_BYTES_MAX: 1048576",
    );
    check(
        SCENARIO,
        &|scenario| format!("{scenario}# {}", "x".repeat(256 * 1024)),
        "'scenario.toml' exceeds the limit SCENARIO_BYTES_MAX: 262144",
    );
    check(
        MANIFEST,
        &|manifest| format!("{manifest}{}", " ".repeat(4 * 1024 * 1024)),
        "'manifest.json' exceeds the limit MANIFEST_BYTES_MAX: 4194304",
    );
}

#[test]
fn names_within_a_bundle_are_shown_escaped() {
    let whole = packed("names");
    for (from, to) in [
        ("thrum-bench-bundle/1", "\\u202eb\\u001b[2J\\nfake"),
        (
            "\"name\": \"series.csv\"",
            "\"name\": \"..\\u2066/\\u001b\\n\"",
        ),
    ] {
        let changed = forged(&whole, MANIFEST, |manifest| manifest.replace(from, to));
        let text = refusal(&changed);
        let is_plain = |letter: char| letter.is_ascii_graphic() || letter == ' ';
        assert!(text.chars().all(is_plain), "{text:?}");
        assert!(text.len() < 300, "{text}");
    }
}
