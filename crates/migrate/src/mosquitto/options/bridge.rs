//! Options of bridges: all of one fate.

use super::super::value::Form::Text;
use super::{Entry, Scope, dropped, entry};

const REASON: &str =
    "bridges come with the connectors; until then their lines are kept as comments";

const fn option(name: &'static str) -> Entry {
    entry(name, Scope::Bridge, Text, dropped(REASON))
}

pub(super) const OPTIONS: &[Entry] = &[
    option("address"),
    option("addresses"),
    option("bridge_alpn"),
    option("bridge_attempt_unsubscribe"),
    option("bridge_bind_address"),
    option("bridge_cafile"),
    option("bridge_capath"),
    option("bridge_certfile"),
    option("bridge_ciphers"),
    option("bridge_ciphers_tls1.3"),
    option("bridge_identity"),
    option("bridge_insecure"),
    option("bridge_keyfile"),
    option("bridge_max_packet_size"),
    option("bridge_max_topic_alias"),
    option("bridge_outgoing_retain"),
    option("bridge_protocol_version"),
    option("bridge_psk"),
    option("bridge_receive_maximum"),
    option("bridge_reload_type"),
    option("bridge_require_ocsp"),
    option("bridge_session_expiry_interval"),
    option("bridge_tcp_keepalive"),
    option("bridge_tcp_user_timeout"),
    option("bridge_tls_use_os_certs"),
    option("bridge_tls_version"),
    option("cleansession"),
    option("clientid"),
    entry("connection", Scope::NewBridge, Text, dropped(REASON)),
    option("idle_timeout"),
    option("keepalive_interval"),
    option("local_cleansession"),
    option("local_clientid"),
    option("local_password"),
    option("local_username"),
    option("notification_topic"),
    option("notifications"),
    option("notifications_local_only"),
    option("password"),
    option("remote_clientid"),
    option("remote_password"),
    option("remote_username"),
    option("restart_timeout"),
    option("round_robin"),
    option("start_type"),
    option("threshold"),
    option("topic"),
    option("try_private"),
    option("username"),
];
