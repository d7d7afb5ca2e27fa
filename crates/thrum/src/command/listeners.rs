//! `thrum listeners` and `thrum certs`: the listeners of a running broker and their certificates.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::Value;
use thrum_management::api::{CertificateRenewal, ListenerDetail, ListenerList, StoppedListener};

use super::Failure;
use super::running::{Form, Method, Output, Running, encoded};
use super::shown::{NOTHING, json_line, table};

const HEADINGS: [&str; 6] = [
    "NAME",
    "STATE",
    "ADDRESS",
    "CLIENTS",
    "LIMIT",
    "CERTIFICATE",
];
const CERTIFICATE_HEADINGS: [&str; 6] = ["LISTENER", "FILE", "SUBJECT", "NAMES", "UNTIL", "DAYS"];

const EXAMPLES: &str = "\
Examples:
  thrum listeners ls --data-dir /var/lib/thrum
  thrum listeners stop mqtt --disconnect --data-dir /var/lib/thrum
  thrum listeners start mqtt --data-dir /var/lib/thrum

A listener that is stopped accepts no connections until it is started, or the broker is.";

const CERTIFICATE_EXAMPLES: &str = "\
Examples:
  thrum certs ls --data-dir /var/lib/thrum
  thrum certs reload --data-dir /var/lib/thrum

A changed file is read by itself within a minute (tls.reload_interval).";

/// Arguments of `thrum listeners`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct ListenersArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List listeners with their state, connections and certificates.
    Ls(ListArgs),
    /// Accept connections again at a listener that was stopped.
    Start(StartArgs),
    /// Accept no more connections at a listener; clients stay, but for those of QUIC.
    Stop(StopArgs),
}

/// Arguments of `thrum certs`.
#[derive(Debug, Args)]
#[command(after_help = CERTIFICATE_EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct CertsArgs {
    #[command(subcommand)]
    action: CertificateAction,
}

#[derive(Debug, Subcommand)]
enum CertificateAction {
    /// List the certificates that listeners show their clients.
    Ls(ListArgs),
    /// Read the files of TLS again, for later connections.
    Reload(ListArgs),
}

/// Arguments of a list.
#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

/// Arguments of `thrum listeners start`.
#[derive(Debug, Args)]
struct StartArgs {
    /// Its name in the configuration.
    name: String,
    #[command(flatten)]
    list: ListArgs,
}

/// Arguments of `thrum listeners stop`.
#[derive(Debug, Args)]
struct StopArgs {
    /// Its name in the configuration.
    name: String,
    /// Disconnect its clients as well (0x98).
    #[arg(long)]
    disconnect: bool,
    #[command(flatten)]
    list: ListArgs,
}

/// Runs one of `thrum listeners`.
pub(crate) fn run(args: &ListenersArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Ls(args) => {
            let list: ListenerList = args.running.ask(Method::Get, "/listeners")?;
            args.print(&list.listeners, &HEADINGS, |listener| {
                vec![columns(listener)]
            })?;
        }
        Action::Start(StartArgs { name, list }) => {
            set(list, name, |name| format!("/listeners/{name}/start"))?;
        }
        Action::Stop(StopArgs {
            name,
            disconnect,
            list,
        }) => {
            set(list, name, |name| {
                format!("/listeners/{name}/stop?disconnect={disconnect}")
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs one of `thrum certs`.
pub(crate) fn run_certs(args: &CertsArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        CertificateAction::Ls(args) => {
            let mut list: ListenerList = args.running.ask(Method::Get, "/listeners")?;
            list.listeners.retain(|listener| listener.tls.is_some());
            tell_of_none(&list.listeners)?;
            args.print(&list.listeners, &CERTIFICATE_HEADINGS, certificates)?;
        }
        CertificateAction::Reload(args) => {
            let path = "/listeners/reload-certificates";
            let renewal: CertificateRenewal = args.running.send(path, &Value::Null)?;
            tell_of_none(&renewal.listeners)?;
            args.print(&renewal.listeners, &CERTIFICATE_HEADINGS, certificates)?;
            if !renewal.failures.is_empty() {
                let failures = renewal.failures.join("\nerror: ");
                return Err(anyhow::anyhow!(failures));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn tell_of_none(with_certificates: &[ListenerDetail]) -> std::io::Result<()> {
    if with_certificates.is_empty() {
        writeln!(
            std::io::stderr(),
            "no listener has a certificate: listeners.NAME.tls gives it one"
        )?;
    }
    Ok(())
}

fn set(list: &ListArgs, name: &str, path: impl Fn(&str) -> String) -> anyhow::Result<()> {
    if name.is_empty() {
        return Err(Failure::usage(
            "a listener has a name; thrum listeners ls lists them",
        ));
    }
    let path = path(&encoded(name));
    let stopped: StoppedListener = list.running.send(&path, &Value::Null)?;
    let mut out = std::io::stdout().lock();
    if list.output.form == Form::Json {
        writeln!(out, "{}", json_line(&stopped)?)?;
        return Ok(());
    }
    let StoppedListener { listener, until } = stopped;
    let until = until.map_or_else(String::new, |until| format!(" until {until}"));
    writeln!(out, "{name} is {}{until}", listener.state)?;
    Ok(())
}

impl ListArgs {
    fn print(
        &self,
        listeners: &[ListenerDetail],
        headings: &[&str],
        rows: impl Fn(&ListenerDetail) -> Vec<Vec<String>>,
    ) -> anyhow::Result<()> {
        let mut out = std::io::stdout().lock();
        if self.output.form == Form::Json {
            for listener in listeners {
                writeln!(out, "{}", json_line(listener)?)?;
            }
            return Ok(());
        }
        let rows: Vec<Vec<String>> = listeners.iter().flat_map(rows).collect();
        if !rows.is_empty() {
            write!(out, "{}", table(headings, &rows))?;
        }
        Ok(())
    }
}

fn columns(listener: &ListenerDetail) -> Vec<String> {
    let addresses = if listener.addresses.is_empty() {
        &listener.bind
    } else {
        &listener.addresses
    };
    let limit = listener.limits.max_connections;
    let tls = listener.tls.as_ref();
    let first = tls.and_then(|tls| tls.certificates.iter().min_by_key(|one| one.days_left));
    vec![
        listener.name.clone(),
        listener.state.clone(),
        addresses.join(" "),
        listener.connections.to_string(),
        limit.map_or_else(|| NOTHING.to_owned(), |limit| limit.to_string()),
        first.map_or_else(|| NOTHING.to_owned(), |first| days(first.days_left)),
    ]
}

fn certificates(listener: &ListenerDetail) -> Vec<Vec<String>> {
    let certificates = listener.tls.iter().flat_map(|tls| &tls.certificates);
    let row = |certificate: &thrum_management::api::Certificate| {
        vec![
            listener.name.clone(),
            certificate.file.clone(),
            certificate.subject.clone(),
            certificate.names.join(" "),
            certificate.not_after.clone(),
            certificate.days_left.to_string(),
        ]
    };
    certificates.map(row).collect()
}

fn days(left: i64) -> String {
    if left < 0 {
        return "expired".to_owned();
    }
    format!("{left} days left")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_is_over_has_no_days() {
        assert_eq!(days(-1), "expired");
        assert_eq!(days(0), "0 days left");
    }
}
