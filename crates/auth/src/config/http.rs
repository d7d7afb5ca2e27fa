//! Settings of an HTTP service with users.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::header::HeaderLine;
use super::server::{IN_FLIGHT_DEFAULT, ServerUrl, TIMEOUT_DEFAULT};
use super::{DurationSchema, SecretTextsSchema, TextsSchema, duration};

/// An HTTP service that authenticates clients and decides about topics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HttpConfig {
    /// Address for logins: `"https://host/path"`. Placeholders such as `${client_id}` may stand in
    /// path and parameters and are percent-encoded. Default `""`: the service is not asked about
    /// logins, only about decisions (`authorize_url`).
    pub url: ServerUrl,
    /// `"post"`: the values are the body. `"get"`: they are parameters of the URL, which many
    /// servers write into their logs, with the password. Default `"post"`, for that reason.
    pub method: HttpMethod,
    /// Form of the body of a POST: `"json"` or `"form"`. Default `"json"`.
    pub content_type: ContentType,
    /// Values of a request about a login, as `"name=text"`, the texts with placeholders. Default
    /// `client_id`, `username`, `password` and `peer`, each with the placeholder of its name.
    #[schemars(with = "TextsSchema")]
    pub body: Vec<String>,
    /// Headers sent with every request, as `"name: value"`. Values are not shown with the
    /// configuration, but are in its file: put a token into `bearer_file` instead. Default `[]`.
    #[schemars(with = "SecretTextsSchema")]
    pub headers: Vec<HeaderLine>,
    /// File that contains only a token, sent as `Authorization: Bearer …`. Default `""`: no token.
    #[schemars(with = "String")]
    pub bearer_file: PathBuf,
    /// Address for decisions about publishing and subscribing, if no rule decides (see
    /// `acl.order`); placeholders as in `url`, and `${action}` (`publish`, `subscribe`),
    /// `${topic}`, `${qos}`, `${retain}`. Default `""`: not asked.
    pub authorize_url: ServerUrl,
    /// Values of a request about a decision. Default `client_id`, `username`, `peer`, `action`,
    /// `topic`, `qos` and `retain`, each with the placeholder of its name.
    #[schemars(with = "TextsSchema")]
    pub authorize_body: Vec<String>,
    /// File with the certificates (PEM) that the server's certificate is checked against. Default
    /// `""`: the certificates that the system trusts.
    #[schemars(with = "String")]
    pub ca: PathBuf,
    /// Most requests under way to the service, each on a connection of its own. Default `64`: a
    /// service that takes 10 ms answers 6,400 a second.
    #[schemars(range(min = 1, max = 10_000))]
    pub pool: u32,
    /// Most requests at a time, waiting ones included, for logins and for decisions each; one more
    /// is an error, and its client is refused (0x89) or its decision a denial. Default `1_000`: a
    /// mass reconnect can cause that many in a second.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub in_flight: u32,
    /// Time limit of one request, waiting and connecting included. Default `"5s"`: half of a
    /// client's time to connect.
    #[serde(with = "duration")]
    #[schemars(with = "DurationSchema", range(min = 1, max = 60))]
    pub timeout: Duration,
}

/// The HTTP method of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum HttpMethod {
    /// The values are the body.
    #[default]
    Post,
    /// The values are parameters of the URL.
    Get,
}

/// Form of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ContentType {
    /// An object in JSON.
    #[default]
    Json,
    /// In the encoding of a web form.
    Form,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            url: ServerUrl::default(),
            method: HttpMethod::Post,
            content_type: ContentType::Json,
            body: same_names(&["client_id", "username", "password", "peer"]),
            headers: Vec::new(),
            bearer_file: PathBuf::new(),
            authorize_url: ServerUrl::default(),
            authorize_body: same_names(&[
                "client_id",
                "username",
                "peer",
                "action",
                "topic",
                "qos",
                "retain",
            ]),
            ca: PathBuf::new(),
            pool: 64,
            in_flight: IN_FLIGHT_DEFAULT,
            timeout: TIMEOUT_DEFAULT,
        }
    }
}

fn same_names(names: &[&str]) -> Vec<String> {
    names
        .iter()
        .map(|name| format!("{name}=${{{name}}}"))
        .collect()
}
