//! `/history`: figures of each second of the last 15 minutes.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use thrum_broker::{HISTORY_SECONDS, LIVE_FIGURES, LiveSecond};
use utoipa::ToSchema;

use super::openapi::NotFound;
use super::request::Parameters;
use super::{ApiState, Problem};
use crate::timestamp::timestamp;

/// Figures of each second.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct History {
    /// Ends of the seconds, in milliseconds of the Unix epoch, the oldest first. A second that
    /// nobody measured is missing.
    pub at_ms: Vec<u64>,
    /// The values of each figure at these times; null where it is not known.
    pub figures: BTreeMap<String, Vec<Option<f64>>>,
    /// The unit of each figure.
    pub units: BTreeMap<String, String>,
    /// Seconds that are kept.
    pub seconds_max: usize,
    /// The time of the newest second, for `since`; null if there is none.
    pub newest: Option<String>,
}

/// Which figures, and from when on.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(super) struct HistoryParameters {
    /// Names of figures, separated by commas; all if absent.
    figure: Option<String>,
    /// Only seconds after this time, in milliseconds of the Unix epoch.
    since: Option<u64>,
}

/// Places of figures in [`LIVE_FIGURES`], from their names separated by commas.
pub(super) fn figures_named(names: &str) -> Result<Vec<usize>, Problem> {
    if names.is_empty() || names == "all" {
        return Ok((0..LIVE_FIGURES.len()).collect());
    }
    let mut places = Vec::new();
    for name in names.split(',') {
        let place = LIVE_FIGURES.iter().position(|figure| figure.name == name);
        let place = place.ok_or_else(|| {
            let known: Vec<_> = LIVE_FIGURES.iter().map(|figure| figure.name).collect();
            let shown: String = name.chars().take(64).collect();
            Problem::bad_request(format!(
                "{shown:?} is no figure: it is all, or one or some of {}",
                known.join(",")
            ))
        })?;
        if !places.contains(&place) {
            places.push(place);
        }
    }
    Ok(places)
}

/// A figure of a second, rounded to what it can have measured; none if it is not known.
pub(super) fn value(second: &LiveSecond, place: usize) -> Option<f64> {
    let value = f64::from(second.values[place]);
    value.is_finite().then(|| (value * 1000.0).round() / 1000.0)
}

/// Shows figures of each second of the last 15 minutes.
///
/// They are kept while the HTTP port is open; without one the answer is 404.
#[utoipa::path(
    get,
    path = "/history",
    operation_id = "show_history",
    tag = "live",
    params(HistoryParameters),
    responses((status = 200, body = History), NotFound),
)]
pub(super) async fn show(
    State(api): State<ApiState>,
    Parameters(HistoryParameters { figure, since }): Parameters<HistoryParameters>,
) -> Result<Json<History>, Problem> {
    let places = figures_named(figure.as_deref().unwrap_or_default())?;
    let seconds = api
        .queries
        .live()
        .history(since.unwrap_or(0))
        .ok_or_else(none)?;
    Ok(Json(History::new(&seconds, &places)))
}

impl History {
    /// These figures of these seconds.
    pub(super) fn new(seconds: &[LiveSecond], places: &[usize]) -> Self {
        let of_each = |place: &usize| {
            let values = seconds.iter().map(|second| value(second, *place));
            (LIVE_FIGURES[*place].name.to_owned(), values.collect())
        };
        let unit = |place: &usize| {
            let figure = LIVE_FIGURES[*place];
            (figure.name.to_owned(), figure.unit.name().to_owned())
        };
        Self {
            at_ms: seconds.iter().map(|second| second.at).collect(),
            figures: places.iter().map(of_each).collect(),
            units: places.iter().map(unit).collect(),
            seconds_max: HISTORY_SECONDS,
            newest: seconds.last().map(|second| timestamp(second.at)),
        }
    }
}

/// Nobody enters seconds.
fn none() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "no history",
        "the broker keeps figures of each second only while its HTTP port is open, and it has \
         none, or was started a moment ago",
        "configure [listeners] http, or ask again in a second",
    )
}
