//! Assembles the parts of a broker.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thrum_access::Gatekeeper;
use thrum_auth::AuthService;
use thrum_auth::config::{AclConfig, DeniedPublish, PartialSubscription, RuleOrder};
use thrum_broker::{Access, Broker, Listening, Policy, Reload, RuleSource, Settling, StartError};

use crate::command::Around;
use crate::command::failure::{Lines, with_causes};
use crate::config::{Config, Loaded};
use crate::management::{self, Exported, Management};

/// Longest wait for a change: a worker takes its mail in each turn, and a turn of a second is
/// overload.
const SETTLING_TIME_MAX: Duration = Duration::from_secs(5);

/// A broker with all its parts.
#[derive(Debug)]
pub(crate) struct Node {
    broker: Broker,
    auth: Arc<AuthService>,
    management: Management,
    /// `[acl]` in force, for the observers of changes.
    acl: Arc<Mutex<AclConfig>>,
}

/// The inputs of a broker, read before it takes its data directory and opens its ports.
#[derive(Debug)]
pub(crate) struct Prepared {
    auth: Arc<AuthService>,
    exported: Exported,
    warnings: Vec<String>,
}

impl Prepared {
    /// Warnings: settings that work, but are probably unintended, such as an expired certificate.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// There are users, or backends that know some.
    pub(crate) fn has_users(&self) -> bool {
        self.auth.has_users()
    }
}

/// Reads every file that a configuration names, as a broker needs it: users, rules, certificates,
/// bans.
///
/// # Errors
/// All that a broker cannot start with.
pub(crate) fn prepare(config: &Config) -> Result<Prepared, Lines> {
    let checked = thrum_broker::check(&config.broker());
    let refused = checked.refused.iter();
    let mut problems: Vec<String> = refused.map(|error| with_causes(error)).collect();
    problems.extend(Management::prepare(config).err());
    let settings = config.access();
    let auth = match AuthService::start(&settings) {
        Ok(auth) => auth,
        Err(thrum_auth::StartError::Settings(more)) => {
            problems.extend(more);
            return Err(Lines(problems));
        }
        Err(error) => {
            problems.push(with_causes(&error));
            return Err(Lines(problems));
        }
    };
    let exported = match management::exported(&config.telemetry) {
        Ok(exported) if problems.is_empty() => exported,
        Ok(_) => return Err(Lines(problems)),
        Err(problem) => {
            problems.push(problem);
            return Err(Lines(problems));
        }
    };
    let mut warnings = checked.warnings;
    warnings.extend(auth.warnings());
    // Alone it has been refused.
    if let Some(missing) = settings.missing_store() {
        tracing::warn!("{missing}");
        warnings.push(missing);
    }
    Ok(Prepared {
        auth,
        exported,
        warnings,
    })
}

/// Starts a broker with all its parts.
///
/// # Errors
/// An error of the system.
pub(crate) fn start(
    loaded: &mut Loaded,
    prepared: Prepared,
    around: &Around,
) -> anyhow::Result<Node> {
    let auth = prepared.auth;
    let broker = match start_broker(&loaded.config, &auth) {
        Err(error) => {
            let listener = without_optional(loaded, error)?;
            loaded.config.listeners.remove(&listener);
            start_broker(&loaded.config, &auth)?
        }
        Ok(broker) => broker,
    };
    let config = &loaded.config;
    let mut management = match Management::start(config, &broker, &auth, around) {
        Ok(management) => management,
        Err(error) => {
            broker.stop();
            return Err(error);
        }
    };
    management.export(prepared.exported, &config.node.name);
    let node = Node {
        management,
        acl: Arc::new(Mutex::new(config.acl.clone())),
        broker,
        auth,
    };
    node.follow();
    Ok(node)
}

/// The listener to do without, which nobody asked for and whose address another program has taken.
///
/// # Errors
/// The error is another one.
fn without_optional(loaded: &Loaded, error: StartError) -> Result<String, StartError> {
    match error {
        StartError::Bind {
            listener, source, ..
        } if loaded.optional_listener() == Some(listener.as_str()) => {
            tracing::warn!(error = %source, "no management interface: its address is taken");
            Ok(listener)
        }
        error => Err(error),
    }
}

fn start_broker(config: &Config, auth: &Arc<AuthService>) -> Result<Broker, StartError> {
    Broker::start(config.broker(), access(auth, &config.acl))
}

impl Node {
    /// Whether users or backends are set up.
    pub(crate) fn has_users(&self) -> bool {
        self.auth.has_users()
    }

    /// Whether a user store without a user is all that is set up.
    pub(crate) fn has_only_an_empty_store(&self) -> bool {
        self.auth.has_only_an_empty_store()
    }

    /// A link that makes the first administrator, relative to the address of an HTTP listener.
    pub(crate) fn setup_link(&self) -> Option<String> {
        self.management.setup_link()
    }

    /// The addresses of the listeners.
    pub(crate) fn addresses(&self) -> Vec<Listening> {
        self.broker.addresses()
    }

    /// Applies another configuration, as far as that is possible without a restart; returns the
    /// keys that need one. It is in force then, except where the log reports an error.
    ///
    /// # Errors
    /// The errors that prevent the change; then everything stays unchanged.
    pub(crate) fn reload(&mut self, loaded: &mut Loaded) -> anyhow::Result<Vec<String>> {
        let rights = self.auth.prepare(&loaded.config.access())?;
        let interface = Management::prepare(&loaded.config).map_err(anyhow::Error::msg)?;
        let exported =
            management::exported(&loaded.config.telemetry).map_err(anyhow::Error::msg)?;
        let listeners = self.prepare_listeners(loaded)?;
        let config = &loaded.config;
        // Nothing may fail from here on: rights and subscriptions that clients lose cannot be
        // restored.
        self.acl
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone_from(&config.acl);
        // Before a new listener opens.
        self.auth.put_in_force(rights);
        let (waiting, _) = self.broker.put_in_force(listeners);
        self.management.renew(interface, &self.broker);
        self.management.export(exported, &config.node.name);
        // Listeners decide as well about clients that are here. Once this is settled all of it is.
        let handle = self.broker.access_handle();
        settle(handle.set(access(&self.auth, &config.acl)));
        Ok(waiting)
    }

    /// Checks whether [`Node::reload`] would succeed: reads every file, and binds new addresses for
    /// a moment. Nothing changes.
    ///
    /// # Errors
    /// As [`Node::reload`].
    #[cfg(feature = "management")]
    pub(crate) fn check_reload(&self, loaded: &mut Loaded) -> anyhow::Result<()> {
        self.auth.prepare(&loaded.config.access())?;
        Management::prepare(&loaded.config).map_err(anyhow::Error::msg)?;
        management::exported(&loaded.config.telemetry).map_err(anyhow::Error::msg)?;
        self.prepare_listeners(loaded)?;
        Ok(())
    }

    fn prepare_listeners(&self, loaded: &mut Loaded) -> anyhow::Result<Reload> {
        match self.broker.prepare(&loaded.config.broker()) {
            Err(error) => {
                let listener = without_optional(loaded, error)?;
                loaded.config.listeners.remove(&listener);
                Ok(self.broker.prepare(&loaded.config.broker())?)
            }
            Ok(listeners) => Ok(listeners),
        }
    }

    /// Whether a listener takes connections now.
    #[cfg(feature = "management")]
    pub(crate) fn is_listening(&self, name: &str) -> bool {
        let mut addresses = self.broker.addresses().into_iter();
        addresses.any(|one| &*one.listener == name)
    }

    /// Opens or closes a listener until the next start.
    ///
    /// # Errors
    /// An address cannot be bound.
    #[cfg(feature = "management")]
    pub(crate) fn set_listener(&mut self, name: &str, opens: bool) -> Result<(), StartError> {
        if opens {
            self.broker.start_listener(name)?;
        } else {
            let closed = self.broker.stop_listener(name);
            closed.into_iter().for_each(settle);
        }
        self.management.renew_ports(&self.broker);
        Ok(())
    }

    /// Disconnects the clients of a listener.
    #[cfg(feature = "management")]
    pub(crate) fn disconnect_listener(&self, name: &str) {
        self.broker.disconnect_listener(name);
    }

    /// Reads all files of TLS again; returns what cannot be used.
    #[cfg(feature = "management")]
    pub(crate) fn renew_certificates(&mut self) -> Vec<String> {
        let failures = self.broker.renew_certificates();
        failures.iter().map(|error| with_causes(error)).collect()
    }

    /// Whether somebody can ask for alarms.
    pub(crate) fn has_alarms(&self) -> bool {
        self.management.is_open()
    }

    /// Looks at the figures for alarms.
    pub(crate) fn look_at_alarms(&self, config: &Config, reload_failure: Option<&str>) {
        self.management
            .look_at_alarms(&self.broker, config, reload_failure);
    }

    /// Reads files of TLS again that have changed.
    pub(crate) fn look_at_certificates(&mut self) {
        self.broker.look_at_certificates();
    }

    /// Ends it.
    pub(crate) fn stop(mut self) {
        self.management.close();
        self.broker.stop();
        // Carries the last bytes of the broker to its clients.
        self.management.stop();
    }

    /// Users and rules go to the broker whenever they change.
    fn follow(&self) {
        let handle = self.broker.access_handle();
        let (auth, acl) = (Arc::downgrade(&self.auth), Arc::clone(&self.acl));
        self.auth.on_change(Box::new(move || {
            if let Some(auth) = auth.upgrade() {
                let acl = acl.lock().unwrap_or_else(PoisonError::into_inner);
                settle(handle.set(access(&auth, &acl)));
            }
        }));
    }
}

/// Waits until all workers have a change.
fn settle(settling: Settling) {
    if let Err(workers) = settling.wait(SETTLING_TIME_MAX) {
        tracing::warn!(
            workers = workers.join(", "),
            "a change is not in force everywhere yet: these threads have not answered for {} s; they are busy, and take \
             it over before their next connection or packet",
            SETTLING_TIME_MAX.as_secs()
        );
    }
}

/// The gatekeeper in force.
fn access(auth: &Arc<AuthService>, acl: &AclConfig) -> Access {
    let policy = auth.policy();
    let gatekeeper = || Arc::clone(auth) as Arc<dyn Gatekeeper>;
    let source = |order: &RuleOrder| match order {
        RuleOrder::Rules => RuleSource::AllClients,
        RuleOrder::Client => RuleSource::Client,
        RuleOrder::Remote => RuleSource::Gatekeeper,
    };
    Access {
        gatekeeper: auth.has_users().then(gatekeeper),
        policy: Policy {
            rules: Arc::clone(&policy.rules),
            order: policy.order.iter().map(source).collect(),
            allows_by_default: policy.allows_by_default,
            disconnects_denied: policy.denied_publish == DeniedPublish::Disconnect,
            filters_partial: policy.partial == PartialSubscription::Filter,
            checks_retained_source: policy.check_retained_source,
            decisions_max: usize::try_from(acl.cache).unwrap_or(usize::MAX),
            decision_ttl: acl.cache_ttl,
        },
    }
}
