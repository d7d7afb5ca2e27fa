//! The broker authenticates clients with real systems, which are killed, suspended and restored
//! under load.

mod databases;
mod directory;
mod panics;
mod services;
mod tokens;
