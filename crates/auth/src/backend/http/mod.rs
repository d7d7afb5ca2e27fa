//! An HTTP service that authenticates clients and decides about topics.

mod answer;
mod request;

use std::error::Error as _;
use std::sync::Arc;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Client, Method, redirect};
use thrum_access::{Login, Question, Source};
use tokio::sync::Semaphore;

use super::gate::Gate;
use super::pool::CONNECT_TIME_MAX;
use super::settings::{SetupError, read_file, secret_of, secret_text};
use super::{Asked, Backend, BackendError, Verdict};
use crate::config::HttpConfig;
use crate::template::{Place, Values};
use request::{Keys, Prepared, RequestTemplate, Unfit};

/// Longest answer: about 2,000 rules.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// An HTTP service.
#[derive(Debug)]
pub(crate) struct Http {
    name: Box<str>,
    /// Source of its rules, for messages.
    source: Source,
    client: Client,
    login: Option<RequestTemplate>,
    authorize: Option<RequestTemplate>,
    logins: Gate,
    decisions: Gate,
    lines: Semaphore,
}

/// Status and body.
type Response = (u16, Vec<u8>);

impl Http {
    /// Reads the settings; connects to nothing yet.
    ///
    /// # Errors
    /// A setting is wrong, or a file cannot be read.
    pub(crate) fn new(name: &str, config: &HttpConfig) -> Result<Self, SetupError> {
        let login = Keys {
            url: "url",
            body: "body",
            url_place: Place::LoginUrl,
            body_place: Place::Login,
        };
        let authorize = Keys {
            url: "authorize_url",
            body: "authorize_body",
            url_place: Place::QuestionUrl,
            body_place: Place::Question,
        };
        let login = RequestTemplate::parse(&login, &config.url, &config.body, config)?;
        let authorize = RequestTemplate::parse(
            &authorize,
            &config.authorize_url,
            &config.authorize_body,
            config,
        )?;
        if login.is_none() && authorize.is_none() {
            return Err(SetupError::setting("url", "set url, authorize_url or both"));
        }
        let requests = usize::try_from(config.in_flight.max(1)).unwrap_or(usize::MAX);
        let lines = usize::try_from(config.pool.max(1)).unwrap_or(usize::MAX);
        Ok(Self {
            name: name.into(),
            source: Source::from(Arc::from(format!("{name} acl"))),
            client: client(config, lines)?,
            login,
            authorize,
            logins: Gate::new(requests, config.timeout),
            decisions: Gate::new(requests, config.timeout),
            lines: Semaphore::new(lines),
        })
    }

    async fn verdict(&self, login: &Login) -> Result<Verdict, BackendError> {
        let Some(template) = &self.login else {
            return Ok(Verdict::Ignore);
        };
        let request = match template.prepare(&Values::of_login(login)) {
            Ok(request) => request,
            Err(Unfit::Missing) => return Ok(Verdict::Ignore),
            Err(unfit) => return Ok(Verdict::Deny(unfit.to_string().into())),
        };
        let (status, body) = self.logins.pass(self.send(&request)).await?;
        answer::verdict(status, &body, &self.source)
    }

    async fn opinion(&self, question: &Question) -> Result<Option<bool>, BackendError> {
        let Some(template) = &self.authorize else {
            return Ok(None);
        };
        let request = match template.prepare(&Values::of_question(question)) {
            Ok(request) => request,
            Err(Unfit::Missing) => return Ok(None),
            Err(Unfit::Path | Unfit::NotText(_)) => return Ok(Some(false)),
        };
        let (status, body) = self.decisions.pass(self.send(&request)).await?;
        answer::opinion(status, &body)
    }

    /// Sends, and sends again once if a kept connection turns out to be dead.
    async fn send(&self, request: &Prepared) -> Result<Response, BackendError> {
        let Ok(_turn) = self.lines.acquire().await else {
            return Err(BackendError::Overloaded);
        };
        match self.send_once(request).await {
            Err(error) if error.is_request() && !error.is_connect() && !error.is_timeout() => self
                .send_once(request)
                .await
                .map_err(|error| said(&error))?,
            response => response.map_err(|error| said(&error))?,
        }
    }

    /// An answer that is too long is an error of the service; the outer error is one of the
    /// connection to it.
    async fn send_once(
        &self,
        request: &Prepared,
    ) -> Result<Result<Response, BackendError>, reqwest::Error> {
        let method = if request.body.is_some() {
            Method::POST
        } else {
            Method::GET
        };
        let mut sent = self.client.request(method, request.url.clone());
        if let Some((body, kind)) = &request.body {
            sent = sent.header(CONTENT_TYPE, *kind).body(body.clone());
        }
        let mut response = sent.send().await?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > ANSWER_BYTES_MAX {
                let what = format!("more than {ANSWER_BYTES_MAX} bytes");
                return Ok(Err(BackendError::BadAnswer(what)));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Ok((response.status().as_u16(), body)))
    }
}

impl Backend for Http {
    fn name(&self) -> &str {
        &self.name
    }

    fn login<'a>(&'a self, login: &'a Login) -> Asked<'a, Verdict> {
        Box::pin(self.verdict(login))
    }

    fn is_authorizer(&self) -> bool {
        self.authorize.is_some()
    }

    fn authorize<'a>(&'a self, question: &'a Question) -> Asked<'a, Option<bool>> {
        Box::pin(self.opinion(question))
    }
}

fn client(config: &HttpConfig, lines: usize) -> Result<Client, SetupError> {
    let mut builder = Client::builder()
        .user_agent("thrum")
        .default_headers(headers(config)?)
        // No redirects: only the configured service is asked.
        .redirect(redirect::Policy::none())
        .no_proxy()
        .connect_timeout(CONNECT_TIME_MAX)
        .pool_max_idle_per_host(lines);
    if !config.ca.as_os_str().is_empty() {
        let bad = |_| SetupError::setting("ca", "the file must hold certificates in PEM");
        let certificates =
            Certificate::from_pem_bundle(&read_file("ca", &config.ca)?).map_err(bad)?;
        builder = builder.tls_certs_only(certificates);
    }
    builder
        .build()
        .map_err(|error| SetupError::setting("url", said(&error).to_string()))
}

fn headers(config: &HttpConfig) -> Result<HeaderMap, SetupError> {
    let mut headers = HeaderMap::new();
    for (index, header) in config.headers.iter().enumerate() {
        // It may contain a secret.
        let bad = || {
            SetupError::setting(
                "headers",
                format!("number {} is not \"name: value\"", index + 1),
            )
        };
        let (name, value) = header.expose().split_once(':').ok_or_else(bad)?;
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        let mut value = HeaderValue::from_str(value.trim()).map_err(|_| bad())?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    if let Some(token) = secret_of("bearer_file", &config.bearer_file)? {
        let token = secret_text("bearer_file", &token)?;
        let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| {
            SetupError::setting("bearer_file", "the file must hold one line of ASCII")
        })?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    Ok(headers)
}

/// The innermost cause: it names no URL.
fn said(error: &reqwest::Error) -> BackendError {
    let mut cause = error.source();
    while let Some(inner) = cause.and_then(std::error::Error::source) {
        cause = Some(inner);
    }
    let words = cause.map_or_else(|| "no answer".to_owned(), ToString::to_string);
    BackendError::Unreachable(words)
}
