//! The built-in user store: users, groups and roles, one JSON object a line.
//!
//! ```text
//! {"user":"alice","password":"$argon2id$…","roles":["ops"],"rules":["allow pubsub devices/%c/#"]}
//! {"group":"night","roles":["ops"],"rules":[]}
//! {"role":"ops","rules":["allow sub #"]}
//! ```
//!
//! A file is replaced as a whole and never changed in place, so a reader sees the old one or the
//! new one.

mod error;
mod file;
pub mod import;
mod record;
mod rule_list;
mod store;
#[cfg(test)]
mod tests;

pub use error::StoreError;
pub use file::{LINE_BYTES_MAX, LINES_MAX, LockedStore, read, read_from};
pub use record::{PasswordHash, name_problem};
pub use rule_list::RuleList;
pub use store::{Group, Role, User, UserStore};
