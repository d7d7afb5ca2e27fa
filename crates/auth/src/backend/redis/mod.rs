//! Users and rules in Redis.

mod command;
mod line;

use std::sync::Arc;

use redis::FromRedisValue;
use thrum_access::{Identity, Login, Rules, Source};

use super::gate::Gate;
use super::grants::{RULES_MAX, from_field, too_many};
use super::record::{Decoy, Record};
use super::settings::{SetupError, refresh_secs};
use super::{Asked, Backend, BackendError, Verdict};
use crate::config::RedisConfig;
use crate::hash::{Hasher, Scheme};
use crate::template::Values;
use command::{Command, CommandError, Verb};
use line::Line;

/// A Redis with users.
#[derive(Debug)]
pub(crate) struct Redis {
    name: Box<str>,
    /// Source of its rules, for messages.
    source: Source,
    gate: Gate,
    line: Line,
    command: Command,
    rules: Option<Command>,
    refresh_secs: Option<u32>,
    scheme: Scheme,
    hasher: Hasher,
    decoy: Decoy,
}

impl Redis {
    /// Reads the settings; connects to nothing yet.
    ///
    /// # Errors
    /// A setting is wrong, or a file cannot be read.
    pub(crate) fn new(
        name: &str,
        config: &RedisConfig,
        hasher: Hasher,
    ) -> Result<Self, SetupError> {
        let command = |key, text: &str| {
            Command::parse(text)
                .map_err(|error: CommandError| SetupError::setting(key, error.to_string()))
        };
        let rules = match config.rules.trim() {
            "" => None,
            text => Some(command("rules", text)?),
        };
        if rules
            .as_ref()
            .is_some_and(|rules| rules.verb != Verb::Hgetall)
        {
            return Err(SetupError::setting("rules", "must be HGETALL key"));
        }
        let requests = usize::try_from(config.in_flight.max(1)).unwrap_or(usize::MAX);
        Ok(Self {
            name: name.into(),
            source: Source::from(Arc::from(name)),
            gate: Gate::new(requests, config.timeout),
            line: Line::new(config)?,
            command: command("command", &config.command)?,
            refresh_secs: rules.as_ref().and_then(|_| refresh_secs(config.refresh)),
            rules,
            scheme: config.hash.clone(),
            hasher,
            decoy: Decoy::default(),
        })
    }

    async fn verdict(&self, login: &Login) -> Result<Verdict, BackendError> {
        if login.password.is_none() && !login.is_username_verified {
            return Ok(Verdict::Ignore);
        }
        let values = Values::of_login(login);
        let Ok(Some(key)) = self.command.key(&values) else {
            return Ok(Verdict::Ignore);
        };
        let Some(record) = self.record(&key).await? else {
            return Ok(Verdict::Ignore);
        };
        if !record
            .is_shown_by(login, &self.scheme, &self.hasher, &self.decoy)
            .await?
        {
            return Ok(Verdict::Deny("wrong password".into()));
        }
        let rules = self.rules(&values).await?;
        Ok(record.admit(rules, self.refresh_secs))
    }

    /// The user of this key, if there is one.
    async fn record(&self, key: &str) -> Result<Option<Record>, BackendError> {
        let fields: Vec<(String, String)> = match self.command.verb {
            Verb::Hgetall => self.ask(&self.command, key).await?,
            Verb::Hmget => {
                let values: Vec<Option<String>> = self.ask(&self.command, key).await?;
                let fields = self.command.fields.iter().cloned();
                fields
                    .zip(values)
                    .filter_map(|(field, value)| Some((field, value?)))
                    .collect()
            }
            Verb::Hget | Verb::Get => {
                let value: Option<String> = self.ask(&self.command, key).await?;
                value
                    .map(|value| ("password_hash".to_owned(), value))
                    .into_iter()
                    .collect()
            }
        };
        if fields.is_empty() {
            return Ok(None);
        }
        let mut record = Record::default();
        for (field, value) in fields {
            record.set(&field, value);
        }
        Ok(Some(record))
    }

    async fn rules(&self, values: &Values<'_>) -> Result<Option<Rules>, BackendError> {
        let Some(command) = &self.rules else {
            return Ok(None);
        };
        let Ok(Some(key)) = command.key(values) else {
            return Ok(Some(Rules::default()));
        };
        let fields: Vec<(String, String)> = self.ask(command, &key).await?;
        if fields.len() > RULES_MAX {
            return Err(too_many(&self.source));
        }
        let rules = fields
            .iter()
            .map(|(topic, value)| from_field(topic, value, &self.source));
        rules.collect::<Result<Rules, _>>().map(Some)
    }

    async fn ask<T: FromRedisValue>(
        &self,
        command: &Command,
        key: &str,
    ) -> Result<T, BackendError> {
        let mut asked = redis::cmd(command.verb.name());
        asked.arg(key).arg(&command.fields);
        let result = self.gate.pass(self.line.ask(&asked)).await;
        if let Err(BackendError::TimedOut | BackendError::Panicked(_)) = result {
            // The other side may be gone or replaced: the connection is discarded.
            self.line.forget();
        }
        result
    }
}

impl Backend for Redis {
    fn name(&self) -> &str {
        &self.name
    }

    fn login<'a>(&'a self, login: &'a Login) -> Asked<'a, Verdict> {
        Box::pin(self.verdict(login))
    }

    fn takes_verified(&self) -> bool {
        true
    }

    fn refuse<'a>(&'a self, login: &'a Login) -> Asked<'a, ()> {
        Box::pin(self.decoy.waste(login, &self.hasher))
    }

    fn refresh<'a>(&'a self, identity: &'a Identity) -> Asked<'a, Option<Rules>> {
        Box::pin(async move { self.rules(&Values::of_identity(identity)).await })
    }
}
