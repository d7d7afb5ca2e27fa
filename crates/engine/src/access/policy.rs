//! What the broker takes from other parts of the program: who may come in, and what they may do.

use std::sync::Arc;
use std::time::Duration;

use thrum_access::{Gatekeeper, Rules};

/// Who decides about clients.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Asked about clients that show credentials. None while nobody has set up users or backends:
    /// then credentials say nothing, and all clients are anonymous.
    pub gatekeeper: Option<Arc<dyn Gatekeeper>>,
    /// What clients may do.
    pub policy: Policy,
}

/// What clients may do.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "settings that have nothing to do with each other"
)]
pub struct Policy {
    /// Rules for everybody.
    pub rules: Arc<Rules>,
    /// Who is asked first; whoever is not named is not asked.
    pub order: Vec<RuleSource>,
    /// Whether what nobody decides is allowed.
    pub allows_by_default: bool,
    /// A client that publishes what it may not is disconnected; else the message is refused.
    pub disconnects_denied: bool,
    /// A subscription of which only a part is allowed is granted and each message checked; else it
    /// is refused.
    pub filters_partial: bool,
    /// A retained message is not given to new subscribers once the client that published it may not
    /// publish it any more.
    pub checks_retained_source: bool,
    /// Decisions of the gatekeeper that are remembered for each client.
    pub decisions_max: usize,
    /// For how long.
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

/// Where a decision comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleSource {
    /// The rules for everybody.
    Everybody,
    /// The client's own rules, that came with its admission.
    Client,
    /// The gatekeeper, topic by topic.
    Gatekeeper,
}
