//! The real servers, each in a folder of its own on a free port of the loopback.

mod mariadb;
mod openldap;
mod postgres;
mod redis;

pub use mariadb::MariaDb;
pub use openldap::OpenLdap;
pub use postgres::Postgres;
pub use redis::Redis;
