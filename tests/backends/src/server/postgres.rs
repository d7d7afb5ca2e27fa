//! PostgreSQL.

use crate::process::{Process, START_MAX, free_port, give_to_user, run};
use crate::restart::{Freezable, Restartable};
use crate::server::PASSWORD;
use thrum_conformance::clock;
use thrum_conformance::folder::Folder;

const POLL_EVERY: std::time::Duration = std::time::Duration::from_millis(100);

/// A server with one database, `postgres`.
#[derive(Debug)]
pub struct Postgres {
    process: Option<Process>,
    port: u16,
    folder: Folder,
}

impl Postgres {
    /// Makes a database and starts the server.
    ///
    /// # Panics
    /// It is not installed, or does not start.
    pub fn start() -> Self {
        let folder = Folder::new("postgres");
        let password = folder.write("password", PASSWORD);
        let password = format!("--pwfile={}", password.display());
        let data = folder.file("data");
        run(&[
            &tool("initdb"),
            "-D",
            &data,
            "-U",
            "thrum",
            "-A",
            "scram-sha-256",
            &password,
            "--no-sync",
            "--encoding=UTF8",
            "--locale=C",
        ]);
        let mut server = Self {
            process: None,
            port: free_port(),
            folder,
        };
        server.restart();
        server
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of its database, without password.
    pub fn url(&self) -> String {
        format!("postgresql://thrum@127.0.0.1:{}/postgres", self.port)
    }

    /// Runs statements.
    ///
    /// # Panics
    /// One fails.
    pub fn execute(&self, statements: &str) {
        let file = self.folder.write("statements.sql", statements);
        let file = file.display().to_string();
        run(&[
            "env",
            &format!("PGPASSWORD={PASSWORD}"),
            &tool("psql"),
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-f",
            &file,
            &self.url(),
        ]);
    }

    /// The running server.
    ///
    /// # Panics
    /// It was killed.
    pub fn process(&self) -> &Process {
        self.process.as_ref().expect("a running server")
    }

    /// Has the server take TLS, with this certificate and key.
    ///
    /// # Panics
    /// It does not start again.
    pub fn take_tls(&mut self, certificate: &str, key: &str) {
        let data = self.folder.path().join("data");
        for (name, text) in [("server.crt", certificate), ("server.key", key)] {
            let path = data.join(name);
            std::fs::write(&path, text).expect("a file of the server");
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
                .expect("its permissions");
        }
        give_to_user(&data);
        self.execute("ALTER SYSTEM SET ssl = on;");
        self.kill();
        self.restart();
    }

    fn is_ready(&self) -> bool {
        let port = self.port.to_string();
        let status = std::process::Command::new(tool("pg_isready"))
            .args(["-q", "-h", "127.0.0.1", "-p", &port])
            .status();
        status.is_ok_and(|status| status.success())
    }

    fn spawn(&self) -> Process {
        let (data, socket) = (self.folder.file("data"), self.folder.file(""));
        let port = self.port.to_string();
        let program = [
            &tool("postgres"),
            "-D",
            &data,
            "-p",
            &port,
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            &format!("unix_socket_directories={socket}"),
            "-c",
            "fsync=off",
            "-c",
            "shared_buffers=16MB",
            "-c",
            "max_connections=40",
            "-c",
            // In its folder: a killed server leaves files elsewhere.
            "dynamic_shared_memory_type=mmap",
        ];
        Process::start(&program, &self.folder.path().join("log"))
    }
}

impl Restartable for Postgres {
    fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }

    fn restart(&mut self) {
        let deadline = clock::now() + START_MAX;
        loop {
            let process = self.spawn();
            // Helper processes of a killed server hold its memory for a moment, and a new server
            // fails meanwhile.
            while process.is_alive() && !self.is_ready() {
                assert!(clock::now() < deadline, "PostgreSQL does not start");
                clock::sleep(POLL_EVERY);
            }
            if process.is_alive() {
                self.process = Some(process);
                return;
            }
            assert!(
                clock::now() < deadline,
                "PostgreSQL does not start: {}",
                process.shown_log()
            );
            clock::sleep(POLL_EVERY);
        }
    }
}

impl Freezable for Postgres {
    fn freeze(&mut self) {
        self.process.iter().for_each(Process::freeze);
    }

    fn thaw(&mut self) {
        self.process.iter().for_each(Process::thaw);
    }
}

/// A program of the newest PostgreSQL.
fn tool(name: &str) -> String {
    let versions = std::fs::read_dir("/usr/lib/postgresql");
    let versions = versions.into_iter().flatten().filter_map(Result::ok);
    let newest = versions
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .max()
        .expect("PostgreSQL is not installed: run scripts/setup-tests.sh");
    format!("/usr/lib/postgresql/{newest}/bin/{name}")
}
