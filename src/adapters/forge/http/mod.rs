//! Requests to one forge: its address and nothing else, with time limits, limits of size, and patience.
//!
//! Credentials go to the scheme, host and port that were configured. Redirects are not followed: an API that moved is an error that
//! says so. Neither credentials nor queries are in any error.

mod address;
mod errand;
mod retry;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, IF_NONE_MATCH, LOCATION, USER_AGENT,
};
use hyper::{Method, StatusCode};
use serde_json::Value;

use crate::adapters::http::{AGENT, Connector, connector};
use crate::ports::Clock;

pub use crate::adapters::http::{Secret, SecretError, SecretSource};
pub use address::{Address, AddressError};
pub use errand::OnErrand;
pub use retry::{Limits, Patience};

/// A request to a path below the forge's address.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    /// With a query where there is one; begins with `/`. What comes from outside is encoded.
    pub path: String,
    pub body: Option<Value>,
    /// What makes it safe to be sent again when nobody knows whether it arrived.
    pub patience: Patience,
    /// From the address's host instead of below its path, as GitHub's GraphQL of Enterprise.
    pub from_root: bool,
}

impl Request {
    pub fn get(path: impl Into<String>) -> Self {
        Self::of(Method::GET, path, None, Patience::Repeat)
    }

    /// Makes something each time it arrives: sent again only when it surely did not.
    pub fn create(path: impl Into<String>, body: Value) -> Self {
        Self::of(Method::POST, path, Some(body), Patience::OnlyIfRefused)
    }

    /// Comes to the same however often it arrives.
    pub fn change(method: Method, path: impl Into<String>, body: Option<Value>) -> Self {
        Self::of(method, path, body, Patience::Repeat)
    }

    fn of(method: Method, path: impl Into<String>, body: Option<Value>, patience: Patience) -> Self {
        Self { method, path: path.into(), body, patience, from_root: false }
    }

    /// What is shown of it: queries may hold what nobody should read.
    fn shown(&self) -> String {
        format!("{} {}", self.method, self.path.split('?').next().unwrap_or_default())
    }
}

/// Text as one segment of a path, or one value of a query.
pub fn segment(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// An answer that is no error.
#[derive(Clone, Debug)]
pub struct ForgeAnswer {
    pub headers: HeaderMap,
    /// `null` where there is none.
    pub body: Value,
}

/// Why there is no answer that could be used.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("{request} at {host}: the forge answered {status}{}", said(message))]
    Refused { request: String, host: String, status: StatusCode, message: String, may_pass: bool },
    /// `wait`: so long the forge asked to wait.
    #[error("nobody knows whether it was done")]
    Uncertain { wait: Duration, source: Box<HttpError> },
    #[error("{request} at {host}: no answer after {seconds} s and {attempts} attempts: {last}")]
    GivenUp { request: String, host: String, attempts: u32, seconds: u64, last: String },
    #[error("{request} at {host} can not be asked")]
    Unreachable { request: String, host: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("{request} at {host}: the answer is no JSON, or longer than {} MiB", limit >> 20)]
    Unreadable { request: String, host: String, limit: usize },
    #[error(
        "{request}: {host} sends elsewhere, which is not followed, for credentials would go there; configure the address that it names: {to}"
    )]
    Redirected { request: String, host: String, to: String },
    /// The same machine has it, by another path.
    #[error(
        "{request}: {host} has it elsewhere now, at {to}: the repository was renamed or moved, or this is not where the API is"
    )]
    Moved { request: String, host: String, to: String },
    #[error("the request can not be written")]
    Malformed(#[from] http::Error),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("no trust in certificates can be set up")]
    Trust(#[source] rustls::Error),
}

fn said(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

impl HttpError {
    /// The status, where the forge refused.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::Uncertain { source, .. } => source.status(),
            Self::GivenUp { .. }
            | Self::Unreachable { .. }
            | Self::Unreadable { .. }
            | Self::Redirected { .. }
            | Self::Moved { .. }
            | Self::Malformed(_)
            | Self::Secret(_)
            | Self::Trust(_) => None,
        }
    }

    /// What the forge said, where it refused.
    pub fn message(&self) -> &str {
        match self {
            Self::Refused { message, .. } => message,
            _ => "",
        }
    }

    /// The cause, where the rest is said around it.
    fn why(&self) -> String {
        match self {
            Self::Unreachable { source, .. } => crate::ports::chain(&**source),
            other => crate::ports::chain(other),
        }
    }

    /// Whether asking again later may help.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Refused { may_pass, .. } => *may_pass,
            Self::Uncertain { .. } | Self::GivenUp { .. } | Self::Unreachable { .. } => true,
            Self::Unreadable { .. }
            | Self::Redirected { .. }
            | Self::Moved { .. }
            | Self::Malformed(_)
            | Self::Secret(_)
            | Self::Trust(_) => false,
        }
    }
}

/// Asks one forge.
pub struct Client {
    address: Address,
    connections: hyper_util::client::legacy::Client<Connector, Full<Bytes>>,
    limits: Limits,
    clock: Arc<dyn Clock + Send + Sync>,
    /// Headers that every request of this forge has.
    always: Vec<(HeaderName, &'static str)>,
    /// `None`: each request is for itself.
    errand: Mutex<Option<errand::Errand>>,
    writes: Mutex<errand::Writes>,
}

/// `Authorization`, or what a forge has instead.
#[derive(Clone)]
pub struct Credential {
    pub header: HeaderName,
    pub value: Secret,
}

impl Credential {
    pub fn bearer(token: &str) -> Self {
        Self { header: AUTHORIZATION, value: Secret::new(format!("Bearer {token}")) }
    }
}

enum Attempt {
    Answered(ForgeAnswer),
    NotModified,
    Failed { error: HttpError, wait: Option<Duration>, arrived: bool },
}

impl Client {
    pub fn new(
        address: Address,
        limits: Limits,
        clock: Arc<dyn Clock + Send + Sync>,
        always: Vec<(HeaderName, &'static str)>,
    ) -> Result<Self, HttpError> {
        let connector = connector(limits.connect).map_err(HttpError::Trust)?;
        let mut builder = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new());
        // A connection that was idle may be cut just as it is used; few requests are made, and a new one costs little.
        builder
            .pool_idle_timeout(limits.idle)
            .pool_timer(hyper_util::rt::TokioTimer::new())
            .retry_canceled_requests(false);
        let (connections, errand, writes) = (builder.build(connector), Mutex::default(), Mutex::default());
        Ok(Self { address, connections, limits, clock, always, errand, writes })
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    pub fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    /// Asks until there is an answer, a refusal that stays, or no time left.
    pub async fn ask(&self, request: &Request, credential: Option<&Credential>) -> Result<ForgeAnswer, HttpError> {
        self.ask_if_changed(request, credential, None).await.map(|answer| answer.unwrap_or_else(Self::empty))
    }

    fn empty() -> ForgeAnswer {
        ForgeAnswer { headers: HeaderMap::new(), body: Value::Null }
    }

    /// The same; `None` when what the tag names has not changed.
    #[expect(clippy::disallowed_methods, reason = "what is waited for is measured")]
    pub async fn ask_if_changed(
        &self,
        request: &Request,
        credential: Option<&Credential>,
        tag: Option<&str>,
    ) -> Result<Option<ForgeAnswer>, HttpError> {
        if request.method != Method::GET {
            self.pace().await;
        }
        let (begun, allowance) = (tokio::time::Instant::now(), self.allowance());
        let mut attempts = 0;
        loop {
            attempts += 1;
            let (error, wait, arrived) = match self.attempt(request, credential, tag).await {
                Attempt::Answered(answer) => return Ok(Some(answer)),
                Attempt::NotModified => return Ok(None),
                Attempt::Failed { error, wait, arrived } => (error, wait, arrived),
            };
            let Some(wait) = wait else { return Err(error) };
            if arrived && request.patience == Patience::OnlyIfRefused {
                return Err(HttpError::Uncertain { wait, source: Box::new(error) });
            }
            let wait = wait.max(self.limits.pause(attempts));
            let waited = begun.elapsed();
            if attempts >= self.limits.attempts || waited.saturating_add(wait) > allowance {
                self.waited_in_vain(waited);
                if matches!(error, HttpError::Refused { .. }) {
                    return Err(error);
                }
                let (request, host) = (request.shown(), self.address.shown());
                let last = error.why();
                return Err(HttpError::GivenUp { request, host, attempts, seconds: waited.as_secs(), last });
            }
            tracing::debug!(request = request.shown(), seconds = wait.as_secs_f64(), "asking again");
            tokio::time::sleep(wait).await;
        }
    }

    async fn attempt(&self, request: &Request, credential: Option<&Credential>, tag: Option<&str>) -> Attempt {
        let shown = request.shown();
        let sent = match self.message(request, credential, tag) {
            Ok(message) => self.connections.request(message),
            Err(error) => return Attempt::Failed { error, wait: None, arrived: false },
        };
        let within = self.answer_within();
        let answer = match tokio::time::timeout(within, sent).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                let arrived = !error.is_connect();
                return self.lost(shown, error, arrived);
            }
            Err(late) => return self.lost(shown, late, true),
        };
        let (head, body) = answer.into_parts();
        if head.status == StatusCode::NOT_MODIFIED {
            return Attempt::NotModified;
        }
        let body = Limited::new(body, self.limits.bytes).collect();
        let body = match tokio::time::timeout(within, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
                return self.unreadable(shown);
            }
            Ok(Err(error)) => return self.lost(shown, error, true),
            Err(late) => return self.lost(shown, late, true),
        };
        let json: Result<Value, _> = if body.is_empty() { Ok(Value::Null) } else { serde_json::from_slice(&body) };
        if head.status.is_success() {
            return match json {
                Ok(body) => Attempt::Answered(ForgeAnswer { headers: head.headers, body }),
                Err(_) => self.unreadable(shown),
            };
        }
        let host = self.address.shown();
        if head.status.is_redirection() || head.headers.contains_key(LOCATION) {
            let to = named(&head.headers);
            let error = if self.address.is_of_this_machine(&to) {
                HttpError::Moved { request: shown, host, to }
            } else {
                HttpError::Redirected { request: shown, host, to }
            };
            return Attempt::Failed { error, wait: None, arrived: true };
        }
        let message = retry::message(&json.unwrap_or_default());
        let wait = retry::wait(head.status, &head.headers, &message, self.clock.now());
        let arrived = !retry::was_not_done(head.status);
        Attempt::Failed {
            error: HttpError::Refused { request: shown, host, status: head.status, message, may_pass: wait.is_some() },
            wait,
            arrived,
        }
    }

    fn lost(
        &self,
        request: String,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
        arrived: bool,
    ) -> Attempt {
        let error = HttpError::Unreachable { request, host: self.address.shown(), source: error.into() };
        Attempt::Failed { error, wait: Some(Duration::ZERO), arrived }
    }

    fn unreadable(&self, request: String) -> Attempt {
        let error = HttpError::Unreadable { request, host: self.address.shown(), limit: self.limits.bytes };
        Attempt::Failed { error, wait: None, arrived: true }
    }

    fn message(
        &self,
        request: &Request,
        credential: Option<&Credential>,
        tag: Option<&str>,
    ) -> Result<hyper::Request<Full<Bytes>>, HttpError> {
        let uri = self.address.uri(&request.path, request.from_root);
        let mut message = hyper::Request::builder().method(request.method.clone()).uri(uri);
        message = message.header(USER_AGENT, AGENT).header(ACCEPT, "application/json");
        for (name, value) in &self.always {
            message = message.header(name, *value);
        }
        if let Some(tag) = tag {
            message = message.header(IF_NONE_MATCH, tag);
        }
        if let Some(Credential { header, value }) = credential {
            message = message.header(header, value.header()?);
        }
        let body = match &request.body {
            Some(body) => {
                message = message.header(CONTENT_TYPE, "application/json");
                Bytes::from(body.to_string())
            }
            None => Bytes::new(),
        };
        Ok(message.body(Full::new(body))?)
    }
}

/// Where an answer sends to, without a query, in which there may be what nobody should read.
fn named(headers: &HeaderMap) -> String {
    const CHARACTERS_MAX: usize = 200;
    let to = headers.get(LOCATION).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let to = to.split(['?', '#']).next().unwrap_or_default();
    // Nor what stands before the host.
    let to = match to.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{}", rest.rsplit('@').next().unwrap_or_default()),
        None => to.to_owned(),
    };
    if to.is_empty() { "nothing".to_owned() } else { to.chars().take(CHARACTERS_MAX).collect() }
}

/// The tag by which an answer can be asked for again.
pub fn tag(answer: &ForgeAnswer) -> Option<String> {
    Some(answer.headers.get(ETAG)?.to_str().ok()?.to_owned())
}
