//! The commands of docs/guide/api.md, one after the other, against a broker.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

const GUIDE: &str = include_str!("../../../docs/guide/api.md");

const CONFIG: &str = "\
[listeners]
mqtt = { bind = \"127.0.0.1:0\" }
http = { bind = \"127.0.0.1:0\" }
";

/// A broker with a data directory and an HTTP port.
struct Broker {
    process: Child,
    folder: PathBuf,
    /// Such as `http://127.0.0.1:49152`.
    address: String,
}

impl Broker {
    fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("thrum-api-guide-{}", std::process::id()));
        fs::remove_dir_all(&folder).ok();
        fs::create_dir_all(&folder).expect("a temporary folder");
        let config = folder.join("thrum.toml");
        let node = format!("[node]\ndata_dir = \"{}\"\n", folder.join("data").display());
        fs::write(&config, node + CONFIG).expect("a file");
        let mut process = Command::new(env!("CARGO_BIN_EXE_thrum"))
            .args(["serve", "-c"])
            .arg(&config)
            // The runner of the suites turns the port off.
            .env_remove("THRUM_LISTENERS__HTTP__BIND")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program");
        let mut printed = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut text = String::new();
        while !text.contains("http://") {
            let read = printed.read_line(&mut text).expect("the broker prints");
            assert!(read > 0, "it ended: {text}");
        }
        let mut words = text.split_whitespace();
        let address = words.find(|word| word.starts_with("http://127.0.0.1:"));
        let address = address.expect("the address of the HTTP port");
        let port = address["http://127.0.0.1:".len()..].split('/').next();
        Self {
            address: format!("http://127.0.0.1:{}", port.expect("a port")),
            process,
            folder,
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// The blocks for a shell, one after the other.
fn script(guide: &str) -> String {
    let mut lines = Vec::new();
    let mut is_shell = false;
    for line in guide.lines() {
        match line {
            "```sh" => is_shell = true,
            "```" => is_shell = false,
            line if is_shell => lines.push(line),
            _ => {}
        }
    }
    lines.join("\n")
}

#[test]
fn the_commands_of_the_guide_do_what_it_says() {
    let broker = Broker::start();
    let data = broker.folder.join("data");
    let script = script(GUIDE)
        .replace("http://127.0.0.1:8080", &broker.address)
        .replace("/var/lib/thrum", data.to_str().expect("a text"));
    let program = Path::new(env!("CARGO_BIN_EXE_thrum"));
    let folder = program.parent().expect("a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let done = Command::new("sh")
        .args(["-euc", &script])
        .env("PATH", format!("{folder}:{path}"))
        .output()
        .expect("a shell");
    let printed = String::from_utf8_lossy(&done.stdout);
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{errors}{printed}");
    for expected in [
        r#""scopes":["clients:read","messages:read","messages:write"]"#,
        r#"{"outcome":"no_subscribers","retained":true}"#,
        r#"{"clients":[],"matching":0,"next":null}"#,
        r#""matching":1,"payload_bytes":2,"removed":0"#,
        "sort is one of client_id, user,",
        "the request needs the scope metrics:read",
        r#""topic":"site/alarm""#,
    ] {
        assert!(printed.contains(expected), "{expected} is not in {printed}");
    }
    let problem = GUIDE.split("```json\n").nth(1).expect("an example");
    let problem = problem.split("```").next().expect("its end");
    let problem: Value = serde_json::from_str(problem).expect("JSON");
    let answers = serde_json::Deserializer::from_str(&printed).into_iter::<Value>();
    let answers: Vec<Value> = answers.map(|answer| answer.expect("JSON")).collect();
    assert!(answers.contains(&problem), "{problem} {printed}");
}
