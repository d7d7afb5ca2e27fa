//! No management interface: this program was built without the management interface.

use std::path::Path;

use thrum_broker::Broker;

/// The management interface of a broker: not supported by this build.
#[derive(Debug)]
pub(crate) struct Management;

impl Management {
    /// Opens nothing.
    ///
    /// # Errors
    /// Never.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "opening the control socket of a complete program can fail"
    )]
    pub(crate) fn start(_data_dir: &Path, _broker: &Broker) -> anyhow::Result<Self> {
        Ok(Self)
    }

    /// There is nothing to change.
    #[expect(
        clippy::unused_self,
        clippy::needless_pass_by_ref_mut,
        reason = "the interface of a complete program changes its ports"
    )]
    pub(crate) const fn renew(&mut self, _broker: &Broker) {}

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
