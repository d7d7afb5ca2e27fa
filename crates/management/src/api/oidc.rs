//! `/login/oidc`: a login at an OpenID Connect provider. A browser is sent there and comes back.

use axum::extract::State;
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{AppendHeaders, Html, IntoResponse, Response};
use serde::Deserialize;

use super::entrance::Sender;
use super::login::NO_STORE;
use super::openapi::{AskedProvider, NotFound};
use super::request::{Parameters, SecretText};
use super::{ApiState, Problem};
use crate::audit::Change;
use crate::login::{Callback, LoginElsewhere};

/// The page after a login: it leads to the first page by itself. A redirect would still belong to
/// the other site, and browsers would not send the cookie, which is `SameSite=Strict`.
const WELCOME: &str = "<!doctype html><meta charset=utf-8>\
    <meta http-equiv=refresh content=\"0;url=../../../../\"><title>thrum</title>\
    <a href=\"../../../../\">Logged in</a>";

/// What the provider sends back with the browser. Others may be there as well.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(super) struct CallbackParameters {
    /// What the broker shows the provider.
    #[param(value_type = Option<String>)]
    code: Option<SecretText>,
    /// What the broker gave the browser.
    state: String,
    /// Why the provider refuses.
    error: Option<String>,
}

/// Sends a browser to the OpenID Connect provider.
#[utoipa::path(
    get,
    path = "/login/oidc",
    operation_id = "begin_oidc",
    tag = "login",
    responses(
        (status = 303, description = "The address of the provider is in `Location`."),
        NotFound,
        AskedProvider,
    ),
)]
pub(super) async fn begin(
    State(api): State<ApiState>,
    sender: Sender,
) -> Result<Response, Problem> {
    let elsewhere = LoginElsewhere::of(&api.security.login)?;
    let begun = elsewhere.begin(sender.is_tls).await?;
    let headers = [(LOCATION, begun.location), (SET_COOKIE, begun.cookie)];
    Ok((StatusCode::SEE_OTHER, NO_STORE, headers).into_response())
}

/// Logs in a browser that comes back from the OpenID Connect provider.
#[utoipa::path(
    get,
    path = "/login/oidc/callback",
    operation_id = "finish_oidc",
    tag = "login",
    params(CallbackParameters),
    responses(
        (
            status = 200,
            description = "A page that leads to the first page.",
            body = String,
            content_type = "text/html",
        ),
        NotFound,
        AskedProvider,
    ),
)]
pub(super) async fn finish(
    State(api): State<ApiState>,
    sender: Sender,
    headers: HeaderMap,
    Parameters(parameters): Parameters<CallbackParameters>,
) -> Result<Response, Problem> {
    let CallbackParameters { code, state, error } = parameters;
    let Some(SecretText(code)) = code else {
        let why = error.unwrap_or_else(|| "no code".to_owned());
        return Err(Problem::new(
            StatusCode::UNAUTHORIZED,
            "not logged in",
            format!("the provider says {why:?}"),
            "begin again at GET /api/v1/login/oidc",
        ));
    };
    let callback = Callback { code, state };
    let (from, is_tls) = (sender.caller.from, sender.is_tls);
    let elsewhere = LoginElsewhere::of(&api.security.login)?;
    let found = match elsewhere.finish(&callback, &headers, is_tls, from).await {
        Ok(found) => found,
        Err(refusal) => {
            let change = Change::new("login", "oidc");
            api.refused(&sender.caller, change, &refusal).await;
            return Err(refusal.into());
        }
    };
    let change = Change::new("login", &found.caller.name);
    api.logged_in(&found.caller, change).await;
    let session = found.logged_in.session.cookie(is_tls);
    let cookies = AppendHeaders([(SET_COOKIE, session), (SET_COOKIE, found.ended)]);
    Ok((NO_STORE, cookies, Html(WELCOME)).into_response())
}
