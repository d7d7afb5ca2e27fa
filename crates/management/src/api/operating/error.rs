//! Refusals of the program as problems.

use axum::http::StatusCode;

use crate::api::Problem;
use crate::api::problem::NO_ROOM_REMEDY;
use crate::program::ProgramError;

/// Nobody has told the interface what runs the broker.
pub(in crate::api) fn no_program() -> Problem {
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "not available",
        "this broker runs inside another program, which manages its configuration itself",
        "use the program thrum, or that other program",
    )
}

/// The words for an error of a program that did not say what became of the request.
const fn not_answered(error: &ProgramError) -> (StatusCode, &'static str, &'static str) {
    match error {
        ProgramError::Busy => (
            StatusCode::TOO_MANY_REQUESTS,
            "too many requests",
            "ask again in a second",
        ),
        ProgramError::TimedOut => (
            StatusCode::GATEWAY_TIMEOUT,
            "not done in time",
            "look at GET /api/v1/config and at the log in some seconds",
        ),
        _ => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the broker is stopping",
            "start it again",
        ),
    }
}

impl From<ProgramError> for Problem {
    fn from(error: ProgramError) -> Self {
        let (status, title, remedy) = match &error {
            ProgramError::Busy | ProgramError::TimedOut | ProgramError::Stopped => {
                not_answered(&error)
            }
            ProgramError::Refused(_) => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "configuration refused",
                "correct the key or the value; GET /api/v1/config/KEY describes it",
            ),
            ProgramError::Damaged(_) => (
                StatusCode::CONFLICT,
                "the file of the keys that are set here is damaged",
                "return to a version with POST /api/v1/config/rollback (GET /api/v1/config/versions lists them), or \
                 correct the file on the broker's machine",
            ),
            ProgramError::Pinned(_) => (
                StatusCode::CONFLICT,
                "pinned elsewhere",
                "change it there and reload (thrum config reload, SIGHUP), or take it out there and set it here",
            ),
            ProgramError::Changed => (
                StatusCode::CONFLICT,
                "changed meanwhile",
                "plan again (POST /api/v1/config/plan), look at the differences, and apply with the new fingerprint",
            ),
            ProgramError::Edited(_) => (
                StatusCode::CONFLICT,
                "files were edited",
                "plan it (POST /api/v1/config/plan), look at the differences, and send the fingerprint of the plan; or \
                 reload first (POST /api/v1/config/reload)",
            ),
            ProgramError::NoDataDirectory => (
                StatusCode::CONFLICT,
                "no data directory",
                "set node.data_dir, or change the configuration file and reload",
            ),
            ProgramError::Missing { what, .. } => {
                (StatusCode::NOT_FOUND, "not found", what.listing())
            }
            ProgramError::Conflict(_) => (
                StatusCode::CONFLICT,
                "not now",
                "ask over the control socket in the data directory, or change the configuration",
            ),
            ProgramError::BackupConflict { remedy, .. } => {
                (StatusCode::CONFLICT, "no backup now", *remedy)
            }
            ProgramError::Benchmark { refusal, .. } => refusal.words(),
            ProgramError::NoRoom(_) => (
                StatusCode::INSUFFICIENT_STORAGE,
                "no room on the disk",
                NO_ROOM_REMEDY,
            ),
            ProgramError::Io(_) => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "a file cannot be used",
                "read the log of the broker; nothing was changed",
            ),
        };
        Self::new(status, title, error.to_string(), remedy)
    }
}
