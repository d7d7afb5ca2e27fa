//! The management interface of a broker: the control socket in its data directory, the HTTP port,
//! and who may ask.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use thrum_access::Secret;
use thrum_auth::AuthService;
use thrum_broker::Broker;
use thrum_broker::config::TelemetryConfig;
use thrum_files::Folder;
pub(crate) use thrum_management::PreparedSettings as Prepared;
use thrum_management::otlp::{Ending, LogLayer, LogTap, Telemetry, TelemetrySettings};
use thrum_management::{
    ControlSocket, HttpServer, Managed, Outside, PreparedSettings, Security, StartError,
};

use crate::command::failure::with_causes;
use crate::command::{Around, HostedBenchmarks, KeptBackups, Operated};
use crate::config::Config;

/// Names a file with the password of the first administrator, for containers.
const PASSWORD_FILE: &str = "THRUM_ADMIN_PASSWORD_FILE";
/// Most bytes of that file: a password, and the end of its line.
const PASSWORD_BYTES_MAX: u64 = 1024 + 2;

/// Where lines of the log leave for a collector.
static LOG_TAP: LogTap = LogTap::new();

/// What is exported; none if nothing is.
pub(crate) type Exported = Option<TelemetrySettings>;

/// The part of the log that passes lines on to a collector, while there is one.
pub(crate) const fn log_layer() -> LogLayer {
    LogLayer(&LOG_TAP)
}

/// Checks what is to be exported, and reads the files that it names.
///
/// # Errors
/// A setting or a file cannot be used.
pub(crate) fn exported(config: &TelemetryConfig) -> Result<Exported, String> {
    TelemetrySettings::read(config).map_err(|error| with_causes(&error))
}

/// The management interface of a broker.
#[derive(Debug)]
pub(crate) struct Management {
    security: Security,
    /// None without a data directory.
    socket: Option<ControlSocket>,
    /// None without a port.
    server: Option<HttpServer>,
    managed: Managed,
    /// None if nothing is exported.
    telemetry: Option<Telemetry>,
    /// The export before a reload, while it ends.
    ending: Option<Ending>,
}

impl Management {
    /// Reads the files that its settings name, and changes nothing.
    ///
    /// # Errors
    /// The settings cannot be used.
    pub(crate) fn prepare(config: &Config) -> Result<Prepared, String> {
        PreparedSettings::of(&config.management).map_err(|error| error.to_string())
    }

    /// Opens the control socket in the data directory, and answers at the HTTP ports.
    ///
    /// # Errors
    /// Another process listens there; the password of the first administrator, the administrators
    /// or the audit log cannot be used: nobody would answer at the ports. Any other failure is
    /// logged, and the broker runs without.
    pub(crate) fn start(
        config: &Config,
        broker: &Broker,
        auth: &Arc<AuthService>,
        around: &Around,
    ) -> anyhow::Result<Self> {
        let data_dir = config.node.data_dir.as_path();
        let operated = Operated {
            around: around.clone(),
            backups: KeptBackups::new(data_dir),
            benchmarks: HostedBenchmarks::open(data_dir, around.clone(), broker.queries()),
        };
        let data_dir = (!data_dir.as_os_str().is_empty()).then_some(data_dir);
        let security = Security::open(data_dir, Some(&config.management))?;
        let security = security.with_clients(Arc::clone(auth));
        make_first_administrator(&security, std::env::var_os(PASSWORD_FILE).as_deref())?;
        let mut management = Self {
            security,
            socket: None,
            server: None,
            managed: Managed::from(broker.queries())
                .with_program(Arc::new(operated), Arc::clone(&around.level.logs)),
            telemetry: None,
            ending: None,
        };
        // Before the ports answer: who waits for their answer finds it.
        if let Some(data_dir) = data_dir {
            let opened = ControlSocket::start(
                data_dir,
                management.managed.clone(),
                management.security.clone(),
            );
            management.socket = as_opened(opened)?;
        }
        management.renew_ports(broker);
        Ok(management)
    }

    /// Puts other settings in force, and answers at the ports that the broker has now.
    pub(crate) fn renew(&mut self, settings: Prepared, broker: &Broker) {
        self.security.put_in_force(settings);
        self.renew_ports(broker);
    }

    /// Answers at the ports that the broker has now.
    pub(crate) fn renew_ports(&mut self, broker: &Broker) {
        let ports = broker.http_ports();
        match &self.server {
            // Clients that came in there stay, as those of other listeners do.
            Some(server) => server.renew(ports),
            None if ports.is_empty() => {}
            None => match HttpServer::start(ports, self.managed.clone(), self.security.clone()) {
                Ok(server) => self.server = Some(server),
                Err(error) => tracing::error!(%error, "nobody answers at the HTTP port"),
            },
        }
    }

    /// Whether somebody can ask: there is a socket or a port.
    pub(crate) const fn is_open(&self) -> bool {
        self.socket.is_some() || self.server.is_some()
    }

    /// Looks at the figures for alarms.
    pub(crate) fn look_at_alarms(
        &self,
        broker: &Broker,
        config: &Config,
        reload_failure: Option<&str>,
    ) {
        let data_dir = &config.node.data_dir;
        let has_data = !data_dir.as_os_str().is_empty();
        let folder = has_data.then(|| Folder::open(data_dir).ok()).flatten();
        let outside = Outside {
            thresholds: &config.alarms,
            connections_max: config.limits.connections.into(),
            disk_free: folder.and_then(|folder| folder.free_bytes().ok()),
            reload_failure: reload_failure.map(str::to_owned),
            audit_failure: self.security.audit_failure(),
        };
        self.managed.alarms().look(&broker.queries(), &outside);
    }

    /// Exports this from now on, under the name of the node.
    pub(crate) fn export(&mut self, exported: Exported, node: &str) {
        if self.telemetry.as_ref().map(Telemetry::settings) == exported.as_ref() {
            return;
        }
        // The collector may be the reason of the change: nobody waits for it, unless the export is
        // changed twice within its time.
        if let Some(telemetry) = self.telemetry.take()
            && let Some(before) = self.ending.replace(telemetry.end())
        {
            before.wait();
        }
        let Some(settings) = exported else { return };
        let security = self.security.clone();
        match Telemetry::start(settings, node, &self.managed, security, &LOG_TAP) {
            Ok(telemetry) => self.telemetry = Some(telemetry),
            Err(error) => tracing::error!(%error, "nothing is exported"),
        }
    }

    /// A link that makes the first administrator, relative to the address of a port; none if there
    /// is an administrator, or no port.
    pub(crate) fn setup_link(&self) -> Option<String> {
        self.server.as_ref()?;
        self.security.setup_link().unwrap_or_else(|error| {
            tracing::error!(%error, "there is no setup link");
            None
        })
    }

    /// Closes socket and ports: the broker is about to end.
    pub(crate) fn close(&mut self) {
        if let Some(server) = &self.server {
            server.close();
        }
        if let Some(socket) = &mut self.socket {
            socket.close();
        }
    }

    /// Ends after the broker.
    pub(crate) fn stop(self) {
        if let Some(socket) = self.socket {
            socket.stop();
        }
        if let Some(server) = self.server {
            server.stop();
        }
        let last = self.telemetry.map(Telemetry::end);
        for ending in self.ending.into_iter().chain(last) {
            ending.wait();
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
