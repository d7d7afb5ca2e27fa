//! Interface to the parts of the program that decide about admission and authorization.

use std::sync::Arc;
use std::time::Duration;

use thrum_access::{Gatekeeper, Rules};

/// Admission and authorization of clients.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Decides about clients with credentials. None without users and backends: then credentials
    /// are ignored, and all clients are anonymous.
    pub gatekeeper: Option<Arc<dyn Gatekeeper>>,
    /// Authorization policy.
    pub policy: Policy,
}

/// Authorization policy.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "settings that have nothing to do with each other"
)]
pub struct Policy {
    /// The rules for all clients.
    pub rules: Arc<Rules>,
    /// The order of the sources; a missing source is not asked.
    pub order: Vec<RuleSource>,
    /// Whether an undecided action is allowed.
    pub allows_by_default: bool,
    /// A client that publishes without permission is disconnected; otherwise the message is
    /// refused.
    pub disconnects_denied: bool,
    /// A filter of which only a part is allowed is granted and each message checked; otherwise it
    /// is refused.
    pub filters_partial: bool,
    /// A retained message is withheld from new subscribers once its publisher may no longer publish
    /// it.
    pub checks_retained_source: bool,
    /// Decisions of the gatekeeper kept for each client.
    pub decisions_max: usize,
    /// Time for which a decision is kept.
    pub decision_ttl: Duration,
}

impl Default for Policy {
    /// Everything is allowed.
    fn default() -> Self {
        Self {
            rules: Arc::default(),
            order: vec![
                RuleSource::Everybody,
                RuleSource::Client,
                RuleSource::Gatekeeper,
            ],
            allows_by_default: true,
            disconnects_denied: false,
            filters_partial: true,
            checks_retained_source: false,
            decisions_max: 32,
            decision_ttl: Duration::from_mins(1),
        }
    }
}

/// Source of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleSource {
    /// The rules for all clients.
    Everybody,
    /// The client's own rules, that came with its admission.
    Client,
    /// The gatekeeper, topic by topic.
    Gatekeeper,
}
