//! A connection to a database, and one query over it.

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use futures_util::TryStreamExt;
use sqlx::mysql::{MySqlConnectOptions, MySqlDatabaseError};
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{
    AssertSqlSafe, ColumnIndex, ConnectOptions as _, Connection, Database, Encode, Error, Executor,
    IntoArguments, MySqlConnection, PgConnection, SqliteConnection, Type,
};

use super::Dialect;
use super::cell::{Cells, Row};
use crate::backend::BackendError;
use crate::backend::pool::{Connect, Request};
use crate::backend::settings::{SetupError, secret_of, secret_text};
use crate::config::SqlConfig;

/// Statements that a connection keeps prepared: the two of a backend, and room for nothing else.
const STATEMENTS_KEPT: usize = 4;
/// Numbers of MySQL's errors that end the connection: too many connections, shutting down, killed,
/// idle for too long.
const MYSQL_GONE: [u16; 7] = [1040, 1053, 1077, 1079, 1927, 3169, 4031];
/// Class of PostgreSQL's errors that end the connection: an administrator or a crash stopped the
/// server.
const POSTGRES_GONE: &str = "57P";

/// Address and options of a connection.
pub(super) enum Connector {
    Postgres(Box<PgConnectOptions>),
    MySql(Box<MySqlConnectOptions>),
    Sqlite(Box<SqliteConnectOptions>),
}

/// A connection.
pub(super) enum Line {
    Postgres(Box<PgConnection>),
    MySql(Box<MySqlConnection>),
    Sqlite(Box<SqliteConnection>),
}

/// A query with its parameters.
pub(super) struct Query<'a> {
    pub(super) text: Arc<str>,
    pub(super) values: Vec<Option<Cow<'a, str>>>,
    /// Rows beyond are not read.
    pub(super) rows_max: usize,
    /// The database's text may repeat the password.
    pub(super) is_secret: bool,
}

impl Connector {
    /// Reads URL and password.
    pub(super) fn new(config: &SqlConfig) -> Result<Self, SetupError> {
        let secret = secret_of("password_file", &config.password_file)?;
        let password = secret
            .as_ref()
            .map(|secret| secret_text("password_file", secret))
            .transpose()?;
        let ca = Some(&config.ca).filter(|path| !path.as_os_str().is_empty());
        // The library's own text could repeat the URL with its password.
        let bad = |_| SetupError::setting("url", "is not a URL of this database");
        let url = config.url.expose();
        Ok(match Dialect::of_url(url)? {
            Dialect::Postgres => {
                let mut options = PgConnectOptions::from_str(url).map_err(bad)?;
                options = options
                    .application_name("thrum")
                    .statement_cache_capacity(STATEMENTS_KEPT)
                    .disable_statement_logging();
                if let Some(password) = password {
                    options = options.password(password);
                }
                if let Some(ca) = ca {
                    options = options.ssl_root_cert(ca);
                }
                Self::Postgres(Box::new(options))
            }
            Dialect::MySql => {
                let mut options = MySqlConnectOptions::from_str(url).map_err(bad)?;
                options = options
                    .statement_cache_capacity(STATEMENTS_KEPT)
                    .disable_statement_logging();
                if let Some(password) = password {
                    options = options.password(password);
                }
                if let Some(ca) = ca {
                    options = options.ssl_ca(ca);
                }
                Self::MySql(Box::new(options))
            }
            Dialect::Sqlite => {
                let options = SqliteConnectOptions::from_str(url).map_err(bad)?;
                let options = options
                    .statement_cache_capacity(STATEMENTS_KEPT)
                    .busy_timeout(config.timeout)
                    .disable_statement_logging();
                Self::Sqlite(Box::new(options))
            }
        })
    }
}

impl Connect for Connector {
    type Line = Line;

    async fn connect(&self) -> Result<Line, BackendError> {
        let line = match self {
            Self::Postgres(options) => PgConnection::connect_with(options)
                .await
                .map(|line| Line::Postgres(Box::new(line))),
            Self::MySql(options) => MySqlConnection::connect_with(options)
                .await
                .map(|line| Line::MySql(Box::new(line))),
            Self::Sqlite(options) => SqliteConnection::connect_with(options)
                .await
                .map(|line| Line::Sqlite(Box::new(line))),
        };
        line.map_err(|error| BackendError::Unreachable(said(&error)))
    }
}

impl Request<Line> for Query<'_> {
    type Answer = Vec<Row>;

    async fn ask(&self, line: &mut Line) -> Result<Vec<Row>, BackendError> {
        match line {
            Line::Postgres(line) => self.rows(&mut **line).await,
            Line::MySql(line) => self.rows(&mut **line).await,
            Line::Sqlite(line) => self.rows(&mut **line).await,
        }
    }
}

impl Query<'_> {
    async fn rows<'c, 'q, DB, E>(&'q self, line: E) -> Result<Vec<Row>, BackendError>
    where
        DB: Database,
        E: Executor<'c, Database = DB>,
        DB::Row: Cells,
        DB::Arguments: IntoArguments<DB>,
        Option<&'q str>: Encode<'q, DB> + Type<DB>,
        usize: ColumnIndex<DB::Row>,
    {
        let mut query = sqlx::query::<DB>(AssertSqlSafe(Arc::clone(&self.text)));
        for value in &self.values {
            query = query.bind(value.as_deref());
        }
        let mut stream = query.fetch(line);
        let mut rows = Vec::new();
        while let Some(row) = stream
            .try_next()
            .await
            .map_err(|error| self.error(&error))?
        {
            rows.push(row.cells()?);
            if rows.len() >= self.rows_max {
                break;
            }
        }
        Ok(rows)
    }

    fn error(&self, error: &Error) -> BackendError {
        match error {
            Error::Database(told) if !ends_connection(&**told) => {
                let code = told.code().unwrap_or_default().into_owned();
                BackendError::BadAnswer(if self.is_secret {
                    format!("error {code} of the database")
                } else {
                    format!("error {code} of the database: {}", told.message())
                })
            }
            Error::Database(_)
            | Error::Io(_)
            | Error::Tls(_)
            | Error::Protocol(_)
            | Error::WorkerCrashed => BackendError::Unreachable(said(error)),
            _ => BackendError::BadAnswer("a row cannot be read".to_owned()),
        }
    }
}

fn ends_connection(error: &dyn sqlx::error::DatabaseError) -> bool {
    match error.try_downcast_ref::<MySqlDatabaseError>() {
        Some(mysql) => MYSQL_GONE.contains(&mysql.number()),
        None => error
            .code()
            .is_some_and(|code| code.starts_with(POSTGRES_GONE)),
    }
}

/// An error of the connection, in a text without settings.
fn said(error: &Error) -> String {
    match error {
        Error::Io(error) => error.to_string(),
        Error::Tls(error) => format!("TLS: {error}"),
        Error::Database(error) => error.message().to_owned(),
        Error::Protocol(_) => "the server violates its protocol".to_owned(),
        _ => "no connection".to_owned(),
    }
}
