//! A command whose arguments have placeholders: cut into arguments first, filled in afterwards.

use thiserror::Error;

use crate::template::{NotText, Place, Template, TemplateError, Values};

/// A command that reads a user or its rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) verb: Verb,
    key: Template,
    /// Requested fields; none for all.
    pub(super) fields: Vec<String>,
}

/// The supported commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// Some fields of a hash.
    Hmget,
    /// One field of a hash.
    Hget,
    /// All fields of a hash.
    Hgetall,
    /// A text.
    Get,
}

/// Why a text is not a command.
#[derive(Debug, PartialEq, Eq, Error)]
pub(super) enum CommandError {
    /// A command that does not read.
    #[error("must be HMGET key field …, HGET key field, HGETALL key or GET key")]
    Shape,
    /// Double quotes that are not closed.
    #[error("double quotes are not closed")]
    Quotes,
    /// A placeholder in the name of a field would let a client choose which field is its password.
    #[error("{0} is the name of a field: placeholders stand in the key only")]
    Field(String),
    /// The same key for all clients.
    #[error("the key has no placeholder: every client would find the same user")]
    NoPlaceholder,
    /// A placeholder is wrong.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

impl Verb {
    /// In its form on the wire.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Hmget => "HMGET",
            Self::Hget => "HGET",
            Self::Hgetall => "HGETALL",
            Self::Get => "GET",
        }
    }
}

impl Command {
    /// Reads a command.
    pub(super) fn parse(text: &str) -> Result<Self, CommandError> {
        let mut words = words(text)?.into_iter();
        let (verb, key) = words.next().zip(words.next()).ok_or(CommandError::Shape)?;
        let fields: Vec<String> = words.collect();
        let verb = match (verb.to_ascii_uppercase().as_str(), fields.len()) {
            ("HMGET", 1..) => Verb::Hmget,
            ("HGET", 1) => Verb::Hget,
            ("HGETALL", 0) => Verb::Hgetall,
            ("GET", 0) => Verb::Get,
            _ => return Err(CommandError::Shape),
        };
        for field in &fields {
            if Template::parse(field, Place::Lookup)?
                .placeholders()
                .next()
                .is_some()
            {
                return Err(CommandError::Field(field.clone()));
            }
        }
        let key = Template::parse(&key, Place::Lookup)?;
        if key.placeholders().next().is_none() {
            return Err(CommandError::NoPlaceholder);
        }
        Ok(Self { verb, key, fields })
    }

    /// The key for this client; none if a value is missing.
    pub(super) fn key(&self, values: &Values<'_>) -> Result<Option<String>, NotText> {
        self.key.fill(values, |value, key| key.push_str(value))
    }
}

/// Cuts at spaces outside of double quotes.
fn words(text: &str) -> Result<Vec<String>, CommandError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    for letter in text.chars() {
        match letter {
            '"' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            _ if letter.is_whitespace() && !is_quoted => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    (!is_quoted).then_some(words).ok_or(CommandError::Quotes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use thrum_access::Identity;

    use super::*;

    fn named(username: &str) -> Identity {
        Identity {
            username: Some(username.into()),
            ..Identity::default()
        }
    }

    #[test]
    fn commands_that_read_are_read() {
        for (text, verb, fields) in [
            ("HMGET mqtt_user:%u password_hash salt", Verb::Hmget, 2),
            (
                "hget  \"all users\":${username}  password_hash",
                Verb::Hget,
                1,
            ),
            ("HGETALL mqtt_acl:${client_id}", Verb::Hgetall, 0),
            ("GET u:%u", Verb::Get, 0),
        ] {
            let command = Command::parse(text).expect(text);
            assert_eq!(
                (command.verb, command.fields.len()),
                (verb, fields),
                "{text}"
            );
        }
    }

    #[test]
    fn other_commands_are_refused() {
        for text in [
            "",
            "HMGET",
            "HMGET u:%u",
            "HGETALL u:%u field",
            "DEL u:%u",
            "FLUSHALL",
            "EVAL x 0",
            "GET \"u:%u",
            "HGETALL users",
            "HMGET u:%u ${username}",
            "GET u:${password}",
            "GET u:${topic}",
        ] {
            assert!(Command::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_client_without_user_name_has_no_key() {
        let command = Command::parse("GET u:%u").expect("a command");
        let key = command.key(&Values::of_identity(&Identity::default()));
        assert_eq!(key, Ok(None));
    }

    proptest! {
        /// For every client name: its name is a part of the key, and the key is one argument.
        #[test]
        fn no_name_changes_the_command(username in ".{0,40}") {
            let command = Command::parse("HMGET mqtt_user:%u password_hash salt").expect("a command");
            let identity = named(&username);
            let key = command.key(&Values::of_identity(&identity));
            prop_assert_eq!(key, Ok(Some(format!("mqtt_user:{username}"))));
            prop_assert_eq!(&command.fields, &["password_hash", "salt"]);
        }
    }
}
