//! Rules to text, as the parser reads it.

use core::fmt::{self, Write as _};

use thrum_codec::QoS;

use super::filter::Filter;
use super::{Actions, QosSet, Who};

impl fmt::Display for Who {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = match self {
            Self::All => return formatter.write_str("all"),
            Self::Anonymous => return formatter.write_str("anonymous"),
            Self::Authenticated => return formatter.write_str("authenticated"),
            Self::Network(network) => return write!(formatter, "ip:{network}"),
            Self::ClientPrefix(prefix) => {
                formatter.write_str("client:")?;
                // Quotes keep a star of the name apart from the one behind it.
                if !prefix.is_empty() {
                    word(formatter, prefix, prefix.ends_with('*'))?;
                }
                return formatter.write_char('*');
            }
            Self::Client(name) => {
                formatter.write_str("client:")?;
                return word(formatter, name, name.ends_with('*'));
            }
            Self::User(name) => ("user", name),
            Self::Role(name) => ("role", name),
            Self::Group(name) => ("group", name),
            Self::Listener(name) => ("listener", name),
            Self::CommonName(name) => ("cn", name),
        };
        write!(formatter, "{kind}:")?;
        word(formatter, name, false)
    }
}

impl fmt::Display for Actions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match (self.publish, self.subscribe) {
            (true, true) => "pubsub",
            (true, false) => "pub",
            (false, true) => "sub",
            (false, false) => "nothing",
        })?;
        if self.qos == QosSet::ALL && self.retain.is_none() {
            return Ok(());
        }
        let mut separator = '(';
        if self.qos != QosSet::ALL {
            write!(formatter, "(qos={}", self.qos)?;
            separator = ' ';
        }
        if let Some(retain) = self.retain {
            write!(formatter, "{separator}retain={retain}")?;
        }
        formatter.write_char(')')
    }
}

impl fmt::Display for QosSet {
    /// The numbers, divided by commas.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce];
        let mut separator = "";
        for qos in all.into_iter().filter(|qos| self.contains(*qos)) {
            write!(formatter, "{separator}{}", qos as u8)?;
            separator = ",";
        }
        Ok(())
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_exact {
            formatter.write_str("eq ")?;
        }
        word(formatter, &self.text, &*self.text == "eq")
    }
}

/// In double quotes, if the caller or the contents require them.
fn word(formatter: &mut fmt::Formatter<'_>, text: &str, quoted: bool) -> fmt::Result {
    let is_plain = |letter: char| !letter.is_whitespace() && !letter.is_control();
    if !quoted && !text.is_empty() && !text.starts_with('"') && text.chars().all(is_plain) {
        return formatter.write_str(text);
    }
    formatter.write_char('"')?;
    for letter in text.chars() {
        match letter {
            '"' | '\\' => write!(formatter, "\\{letter}")?,
            _ if letter.is_control() => write!(formatter, "{}", letter.escape_unicode())?,
            _ => formatter.write_char(letter)?,
        }
    }
    formatter.write_char('"')
}
