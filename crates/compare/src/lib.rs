//! Many runs and one answer: the search for the highest load of a broker, and the same scenarios
//! against several brokers.
//!
//! Invariant: only `versus/launch.rs` starts a process or waits; the next trial, its grade and the
//! standings follow from results alone.
#![forbid(unsafe_code)]

pub mod search;
pub mod versus;
