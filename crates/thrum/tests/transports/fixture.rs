//! A broker with a listener of every kind, and the commands in a folder with their certificates.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::authority::Authority;

/// The exit code of `-W`, in a program that is not expected to reach it.
pub(crate) const LIMIT: &str = "20";

/// Number of the certificate that is revoked.
const REVOKED: u64 = 7;
const GOOD: (i32, i32) = (2020, 2999);
const PAST: (i32, i32) = (2001, 2002);
const FUTURE: (i32, i32) = (2998, 2999);

const LISTENERS: &str = r#"
[listeners]
mqtt = { bind = "127.0.0.1:0" }
ws = { bind = "127.0.0.1:0", transport = "websocket" }
odd = { bind = "127.0.0.1:0", transport = "websocket", path = "/a/b" }
mqtts = { bind = "127.0.0.1:0", tls = { cert = "server.pem", key = "server.key" } }
wss = { bind = "127.0.0.1:0", transport = "websocket", tls_from = "mqtts" }
quic = { bind = "127.0.0.1:0", transport = "quic", tls_from = "mqtts" }
unix = { bind = "unix:plain.sock" }
unixws = { bind = "unix:ws.sock", transport = "websocket" }
unixtls = { bind = "unix:tls.sock", tls_from = "mqtts" }
expired = { bind = "127.0.0.1:0", tls = { cert = "expired.pem", key = "expired.key" } }
future = { bind = "127.0.0.1:0", tls = { cert = "future.pem", key = "future.key" } }
elsewhere = { bind = "127.0.0.1:0", tls = { cert = "elsewhere.pem", key = "elsewhere.key" } }
elsewherequic = { bind = "127.0.0.1:0", transport = "quic", tls_from = "elsewhere" }
mutual = { bind = "127.0.0.1:0", tls = { cert = "server.pem", key = "server.key", ca = "ca.pem", crl = ["revoked.pem"] } }
mutualws = { bind = "127.0.0.1:0", transport = "websocket", tls_from = "mutual" }
mutualquic = { bind = "127.0.0.1:0", transport = "quic", tls_from = "mutual" }
modern = { bind = "127.0.0.1:0", tls = { cert = "server.pem", key = "server.key", min_version = "1.3" } }
"#;

/// A broker of its own in a folder of its own.
pub(crate) struct Fixture {
    folder: PathBuf,
    broker: Child,
    /// Addresses by the names of the listeners.
    places: BTreeMap<String, String>,
}

/// The outcome of a command.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) printed: String,
    pub(crate) said: String,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // A process that has ended already cannot be killed, which is fine.
        self.broker.kill().ok();
        self.broker.wait().ok();
        fs::remove_dir_all(&self.folder).ok();
    }
}

impl Fixture {
    pub(crate) fn new(name: &str) -> Self {
        // The path of a socket must be short.
        let folder = std::env::temp_dir().join(format!("thrum-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let authority = Authority::new(&folder, "ca");
        let stranger = Authority::new(&folder, "stranger");
        authority.sign("server", "localhost", GOOD, 1);
        authority.sign("expired", "localhost", PAST, 2);
        authority.sign("future", "localhost", FUTURE, 3);
        authority.sign("elsewhere", "broker.example", GOOD, 4);
        authority.sign("client", "a client", GOOD, 5);
        authority.sign("old", "a client", PAST, 6);
        authority.sign("bad", "a client", GOOD, REVOKED);
        stranger.sign("strange", "a client", GOOD, 8);
        authority.revoke("revoked", REVOKED);
        fs::write(folder.join("thrum.toml"), LISTENERS).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_thrum"));
        command
            .args(["serve", "-c", "thrum.toml", "--workers", "1"])
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut broker = command.spawn().unwrap();
        let mut lines = BufReader::new(broker.stdout.take().unwrap()).lines();
        let mut places = BTreeMap::new();
        for line in lines.by_ref().map_while(Result::ok) {
            if line.contains("  Mode ") {
                break;
            }
            let listener = line.rsplit_once(" (").and_then(|(rest, name)| {
                let (_, address) = rest.split_once("://127.0.0.1:")?;
                let port = address.split(['/', ' ']).next()?;
                Some((name.trim_end_matches(')').to_owned(), port.to_owned()))
            });
            places.extend(listener);
        }
        assert!(!places.is_empty(), "it says where it listens");
        // Its other output must not block it.
        std::thread::spawn(move || lines.count());
        Self {
            folder,
            broker,
            places,
        }
    }

    /// `localhost` and the port of a listener.
    pub(crate) fn place(&self, listener: &str) -> String {
        format!("localhost:{}", self.places[listener])
    }

    pub(crate) fn port(&self, listener: &str) -> &str {
        &self.places[listener]
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    /// Writes a file that a command can name.
    pub(crate) fn write(&self, file: &str, content: &[u8]) {
        fs::write(self.path(file), content).unwrap();
    }

    /// A line of the shell without `thrum`; `{NAME}` is the place of that listener.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_thrum"));
        command
            .args(line.split_whitespace().map(|word| self.filled(word)))
            .current_dir(&self.folder)
            .env_remove("RUST_LOG")
            .env_remove("THRUM_PASSWORD")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn filled(&self, word: &str) -> String {
        let Some((before, rest)) = word.split_once('{') else {
            return word.to_owned();
        };
        let (name, after) = rest.split_once('}').unwrap();
        format!("{before}{}{after}", self.place(name))
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, line: &str) -> Ended {
        let output = self.command(line).output().unwrap();
        Ended {
            code: output.status.code().unwrap(),
            printed: String::from_utf8(output.stdout).unwrap(),
            said: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs it; it does what it should.
    #[track_caller]
    pub(crate) fn runs(&self, line: &str) -> String {
        let ended = self.run(line);
        assert_eq!(ended.code, 0, "{line}: {}", ended.said);
        ended.printed
    }

    /// Runs it; it ends with a code, and one line that has these words.
    #[track_caller]
    pub(crate) fn fails(&self, line: &str, code: i32, words: &str) {
        let ended = self.run(line);
        assert_eq!(ended.code, code, "{line}: {}", ended.said);
        assert!(ended.said.contains(words), "{line}: {}", ended.said);
        assert!(ended.said.starts_with("error: "), "{line}: {}", ended.said);
        assert_eq!(ended.said.lines().count(), 1, "{line}: {}", ended.said);
        assert_eq!(ended.printed, "", "{line}");
    }
}
