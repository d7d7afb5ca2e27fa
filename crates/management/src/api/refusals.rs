//! Refusals as problems.

use axum::http::StatusCode;

use super::Problem;
use super::problem::NO_ROOM_REMEDY;
use crate::audit::AuditError;
use crate::login::Refusal;

/// Title of the problem that a login needs a one-time code.
pub(super) const CODE_NEEDED: &str = "code needed";

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let (status, title, remedy) = describe(&refusal);
        let mut problem = Self::new(status, title, refusal.to_string(), remedy);
        problem.retry_after_secs = refusal.retry_after_secs();
        problem
    }
}

type Description = (StatusCode, &'static str, &'static str);

/// Status, title and remedy.
fn describe(refusal: &Refusal) -> Description {
    use StatusCode as Code;
    match refusal {
        Refusal::Slowed(_) => (
            Code::TOO_MANY_REQUESTS,
            "too many wrong logins",
            "wait; addresses from which you have logged in before are not slowed by others",
        ),
        Refusal::Busy => (
            Code::TOO_MANY_REQUESTS,
            "too many logins",
            "wait, and try again",
        ),
        Refusal::WrongSetupLink => (
            Code::FORBIDDEN,
            "setup link not valid",
            "thrum admin setup-url on the broker's machine makes another link while there is no administrator",
        ),
        Refusal::IsSetUp
        | Refusal::Exists { .. }
        | Refusal::Missing { .. }
        | Refusal::LastAdministrator(_)
        | Refusal::Full { .. }
        | Refusal::Invalid(_) => describe_account(refusal),
        Refusal::NoRoom(_) => (
            Code::INSUFFICIENT_STORAGE,
            "no room on the disk",
            NO_ROOM_REMEDY,
        ),
        Refusal::Broken(_) => (
            Code::SERVICE_UNAVAILABLE,
            "not done",
            "look into the log of the broker; nothing was changed",
        ),
        Refusal::Provider(_) => (
            Code::BAD_GATEWAY,
            "provider not available",
            "try again later; the log of the provider may say more",
        ),
        Refusal::NoRole(_) => (
            Code::FORBIDDEN,
            "no role",
            "ask an administrator to name one of your groups in management.oidc.viewers, operators or administrators",
        ),
        Refusal::OtherLogin => (
            Code::FORBIDDEN,
            "other login",
            "begin at GET /api/v1/login/oidc, in the same browser",
        ),
        Refusal::WrongLogin
        | Refusal::CodeNeeded
        | Refusal::NoProof
        | Refusal::WrongKey
        | Refusal::NoScope(_)
        | Refusal::OtherOrigin
        | Refusal::NoOrigin
        | Refusal::NoToken
        | Refusal::NoSession => describe_sender(refusal),
    }
}

/// The same of administrators and keys that a change is about.
fn describe_account(refusal: &Refusal) -> Description {
    use StatusCode as Code;
    match refusal {
        Refusal::IsSetUp => (
            Code::CONFLICT,
            "already set up",
            "log in; thrum admin reset-password NAME on the broker's machine sets another password",
        ),
        Refusal::Exists { kind, .. } => (Code::CONFLICT, "exists already", kind.another()),
        Refusal::Missing { kind, .. } => (Code::NOT_FOUND, "not there", kind.listing()),
        Refusal::LastAdministrator(_) => (
            Code::CONFLICT,
            "last administrator",
            "add another administrator first",
        ),
        Refusal::Full { kind, .. } => (Code::CONFLICT, "too many", kind.removal()),
        _ => (
            Code::BAD_REQUEST,
            "bad request",
            "send another value; GET /api/v1/openapi.json describes each route",
        ),
    }
}

/// The same of what a request shows of its sender.
const fn describe_sender(refusal: &Refusal) -> Description {
    use StatusCode as Code;
    match refusal {
        Refusal::CodeNeeded => (
            Code::UNAUTHORIZED,
            CODE_NEEDED,
            "send it as code: of the app, or a recovery code",
        ),
        Refusal::NoProof => (
            Code::UNAUTHORIZED,
            "login needed",
            "log in, or send Authorization: Bearer with an API key",
        ),
        Refusal::WrongKey => (
            Code::UNAUTHORIZED,
            "wrong API key",
            "list the keys with thrum keys ls, and make one with thrum keys add",
        ),
        Refusal::NoScope(_) => (
            Code::FORBIDDEN,
            "not permitted",
            "ask an administrator for another role, or for a key with this scope",
        ),
        Refusal::OtherOrigin => (
            Code::FORBIDDEN,
            "other origin",
            "send it from a page of this broker; a proxy in front of it passes the header Host on",
        ),
        Refusal::NoOrigin => (
            Code::FORBIDDEN,
            "no origin",
            "a program uses an API key instead of a cookie: Authorization: Bearer KEY; thrum keys add and POST /api/v1/keys make one",
        ),
        Refusal::NoToken => (
            Code::FORBIDDEN,
            "no token",
            "send the token of GET /api/v1/login in that header",
        ),
        Refusal::NoSession => (
            Code::FORBIDDEN,
            "no session",
            "log in with name and password",
        ),
        _ => (
            Code::UNAUTHORIZED,
            "wrong login",
            "try again; thrum admin reset-password NAME on the broker's machine sets another password",
        ),
    }
}

impl From<AuditError> for Problem {
    fn from(error: AuditError) -> Self {
        Self::new(
            StatusCode::INSUFFICIENT_STORAGE,
            "audit log not available",
            error.to_string(),
            "free space in the data directory; a change that cannot be written down is not made",
        )
    }
}
