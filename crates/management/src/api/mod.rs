//! The routes below `/api/v1`, and their JSON.
//!
//! The router does not depend on the socket.

mod access;
mod admins;
mod audit;
mod audited;
mod benchmarks;
mod client_detail;
mod clients;
mod download;
mod drops;
mod entrance;
mod explain;
mod facets;
mod groups;
mod held;
mod history;
mod keys;
mod login;
mod metrics;
mod oidc;
mod openapi;
mod operating;
mod pace;
mod precondition;
mod problem;
mod publish;
mod refusals;
mod refused_publishes;
mod request;
mod retained;
mod retained_line;
mod retained_transfer;
mod routes;
mod shares;
mod slow;
mod status;
mod stream;
mod subscriptions;
mod time_limit;
mod timeline;
mod topic_metrics;
mod topics;
mod trace;
mod trace_stream;
mod why;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;
use thrum_broker::{Cancellation, Queries, QueryError, WorkerTime};
use tokio::sync::Semaphore;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::counts::Counts;
use crate::in_thread::in_thread;
use crate::login::{HASHES_MAX, Scope};
use crate::program::{Program, ProgramError};
use crate::{Managed, Security};
use entrance::Right;
use request::BodyLimit;
use routes::Routes;
use stream::Hub;

pub use access::{
    AccessTest, AccessToTest, Ban, BanAdded, BanPage, BanToAdd, ClientToBan, DecidingRule,
    LoginTest, LoginTestStep, LoginToTest, NewUser, Role, RoleList, Rule, RulePage, TestedIdentity,
    User, UserChange, UserChanged, UserGroup, UserGroupList, UserPage, UserPassword, UsersImported,
};
pub use admins::{Administrator, AdministratorList, SetupLink};
pub use audit::{AuditEntry, AuditPage};
pub(crate) use benchmarks::Permits as BenchmarkPermits;
pub use benchmarks::{
    BenchmarkBucket, BenchmarkCheck, BenchmarkComparison, BenchmarkComparisonRow, BenchmarkConfig,
    BenchmarkFigures, BenchmarkFinding, BenchmarkLimits, BenchmarkMark, BenchmarkPlan,
    BenchmarkRun, BenchmarkRunInFull, BenchmarkRunList, BenchmarkSample, BenchmarkSamples,
    BenchmarkScenario, BenchmarkScenarioList, BenchmarkStage, BenchmarkStarted, BenchmarkThreshold,
    BenchmarkVerdict, KeptSamples,
};
pub use client_detail::{
    ClientCertificate, ClientDetail, Connection, Dropped, Limits, Queue, Rates, Tcp, Will,
};
pub use clients::{Client, ClientPage, Kicked};
pub use drops::{DropPage, Drops};
pub use entrance::{Entrance, Peer};
pub use explain::{
    DropsExplanation, DropsToExplain, ExplainedGroup, ExplainedLogin, ExplainedQueue,
    ExplainedReceiver, ExplainedStep, PublishExplanation, PublishToExplain, SubscribeExplanation,
    SubscribeToExplain,
};
pub use facets::{ClientFacets, Facet, UserFacet};
pub use groups::{Group, GroupPage, Member};
pub use held::{HeldContents, HeldMessage, HeldPage};
pub use history::History;
pub use keys::{ApiKey, CreatedKey, KeyList, NewApiKey};
pub use login::{RecoveryCodes, Session, SessionList, TotpSecret, Whoami};
pub use metrics::{CommitTime, Metrics, Storage};
pub use operating::{
    Alarm, AlarmHistory, AlarmList, Applied, Backup, BackupPage, Certificate, CertificateRenewal,
    Configuration, ConfigurationKey, ConfigurationVersion, Difference, Host, LevelChange,
    LevelList, ListenerDetail, ListenerLimits, ListenerList, ListenerTls, LogLine, LogPage, Node,
    NodeLimits, OverriddenKey, PastAlarm, Plan, Process, RaisedLevel, Reloaded, StoppedListener,
    StorageDisk, StorageState, VersionList, Worker,
};
pub use problem::Problem;
pub use publish::{Batch, BatchItem, Message, Outcome, Published, PublishedBatch};
pub use refused_publishes::{RefusedForReason, RefusedPublishPage, RefusedPublishes};
pub use retained::{Publisher, Retained, RetainedDetail, RetainedPage};
pub use retained_line::{LineProperties, RetainedLine};
pub use retained_transfer::{Imported, RetainedRemoval};
pub(crate) use shares::Shares;
pub use status::{Connections, Listener, Memory, Status};
pub use subscriptions::{Subscription, SubscriptionPage};
pub use timeline::{Cause, Event, NewConnection, Refusal, SessionEnding, Timeline, TimelineEvent};
pub use topic_metrics::{NewTopicMetric, TopicMetric, TopicMetricList};
pub use topics::{Topic, TopicHits, TopicInFull, TopicMessage, TopicPage, TopicPublisher};
pub(crate) use why::quoted;
pub use why::{
    DropCauses, DropsState, LatencyCauses, LatencyState, NotCause, Why, WhyCause, WhyLimitation,
    WhyQuestion, WhyWhat,
};

/// The beginning of the path of every route.
pub const PREFIX: &str = "/api/v1";

/// Queries that wait for answers of workers, each in a thread; more requests wait for a permit.
const QUERIES_MAX: usize = 8;
/// Writes and reads of the audit log, each in a thread; more wait. They wait for each other anyway.
pub(super) const LOG_TASKS_MAX: usize = 2;
/// Threads that wait for workers, the disk, or a password hash; one more writes the accounts.
pub(crate) const BLOCKING_MAX: usize = QUERIES_MAX
    + LOG_TASKS_MAX
    + access::TASKS_MAX
    + operating::PROGRAM_TASKS_MAX
    + benchmarks::BENCHMARK_TASKS_MAX
    + HASHES_MAX
    + 1;
/// Bytes of the body of a request: a message with a payload, written as base64.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Time of the broker for an answer: less, so that the error names the workers that did not answer.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// Rows of a page without `limit`.
const ROWS: usize = 100;

/// All routes, answered by a broker, and by the program around it if there is one.
pub fn router(managed: impl Into<Managed>, security: Security, entrance: Entrance) -> Router {
    router_and_changes(managed, security, entrance).0
}

/// The same, and the permits of changes, which are all free when no change is under way.
pub(crate) fn router_and_changes(
    managed: impl Into<Managed>,
    security: Security,
    entrance: Entrance,
) -> (Router, Shares) {
    let api = ApiState::new(managed, security, entrance);
    let changes = api.changes.clone();
    let (documented, _) = all_routes(&api).split_for_parts();
    let metrics = routes::guarded(&api, Right::Scope(Scope::MetricsRead), get(metrics::scrape));
    let router = Router::new()
        .nest(PREFIX, documented)
        .route("/metrics", metrics)
        .layer(middleware::from_fn_with_state(
            api.clone(),
            entrance::identify,
        ))
        .with_state(api)
        .fallback(|request: Request| async move { problem::no_route(&request) })
        .method_not_allowed_fallback(no_method)
        .layer(middleware::from_fn(time_limit::in_time))
        .layer(BodyLimit(BODY_BYTES_MAX).layer());
    (router, changes)
}

/// Counts each answer by its status.
pub(crate) async fn count_answer(
    State(counts): State<Arc<Counts>>,
    request: Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    counts.answered(response.status().as_u16());
    response
}

/// The route has no such method.
pub(crate) async fn no_method(request: Request) -> Problem {
    problem::no_method(&request)
}

/// The routes below [`PREFIX`], with their document.
fn all_routes(api: &ApiState) -> OpenApiRouter<ApiState> {
    let routes = Routes::new(api.clone());
    let routes = status_routes(routes);
    let routes = client_routes(routes);
    let routes = live_routes(routes);
    let routes = message_routes(routes);
    let routes = access::routes(routes);
    let routes = operating::routes(routes);
    let routes = benchmarks::routes(routes);
    let routes = admin_routes(routes);
    let routes = login_routes(routes);
    routes.finish()
}

/// Routes about the broker itself.
fn status_routes(routes: Routes) -> Routes {
    routes
        .scoped(Scope::MetricsRead, routes!(status::show))
        .scoped(Scope::MetricsRead, routes!(metrics::show))
        .scoped(Scope::AuditRead, routes!(audit::list))
        .logged_in(routes!(openapi::show))
}

/// Routes about clients and what they have.
fn client_routes(routes: Routes) -> Routes {
    let (read, write) = (Scope::ClientsRead, Scope::ClientsWrite);
    routes
        .scoped(read, routes!(clients::list))
        .scoped(read, routes!(facets::show))
        .scoped(read, routes!(client_detail::show))
        .scoped(write, routes!(clients::kick))
        .scoped(read, routes!(held::list))
        .scoped(write, routes!(clients::end_session))
        .scoped(read, routes!(subscriptions::of_client))
        .scoped(read, routes!(timeline::show))
        .scoped(read, routes!(trace::show))
        .scoped(read, routes!(explain::publish))
        .scoped(read, routes!(explain::subscribe))
        .scoped(read, routes!(explain::drops))
        .scoped(read, routes!(subscriptions::list))
        .scoped(read, routes!(groups::list))
        .scoped(read, routes!(drops::list))
        .scoped(read, routes!(refused_publishes::list))
        .scoped(read, routes!(slow::list))
        .scoped(read, routes!(why::show))
}

/// Routes about what moves. A stream needs the scopes of what it shows.
fn live_routes(routes: Routes) -> Routes {
    let (metrics, clients) = (Scope::MetricsRead, Scope::ClientsRead);
    routes
        .logged_in(routes!(stream::show))
        .scoped(metrics, routes!(history::show))
        .scoped(clients, routes!(topics::list))
        .scoped(clients, routes!(topics::search))
        .scoped(clients, routes!(topics::show))
        .scoped(metrics, routes!(topic_metrics::list))
        .scoped(
            Scope::ConfigWrite,
            routes!(topic_metrics::add, topic_metrics::remove),
        )
}

/// Routes about messages.
fn message_routes(routes: Routes) -> Routes {
    let (read, write) = (Scope::MessagesRead, Scope::MessagesWrite);
    routes
        .scoped(read, routes!(retained::list))
        .scoped(write, routes!(retained_transfer::remove))
        .scoped(read, routes!(retained::show))
        .scoped(read, routes!(retained_transfer::export))
        .scoped(write, routes!(retained_transfer::import))
        .scoped(write, routes!(publish::publish))
        .scoped(write, routes!(publish::batch))
}

/// Routes about administrators and keys.
fn admin_routes(routes: Routes) -> Routes {
    let admin = Scope::Admin;
    routes
        .scoped(admin, routes!(admins::list, admins::add))
        .scoped(admin, routes!(admins::change, admins::remove))
        .scoped(admin, routes!(admins::reset_password))
        .scoped(admin, routes!(admins::renew_setup))
        .scoped(admin, routes!(login::list_all_sessions))
        .scoped(admin, routes!(login::end_any_session))
        .scoped(admin, routes!(keys::list, keys::add))
        .scoped(admin, routes!(keys::remove))
}

/// Routes about the caller itself, which need no scope.
fn login_routes(routes: Routes) -> Routes {
    routes
        .open(routes!(login::show, login::log_in))
        .own(routes!(login::log_out))
        .open(routes!(oidc::begin))
        .open(routes!(oidc::finish))
        .open(routes!(login::set_up))
        .own(routes!(login::change_password))
        .own(routes!(login::begin_totp))
        .own(routes!(login::confirm_totp))
        .own(routes!(login::remove_totp))
        .own(routes!(login::list_sessions))
        .own(routes!(login::end_session))
}

/// Sends the queries of requests to the broker.
#[derive(Clone, Debug)]
struct ApiState {
    queries: Queries,
    managed: Managed,
    permits: Arc<Semaphore>,
    program_permits: Arc<Semaphore>,
    backup_files: Shares,
    changes: Shares,
    imports: Shares,
    security: Security,
    log_permits: Arc<Semaphore>,
    live: Arc<Hub>,
    access_permits: Arc<Semaphore>,
    why_permits: Arc<Semaphore>,
    entrance: Entrance,
}

impl ApiState {
    fn new(managed: impl Into<Managed>, security: Security, entrance: Entrance) -> Self {
        let managed = managed.into();
        Self {
            queries: managed.queries.clone().with_timeout(ANSWER_TIME),
            managed,
            program_permits: Arc::new(Semaphore::new(operating::PROGRAM_TASKS_MAX)),
            backup_files: Shares::new(operating::BACKUP_FILES_MAX),
            changes: Shares::new(audited::CHANGES_MAX),
            imports: Shares::new(audited::IMPORTS_MAX),
            permits: Arc::new(Semaphore::new(QUERIES_MAX)),
            security,
            log_permits: Arc::new(Semaphore::new(LOG_TASKS_MAX)),
            live: Arc::default(),
            access_permits: Arc::new(Semaphore::new(access::TASKS_MAX)),
            why_permits: Arc::new(Semaphore::new(why::WHY_MAX)),
            entrance,
        }
    }

    /// The same, with the time that the workers spend on its queries.
    fn with_worker_time(self) -> (Self, WorkerTime) {
        let (queries, worked) = self.queries.with_worker_time();
        (Self { queries, ..self }, worked)
    }

    /// Runs a query in another thread, so that the thread of the socket does not wait. If a request
    /// ends early, because its client disconnected or its time is over, a query that waits for a
    /// permit is not sent, and one that waits for answers is cancelled; a change goes on.
    async fn query<T: Send + 'static>(
        self,
        query: impl FnOnce(&Queries) -> Result<T, QueryError> + Send + 'static,
    ) -> Result<T, Problem> {
        let cancel = CancelOnDrop(Cancellation::default());
        let queries = self.queries.with_cancellation(cancel.0.clone());
        let answer = in_thread(&self.permits, move || query(&queries)).await?;
        Ok(answer?)
    }

    /// Asks the program in another thread.
    fn program<T: Send + 'static, F>(
        &self,
        ask: F,
    ) -> impl Future<Output = Result<T, Problem>> + Send + 'static + use<T, F>
    where
        F: FnOnce(&dyn Program) -> Result<T, ProgramError> + Send + 'static,
    {
        let program = self.managed.program.clone();
        let permits = Arc::clone(&self.program_permits);
        async move {
            let program = program.ok_or_else(operating::no_program)?;
            let answer = in_thread(&permits, move || ask(&*program)).await?;
            Ok(answer?)
        }
    }
}

/// Cancels a query when its request ends.
struct CancelOnDrop(Cancellation);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[cfg(test)]
mod query_tests;
#[cfg(test)]
mod tests;
