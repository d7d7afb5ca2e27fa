//! The default control broker of coordinator and agents: one of our own, for the
//! time of the run. It admits whoever has the secret of the run.

use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use thrum_access::{Admission, Answer, Denial, Gatekeeper, Login, Reply, Secret};
use thrum_bench::agents::AgentsWanted;
use thrum_broker::config::{Anonymous, ListenerConfig};
use thrum_broker::{Access, Broker, Config, Listening};
use thrum_codec::ReasonCode;
use thrum_transport::Endpoint;

use super::complaint::{Complaint, FAILED};

/// The default port for agents; another one if it is taken.
const PORT: u16 = 18_830;

/// User name of coordinator and agents.
const USERNAME: &str = "agent";

/// The variable that has the secret of coordinator and agents.
pub(super) const VARIABLE: &str = "THRUM_AGENT_SECRET";

/// Random bytes of a secret that is made: 128 bits.
const RANDOM_BYTES: usize = 16;

/// Shortest secret that is accepted, in bytes: it protects a port that the whole network reaches.
const SECRET_BYTES_MIN: usize = 8;

/// Longest one: a password of MQTT.
const SECRET_BYTES_MAX: usize = 1_024;

/// The other machines of a run, and its control broker if thrum starts it.
pub(super) struct Control {
    pub(super) wanted: AgentsWanted,
    /// Ends with the run.
    _broker: Option<Broker>,
}

impl Control {
    /// At the named broker, or at one that is started now.
    pub(super) fn new(
        count: u32,
        named: Option<&str>,
        secret_file: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let given = given_secret(secret_file)?;
        if let Some(url) = named {
            let mut control = Endpoint::parse(url).map_err(Complaint::usage)?;
            if let Some(secret) = &given {
                log_in(&mut control, secret);
            }
            return Ok(Self {
                wanted: AgentsWanted { control, count },
                _broker: None,
            });
        }
        let is_made = given.is_none();
        let secret = given.map_or_else(made_secret, Ok)?;
        let broker = start(PORT, &secret).or_else(|_| start(0, &secret));
        let broker = broker.map_err(|error| {
            Complaint::new(
                format!("no broker for the agents could be started: {error}"),
                FAILED,
            )
        })?;
        let addresses = broker.addresses();
        let address = addresses.iter().find_map(Listening::socket_address);
        let port = address.map_or(0, |address| address.port());
        let shown = if is_made {
            format!("{VARIABLE}={} ", secret.expose_str().unwrap_or_default())
        } else {
            String::new()
        };
        let line = format!(
            "start on each machine: {shown}thrum bench agent --control mqtt://THIS-MACHINE:{port}"
        );
        // Standard error may be closed; the agents may have started already.
        writeln!(std::io::stderr(), "{line}").ok();
        let mut control =
            Endpoint::parse(&format!("mqtt://127.0.0.1:{port}")).map_err(Complaint::usage)?;
        log_in(&mut control, &secret);
        Ok(Self {
            wanted: AgentsWanted { control, count },
            _broker: Some(broker),
        })
    }
}

/// Uses a secret at a control broker whose URL names no user.
pub(super) fn log_in(control: &mut Endpoint, secret: &Secret) {
    if control.username.is_none() {
        control.username = Some(USERNAME.to_owned());
        control.password = secret.expose_str().map(str::to_owned);
    }
}

/// The secret in the first line of a file, else in the variable.
pub(super) fn given_secret(file: Option<&Path>) -> anyhow::Result<Option<Secret>> {
    let text = match file {
        Some(file) => {
            let text = fs::read_to_string(file);
            let text = text.with_context(|| format!("cannot read {}", file.display()))?;
            text.lines().next().unwrap_or_default().trim().to_owned()
        }
        None => match std::env::var(VARIABLE) {
            Ok(text) => text,
            Err(std::env::VarError::NotPresent) => return Ok(None),
            Err(error) => return Err(Complaint::usage(format!("{VARIABLE}: {error}")).into()),
        },
    };
    if !(SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&text.len()) {
        let message = format!(
            "the secret of the agents must have {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes; it has {}",
            text.len()
        );
        return Err(Complaint::usage(message).into());
    }
    Ok(Some(Secret::from(text.as_str())))
}

fn made_secret() -> anyhow::Result<Secret> {
    let mut bytes = [0; RANDOM_BYTES];
    let filled = rand::fill(&mut bytes);
    filled.map_err(|_| Complaint::new("no random numbers for the secret of the agents", FAILED))?;
    Ok(Secret::from(URL_SAFE_NO_PAD.encode(bytes).as_str()))
}

fn start(port: u16, secret: &Secret) -> Result<Broker, thrum_broker::StartError> {
    let mut config = Config::default();
    // Agents connect from other machines; the broker runs only for this run and carries nothing
    // else.
    config.auth.anonymous = Anonymous::Deny;
    config.listeners.clear();
    let listener = ListenerConfig {
        bind: vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into()],
        ..ListenerConfig::default()
    };
    config.listeners.insert("agents".to_owned(), listener);
    let access = Access {
        gatekeeper: Some(Arc::new(AgentsOnly {
            secret: secret.clone(),
        })),
        ..Access::default()
    };
    Broker::start(config, access)
}

/// Admits clients that have the secret of the run.
#[derive(Debug)]
struct AgentsOnly {
    secret: Secret,
}

impl AgentsOnly {
    fn admits(&self, login: &Login) -> bool {
        let given = login.password.as_ref().map_or(&[][..], Secret::expose);
        let is_right = verify_slices_are_equal(given, self.secret.expose()).is_ok();
        let is_agent = login.identity.username.as_deref() == Some(USERNAME);
        is_right && is_agent && login.method.is_none()
    }
}

impl Gatekeeper for AgentsOnly {
    fn login(&self, login: Login, reply: Reply<Answer>) {
        reply(if self.admits(&login) {
            Answer::Admit(Box::new(Admission {
                identity: login.identity,
                ..Admission::default()
            }))
        } else {
            Answer::Deny(Denial {
                reason: ReasonCode::BadUserNameOrPassword,
                what: "only agents with the secret of the run",
                detail: "the secret is missing or wrong".into(),
            })
        });
    }
}

#[cfg(test)]
mod tests {
    use thrum_access::Identity;
    use thrum_codec::Version;

    use super::*;

    fn login(username: Option<&str>, password: Option<&str>) -> Login {
        Login {
            identity: Identity {
                username: username.map(Into::into),
                ..Identity::default()
            },
            is_username_verified: false,
            is_known_there: false,
            password: password.map(Secret::from),
            version: Version::V5,
            method: None,
        }
    }

    #[test]
    fn only_the_whole_secret_admits_and_only_an_agent() {
        let gate = AgentsOnly {
            secret: Secret::from("right secret"),
        };
        assert!(gate.admits(&login(Some(USERNAME), Some("right secret"))));
        for (username, password) in [
            (None, None),
            (None, Some("right secret")),
            (Some("other"), Some("right secret")),
            (Some(USERNAME), None),
            (Some(USERNAME), Some("")),
            (Some(USERNAME), Some("right secre")),
            (Some(USERNAME), Some("right secret ")),
            (Some(USERNAME), Some("wrong secret")),
        ] {
            assert!(
                !gate.admits(&login(username, password)),
                "{username:?} {password:?}"
            );
        }
    }

    #[test]
    fn a_secret_that_is_made_is_long_fits_a_command_line_and_differs() {
        let [one, other] = [(); 2].map(|()| made_secret().unwrap());
        let (one, other) = (one.expose_str().unwrap(), other.expose_str().unwrap());
        assert!(one.len() >= 22 && one != other, "{one} {other}");
        assert!(
            one.chars()
                .all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter))
        );
    }

    #[test]
    fn the_user_of_an_url_is_used_instead_of_the_secret() {
        let secret = Secret::from("some secret");
        let mut control = Endpoint::parse("mqtt://me:mine@h").unwrap();
        log_in(&mut control, &secret);
        assert_eq!(control.username.as_deref(), Some("me"));
        let mut control = Endpoint::parse("mqtt://h").unwrap();
        log_in(&mut control, &secret);
        assert_eq!(control.username.as_deref(), Some(USERNAME));
        assert_eq!(control.password.as_deref(), Some("some secret"));
    }
}
