//! The generator checks itself over loopback: against a broker that breaks its promises by a known
//! law, the report must match the law; against a broker that keeps them, the report must be empty.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alterations;
mod bench;
mod commands;
mod fake_broker;
mod faults;
mod hooks;
mod latency;
mod messages;
mod relay;
mod requests;
mod series;
mod sessions;
mod transports;
mod verdict;
