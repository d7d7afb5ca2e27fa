//! Runs the authentication service against real servers, and kills them.
//!
//! ```text
//!   test --Login--> thrum_auth::AuthService
//!        --its protocol--> PostgreSQL | MariaDB | Redis | slapd | HTTP
//!                          (processes of the test, on ports of the loopback)
//! ```
//!
//! Invariant: every server is the test's own, in a folder of its own, bounded in time, and ends
//! with the test.

pub mod brief_clients;
pub mod client;
pub mod figures;
pub mod garbage_server;
pub mod http;
pub mod node;
pub mod outage;
pub mod permanent_clients;
pub mod process;
pub mod replayed_dialogue;
pub mod restart;
pub mod server;
pub mod silent_server;
pub mod sql;
pub mod token;
