//! Notation of settings with units and words: `"64KiB"`, `"2h"`, `"127.0.0.1:1883"`, `"auto"`.

pub(super) mod bind;
pub(super) mod inherited_anonymous;
pub(super) mod networks;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::{Deserializer, Serialize, Serializer};
use thrum_engine::workers::WORKERS_MAX;
use thrum_routing::Strategy;
pub use thrum_settings::{
    AnonymousSchema, ByteSizeSchema, DurationSchema, format_duration, format_size, parse_duration,
    parse_size,
};
use thrum_settings::{Scalar, found, scalar, schema};
pub(super) use thrum_settings::{anonymous, byte_size, duration};

use super::{Anonymous, Bind, Workers, wildcard};

schema! {
    WorkersSchema: ["integer", "string"] "workers", "\"auto\" or a number from 1 to 256";
    BindSchema: ["string", "integer", "array"] "addresses",
        "\"address:port\", a port, \"unix:/path\", or a list of them";
    InheritedAnonymousSchema: ["boolean", "string"] "anonymous",
        "\"inherit\", \"loopback\", true or false";
    StrategySchema: ["string"] "strategy",
        "one of \"round_robin\", \"random\", \"sticky\", \"hash_client_id\", \"hash_topic\", \"local\"";
}

/// Parses `address:port`, `localhost:port` (both loopback addresses), or `port`, `:port` and
/// `*:port` (every address).
pub fn parse_bind(text: &str) -> Option<Vec<SocketAddr>> {
    let text = text.trim();
    if let Ok(address) = text.parse() {
        return Some(vec![address]);
    }
    if let Some(port) = text.strip_prefix("localhost:") {
        let port: u16 = port.parse().ok()?;
        return Some(vec![
            (Ipv4Addr::LOCALHOST, port).into(),
            (Ipv6Addr::LOCALHOST, port).into(),
        ]);
    }
    let port = text
        .strip_prefix("*:")
        .or_else(|| text.strip_prefix(':'))
        .unwrap_or(text);
    port.parse().ok().map(wildcard)
}

/// Parses `auto` or a number of threads.
pub fn parse_workers(text: &str) -> Option<Workers> {
    match text.trim() {
        "auto" => Some(Workers::Auto),
        number => {
            let count: u16 = number.parse().ok()?;
            let is_possible = (1..=WORKERS_MAX).contains(&usize::from(count));
            is_possible.then_some(Workers::Count(count))
        }
    }
}

/// `with` of the number of worker threads.
pub(super) mod workers {
    use super::{Deserializer, Scalar, Serialize, Serializer, Workers, WorkersSchema};

    pub(in super::super) fn deserialize<'de, D>(from: D) -> Result<Workers, D::Error>
    where
        D: Deserializer<'de>,
    {
        let workers = match super::scalar(from, WorkersSchema::EXPECTED)? {
            Scalar::Integer(count) => super::parse_workers(&count.to_string()),
            Scalar::Text(text) => super::parse_workers(&text),
            Scalar::Boolean(_) => None,
        };
        super::found(workers, WorkersSchema::EXPECTED)
    }

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature that serde calls"
    )]
    pub(in super::super) fn serialize<S>(workers: &Workers, to: S) -> Result<S::Ok, S::Error>
    where
        S: Serializer,
    {
        match workers {
            Workers::Auto => "auto".serialize(to),
            Workers::Count(count) => count.serialize(to),
        }
    }
}

/// `with` of the strategy of shared subscriptions.
pub(super) mod strategy {
    use super::{Deserializer, Scalar, Serialize, Serializer, Strategy, StrategySchema};

    pub(in super::super) fn deserialize<'de, D>(from: D) -> Result<Strategy, D::Error>
    where
        D: Deserializer<'de>,
    {
        let strategy = match super::scalar(from, StrategySchema::EXPECTED)? {
            Scalar::Text(text) => text.parse().ok(),
            Scalar::Boolean(_) | Scalar::Integer(_) => None,
        };
        super::found(strategy, StrategySchema::EXPECTED)
    }

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature that serde calls"
    )]
    pub(in super::super) fn serialize<S>(strategy: &Strategy, to: S) -> Result<S::Ok, S::Error>
    where
        S: Serializer,
    {
        strategy.name().serialize(to)
    }
}
