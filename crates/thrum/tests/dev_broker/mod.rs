//! `thrum serve --dev` on a free port, stopped at the end of a test.
#![expect(
    clippy::disallowed_methods,
    reason = "the test waits for the broker to listen"
)]

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// A broker of a test.
pub(crate) struct Broker {
    process: Child,
    pub(crate) port: u16,
}

impl Broker {
    /// With one worker.
    #[allow(
        dead_code,
        reason = "not every test that has a broker starts it in the same way"
    )]
    pub(crate) fn start() -> Self {
        Self::start_with(&["--workers", "1"])
    }

    /// With arguments of its own.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut command = Command::new(env!("CARGO_BIN_EXE_thrum"));
        command.args(["serve", "--dev"]).args(arguments);
        command.arg("--listen").arg(format!("127.0.0.1:{port}"));
        Self::of(&mut command, port)
    }

    /// The broker of a command, which listens on a port.
    pub(crate) fn of(command: &mut Command, port: u16) -> Self {
        let process = command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = process.spawn().unwrap();
        let broker = Self { process, port };
        for _ in 0..200 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return broker;
            }
            sleep(Duration::from_millis(50));
        }
        panic!("the broker does not listen");
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
