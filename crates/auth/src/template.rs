//! Texts with placeholders for properties of a client: parsed once, filled in as values, never as
//! text.

use std::borrow::Cow;

use thiserror::Error;
use thrum_access::{Identity, Login, Question, Secret};

/// A property of a client, or of the action that it requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Placeholder {
    /// Client identifier.
    ClientId,
    /// User name.
    Username,
    /// Password, as the client sent it.
    Password,
    /// Address of the client.
    Address,
    /// Name of its listener.
    Listener,
    /// Common name of its certificate.
    CommonName,
    /// Subject of its certificate.
    Subject,
    /// A claim of its token.
    Claim(Box<str>),
    /// `publish` or `subscribe`.
    Action,
    /// Topic name or topic filter.
    Topic,
    /// Quality of service.
    Qos,
    /// `true` or `false`.
    Retain,
}

/// The place of a template: which placeholders are valid there, and whether `%u` is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A query or a request body about a login.
    Login,
    /// A key or a filter that finds a user: no password in it.
    Lookup,
    /// A URL about a login: `%` belongs to its escapes.
    LoginUrl,
    /// A request body about a decision.
    Question,
    /// A URL about a decision.
    QuestionUrl,
}

/// Why a text is not a template.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum TemplateError {
    /// `${…` without its end.
    #[error("`${{` without `}}`: close the placeholder, as in ${{username}}")]
    Open,
    /// An unknown name.
    #[error(
        "${{{0}}} is not known: use ${{client_id}}, ${{username}}, ${{password}}, ${{peer}}, ${{listener}}, \
         ${{cert.cn}}, ${{cert.subject}}, ${{claim.NAME}}, ${{action}}, ${{topic}}, ${{qos}} or ${{retain}}"
    )]
    Unknown(String),
    /// It has no value in this place.
    #[error("${{{0}}} has no value here")]
    Misplaced(String),
}

/// The client's password is needed as text and is not text.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("the password is not text")]
pub(crate) struct NotText;

/// A text with placeholders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Template {
    parts: Vec<Part>,
}

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Stays as it is.
    Text(String),
    /// Is replaced.
    Value(Placeholder),
}

impl Template {
    /// Reads `${name}`, and where `%` is free, `%c` (client identifier), `%u` (user name) and `%%`
    /// (a percent sign).
    pub(crate) fn parse(text: &str, place: Place) -> Result<Self, TemplateError> {
        let mut template = Self::default();
        let mut rest = text;
        while let Some(at) = rest.find(['$', '%']) {
            let (before, tail) = rest.split_at(at);
            template.push_text(before);
            rest = template.push_mark(tail, place)?;
        }
        template.push_text(rest);
        Ok(template)
    }

    /// Its pieces, in order.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The placeholders in it.
    pub(crate) fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Value(placeholder) => Some(placeholder),
        })
    }

    /// The text with the values, each written by `escape`; none if a value is missing.
    ///
    /// # Errors
    /// The password is asked for and is not text.
    pub(crate) fn fill(
        &self,
        values: &Values<'_>,
        escape: fn(&str, &mut String),
    ) -> Result<Option<String>, NotText> {
        let mut filled = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Value(placeholder) => match values.of(placeholder)? {
                    Some(value) => escape(&value, &mut filled),
                    None => return Ok(None),
                },
            }
        }
        Ok(Some(filled))
    }

    /// A placeholder or an escape at the start of the text, or its first character; returns the
    /// rest.
    fn push_mark<'a>(&mut self, text: &'a str, place: Place) -> Result<&'a str, TemplateError> {
        if let Some(tail) = text.strip_prefix("${") {
            let (name, tail) = tail.split_once('}').ok_or(TemplateError::Open)?;
            self.parts.push(Part::Value(place.placeholder(name)?));
            return Ok(tail);
        }
        let length = match text.get(..2) {
            Some("%c") if place.has_percent() => {
                self.parts.push(Part::Value(Placeholder::ClientId));
                2
            }
            Some("%u") if place.has_percent() => {
                self.parts.push(Part::Value(Placeholder::Username));
                2
            }
            Some("%%") if place.has_percent() => {
                self.push_text("%");
                2
            }
            _ => {
                self.push_text(&text[..1]);
                1
            }
        };
        Ok(&text[length..])
    }

    fn push_text(&mut self, text: &str) {
        match self.parts.last_mut() {
            _ if text.is_empty() => {}
            Some(Part::Text(last)) => last.push_str(text),
            _ => self.parts.push(Part::Text(text.to_owned())),
        }
    }
}

impl Place {
    fn has_percent(self) -> bool {
        !matches!(self, Self::LoginUrl | Self::QuestionUrl)
    }

    /// The placeholder of this name, if it has a value here.
    fn placeholder(self, name: &str) -> Result<Placeholder, TemplateError> {
        let placeholder =
            Placeholder::named(name).ok_or_else(|| TemplateError::Unknown(name.to_owned()))?;
        let about_question = matches!(self, Self::Question | Self::QuestionUrl);
        let fits = match placeholder {
            Placeholder::Password => matches!(self, Self::Login | Self::LoginUrl),
            Placeholder::Action | Placeholder::Topic | Placeholder::Qos | Placeholder::Retain => {
                about_question
            }
            _ => true,
        };
        fits.then_some(placeholder)
            .ok_or_else(|| TemplateError::Misplaced(name.to_owned()))
    }
}

impl Placeholder {
    /// By its name, or that of EMQX.
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "client_id" | "clientid" => Self::ClientId,
            "username" => Self::Username,
            "password" => Self::Password,
            "peer" | "peerhost" => Self::Address,
            "listener" => Self::Listener,
            "cert.cn" | "cert_common_name" => Self::CommonName,
            "cert.subject" | "cert_subject" => Self::Subject,
            "action" => Self::Action,
            "topic" => Self::Topic,
            "qos" => Self::Qos,
            "retain" => Self::Retain,
            _ => Self::Claim(name.strip_prefix("claim.")?.into()),
        })
    }
}

/// The values for filling in a template.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values<'a> {
    identity: &'a Identity,
    password: Option<&'a Secret>,
    question: Option<&'a Question>,
}

impl<'a> Values<'a> {
    /// Of a client that logs in.
    pub(crate) fn of_login(login: &'a Login) -> Self {
        Self {
            identity: &login.identity,
            password: login.password.as_ref(),
            question: None,
        }
    }

    /// Of an admitted client.
    pub(crate) fn of_identity(identity: &'a Identity) -> Self {
        Self {
            identity,
            password: None,
            question: None,
        }
    }

    /// Of a client that requests an action.
    pub(crate) fn of_question(question: &'a Question) -> Self {
        Self {
            question: Some(question),
            ..Self::of_identity(&question.identity)
        }
    }

    /// The value, if there is one.
    ///
    /// # Errors
    /// The password is not text.
    pub(crate) fn of(&self, placeholder: &Placeholder) -> Result<Option<Cow<'a, str>>, NotText> {
        let certificate = self.identity.certificate.as_deref();
        Ok(match placeholder {
            Placeholder::ClientId => Some(Cow::from(&*self.identity.client_id)),
            Placeholder::Username => self.identity.username.as_deref().map(Cow::from),
            Placeholder::Password => match self.password {
                Some(password) => Some(password.expose_str().ok_or(NotText)?.into()),
                None => None,
            },
            Placeholder::Address => self
                .identity
                .address
                .map(|address| address.to_string().into()),
            Placeholder::Listener => Some(Cow::from(&*self.identity.listener)),
            Placeholder::CommonName => certificate
                .and_then(|certificate| certificate.common_name.as_deref())
                .map(Cow::from),
            Placeholder::Subject => certificate.map(|certificate| (&*certificate.subject).into()),
            Placeholder::Claim(name) => self
                .identity
                .claims
                .iter()
                .find(|(claim, _)| claim == name)
                .map(|(_, value)| (&**value).into()),
            Placeholder::Action => self
                .question
                .map(|question| action(question.is_publish).into()),
            Placeholder::Topic => self.question.map(|question| (&*question.topic).into()),
            Placeholder::Qos => self
                .question
                .map(|question| u8::from(question.qos).to_string().into()),
            Placeholder::Retain => self
                .question
                .map(|question| question.retain.to_string().into()),
        })
    }
}

fn action(is_publish: bool) -> &'static str {
    if is_publish { "publish" } else { "subscribe" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity {
            client_id: "meter-1".into(),
            username: Some("ann".into()),
            claims: vec![("site".into(), "north".into())],
            ..Identity::default()
        }
    }

    fn filled(text: &str, place: Place) -> Option<String> {
        let template = Template::parse(text, place).expect("a template");
        template
            .fill(&Values::of_identity(&identity()), |value, to| {
                to.push_str(value);
            })
            .expect("text")
    }

    #[test]
    fn placeholders_are_replaced_and_the_rest_stays() {
        for (text, expected) in [
            ("mqtt:%u:%c", "mqtt:ann:meter-1"),
            ("${username}@${clientid}@${claim.site}", "ann@meter-1@north"),
            ("100%% of %d is $5 {x}", "100% of %d is $5 {x}"),
            ("", ""),
        ] {
            assert_eq!(filled(text, Place::Lookup).as_deref(), Some(expected));
        }
        assert_eq!(
            filled("/a%c3%a4/${username}", Place::LoginUrl).as_deref(),
            Some("/a%c3%a4/ann")
        );
    }

    #[test]
    fn a_value_that_is_missing_leaves_nothing_to_ask() {
        for text in [
            "${peer}",
            "x ${cert.cn}",
            "${cert.subject}",
            "${claim.role}",
        ] {
            assert_eq!(filled(text, Place::Lookup), None, "{text}");
        }
    }

    #[test]
    fn unknown_open_and_misplaced_placeholders_are_refused() {
        let error = |text, place| Template::parse(text, place).expect_err("no template");
        assert_eq!(error("${username", Place::Login), TemplateError::Open);
        assert_eq!(
            error("${user}", Place::Login),
            TemplateError::Unknown("user".to_owned())
        );
        for (text, place) in [
            ("${password}", Place::Lookup),
            ("${password}", Place::Question),
            ("${topic}", Place::Login),
        ] {
            assert!(matches!(error(text, place), TemplateError::Misplaced(_)));
        }
    }

    #[test]
    fn a_password_that_is_not_text_is_an_error() {
        let identity = identity();
        let password = Secret::new(&[0xff, 0xfe]);
        let values = Values {
            password: Some(&password),
            ..Values::of_identity(&identity)
        };
        assert_eq!(values.of(&Placeholder::Password), Err(NotText));
    }
}
