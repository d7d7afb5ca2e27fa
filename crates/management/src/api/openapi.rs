//! `/openapi.json`: the description of all routes, made of the handlers and compared with the
//! committed file by a test.

use std::collections::BTreeMap;
use std::future::{Ready, ready};

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use utoipa::openapi::path::{Operation, PathItem, Paths};
use utoipa::openapi::schema::{Array, Object, Schema, Type};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    ArrayBuilder, ComponentsBuilder, Content, InfoBuilder, ObjectBuilder, OpenApi, OpenApiBuilder,
    Ref, RefOr, Response, ResponseBuilder, Server,
};
use utoipa::{IntoResponses, PartialSchema as _};

use super::Problem;
use super::entrance::Right;
use super::problem::PROBLEM_TYPE;
use crate::login::{COOKIE_NAME, Role, Scope};

/// The document as it is committed and served.
pub(super) const DOCUMENT: &str = include_str!("../../../../docs/api/openapi.json");

/// Names of the security schemes.
const KEY: &str = "api_key";
const SESSION: &str = "session";

const DESCRIPTION: &str = "\
What a broker shows and does for its operators. A program sends an API key, a browser the cookie of \
a session, and with each change its token in the header `x-thrum-token`; at the control socket in \
the data directory neither is needed. The scopes that a route needs are in its security \
requirement. Errors are problem details (RFC 9457). Lists have a `limit` and a `cursor`; `next` is \
the cursor of the next page, and null on the last one. Fields may be added to answers, and routes \
and optional parameters to the interface; nothing else changes below `/api/v1`.";

/// Groups of routes.
const TAGS: [(&str, &str); 16] = [
    (
        "status",
        "The state of the broker, its figures and its audit log",
    ),
    ("clients", "Clients, their sessions and what they have"),
    ("subscriptions", "Subscriptions and shared groups"),
    ("messages", "Publish, and retained messages"),
    ("diagnosis", "Timelines, traces, explanations and drops"),
    (
        "live",
        "What changes: streams, topics and the last 15 minutes",
    ),
    (
        "access",
        "Bans, users, roles, groups, rules, and a login that is tried",
    ),
    (
        "configuration",
        "Settings with their origins, plans, changes and versions",
    ),
    ("listeners", "Listeners and their certificates"),
    ("logs", "The log of the broker"),
    ("alarms", "What somebody has to do something about"),
    (
        "backups",
        "Copies of all that the broker has stored, made while it runs",
    ),
    (
        "benchmarks",
        "Load of this broker or of another one, by a process of its own, and its results",
    ),
    (
        "administrators",
        "Administrators, their sessions and API keys",
    ),
    ("login", "The caller itself"),
    ("interface", "This document"),
];

/// Answers that are problems, by status.
const PROBLEMS: [(&str, &str); 17] = [
    ("400", "The request is invalid."),
    (
        "401",
        "The caller is unknown, or shows a wrong key, password or code.",
    ),
    ("403", "The caller may not do this."),
    ("404", "What the request names is not there."),
    ("408", "The request was not read and answered in time."),
    ("409", "The state of the broker does not permit this."),
    (
        "412",
        "A precondition does not hold: what it is about has changed, or is there already.",
    ),
    ("413", "The body is too long."),
    ("415", "The body is not JSON."),
    (
        "422",
        "The broker cannot take this over; nothing has changed.",
    ),
    (
        "429",
        "There are too many requests of this kind; `Retry-After` may say how long to wait.",
    ),
    ("500", "The broker has made an error, which is in its log."),
    ("501", "The program was built without this part."),
    (
        "502",
        "The OpenID Connect provider does not answer as it should.",
    ),
    ("503", "The broker is stopping, or cannot store the change."),
    ("504", "Workers of the broker have not answered in time."),
    (
        "507",
        "There is no room: on the disk, in the audit log, or within a limit.",
    ),
];

/// Statuses that every route may answer.
const COMMON: [&str; 5] = ["401", "403", "408", "429", "500"];

/// What each status without a text of its own means.
const DONE: [(&str, &str); 3] = [
    ("200", "The answer."),
    ("201", "It was added."),
    ("204", "It was done."),
];

type Answers = BTreeMap<String, RefOr<Response>>;

/// Answers of a route that asks the workers of the broker.
pub(super) enum Asked {}

impl IntoResponses for Asked {
    fn responses() -> Answers {
        problems(&["503", "504"])
    }
}

/// Answers of a route that reads or writes the audit log, as every change does.
pub(super) enum Audited {}

impl IntoResponses for Audited {
    fn responses() -> Answers {
        problems(&["507"])
    }
}

/// Answers of a route that changes administrators or keys.
pub(super) enum Stored {}

impl IntoResponses for Stored {
    fn responses() -> Answers {
        problems(&["503", "507"])
    }
}

/// Answer of a route about something that may not be there.
pub(super) enum NotFound {}

impl IntoResponses for NotFound {
    fn responses() -> Answers {
        problems(&["404"])
    }
}

/// Answer of a route that the state of the broker may not permit.
pub(super) enum Conflict {}

impl IntoResponses for Conflict {
    fn responses() -> Answers {
        problems(&["409"])
    }
}

/// Answer of a route that takes `If-Match` and `If-None-Match`.
pub(super) enum Preconditioned {}

impl IntoResponses for Preconditioned {
    fn responses() -> Answers {
        problems(&["412"])
    }
}

/// Answers of a route that shows a thing with an `etag`.
pub(super) enum Known {}

impl IntoResponses for Known {
    fn responses() -> Answers {
        let unchanged = ResponseBuilder::new().description("It is the one that the caller knows.");
        let mut answers = problems(&["412"]);
        answers.insert("304".to_owned(), RefOr::T(unchanged.build()));
        answers
    }
}

/// Answers of a route that asks the program around the broker.
pub(super) enum Programmed {}

impl IntoResponses for Programmed {
    fn responses() -> Answers {
        problems(&["503", "504"])
    }
}

/// Answers of a route that plans or changes the configuration.
pub(super) enum Configured {}

impl IntoResponses for Configured {
    fn responses() -> Answers {
        problems(&["409", "422", "503", "504"])
    }
}

/// Answer of a route of a part that a program may be without.
pub(super) enum LeftOut {}

impl IntoResponses for LeftOut {
    fn responses() -> Answers {
        problems(&["501"])
    }
}

/// Answer of a route that asks the OpenID Connect provider.
pub(super) enum AskedProvider {}

impl IntoResponses for AskedProvider {
    fn responses() -> Answers {
        problems(&["502", "503"])
    }
}

fn problems(statuses: &[&str]) -> Answers {
    let statuses = statuses.iter();
    statuses
        .map(|status| ((*status).to_owned(), problem(status)))
        .collect()
}

fn problem(status: &str) -> RefOr<Response> {
    RefOr::Ref(Ref::from_response_name(format!("Problem{status}")))
}

/// The document before its routes.
pub(super) fn without_routes() -> OpenApi {
    let info = InfoBuilder::new()
        .title("The management interface of thrum")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(DESCRIPTION));
    let tags = TAGS.map(|(name, about)| {
        let tag = TagBuilder::new().name(name).description(Some(about));
        tag.build()
    });
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("thrum_ID_SECRET")
        .build();
    let about = "Of a login; over TLS its name begins with `__Host-`";
    let cookie = ApiKey::Cookie(ApiKeyValue::with_description(COOKIE_NAME, about));
    let mut components = ComponentsBuilder::new()
        .security_scheme(KEY, SecurityScheme::Http(bearer))
        .security_scheme(SESSION, SecurityScheme::ApiKey(cookie))
        .schema("Problem", Problem::schema());
    for (status, about) in PROBLEMS {
        let content = Content::new(Some(Ref::from_schema_name("Problem")));
        let response = ResponseBuilder::new()
            .description(about)
            .content(PROBLEM_TYPE, content);
        components = components.response(format!("Problem{status}"), response.build());
    }
    // Relative to the document: it is right below every path of a proxy.
    OpenApiBuilder::new()
        .info(info.build())
        .servers(Some([Server::new("../v1")]))
        .tags(Some(tags))
        .components(Some(components.build()))
        .build()
}

/// Adds to operations what follows from the right that they need, and from their parameters.
pub(super) fn complete(paths: &mut Paths, right: Right) {
    for operation in paths.paths.values_mut().flat_map(operations) {
        operation.security = Some(security(right));
        let body = operation.request_body.as_ref();
        let has_body = body.is_some();
        let has_json = body.is_some_and(|body| match body {
            RefOr::T(body) => body.content.contains_key("application/json"),
            RefOr::Ref(_) => false,
        });
        let has_input = has_body || operation.parameters.is_some();
        let answers = &mut operation.responses.responses;
        let invalid = has_input.then_some("400").into_iter();
        let unread = ["413", "415"].into_iter().filter(|_| has_json);
        for status in COMMON.into_iter().chain(invalid).chain(unread) {
            let answer = answers.entry(status.to_owned());
            answer.or_insert_with(|| problem(status));
        }
        for (status, answer) in answers {
            describe(status, answer);
        }
    }
}

/// Says of an answer that all of its fields are there, also those that may be null. Types of bodies
/// refuse fields that they do not know; those of answers may get more.
pub(super) fn complete_schema(schema: &mut RefOr<Schema>) {
    let RefOr::T(schema) = schema else {
        return;
    };
    match schema {
        Schema::Object(object) if object.additional_properties.is_none() => {
            object.required = object.properties.keys().cloned().collect();
        }
        Schema::AllOf(all) => all.items.iter_mut().for_each(complete_schema),
        Schema::OneOf(one) => one.items.iter_mut().for_each(complete_schema),
        Schema::AnyOf(any) => any.items.iter_mut().for_each(complete_schema),
        _ => {}
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let methods = [
        &mut item.get,
        &mut item.put,
        &mut item.post,
        &mut item.patch,
        &mut item.delete,
    ];
    methods.into_iter().flatten()
}

fn security(right: Right) -> Vec<SecurityRequirement> {
    let none: [&str; 0] = [];
    match right {
        Right::Nothing => Vec::new(),
        Right::Login => vec![
            SecurityRequirement::new(KEY, none),
            SecurityRequirement::new(SESSION, none),
        ],
        Right::Session => vec![SecurityRequirement::new(SESSION, none)],
        Right::Scope(scope) => [KEY, SESSION]
            .map(|scheme| SecurityRequirement::new(scheme, [Scope::name(scope)]))
            .to_vec(),
    }
}

/// Gives an answer a text, unless it has one.
fn describe(status: &str, answer: &mut RefOr<Response>) {
    let RefOr::T(answer) = answer else {
        return;
    };
    if answer.description.is_empty() {
        let found = DONE.iter().find(|(known, _)| *known == status);
        found
            .map_or("", |one| one.1)
            .clone_into(&mut answer.description);
    }
}

/// Scopes of a body, by their names.
pub(super) fn scopes() -> Array {
    let names = Scope::ALL.map(Scope::name);
    ArrayBuilder::new()
        .description(Some("What it may do."))
        .items(one_of(names))
        .min_items(Some(1))
        .build()
}

/// A role of a body, by its name.
pub(super) fn role() -> Object {
    let names = Role::ALL.map(Role::name);
    one_of(names)
}

fn one_of<const N: usize>(names: [&str; N]) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(names))
        .build()
}

/// Shows this document.
#[utoipa::path(
    get,
    path = "/openapi.json",
    operation_id = "show_openapi",
    tag = "interface",
    responses((status = 200, description = "An OpenAPI document.", body = serde_json::Value))
)]
pub(super) fn show() -> Ready<impl IntoResponse> {
    ready(([(CONTENT_TYPE, "application/json")], DOCUMENT))
}
