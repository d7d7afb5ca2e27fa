//! Users and rules in PostgreSQL, MySQL, MariaDB or SQLite.

mod cell;
mod line;
mod statement;

use std::sync::Arc;

use thrum_access::{Identity, Login, Rules, Source};

use super::grants::{Grant, RULES_MAX, too_many};
use super::pool::Pool;
use super::record::{Decoy, Record};
use super::settings::{SetupError, pool_limits, refresh_secs};
use super::{Asked, Backend, BackendError, Verdict};
use crate::config::SqlConfig;
use crate::hash::{Hasher, Scheme};
use crate::template::{Place, Placeholder, Values};
use cell::Row;
use line::{Connector, Query};
use statement::Statement;

/// A database with users.
#[derive(Debug)]
pub(crate) struct Sql {
    name: Box<str>,
    /// Source of its rules, for messages.
    source: Source,
    pool: Pool<Connector>,
    query: Statement,
    rules_query: Option<Statement>,
    refresh_secs: Option<u32>,
    scheme: Scheme,
    hasher: Hasher,
    decoy: Decoy,
}

/// The dialect of a query's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Postgres,
    MySql,
    Sqlite,
}

impl Dialect {
    fn of_url(url: &str) -> Result<Self, SetupError> {
        match url.split(':').next().unwrap_or_default() {
            "postgresql" | "postgres" => Ok(Self::Postgres),
            "mysql" | "mariadb" => Ok(Self::MySql),
            "sqlite" => Ok(Self::Sqlite),
            _ => {
                let what = "must begin with postgresql://, mysql:// or sqlite://";
                Err(SetupError::setting("url", what))
            }
        }
    }
}

impl Sql {
    /// Reads the settings; connects to nothing yet.
    ///
    /// # Errors
    /// A setting is wrong, or a file cannot be read.
    pub(crate) fn new(name: &str, config: &SqlConfig, hasher: Hasher) -> Result<Self, SetupError> {
        let dialect = Dialect::of_url(config.url.expose())?;
        let statement = |key, text: &str, place| {
            Statement::parse(text, dialect, place)
                .map_err(|error| SetupError::setting(key, error.to_string()))
        };
        let rules_query = match config.rules_query.trim() {
            "" => None,
            text => Some(statement("rules_query", text, Place::Lookup)?),
        };
        Ok(Self {
            name: name.into(),
            source: Source::from(Arc::from(name)),
            query: statement("query", &config.query, Place::Login)?,
            refresh_secs: rules_query
                .as_ref()
                .and_then(|_| refresh_secs(config.refresh)),
            rules_query,
            pool: Pool::new(
                Connector::new(config)?,
                pool_limits(config.pool, config.in_flight, config.timeout),
            ),
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
        let Some(row) = self.ask(&self.query, &values, 1).await?.pop() else {
            return Ok(Verdict::Ignore);
        };
        let (mut record, mut username) = (Record::default(), None);
        for (column, value) in row {
            match &*column {
                "username" => username = Some(value.into_boxed_str()),
                _ => record.set(&column, value),
            }
        }
        if !record
            .is_shown_by(login, &self.scheme, &self.hasher, &self.decoy)
            .await?
        {
            return Ok(Verdict::Deny("wrong password".into()));
        }
        let rules = self.rules(&values).await?;
        let mut verdict = record.admit(rules, self.refresh_secs);
        if let Verdict::Allow(found) = &mut verdict {
            found.username = username;
        }
        Ok(verdict)
    }

    async fn rules(&self, values: &Values<'_>) -> Result<Option<Rules>, BackendError> {
        let Some(query) = &self.rules_query else {
            return Ok(None);
        };
        let rows = self.ask(query, values, RULES_MAX + 1).await?;
        if rows.len() > RULES_MAX {
            return Err(too_many(&self.source));
        }
        let rules = rows.iter().map(|row| grant(row).rule(&self.source));
        rules.collect::<Result<Rules, _>>().map(Some)
    }

    async fn ask(
        &self,
        statement: &Statement,
        values: &Values<'_>,
        rows_max: usize,
    ) -> Result<Vec<Row>, BackendError> {
        let Ok(values) = statement.values(values) else {
            // A password that is not text matches no user that the query finds by it.
            return Ok(Vec::new());
        };
        if values.iter().flatten().any(|value| value.contains('\0')) {
            return Ok(Vec::new());
        }
        let query = Query {
            text: statement.text(),
            values,
            rows_max,
            is_secret: statement.uses(&Placeholder::Password),
        };
        self.pool.ask(&query).await
    }
}

impl Backend for Sql {
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

/// A row of rules. A column that is missing is an empty text, which no required column may be.
fn grant(row: &Row) -> Grant<'_> {
    let mut grant = Grant::default();
    for (column, value) in row {
        match &**column {
            "permission" => grant.permission = value,
            "action" => grant.action = value,
            "topic" => grant.topic = value,
            "qos" => grant.qos = value,
            "retain" => grant.retain = value,
            _ => {}
        }
    }
    grant
}
