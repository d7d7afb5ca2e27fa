//! From settings to backends.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::jwt::Jwt;
use super::left_out;
use super::password_file::PasswordFile;
use super::settings::SetupError;
use super::{Backend, Users};
use crate::config::{AuthConfig, USERS};
use crate::hash::Hasher;

/// Backends by name.
#[derive(Debug, Default)]
pub(crate) struct Built {
    pub(crate) backends: BTreeMap<String, Arc<dyn Backend>>,
    /// The user store once more, for its parts that are not a backend's: roles, groups, SCRAM.
    pub(crate) users: Option<Arc<Users>>,
}

/// Builds all backends; `hasher` is asked for the hasher of each, by its name. Does not wait for
/// other systems.
///
/// # Errors
/// Every error.
pub(crate) fn build(
    config: &AuthConfig,
    hasher: &dyn Fn(&str) -> Hasher,
) -> Result<Built, Vec<String>> {
    let mut builder = Builder::default();
    if !config.users.as_os_str().is_empty() {
        let users = Users::load(&config.users, hasher(USERS)).map(Arc::new);
        builder.built.users = users.as_ref().ok().map(Arc::clone);
        builder.add(USERS, users.map(|users| users as Arc<dyn Backend>));
    }
    for (name, config) in &config.password_file {
        let file = PasswordFile::load(name, config, hasher(name));
        builder.add(name, file.map(|file| Arc::new(file) as Arc<dyn Backend>));
    }
    for (name, config) in &config.jwt {
        let tokens = Jwt::load(name, config);
        builder.add(name, tokens.map(|tokens| tokens as Arc<dyn Backend>));
    }
    #[cfg(feature = "http-auth")]
    for (name, config) in &config.http {
        builder.add_remote("http", name, super::http::Http::new(name, config));
    }
    #[cfg(feature = "ldap")]
    for (name, config) in &config.ldap {
        let directory = super::ldap::Ldap::new(name, config, hasher(name));
        builder.add_remote("ldap", name, directory);
    }
    #[cfg(feature = "redis")]
    for (name, config) in &config.redis {
        let server = super::redis::Redis::new(name, config, hasher(name));
        builder.add_remote("redis", name, server);
    }
    #[cfg(feature = "sql")]
    for (name, config) in &config.sql {
        let database = super::sql::Sql::new(name, config, hasher(name));
        builder.add_remote("sql", name, database);
    }
    builder.problems.extend(left_out::refused(config));
    if builder.problems.is_empty() {
        Ok(builder.built)
    } else {
        Err(builder.problems)
    }
}

#[derive(Default)]
struct Builder {
    built: Built,
    problems: Vec<String>,
}

impl Builder {
    fn add_remote<B: Backend + 'static>(
        &mut self,
        kind: &str,
        name: &str,
        backend: Result<B, SetupError>,
    ) {
        let backend = backend.map(|backend| Arc::new(backend) as Arc<dyn Backend>);
        self.add(
            name,
            backend.map_err(|error| format!("auth.{kind}.{name}.{error}")),
        );
    }

    fn add(&mut self, name: &str, backend: Result<Arc<dyn Backend>, String>) {
        let backend = match backend {
            Ok(backend) => backend,
            Err(problem) => return self.problems.push(problem),
        };
        let is_taken = self
            .built
            .backends
            .insert(name.to_owned(), backend)
            .is_some();
        if is_taken {
            let problem = format!("two backends are called {name:?}, rename one of them");
            self.problems.push(problem);
        }
    }
}
