//! Counters of protection, and their `$SYS` topics.

use thrum_engine::node::metrics::Counter;

/// Counters at their topics below `$SYS/broker/`.
pub(crate) const TOPICS: [(&str, Counter); 31] = [
    ("limits/handshake_timeout", Counter::HandshakeTimeouts),
    ("limits/handshakes", Counter::OverloadHandshakes),
    ("limits/client/messages", Counter::LimitClientMessages),
    ("limits/client/bytes", Counter::LimitClientBytes),
    ("limits/user/connects", Counter::LimitUserConnects),
    ("limits/user/messages", Counter::LimitUserMessages),
    ("limits/user/bytes", Counter::LimitUserBytes),
    ("limits/address/connects", Counter::LimitAddressConnects),
    ("limits/address/messages", Counter::LimitAddressMessages),
    ("limits/address/bytes", Counter::LimitAddressBytes),
    (
        "limits/listener/connect_rate",
        Counter::LimitListenerConnects,
    ),
    ("limits/listener/messages", Counter::LimitListenerMessages),
    ("limits/listener/bytes", Counter::LimitListenerBytes),
    ("limits/accounts", Counter::RateAccountsForgotten),
    ("protection/bans/client_id", Counter::BannedClientIds),
    ("protection/bans/username", Counter::BannedUsernames),
    ("protection/bans/address", Counter::BannedAddresses),
    ("protection/bans/disconnected", Counter::BannedDisconnected),
    ("protection/flapping/bans", Counter::FlappingBans),
    ("protection/flapping/forgotten", Counter::FlappingForgotten),
    ("protection/logins/failed", Counter::LoginsFailed),
    ("protection/logins/waits", Counter::LoginWaits),
    ("protection/logins/refused", Counter::LoginsRefused),
    ("protection/overload/lag", Counter::OverloadLag),
    ("protection/overload/long_lag", Counter::OverloadLongLag),
    ("protection/overload/memory", Counter::OverloadMemory),
    (
        "protection/overload/handshakes",
        Counter::OverloadHandshakes,
    ),
    ("protection/overload/deferring", Counter::OverloadDeferring),
    ("protection/overload/slowing", Counter::OverloadSlowing),
    ("protection/overload/deferred", Counter::OverloadDeferred),
    (
        "protection/overload/publishers_paused",
        Counter::OverloadPaused,
    ),
];
