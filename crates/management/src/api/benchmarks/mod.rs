//! `/benchmarks`: runs of `thrum bench` that the broker starts as processes of their own, watches,
//! and keeps.

mod config;
mod kept_samples;
mod model;
mod order;
mod permits;
mod plans;
mod runs;

use axum::http::StatusCode;
use utoipa_axum::routes;

use super::routes::Routes;
use crate::login::Scope;
use crate::program::BenchmarkRefusal;

pub use config::BenchmarkConfig;
pub use kept_samples::KeptSamples;
pub use model::{
    BenchmarkBucket, BenchmarkCheck, BenchmarkComparison, BenchmarkComparisonRow, BenchmarkFigures,
    BenchmarkFinding, BenchmarkLimits, BenchmarkMark, BenchmarkPlan, BenchmarkRun,
    BenchmarkRunInFull, BenchmarkRunList, BenchmarkSample, BenchmarkSamples, BenchmarkScenario,
    BenchmarkScenarioList, BenchmarkStage, BenchmarkStarted, BenchmarkThreshold, BenchmarkVerdict,
};

pub(super) use permits::BENCHMARK_TASKS_MAX;
pub(crate) use permits::Permits;
use permits::{Kind, ask};

/// All of them.
pub(super) fn routes(routes: Routes) -> Routes {
    let (read, write) = (Scope::BenchmarksRead, Scope::BenchmarksWrite);
    routes
        .scoped(read, routes!(plans::limits))
        .scoped(read, routes!(plans::scenarios))
        .scoped(read, routes!(plans::check))
        .scoped(read, routes!(runs::compare))
        .scoped(read, routes!(runs::list))
        .scoped(write, routes!(runs::start))
        .scoped(read, routes!(runs::show))
        .scoped(write, routes!(runs::remove))
        .scoped(read, routes!(runs::samples))
        .scoped(write, routes!(runs::change))
        .scoped(write, routes!(runs::stop))
        .scoped(write, routes!(runs::set_baseline))
        .scoped(read, routes!(runs::file))
}

impl BenchmarkRefusal {
    /// Status, title and remedy.
    pub(super) const fn words(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::LeftOut => (
                StatusCode::NOT_IMPLEMENTED,
                "no benchmarks in this program",
                "use a program with the part bench (docs/guide/parts.md), or thrum bench on another machine",
            ),
            Self::Off => (
                StatusCode::CONFLICT,
                "benchmarks are turned off",
                "set management.benchmarks.enabled = true, or run thrum bench on another machine",
            ),
            Self::Running => (
                StatusCode::CONFLICT,
                "a run is under way",
                "wait for its end, or end it with POST /api/v1/benchmarks/runs/ID/stop",
            ),
            Self::AllBaselines => (
                StatusCode::CONFLICT,
                "no room for another run",
                "make one an ordinary run with POST /api/v1/benchmarks/runs/ID/baseline, or remove one",
            ),
            Self::Ended => (
                StatusCode::CONFLICT,
                "the run has ended",
                "GET /api/v1/benchmarks/runs/ID shows its end",
            ),
            Self::Invalid => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "the run cannot be started so",
                "POST /api/v1/benchmarks/check lists every finding with its remedy",
            ),
            Self::NotChanged => (
                StatusCode::CONFLICT,
                "the run is not changed",
                "extend it by less, or wait for its end and start another one",
            ),
            Self::NotAnswered => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "the benchmark program failed",
                "read the log of the broker; run thrum bench check on this machine to see the error",
            ),
            Self::NotComparable => (
                StatusCode::CONFLICT,
                "the runs cannot be compared",
                "compare 2 to 4 runs of state done whose results are there",
            ),
        }
    }
}
