//! Bundles of a sample run, and what is done to them.

use super::*;
use crate::folder::{Files, RunFolder};
use crate::result::Latencies;
use crate::{hlog, sample};
use tar::{Builder, EntryType, Header};

/// A run folder of its own for each test.
struct Kept(PathBuf);

impl Kept {
    fn new(test: &str, run: &RunResult) -> Self {
        let name = format!("thrum-bundle-{}-{test}", std::process::id());
        let parent = std::env::temp_dir().join(name);
        let folder = RunFolder::create(&parent, &run.started, &run.scenario.name).unwrap();
        let log = log();
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

fn log() -> String {
    let histogram = sample::distribution(&[900_000, 1_000_000])
        .histogram()
        .unwrap();
    hlog::header(1e9) + &hlog::line("e2e", 0.0, 1.0, &histogram)
}

/// The sample with a short series, so that every byte of its bundle can be tried.
fn small() -> RunResult {
    let mut run = sample::run();
    run.series.truncate(1);
    run.latency_ns = Latencies {
        e2e: run.latency_ns.e2e,
        ..Latencies::default()
    };
    run.fill_metrics();
    run
}

fn packed(test: &str) -> Vec<u8> {
    pack(&Kept::new(test, &small()).0).unwrap()
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
    let kept = Kept::new("same", &sample::run());
    let bytes = pack(&kept.0).unwrap();
    assert_eq!(bytes, pack(&kept.0).unwrap());
    let bundle = verify(&bytes).unwrap();
    assert!(bundle.run == sample::run());
    let checks = bundle.checks.join("\n");
    for part in [
        "archive: 5 files",
        "series.csv: 12 seconds",
        "distributions computed again",
        "latency.hlog: 1 intervals, 2 values",
    ] {
        assert!(checks.contains(part), "{checks}");
    }
}

#[test]
fn a_run_without_a_log_has_a_bundle() {
    let kept = Kept::new("no-log", &small());
    fs::remove_file(kept.0.join(LOG)).unwrap();
    let bundle = verify(&pack(&kept.0).unwrap()).unwrap();
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
