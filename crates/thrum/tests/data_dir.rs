//! `thrum sessions`, `retained`, `backup` and `bans` as people run them, on data directories that
//! the store has written.
#![expect(clippy::unwrap_used, reason = "a failed setup should panic")]

#[cfg(feature = "management")]
#[path = "data_dir/access.rs"]
mod access;
#[cfg(feature = "management")]
#[path = "data_dir/access_commands.rs"]
mod access_commands;
#[cfg(feature = "management")]
#[path = "data_dir/administrators.rs"]
mod administrators;
#[cfg(feature = "management")]
#[expect(dead_code, reason = "other tests revoke certificates")]
#[path = "transports/authority.rs"]
mod authority;
#[path = "data_dir/backup.rs"]
mod backup;
#[cfg(feature = "management")]
#[path = "data_dir/backup_running.rs"]
mod backup_running;
#[path = "data_dir/bans.rs"]
mod bans;
#[cfg(feature = "management")]
#[path = "data_dir/clients.rs"]
mod clients;
#[path = "data_dir/folder.rs"]
mod folder;
#[path = "data_dir/links.rs"]
mod links;
#[cfg(feature = "management")]
#[path = "data_dir/lists.rs"]
mod lists;
#[path = "data_dir/looking.rs"]
mod looking;
#[path = "data_dir/refusal.rs"]
mod refusal;
#[cfg(feature = "management")]
#[path = "data_dir/remote.rs"]
mod remote;
#[path = "data_dir/retained.rs"]
mod retained;
#[path = "data_dir/server.rs"]
mod server;
#[path = "data_dir/sessions.rs"]
mod sessions;
#[path = "data_dir/warnings.rs"]
mod warnings;
