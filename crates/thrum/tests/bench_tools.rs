//! `thrum bench versus`, `search`, `import`, `new` and what looks at kept runs, with the real
//! program.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("thrum-tools-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn thrum(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_thrum"));
        command.args(line.split_whitespace()).current_dir(&self.0);
        command.output().unwrap()
    }

    /// The only file of that name below the runs.
    fn json(&self, name: &str) -> Value {
        let runs = fs::read_dir(self.0.join("runs")).unwrap();
        let file = runs
            .flatten()
            .map(|run| run.path().join(name))
            .find(|file| file.is_file());
        serde_json::from_str(&fs::read_to_string(file.unwrap()).unwrap()).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn text(output: &Output) -> String {
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    format!("{out}{err}")
}

const SMALL: &str = "--scenario p2p-1K --scale 0.02 --duration 1s --warmup 0s";

#[test]
fn brokers_are_started_in_turns_measured_and_stopped() {
    let folder = Folder::new("versus");
    let has_mosquitto = Path::new("/usr/sbin/mosquitto").exists();
    let names = if has_mosquitto {
        "thrum,mosquitto"
    } else {
        "thrum"
    };
    let output = folder.thrum(&format!(
        "bench versus {SMALL} --rounds 2 --brokers {names}"
    ));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let report = folder.json("versus.json");
    let runs = report["runs"].as_array().unwrap();
    let order: Vec<&str> = runs
        .iter()
        .map(|run| run["broker"].as_str().unwrap())
        .collect();
    if has_mosquitto {
        assert_eq!(order, ["thrum", "mosquitto", "mosquitto", "thrum"]);
    } else {
        assert_eq!(order, ["thrum", "thrum"]);
    }
    for standing in report["standings"].as_array().unwrap() {
        assert_eq!(
            (&standing["measured"], &standing["passed"]),
            (&2.into(), &2.into()),
            "{standing}"
        );
        assert!(
            standing["figures"]["broker.rss"]["median"]
                .as_f64()
                .unwrap()
                > 0.0,
            "{standing}"
        );
    }
    let kept = runs[0]["ended"]["folder"].as_str().unwrap();
    assert!(
        text(&output).contains("versus.html") && kept.starts_with("runs/thrum/"),
        "{kept}"
    );
}

const PAGE: &str = r#"
title = "Small"
text = "Two *runs*."
brokers = ["thrum", "relay"]
rounds = 1
flags = "--scale 0.02 --duration 1s --warmup 0s"

[[table]]
title = "Pairs"
rows = ["p2p-1K --rate 20/s"]
"#;

#[test]
fn a_page_is_measured_and_written_and_goes_on_where_it_stopped() {
    let folder = Folder::new("page");
    fs::write(folder.0.join("small.toml"), PAGE).unwrap();
    let output = folder.thrum("bench page small.toml --page small.md");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let page = fs::read_to_string(folder.0.join("small.md")).unwrap();
    for part in [
        "# Small",
        "Two *runs*.",
        "| p2p-1K --rate 20/s | thrum |",
        "| p2p-1K --rate 20/s | relay |",
        "| 1 of 1 |",
        "thrum bench page small.toml --page small.md",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let runs = fs::read_dir(folder.0.join("runs")).unwrap();
    let made = runs.flatten().next().unwrap().path();
    // As if it had been interrupted after the first run.
    let kept = folder.json("page.json");
    let mut shorter = kept.clone();
    shorter["runs"].as_array_mut().unwrap().truncate(1);
    fs::write(made.join("page.json"), shorter.to_string()).unwrap();
    let name = made.display();
    let output = folder.thrum(&format!("bench page small.toml --resume {name}"));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let again = folder.json("page.json");
    assert_eq!(again["runs"].as_array().unwrap().len(), 2);
    assert_eq!(again["runs"][0], kept["runs"][0], "it is not made again");
    assert_ne!(again["runs"][1], kept["runs"][1], "it is made again");
}

/// Sends ^C to a command when a line of its messages has `part`.
fn interrupted_at(folder: &Folder, line: &str, part: &str) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thrum"));
    command
        .args(line.split_whitespace())
        .current_dir(&folder.0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut messages = BufReader::new(child.stderr.take().unwrap());
    let mut shown = String::new();
    while !shown.lines().last().is_some_and(|line| line.contains(part)) {
        assert_ne!(messages.read_line(&mut shown).unwrap(), 0, "{shown}");
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    messages.read_to_string(&mut shown).unwrap();
    let output = child.wait_with_output().unwrap();
    shown.push_str(&String::from_utf8_lossy(&output.stdout));
    (output.status.code(), shown)
}

#[test]
fn half_a_page_does_not_take_the_place_of_a_whole_one() {
    let folder = Folder::new("page-interrupted");
    let plan = PAGE.replace("\", \"relay", "").replace(
        "--rate 20/s\"",
        "--rate 20/s\", \"p2p-1K --rate 20/s --duration 600s\"",
    );
    fs::write(folder.0.join("small.toml"), plan).unwrap();
    fs::write(folder.0.join("small.md"), "whole").unwrap();
    let page = || fs::read_to_string(folder.0.join("small.md")).unwrap();
    let line = "bench page small.toml --page small.md --threads 1";
    let (code, shown) = interrupted_at(&folder, line, "run 2/2");
    assert_eq!(code, Some(130), "{shown}");
    let again = format!("to go on: thrum {line} --resume ./runs/");
    assert!(shown.contains(&again), "{shown}");
    assert_eq!(page(), "whole");
    let made = fs::read_dir(folder.0.join("runs")).unwrap();
    let made = made.flatten().next().unwrap().path();
    let so_far = fs::read_to_string(made.join("page.md")).unwrap();
    assert!(so_far.contains("| 1 of 1 |"), "{so_far}");
    // The start of a broker has no places of this machine.
    assert!(
        so_far.contains("thrum serve --dev") && !so_far.contains("/tmp"),
        "{so_far}"
    );
    let name = made.display();
    let other = format!("bench page small.toml --resume {name} --no-runs --threads 2");
    let output = folder.thrum(&other);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(
        text(&output).contains("the generator was '"),
        "{}",
        text(&output)
    );
    let output = folder.thrum(&format!("{line} --resume {name} --no-runs --json"));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_eq!(page(), so_far);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json, folder.json("page.json"));
    assert_eq!(json["runs"].as_array().map(Vec::len), Some(1));
}

/// A broker that crashes after two seconds, and one that does not start.
fn short_lived_brokers() -> String {
    let own = env!("CARGO_BIN_EXE_thrum");
    format!(
        r#"
[[broker]]
name = "mortal"
programs = ["/bin/sh"]
launch = ["{{program}}", "-c", "{own} serve --dev --listen 127.0.0.1:{{port}} & sleep 2; kill -9 $!; echo out of luck; exit 9"]
note = "it dies"

[[broker]]
name = "stillborn"
programs = ["/bin/sh"]
launch = ["{{program}}", "-c", "echo no licence; exit 3"]
"#
    )
}

#[test]
fn a_crash_stays_on_the_page_and_a_broker_that_did_not_start_is_tried_again() {
    let folder = Folder::new("page-crash");
    let brokers = short_lived_brokers();
    // The file of brokers is beside the plan, wherever the command runs.
    fs::create_dir(folder.0.join("plans")).unwrap();
    fs::write(folder.0.join("plans/brokers.toml"), brokers).unwrap();
    let plan = PAGE
        .replace(r#""thrum", "relay""#, r#""mortal", "stillborn""#)
        .replace("rounds =", "broker_file = \"brokers.toml\"\nrounds =")
        .replace("--duration 1s", "--duration 3s");
    fs::write(folder.0.join("plans/crash.toml"), plan).unwrap();
    let output = folder.thrum("bench page plans/crash.toml");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let runs = fs::read_dir(folder.0.join("runs")).unwrap();
    let made = runs.flatten().next().unwrap().path();
    let page = fs::read_to_string(made.join("page.md")).unwrap();
    for part in [
        "mortal: crashed: exit status: 9",
        "stillborn: ",
        "- **mortal** it dies",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let name = made.display();
    let output = folder.thrum(&format!("bench page plans/crash.toml --resume {name}"));
    let shown = text(&output);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(
        !shown.contains(": mortal ·") && shown.contains(": stillborn ·"),
        "{shown}"
    );
}

#[test]
fn a_port_that_is_taken_is_named_before_anything_is_measured() {
    let folder = Folder::new("page-port");
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let own = env!("CARGO_BIN_EXE_thrum");
    let brokers = format!(
        "[[broker]]\nname = \"fixed\"\nprograms = [\"{own}\"]\nport = {port}\nlaunch = [\"{{program}}\", \
         \"serve\", \"--dev\", \"--listen\", \"127.0.0.1:{port}\"]\n"
    );
    fs::write(folder.0.join("brokers.toml"), brokers).unwrap();
    let plan = PAGE
        .replace(r#""thrum", "relay""#, r#""fixed""#)
        .replace("rounds =", "broker_file = \"brokers.toml\"\nrounds =");
    fs::write(folder.0.join("small.toml"), plan).unwrap();
    let message =
        format!("fixed has to listen on port {port}, but something listens there already");
    for (line, code) in [
        ("bench page small.toml".to_owned(), 2),
        (format!("bench versus brokers.toml {SMALL} --rounds 1"), 1),
    ] {
        let output = folder.thrum(&line);
        assert_eq!(output.status.code(), Some(code), "{}", text(&output));
        assert!(text(&output).contains(&message), "{}", text(&output));
    }
}

#[test]
fn a_page_with_a_mistake_says_where() {
    let folder = Folder::new("page-mistakes");
    for (from, to, part) in [
        ("--rate 20/s", "--rat 20/s", "row 'p2p-1K --rat 20/s'"),
        ("p2p-1K", "p2p-1L", "did you mean"),
        ("\"relay\"", "\"rely\"", "no broker named 'rely'"),
        ("rounds", "round", "small.toml:5:1: unknown field `round`"),
        ("\"relay\"", "\"thrum\"", "names the broker 'thrum' twice"),
    ] {
        fs::write(folder.0.join("small.toml"), PAGE.replace(from, to)).unwrap();
        let output = folder.thrum("bench page small.toml");
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        assert!(text(&output).contains(part), "{}", text(&output));
    }
}

#[test]
fn the_relay_runs_by_name_and_is_called_no_broker() {
    let folder = Folder::new("relay-by-name");
    let output = folder.thrum(&format!("bench versus {SMALL} --rounds 1 --brokers relay"));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let report = folder.json("versus.json");
    assert_eq!(report["standings"][0]["passed"], 1, "{report}");
    let runs = fs::read_dir(folder.0.join("runs")).unwrap();
    let run = runs.flatten().next().unwrap().path();
    for page in ["versus.md", "versus.html"] {
        let page = fs::read_to_string(run.join(page)).unwrap();
        assert!(page.contains("relay: not a broker"), "{page}");
    }
}

#[test]
fn the_relay_prints_its_address_and_at_the_end_its_totals() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_thrum"))
        .args([
            "bench",
            "relay",
            "--listen",
            "127.0.0.1:0",
            "--threads",
            "2",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    output.read_line(&mut first).unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(
        first.starts_with("reference relay, not a broker: mqtt://127.0.0.1:")
            && first.contains("2 threads"),
        "{first}"
    );
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert!(rest.starts_with("connections 0, refused 0"), "{rest}");
}

#[test]
fn a_broker_that_crashes_and_one_that_does_not_start_are_results() {
    let folder = Folder::new("crash");
    let absent = r#"
[[broker]]
name = "absent"
programs = ["no-such-broker"]
launch = ["{program}"]
obtain = "nowhere"
"#;
    let brokers = short_lived_brokers() + absent;
    fs::write(folder.0.join("brokers.toml"), brokers).unwrap();
    let small = SMALL.replace("--duration 1s", "--duration 3s");
    let output = folder.thrum(&format!("bench versus brokers.toml {small} --rounds 1"));
    let shown = text(&output);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    let report = folder.json("versus.json");
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs[0]["ended"]["kind"], "crashed", "{shown}");
    let how = runs[0]["ended"]["how"].as_str().unwrap();
    assert!(
        how.contains("exit status: 9") && how.contains("out of luck"),
        "{how}"
    );
    assert_eq!(runs[1]["ended"]["kind"], "failed", "{shown}");
    assert!(
        shown.contains("stillborn ended while it started: exit status: 3"),
        "{shown}"
    );
    assert!(
        shown.contains("absent: not installed; get it: nowhere"),
        "{shown}"
    );
}

#[test]
fn the_search_keeps_its_trials_and_prints_its_answer() {
    let folder = Folder::new("search");
    // Reuses the launcher: a broker for as long as the search takes.
    let mut broker = Command::new(env!("CARGO_BIN_EXE_thrum"));
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let mut broker = broker
        .args(["serve", "--dev", "--listen", &format!("127.0.0.1:{port}")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        std::thread::yield_now();
    }
    let line = format!(
        "bench search p2p-1K --publishers 5 --p99 30s --from 10 --to 16 --resolution 50% --hold 1s --repeat 1 \
         --rounds 2 --target 127.0.0.1:{port}"
    );
    let output = folder.thrum(&line);
    broker.kill().unwrap();
    broker.wait().unwrap();
    let shown = text(&output);
    // 1 and 7: this machine was too busy, which the answer says.
    assert!(matches!(output.status.code(), Some(0 | 1 | 7)), "{shown}");
    let report = folder.json("search.json");
    assert_eq!(report["schema"], "thrum-bench-search/1");
    let trials = report["trials"].as_array().unwrap();
    assert!(trials.len() >= 2 && trials[0]["load"] == 10.0, "{shown}");
    assert!(shown.contains(report["text"].as_str().unwrap()), "{shown}");
    assert_eq!(report["rounds"].as_array().map(Vec::len), Some(2));
    assert_eq!(report["estimate"]["confidence"], 0.5, "{shown}");
    let place = "round 2 of 2, trial 1 of at most 60 · ";
    assert!(shown.contains(place), "{shown}");
}

#[test]
fn a_command_line_becomes_a_file_and_its_notes_are_shown() {
    let folder = Folder::new("import");
    let mut command = Command::new(env!("CARGO_BIN_EXE_thrum"));
    let line = "emqtt_bench pub -c 10 -I 100 -t bench/%i -q 1 -l";
    let output = command
        .args(["bench", "import", "emqtt-bench", line, "-o", "pub.toml"])
        .current_dir(&folder.0)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(
        text(&output).contains("note: -l/--lowmem"),
        "{}",
        text(&output)
    );
    let file = fs::read_to_string(folder.0.join("pub.toml")).unwrap();
    assert!(file.contains("rate = \"10/s\""), "{file}");
    let refused = folder.thrum("bench import emqtt-bench nonsense");
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
}

#[test]
fn a_new_scenario_does_not_overwrite_a_file() {
    let folder = Folder::new("new");
    assert_eq!(folder.thrum("bench new mine.toml").status.code(), Some(0));
    let written = fs::read_to_string(folder.0.join("mine.toml")).unwrap();
    let parsed = written.parse::<toml_edit::DocumentMut>().unwrap();
    assert!(parsed.contains_key("groups"));
    let again = folder.thrum("bench new mine.toml");
    assert_eq!(again.status.code(), Some(2), "{}", text(&again));
    assert!(
        text(&again).contains("mine.toml exists"),
        "{}",
        text(&again)
    );
}

#[test]
fn mistakes_are_answered_with_usage_and_a_hint() {
    let folder = Folder::new("mistakes");
    for (line, hint) in [
        ("bench run p2q-1K", "did you mean 'p2p-1K'?"),
        ("bench suite basics", "did you mean 'basic'?"),
        (
            "bench show latest",
            "`thrum bench ls --out ./runs` lists the runs",
        ),
        ("bench search conn-tcp-10K-100 --p99 5ms", "--vary clients"),
        (
            "bench search p2p-1K --p99 5ms --from 10 --to 5",
            "--from <= --to",
        ),
        ("bench versus --brokers x", "no broker named 'x'"),
        ("bench run p2p-1K --insecure", "mqtts://"),
        ("bench pub --subscribers 5", "leave out --subscribers"),
    ] {
        let output = folder.thrum(line);
        assert_eq!(output.status.code(), Some(2), "{line}: {}", text(&output));
        assert!(text(&output).contains(hint), "{line}: {}", text(&output));
    }
    let unreachable = folder.thrum("bench run p2p-1K --target 127.0.0.1:1");
    assert_eq!(unreachable.status.code(), Some(5), "{}", text(&unreachable));
}
