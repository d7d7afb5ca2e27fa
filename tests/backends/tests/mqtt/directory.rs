//! A directory.

use serde_json::json;
use thrum_backends::client::secret_file;
use thrum_backends::crowd::Cast;
use thrum_backends::death::{Freezable as _, Mortal as _};
use thrum_backends::node::Node;
use thrum_backends::server::{OpenLdap, READER, READER_PASSWORD, Tls};
use thrum_backends::siege::{TIMEOUT, lay};

fn person(name: &str, more: &str) -> String {
    format!(
        "dn: uid={name},dc=example,dc=org\nobjectClass: inetOrgPerson\nobjectClass: mqttUser\nuid: {name}\n\
         cn: {name}\nsn: {name}\nuserPassword: secret\n{more}\n"
    )
}

#[test]
fn a_directory_dies_hangs_and_comes_back() {
    let rights = "mqttPublishTopic: up/%u/#\nmqttSubscriptionTopic: down/${client_id}/+\n";
    let entries = person("ann", rights) + &person("root", "isSuperuser: TRUE\n");
    let tls = Tls::new();
    let mut server = OpenLdap::start(&entries, Some(&tls));
    let node = Node::start(&json!({ "auth": { "ldap": { "dir": {
        "url": server.tls_url(),
        "ca": server.folder().write("ca.pem", &tls.certificate),
        "bind_dn": READER,
        "password_file": secret_file(server.folder(), "reader", READER_PASSWORD),
        "base": "dc=example,dc=org",
        "superuser_attribute": "isSuperuser",
        "publish_attribute": "mqttPublishTopic",
        "subscribe_attribute": "mqttSubscriptionTopic",
        "timeout": TIMEOUT,
    }}}}));
    lay(&node, &Cast::with_passwords(), "dir", |siege| {
        siege.shuts(|| server.kill());
        siege.opens(|| server.revive());
        siege.shuts(|| server.freeze());
        siege.opens(|| server.thaw());
    });
}
