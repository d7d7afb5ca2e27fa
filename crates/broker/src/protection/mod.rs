//! Protection of the node and its clients: rates, bans, flapping, failed logins, overload. Plain
//! data: time is an argument, no socket is touched, and what is shared between workers is bounded.
//!
//! Where each call belongs:
//!
//! - The node starts: [`Protection::default`] in what the workers share,
//!   [`BanKeeper::start_configured`] with the node's clock; [`BanKeeper::stop`] at its end.
//! - Settings are made or reloaded: [`ProtectionSettings::new`] in what each worker holds;
//!   [`Paces::new`] for each listener, with an [`Account`] that stays the same over a reload.
//! - Before `accept`: if [`Overload::defers_connections`], look again after a pause and count
//!   `OverloadDeferred`; if the listener's `account.connects.take(pace, now, 1)` fails, look again
//!   after the wait and count `LimitListenerConnects`.
//! - A connection was accepted, or the header of a proxy was read: [`Protection::may_open`]; if
//!   not, close it without a word and count the refusal.
//! - A TLS or WebSocket handshake begins and ends: [`Handshakes::begin`], [`Handshakes::end`]; one
//!   that takes longer than `limits.handshake_timeout` is closed and counted as
//!   `HandshakeTimeouts`.
//! - A CONNECT is decoded: [`Protection::may_log_in`] with the claimed user name; if not, CONNACK
//!   with the violation that the refusal converts to, and count it.
//! - The gatekeeper denies because of what the client showed (0x86, 0x87, 0x8C): count
//!   `LoginsFailed`, [`Protection::login_failed`]; if that is true, count `LoginWaits` and log the
//!   address.
//! - The gatekeeper admits: [`Protection::login_succeeded`] if a secret was shown. For everybody
//!   that is admitted: [`Protection::may_enter`] with the verified user name; if not, CONNACK, and
//!   count it.
//! - The session has its connection: [`Protection::meter`], kept by the connection (8 bytes without
//!   one).
//! - Before a read of a connection with a meter: [`Meter::may_read`]; read no more than it says. An
//!   error is a pause, not counted if the connection was paused already.
//! - Its input was handled: [`Meter::charge`]; if there is a pause, do not read it for
//!   [`Pause::wait`] (a timer) and count [`Pause::limit`] once.
//! - The end of a turn: [`Overload::observe`] with the time that the turn took; count each cause
//!   that begins, and keep the gauges `OverloadDeferring` and `OverloadSlowing`.
//! - A PUBLISH was handled: if [`Overload::slows_publishers`], hold the connection back and count
//!   `OverloadPaused`.
//! - While there is something to do: [`MemoryLevel::next`] with the resident memory.
//! - Each second, one worker: [`Protection::sweep`], whose result is added to
//!   `RateAccountsForgotten`.
//! - Each second, each worker: [`BanBook::changes`]; disconnect those who are new (0x98), count
//!   `BannedDisconnected`.
//!
//! Each counter is the `Counter` that a [`Refusal`], [`Limit`] or [`Cause`] converts to, or named
//! above.

mod bans;
mod bucket;
mod counters;
mod door;
mod flapping;
mod handshakes;
mod idle_map;
mod login_file;
mod logins;
mod memory_level;
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
pub use login_file::LoginKeeper;
pub use logins::{ADDRESSES_MAX, Attempt, KNOWN_MAX, LoginGuard, Remembered};
pub use memory_level::MemoryLevel;
pub use meter::{Limit, Meter, Pause, Scopes, Usage};
pub use overload::{Cause, Measured, Overload, OverloadLimits};
pub use rate_table::{ACCOUNTS_MAX, Account, Paces, RateTable};
pub use settings::ProtectionSettings;
