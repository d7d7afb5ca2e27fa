//! The commands that ask a running broker, of a program that was built without them.

use std::process::ExitCode;

use super::left_out::{self, AnyArgs};

/// Arguments of `thrum admin`: anything.
pub(crate) type AdminArgs = AnyArgs;
/// Arguments of `thrum alarms`: anything.
pub(crate) type AlarmsArgs = AnyArgs;
/// Arguments of `thrum certs`: anything.
pub(crate) type CertsArgs = AnyArgs;
/// Arguments of `thrum listeners`: anything.
pub(crate) type ListenersArgs = AnyArgs;
/// Arguments of `thrum logs`: anything.
pub(crate) type LogsArgs = AnyArgs;
/// Arguments of `thrum audit`: anything.
pub(crate) type AuditArgs = AnyArgs;
/// Arguments of `thrum keys`: anything.
pub(crate) type KeysArgs = AnyArgs;
/// Arguments of `thrum clients`: anything.
pub(crate) type ClientsArgs = AnyArgs;
/// Arguments of `thrum status`: anything.
pub(crate) type StatusArgs = AnyArgs;
/// Arguments of `thrum why`: anything.
pub(crate) type WhyArgs = AnyArgs;
/// Arguments of `thrum api`: anything.
pub(crate) type ApiArgs = AnyArgs;
/// Arguments of `thrum context`: anything.
pub(crate) type ContextArgs = AnyArgs;
/// Arguments of `thrum explain`: anything.
pub(crate) type ExplainArgs = AnyArgs;
/// Arguments of `thrum trace`: anything.
pub(crate) type TraceArgs = AnyArgs;
/// Arguments of `thrum topics`: anything.
pub(crate) type TopicsArgs = AnyArgs;
/// Arguments of `thrum top`: anything.
pub(crate) type TopArgs = AnyArgs;
/// Arguments of `thrum subs`: anything.
pub(crate) type SubsArgs = AnyArgs;
/// Arguments of `thrum groups`: anything.
pub(crate) type GroupsArgs = AnyArgs;
/// Arguments of `thrum drops`: anything.
pub(crate) type DropsArgs = AnyArgs;
/// Arguments of `thrum slow`: anything.
pub(crate) type SlowArgs = AnyArgs;

pub(crate) use run as subs;
pub(crate) use run as groups;
pub(crate) use run as drops;
pub(crate) use run as slow;

/// Refuses.
///
/// # Errors
/// Always.
pub(crate) fn run(_args: &AnyArgs) -> anyhow::Result<ExitCode> {
    left_out::refuse("management")
}

pub(crate) use run as run_certs;

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
            "thrum listeners stop mqtt",
            "thrum certs reload",
            "thrum logs tail -f",
            "thrum alarms ls",
            "thrum config set node.name a",
            "thrum config reload",
            "thrum why slow",
            "thrum subs ls -o csv",
            "thrum top",
            "thrum api get /status",
            "thrum context ls",
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
