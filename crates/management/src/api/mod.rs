//! The routes below `/api/v1`, and their JSON.
//!
//! The router does not depend on the socket.

mod admins;
mod audit;
mod audited;
mod client_detail;
mod clients;
mod drops;
mod entrance;
mod explain;
mod facets;
mod groups;
mod held;
mod keys;
mod login;
mod metrics;
mod oidc;
mod problem;
mod publish;
mod refusals;
mod request;
mod retained;
mod retained_line;
mod retained_transfer;
mod slow;
mod status;
mod subscriptions;
mod timeline;
mod trace;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, delete, get, patch, post};
use thrum_broker::{Cancellation, Queries, QueryError};
use tokio::sync::Semaphore;

use crate::Security;
use crate::login::{HASHES_MAX, Scope};
use entrance::Permission;

pub use admins::{Administrator, AdministratorList, SetupLink};
pub use audit::{AuditEntry, AuditPage};
pub use client_detail::{
    ClientCertificate, ClientDetail, Connection, Dropped, Limits, Queue, Rates, Tcp, Will,
};
pub use clients::{Client, ClientPage, Kicked};
pub use drops::{DropPage, Drops};
pub use entrance::{Entrance, Peer};
pub use explain::{
    DropsExplanation, DropsToExplain, ExplainedGroup, ExplainedQueue, ExplainedReceiver,
    ExplainedStep, PublishExplanation, PublishToExplain, SubscribeExplanation, SubscribeToExplain,
};
pub use facets::{ClientFacets, Facet, UserFacet};
pub use groups::{Group, GroupPage, Member};
pub use held::{HeldContents, HeldMessage, HeldPage};
pub use keys::{ApiKey, CreatedKey, KeyList, NewApiKey};
pub use login::{RecoveryCodes, Session, SessionList, TotpSecret, Whoami};
pub use metrics::{CommitTime, Metrics, Storage};
pub use problem::{NO_CLIENT, Problem};
pub use publish::{Batch, BatchItem, Message, Outcome, Published, PublishedBatch};
pub use refusals::CODE_NEEDED;
pub use retained::{Publisher, Retained, RetainedDetail, RetainedPage};
pub use retained_line::{LineProperties, RetainedLine};
pub use retained_transfer::{Imported, RetainedRemoval};
pub use status::{Connections, Listener, Memory, Status};
pub use subscriptions::{Subscription, SubscriptionPage};
pub use timeline::{Cause, Event, NewConnection, Refusal, SessionEnding, Timeline, TimelineEvent};

/// The beginning of the path of every route.
pub const PREFIX: &str = "/api/v1";

/// Queries that wait for answers of workers, each in a thread; more requests wait for a permit.
const QUERIES_MAX: usize = 8;
/// Writes and reads of the audit log, each in a thread; more wait. They wait for each other anyway.
pub(super) const LOG_TASKS_MAX: usize = 2;
/// Threads that wait for workers, the disk, or a password hash; one more writes the accounts.
pub(crate) const BLOCKING_MAX: usize = QUERIES_MAX + LOG_TASKS_MAX + HASHES_MAX + 1;
/// Bytes of the body of a request: a message with a payload, written as base64.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// A request without an answer is given up after this time, also if its body is incomplete.
const REQUEST_TIME: Duration = Duration::from_secs(15);
/// Time of the broker for an answer: less, so that the error names the workers that did not answer.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// Rows of a page without `limit`.
const ROWS: usize = 100;

/// All routes, answered by a broker.
pub fn router(queries: Queries, security: Security, entrance: Entrance) -> Router {
    let api = ApiState::new(queries, security, entrance);
    let needs = |scope: Scope, methods: MethodRouter<ApiState>| {
        let api = api.clone();
        methods.route_layer(middleware::from_fn_with_state(
            Permission { api, scope },
            entrance::permit,
        ))
    };
    let routes = Router::new()
        .merge(client_routes(&needs))
        .merge(message_routes(&needs))
        .route("/status", needs(Scope::MetricsRead, get(status::show)))
        .route("/metrics", needs(Scope::MetricsRead, get(metrics::show)))
        .route("/audit", needs(Scope::AuditRead, get(audit::list)))
        .merge(needs_admin(&needs))
        .merge(login_routes());
    Router::new()
        .nest(PREFIX, routes)
        .route("/metrics", needs(Scope::MetricsRead, get(metrics::scrape)))
        .layer(middleware::from_fn_with_state(
            api.clone(),
            entrance::identify,
        ))
        .with_state(api)
        .fallback(|request: Request| async move { problem::no_route(&request) })
        .method_not_allowed_fallback(no_method)
        .layer(middleware::from_fn(in_time))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
}

/// The route has no such method.
pub(crate) async fn no_method(request: Request) -> Problem {
    problem::no_method(&request)
}

/// Routes about clients and what they have.
fn client_routes(
    needs: &impl Fn(Scope, MethodRouter<ApiState>) -> MethodRouter<ApiState>,
) -> Router<ApiState> {
    let read = |methods| needs(Scope::ClientsRead, methods);
    let write = |methods| needs(Scope::ClientsWrite, methods);
    Router::new()
        .route("/clients", read(get(clients::list)))
        .route("/clients/facets", read(get(facets::show)))
        .route(
            "/clients/{id}",
            read(get(client_detail::show)).merge(write(delete(clients::kick))),
        )
        .route("/clients/{id}/queue", read(get(held::list)))
        .route("/clients/{id}/session", write(delete(clients::end_session)))
        .route(
            "/clients/{id}/subscriptions",
            read(get(subscriptions::of_client)),
        )
        .route("/clients/{id}/timeline", read(get(timeline::show)))
        .route("/trace", read(get(trace::show)))
        .route("/explain/publish", read(post(explain::publish)))
        .route("/explain/subscribe", read(post(explain::subscribe)))
        .route("/explain/drops", read(post(explain::drops)))
        .route("/subscriptions", read(get(subscriptions::list)))
        .route("/groups", read(get(groups::list)))
        .route("/drops", read(get(drops::list)))
        .route("/slow", read(get(slow::list)))
}

/// Routes about messages.
fn message_routes(
    needs: &impl Fn(Scope, MethodRouter<ApiState>) -> MethodRouter<ApiState>,
) -> Router<ApiState> {
    let read = |methods| needs(Scope::MessagesRead, methods);
    let write = |methods| needs(Scope::MessagesWrite, methods);
    Router::new()
        .route(
            "/retained",
            read(get(retained::list)).merge(write(delete(retained_transfer::remove))),
        )
        .route("/retained/message", read(get(retained::show)))
        .route("/retained/export", read(get(retained_transfer::export)))
        .route("/retained/import", write(post(retained_transfer::import)))
        .route("/publish", write(post(publish::publish)))
        .route("/publish/batch", write(post(publish::batch)))
}

/// Routes about administrators and keys.
fn needs_admin(
    needs: &impl Fn(Scope, MethodRouter<ApiState>) -> MethodRouter<ApiState>,
) -> Router<ApiState> {
    let admin = |methods| needs(Scope::Admin, methods);
    Router::new()
        .route("/admins", admin(get(admins::list).post(admins::add)))
        .route(
            "/admins/{name}",
            admin(patch(admins::change).delete(admins::remove)),
        )
        .route(
            "/admins/{name}/password",
            admin(post(admins::reset_password)),
        )
        .route("/setup-link", admin(post(admins::renew_setup)))
        .route("/sessions", admin(get(login::list_all_sessions)))
        .route("/sessions/{id}", admin(delete(login::end_any_session)))
        .route("/keys", admin(get(keys::list).post(keys::add)))
        .route("/keys/{id}", admin(delete(keys::remove)))
}

/// Routes about the caller itself, which need no scope.
fn login_routes() -> Router<ApiState> {
    Router::new()
        .route(
            "/login",
            get(login::show).post(login::log_in).delete(login::log_out),
        )
        .route("/login/oidc", get(oidc::begin))
        .route("/login/oidc/callback", get(oidc::finish))
        .route("/login/setup", post(login::set_up))
        .route("/login/password", post(login::change_password))
        .route("/login/totp", post(login::begin_totp))
        .route("/login/totp/confirm", post(login::confirm_totp))
        .route("/login/totp/remove", post(login::remove_totp))
        .route("/login/sessions", get(login::list_sessions))
        .route("/login/sessions/{id}", delete(login::end_session))
}

async fn in_time(request: Request, next: Next) -> Response {
    let answered = tokio::time::timeout(REQUEST_TIME, next.run(request)).await;
    answered.unwrap_or_else(|_| {
        let seconds = REQUEST_TIME.as_secs();
        Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "request took too long",
            format!("the request was not read and answered within {seconds} s"),
            "send the whole body at once, or ask again later",
        )
        .into_response()
    })
}

/// Sends the queries of requests to the broker.
#[derive(Clone, Debug)]
struct ApiState {
    queries: Queries,
    permits: Arc<Semaphore>,
    security: Security,
    log_permits: Arc<Semaphore>,
    entrance: Entrance,
}

impl ApiState {
    fn new(queries: Queries, security: Security, entrance: Entrance) -> Self {
        Self {
            queries: queries.with_timeout(ANSWER_TIME),
            permits: Arc::new(Semaphore::new(QUERIES_MAX)),
            security,
            log_permits: Arc::new(Semaphore::new(LOG_TASKS_MAX)),
            entrance,
        }
    }

    /// Runs a query in another thread, so that the thread of the socket does not wait. If a request
    /// ends early, because its client disconnected or its time is over, a query that waits for a
    /// permit is not sent, and one that waits for answers is cancelled.
    async fn query<T: Send + 'static>(
        self,
        query: impl FnOnce(&Queries) -> Result<T, QueryError> + Send + 'static,
    ) -> Result<T, Problem> {
        // The semaphore is never closed.
        let permit = self.permits.acquire_owned().await;
        let cancel = CancelOnDrop(Cancellation::default());
        let queries = self.queries.with_cancellation(cancel.0.clone());
        let task = tokio::task::spawn_blocking(move || {
            let answer = query(&queries);
            drop(permit);
            answer
        });
        let answer = task.await.unwrap_or(Err(QueryError::Stopped));
        answer.map_err(Problem::from)
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
