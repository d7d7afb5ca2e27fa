//! No management interface: this program was built without the management interface.

use std::sync::Arc;

use thrum_auth::AuthService;
use thrum_broker::Broker;
use thrum_broker::config::TelemetryConfig;
use thrum_settings::LeftOut;
use tracing_subscriber::layer::Identity;

use crate::command::Around;
use crate::config::Config;

/// What is exported: nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exported;

/// Lines of the log are not exported.
pub(crate) fn log_layer() -> Identity {
    Identity::new()
}

/// Refuses to export.
///
/// # Errors
/// Something is to be exported.
pub(crate) fn exported(config: &TelemetryConfig) -> Result<Exported, String> {
    if config.is_on() {
        return Err(format!("telemetry.endpoint: {}", LeftOut("management")));
    }
    Ok(Exported)
}

/// It has no settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prepared;

/// The management interface of a broker: not supported by this build.
#[derive(Debug)]
pub(crate) struct Management;

impl Management {
    /// There is nothing to read.
    ///
    /// # Errors
    /// Never.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "the settings of a complete program may be wrong"
    )]
    pub(crate) const fn prepare(_config: &Config) -> Result<Prepared, String> {
        Ok(Prepared)
    }

    /// Opens nothing.
    ///
    /// # Errors
    /// Never.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "opening the control socket of a complete program can fail"
    )]
    pub(crate) fn start(
        _config: &Config,
        _broker: &Broker,
        _auth: &Arc<AuthService>,
        _around: &Around,
    ) -> anyhow::Result<Self> {
        Ok(Self)
    }

    /// There is nothing to change.
    #[expect(
        clippy::unused_self,
        clippy::needless_pass_by_ref_mut,
        reason = "the interface of a complete program changes its ports"
    )]
    pub(crate) const fn renew(&mut self, _settings: Prepared, _broker: &Broker) {}

    /// Nobody can ask.
    #[expect(
        clippy::unused_self,
        reason = "the interface of a complete program has a socket"
    )]
    pub(crate) const fn is_open(&self) -> bool {
        false
    }

    /// Nobody asks for alarms.
    #[expect(
        clippy::unused_self,
        reason = "the interface of a complete program has alarms"
    )]
    pub(crate) const fn look_at_alarms(
        &self,
        _broker: &Broker,
        _config: &Config,
        _reload_failure: Option<&str>,
    ) {
    }

    /// There is nothing to export.
    #[expect(
        clippy::unused_self,
        clippy::needless_pass_by_ref_mut,
        reason = "a complete program exports"
    )]
    pub(crate) const fn export(&mut self, _exported: Exported, _node: &str) {}

    /// There is nobody to set up.
    #[expect(
        clippy::unused_self,
        reason = "the interface of a complete program has a link"
    )]
    pub(crate) const fn setup_link(&self) -> Option<String> {
        None
    }

    /// There is nothing to close.
    #[expect(
        clippy::unused_self,
        clippy::needless_pass_by_ref_mut,
        reason = "the interface of a complete program is closed"
    )]
    pub(crate) const fn close(&mut self) {}

    /// There is nothing to end.
    #[expect(
        clippy::unused_self,
        reason = "the interface of a complete program is ended"
    )]
    pub(crate) const fn stop(self) {}
}
