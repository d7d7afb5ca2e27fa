//! The default control broker of coordinator and agents: one of our own, for the
//! time of the run.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};

use thrum_bench::agents::AgentsWanted;
use thrum_broker::config::{Anonymous, ListenerConfig};
use thrum_broker::{Access, Broker, Config, Listening};
use thrum_transport::Endpoint;

use super::complaint::{Complaint, FAILED};

/// The default port for agents; another one if it is taken.
const PORT: u16 = 18_830;

/// The other machines of a run, and its control broker if thrum starts it.
pub(super) struct Control {
    pub(super) wanted: AgentsWanted,
    /// Ends with the run.
    _broker: Option<Broker>,
}

impl Control {
    /// At the named broker, or at one that is started now.
    pub(super) fn new(count: u32, named: Option<&str>) -> Result<Self, Complaint> {
        if let Some(url) = named {
            let control = Endpoint::parse(url).map_err(Complaint::usage)?;
            return Ok(Self {
                wanted: AgentsWanted { control, count },
                _broker: None,
            });
        }
        let broker = start(PORT).or_else(|_| start(0));
        let broker = broker.map_err(|error| {
            Complaint::new(
                format!("no broker for the agents could be started: {error}"),
                FAILED,
            )
        })?;
        let addresses = broker.addresses();
        let address = addresses.iter().find_map(Listening::socket_address);
        let port = address.map_or(0, |address| address.port());
        let line = format!(
            "start on each machine: thrum bench agent --control mqtt://THIS-MACHINE:{port}"
        );
        // Standard error may be closed; the agents may have started already.
        writeln!(std::io::stderr(), "{line}").ok();
        let control =
            Endpoint::parse(&format!("mqtt://127.0.0.1:{port}")).map_err(Complaint::usage)?;
        Ok(Self {
            wanted: AgentsWanted { control, count },
            _broker: Some(broker),
        })
    }
}

fn start(port: u16) -> Result<Broker, thrum_broker::StartError> {
    let mut config = Config::default();
    // Agents connect from other machines; the broker runs only for this run and carries nothing
    // else.
    config.auth.anonymous = Anonymous::Allow;
    config.listeners.clear();
    let listener = ListenerConfig {
        bind: vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into()],
        ..ListenerConfig::default()
    };
    config.listeners.insert("agents".to_owned(), listener);
    Broker::start(config, Access::default())
}
