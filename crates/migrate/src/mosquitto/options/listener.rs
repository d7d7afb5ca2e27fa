//! Options of listeners.

use super::super::value::Form::{Choice, Flag, Number, Text};
use super::Fate::{Carried, Noted};
use super::Scope::{DefaultListener, Listener, NewListener};
use super::general::{PLUGIN, PREFIX};
use super::{Entry, dropped, dropped_unless, entry};

const CIPHERS: &str = "cipher suites cannot be chosen: all offered ones authenticate what they encrypt and have forward \
     secrecy";
const ENGINE: &str = "private keys are read from PEM files; a listener whose key is in an OpenSSL engine is left out";
const ALIASES: &str = "one for all listeners and both directions: the highest that is set";

pub(super) const OPTIONS: &[Entry] = &[
    entry(
        "accept_protocol_versions",
        Listener,
        Text,
        Carried("listeners.NAME.accept_protocol_versions"),
    ),
    entry(
        "bind_address",
        DefaultListener,
        Text,
        Carried("listeners.NAME.bind"),
    ),
    entry(
        "bind_interface",
        Listener,
        Text,
        dropped(
            "a listener has an address, not an interface; it is left out, or it would be reachable \
             from elsewhere",
        ),
    ),
    entry(
        "cafile",
        Listener,
        Text,
        Noted(
            "listeners.NAME.tls.chain",
            "it completes the chain of the server's certificate; with require_certificate it is tls.ca as well",
        ),
    ),
    entry(
        "capath",
        Listener,
        Text,
        dropped("authorities are read from one file: put them together and name it in tls.ca"),
    ),
    entry(
        "certfile",
        Listener,
        Text,
        Carried("listeners.NAME.tls.cert"),
    ),
    entry("ciphers", Listener, Text, dropped(CIPHERS)),
    entry("ciphers_tls1.3", Listener, Text, dropped(CIPHERS)),
    entry("crlfile", Listener, Text, Carried("listeners.NAME.tls.crl")),
    entry(
        "dhparamfile",
        Listener,
        Text,
        dropped("keys are exchanged over elliptic curves, which need no parameters"),
    ),
    entry(
        "disable_client_cert_date_checks",
        Listener,
        Flag,
        dropped_unless(
            "false",
            "a certificate that has expired or is not yet valid is refused",
        ),
    ),
    entry(
        "enable_proxy_protocol",
        Listener,
        Number(1, 2),
        Noted(
            "listeners.NAME.proxy_protocol",
            "both versions are read; only proxies of this machine are trusted until proxy_from \
             names others",
        ),
    ),
    entry(
        "http_dir",
        Listener,
        Text,
        dropped("files are not served; use a separate web server"),
    ),
    entry("keyfile", Listener, Text, Carried("listeners.NAME.tls.key")),
    entry(
        "listener",
        NewListener,
        Text,
        Carried("listeners.NAME.bind"),
    ),
    entry(
        "listener_allow_anonymous",
        Listener,
        Flag,
        Carried("listeners.NAME.anonymous"),
    ),
    entry("listener_auto_id_prefix", Listener, Text, dropped(PREFIX)),
    entry(
        "max_connections",
        Listener,
        Number(i64::MIN, i64::MAX),
        Carried("listeners.NAME.max_connections"),
    ),
    entry(
        "max_qos",
        Listener,
        Number(0, 2),
        Noted(
            "limits.max_qos",
            "one for all listeners: the highest of them",
        ),
    ),
    entry(
        "max_topic_alias",
        Listener,
        Number(0, 65_535),
        Noted("limits.client.topic_aliases", ALIASES),
    ),
    entry(
        "max_topic_alias_broker",
        Listener,
        Number(0, 65_535),
        Noted("limits.client.topic_aliases", ALIASES),
    ),
    entry(
        "maximum_qos",
        Listener,
        Number(0, 2),
        Noted(
            "limits.max_qos",
            "an old name of max_qos; one for all listeners: the highest of them",
        ),
    ),
    entry(
        "mount_point",
        Listener,
        Text,
        Noted(
            "listeners.NAME.mount_point",
            "topics in the ACL do not include it, as clients see them; those of mosquitto do",
        ),
    ),
    entry("plugin_use", Listener, Text, dropped(PLUGIN)),
    entry(
        "port",
        DefaultListener,
        Number(1, 65_535),
        Carried("listeners.NAME.bind"),
    ),
    entry(
        "protocol",
        Listener,
        Choice(&["mqtt", "websockets", "http_api"]),
        Noted(
            "listeners.NAME.transport",
            "a WebSocket has one path, /mqtt unless path is set, where mosquitto accepts \
             any; http_api is left out",
        ),
    ),
    entry(
        "proxy_protocol_v2_require_tls",
        Listener,
        Flag,
        dropped_unless(
            "false",
            "the proxy's information about the client's TLS is not required; let the proxy accept \
             nothing else",
        ),
    ),
    entry(
        "psk_hint",
        Listener,
        Text,
        dropped("TLS uses certificates only; the listener is left out"),
    ),
    entry(
        "require_certificate",
        Listener,
        Flag,
        Carried("listeners.NAME.tls.client_cert"),
    ),
    entry(
        "socket_domain",
        Listener,
        Choice(&["ipv4", "ipv6"]),
        Carried("listeners.NAME.bind"),
    ),
    entry("tls_engine", Listener, Text, dropped(ENGINE)),
    entry("tls_engine_kpass_sha1", Listener, Text, dropped(ENGINE)),
    entry(
        "tls_keyform",
        Listener,
        Choice(&["pem", "engine"]),
        dropped_unless("pem", ENGINE),
    ),
    entry(
        "tls_version",
        Listener,
        Choice(&["tlsv1.3", "tlsv1.2", "tlsv1.1", "tlsv1"]),
        Noted(
            "listeners.NAME.tls.min_version",
            "1.2 is the lowest version",
        ),
    ),
    entry(
        "use_identity_as_username",
        Listener,
        Flag,
        Carried("listeners.NAME.tls.username"),
    ),
    entry(
        "use_subject_as_username",
        Listener,
        Flag,
        Noted(
            "listeners.NAME.tls.username",
            "the subject is written as in RFC 4514; compare one with the names in the ACL",
        ),
    ),
    entry(
        "use_username_as_clientid",
        Listener,
        Flag,
        dropped_unless(
            "false",
            "clients keep their identifiers, and a session stays with its user; auth.client_id = \
             \"%u\" refuses identifiers that are not the user name",
        ),
    ),
    entry(
        "websockets_origin",
        Listener,
        Text,
        Carried("listeners.NAME.origins"),
    ),
];
