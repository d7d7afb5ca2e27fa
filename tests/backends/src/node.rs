//! The broker as users start it: the built program with a configuration file.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::{Value, json};
use thrum_conformance::broker::thrum_binary;

use crate::process::Process;
use thrum_conformance::folder::Folder;

/// A running broker.
#[derive(Debug)]
pub struct Node {
    process: Process,
    folder: Folder,
}

impl Node {
    /// Starts a broker with these tables and a listener `mqtt`, without anonymous access.
    ///
    /// # Panics
    /// It does not start.
    pub fn start(tables: &Value) -> Self {
        let mut settings = json!({
            "listeners": { "mqtt": { "bind": "127.0.0.1:0" } },
            "node": { "workers": 2 },
            "sys": { "interval": "1s" },
        });
        merge(&mut settings, tables);
        settings["auth"]["anonymous"] = json!(false);
        let folder = Folder::new("node");
        let text = toml_edit::ser::to_string(&settings).expect("settings that TOML can express");
        let file = folder.write("thrum.toml", &text);
        let mut program = Vec::new();
        if tables["listeners"]["http"].is_object() {
            // The runner of the suites turns the port off, since its brokers would share one.
            program.extend(["env", "-u", "THRUM_LISTENERS__HTTP__BIND"].map(PathBuf::from));
        }
        program.extend([thrum_binary(), "serve".into(), "-c".into(), file]);
        let process = Process::start_as_myself(&program, &folder.path().join("log"));
        process.wait_until("is not ready", || process.log().contains("\n  Mode "));
        Self { process, folder }
    }

    /// Address of its listener `mqtt`.
    pub fn address(&self) -> SocketAddr {
        self.address_of("mqtt")
    }

    /// Address of a listener.
    ///
    /// # Panics
    /// There is none of this name.
    pub fn address_of(&self, listener: &str) -> SocketAddr {
        let log = self.process.log();
        let mut lines = log.lines();
        let end = format!("  ({listener})");
        let address = lines.find_map(|line| line.strip_suffix(&end)?.split("mqtt://").nth(1));
        let address = address.and_then(|address| address.parse().ok());
        address.unwrap_or_else(|| panic!("no listener {listener}: {log}"))
    }

    /// Its process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Folder of its files.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Asserts that it runs and that no thread has panicked.
    ///
    /// # Panics
    /// It is not.
    pub fn assert_sound(&self) {
        let log = self.process.shown_log();
        assert!(self.process.is_alive(), "the broker ended: {log}");
        assert!(!log.contains("panicked"), "the broker panicked: {log}");
    }
}

/// Merges tables; any other value replaces the old one.
fn merge(into: &mut Value, from: &Value) {
    match (into.as_object_mut(), from.as_object()) {
        (Some(into), Some(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        _ => into.clone_from(from),
    }
}
