//! Runs the authentication service against real servers, and kills them.
//!
//! ```text
//!   test --Login--> thrum_auth::AuthService --its protocol--> PostgreSQL | MariaDB | Redis | slapd | HTTP
//!                                                               (processes of the test, on ports of the loopback)
//! ```
//!
//! Invariant: every server is the test's own, in a folder of its own, bounded in time, and ends
//! with the test.

pub mod babble;
pub mod client;
pub mod crowd;
pub mod death;
pub mod figures;
pub mod http;
pub mod node;
pub mod process;
pub mod recital;
pub mod server;
pub mod siege;
pub mod silence;
pub mod sql;
pub mod standing;
pub mod token;
