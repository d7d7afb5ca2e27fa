//! Identity and rights of a client: the types that the broker and the authentication backends
//! share.
//!
//! ```text
//!   CONNECT --Login--> Gatekeeper --Answer--> Admission (identity, own rules, end)
//!                                             | Denial | Challenge
//! ```
//!
//! Invariant: no I/O, no clock and no thread in here; times are seconds of the Unix epoch that the
//! caller read.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod gatekeeper;
mod identity;
mod login;
mod network;
pub mod rules;
mod secret;

pub use gatekeeper::{Gatekeeper, Question, Reply};
pub use identity::{Certificate, Identity};
pub use login::{Admission, Answer, Denial, Exchange, Login, Method};
pub use network::{Network, NotANetwork};
pub use rules::{
    Actions, Coverage, Decision, QosSet, Resolved, Rule, RuleError, RuleId, Rules, Source,
    TooManyRules, Who,
};
pub use secret::Secret;
