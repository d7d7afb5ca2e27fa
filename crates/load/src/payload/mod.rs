//! The contents of a message: its mark, and the payload of the scenario.
//!
//! | payload | mark |
//! |---|---|
//! | size, random bytes | over the first 16 bytes |
//! | text that starts with `{` | first member of the object: `{"thrum":"<40 digits>",` |
//! | any other text | before it: `thrum:<40 digits> ` |
//! | file with a JSON object | first member of the object |
//! | any other file | over the first 16 bytes: the size stays |
//!
//! The last eight of the 40 digits are a CRC-32C of all other bytes of the text.
//!
//! # Places
//! A text may have places that are filled in for each message:
//!
//! | place | filled with |
//! |---|---|
//! | `{i}` | number of the client |
//! | `{seq}` | number of the message of this client, from 0 |
//! | `{now_ms}` | milliseconds since 1970 |
//! | `{now}` | the same as `2026-11-21T09:12:03.250Z` |
//! | `{random:N}` | N random hexadecimal digits |
//! | `{int:MIN:MAX}` | a random whole number, both limits included |
//! | `{float:MIN:MAX}` | a random number with as many decimals as its limits show, at least two |
//! | `{uuid}` | a random UUID, version 4 |
//!
//! Only one of these words directly after `{` makes a placeholder; all other braces are literal, so
//! JSON needs no escaping. A placeholder in double braces stays text: `{{seq}}` becomes `{seq}`.

mod checksum;
mod filler;
mod number;
mod parse;
mod place;
mod template;
#[cfg(test)]
pub(crate) mod tests;

pub use filler::Filler;
pub use parse::PlaceError;
pub use template::{PAYLOAD_BYTES_MAX, PLACES_MAX, PayloadError, ReadFile, Template};
