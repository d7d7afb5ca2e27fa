//! The broker asks real systems who its clients are, and these die, hang and come back under load.

mod databases;
mod directory;
mod panics;
mod services;
mod tokens;
