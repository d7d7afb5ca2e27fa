//! The connection to a Redis: one for all requests, replaced when it breaks.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionInfo, FromRedisValue, IntoConnectionInfo as _,
    RedisError, TlsCertificates,
};
use tokio::sync::OnceCell;

use crate::backend::BackendError;
use crate::backend::pool::CONNECT_TIME_MAX;
use crate::backend::settings::{SetupError, read_file, secret_of, secret_text};
use crate::config::RedisConfig;

/// A connection, or the one attempt to make it that all requests wait for.
type Cell = Arc<OnceCell<MultiplexedConnection>>;

/// Asks over one connection; requests do not wait for each other.
pub(super) struct Line {
    client: Client,
    /// Guards the present connection; held for some instructions, never across an `await`.
    cell: Mutex<Cell>,
}

impl fmt::Debug for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Line")
    }
}

impl Line {
    /// Reads URL, password and certificates.
    pub(super) fn new(config: &RedisConfig) -> Result<Self, SetupError> {
        // The library's own text could repeat the URL with its password.
        let bad = |_| {
            SetupError::setting(
                "url",
                "must be redis://host:port/database, rediss://… or redis+unix://…",
            )
        };
        let mut server: ConnectionInfo = config.url.expose().into_connection_info().map_err(bad)?;
        if let Some(secret) = secret_of("password_file", &config.password_file)? {
            let password = secret_text("password_file", &secret)?;
            let settings = server.redis_settings().clone().set_password(password);
            server = server.set_redis_settings(settings);
        }
        let client = if config.ca.as_os_str().is_empty() {
            Client::open(server).map_err(bad)?
        } else {
            let certificates = TlsCertificates {
                client_tls: None,
                root_cert: Some(read_file("ca", &config.ca)?),
            };
            Client::build_with_tls(server, certificates).map_err(|_| {
                SetupError::setting("ca", "needs a URL with rediss:// and certificates in PEM")
            })?
        };
        Ok(Self {
            client,
            cell: Mutex::default(),
        })
    }

    /// Sends the command; over a new connection if the present one turns out to be dead.
    pub(super) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, BackendError> {
        let cell = self.with_cell(|cell| Arc::clone(cell));
        let is_old = cell.initialized();
        match self.ask_over(&cell, command).await {
            Err(BackendError::Unreachable(_)) if is_old => {
                let cell = self.with_cell(|cell| Arc::clone(cell));
                self.ask_over(&cell, command).await
            }
            answer => answer,
        }
    }

    /// Leaves the present connection to the requests that still wait for it.
    pub(super) fn forget(&self) {
        self.with_cell(|cell| *cell = Cell::default());
    }

    async fn ask_over<T: FromRedisValue>(
        &self,
        cell: &Cell,
        command: &Cmd,
    ) -> Result<T, BackendError> {
        let answer = match cell.get_or_try_init(|| self.connect()).await {
            Ok(line) => command
                .query_async(&mut line.clone())
                .await
                .map_err(|error| said(&error)),
            Err(error) => Err(error),
        };
        if let Err(BackendError::Unreachable(_)) = answer {
            self.with_cell(|present| {
                let is_present = Arc::ptr_eq(present, cell);
                is_present.then(|| *present = Cell::default())
            });
        }
        answer
    }

    async fn connect(&self) -> Result<MultiplexedConnection, BackendError> {
        let times = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIME_MAX))
            .set_response_timeout(None);
        self.client
            .get_multiplexed_async_connection_with_config(&times)
            .await
            .map_err(|error| BackendError::Unreachable(words(&error)))
    }

    fn with_cell<T>(&self, action: impl FnOnce(&mut Cell) -> T) -> T {
        action(&mut self.cell.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn said(error: &RedisError) -> BackendError {
    if error.is_unrecoverable_error() || error.is_io_error() || error.is_timeout() {
        BackendError::Unreachable(words(error))
    } else {
        BackendError::BadAnswer(words(error))
    }
}

/// The error, without the sent values.
fn words(error: &RedisError) -> String {
    match error.code() {
        Some(code) => format!("error {code} of Redis"),
        None => error.category().to_owned(),
    }
}
