//! The management interface of a broker: the control socket in its data directory, the HTTP port,
//! and who may ask.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use thrum_access::Secret;
use thrum_broker::Broker;
use thrum_management::{ControlSocket, HttpServer, Security, StartError};

use crate::command::failure::with_causes;

/// Names a file with the password of the first administrator, for containers.
const PASSWORD_FILE: &str = "THRUM_ADMIN_PASSWORD_FILE";
/// Most bytes of that file: a password, and the end of its line.
const PASSWORD_BYTES_MAX: u64 = 1024 + 2;

/// The management interface of a broker.
#[derive(Debug)]
pub(crate) struct Management {
    /// None if the files in the data directory cannot be used: then nobody may ask.
    security: Option<Security>,
    /// None without a data directory.
    socket: Option<ControlSocket>,
    /// None without a port.
    server: Option<HttpServer>,
}

impl Management {
    /// Opens the control socket in the data directory, and answers at the HTTP ports.
    ///
    /// # Errors
    /// Another process listens there, or the password of the first administrator cannot be used.
    /// Any other failure is logged, and the broker runs without.
    pub(crate) fn start(data_dir: &Path, broker: &Broker) -> anyhow::Result<Self> {
        let data_dir = (!data_dir.as_os_str().is_empty()).then_some(data_dir);
        let mut management = Self {
            security: None,
            socket: None,
            server: None,
        };
        let security = match Security::open(data_dir, None) {
            Ok(security) => security,
            Err(error) => {
                let error = with_causes(&error);
                tracing::error!(error, "there is no management interface");
                return Ok(management);
            }
        };
        make_first_administrator(&security, std::env::var_os(PASSWORD_FILE).as_deref())?;
        if let Some(data_dir) = data_dir {
            let opened = ControlSocket::start(data_dir, broker.queries(), security.clone());
            management.socket = as_opened(opened)?;
        }
        management.security = Some(security);
        management.renew(broker);
        Ok(management)
    }

    /// Answers at the ports that the broker has now.
    pub(crate) fn renew(&mut self, broker: &Broker) {
        let ports = broker.http_ports();
        let Some(security) = &self.security else {
            return;
        };
        match &self.server {
            // Clients that came in there stay, as those of other listeners do.
            Some(server) => server.renew(ports),
            None if ports.is_empty() => {}
            None => match HttpServer::start(ports, broker.queries(), security.clone()) {
                Ok(server) => self.server = Some(server),
                Err(error) => tracing::error!(%error, "nobody answers at the HTTP port"),
            },
        }
    }

    /// A link that makes the first administrator, relative to the address of a port; none if there
    /// is an administrator, or no port.
    pub(crate) fn setup_link(&self) -> Option<String> {
        let security = self.security.as_ref().filter(|_| self.server.is_some())?;
        security.setup_link().unwrap_or_else(|error| {
            tracing::error!(%error, "there is no setup link");
            None
        })
    }

    /// Closes socket and ports: the broker is about to end.
    pub(crate) fn close(&mut self) {
        if let Some(server) = &self.server {
            server.close();
        }
        if let Some(socket) = self.socket.take() {
            socket.stop();
        }
    }

    /// Ends after the broker.
    pub(crate) fn stop(self) {
        if let Some(server) = self.server {
            server.stop();
        }
    }
}

/// The socket; a failure other than that of another process is logged.
fn as_opened(opened: Result<ControlSocket, StartError>) -> anyhow::Result<Option<ControlSocket>> {
    match opened {
        Ok(socket) => {
            tracing::debug!(path = %socket.path().display(), "control socket opened");
            Ok(Some(socket))
        }
        Err(error) if error.is_in_use() => Err(error.into()),
        Err(error) => {
            let error = with_causes(&error);
            tracing::warn!(
                error,
                "thrum clients and thrum status cannot ask this broker"
            );
            Ok(None)
        }
    }
}

/// Makes the administrator `admin` with the password of the file, unless there is an administrator:
/// a password that was changed later stays.
fn make_first_administrator(security: &Security, file: Option<&OsStr>) -> anyhow::Result<()> {
    let Some(file) = file.filter(|file| !file.is_empty()) else {
        return Ok(());
    };
    if security.is_set_up() {
        return Ok(());
    }
    let shown = Path::new(file).display();
    let password =
        read_password(file).with_context(|| format!("{PASSWORD_FILE}: cannot read {shown}"))?;
    let made = security.make_first_administrator(&password);
    if made.with_context(|| format!("{PASSWORD_FILE} ({shown})"))? {
        tracing::info!("the administrator admin has the password of {PASSWORD_FILE}");
    }
    Ok(())
}

fn read_password(file: &OsStr) -> std::io::Result<Secret> {
    let mut bytes = Vec::new();
    let mut limited = File::open(file)?.take(PASSWORD_BYTES_MAX);
    limited.read_to_end(&mut bytes)?;
    let end = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let password = Secret::new(end.strip_suffix(b"\r").unwrap_or(end));
    bytes.fill(0);
    Ok(password)
}
