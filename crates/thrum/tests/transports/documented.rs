//! The commands of the guide, verbatim.

use std::path::Path;

use crate::fixture::{Fixture, LIMIT};

/// The guide's names for the fixture's addresses.
const NAMES: [(&str, &str); 7] = [
    ("mqtt://broker.example", "mqtt://{mqtt}"),
    ("mqtts://broker.example", "mqtts://{mqtts}"),
    ("ws://broker.example:8083", "ws://{ws}"),
    ("wss://broker.example:8084", "wss://{wss}"),
    ("quic://broker.example", "quic://{quic}"),
    ("unix:///run/thrum.sock", "unix:plain.sock"),
    ("-h broker.example", "-h localhost -p PORT"),
];

#[test]
fn the_commands_of_the_guide_work() {
    let fixture = Fixture::new("guide");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/clients.md");
    let guide = std::fs::read_to_string(path).unwrap();
    let lines: Vec<String> = guide
        .lines()
        .filter_map(|line| line.strip_prefix("thrum "))
        .map(|line| {
            let line = line.split(" #").next().unwrap().to_owned();
            let here = |line: String, (name, place): &(&str, &str)| line.replace(name, place);
            let line = NAMES.iter().fold(line, here);
            line.replace("PORT", fixture.port("mqtts"))
        })
        .collect();
    let of = |command: &'static str| lines.iter().filter(move |line| line.starts_with(command));
    assert_eq!((of("pub ").count(), of("sub ").count()), (8, 2));
    for line in of("pub ") {
        fixture.runs(&format!("{line} -r -q 1"));
    }
    for line in of("sub ") {
        let printed = fixture.run(&format!("{line} -C 1 -W {LIMIT}")).printed;
        assert!(printed.ends_with("world\n"), "{line}: {printed}");
    }
}
