//! Redis.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::process::{Process, free_port, loopback, program};
use crate::restart::{Freezable, Restartable};
use crate::server::PASSWORD;
use thrum_conformance::folder::Folder;

const ANSWER_MAX: Duration = Duration::from_secs(10);

/// A server that loads its data from a file before it answers after a restart.
#[derive(Debug)]
pub struct Redis {
    process: Option<Process>,
    port: u16,
    tls: Vec<String>,
    folder: Folder,
}

impl Redis {
    /// Starts the server.
    ///
    /// # Panics
    /// It is not installed, or does not start.
    pub fn start() -> Self {
        Self::start_with(Vec::new())
    }

    /// Starts a server that also accepts TLS on the returned port.
    ///
    /// # Panics
    /// It is not installed, or does not start.
    pub fn start_tls(certificate: &str, key: &str) -> (Self, u16) {
        let files = Folder::new("redis-tls");
        let certificate = files.write("server.crt", certificate);
        let key = files.write("server.key", key);
        let port = free_port();
        let tls = [
            "--tls-port",
            &port.to_string(),
            "--tls-auth-clients",
            "no",
            "--tls-cert-file",
        ]
        .map(str::to_owned)
        .into_iter()
        .chain([
            certificate.display().to_string(),
            "--tls-key-file".to_owned(),
            key.display().to_string(),
        ])
        .chain([
            "--tls-ca-cert-file".to_owned(),
            certificate.display().to_string(),
        ]);
        let server = Self::start_with(tls.collect());
        drop(files);
        (server, port)
    }

    fn start_with(tls: Vec<String>) -> Self {
        let mut server = Self {
            process: None,
            port: free_port(),
            tls,
            folder: Folder::new("redis"),
        };
        server.restart();
        server
    }

    /// The URL of its database, without password.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Runs a command.
    ///
    /// # Panics
    /// It fails.
    pub fn execute(&self, command: &[&str]) {
        let mut stream = TcpStream::connect(loopback(self.port)).expect("a connection");
        stream
            .set_read_timeout(Some(ANSWER_MAX))
            .expect("a time limit");
        let mut request = Vec::new();
        for words in [&["AUTH", PASSWORD][..], command] {
            write!(request, "*{}\r\n", words.len()).expect("memory");
            for word in words {
                write!(request, "${}\r\n{word}\r\n", word.len()).expect("memory");
            }
        }
        stream.write_all(&request).expect("a connection");
        let mut answer = String::new();
        let mut stream = BufReader::new(stream);
        for _ in 0..2 {
            let count = stream.read_line(&mut answer).expect("an answer");
            assert!(count > 0, "the server closed the connection");
        }
        assert!(
            answer.starts_with("+OK\r\n") && !answer.contains('-'),
            "{answer}"
        );
    }
}

impl Restartable for Redis {
    fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }

    fn restart(&mut self) {
        let port = self.port.to_string();
        let folder = self.folder.file("");
        let mut server: Vec<&str> = vec![
            "--port",
            &port,
            "--bind",
            "127.0.0.1",
            "--dir",
            &folder,
            "--save",
            "",
            "--appendonly",
            "yes",
            "--appendfsync",
            "no",
            "--requirepass",
            PASSWORD,
        ];
        server.extend(self.tls.iter().map(String::as_str));
        let binary = program(&["/usr/bin/redis-server", "/usr/local/bin/redis-server"]);
        server.insert(0, &binary);
        let process = Process::start(&server, &self.folder.path().join("log"));
        process.wait_for_port(self.port);
        self.process = Some(process);
    }
}

impl Freezable for Redis {
    fn freeze(&mut self) {
        self.process.iter().for_each(Process::freeze);
    }

    fn thaw(&mut self) {
        self.process.iter().for_each(Process::thaw);
    }
}
