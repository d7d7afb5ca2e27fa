//! Interface to the parts of the program that decide about admission and authorization.

use std::sync::Arc;
use std::time::Duration;

use thrum_access::{Gatekeeper, Rules};

/// Admission and authorization of clients.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The component that decides about clients with credentials; none without users and backends:
    /// then credentials are ignored, and all clients are anonymous.
    pub gatekeeper: Option<Arc<dyn Gatekeeper>>,
    /// The authorization policy.
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
    /// The order in which the sources are evaluated; a source that is not listed is ignored.
    pub order: Vec<RuleSource>,
    /// Whether an undecided action is allowed.
    pub allows_by_default: bool,
    /// Whether a client that publishes without permission is disconnected; otherwise the message is
    /// refused.
    pub disconnects_denied: bool,
    /// Whether a filter that the rules allow in part is granted with a check of each message;
    /// otherwise it is refused.
    pub filters_partial: bool,
    /// Whether a retained message is withheld from new subscribers once its publisher may no longer
    /// publish it.
    pub checks_retained_source: bool,
    /// Greatest number of decisions of the gatekeeper that are kept for each client.
    pub decisions_max: usize,
    /// Time for which a decision of the gatekeeper is valid.
    pub decision_ttl: Duration,
}

impl Default for Policy {
    /// The default policy allows everything.
    fn default() -> Self {
        Self {
            rules: Arc::default(),
            order: vec![
                RuleSource::AllClients,
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
    AllClients,
    /// The client's own rules, which are part of its admission.
    Client,
    /// The gatekeeper, which is asked about each topic.
    Gatekeeper,
}
