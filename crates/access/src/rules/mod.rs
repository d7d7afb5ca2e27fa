//! Ordered rules for publishing and subscribing. The first rule that matches decides.
//!
//! # Grammar
//! One rule a line; empty lines and lines whose first character is `#` are skipped.
//!
//! ```text
//! RULE      = EFFECT WHO ACTION [QUALIFIERS] ["eq"] FILTER      divided by white space
//! EFFECT    = "allow" | "deny"
//! WHO       = "all"                    every client
//!           | "anonymous"              clients without user name
//!           | "authenticated"          clients with any user name
//!           | "user:" NAME             the client with this user name
//!           | "client:" NAME ["*"]     the client with this identifier; with a star, those that
//!                                      begin with it
//!           | "role:" NAME | "group:" NAME
//!           | "listener:" NAME         clients that came through this listener
//!           | "cn:" NAME               common name of the verified certificate
//!           | "ip:" ADDRESS ["/" PREFIX]
//! ACTION    = "pub" | "sub" | "pubsub"
//! QUALIFIERS= "(" ["qos=" N {"," N}] ["retain=" ("true" | "false")] ")"    no space before it
//! FILTER    = topic filter with placeholders, without $share/GROUP/
//! NAME, FILTER: bare, or in double quotes if there is white space in them; in quotes \", \\ and
//!             \u{HEX}
//! ```
//!
//! | placeholder | value |
//! |---|---|
//! | `%c` `${client_id}` `${clientid}` | client identifier |
//! | `%u` `${username}` | user name |
//! | `${cert.cn}` `${cert_common_name}` | common name of the verified certificate |
//! | `${listener}` | name of the listener |
//! | `${claim.NAME}` | claim of the token |
//! | `%%` `%$` | a percent sign, a dollar sign (needed before `{` only) |
//!
//! # Matching
//! - Topics match filters as in MQTT: `a/#` also matches `a`, `+` also an empty level, a filter
//!   that begins with a wildcard no topic that begins with `$`, and case counts.
//! - `qos` of a `sub` rule is the requested one of the subscription. `retain` applies to `pub`
//!   alone.
//! - `eq FILTER` with wildcards applies to subscriptions to exactly this filter and never to
//!   publishing. An `eq` rule that denies refuses the subscription, unless earlier rules have
//!   decided all of it. One that allows gives a right to every topic of its filter: they pass when
//!   messages are checked one by one. Without wildcards `eq a/b` is `a/b`.
//!
//! # Values that cannot be used
//! A value that contains `+`, `#`, `/` or NUL, or that begins the filter with a `$`, would change
//! the meaning of the rule, and a client may have chosen it for that. So an allowing rule then
//! matches nothing. A client must not evade a denying rule in this way: the rule denies everything
//! that its filter could have meant, that is everything from the level of the value on
//! (`devices/%c/config` becomes `devices/#`, for this one client). The same holds for a filter that
//! would become longer than a topic can be. If a value is missing or empty, the rule has nothing to
//! allow or to deny for this client, and matches nothing in either case.
//!
//! # Limits
//! [`RULES_MAX`] rules in a [`Rules`], [`FITTING_MAX`] that match one client. Evaluation allocates
//! nothing and takes time in proportion to the rules that match the client and the levels of their
//! filters.

mod coverage;
mod error;
mod filter;
mod mosquitto;
mod parse;
mod print;
mod relation;
mod resolved;
mod rule;
mod set;
mod source;

pub use coverage::{Coverage, Part};
pub use error::{Hint, Problem, RuleError};
pub use resolved::{Decision, Resolved, RuleId, TooManyRules};
pub use rule::{Actions, QosSet, Rule, Who};
pub use set::Rules;
pub use source::Source;

/// Most rules of one set: a file of as many lines takes about 200 MB, and one for each client needs
/// no more.
pub const RULES_MAX: usize = 1_000_000;
/// Most rules that may match one client: its messages are checked against them one by one.
pub const FITTING_MAX: usize = 10_000;
/// Most errors that are reported of one file: more of them would not be read.
const ERRORS_MAX: usize = 100;
