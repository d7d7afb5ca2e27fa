//! Authentication and authorization: the chain of authentication backends, the user store,
//! passwords, tokens and SCRAM.
//!
//! ```text
//!   broker --Login--> AuthService --chain--> users | password file | JWT | HTTP | SQL | …
//!          <-Answer--              Verdict: allow, deny, ignore (the next one is asked)
//! ```
//!
//! Invariant: each request gets one answer, within a time limit; an error of a backend is a denial,
//! never an admission.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(all(
        feature = "http-auth",
        feature = "ldap",
        feature = "redis",
        feature = "sql"
    )),
    allow(
        dead_code,
        reason = "what backends share has fewer users where some are left out"
    )
)]

mod access_test;
mod backend;
mod clock;
pub mod config;
pub mod hash;
mod metrics;
mod panics;
mod policy;
mod service;
mod template;
pub mod users;
mod warning_limit;
mod watched;

pub use access_test::{AccessQuestion, AccessTested, DecidingRule, EffectiveRule, NotATopic};
pub use backend::{TokenKeys, TokenSignature};
pub use metrics::BackendCounts;
pub use panics::is_panic_caught;
pub use policy::Policy;
pub use service::{
    AuthService, EditError, ListenerSettings, LoginStep, LoginTested, OnChange, Reload, Settings,
    StartError, StepVerdict,
};
pub use thrum_scram::{Credential, CredentialRecord};
