//! Many runs and one answer: the search for the highest load of a broker, the same scenarios
//! against several brokers, and a page of results.
//!
//! Invariant: only `versus/launch.rs` starts a process or waits; the next trial, its grade and the
//! standings follow from results alone.
#![forbid(unsafe_code)]

pub mod page;
pub mod search;
pub mod versus;
