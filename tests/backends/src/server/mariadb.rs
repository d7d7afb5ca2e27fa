//! MariaDB.

use crate::process::{Process, free_port, program, run};
use crate::restart::{Freezable, Restartable};
use crate::server::PASSWORD;
use thrum_conformance::folder::Folder;

/// Only the process is killed, never the machine: written data survives without a sync.
const NO_SYNC: &str = "--innodb-flush-method=nosync";

/// A folder of its own: a starting server removes the temporary tables of others in the same
/// folder.
fn temporary(folder: &Folder) -> String {
    format!("--tmpdir={}", folder.path().display())
}

/// A server with one database, `thrum`.
#[derive(Debug)]
pub struct MariaDb {
    process: Option<Process>,
    port: u16,
    folder: Folder,
}

impl MariaDb {
    /// Makes a database and starts the server.
    ///
    /// # Panics
    /// It is not installed, or does not start.
    pub fn start() -> Self {
        let folder = Folder::new("mariadb");
        let data = format!("--datadir={}", folder.file("data"));
        let install = program(&["/usr/bin/mariadb-install-db"]);
        let account = "--auth-root-authentication-method=normal";
        run(&[
            &install,
            "--no-defaults",
            &data,
            account,
            "--skip-test-db",
            &temporary(&folder),
            NO_SYNC,
        ]);
        let mut server = Self {
            process: None,
            port: free_port(),
            folder,
        };
        server.restart();
        let file = server.folder.write(
            "first.sql",
            &format!(
                "CREATE DATABASE thrum; CREATE USER thrum@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';
                 GRANT ALL ON thrum.* TO thrum@'127.0.0.1';"
            ),
        );
        server.execute_as("root", "", &file.display().to_string());
        server
    }

    /// The URL of its database, without password.
    pub fn url(&self) -> String {
        format!("mysql://thrum@127.0.0.1:{}/thrum", self.port)
    }

    /// Runs statements.
    ///
    /// # Panics
    /// One fails.
    pub fn execute(&self, statements: &str) {
        let file = self
            .folder
            .write("statements.sql", &format!("USE thrum; {statements}"));
        self.execute_as("thrum", PASSWORD, &file.display().to_string());
    }

    fn execute_as(&self, user: &str, password: &str, file: &str) {
        run(&[
            &program(&["/usr/bin/mariadb"]),
            "--no-defaults",
            "--host=127.0.0.1",
            &format!("--port={}", self.port),
            &format!("--user={user}"),
            &format!("--password={password}"),
            "--default-character-set=utf8mb4",
            &format!("--execute=source {file}"),
        ]);
    }
}

impl Restartable for MariaDb {
    fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }

    fn restart(&mut self) {
        let server = [
            program(&["/usr/sbin/mariadbd"]),
            "--no-defaults".to_owned(),
            format!("--datadir={}", self.folder.file("data")),
            format!("--port={}", self.port),
            "--bind-address=127.0.0.1".to_owned(),
            temporary(&self.folder),
            format!("--socket={}", self.folder.file("socket")),
            format!("--pid-file={}", self.folder.file("pid")),
            "--innodb-buffer-pool-size=16M".to_owned(),
            "--innodb-flush-log-at-trx-commit=2".to_owned(),
            NO_SYNC.to_owned(),
        ];
        let process = Process::start(&server, &self.folder.path().join("log"));
        process.wait_for_port(self.port);
        self.process = Some(process);
    }
}

impl Freezable for MariaDb {
    fn freeze(&mut self) {
        self.process.iter().for_each(Process::freeze);
    }

    fn thaw(&mut self) {
        self.process.iter().for_each(Process::thaw);
    }
}
