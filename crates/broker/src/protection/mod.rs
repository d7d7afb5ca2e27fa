//! Protection of the node and its clients: rates, bans, flapping, failed logins, overload. Plain data: time is an argument, no
//! socket is touched, and what is shared between workers is bounded.
//!
//! Where each call belongs:
//!
//! | moment | call | if it says so |
//! |---|---|---|
//! | the node starts | [`Protection::default`] in what the workers share, [`BanKeeper::start`] with the node's clock, [`BanKeeper::stop`] at its end | the start fails |
//! | settings are made or reloaded | [`ProtectionSettings::new`] in what each worker holds; [`Paces::new`] for each listener, with an [`Account`] that stays the same over a reload | |
//! | before `accept` | [`Overload::defers_connections`]; the listener's `account.connects.take(pace, now, 1)` | look again after a pause, or after the wait; count `OverloadDeferred`, `LimitListenerConnects` |
//! | accepted, or the header of a proxy read | [`Protection::may_open`] | close without a word, count the refusal |
//! | TLS or WebSocket handshake begins, ends | [`Handshakes::begin`], [`Handshakes::end`] | too long: close, count `HandshakeTimeouts` |
//! | CONNECT is decoded | [`Protection::may_log_in`] with the claimed user name | CONNACK with [`Refusal::reason`], count it |
//! | the gatekeeper denies (0x86, 0x87, 0x8C) | [`Protection::login_failed`], count `LoginsFailed` | count `LoginWaits`, log the address |
//! | the gatekeeper admits | [`Protection::login_succeeded`] if a secret was shown, then [`Protection::may_enter`] with the verified name | CONNACK, count it |
//! | the session has its connection | [`Protection::meter`], kept by the connection (8 bytes without) | |
//! | before a read of a connection with a meter | [`Meter::may_read`] | read no more than it says; an error is as below, but not counted if the connection was paused already |
//! | after its input was handled | [`Meter::charge`] | do not read it for [`Pause::wait`] (a timer), count [`Pause::limit`] once |
//! | the end of a turn | [`Overload::observe`] with the time the turn took | count each cause that begins; gauges `OverloadDeferring`, `OverloadSlowing` |
//! | a PUBLISH was handled | [`Overload::slows_publishers`] | hold the connection back, as for short memory; count `OverloadPaused` |
//! | each second, one worker | [`MemoryGauge::is_short`]; [`Protection::sweep`] | its result is added to `RateAccountsForgotten` |
//! | each second, each worker | [`BanBook::changes`] | disconnect those who are new (0x98), count `BannedDisconnected` |
//!
//! Each counter is the `Counter` that a [`Refusal`], [`Limit`] or [`Cause`] converts to, or named above.

mod bans;
mod bucket;
mod counters;
mod door;
mod flapping;
mod handshakes;
mod idle_map;
mod logins;
mod meter;
mod overload;
mod rate_table;
mod settings;
mod window;

pub(crate) use counters::TOPICS;

pub use bans::{
    Ban, BanBook, BanFile, BanFileError, BanKeeper, BanList, Changes, Subject, SubjectRef,
    TEMPORARY_MAX, TemporaryBan,
};
pub use bucket::{Bucket, Pace, SharedBucket};
pub use door::{Protection, Refusal, Who};
pub use flapping::{Flap, Flapping, SUBJECTS_MAX};
pub use handshakes::Handshakes;
pub use idle_map::IdleMap;
pub use logins::{ADDRESSES_MAX, KNOWN_MAX, LoginGuard};
pub use meter::{Limit, Meter, Pause, Scopes, Usage};
pub use overload::{Cause, Measured, MemoryGauge, Overload, OverloadLimits};
pub use rate_table::{ACCOUNTS_MAX, Account, Paces, RateTable};
pub use settings::ProtectionSettings;

pub use crate::config::Network;
