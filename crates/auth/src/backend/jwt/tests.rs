//! Tokens in the form of real issuers.

use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use thrum_access::{Identity, Login, Secret};
use thrum_codec::Version;

use super::claims::Claims;
use super::keys::{Keys, Signature};
use crate::backend::{Found, Verdict};
use crate::config::JwtConfig;

const SECRET: &[u8] = b"a secret of at least 32 bytes, as it has to be";
const NOW: u64 = 1_800_000_000;

fn token(header: &Header, claims: &Value, key: &EncodingKey) -> String {
    encode(header, claims, key).unwrap()
}

fn signed(claims: &Value) -> String {
    let header = Header::new(Algorithm::HS256);
    token(&header, claims, &EncodingKey::from_secret(SECRET))
}

fn secret_keys() -> Keys {
    Keys::of_secret(SECRET, &[]).unwrap()
}

fn with_id(algorithm: Algorithm, id: &str) -> Header {
    Header {
        kid: Some(id.to_owned()),
        ..Header::new(algorithm)
    }
}

/// A PEM text of DER.
fn pem(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}

/// The beginning of a PEM of a public Ed25519 key.
const ED25519_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

struct Issuer {
    algorithm: Algorithm,
    encoding: EncodingKey,
    pem: String,
    jwk: Value,
}

fn rsa() -> Issuer {
    let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    let public = pair.public_key();
    let number = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let pkcs8: aws_lc_rs::encoding::Pkcs8V1Der<'_> = pair.as_der().unwrap();
    let spki: aws_lc_rs::encoding::PublicKeyX509Der<'_> = public.as_der().unwrap();
    Issuer {
        algorithm: Algorithm::RS256,
        encoding: EncodingKey::from_rsa_pem(pem("PRIVATE KEY", pkcs8.as_ref()).as_bytes()).unwrap(),
        pem: pem("PUBLIC KEY", spki.as_ref()),
        jwk: json!({
            "kty": "RSA", "kid": "rsa", "alg": "RS256", "use": "sig",
            "n": number(public.modulus().big_endian_without_leading_zero()),
            "e": number(public.exponent().big_endian_without_leading_zero()),
        }),
    }
}

fn ecdsa() -> Issuer {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    let public = pair.public_key();
    let point = public.as_ref();
    let spki: aws_lc_rs::encoding::PublicKeyX509Der<'_> = public.as_der().unwrap();
    let pkcs8 = pair.to_pkcs8v1().unwrap();
    Issuer {
        algorithm: Algorithm::ES256,
        encoding: EncodingKey::from_ec_der(pkcs8.as_ref()),
        pem: pem("PUBLIC KEY", spki.as_ref()),
        jwk: json!({
            "kty": "EC", "kid": "ec", "crv": "P-256",
            "x": URL_SAFE_NO_PAD.encode(&point[1..33]), "y": URL_SAFE_NO_PAD.encode(&point[33..]),
        }),
    }
}

fn ed25519() -> Issuer {
    let pair = Ed25519KeyPair::generate().unwrap();
    let pkcs8 = pair.to_pkcs8v1().unwrap();
    let public = pair.public_key().as_ref();
    Issuer {
        algorithm: Algorithm::EdDSA,
        encoding: EncodingKey::from_ed_der(pkcs8.as_ref()),
        pem: pem("PUBLIC KEY", &[&ED25519_PREFIX[..], public].concat()),
        jwk: json!({
            "kty": "OKP", "kid": "ed", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode(public),
        }),
    }
}

fn is_good(signature: &Signature) -> bool {
    matches!(signature, Signature::Good(_))
}

#[test]
fn tokens_of_every_kind_of_key_verify_by_pem_and_by_key_set() {
    let issuers = [rsa(), ecdsa(), ed25519()];
    let jwks: Vec<&Value> = issuers.iter().map(|issuer| &issuer.jwk).collect();
    let set = json!({ "keys": jwks }).to_string();
    let set = Keys::of_set(set.as_bytes(), &[]).unwrap();
    for issuer in &issuers {
        let id = issuer.jwk["kid"].as_str().unwrap();
        let own = Keys::of_pem(issuer.pem.as_bytes(), &[]).unwrap();
        let named = token(&with_id(issuer.algorithm, id), &json!({}), &issuer.encoding);
        let unnamed = token(&Header::new(issuer.algorithm), &json!({}), &issuer.encoding);
        for token in [&named, &unnamed] {
            assert!(is_good(&own.verify(token)), "{id}");
            assert!(is_good(&set.verify(token)), "{id}");
        }
        let other = token(
            &with_id(issuer.algorithm, "new"),
            &json!({}),
            &issuer.encoding,
        );
        assert!(matches!(set.verify(&other), Signature::UnknownKey));
        let cut = &named[..named.len() - 6];
        assert!(matches!(own.verify(cut), Signature::Bad(_)));
    }
}

#[test]
fn a_token_cannot_choose_how_it_is_verified() {
    let issuer = rsa();
    let keys = Keys::of_pem(issuer.pem.as_bytes(), &[]).unwrap();
    // Signed with the public key as if it were a secret.
    let public = EncodingKey::from_secret(issuer.pem.as_bytes());
    let confused = token(&Header::new(Algorithm::HS256), &json!({}), &public);
    assert!(matches!(keys.verify(&confused), Signature::UnknownKey));
    // Not signed at all.
    let part = |json: Value| URL_SAFE_NO_PAD.encode(json.to_string());
    let none = format!("{}.{}.", part(json!({"alg": "none"})), part(json!({})));
    for keys in [&keys, &secret_keys()] {
        assert!(matches!(keys.verify(&none), Signature::None));
    }
    // An algorithm of the right family that is not in the list.
    let longer = token(&Header::new(Algorithm::RS512), &json!({}), &issuer.encoding);
    assert!(matches!(keys.verify(&longer), Signature::UnknownKey));
    // A key that the token itself contains.
    let mut header = with_id(Algorithm::RS256, "rsa");
    let other = rsa();
    header.jwk = serde_json::from_value(other.jwk.clone()).ok();
    let own = token(&header, &json!({}), &other.encoding);
    assert!(matches!(keys.verify(&own), Signature::Bad(_)));
    // Critical extensions.
    let critical = Header {
        crit: Some(vec!["exp".to_owned()]),
        ..Header::new(Algorithm::RS256)
    };
    let critical = token(&critical, &json!({}), &issuer.encoding);
    assert!(matches!(keys.verify(&critical), Signature::Bad(_)));
    for text in ["", "a.b", "a.b.c", "secret", "eyJhbGciOiJIUzI1NiJ9"] {
        assert!(
            matches!(secret_keys().verify(text), Signature::None),
            "{text}"
        );
    }
}

#[test]
fn keys_that_cannot_be_meant_are_refused() {
    assert!(Keys::of_secret(b"short", &[]).is_err());
    assert!(Keys::of_secret(SECRET, &[Algorithm::RS256]).is_err());
    let public = rsa();
    assert!(Keys::of_pem(public.pem.as_bytes(), &[Algorithm::HS256]).is_err());
    assert!(Keys::of_pem(b"no key", &[]).is_err());
    for set in ["[]", "{}", "{\"keys\":{}}", "no json"] {
        assert!(Keys::of_set(set.as_bytes(), &[]).is_err(), "{set}");
    }
    // A secret in a public place, a key to encrypt with, and one of an unknown kind.
    let set = json!({"keys": [
        {"kty": "oct", "k": URL_SAFE_NO_PAD.encode(SECRET)},
        {"kty": "RSA", "use": "enc", "n": public.jwk["n"], "e": public.jwk["e"]},
        {"kty": "new"},
    ]});
    let keys = Keys::of_set(set.to_string().as_bytes(), &[]).unwrap();
    let own = token(&Header::new(Algorithm::RS256), &json!({}), &public.encoding);
    for token in [own, signed(&json!({}))] {
        assert!(matches!(keys.verify(&token), Signature::UnknownKey));
    }
}

fn login() -> Login {
    Login {
        identity: Identity {
            client_id: "c1".into(),
            username: Some("alice".into()),
            ..Identity::default()
        },
        is_username_verified: false,
        is_known_there: false,
        password: Some(Secret::from("token")),
        version: Version::V5,
        method: None,
    }
}

fn verdict(config: &JwtConfig, claims: Value) -> Verdict {
    let Value::Object(claims) = claims else {
        panic!("claims are an object");
    };
    let checks = Claims::new("idp", config).unwrap();
    checks.verify(&claims, &login(), NOW)
}

fn found(config: &JwtConfig, claims: Value) -> Found {
    match verdict(config, claims) {
        Verdict::Allow(found) => *found,
        other => panic!("{other:?}"),
    }
}

fn denied(config: &JwtConfig, claims: Value) -> String {
    match verdict(config, claims) {
        Verdict::Deny(why) => why.into_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn name_roles_groups_and_claims_are_taken_from_the_token() {
    let claims = json!({
        "sub": "device-7", "exp": NOW + 60, "roles": ["ops", "audit"], "groups": "day night",
        "tenant": "t1", "level": 3, "nested": {"a": 1},
    });
    let found = found(&JwtConfig::default(), claims);
    assert_eq!(found.username.as_deref(), Some("device-7"));
    assert_eq!(found.roles, ["ops", "audit"].map(Box::<str>::from));
    assert_eq!(found.groups, ["day", "night"].map(Box::<str>::from));
    assert_eq!(found.expires_at, Some(NOW + 70), "with the leeway");
    assert!(!found.is_superuser);
    let claim = |name: &str| {
        let claim = found.claims.iter().find(|(known, _)| **known == *name);
        claim.map(|(_, value)| &**value)
    };
    assert_eq!((claim("tenant"), claim("level")), (Some("t1"), Some("3")));
    assert_eq!(claim("nested"), None);
}

#[test]
fn a_token_has_its_time() {
    let config = JwtConfig::default();
    let at = |exp: Value| json!({"sub": "a", "exp": exp});
    found(&config, at(json!(NOW - 9)));
    found(
        &config,
        at(json!(f64::from(u32::try_from(NOW).unwrap()) + 0.5)),
    );
    assert_eq!(
        denied(&config, at(json!(NOW - 10))),
        "the token has expired"
    );
    assert!(denied(&config, at(json!("tomorrow"))).contains("not a number"));
    assert!(denied(&config, at(json!(-1))).contains("not a number"));
    assert!(denied(&config, json!({"sub": "a"})).contains("never ends"));
    let endless = JwtConfig {
        require_expiry: false,
        ..JwtConfig::default()
    };
    assert_eq!(found(&endless, json!({"sub": "a"})).expires_at, None);
    let from = |nbf: u64| json!({"sub": "a", "exp": NOW + 60, "nbf": nbf});
    found(&config, from(NOW + 10));
    assert!(denied(&config, from(NOW + 11)).contains("not valid yet"));
}

#[test]
fn issuer_audience_and_claims_are_compared() {
    let config = JwtConfig {
        issuer: "https://id.example.com".to_owned(),
        audience: vec!["thrum".to_owned()],
        verify: [
            ("client".to_owned(), "%c".to_owned()),
            ("user".to_owned(), "u-%u-%%".to_owned()),
        ]
        .into(),
        username_claim: String::new(),
        ..JwtConfig::default()
    };
    let good = json!({
        "iss": "https://id.example.com", "aud": ["other", "thrum"], "exp": NOW + 60,
        "client": "c1", "user": "u-alice-%",
    });
    let with = |claim: &str, value: Value| {
        let mut claims = good.clone();
        claims[claim] = value;
        claims
    };
    assert_eq!(found(&config, good.clone()).username, None);
    found(&config, with("aud", json!("thrum")));
    assert!(matches!(
        verdict(&config, with("iss", json!("other"))),
        Verdict::Ignore
    ));
    assert!(denied(&config, with("aud", json!(["other"]))).contains("aud"));
    assert!(denied(&config, with("client", json!("c2"))).contains("\"client\""));
    assert!(denied(&config, with("user", json!("u-bob-%"))).contains("\"user\""));
    let mut anonymous = login();
    anonymous.identity.username = None;
    let Value::Object(claims) = good else {
        unreachable!("an object")
    };
    let checks = Claims::new("idp", &config).unwrap();
    let verdict = checks.verify(&claims, &anonymous, NOW);
    assert!(matches!(verdict, Verdict::Deny(_)), "{verdict:?}");
}

#[test]
fn a_user_name_is_always_verified() {
    assert!(denied(&JwtConfig::default(), json!({"exp": NOW + 60})).contains("no user name"));
    let config = JwtConfig {
        username_claim: String::new(),
        ..JwtConfig::default()
    };
    assert!(Claims::new("idp", &config).unwrap_err().contains("%u"));
}

#[test]
fn rules_are_read_in_both_forms_of_emqx() {
    let rules = |acl: Value| -> Vec<String> {
        let claims = json!({"sub": "a", "exp": NOW + 60, "acl": acl});
        let rules = found(&JwtConfig::default(), claims).rules.unwrap();
        rules.iter().map(ToString::to_string).collect()
    };
    let lists = json!({"pub": ["a/%c/#"], "sub": ["b/${username}"], "all": ["c d/+"]});
    let mut found = rules(lists);
    found.sort();
    let expected = [
        "allow all pub a/%c/#",
        "allow all pubsub \"c d/+\"",
        "allow all sub b/${username}",
    ];
    assert_eq!(found, expected);
    let entries = json!([
        {"permission": "allow", "action": "publish", "topic": "a", "qos": [0, 1], "retain": false},
        {"permission": "deny", "action": "all", "topic": "eq #", "qos": 2, "retain": "all"},
    ]);
    let expected = [
        "allow all pub(qos=0,1 retain=false) a",
        "deny all pubsub(qos=2) eq #",
    ];
    assert_eq!(rules(entries), expected);
    assert_eq!(rules(json!([])), [""; 0]);
}

#[test]
fn a_token_whose_rules_are_not_understood_gives_no_rights() {
    for acl in [
        json!("pub a"),
        json!(null),
        json!({"publish all": ["a"]}),
        json!({"pub": "a"}),
        json!({"pub": [1]}),
        json!({"pub": ["a/#/b"]}),
        json!([{"permission": "maybe", "action": "all", "topic": "a"}]),
        json!([{"permission": "deny", "action": "all"}]),
        json!([{"permission": "allow", "action": "all", "topic": "a", "qos": 3}]),
        json!([{"permission": "allow", "action": "all", "topic": "a", "retain": "no"}]),
        json!({"pub": vec!["a"; 1001]}),
    ] {
        let claims = json!({"sub": "a", "exp": NOW + 60, "acl": acl});
        let why = denied(&JwtConfig::default(), claims);
        assert!(why.contains("\"acl\""), "{why}");
    }
}
