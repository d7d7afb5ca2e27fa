//! `thrum clients`, `status`, `admin`, `keys` and `audit` of a program that was built without them.

use std::process::ExitCode;

use super::left_out::{self, AnyArgs};

/// Arguments of `thrum admin`: anything.
pub(crate) type AdminArgs = AnyArgs;
/// Arguments of `thrum audit`: anything.
pub(crate) type AuditArgs = AnyArgs;
/// Arguments of `thrum keys`: anything.
pub(crate) type KeysArgs = AnyArgs;
/// Arguments of `thrum clients`: anything.
pub(crate) type ClientsArgs = AnyArgs;
/// Arguments of `thrum status`: anything.
pub(crate) type StatusArgs = AnyArgs;

/// Refuses.
///
/// # Errors
/// Always.
pub(crate) fn run(_args: &AnyArgs) -> anyhow::Result<ExitCode> {
    left_out::refuse("management")
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::command::{Cli, run};

    #[test]
    fn every_question_to_a_broker_is_refused_with_how_to_get_it() {
        for line in [
            "thrum status",
            "thrum status --help",
            "thrum clients",
            "thrum clients kick a --session",
            "thrum admin ls",
            "thrum keys rm a",
            "thrum audit ls",
        ] {
            let cli = Cli::try_parse_from(line.split(' ')).unwrap();
            let error = run(cli.command).unwrap_err().to_string();
            assert!(
                error.contains("built without `management`"),
                "{line}: {error}"
            );
        }
    }
}
