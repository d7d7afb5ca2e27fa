//! A directory.

use serde_json::json;
use thrum_backends::brief_clients::Accounts;
use thrum_backends::client::secret_file;
use thrum_backends::node::Node;
use thrum_backends::outage::{TIMEOUT, run_outage};
use thrum_backends::restart::{Freezable as _, Restartable as _};
use thrum_backends::server::{OpenLdap, READER, READER_PASSWORD, Tls};

fn person(name: &str, more: &str) -> String {
    format!(
        "dn: uid={name},dc=example,dc=org\nobjectClass: inetOrgPerson\nobjectClass: mqttUser\nuid: {name}\n\
         cn: {name}\nsn: {name}\nuserPassword: secret\n{more}\n"
    )
}

#[test]
fn a_directory_is_killed_suspended_and_restored() {
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
    run_outage(&node, &Accounts::with_passwords(), "dir", |outage| {
        outage.begin(|| server.kill());
        outage.end(|| server.restart());
        outage.begin(|| server.freeze());
        outage.end(|| server.thaw());
    });
}
