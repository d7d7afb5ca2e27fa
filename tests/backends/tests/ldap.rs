//! Users in a directory.

use serde_json::{Value, json};
use thrum_backends::client::{
    Authenticator, LoginAttempt, LoginResult, may_publish, resolved, secret_file,
};
use thrum_backends::restart;
use thrum_backends::server::{OpenLdap, READER, READER_PASSWORD, Tls};
use thrum_backends::silent_server::{self, SilentServer};
use thrum_backends::sql::BCRYPT;
use thrum_codec::{QoS, ReasonCode};
use thrum_conformance::folder::Folder;

const DENIED: ReasonCode = ReasonCode::BadUserNameOrPassword;
/// `{SSHA}` of `secret` with the salt `salt`.
const SSHA: &str = "{SSHA}gVK8WC9YyFT1gMsQHTGCgT3sSv5zYWx0";

fn person(name: &str, password: &str, more: &str) -> String {
    let escaped = name.replace(',', "\\,");
    format!(
        "dn: uid={escaped},ou=people,dc=example,dc=org\nobjectClass: inetOrgPerson\nobjectClass: mqttUser\nuid: {name}\n\
         cn: {name}\nsn: {name}\nuserPassword: {password}\n{more}\n"
    )
}

fn entries() -> String {
    let unit = |name| {
        format!("dn: ou={name},dc=example,dc=org\nobjectClass: organizationalUnit\nou: {name}\n\n")
    };
    let group = |name, member| {
        format!(
            "dn: cn={name},ou=groups,dc=example,dc=org\nobjectClass: groupOfNames\ncn: {name}\n\
             member: uid={member},ou=people,dc=example,dc=org\n\n"
        )
    };
    [
        unit("people"),
        unit("groups"),
        person(
            "ann",
            SSHA,
            "mqttPublishTopic: up/%u/#\nmqttSubscriptionTopic: down/${client_id}/+\nmqttPubSubTopic: both/#\n",
        ),
        person("root", "secret", "isSuperuser: TRUE\n"),
        person("bcrypt", &format!("{{CRYPT}}{BCRYPT}"), ""),
        person("o'neil, *(x)", "secret", ""),
        group("operators", "ann"),
        group("others", "root"),
    ]
    .concat()
}

fn settings(server: &OpenLdap) -> Value {
    json!({ "ldap": { "dir": {
        "url": server.url(),
        "bind_dn": READER,
        "password_file": secret_file(server.folder(), "reader", READER_PASSWORD),
        "base": "dc=example,dc=org",
        "group_base": "ou=groups,dc=example,dc=org",
        "group_roles": ["operators=operator", "operators = reader", "others=nobody"],
    }}})
}

fn knows_users(authenticator: &Authenticator) {
    let ann = authenticator.admits("ann", "secret");
    assert_eq!(ann.identity.groups, ["operators"].map(Box::<str>::from));
    assert_eq!(
        ann.identity.roles,
        ["operator", "reader"].map(Box::<str>::from)
    );
    assert!(!ann.identity.is_superuser);
    assert_eq!(
        may_publish(&ann, "up/ann/x", QoS::ExactlyOnce, true),
        Some(true)
    );
    assert_eq!(may_publish(&ann, "up/root/x", QoS::AtMostOnce, false), None);
    assert_eq!(
        may_publish(&ann, "both/x", QoS::AtMostOnce, false),
        Some(true)
    );
    let receives = |topic| resolved(&ann).receive(topic, QoS::AtMostOnce);
    assert_eq!(receives("down/client-of-ann/x"), Some(true));
    assert_eq!(receives("down/x/x"), None);
    assert_eq!(ann.refresh_secs, Some(300));
    assert_eq!(
        authenticator
            .refresh(&ann.identity)
            .map(|rules| rules.len()),
        Some(3)
    );
    assert_eq!(
        authenticator.admits_certificate("ann").identity.groups,
        ann.identity.groups
    );
    assert!(authenticator.admits("root", "secret").identity.is_superuser);
    authenticator.admits("o'neil, *(x)", "secret");
    for (name, password) in [
        ("ann", "wrong"),
        ("nobody", "secret"),
        ("", "secret"),
        ("reader", READER_PASSWORD),
    ] {
        authenticator.refuses(name, password, DENIED);
    }
    // The server accepts a name without password as an anonymous bind.
    authenticator.refuses("ann", "", DENIED);
    authenticator.refuses("root", "", DENIED);
}

#[test]
fn the_directory_verifies_passwords() {
    let server = OpenLdap::start(&entries(), None);
    let mut settings = settings(&server);
    knows_users(&Authenticator::open(&settings));
    settings["ldap"]["dir"]["dn"] = json!("uid=${username},ou=people,dc=example,dc=org");
    knows_users(&Authenticator::open(&settings));
}

#[test]
fn passwords_are_compared_with_stored_hashes() {
    let server = OpenLdap::start(&entries(), None);
    let mut settings = settings(&server);
    settings["ldap"]["dir"]["method"] = json!("compare");
    let authenticator = Authenticator::open(&settings);
    knows_users(&authenticator);
    authenticator.admits("bcrypt", "secret");
    authenticator.refuses("bcrypt", "wrong", DENIED);
    // An entry with an unreadable password is an error of the server.
    settings["ldap"]["dir"]["password_attribute"] = json!("telephoneNumber");
    Authenticator::open(&settings).refuses("ann", "secret", ReasonCode::ServerUnavailable);
}

#[test]
fn names_are_values_of_the_filter_and_nothing_else() {
    let server = OpenLdap::start(&entries(), None);
    let mut settings = settings(&server);
    for dn in ["", "uid=${username},ou=people,dc=example,dc=org"] {
        settings["ldap"]["dir"]["dn"] = json!(dn);
        let authenticator = Authenticator::open(&settings);
        for name in [
            "*",
            "a*",
            "ann)(uid=*",
            "*)(|(uid=*",
            "ann)(&",
            "\\2a",
            "an\\6e",
            "ann,ou=people",
            "ann+cn=ann",
            "${username}",
            "ann\\",
            "#",
            "ann\u{0}",
            ")",
        ] {
            authenticator.refuses(name, "secret", DENIED);
        }
        assert_eq!(authenticator.counts("dir").errors, 0);
        authenticator.admits("ann", "secret");
    }
    // A filter that matches several entries is an error.
    settings["ldap"]["dir"]["dn"] = json!("");
    settings["ldap"]["dir"]["filter"] = json!("(|(uid=${username})(uid=root))");
    let authenticator = Authenticator::open(&settings);
    authenticator.refuses("ann", "secret", ReasonCode::ServerUnavailable);
    let anonymous = LoginAttempt {
        username: None,
        ..LoginAttempt::new("ann", "secret")
    };
    assert!(matches!(
        authenticator.log_in(&anonymous),
        LoginResult::Denied(DENIED)
    ));
}

#[test]
fn a_restarted_server_needs_no_restart_of_ours() {
    let mut server = OpenLdap::start(&entries(), None);
    let authenticator = Authenticator::open(&settings(&server));
    restart::logins_recover(
        &authenticator,
        "dir",
        &LoginAttempt::new("ann", "secret"),
        &mut server,
    );
}

#[test]
fn a_wrong_password_of_ours_is_an_error_and_not_an_admission() {
    let server = OpenLdap::start(&entries(), None);
    let mut settings = settings(&server);
    let folder = Folder::new("slapd-wrong");
    settings["ldap"]["dir"]["password_file"] = json!(secret_file(&folder, "wrong", "wrong"));
    Authenticator::open(&settings).refuses("ann", "secret", ReasonCode::ServerUnavailable);
}

#[test]
fn logins_at_a_silent_server_are_bounded() {
    let silent = SilentServer::start();
    let authenticator = Authenticator::open(&json!({ "ldap": { "dir": {
        "url": format!("ldap://127.0.0.1:{}", silent.port()),
        "base": "dc=example,dc=org",
        "in_flight": 4,
        "timeout": "1s",
    }}}));
    silent_server::logins_are_bounded(&authenticator, 4);
}

#[test]
fn tls_is_checked_against_the_given_authority() {
    let (right, wrong) = (Tls::new(), Tls::new());
    let server = OpenLdap::start(&entries(), Some(&right));
    let folder = Folder::new("slapd-tls");
    let mut settings = settings(&server);
    let plain = server.url().replace("127.0.0.1", "localhost");
    for (url, starttls) in [(server.tls_url(), false), (plain, true)] {
        settings["ldap"]["dir"]["url"] = json!(url);
        settings["ldap"]["dir"]["starttls"] = json!(starttls);
        settings["ldap"]["dir"]["ca"] = json!(folder.write("right.pem", &right.certificate));
        Authenticator::open(&settings).admits("ann", "secret");
        settings["ldap"]["dir"]["ca"] = json!(folder.write("wrong.pem", &wrong.certificate));
        Authenticator::open(&settings).refuses("ann", "secret", ReasonCode::ServerUnavailable);
    }
}

#[test]
fn settings_that_cannot_work_are_refused_with_the_reason() {
    for (changes, expected) in [
        (
            json!({ "url": "http://h" }),
            "auth.ldap.dir.url: must be ldap://",
        ),
        (
            json!({ "url": "ldap://h" }),
            "auth.ldap.dir.base: set base, or dn",
        ),
        (
            json!({ "url": "ldap://h", "base": "dc=x", "filter": "uid=%u" }),
            "auth.ldap.dir.filter: brackets",
        ),
        (
            json!({ "url": "ldap://h", "base": "dc=x", "bind_dn": "cn=a" }),
            "auth.ldap.dir.password_file: bind_dn needs a password",
        ),
        (
            json!({ "url": "ldaps://h", "base": "dc=x", "starttls": true }),
            "auth.ldap.dir.starttls: ldaps:// is TLS already",
        ),
    ] {
        let refusal = Authenticator::refusal(json!({ "ldap": { "dir": changes } }));
        assert!(refusal.contains(expected), "{refusal}");
    }
}
