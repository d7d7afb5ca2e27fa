//! Scenarios of one client.
