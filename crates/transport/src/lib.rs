//! What lies between MQTT and the socket of a client: TLS and WebSocket, as bytes in and bytes out.
//!
//! Invariant: no socket, no thread and no clock in here; the caller moves the bytes.
#![forbid(unsafe_code)]
