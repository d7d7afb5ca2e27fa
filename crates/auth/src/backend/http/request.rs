//! Requests with placeholders: values are encoded for their place, so that none can change the
//! request.

use reqwest::Url;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::backend::settings::SetupError;
use crate::config::{ContentType, HttpConfig, HttpMethod, ServerUrl};
use crate::template::{NotText, Part, Place, Template, Values};

/// The parts of one kind of request.
#[derive(Clone, Debug)]
pub(super) struct RequestTemplate {
    url: Template,
    fields: Vec<(String, Template)>,
    method: HttpMethod,
    content_type: ContentType,
}

/// A request, ready to be sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Prepared {
    pub(super) url: Url,
    /// Body and its media type.
    pub(super) body: Option<(Vec<u8>, &'static str)>,
}

/// Why no request about a client is sent.
#[derive(Debug, PartialEq, Eq, Error)]
pub(super) enum Unfit {
    /// The URL needs a value that the client does not have.
    #[error("a value is missing")]
    Missing,
    /// Its password is not text.
    #[error(transparent)]
    NotText(#[from] NotText),
    /// A value would be a step in the path: `.` or `..`.
    #[error("a value would change the path of the URL")]
    Path,
}

/// Source of the templates of a request.
pub(super) struct Keys {
    pub(super) url: &'static str,
    pub(super) body: &'static str,
    pub(super) url_place: Place,
    pub(super) body_place: Place,
}

impl RequestTemplate {
    /// Reads the templates; none if there is no URL.
    pub(super) fn parse(
        keys: &Keys,
        url: &ServerUrl,
        body: &[String],
        config: &HttpConfig,
    ) -> Result<Option<Self>, SetupError> {
        let url = url.expose().trim();
        if url.is_empty() {
            return Ok(None);
        }
        let template =
            Template::parse(url, keys.url_place).map_err(SetupError::template(keys.url))?;
        check_url(&template).map_err(|what| SetupError::setting(keys.url, what))?;
        let fields = body.iter().map(|field| {
            let (name, text) = field.split_once('=').ok_or_else(|| {
                SetupError::setting(keys.body, format!("{field:?} is not \"name=text\""))
            })?;
            Template::parse(text, keys.body_place)
                .map(|template| (name.to_owned(), template))
                .map_err(SetupError::template(keys.body))
        });
        Ok(Some(Self {
            url: template,
            fields: fields.collect::<Result<_, _>>()?,
            method: config.method,
            content_type: config.content_type,
        }))
    }

    /// Fills in the values. A missing one is null in JSON and omitted elsewhere.
    pub(super) fn prepare(&self, values: &Values<'_>) -> Result<Prepared, Unfit> {
        let url = self
            .url
            .fill(values, percent_encode)?
            .ok_or(Unfit::Missing)?;
        if has_dot_segment(&url) {
            return Err(Unfit::Path);
        }
        let mut url = Url::parse(&url).map_err(|_| Unfit::Path)?;
        let fields = self
            .fields
            .iter()
            .map(|(name, template)| Ok((name.as_str(), template.fill(values, push)?)))
            .collect::<Result<Vec<_>, NotText>>()?;
        let known = fields
            .iter()
            .filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let body = match (self.method, self.content_type) {
            (HttpMethod::Get, _) => {
                url.query_pairs_mut().extend_pairs(known);
                None
            }
            (HttpMethod::Post, ContentType::Form) => {
                let mut form = url.clone();
                form.set_query(None);
                form.query_pairs_mut().extend_pairs(known);
                let body = form.query().unwrap_or_default().as_bytes().to_vec();
                Some((body, "application/x-www-form-urlencoded"))
            }
            (HttpMethod::Post, ContentType::Json) => {
                let object: Map<String, Value> = fields
                    .into_iter()
                    .map(|(name, value)| {
                        (name.to_owned(), value.map_or(Value::Null, Value::String))
                    })
                    .collect();
                Some((
                    Value::Object(object).to_string().into_bytes(),
                    "application/json",
                ))
            }
        };
        Ok(Prepared { url, body })
    }
}

fn push(value: &str, to: &mut String) {
    to.push_str(value);
}

/// Escapes every character that has a meaning in a URL.
fn percent_encode(value: &str, to: &mut String) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            to.push(char::from(byte));
        } else {
            to.push('%');
            for digit in [byte >> 4, byte & 0xf] {
                to.push(char::from(b"0123456789ABCDEF"[usize::from(digit)]));
            }
        }
    }
}

/// The path as it is written; `.` and `..` in it would change the path, even percent-encoded.
fn has_dot_segment(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    path.split('/').any(|segment| {
        let plain = segment.replace("%2E", ".").replace("%2e", ".");
        plain == "." || plain == ".."
    })
}

/// Placeholders may stand behind the server's name only.
fn check_url(template: &Template) -> Result<(), String> {
    let begin = match template.parts().first() {
        Some(Part::Text(text)) => text.as_str(),
        Some(Part::Value(_)) | None => "",
    };
    let (scheme, rest) = begin.split_once("://").unwrap_or_default();
    if !matches!(scheme, "http" | "https") {
        return Err("must begin with http:// or https://".to_owned());
    }
    if template.parts().len() > 1 && !rest.contains('/') {
        return Err(
            "a placeholder stands in the server's name: put it behind the next /".to_owned(),
        );
    }
    let sample: String = template
        .parts()
        .iter()
        .map(|part| match part {
            Part::Text(text) => text.as_str(),
            Part::Value(_) => "x",
        })
        .collect();
    match Url::parse(&sample) {
        Ok(url) if url.fragment().is_some() => Err("must have no # in it".to_owned()),
        Ok(_) if has_dot_segment(&sample) => Err("must have no . or .. in its path".to_owned()),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use thrum_access::Identity;

    use super::*;

    const KEYS: Keys = Keys {
        url: "url",
        body: "body",
        url_place: Place::LoginUrl,
        body_place: Place::Login,
    };

    fn template(url: &str, config: &HttpConfig) -> RequestTemplate {
        RequestTemplate::parse(&KEYS, &url.into(), &config.body, config)
            .expect("a request")
            .expect("a URL")
    }

    fn named(username: &str) -> Identity {
        Identity {
            client_id: "c".into(),
            username: Some(username.into()),
            ..Identity::default()
        }
    }

    #[test]
    fn a_post_has_the_values_in_json() {
        let template = template("https://h/auth", &HttpConfig::default());
        let identity = named("a\"}\n");
        let prepared = template
            .prepare(&Values::of_identity(&identity))
            .expect("fit");
        let (body, kind) = prepared.body.expect("a body");
        assert_eq!(kind, "application/json");
        assert_eq!(
            String::from_utf8(body).expect("text"),
            r#"{"client_id":"c","password":null,"peer":null,"username":"a\"}\n"}"#
        );
    }

    #[test]
    fn forms_and_parameters_omit_missing_values() {
        let mut config = HttpConfig {
            content_type: ContentType::Form,
            ..HttpConfig::default()
        };
        let identity = named("a&b=c");
        let values = Values::of_identity(&identity);
        let (body, _) = template("http://h/auth?k=v", &config)
            .prepare(&values)
            .expect("fit")
            .body
            .expect("a body");
        assert_eq!(body, b"client_id=c&username=a%26b%3Dc");
        config.method = HttpMethod::Get;
        let prepared = template("http://h/auth?k=v", &config)
            .prepare(&values)
            .expect("fit");
        assert_eq!(
            prepared.url.as_str(),
            "http://h/auth?k=v&client_id=c&username=a%26b%3Dc"
        );
        assert_eq!(prepared.body, None);
    }

    #[test]
    fn urls_that_a_client_could_bend_are_refused() {
        let config = HttpConfig::default();
        for url in [
            "https://${username}.example/",
            "https://h${client_id}",
            "${username}",
            "ftp://h/",
            "h/auth",
            "https://h/a/../b",
            "https://h/a#${username}",
            "https://",
        ] {
            let parsed = RequestTemplate::parse(&KEYS, &url.into(), &config.body, &config);
            assert!(parsed.is_err(), "{url}");
        }
    }

    proptest! {
        /// For every user name: server, number of path segments and names of parameters stay the
        /// same.
        #[test]
        fn no_name_changes_the_request(username in prop_oneof![".{0,30}", "[./%2eE?#&=@:\\\\]{0,8}"]) {
            let identity = named(&username);
            let values = Values::of_identity(&identity);
            let template = template("https://u@h:8/a/${username}/b?n=${username}&m=1", &HttpConfig::default());
            match template.prepare(&values) {
                Ok(prepared) => {
                    let url = &prepared.url;
                    let written = (url.host_str(), url.port(), url.username());
                    prop_assert_eq!(written, (Some("h"), Some(8), "u"));
                    let steps: Vec<&str> = url.path_segments().expect("a path").collect();
                    prop_assert_eq!((steps.len(), steps[0], steps[2]), (3, "a", "b"));
                    let pairs: Vec<_> = url.query_pairs().into_owned().collect();
                    prop_assert_eq!(pairs, vec![
                        ("n".to_owned(), username.clone()),
                        ("m".to_owned(), "1".to_owned()),
                    ]);
                    let (body, _) = prepared.body.expect("a body");
                    let body: Value = serde_json::from_slice(&body).expect("JSON");
                    prop_assert_eq!(body.as_object().map(Map::len), Some(4));
                    prop_assert_eq!(&body["username"], &Value::String(username));
                }
                Err(unfit) => {
                    prop_assert_eq!(unfit, Unfit::Path);
                    prop_assert!(username == "." || username == "..");
                }
            }
        }
    }
}
