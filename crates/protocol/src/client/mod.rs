//! The client side of one connection and session.
