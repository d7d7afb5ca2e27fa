//! `POST /access/login-test`: a login that is tried, step by step, without a client.
//!
//! It tells whether a password is right, so it needs the scope `admin`, is slowed like the logins
//! of administrators, and is in the audit log without the password.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use serde_json::json;
use thrum_access::{Answer, Identity, Login};
use thrum_auth::{LoginTested, StepVerdict};
use thrum_codec::Version;
use utoipa::ToSchema;

use super::super::entrance::Sender;
use super::super::login::NO_STORE;
use super::super::openapi::{Audited, Conflict};
use super::super::request::{Body, SecretText, parsed};
use super::super::{ApiState, Problem};
use super::texts;
use crate::audit::Change;
use crate::timestamp::timestamp;

/// Most bytes of a name or a password: as many as a CONNECT can hold.
const TEXT_BYTES_MAX: usize = 65_535;

/// A login to test.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LoginToTest {
    /// User name; null for an anonymous client.
    #[serde(default)]
    user: Option<String>,
    /// Its password or token.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Password)]
    password: Option<SecretText>,
    /// The user name is that of a verified certificate: no password is needed.
    #[serde(default)]
    by_certificate: bool,
    /// Client identifier.
    #[serde(default)]
    client_id: String,
    /// Address of the client.
    #[serde(default)]
    address: Option<String>,
    /// Listener, whose chain is asked; `mqtt` if absent.
    #[serde(default)]
    listener: Option<String>,
}

/// What became of it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LoginTest {
    /// The client would be admitted.
    pub accepted: bool,
    /// What each backend of the chain answered, in the order in which they were asked.
    pub steps: Vec<LoginTestStep>,
    /// Who the client would be; null if it is refused.
    pub identity: Option<TestedIdentity>,
    /// Reason code of a CONNACK of 5.0; null if it is accepted.
    pub reason_code: Option<u8>,
    /// Why it is refused, for the operator; null if it is accepted.
    pub reason: Option<String>,
    /// What the client is told; null if it is accepted.
    pub told: Option<String>,
}

/// The answer of a backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoginTestStep {
    /// Its name in the configuration.
    pub backend: String,
    /// `accepted`, `refused`, `not_responsible` (the next one is asked), `failed` or `not_asked`.
    pub verdict: String,
    /// Why, for the operator; null if there is nothing to add.
    pub reason: Option<String>,
    /// How long it took, in milliseconds.
    pub millis: u64,
}

/// Who a client would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TestedIdentity {
    /// User; null for an anonymous client.
    pub user: Option<String>,
    /// The backend that admits it; null for an anonymous client, and for one that its certificate
    /// alone admits.
    pub backend: Option<String>,
    /// Roles, its own and those of its groups.
    pub roles: Vec<String>,
    /// Groups.
    pub groups: Vec<String>,
    /// It may do everything.
    pub superuser: bool,
    /// Claims of its token, or attributes that the backend told.
    pub attributes: Vec<String>,
    /// When it is disconnected, because its token ends; null if it does not.
    pub expires_at: Option<String>,
}

/// Tries a login, and tells what each backend answers.
///
/// Nobody connects. It tells whether a password is right, so wrong ones are slowed, and every
/// attempt is in the audit log, without the password.
#[utoipa::path(
    post,
    path = "/access/login-test",
    operation_id = "test_login",
    tag = "access",
    request_body = LoginToTest,
    responses((status = 200, body = LoginTest), Conflict, Audited),
)]
pub(super) async fn test(
    State(api): State<ApiState>,
    sender: Sender,
    Body(body): Body<LoginToTest>,
) -> Result<impl IntoResponse, Problem> {
    let user = body.user.clone().unwrap_or_default();
    let change = Change::new("login.test", &user).after(json!({
        "by_certificate": body.by_certificate,
        "listener": body.listener,
    }));
    let login = login(&api, body)?;
    let clients = Arc::clone(api.clients()?);
    let caller = &sender.caller;
    let admins = &api.security.login;
    let tests = &admins.tests;
    let attempt = match tests.begin(&user, caller.from, admins.now().uptime) {
        Ok(attempt) => attempt,
        Err(refusal) => {
            api.refused(caller, change, &refusal).await;
            return Err(refusal.into());
        }
    };
    let make = async move { Ok(clients.test_login(login).await) };
    let tested = api.audited(&sender, change, make).await?;
    let is_guess = matches!(&tested.answer, Answer::Deny(denial)
        if denial.reason == thrum_codec::ReasonCode::BadUserNameOrPassword);
    if !is_guess {
        tests.refund(&attempt, admins.now().uptime);
    }
    Ok((NO_STORE, Json(shown(tested))))
}

fn login(api: &ApiState, body: LoginToTest) -> Result<Login, Problem> {
    let user = body.user.as_deref();
    let password = body.password.as_ref();
    let len = user.map_or(0, str::len);
    let password_len = password.map_or(0, |password| password.0.expose().len());
    if len.max(password_len).max(body.client_id.len()) > TEXT_BYTES_MAX {
        let what = format!("names and passwords have at most {TEXT_BYTES_MAX} bytes");
        return Err(Problem::bad_request(what));
    }
    if body.by_certificate && (user.is_none() || password.is_some()) {
        return Err(Problem::bad_request(
            "by_certificate takes the user of the certificate, and no password",
        ));
    }
    let address = body.address.as_deref();
    let address = address.map(|text| parsed::<IpAddr>("address", text));
    let listener = api.listener(body.listener.as_deref())?;
    Ok(Login {
        identity: Identity {
            client_id: body.client_id.into(),
            username: body.user.map(Into::into),
            address: address.transpose()?,
            listener,
            ..Identity::default()
        },
        is_username_verified: body.by_certificate,
        // Waits behind the logins of known users when many wait.
        is_known_there: false,
        password: body.password.map(|SecretText(password)| password),
        version: Version::V5,
        method: None,
    })
}

fn shown(tested: LoginTested) -> LoginTest {
    let steps = tested.steps.into_iter().map(|step| LoginTestStep {
        backend: step.backend.to_string(),
        verdict: verdict_name(step.verdict).to_owned(),
        reason: Some(step.text).filter(|text| !text.is_empty()),
        millis: u64::try_from(step.took.as_millis()).unwrap_or(u64::MAX),
    });
    let steps = steps.collect();
    match tested.answer {
        Answer::Admit(admission) => {
            let identity = admission.identity;
            let attributes = identity.claims.iter();
            LoginTest {
                accepted: true,
                steps,
                identity: Some(TestedIdentity {
                    user: identity.username.map(Into::into),
                    backend: identity.backend.map(|backend| backend.to_string()),
                    roles: texts(&identity.roles),
                    groups: texts(&identity.groups),
                    superuser: identity.is_superuser,
                    attributes: attributes
                        .map(|(name, value)| format!("{name}={value}"))
                        .collect(),
                    expires_at: admission
                        .expires_at
                        .map(|at| timestamp(at.saturating_mul(1000))),
                }),
                reason_code: None,
                reason: None,
                told: None,
            }
        }
        Answer::Deny(denial) => LoginTest {
            accepted: false,
            steps,
            identity: None,
            reason_code: Some(denial.reason as u8),
            reason: Some(denial.detail.into_owned()),
            told: Some(denial.what.to_owned()),
        },
        // Only enhanced authentication and a refresh have these.
        Answer::Challenge { .. } | Answer::Unchanged => LoginTest {
            accepted: false,
            steps,
            identity: None,
            reason_code: None,
            reason: Some("the chain has no answer".to_owned()),
            told: None,
        },
    }
}

const fn verdict_name(verdict: StepVerdict) -> &'static str {
    match verdict {
        StepVerdict::Accepted => "accepted",
        StepVerdict::Refused => "refused",
        StepVerdict::NotResponsible => "not_responsible",
        StepVerdict::Failed => "failed",
        StepVerdict::NotAsked => "not_asked",
    }
}
