//! The service that the broker asks: chains of backends, on threads of their own.

mod chain;
mod enhanced;
#[cfg(test)]
pub(crate) mod fake;
mod figures;
mod link;
mod operator;
mod progress;
mod reply;
mod settings;
mod state;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use thiserror::Error;
use thrum_access::{Answer, Exchange, Gatekeeper, Identity, Login, Question, Reply};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use crate::config::USERS;
use crate::hash::{Hasher, Verified};
#[cfg(any(test, feature = "testing"))]
use crate::metrics::BackendCounts;
use crate::metrics::{Counters, GatekeeperMetrics, add, read};
use crate::panics;
use crate::policy::Policy;
use chain::{Admitted, Chain, busy, failed, unavailable, unknown};
pub use operator::{EditError, LoginStep, LoginTested, StepVerdict};
use reply::{Once, Pending};
pub use settings::{ListenerSettings, Settings};
use state::State;

/// Threads of the runtime: waiting for other systems needs no core, and tokens are verified in some
/// 50 µs.
const THREADS: usize = 2;
/// Time between two looks at files.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Called when answers may differ from the previous ones.
pub type OnChange = Box<dyn Fn() + Send + Sync>;

/// Why the service does not start, or does not accept new settings.
#[derive(Debug, Error)]
pub enum StartError {
    /// Every error in settings and the files they name.
    #[error("{}", .0.join("\n"))]
    Settings(Vec<String>),
    /// The system gives no thread.
    #[error("cannot start a thread for authentication: {0}")]
    Thread(#[from] std::io::Error),
}

/// Authentication: chains of backends for each listener, on threads of its own.
pub struct AuthService {
    shared: Arc<Shared>,
    /// None only while it is dropped.
    runtime: Option<Runtime>,
}

struct Shared {
    /// Guards the exchange of one pointer.
    state: RwLock<Arc<State>>,
    /// Guards the exchange of one pointer.
    policy: RwLock<Arc<Policy>>,
    hasher: Hasher,
    /// By the names of backends, kept over reloads.
    counters: Mutex<BTreeMap<String, Arc<Counters>>>,
    totals: Totals,
    /// Held while the files are looked at: whoever has changed one finds it in force afterwards.
    looks: Mutex<()>,
    /// Guards the list; held while the policy is rebuilt and the members are called, so that the
    /// last change is the last one that they are told of. They must not add to it.
    on_change: Mutex<Vec<OnChange>>,
}

/// New settings that were found valid, and are not in force.
pub struct Reload(Arc<State>);

#[derive(Default)]
struct Totals {
    admitted: AtomicU64,
    denied: AtomicU64,
    overloaded: AtomicU64,
    pending: Arc<AtomicU64>,
}

impl AuthService {
    /// Reads all files, and starts the threads. Does not wait for other systems.
    ///
    /// The number and the time of cached passwords are read once: changing them needs a restart.
    ///
    /// # Errors
    /// Every error in the settings, or no thread.
    pub fn start(settings: &Settings) -> Result<Arc<Self>, StartError> {
        let capacity = usize::try_from(settings.auth.cache).unwrap_or(usize::MAX);
        let hasher = Hasher::start(Verified::new(capacity, settings.auth.cache_ttl))?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("auth")
            .on_thread_start(panics::catch_on_this_thread)
            .enable_all()
            .build()?;
        let counters = Mutex::default();
        let state = {
            let _in_runtime = runtime.enter();
            State::build(settings, &hasher, &|name| counters_of(&counters, name))
        };
        let state = state.map_err(StartError::Settings)?;
        let policy = state.policy.policy(state.has_users());
        let shared = Arc::new(Shared {
            state: RwLock::new(Arc::new(state)),
            policy: RwLock::new(Arc::new(policy)),
            hasher,
            counters,
            totals: Totals::default(),
            looks: Mutex::default(),
            on_change: Mutex::default(),
        });
        runtime.spawn(look_at_files(Arc::clone(&shared)));
        Ok(Arc::new(Self {
            shared,
            runtime: Some(runtime),
        }))
    }

    /// Applies new settings: all of them, or none.
    ///
    /// # Errors
    /// Every error in them; the old ones stay in force then.
    pub fn reload(&self, settings: &Settings) -> Result<(), StartError> {
        self.put_in_force(self.prepare(settings)?);
        Ok(())
    }

    /// Reads all files of new settings. Changes nothing.
    ///
    /// # Errors
    /// Every error in them.
    pub fn prepare(&self, settings: &Settings) -> Result<Reload, StartError> {
        let state = {
            let _in_runtime = self.runtime.as_ref().map(Runtime::enter);
            let counters = |name: &str| counters_of(&self.shared.counters, name);
            State::build(settings, &self.shared.hasher, &counters)
        };
        let state = Arc::new(state.map_err(StartError::Settings)?);
        if let Some(gone) = state.store_that_is_gone(&self.shared.state()) {
            return Err(StartError::Settings(vec![gone]));
        }
        Ok(Reload(state))
    }

    /// Applies new settings, and calls all observers.
    pub fn put_in_force(&self, Reload(state): Reload) {
        *write(&self.shared.state) = state;
        self.shared.changed();
    }

    /// The present rules for all clients and related settings.
    pub fn policy(&self) -> Arc<Policy> {
        Arc::clone(
            &self
                .shared
                .policy
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// Whether users or backends are set up.
    pub fn has_users(&self) -> bool {
        self.shared.state().has_users()
    }

    /// Whether a user store without a user is all that is set up: clients may do nothing until a
    /// rule allows it.
    pub fn has_only_an_empty_store(&self) -> bool {
        self.shared.state().has_only_an_empty_store()
    }

    /// Warnings about working but probably unintended settings: a world-readable user store. They
    /// are in the log as well.
    pub fn warnings(&self) -> Vec<String> {
        let state = self.shared.state();
        let users = state.users.as_ref();
        users.map_or_else(Vec::new, |users| users.loaded().warnings.clone())
    }

    /// Registers a function to call when users, files or settings have changed: the policy may have
    /// changed, and each client's [`refresh`](Gatekeeper::refresh) may have another answer. Called
    /// on a thread of the service, or of the caller of a reload.
    pub fn on_change(&self, call: OnChange) {
        let calls = &self.shared.on_change;
        calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(call);
    }

    /// The counts of a backend; zeros if there was none of that name since the start.
    #[cfg(any(test, feature = "testing"))]
    pub fn counts_of(&self, backend: &str) -> BackendCounts {
        let counters = self.shared.counters.lock();
        let counters = counters.unwrap_or_else(PoisonError::into_inner);
        let counters = counters.get(backend);
        counters.map_or_else(BackendCounts::default, |counters| counters.snapshot())
    }

    /// The counts of all backends together; takes no lock.
    fn metrics(&self) -> GatekeeperMetrics {
        let totals = &self.shared.totals;
        GatekeeperMetrics {
            admitted: read(&totals.admitted),
            denied: read(&totals.denied),
            overloaded: read(&totals.overloaded),
            pending: read(&totals.pending),
        }
    }

    /// Runs a future on the threads of the service. It is dropped when the service ends.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(work);
        }
    }

    fn enter(&self, state: &State) -> Option<Pending> {
        let most = u64::from(state.settings.auth.pending);
        let pending = Pending::enter(&self.shared.totals.pending, most);
        if pending.is_none() {
            add(&self.shared.totals.overloaded);
        }
        pending
    }

    fn count(&self, answer: Answer) -> Answer {
        self.shared.count(answer)
    }
}

impl Gatekeeper for AuthService {
    fn login(&self, login: Login, reply: Reply<Answer>) {
        let once = Once::new(reply, lost);
        let state = self.shared.state();
        if login.method.is_some() {
            return once.answer(self.count(enhanced::start(&state, login)));
        }
        let chain = Arc::clone(state.chain(&login.identity.listener));
        if chain.links.is_empty() {
            return once.answer(self.count(decide_alone(&state, &chain, login)));
        }
        let Some(pending) = self.enter(&state) else {
            let most = state.settings.auth.pending;
            let denial = busy(format!("{most} logins are waiting (auth.pending)").into());
            return once.answer(self.count(Answer::Deny(denial)));
        };
        let shared = Arc::clone(&self.shared);
        self.spawn(async move {
            let answer = match chain.login(&login).await {
                Ok(admitted) => Answer::Admit(Box::new(state.admission(login, admitted))),
                Err(denial) => Answer::Deny(denial),
            };
            drop(pending);
            once.answer(shared.count(answer));
        });
    }

    fn step(&self, exchange: Exchange, data: Vec<u8>, reply: Reply<Answer>) {
        let answer = enhanced::finish(&self.shared.state(), exchange, &data);
        Once::new(reply, lost).answer(self.count(answer));
    }

    fn refresh(&self, identity: Arc<Identity>, reply: Reply<Answer>) {
        let once = Once::new(reply, lost);
        let state = self.shared.state();
        let chain = Arc::clone(state.chain(&identity.listener));
        let Some(link) = chain.link_of(&identity).map(Arc::clone) else {
            return once.answer(refresh_alone(&state, &chain, &identity));
        };
        if &*link.name == USERS {
            return once.answer(refresh_user(&state, &identity));
        }
        if link
            .backend
            .is_gone(identity.username.as_deref().unwrap_or_default())
        {
            let denial = state::withdrawn(&link.name, "gone");
            return once.answer(Answer::Deny(denial));
        }
        let limit = chain.timeout;
        self.spawn(async move {
            let rules = tokio::time::timeout(limit, link.refresh(&identity)).await;
            let answer = match rules {
                Ok(Ok(Some(rules))) => Answer::Admit(Box::new(state.with_rules(&identity, rules))),
                Ok(Ok(None)) => Answer::Unchanged,
                // The client stays admitted with its rights: a slow backend is no reason to
                // disconnect it.
                Ok(Err(error)) => Answer::Deny(failed(&link.name, &error)),
                Err(_) => Answer::Deny(unavailable(Some(&link.name), "it took too long")),
            };
            once.answer(answer);
        });
    }

    fn has_authorizers(&self) -> bool {
        let state = self.shared.state();
        state.links.iter().any(|link| link.backend.is_authorizer())
    }

    fn authorize(&self, question: Question, reply: Reply<Option<bool>>) {
        let once = Once::new(reply, || Some(false));
        let state = self.shared.state();
        let Some(pending) = self.enter(&state) else {
            return once.answer(Some(false));
        };
        let chain = Arc::clone(state.chain(&question.identity.listener));
        self.spawn(async move {
            let decision = chain.authorize(&question).await;
            drop(pending);
            once.answer(decision);
        });
    }

    fn figures(&self, tell: &mut dyn FnMut(&str, u64)) {
        figures::tell_all(&self.metrics(), &self.shared.state().links, tell);
    }
}

impl Drop for AuthService {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // The last owner to drop it may be one of its own threads, which cannot wait for
            // itself.
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for AuthService {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AuthService")
    }
}

impl fmt::Debug for Reload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Reload")
    }
}

impl Shared {
    fn state(&self) -> Arc<State> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn count(&self, answer: Answer) -> Answer {
        match &answer {
            Answer::Admit(_) => add(&self.totals.admitted),
            Answer::Deny(_) => add(&self.totals.denied),
            Answer::Challenge { .. } | Answer::Unchanged => {}
        }
        answer
    }

    /// Rebuilds the policy and calls all observers.
    fn changed(&self) {
        let calls = self.on_change.lock();
        let calls = calls.unwrap_or_else(PoisonError::into_inner);
        let state = self.state();
        let policy = state.policy.policy(state.has_users());
        *write(&self.policy) = Arc::new(policy);
        for call in calls.iter() {
            call();
        }
    }

    /// Reads the user store, which this process has just replaced.
    fn look_at_users(&self) -> Result<(), String> {
        let _alone = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.state();
        let Some(users) = &state.users else {
            return Ok(());
        };
        match users.reread_replaced() {
            Ok(true) => self.changed(),
            // A look of another thread has seen it before.
            Ok(false) => {}
            Err(error) => {
                warn!(error, "the user store was not applied");
                return Err(error);
            }
        }
        Ok(())
    }

    /// Checks all files once.
    fn look(&self) {
        let _alone = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        let has_changed = self.state().reread(|what, error| {
            let error = error.as_str();
            warn!(
                what,
                error, "a file was not applied; its previous contents stay in force"
            );
        });
        if has_changed {
            self.changed();
            info!("users or rules have changed");
        }
    }
}

async fn look_at_files(shared: Arc<Shared>) {
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let shared = Arc::clone(&shared);
        let looked = tokio::task::spawn_blocking(move || panics::own(|| shared.look())).await;
        if looked.is_err() {
            // The runtime ends.
            return;
        }
    }
}

/// Without any backend a name cannot be verified: a client is admitted as an anonymous one, or not
/// at all.
fn decide_alone(state: &State, chain: &Chain, mut login: Login) -> Answer {
    if !login.is_username_verified {
        login.identity.username = None;
        login.password = None;
        if !chain.admits_anonymous(&login) {
            return Answer::Deny(unknown(&login));
        }
    }
    let admitted = Admitted {
        backend: None,
        found: crate::backend::Found::default(),
    };
    Answer::Admit(Box::new(state.admission(login, admitted)))
}

/// A client that no backend admitted: only the user of its certificate can have changed.
fn refresh_alone(state: &State, chain: &Chain, identity: &Identity) -> Answer {
    let has_store = chain.links.iter().any(|link| &*link.name == USERS);
    let username = identity.username.as_deref();
    let is_new = |username: &&str| {
        let users = state.users.as_ref();
        users.is_some_and(|users| users.loaded().store.user(username).is_some())
    };
    match username.filter(is_new) {
        Some(_) if has_store && identity.backend.is_none() => refresh_user(state, identity),
        Some(_) | None => Answer::Unchanged,
    }
}

fn refresh_user(state: &State, identity: &Identity) -> Answer {
    match state.user(identity.username.as_deref().unwrap_or_default()) {
        Ok(admitted) => Answer::Admit(Box::new(state.admission_of(identity.clone(), admitted))),
        Err(denial) => Answer::Deny(denial),
    }
}

fn counters_of(all: &Mutex<BTreeMap<String, Arc<Counters>>>, name: &str) -> Arc<Counters> {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(all.entry(name.to_owned()).or_default())
}

fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// The service ended, or broke down, before it had an answer.
fn lost() -> Answer {
    Answer::Deny(unavailable(None, "the answer was lost"))
}
