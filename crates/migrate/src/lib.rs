//! What other brokers are set up with, made into what this program is set up with: text to text.
//!
//! Invariant: a broker is never more open than it was; what cannot be carried over is left out and
//! reported.
#![forbid(unsafe_code)]

pub mod mosquitto;
