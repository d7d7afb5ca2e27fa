//! `-F`: how a received message is printed.
//!
//! `%` begins a parameter of the message (`%-10.5t`: left-aligned, at least 10 wide, at most 5),
//! `@` a parameter of strftime, `\` an escaped character.

mod json;
mod message;
mod parse;
#[cfg(test)]
mod tests;

use jiff::Zoned;
use thrum_codec::packet::Publish;

/// A message in its printed form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'a> {
    /// Topic name, a topic alias resolved.
    pub(crate) topic: &'a str,
    /// The packet.
    pub(crate) publish: &'a Publish<'a>,
}

/// A format that was checked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Format {
    segments: Vec<Segment>,
    pretty: bool,
}

/// A piece of a format.
#[derive(Debug, PartialEq, Eq)]
enum Segment {
    Literal(Vec<u8>),
    Parameter(Parameter, Layout),
    /// A character that strftime knows.
    Time(char),
    /// `@N`.
    Nanoseconds,
}

/// The meaning of `%` and a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parameter {
    TopicAlias,
    ContentType,
    CorrelationData,
    MessageExpiry,
    PayloadFormat,
    IsoTime,
    Json,
    JsonPayload,
    Length,
    PacketId,
    Payload,
    UserProperties,
    QoS,
    ResponseTopic,
    Retain,
    SubscriptionIdentifiers,
    Topic,
    UnixTime,
    LowerHex,
    UpperHex,
}

/// Alignment and width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Layout {
    left: bool,
    zeros: bool,
    width: usize,
    /// Longest text in characters; none is no limit.
    precision: Option<usize>,
}

/// The payload is not JSON, so `%J` cannot print it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotJson;

impl Format {
    /// Checks a format.
    ///
    /// # Errors
    /// The error.
    pub(crate) fn parse(text: &str, pretty: bool) -> Result<Self, String> {
        Ok(Self {
            segments: parse::segments(text)?,
            pretty,
        })
    }

    /// Appends the message in the format.
    ///
    /// # Errors
    /// The format requires the payload to be JSON, and it is not.
    pub(crate) fn write(
        &self,
        received: Received<'_>,
        at: &Zoned,
        out: &mut Vec<u8>,
    ) -> Result<(), NotJson> {
        for segment in &self.segments {
            match segment {
                Segment::Literal(bytes) => out.extend_from_slice(bytes),
                Segment::Time(letter) => out.extend_from_slice(strftime(*letter, at).as_bytes()),
                Segment::Nanoseconds => {
                    let nanoseconds = format!("{:09}", at.subsec_nanosecond());
                    out.extend_from_slice(nanoseconds.as_bytes());
                }
                Segment::Parameter(Parameter::Json, _) => {
                    self.write_json(&json::object(received, at, None), out);
                }
                Segment::Parameter(Parameter::JsonPayload, _) => {
                    let payload = json::checked(received.publish.payload).ok_or(NotJson)?;
                    self.write_json(&json::object(received, at, Some(payload)), out);
                }
                Segment::Parameter(parameter, layout) => {
                    message::write(*parameter, *layout, received, at, out);
                }
            }
        }
        Ok(())
    }

    fn write_json(&self, object: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(json::layout(object, self.pretty).as_bytes());
    }
}

/// Formats the time with `%` and this letter; a letter that strftime does not know is printed
/// itself.
fn strftime(letter: char, at: &Zoned) -> String {
    let config = jiff::fmt::strtime::Config::new().lenient(true);
    let format = format!("%{letter}");
    let time = jiff::fmt::strtime::BrokenDownTime::from(at);
    time.to_string_with_config(&config, &format)
        .unwrap_or(format)
}

/// `2016-08-10T09:47:38+0100`.
fn iso(at: &Zoned) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%z").to_string()
}
