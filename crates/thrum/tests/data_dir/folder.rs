//! A folder with a data directory in it, and the program that looks into it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;

use serde_json::Value;
use thrum_codec::packet::{RetainHandling, SubscriptionOptions};
use thrum_codec::{PacketId, QoS, Version};
use thrum_storage::disk::{RealDisk, RealReader};
use thrum_storage::{
    Awaiting, Batch, Change, Identifiers, Inflight, Message, Options, Owner, Queued, Recovered,
    Retained, Session, Store, Subscription, Will, read_state,
};

/// Held while a process is made: until it runs its program it has what this one has open, locks of
/// data directories too.
static SPAWN: Mutex<()> = Mutex::new(());

/// Long ago.
pub(crate) const LONG_AGO: u64 = 1_700_000_000_000;

/// A folder that is removed at the end; its data directory is `data`.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn empty(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("data-dir-{name}"));
        if path.exists() {
            std::fs::remove_dir_all(&path).unwrap();
        }
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// With what [`write_state`] writes.
    pub(crate) fn filled(name: &str) -> Self {
        let folder = Self::empty(name);
        let mut store = folder.open("data");
        write_state(&mut store);
        store.close().unwrap();
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Opens a data directory as a broker does.
    pub(crate) fn open(&self, data: &str) -> Store<RealDisk> {
        drop(SPAWN.lock().unwrap());
        let disk = RealDisk::open(&self.0.join(data).join("state")).unwrap();
        let options = Options {
            segment_bytes: 256 * 1024,
            ..Options::default()
        };
        Store::open(disk, options).unwrap().0
    }

    /// The contents of a data directory.
    pub(crate) fn state(&self, data: &str) -> Recovered {
        let reader = RealReader::open(&self.0.join(data).join("state")).unwrap();
        read_state(&reader).unwrap().0
    }

    /// The oldest segment of a data directory.
    pub(crate) fn segment(&self, data: &str) -> PathBuf {
        let entries = std::fs::read_dir(self.0.join(data).join("state")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let segments = paths.filter(|path| path.extension().is_some_and(|end| end == "log"));
        segments.min().unwrap()
    }

    pub(crate) fn thrum(&self, line: &str) -> Output {
        self.thrum_with(line, "")
    }

    /// Runs it with this on its standard input.
    pub(crate) fn thrum_with(&self, line: &str, input: &str) -> Output {
        let mut child = self.start(line);
        // A command that asks nothing has ended before it reads.
        child.stdin.take().unwrap().write_all(input.as_bytes()).ok();
        child.wait_with_output().unwrap()
    }

    /// What a line with these arguments, which may have spaces, says when it ends with this code.
    pub(crate) fn said(&self, words: &[&str], code: i32) -> String {
        let child = self.spawn(words.iter().copied(), None);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{words:?}: {said}{printed}"
        );
        said
    }

    /// Starts it and does not wait.
    pub(crate) fn start(&self, line: &str) -> Child {
        self.start_with(line, None)
    }

    /// Starts it with variables of the environment, and does not wait.
    pub(crate) fn start_with<'a>(
        &self,
        line: &str,
        variables: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Child {
        self.spawn(line.split_whitespace(), variables)
    }

    fn spawn<'a, 'b>(
        &self,
        words: impl Iterator<Item = &'b str>,
        variables: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_thrum"));
        command.args(words).current_dir(&self.0);
        command
            .env_remove("THRUM_ADMIN_PASSWORD_FILE")
            .env("THRUM_LISTENERS__HTTP__BIND", "[]")
            // Contexts of this test only, and no broker of the surroundings.
            .env("XDG_CONFIG_HOME", self.0.join("config"))
            .env_remove("THRUM_URL")
            .env_remove("THRUM_CONTEXT")
            .env_remove("THRUM_TOKEN")
            .envs(variables);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let _turn = SPAWN.lock().unwrap();
        command.stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs a line that succeeds, and returns what it printed.
    pub(crate) fn printed(&self, line: &str) -> String {
        let output = self.thrum(line);
        let printed = String::from_utf8(output.stdout).unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}: {said}{printed}");
        printed
    }

    /// The lines of JSON that a line prints.
    pub(crate) fn json(&self, line: &str) -> Vec<Value> {
        let printed = self.printed(line);
        let lines = printed.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Runs a line that fails.
    pub(crate) fn check_fails(&self, line: &str, code: i32, said: &str) {
        let output = self.thrum(line);
        assert_eq!(String::from_utf8_lossy(&output.stderr), said, "{line}");
        assert_eq!(output.status.code(), Some(code), "{line}");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }
}

pub(crate) fn session(id: u64, client_id: &str, away_since: Option<u64>) -> Change<'_> {
    Change::Session(Session {
        id,
        client_id,
        version: Version::V5,
        expiry_secs: 604_800,
        away_since,
        packet_id_hint: 17,
        owner: Owner::User("fleet"),
    })
}

pub(crate) fn message<'a>(id: u64, topic: &'a str, payload: &'a [u8]) -> Change<'a> {
    Change::Message(Message {
        id,
        publisher: 1,
        published_at: LONG_AGO,
        expires_at: None,
        qos: QoS::AtLeastOnce,
        retain: false,
        topic,
        // A payload that is text, of type "text".
        properties: b"\x07\x00\x04text",
        payload,
    })
}

pub(crate) fn queued(session: u64, seq: u64, message: u64) -> Change<'static> {
    Change::Queued(Queued {
        session,
        seq,
        message,
        qos: QoS::AtLeastOnce,
        retain: false,
        identifiers: Identifiers::NONE,
        group: "",
    })
}

/// Three sessions: `meter-1` disconnected for long with all that a session can have, an older one
/// of the same client, and `desk`, which is connected; and two retained messages.
fn write_state(store: &mut Store<RealDisk>) {
    let mut batch = Batch::default();
    batch.push(&session(1, "meter-1", Some(LONG_AGO)));
    batch.push(&session(2, "meter-1", Some(LONG_AGO)));
    batch.push(&session(3, "desk", None));
    batch.push(&Change::Subscription(Subscription {
        session: 2,
        filter: "$share/g/a/+",
        options: SubscriptionOptions {
            qos: QoS::ExactlyOnce,
            no_local: false,
            retain_as_published: true,
            retain_handling: RetainHandling::Never,
        },
        identifier: 7,
        owed: None,
    }));
    batch.push(&Change::Will(Will {
        session: 2,
        delay_secs: 30,
        message_expiry_secs: None,
        qos: QoS::AtLeastOnce,
        retain: true,
        topic: "state/meter-1",
        properties: &[],
        payload: b"gone",
    }));
    for id in 1..=3 {
        batch.push(&message(id, "a/b", b"hello"));
        batch.push(&queued(2, id, id));
    }
    for (seq, awaiting) in [(1, Awaiting::PubAck), (2, Awaiting::PubComp)] {
        batch.push(&Change::Inflight(Inflight {
            session: 2,
            seq,
            packet_id: PacketId::new(40 + u16::try_from(seq).unwrap()).unwrap(),
            awaiting,
        }));
    }
    batch.push(&Change::Received {
        session: 2,
        packet_id: PacketId::new(9).unwrap(),
    });
    for (id, topic, payload) in [
        (11, "site/1/state", &b"on"[..]),
        (12, "site/2/state", b"\xFF\x00"),
    ] {
        batch.push(&message(id, topic, payload));
        batch.push(&Change::Retained(Retained {
            change: id,
            topic,
            message: id,
            source: None,
        }));
    }
    store.apply(&batch).unwrap();
    store.commit().unwrap();
}
