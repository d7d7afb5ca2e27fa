//! A converted configuration of mosquitto is a valid configuration of thrum.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thrum_migrate::mosquitto::testing::{CONFIGURATIONS, samples};
use thrum_migrate::mosquitto::{Files, Imported, import};

use super::{Loaded, Request, Source, compose};

/// No files.
struct Nothing;

impl Files for Nothing {
    fn read(&self, _path: &Path) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn list(&self, _folder: &Path) -> io::Result<Vec<PathBuf>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn is_missing(&self, _path: &Path) -> bool {
        true
    }
}

#[track_caller]
fn imported(text: &str) -> Imported {
    let main = Source::new(PathBuf::from("m.conf"), text.to_owned());
    match import(&main, &Nothing) {
        Ok(imported) => imported,
        Err(problems) => panic!("{text}\n{problems}"),
    }
}

#[track_caller]
fn load(text: &str) -> Loaded {
    let imported = imported(text);
    let source = Source {
        path: PathBuf::from("m.conf"),
        text: imported.toml,
        made_of: imported.origins,
    };
    match compose(&[Arc::new(source)], Vec::new(), &Request::default()) {
        Ok(loaded) => loaded,
        Err(problems) => panic!("{text}\n{problems}"),
    }
}

#[test]
fn every_option_gives_a_configuration_that_is_read() {
    for text in samples() {
        load(&text);
    }
}

#[test]
fn whole_configurations_are_read() {
    for text in CONFIGURATIONS {
        load(text);
    }
    for limit in [
        "max_queued_bytes",
        "max_queued_messages",
        "max_inflight_messages",
        "memory_limit",
    ] {
        load(&format!("{limit} 0"));
        load(&format!("{limit} 1"));
    }
    for limit in [
        "message_size_limit 268435455",
        "max_packet_size 268435456",
        "max_packet_size 20",
    ] {
        load(limit);
    }
}

#[test]
fn keys_come_from_the_lines_of_mosquitto() {
    let loaded = load("# a broker\nlistener 1884\nsys_interval 5\n");
    for (key, origin) in [
        ("sys.interval", "m.conf:3"),
        ("listeners.mqtt.bind", "m.conf:2"),
        ("auth.anonymous", "m.conf, as mosquitto"),
        ("node.name", "default"),
    ] {
        assert_eq!(loaded.origin(key).to_string(), origin, "{key}");
    }
}

#[test]
fn a_problem_of_the_whole_is_at_the_line_of_mosquitto() {
    let imported = imported("listener 1884 127.0.0.1\nsys_interval 5\nlistener 1884 127.0.0.1\n");
    let source = Source {
        path: PathBuf::from("m.conf"),
        text: imported.toml,
        made_of: imported.origins,
    };
    let problems = compose(&[Arc::new(source)], Vec::new(), &Request::default()).unwrap_err();
    let problems = problems.to_string();
    let expected = "m.conf:3: 127.0.0.1:1884 is already used by the listener \"mqtt\"\n";
    assert!(problems.starts_with(expected), "{problems}");
}
