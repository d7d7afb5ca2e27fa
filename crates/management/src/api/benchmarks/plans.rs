//! What could be run, and what it would do.

use axum::Json;
use axum::extract::State;

use super::model::{BenchmarkCheck, BenchmarkLimits, BenchmarkScenarioList};
use super::order::BenchmarkToRun;
use super::{Kind, ask};
use crate::api::entrance::Sender;
use crate::api::openapi::{Configured, LeftOut, Programmed};
use crate::api::request::Body;
use crate::api::{ApiState, Problem};

/// Shows what a benchmark may take of this machine, and whether one can be started.
#[utoipa::path(
    get,
    path = "/benchmarks/limits",
    operation_id = "show_benchmark_limits",
    tag = "benchmarks",
    responses((status = 200, body = BenchmarkLimits), Programmed),
)]
pub(super) async fn limits(State(api): State<ApiState>) -> Result<Json<BenchmarkLimits>, Problem> {
    let limits = ask(&api, Kind::Look, |benchmarks| Ok(benchmarks.limits()));
    Ok(Json(limits.await?))
}

/// Lists the scenarios of the catalogue that one broker can have.
#[utoipa::path(
    get,
    path = "/benchmarks/scenarios",
    operation_id = "list_benchmark_scenarios",
    tag = "benchmarks",
    responses((status = 200, body = BenchmarkScenarioList), LeftOut, Programmed),
)]
pub(super) async fn scenarios(
    State(api): State<ApiState>,
) -> Result<Json<BenchmarkScenarioList>, Problem> {
    let items = ask(&api, Kind::Catalogue, |benchmarks| benchmarks.scenarios()).await?;
    Ok(Json(BenchmarkScenarioList { items }))
}

/// Checks a run without starting it: its plan, and what speaks against it.
#[utoipa::path(
    post,
    path = "/benchmarks/check",
    operation_id = "check_benchmark",
    tag = "benchmarks",
    request_body = BenchmarkToRun,
    responses((status = 200, body = BenchmarkCheck), LeftOut, Configured),
)]
pub(super) async fn check(
    State(api): State<ApiState>,
    sender: Sender,
    Body(body): Body<BenchmarkToRun>,
) -> Result<Json<BenchmarkCheck>, Problem> {
    let order = body.order(&sender.caller.name)?;
    let check = ask(&api, Kind::Question, move |benchmarks| {
        benchmarks.check(&order)
    });
    Ok(Json(check.await?))
}
