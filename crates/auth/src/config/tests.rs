//! The serialized form of settings.

use std::time::Duration;

use super::*;

#[test]
fn settings_are_written_and_read_alike() {
    let text = r#"{"anonymous":false,"chain":["users","idp"],"cache_ttl":"90m","timeout":"1h30m5s",
        "jwt":{"idp":{"jwks":"https://id.example.com/keys","refresh":60}}}"#;
    let config: AuthConfig = serde_json::from_str(text).unwrap();
    assert_eq!(config.anonymous, Anonymous::Deny);
    assert_eq!(config.cache_ttl, Duration::from_mins(90));
    assert_eq!(config.timeout, Duration::from_secs(5405));
    assert_eq!(config.jwt["idp"].refresh, Duration::from_mins(1));
    assert_eq!(config.backend_names(), ["idp"]);
    let again = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<AuthConfig>(&again).unwrap(), config);
    let acl = serde_json::to_string(&AclConfig::default()).unwrap();
    assert_eq!(
        serde_json::from_str::<AclConfig>(&acl).unwrap(),
        AclConfig::default()
    );
    assert!(
        acl.contains(r#""default":"auto""#) && acl.contains(r#""cache_ttl":"1m""#),
        "{acl}"
    );
}

#[test]
fn wrong_values_are_refused_with_the_expected_ones() {
    for (text, expected) in [
        (r#"{"anonymous":"local"}"#, "loopback"),
        (r#"{"timeout":"10 parsecs"}"#, "a duration such as"),
        (r#"{"timeout":true}"#, "a duration such as"),
        (r#"{"user":"x"}"#, "unknown field `user`"),
    ] {
        let error = serde_json::from_str::<AuthConfig>(text)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
}
