//! Received messages to standard output: payloads, topics with payloads, or a format.

use std::io::{BufWriter, Stdout, Write as _};

use clap::Args;
use jiff::Zoned;

use super::{Console, Format, Received, Stop};

/// The format of printed messages.
#[derive(Debug, Args)]
pub(crate) struct PrintArgs {
    /// Print the topic before the payload
    #[arg(short, long, help_heading = "Output")]
    verbose: bool,

    /// Print as the format says: %t topic, %p payload, %q QoS, %j JSON, @H:@M:@S time, … (see the
    /// manual)
    #[arg(
        short = 'F',
        value_name = "FORMAT",
        allow_hyphen_values = true,
        help_heading = "Output"
    )]
    format: Option<String>,

    /// No line feed after a message
    #[arg(short = 'N', help_heading = "Output")]
    no_line_feed: bool,

    /// Spread JSON (%j and %J) over lines
    #[arg(long, help_heading = "Output")]
    pretty: bool,
}

impl PrintArgs {
    /// Checks the format.
    ///
    /// # Errors
    /// It is wrong.
    pub(crate) fn printer(&self, console: Console) -> Result<Printer, Stop> {
        let style = match &self.format {
            Some(format) => Style::Format(Format::parse(format, self.pretty).map_err(Stop::usage)?),
            None if self.verbose => Style::Verbose,
            None => Style::Payload,
        };
        let out = BufWriter::new(std::io::stdout());
        Ok(Printer {
            console,
            style,
            line_feed: !self.no_line_feed,
            line: Vec::new(),
            out,
        })
    }
}

/// Prints messages.
#[derive(Debug)]
pub(crate) struct Printer {
    console: Console,
    style: Style,
    line_feed: bool,
    line: Vec<u8>,
    out: BufWriter<Stdout>,
}

#[derive(Debug)]
enum Style {
    Payload,
    Verbose,
    Format(Format),
}

impl Printer {
    /// Prints one message; it may stay in the buffer.
    pub(crate) fn print(&mut self, received: Received<'_>) -> Result<(), Stop> {
        self.line.clear();
        if self.style.write(received, self.console, &mut self.line) {
            if self.line_feed {
                self.line.push(b'\n');
            }
            self.out.write_all(&self.line)?;
        }
        Ok(())
    }

    /// Empties the buffer.
    pub(crate) fn flush(&mut self) -> Result<(), Stop> {
        Ok(self.out.flush()?)
    }
}

impl Style {
    /// False if nothing is printed, not even a line feed.
    fn write(&self, received: Received<'_>, console: Console, line: &mut Vec<u8>) -> bool {
        let payload = received.publish.payload;
        match self {
            Self::Payload => line.extend_from_slice(payload),
            Self::Verbose => {
                line.extend_from_slice(received.topic.as_bytes());
                line.push(b' ');
                line.extend_from_slice(if payload.is_empty() {
                    b"(null)"
                } else {
                    payload
                });
            }
            Self::Format(format) => {
                if format.write(received, &Zoned::now(), line).is_err() {
                    let topic = received.topic;
                    console.warn(&format!("payload on topic {topic:?} is not JSON"));
                    return false;
                }
                return true;
            }
        }
        // An empty payload alone is not a line.
        !payload.is_empty() || matches!(self, Self::Verbose)
    }
}

#[cfg(test)]
mod tests {
    use thrum_codec::QoS;
    use thrum_codec::packet::Publish;
    use thrum_codec::properties::PublishProperties;

    use super::*;

    fn print(style: &Style, payload: &[u8]) -> Option<String> {
        let publish = Publish {
            dup: false,
            qos: QoS::AtMostOnce,
            retain: false,
            topic: "a/b",
            packet_id: None,
            properties: PublishProperties::default(),
            payload,
        };
        let mut line = Vec::new();
        let received = Received {
            topic: "a/b",
            publish: &publish,
        };
        let console = Console {
            quiet: true,
            debug: false,
        };
        let printed = style.write(received, console, &mut line);
        printed.then(|| String::from_utf8(line).unwrap())
    }

    #[test]
    fn an_empty_payload_is_printed_only_with_its_topic() {
        assert_eq!(print(&Style::Payload, b"x").as_deref(), Some("x"));
        assert_eq!(print(&Style::Payload, b""), None);
        assert_eq!(print(&Style::Verbose, b"x y").as_deref(), Some("a/b x y"));
        assert_eq!(print(&Style::Verbose, b"").as_deref(), Some("a/b (null)"));
        let format = |text| Style::Format(Format::parse(text, false).unwrap());
        assert_eq!(print(&format("%p"), b"").as_deref(), Some(""));
        assert_eq!(print(&format("%J"), b"{"), None);
    }
}
