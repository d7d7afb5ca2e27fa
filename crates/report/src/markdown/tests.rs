//! Reports of runs whose every figure is known.

use super::*;
use crate::sample;

#[test]
fn the_report_has_results_and_full_disclosure() {
    let expected = "# p2p-1K: PASS, VALID

one publisher to one subscriber, a thousand times

2 000 clients · 10s hold · QoS1 · 16 B · MQTT 3.1.1

**PASS:** all 15 000 deliveries arrived in order, each once

## Thresholds

| limit | measured | margin | kept |
| --- | --: | --: | --: |
| e2e.p99 \\< 50ms | 41ms | 18 % below | ✓ |
| delivered == 100% | 100 % (15 000 of 15 000) | at the limit | ✓ |
| broker.rss \\< 4MiB | 8 MiB | 100 % above | ✗ |
";
    let text = markdown(&sample::run());
    assert!(text.starts_with(expected), "{text}");
    for line in [
        "| reconnect | 1 | 5ms | 5ms | 5ms | 5ms | 5ms | 5ms | 5ms | 5ms | 5ms | 5ms |",
        "| e2e | 4 | 900µs (generator ≤ 61µs) | 3.9ms (generator ≤ 80µs) |",
        "| broker | 1 | 1.2 | 50µs | ",
        "| reset by the broker | 2 | 4.5s | 7.2s |",
        "| cut 10 connections | 5s | all back within 2s |",
        "| broker | thrum 0.1.0, pid 42 on the machine of the generator |",
        "| group publishers | 1 000 clients: publish test/{i} 1/s QoS 1 · 16 B random |",
        "| source addresses | 127.0.0.2-127.0.0.9 |",
        "| net.core.somaxconn | 4096 |",
        "### Configuration of the broker\n\n```\n[mqtt]\nworkers = 1\n```\n",
        "### Scenario\n\n```toml\ntarget = \"mqtt://127.0.0.1:1883\"\n```\n",
        "```sh\nthrum bench run p2p-1K --target mqtt://127.0.0.1:1883\n```",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn reasons_not_to_trust_a_run_come_first() {
    let mut run = sample::bad_run();
    run.scenario.scale = 0.1;
    run.interrupted = true;
    let text = markdown(&run);
    assert!(text.starts_with("# p2p-1K: FAIL, INVALID\n"), "{text}");
    let notes = "
- scaled: 0.1 of the full scenario
- INVALID: generator lag p99 12ms, more than 10ms: stop other work on this machine
- ended early from outside
";
    assert!(text.contains(notes), "{text}");
}

#[test]
fn code_cannot_leave_its_block() {
    let mut run = sample::run();
    run.scenario.toml = "a = '''\n```\n# escaped\n````\n'''".to_owned();
    assert!(markdown(&run).ends_with("`````toml\na = '''\n```\n# escaped\n````\n'''\n`````\n"));
}

#[test]
fn a_run_of_connections_has_no_empty_sections() {
    let text = markdown(&sample::idle_run());
    for heading in ["## Thresholds", "## Errors", "## Marks", "| QoS |"] {
        assert!(!text.contains(heading), "{text}");
    }
}

#[test]
fn a_run_of_a_bound_generator_is_repeated_on_the_same_cores() {
    let mut run = sample::run();
    let settings = &mut run.machine.settings;
    settings.insert(crate::result::AFFINITY.to_owned(), "0".to_owned());
    let text = markdown(&run);
    let command = "```sh\ntaskset -c 0 thrum bench run p2p-1K --target mqtt://127.0.0.1:1883\n```";
    assert!(text.contains(command), "{text}");
    assert!(text.contains("| cpu.affinity | 0 |"), "{text}");
}
