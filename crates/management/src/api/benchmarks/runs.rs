//! The runs: start, watch, stop, read, compare.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    HeaderName, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::model::{
    BenchmarkComparison, BenchmarkRunInFull, BenchmarkRunList, BenchmarkSamples, BenchmarkStarted,
};
use super::order::{BenchmarkToChange, BenchmarkToRun};
use super::{Kind, ask};
use crate::api::audited::Made;
use crate::api::download::Download;
use crate::api::entrance::Sender;
use crate::api::openapi::{Audited, Configured, Conflict, LeftOut, NotFound, Programmed};
use crate::api::request::{Body, FileOfRun, Named, Parameters};
use crate::api::{ApiState, Problem};
use crate::audit::Change;
use crate::login::Scope;
use crate::program::OpenRunFile;

/// Runs of one comparison.
const COMPARED_MAX: usize = 4;
/// Samples of an answer, ten minutes.
const SAMPLES_OF_ANSWER: usize = 600;
/// Bytes of a file that are read at once, when the client has taken the last ones.
const PORTION_BYTES: u64 = 64 * 1024;
/// What a page of a report may do when a browser opens it: nothing but show itself.
const REPORT_POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// The files of a run that are handed out, and their types.
const FILES: [(&str, &str); 8] = [
    ("report.html", "text/html; charset=utf-8"),
    ("report.md", "text/markdown; charset=utf-8"),
    ("result.json", "application/json"),
    ("series.csv", "text/csv; charset=utf-8"),
    ("run.toml", "application/toml"),
    ("latency.hgrm", "text/plain; charset=utf-8"),
    ("junit.xml", "application/xml"),
    ("env.json", "application/json"),
];

/// Lists the runs that are kept, the newest first.
#[utoipa::path(
    get,
    path = "/benchmarks/runs",
    operation_id = "list_benchmark_runs",
    tag = "benchmarks",
    responses((status = 200, body = BenchmarkRunList), LeftOut, Programmed),
)]
pub(super) async fn list(State(api): State<ApiState>) -> Result<Json<BenchmarkRunList>, Problem> {
    let items = ask(&api, Kind::Look, |benchmarks| benchmarks.runs()).await?;
    Ok(Json(BenchmarkRunList { items }))
}

/// Starts a run, as a process of its own; there is one at a time.
#[utoipa::path(
    post,
    path = "/benchmarks/runs",
    operation_id = "start_benchmark",
    tag = "benchmarks",
    request_body = BenchmarkToRun,
    responses(
        (status = 201, description = "It has begun.", body = BenchmarkStarted),
        LeftOut,
        Configured,
        Audited,
    ),
)]
pub(super) async fn start(
    State(api): State<ApiState>,
    sender: Sender,
    Body(body): Body<BenchmarkToRun>,
) -> Result<(StatusCode, Json<BenchmarkStarted>), Problem> {
    let mut after = body.shown();
    let change = Change::new("benchmark.start", body.shown_scenario()).after(after.clone());
    let order = body.order(&sender.caller.name)?;
    let start = ask(&api, Kind::Start, move |benchmarks| benchmarks.start(order));
    let start = async move {
        let id = start.await?;
        after["id"] = id.as_str().into();
        Ok(Made {
            answer: id,
            before: Value::Null,
            after,
        })
    };
    let id = api.audited_as_made(&sender, change, start).await?;
    Ok((StatusCode::CREATED, Json(BenchmarkStarted { id })))
}

/// Shows a run with its scenario, stages and limits.
#[utoipa::path(
    get,
    path = "/benchmarks/runs/{id}",
    operation_id = "show_benchmark_run",
    tag = "benchmarks",
    params(("id" = String, Path, description = "Its identifier.")),
    responses((status = 200, body = BenchmarkRunInFull), NotFound, LeftOut, Programmed),
)]
pub(super) async fn show(
    State(api): State<ApiState>,
    Named(id): Named,
) -> Result<Json<BenchmarkRunInFull>, Problem> {
    let run = ask(&api, Kind::Look, move |benchmarks| benchmarks.run(&id));
    Ok(Json(run.await?))
}

/// Removes a run with its files.
#[utoipa::path(
    delete,
    path = "/benchmarks/runs/{id}",
    operation_id = "remove_benchmark_run",
    tag = "benchmarks",
    params(("id" = String, Path, description = "Its identifier.")),
    responses((status = 204), NotFound, Conflict, LeftOut, Programmed, Audited),
)]
pub(super) async fn remove(
    State(api): State<ApiState>,
    sender: Sender,
    Named(id): Named,
) -> Result<StatusCode, Problem> {
    let change = Change::new("benchmark.remove", &id);
    let remove = ask(&api, Kind::Change, move |benchmarks| benchmarks.remove(&id));
    api.audited(&sender, change, remove).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Which samples to show.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SampleParameters {
    /// Those with a higher number; all if absent.
    after: u64,
}

/// Shows the samples of a run, one a second, at most 600 at once; ask again with `next`.
#[utoipa::path(
    get,
    path = "/benchmarks/runs/{id}/samples",
    operation_id = "list_benchmark_samples",
    tag = "benchmarks",
    params(("id" = String, Path, description = "Its identifier."), SampleParameters),
    responses((status = 200, body = BenchmarkSamples), NotFound, LeftOut, Programmed),
)]
pub(super) async fn samples(
    State(api): State<ApiState>,
    Named(id): Named,
    Parameters(SampleParameters { after }): Parameters<SampleParameters>,
) -> Result<Json<BenchmarkSamples>, Problem> {
    let samples = ask(&api, Kind::Look, move |benchmarks| {
        benchmarks.samples(&id, after, SAMPLES_OF_ANSWER)
    });
    Ok(Json(samples.await?))
}

/// Changes a run under way: its rate, its length, or what is noted. The samples and the report have
/// every change as a mark.
#[utoipa::path(
    post,
    path = "/benchmarks/runs/{id}/change",
    operation_id = "change_benchmark",
    tag = "benchmarks",
    params(("id" = String, Path, description = "Its identifier.")),
    request_body = BenchmarkToChange,
    responses(
        (status = 202, description = "It changes within a second."),
        NotFound,
        Conflict,
        LeftOut,
        Programmed,
        Audited,
    ),
)]
pub(super) async fn change(
    State(api): State<ApiState>,
    sender: Sender,
    Named(id): Named,
    Body(body): Body<BenchmarkToChange>,
) -> Result<StatusCode, Problem> {
    let audited = Change::new("benchmark.change", &id).after(body.shown());
    let change = body.change()?;
    let change = ask(&api, Kind::Change, move |benchmarks| {
        benchmarks.change(&id, change)
    });
    api.audited(&sender, audited, change).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Ends a run early. Its report is still written, which `GET` shows when it is done.
#[utoipa::path(
    post,
    path = "/benchmarks/runs/{id}/stop",
    operation_id = "stop_benchmark",
    tag = "benchmarks",
    params(("id" = String, Path, description = "Its identifier.")),
    responses(
        (status = 202, description = "It ends."),
        NotFound,
        Conflict,
        LeftOut,
        Programmed,
        Audited,
    ),
)]
pub(super) async fn stop(
    State(api): State<ApiState>,
    sender: Sender,
    Named(id): Named,
) -> Result<StatusCode, Problem> {
    let change = Change::new("benchmark.stop", &id);
    let stop = ask(&api, Kind::Change, move |benchmarks| benchmarks.stop(&id));
    api.audited(&sender, change, stop).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Whether a run is one that others are compared with.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BenchmarkBaseline {
    /// It is one, and never makes room for others.
    baseline: bool,
}

/// Makes a run one that others are compared with, or an ordinary one.
#[utoipa::path(
    post,
    path = "/benchmarks/runs/{id}/baseline",
    operation_id = "set_benchmark_baseline",
    tag = "benchmarks",
    params(("id" = String, Path, description = "Its identifier.")),
    request_body = BenchmarkBaseline,
    responses((status = 204), NotFound, Conflict, LeftOut, Programmed, Audited),
)]
pub(super) async fn set_baseline(
    State(api): State<ApiState>,
    sender: Sender,
    Named(id): Named,
    Body(BenchmarkBaseline { baseline }): Body<BenchmarkBaseline>,
) -> Result<StatusCode, Problem> {
    let change = Change::new("benchmark.baseline", &id).after(json!({ "baseline": baseline }));
    let set = ask(&api, Kind::Change, move |benchmarks| {
        benchmarks.set_baseline(&id, baseline)
    });
    api.audited(&sender, change, set).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Reads a file of a run: `report.html`, `report.md`, `result.json`, `series.csv`, `run.toml`,
/// `latency.hgrm`, `junit.xml` or `env.json`.
#[utoipa::path(
    get,
    path = "/benchmarks/runs/{id}/files/{name}",
    operation_id = "fetch_benchmark_file",
    tag = "benchmarks",
    params(
        ("id" = String, Path, description = "Its identifier."),
        ("name" = String, Path, description = "Name of the file."),
    ),
    responses(
        (
            status = 200,
            description = "The file.",
            body = String,
            content_type = "application/octet-stream",
        ),
        NotFound,
        LeftOut,
        Programmed,
    ),
)]
pub(super) async fn file(
    State(api): State<ApiState>,
    sender: Sender,
    FileOfRun { id, name }: FileOfRun,
) -> Result<Response, Problem> {
    let known = FILES.iter().find(|(known, _)| *known == name);
    let Some(&(name, content_type)) = known else {
        return Err(no_file(&name));
    };
    let shown = format!("attachment; filename=\"{id}-{name}\"");
    let held = api.managed.benchmark_permits.file(&sender.caller).await?;
    let open = ask(&api, Kind::Look, move |benchmarks| {
        benchmarks.open_file(&id, name)
    });
    let OpenRunFile { file, bytes } = open.await?;
    let len = bytes.to_string();
    // The identifier is one of a run, and so has no character that a header would not take.
    let headers: [(HeaderName, &str); 6] = [
        (CONTENT_TYPE, content_type),
        (CONTENT_LENGTH, len.as_str()),
        (CONTENT_DISPOSITION, shown.as_str()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, REPORT_POLICY),
        (CACHE_CONTROL, "no-store"),
    ];
    held.keep(file);
    let download = Download {
        bytes,
        portion_bytes: PORTION_BYTES,
        scope: Scope::BenchmarksRead,
        threads: Arc::clone(&api.managed.benchmark_permits.portions),
        held,
    };
    Ok((headers, download.body(api, sender)).into_response())
}

fn no_file(name: &str) -> Problem {
    let names: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
    let shown: String = name.chars().take(64).collect();
    let mut problem = Problem::new(
        StatusCode::NOT_FOUND,
        "not found",
        format!("a run has no file {shown:?}"),
        "",
    );
    problem.remedy = format!("ask for one of {}", names.join(", "));
    problem
}

/// Which runs to compare.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct CompareParameters {
    /// 2 to 4 identifiers with commas between them; the others are compared with the first.
    runs: String,
}

/// Compares runs with the first of them, as `thrum bench compare` does.
#[utoipa::path(
    get,
    path = "/benchmarks/compare",
    operation_id = "compare_benchmarks",
    tag = "benchmarks",
    params(CompareParameters),
    responses((status = 200, body = BenchmarkComparison), NotFound, Conflict, LeftOut, Programmed),
)]
pub(super) async fn compare(
    State(api): State<ApiState>,
    Parameters(CompareParameters { runs }): Parameters<CompareParameters>,
) -> Result<Json<BenchmarkComparison>, Problem> {
    let runs: Vec<String> = runs
        .split(',')
        .take(COMPARED_MAX + 1)
        .map(str::to_owned)
        .collect();
    let is_repeated = |(place, id): (usize, &String)| runs[..place].contains(id);
    if !(2..=COMPARED_MAX).contains(&runs.len()) || runs.iter().enumerate().any(is_repeated) {
        return Err(Problem::bad_request(
            "runs has 2 to 4 different identifiers with commas between them",
        ));
    }
    let compared = ask(&api, Kind::Question, move |benchmarks| {
        benchmarks.compare(&runs)
    });
    Ok(Json(compared.await?))
}
