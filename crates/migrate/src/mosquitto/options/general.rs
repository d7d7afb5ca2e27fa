//! Options of the broker as a whole, of its security and of plugins.

use super::super::value::Form::{self, Choice, Duration, Flag, Number, Text};
use super::Fate::{Anyway, Carried, Noted};
use super::Scope::{General, NewPlugin, Plugin, Security};
use super::{Entry, dropped, dropped_unless, entry};

/// Why plugins are not carried over.
pub(super) const PLUGIN: &str = "thrum does not load the plugins of mosquitto, which are C libraries; [auth] and [acl] replace \
     the common ones";
/// Why a prefix of client identifiers is not carried over.
pub(super) const PREFIX: &str = "the broker assigns client identifiers in its own form";
const LOG_LINE: &str = "log.format sets the form of log lines; the time is always RFC 3339 in UTC";
const SAVED: &str = "every change is in the log of node.data_dir before it is acknowledged, so there is no \
     interval; storage.durability sets how safe that is";

const ANY: Form = Number(i64::MIN, i64::MAX);

pub(super) const OPTIONS: &[Entry] = &[
    entry("acl_file", Security, Text, Carried("acl.mosquitto_file")),
    entry("allow_anonymous", Security, Flag, Carried("auth.anonymous")),
    entry(
        "allow_duplicate_messages",
        General,
        Flag,
        Anyway(
            "a client with overlapping subscriptions gets a message once, with the highest quality \
             of service of them",
        ),
    ),
    entry(
        "allow_zero_length_clientid",
        Security,
        Flag,
        Noted(
            "limits.allow_zero_length_clientid",
            "applies to all listeners: off if it is off for each of them",
        ),
    ),
    entry("auth_opt_*", Plugin, Text, dropped(PLUGIN)),
    entry("auth_plugin", NewPlugin, Text, dropped(PLUGIN)),
    entry(
        "auth_plugin_deny_special_chars",
        Plugin,
        Flag,
        Anyway("a placeholder whose value contains + or # makes its rule match nothing"),
    ),
    entry("auto_id_prefix", Security, Text, dropped(PREFIX)),
    entry("autosave_interval", General, ANY, Anyway(SAVED)),
    entry("autosave_on_changes", General, Flag, Anyway(SAVED)),
    entry(
        "check_retain_source",
        General,
        Flag,
        Noted(
            "acl.check_retained_source",
            "also on without its line, as in mosquitto, if there is an acl_file or the dynamic security plugin",
        ),
    ),
    entry(
        "clientid_prefixes",
        General,
        Text,
        Noted(
            "auth.client_id",
            "prefix becomes \"prefix*\"; one that contains * or % is not carried over, and clients with other identifiers can \
             connect then",
        ),
    ),
    entry(
        "connection_messages",
        General,
        Flag,
        Noted(
            "log.clients",
            "true is thrum's default: a line for each client that connects or disconnects, up to a number per second; false turns \
             them off",
        ),
    ),
    entry(
        "enable_control_api",
        General,
        Flag,
        dropped_unless("false", "there is no $CONTROL topic"),
    ),
    entry(
        "global_max_clients",
        General,
        ANY,
        Noted(
            "limits.sessions",
            "it counts the sessions that outlive their connection; limits.connections bounds those \
             that are connected",
        ),
    ),
    entry(
        "global_max_connections",
        General,
        ANY,
        Carried("limits.connections"),
    ),
    entry("global_plugin", NewPlugin, Text, dropped(PLUGIN)),
    entry(
        "include_dir",
        General,
        Text,
        Anyway("the files are read, in the order of mosquitto"),
    ),
    entry(
        "log_dest",
        General,
        Choice(&["none", "stdout", "stderr", "syslog", "topic", "file", "dlt"]),
        Noted(
            "log.level",
            "the log goes to standard error, where systemd or the shell can redirect it; none alone is \
             the level off",
        ),
    ),
    entry(
        "log_facility",
        General,
        Number(0, 7),
        dropped(
            "the log goes to standard error, not to syslog; under systemd SyslogFacility= sets it",
        ),
    ),
    entry(
        "log_timestamp",
        General,
        Flag,
        dropped_unless("true", LOG_LINE),
    ),
    entry("log_timestamp_format", General, Text, dropped(LOG_LINE)),
    entry(
        "log_type",
        General,
        Choice(&[
            "none",
            "error",
            "warning",
            "notice",
            "information",
            "debug",
            "subscribe",
            "unsubscribe",
            "websockets",
            "internal",
            "all",
        ]),
        Noted(
            "log.level",
            "a level includes those above it, so the most verbose type counts; subscribe, \
             unsubscribe, websockets and internal add nothing",
        ),
    ),
    entry(
        "max_inflight_bytes",
        General,
        ANY,
        Carried("limits.client.inflight_bytes"),
    ),
    entry(
        "max_inflight_messages",
        General,
        Number(i64::MIN, 65_535),
        Carried("limits.client.inflight, limits.client.receive_maximum"),
    ),
    entry(
        "max_keepalive",
        General,
        Number(0, 65_535),
        Carried("limits.keep_alive_max"),
    ),
    entry(
        "max_packet_size",
        General,
        Number(20, i64::MAX),
        Carried("limits.max_packet"),
    ),
    entry(
        "max_queued_bytes",
        General,
        ANY,
        Carried("limits.client.queue_bytes"),
    ),
    entry(
        "max_queued_messages",
        General,
        ANY,
        Carried("limits.client.queue"),
    ),
    entry(
        "memory_limit",
        General,
        Number(0, i64::MAX),
        Noted(
            "limits.memory",
            "all memory of the process counts, including the program itself; near the limit publishers are read less, beyond it \
             queued messages and new sessions are refused",
        ),
    ),
    entry(
        "message_size_limit",
        General,
        Number(0, 268_435_455),
        Carried("limits.max_payload"),
    ),
    entry(
        "packet_buffer_size",
        General,
        Number(0, 65_535),
        dropped("buffers grow with what a client sends"),
    ),
    entry(
        "password_file",
        Security,
        Text,
        Carried("auth.password_file.NAME.path"),
    ),
    entry(
        "per_listener_settings",
        General,
        Flag,
        Noted(
            "listeners.NAME.auth",
            "password files and anonymous access are per listener, the ACL applies to \
             all",
        ),
    ),
    entry(
        "persistence",
        General,
        Flag,
        Noted(
            "node.data_dir",
            "mosquitto.db is not read; devices subscribe and publish retained messages \
             again",
        ),
    ),
    entry(
        "persistence_file",
        General,
        Text,
        dropped(
            "the data directory has files of its own; mosquitto.db is neither read nor written",
        ),
    ),
    entry(
        "persistence_location",
        General,
        Text,
        Carried("node.data_dir"),
    ),
    entry(
        "persistent_client_expiration",
        General,
        Duration,
        Carried("limits.session_expiry"),
    ),
    entry(
        "pid_file",
        General,
        Text,
        dropped("the process does not go into the background, so its starter knows its process id"),
    ),
    entry("plugin", NewPlugin, Text, dropped(PLUGIN)),
    entry("plugin_load", NewPlugin, Text, dropped(PLUGIN)),
    entry("plugin_opt_*", Plugin, Text, dropped(PLUGIN)),
    entry(
        "psk_file",
        Security,
        Text,
        dropped(
            "TLS uses certificates only, also for devices or in addition to user names and passwords; a \
             listener with psk_hint is left out",
        ),
    ),
    entry(
        "queue_qos0_messages",
        General,
        Flag,
        Carried("limits.client.queue_qos0"),
    ),
    entry(
        "retain_available",
        General,
        Flag,
        Noted(
            "limits.retain_available",
            "with false a client of MQTT 3.1.1 that publishes with the retain flag stays \
             connected: the message is delivered and not retained",
        ),
    ),
    entry(
        "retain_expiry_interval",
        General,
        ANY,
        Anyway("expired retained messages are removed automatically"),
    ),
    entry(
        "retained_persistence",
        General,
        Flag,
        Noted("node.data_dir", "an old name of persistence"),
    ),
    entry(
        "retry_interval",
        General,
        ANY,
        Anyway("messages are sent again when a client reconnects, as MQTT specifies"),
    ),
    entry(
        "set_tcp_nodelay",
        General,
        Flag,
        Anyway("TCP_NODELAY is always set"),
    ),
    entry(
        "sys_interval",
        General,
        Number(0, 65_535),
        Carried("sys.interval"),
    ),
    entry(
        "upgrade_outgoing_qos",
        General,
        Flag,
        Carried("limits.client.upgrade_outgoing_qos"),
    ),
    entry(
        "user",
        General,
        Text,
        dropped(
            "the process does not change its user; start it as the right one (User= of systemd)",
        ),
    ),
    entry(
        "websockets_headers_size",
        General,
        Number(0, 65_535),
        dropped("the size of a WebSocket's header has a fixed limit"),
    ),
    entry(
        "websockets_log_level",
        General,
        ANY,
        dropped("the level of a module is set as in log.level = \"info,thrum_transport=debug\""),
    ),
];
