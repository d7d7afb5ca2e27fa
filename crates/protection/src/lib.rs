//! Protection of a node and its clients: rates, bans, flapping clients, failed logins, overload and
//! short memory, as data and decisions.
//!
//! ```text
//!   accepted --may_open--> CONNECT --may_log_in--> judged --login_failed
//!                                                    |
//!                                     login_succeeded|--may_enter--> --may_begin--> session, meter
//! ```
//!
//! [`Protection`] is the state that the workers of a node share. It is asked at each moment of a
//! connection and answers with a [`Refusal`]; the caller informs the client and counts. A [`Meter`]
//! belongs to one connection, an [`Overload`] and its [`Handshakes`] to one worker.
//!
//! Invariant: this crate uses no file, socket, thread or clock: time is an argument, and all data
//! that grows with the clients of a node has a limit.
#![forbid(unsafe_code)]

mod bans;
mod bucket;
mod client;
mod flapping;
mod handshakes;
mod idle_map;
mod known_logins;
mod logins;
mod memory_level;
mod meter;
mod overload;
mod protection;
mod rate;
mod rate_table;
mod refusal;
mod settings;
mod window;

pub use bans::{
    Ban, BanBook, BanChanges, BanLineError, BanList, Subject, SubjectRef, TemporaryBan,
};
pub use bucket::{Pace, SharedBucket};
pub use client::ClientRef;
pub use flapping::FlappingLimits;
pub use handshakes::Handshakes;
pub use known_logins::KnownLogins;
pub use logins::{LoginGuard, LoginLimits};
pub use memory_level::MemoryLevel;
pub use meter::{InputUsage, ListenerScope, Meter, Pause, RateLimit, Scopes};
pub use overload::{Measured, Overload, OverloadCause, OverloadLimits};
pub use protection::Protection;
pub use rate::Rate;
pub use rate_table::{Account, Paces};
pub use refusal::Refusal;
pub use settings::ProtectionSettings;
