//! Backends that this program was built without: their settings are known, and refused.

use std::collections::BTreeMap;

use thrum_settings::LeftOut;

use crate::config::AuthConfig;

/// Features of the backends, and whether this program has them.
const FEATURES: [(&str, bool); 4] = [
    ("http-auth", cfg!(feature = "http-auth")),
    ("ldap", cfg!(feature = "ldap")),
    ("redis", cfg!(feature = "redis")),
    ("sql", cfg!(feature = "sql")),
];

/// The error for each table of a missing backend.
pub(super) fn refused(config: &AuthConfig) -> Vec<String> {
    refused_of(config, |feature| FEATURES.contains(&(feature, true)))
}

fn refused_of(config: &AuthConfig, is_built: impl Fn(&str) -> bool) -> Vec<String> {
    let tables = [
        ("http", "http-auth", names(&config.http)),
        ("ldap", "ldap", names(&config.ldap)),
        ("redis", "redis", names(&config.redis)),
        ("sql", "sql", names(&config.sql)),
    ];
    let left_out = tables
        .into_iter()
        .filter(|(_, feature, _)| !is_built(feature));
    let problems = left_out.flat_map(|(kind, feature, names)| {
        let problem = move |name| format!("auth.{kind}.{name}: {}", LeftOut(feature));
        names.into_iter().map(problem)
    });
    problems.collect()
}

fn names<C>(tables: &BTreeMap<String, C>) -> Vec<&String> {
    tables.keys().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{HttpConfig, LdapConfig, RedisConfig, SqlConfig};

    #[test]
    fn tables_of_backends_that_were_left_out_are_refused_by_name() {
        let mut config = AuthConfig::default();
        config.http.insert("a".to_owned(), HttpConfig::default());
        config.ldap.insert("b".to_owned(), LdapConfig::default());
        config.redis.insert("c".to_owned(), RedisConfig::default());
        config.sql.insert("d".to_owned(), SqlConfig::default());
        let problems = refused_of(&config, |_| false);
        let expected = [
            ("auth.http.a: ", "--features http-auth`"),
            ("auth.ldap.b: ", "--features ldap`"),
            ("auth.redis.c: ", "--features redis`"),
            ("auth.sql.d: ", "--features sql`"),
        ];
        assert_eq!(problems.len(), expected.len(), "{problems:?}");
        for (problem, (begin, end)) in problems.iter().zip(expected) {
            assert!(
                problem.starts_with(begin) && problem.ends_with(end),
                "{problem}"
            );
        }
        assert_eq!(refused_of(&config, |feature| feature != "redis").len(), 1);
        assert!(refused_of(&config, |_| true).is_empty());
    }
}
