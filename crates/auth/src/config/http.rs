//! Settings of an HTTP service that knows users.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::header::HeaderLine;
use super::server::{IN_FLIGHT_DEFAULT, ServerUrl, TIMEOUT_DEFAULT};
use super::{DurationSchema, SecretTextsSchema, TextsSchema, duration};

/// An HTTP service that says who may come in, and who may do what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HttpConfig {
    /// Asked about logins: `"https://host/path"`. Placeholders as `${client_id}` may stand in path
    /// and parameters and are percent-encoded. Default `""`: logins are not asked about, only
    /// decisions (`authorize_url`).
    pub url: ServerUrl,
    /// `"post"`: the values are the body. `"get"`: they are parameters of the URL, which many
    /// servers write into their logs, with the password. Default `"post"`, for that reason.
    pub method: HttpMethod,
    /// Form of the body of a POST: `"json"` or `"form"`. Default `"json"`.
    pub content_type: ContentType,
    /// Values for a question about a login, as `"name=text"`, the texts with placeholders. Default
    /// `client_id`, `username`, `password` and `peer`, each with the placeholder of its name.
    #[schemars(with = "TextsSchema")]
    pub body: Vec<String>,
    /// Headers sent with every request, as `"name: value"`. Values are not shown with the
    /// configuration, yet stand in its file: a token has a better place in `bearer_file`. Default
    /// `[]`.
    #[schemars(with = "SecretTextsSchema")]
    pub headers: Vec<HeaderLine>,
    /// File that holds a token and nothing else, sent as `Authorization: Bearer …`. Default `""`:
    /// no token.
    #[schemars(with = "String")]
    pub bearer_file: PathBuf,
    /// Asked whether a client may publish or subscribe, when no rule decides (see `acl.order`);
    /// placeholders as in `url`, and `${action}` (`publish`, `subscribe`), `${topic}`, `${qos}`,
    /// `${retain}`. Default `""`: not asked.
    pub authorize_url: ServerUrl,
    /// Values for a question about a decision. Default `client_id`, `username`, `peer`, `action`,
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
    /// Most requests at a time, those that wait for their turn included, for logins and for
    /// decisions each; one more is an error, and its client is refused (0x89) or its decision a
    /// denial. Default `1_000`: what a mass reconnect can bring to the door in a second.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub in_flight: u32,
    /// Time for one request, waiting and connecting included. Default `"5s"`: half of what a client
    /// gets to connect.
    #[serde(with = "duration")]
    #[schemars(with = "DurationSchema", range(min = 1, max = 60))]
    pub timeout: Duration,
}

/// How a service is asked.
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
    /// As a form of a web page.
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
