//! A running broker, on this machine or elsewhere, and requests to it.

mod broker;
mod events;
mod http;
mod remedies;
mod remote;
#[cfg(test)]
mod routes;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thrum_transport::TlsOptions;

use self::broker::Remote;
pub(super) use self::broker::{Broker, JSON, OpenAnswer, refused};
pub(super) use self::events::{EVENTS, Event, Events};
pub(super) use self::http::{Method, Request, encoded};
pub(super) use self::remote::Url;
use super::Failure;
use super::context::{Context, Contexts, read_token, token};
pub(super) use super::output::{Form, Output};
use crate::config::{self, DEFAULT_FILE};

/// Name the broker without an option.
const URL: &str = "THRUM_URL";
const CONTEXT: &str = "THRUM_CONTEXT";
/// The API key for it.
const TOKEN: &str = "THRUM_TOKEN";

/// The heading in the help of options that name the broker.
const HEADING: &str = "Broker";
/// The options that name the broker.
pub(super) const OPTIONS: [&str; 8] = [
    "data_dir",
    "config",
    "url",
    "context",
    "token_file",
    "cafile",
    "server_name",
    "insecure",
];

/// The broker that a command asks.
#[derive(Clone, Debug, Args)]
pub(super) struct Running {
    #[command(flatten)]
    local: Local,
    /// URL of the broker's HTTP port, such as `https://broker.example:8080` [env: `THRUM_URL`].
    #[arg(long, value_name = "URL", value_parser = Url::parse, help_heading = HEADING,
          conflicts_with_all = ["data_dir", "config", "context"])]
    url: Option<Url>,
    /// Name of a broker that thrum context add has noted [env: `THRUM_CONTEXT`].
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new(),
          help_heading = HEADING, conflicts_with_all = ["data_dir", "config"])]
    context: Option<String>,
    /// File with the API key for it [env: `THRUM_TOKEN`, the key itself].
    #[arg(long, value_name = "FILE", help_heading = HEADING,
          conflicts_with_all = ["data_dir", "config"])]
    token_file: Option<PathBuf>,
    /// Certificates in PEM of the authorities that may have signed the broker's [default: those of
    /// the system].
    #[arg(long, value_name = "FILE", help_heading = HEADING,
          conflicts_with_all = ["data_dir", "config"])]
    cafile: Option<PathBuf>,
    /// Name that the broker's certificate must contain [default: the host].
    #[arg(long, value_name = "NAME", help_heading = HEADING, hide_short_help = true,
          conflicts_with_all = ["data_dir", "config"])]
    server_name: Option<String>,
    /// Accept any certificate: encrypted, but the broker is not verified.
    #[arg(long, help_heading = HEADING, hide_short_help = true,
          conflicts_with_all = ["data_dir", "config", "cafile"])]
    insecure: bool,
}

/// A broker on this machine.
#[derive(Clone, Debug, Args)]
pub(super) struct Local {
    /// Data directory of the broker, as `node.data_dir` names it.
    #[arg(long, value_name = "DIR", conflicts_with = "config", help_heading = HEADING)]
    data_dir: Option<PathBuf>,
    /// Configuration of the broker, which names the data directory; without it
    /// /etc/thrum/thrum.toml.
    #[arg(short, long, value_name = "FILE", help_heading = HEADING)]
    config: Option<PathBuf>,
}

/// A broker to ask, or where its files are.
#[derive(Debug)]
pub(super) enum Reached {
    /// It runs, or is elsewhere.
    Running(Broker),
    /// No broker runs on this data directory.
    DataDir(PathBuf),
    /// No broker runs on the data directory of this configuration, or of that of the system; it may
    /// name none.
    Configuration(Option<PathBuf>),
}

/// What the surroundings say about the broker.
#[derive(Debug, Default)]
struct Surroundings {
    url: Option<OsString>,
    context: Option<OsString>,
    token: Option<OsString>,
}

impl Running {
    /// Asks the broker; a refusal is a failure.
    pub(super) fn ask<T: DeserializeOwned>(&self, method: Method, path: &str) -> anyhow::Result<T> {
        self.broker()?.call(method, path, "")
    }

    /// Sends JSON to the broker, or nothing for null; a refusal is a failure.
    pub(super) fn send<T: DeserializeOwned>(&self, path: &str, body: &Value) -> anyhow::Result<T> {
        self.broker()?.call(Method::Post, path, &text(body))
    }

    /// Changes something in the broker; a refusal is a failure.
    pub(super) fn change(&self, method: Method, path: &str, body: &Value) -> anyhow::Result<()> {
        self.broker()?.call(method, path, &text(body))
    }

    /// Sends JSON that replaces something; a refusal is a failure.
    pub(super) fn put<T: DeserializeOwned>(&self, path: &str, body: &Value) -> anyhow::Result<T> {
        self.broker()?.call(Method::Put, path, &text(body))
    }

    /// The data directory if the broker would be asked there and none runs on it; none if one does,
    /// or is elsewhere.
    pub(super) fn stopped(&self) -> anyhow::Result<Option<PathBuf>> {
        match self.broker()? {
            Broker::Local(data_dir) => Ok(broker::is_stopped(&data_dir)?.then_some(data_dir)),
            Broker::Remote(_) => Ok(None),
        }
    }

    /// The broker, which was not asked yet.
    pub(super) fn broker(&self) -> anyhow::Result<Broker> {
        let named = self.named()?;
        named.map_or_else(|| self.local.broker(), Ok)
    }

    /// The broker to ask, or where its files are if it is one of this machine that does not run: a
    /// change goes to the broker that will not overwrite it.
    pub(super) fn reach(&self) -> anyhow::Result<Reached> {
        let (broker, is_of_configuration) = match self.named()? {
            Some(broker) => (broker, false),
            None => match self.local.data_dir()? {
                Some(data_dir) => (Broker::Local(data_dir), self.local.data_dir.is_none()),
                None => return Ok(Reached::Configuration(self.local.config.clone())),
            },
        };
        Ok(match broker {
            Broker::Local(data_dir) if !broker::is_running(&data_dir)? => {
                if is_of_configuration {
                    Reached::Configuration(self.local.config.clone())
                } else {
                    Reached::DataDir(data_dir)
                }
            }
            broker => Reached::Running(broker),
        })
    }

    /// The broker that is named; none if it is that of the options of this machine, or of the
    /// configuration.
    fn named(&self) -> anyhow::Result<Option<Broker>> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let surroundings = Surroundings {
            url: variable(URL),
            context: variable(CONTEXT),
            token: variable(TOKEN),
        };
        let broker = self.choose(&surroundings, Contexts::read)?;
        if let Some(Broker::Remote(remote)) = &broker {
            remote.warn_if_readable()?;
        }
        Ok(broker)
    }

    /// An option names it, else a variable, else the current context; none if it is that of the
    /// options of this machine, or of the configuration.
    fn choose(
        &self,
        surroundings: &Surroundings,
        contexts: impl FnOnce() -> anyhow::Result<Contexts>,
    ) -> anyhow::Result<Option<Broker>> {
        if self.local.is_given() {
            return Ok(None);
        }
        if let Some(url) = &self.url {
            return self
                .remote(url.clone(), surroundings.token.as_ref())
                .map(Some);
        }
        if let Some(name) = &self.context {
            return self
                .of_context(contexts()?.get(name)?, surroundings)
                .map(Some);
        }
        if let Some(url) = &surroundings.url {
            let url = text_of(URL, url)?;
            let url = Url::parse(url).map_err(|why| Failure::usage(format!("{URL}: {why}")))?;
            return self.remote(url, surroundings.token.as_ref()).map(Some);
        }
        let contexts = contexts()?;
        if let Some(name) = &surroundings.context {
            let context = contexts.get(text_of(CONTEXT, name)?)?;
            return self.of_context(context, surroundings).map(Some);
        }
        match contexts.current()? {
            Some(context) => self.of_context(context, surroundings).map(Some),
            None if self.has_remote_options() => Err(Failure::usage(
                "which broker? --token-file, --cafile, --server-name and --insecure need --url URL or --context NAME",
            )),
            None => Ok(None),
        }
    }

    fn has_remote_options(&self) -> bool {
        self.token_file.is_some()
            || self.cafile.is_some()
            || self.server_name.is_some()
            || self.insecure
    }

    fn remote(&self, url: Url, variable: Option<&OsString>) -> anyhow::Result<Broker> {
        let token = match (&self.token_file, variable) {
            (Some(file), _) => Some(read_token(file)?),
            (None, Some(text)) => Some(token(TOKEN, text_of(TOKEN, text)?)?),
            (None, None) => None,
        };
        Ok(Broker::Remote(Box::new(Remote {
            url,
            token,
            tls: TlsOptions {
                ca_file: self.cafile.clone(),
                insecure: self.insecure,
                server_name: self.server_name.clone(),
                ..TlsOptions::default()
            },
        })))
    }

    /// What an option says counts before what the context says, and that before `THRUM_TOKEN`: the
    /// key of one broker is not sent to another.
    fn of_context(&self, context: &Context, surroundings: &Surroundings) -> anyhow::Result<Broker> {
        if let Some(data_dir) = &context.data_dir {
            return Ok(Broker::Local(data_dir.clone()));
        }
        let Some(url) = &context.url else {
            return Err(Failure::usage(
                "the context names neither a URL nor a data directory: add it again with thrum context add",
            ));
        };
        let url = Url::parse(url).map_err(Failure::usage)?;
        let with_context = Self {
            token_file: self
                .token_file
                .clone()
                .or_else(|| context.token_file.clone()),
            cafile: self.cafile.clone().or_else(|| context.ca_file.clone()),
            server_name: self
                .server_name
                .clone()
                .or_else(|| context.server_name.clone()),
            insecure: self.insecure || context.insecure,
            ..self.clone()
        };
        with_context.remote(url, surroundings.token.as_ref())
    }
}

fn text_of<'a>(variable: &str, value: &'a OsString) -> anyhow::Result<&'a str> {
    let text = value.to_str();
    text.ok_or_else(|| Failure::usage(format!("{variable} is not text in UTF-8")))
}

impl Remote {
    fn warn_if_readable(&self) -> std::io::Result<()> {
        use std::io::Write as _;
        if self.token.is_some() && self.url.is_readable_on_the_way() {
            let url = &self.url;
            writeln!(
                std::io::stderr(),
                "warning: the API key goes to {url} without TLS, readable on the way; use https://"
            )?;
        }
        Ok(())
    }
}

impl Local {
    fn is_given(&self) -> bool {
        self.data_dir.is_some() || self.config.is_some()
    }

    /// The broker, which was not asked yet.
    pub(super) fn broker(&self) -> anyhow::Result<Broker> {
        if let Some(data_dir) = self.data_dir()? {
            return Ok(Broker::Local(data_dir));
        }
        let file = self.config.as_deref();
        let file = file.unwrap_or_else(|| Path::new(DEFAULT_FILE));
        Err(Failure::usage(unnamed(file, file.exists())))
    }

    /// None if the configuration names none.
    fn data_dir(&self) -> anyhow::Result<Option<PathBuf>> {
        if self.data_dir.is_some() {
            return Ok(self.data_dir.clone());
        }
        let request = config::Request {
            file: self.config.clone(),
            ..config::Request::default()
        };
        let loaded = config::load(&request).map_err(Failure::usage)?;
        let data_dir = loaded.config.node.data_dir;
        Ok(Some(data_dir).filter(|data_dir| !data_dir.as_os_str().is_empty()))
    }
}

/// Why nobody knows which broker of this machine is meant.
fn unnamed(file: &Path, exists: bool) -> String {
    let file = file.display();
    if exists {
        format!(
            "{file} names no data directory (node.data_dir), and only a broker with a data directory has a control \
             socket: start it with --data-dir DIR and name that here too, or name its configuration with -c FILE"
        )
    } else {
        format!(
            "there is no {file}, so nothing names the data directory of a broker: name it with --data-dir DIR, as \
             the broker was started with; thrum serve --dev --data-dir DIR makes the control socket that commands \
             ask, without --data-dir there is none"
        )
    }
}

/// A body; empty for null.
fn text(body: &Value) -> String {
    if body.is_null() {
        String::new()
    } else {
        body.to_string()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        running: Running,
    }

    fn surroundings(url: &str, context: &str, token: &str) -> Surroundings {
        let some = |text: &str| (!text.is_empty()).then(|| OsString::from(text));
        Surroundings {
            url: some(url),
            context: some(context),
            token: some(token),
        }
    }

    fn contexts() -> anyhow::Result<Contexts> {
        Ok(Contexts::parse(
            r#"{"current": "here", "contexts": {
                "here": {"data_dir": "/data"}, "prod": {"url": "https://prod:8080", "ca_file": "ca.pem"}}}"#,
        )?)
    }

    /// The place of the broker, and the key for it.
    fn chosen(line: &str, surroundings: &Surroundings) -> anyhow::Result<(String, Option<String>)> {
        let words = std::iter::once("x").chain(line.split_whitespace());
        let running = Line::try_parse_from(words)?.running;
        let broker = running.choose(surroundings, contexts)?;
        let broker = broker.map_or_else(|| running.local.broker(), Ok)?;
        let token = match &broker {
            Broker::Remote(remote) => remote.token.as_ref(),
            Broker::Local(_) => None,
        };
        let token = token.map(|token| token.expose_str().unwrap().to_owned());
        Ok((broker.place(), token))
    }

    #[test]
    fn a_configuration_that_is_not_there_is_not_said_to_name_nothing() {
        let file = Path::new(DEFAULT_FILE);
        let missing = unnamed(file, false);
        assert!(
            missing.starts_with("there is no /etc/thrum/thrum.toml"),
            "{missing}"
        );
        assert!(
            missing.contains("thrum serve --dev --data-dir DIR"),
            "{missing}"
        );
        let there = unnamed(file, true);
        assert!(
            there.starts_with("/etc/thrum/thrum.toml names no data directory"),
            "{there}"
        );
    }

    #[test]
    fn an_option_comes_before_a_variable_and_that_before_the_current_context() {
        let nothing = Surroundings::default();
        for (line, surroundings, place) in [
            ("", &nothing, "on /data"),
            (
                "--data-dir d",
                &surroundings("https://b", "prod", "k"),
                "on d",
            ),
            ("--context prod", &nothing, "at https://prod:8080"),
            (
                "--context prod",
                &surroundings("https://b", "here", ""),
                "at https://prod:8080",
            ),
            (
                "--url http://a",
                &surroundings("https://b", "prod", ""),
                "at http://a:80",
            ),
            (
                "",
                &surroundings("https://b", "prod", ""),
                "at https://b:443",
            ),
            ("", &surroundings("", "prod", ""), "at https://prod:8080"),
        ] {
            assert_eq!(chosen(line, surroundings).unwrap().0, place, "{line}");
        }
    }

    #[test]
    fn the_key_of_the_surroundings_goes_to_the_broker_that_is_named() {
        let key = |line: &str, url: &str| chosen(line, &surroundings(url, "", "secret")).unwrap().1;
        assert_eq!(key("--url https://a", ""), Some("secret".to_owned()));
        assert_eq!(key("", "https://a"), Some("secret".to_owned()));
        assert_eq!(key("--data-dir d", "https://a"), None);
    }

    #[test]
    fn the_key_of_a_context_comes_before_that_of_the_surroundings() {
        let file = std::env::temp_dir().join(format!("thrum-key-{}", std::process::id()));
        std::fs::write(&file, "own_key\n").unwrap();
        let context = |token_file| Context {
            url: Some("https://b".to_owned()),
            token_file,
            ..Context::default()
        };
        let running = Line::try_parse_from(["x"]).unwrap().running;
        let key = |context: &Context| {
            let broker = running.of_context(context, &surroundings("", "", "secret"));
            match broker.unwrap() {
                Broker::Remote(remote) => remote.token.unwrap().expose().to_owned(),
                Broker::Local(_) => Vec::new(),
            }
        };
        assert_eq!(key(&context(Some(file.clone()))), b"own_key");
        assert_eq!(key(&context(None)), b"secret");
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn options_that_exclude_each_other_or_name_nothing_are_refused() {
        for line in [
            "--url https://a --data-dir d",
            "--url https://a --context prod",
            "--context prod -c f",
            "--data-dir d -c f",
            "--data-dir d --token-file f",
            "--url https://a --cafile f --insecure",
            "--url a:8080",
            "--context none",
        ] {
            assert!(chosen(line, &Surroundings::default()).is_err(), "{line}");
        }
        let broken = surroundings("https://a", "", "se\ncret");
        let why = chosen("", &broken).unwrap_err().to_string();
        assert!(why.contains(TOKEN) && !why.contains("cret"), "{why}");
    }
}
