//! Requests to one registry, with its own way of asking for credentials. They go to it, and to the server of tokens that it names,
//! and to nobody else; neither they nor queries are in any error.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER, USER_AGENT, WWW_AUTHENTICATE,
};
use hyper::{Method, Request, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::adapters::http::{
    AGENT, Connector, connector, is_this_machine, remember_password, remember_secret, without_secrets,
};

use super::challenge::Challenge;
use super::reference::Reference;

/// Of one request: a snapshot may be large, and a line thin.
const WITHIN: Duration = Duration::from_secs(120);
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Of an answer that nobody asked more of.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Before a request is sent again, at least; each of ours comes to the same however often it arrives.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
/// A registry that wants to be left alone for longer is given up: whoever takes snapshots comes again.
const PAUSE_MAX: Duration = Duration::from_secs(60);
const CREDENTIALS_BYTES_MAX: u64 = 64 << 10;
/// Before a token, where there is no name.
const USER_OF_A_TOKEN: &str = "x-access-token";

#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("the credentials in {} can not be read: write `user:password`, or a token, on one line", path.display())]
    Credentials { path: PathBuf, source: std::io::Error },
    #[error("no trust in certificates can be set up")]
    Trust(#[source] rustls::Error),
    #[error("the request to {host} can not be written")]
    Malformed { host: String, source: http::Error },
    #[error("{host} can not be asked")]
    Unreachable { host: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("{host} did not answer within {} s", WITHIN.as_secs())]
    Late { host: String },
    #[error("{host} answered {status}{}", if message.is_empty() { String::new() } else { format!(": {message}") })]
    Refused { host: String, status: StatusCode, message: String },
    #[error("{host} asks for credentials{}", if *given { ", and refuses those that were given" } else { "" })]
    Denied { host: String, given: bool },
    #[error("the answer of {host} is longer than {} MiB", most >> 20)]
    TooLong { host: String, most: usize },
    #[error("the registry does not say where the upload goes")]
    NoUpload,
    #[error("the manifest can not be read")]
    Manifest(#[source] serde_json::Error),
    #[error("this is no snapshot of a cluster, but {what}")]
    NoSnapshot { what: String },
    #[error("the content has the digest {found}, and should have {wanted}")]
    Digest { wanted: String, found: String },
}

/// User and password. Not `Debug`, so that they end up in no log.
#[derive(Clone)]
pub struct Credentials {
    user: String,
    password: String,
}

impl Credentials {
    /// From a file that holds `user:password`, or a token.
    pub fn read(path: &Path) -> Result<Self, RegistryError> {
        use std::io::Read;
        let failed = |source| RegistryError::Credentials { path: path.to_owned(), source };
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(failed)?;
        let length = file.take(CREDENTIALS_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
        if length as u64 > CREDENTIALS_BYTES_MAX {
            return Err(failed(std::io::ErrorKind::FileTooLarge.into()));
        }
        let line = text.trim();
        if line.is_empty() || line.contains('\n') {
            return Err(failed(std::io::ErrorKind::InvalidData.into()));
        }
        let (user, password) = line.split_once(':').unwrap_or((USER_OF_A_TOKEN, line));
        remember_password(user, password);
        Ok(Self { user: user.to_owned(), password: password.to_owned() })
    }

    fn basic(&self) -> String {
        format!("Basic {}", BASE64_STANDARD.encode(format!("{}:{}", self.user, self.password)))
    }
}

/// One request.
pub(super) struct Ask {
    pub method: Method,
    /// Below the repository, or an address of its own as the registry gave it.
    pub path: String,
    pub accept: &'static str,
    pub content_type: &'static str,
    pub body: Vec<u8>,
    /// Bytes of the answer.
    pub most: usize,
    /// Whether a redirect is followed: content is often elsewhere, and goes to whoever knows its address.
    pub follows: bool,
}

impl Ask {
    pub fn of(method: Method, path: String) -> Self {
        Self { method, path, accept: "*/*", content_type: "", body: Vec::new(), most: ANSWER_BYTES_MAX, follows: false }
    }
}

pub(super) struct RegistryAnswer {
    pub status: StatusCode,
    /// Whole, also where the registry gave a path alone.
    pub location: Option<String>,
    retry_after: Option<Duration>,
    challenge: Option<String>,
    pub body: Vec<u8>,
}

pub(super) struct Client {
    connections: hyper_util::client::legacy::Client<Connector, Full<Bytes>>,
    origin: String,
    repository: String,
    credentials: Option<Credentials>,
    /// `pull`, or `pull,push`: what a token is asked for.
    actions: &'static str,
    authorization: Option<String>,
}

impl Client {
    pub fn new(of: &Reference, credentials: Option<Credentials>, actions: &'static str) -> Result<Self, RegistryError> {
        let connector = connector(CONNECT_WITHIN).map_err(RegistryError::Trust)?;
        let connections =
            hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build(connector);
        let (origin, repository) = (of.origin(), of.repository().to_owned());
        Ok(Self { connections, origin, repository, credentials, actions, authorization: None })
    }

    /// Asks; proves who asks where the registry wants that.
    pub async fn ask(&mut self, ask: Ask) -> Result<RegistryAnswer, RegistryError> {
        let address = self.address(&ask.path);
        let own = is_at(&address, &self.origin);
        let mut answer = self.send(&ask, &address, self.authorization.clone().filter(|_| own)).await?;
        if answer.status == StatusCode::UNAUTHORIZED && own {
            let authorization = self.prove(answer.challenge.as_deref()).await?;
            answer = self.send(&ask, &address, Some(authorization)).await?;
        }
        if ask.follows && answer.status.is_redirection() {
            let Some(elsewhere) = answer.location.take().map(|location| self.address(&location)) else {
                return Err(refused(&address, &answer));
            };
            answer = self.send(&ask, &elsewhere, None).await?;
        }
        match answer.status {
            status if status.is_success() => Ok(answer),
            StatusCode::UNAUTHORIZED => {
                Err(RegistryError::Denied { host: host(&address), given: self.credentials.is_some() })
            }
            _ => Err(refused(&address, &answer)),
        }
    }

    fn address(&self, path: &str) -> String {
        if path.contains("://") { path.to_owned() } else { format!("{}/v2/{}{path}", self.origin, self.repository) }
    }

    async fn prove(&mut self, challenge: Option<&str>) -> Result<String, RegistryError> {
        let denied = |given| RegistryError::Denied { host: host(&self.origin), given };
        let given = self.credentials.is_some();
        let authorization = match challenge.and_then(Challenge::parse) {
            Some(Challenge::Basic) => self.credentials.as_ref().ok_or_else(|| denied(false))?.basic(),
            Some(Challenge::Bearer { realm, service, scope }) => {
                // Credentials are not sent where everybody on the way could read them.
                let is_safe = realm.starts_with("https://") || (self.origin.starts_with("http://") && is_here(&realm));
                if !is_safe {
                    return Err(denied(given));
                }
                format!("Bearer {}", self.token(&realm, service, scope).await?)
            }
            None => return Err(denied(given)),
        };
        self.authorization = Some(authorization.clone());
        Ok(authorization)
    }

    async fn token(
        &self,
        realm: &str,
        service: Option<String>,
        scope: Option<String>,
    ) -> Result<String, RegistryError> {
        let scope = scope.unwrap_or_else(|| format!("repository:{}:{}", self.repository, self.actions));
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let sign = if realm.contains('?') { '&' } else { '?' };
        let mut address = format!("{realm}{sign}scope={}", encoded(&scope));
        if let Some(service) = service {
            address.push_str(&format!("&service={}", encoded(&service)));
        }
        let basic = self.credentials.as_ref().map(Credentials::basic);
        let answer = self.send(&Ask::of(Method::GET, String::new()), &address, basic).await?;
        let given = self.credentials.is_some();
        if !answer.status.is_success() {
            return match answer.status {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                    Err(RegistryError::Denied { host: host(&address), given })
                }
                _ => Err(refused(&address, &answer)),
            };
        }
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let token = body["token"].as_str().or_else(|| body["access_token"].as_str());
        token
            .inspect(|token| remember_secret(token))
            .map(str::to_owned)
            .ok_or(RegistryError::Denied { host: host(&address), given })
    }

    /// Sends it again where that may help: a registry that is busy or away for a moment is no reason to be without a snapshot.
    async fn send(
        &self,
        ask: &Ask,
        address: &str,
        authorization: Option<String>,
    ) -> Result<RegistryAnswer, RegistryError> {
        for pause in PAUSES {
            let outcome = self.send_once(ask, address, authorization.clone()).await;
            let asked_for = match &outcome {
                Ok(answer) if may_pass(answer.status) => answer.retry_after.unwrap_or_default(),
                Err(RegistryError::Unreachable { .. }) => Duration::ZERO,
                _ => return outcome,
            };
            if asked_for > PAUSE_MAX {
                return outcome;
            }
            tokio::time::sleep(pause.max(asked_for)).await;
        }
        self.send_once(ask, address, authorization).await
    }

    async fn send_once(
        &self,
        ask: &Ask,
        address: &str,
        authorization: Option<String>,
    ) -> Result<RegistryAnswer, RegistryError> {
        let at = host(address);
        let malformed = |source: http::Error| RegistryError::Malformed { host: at.clone(), source };
        let mut request = Request::builder().method(ask.method.clone()).uri(address);
        request = request.header(USER_AGENT, AGENT).header(ACCEPT, ask.accept);
        if !ask.content_type.is_empty() {
            request = request.header(CONTENT_TYPE, ask.content_type);
        }
        if let Some(authorization) = authorization {
            let mut value = HeaderValue::from_str(&authorization).map_err(|error| malformed(error.into()))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        let request = request.body(Full::new(Bytes::from(ask.body.clone()))).map_err(malformed)?;
        let unreachable =
            |source: Box<dyn std::error::Error + Send + Sync>| RegistryError::Unreachable { host: at.clone(), source };
        let whole = async {
            let answer = self.connections.request(request).await.map_err(|error| unreachable(error.into()))?;
            let (head, body) = answer.into_parts();
            let body =
                Limited::new(body, ask.most).collect().await.map_err(|error| match error.is::<LengthLimitError>() {
                    true => RegistryError::TooLong { host: at.clone(), most: ask.most },
                    false => unreachable(error),
                })?;
            let header =
                |name| head.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::to_owned);
            Ok(RegistryAnswer {
                status: head.status,
                location: header(LOCATION).map(|location| from(address, &location)),
                retry_after: header(RETRY_AFTER).and_then(|it| it.trim().parse().ok()).map(Duration::from_secs),
                challenge: header(WWW_AUTHENTICATE),
                body: body.to_bytes().to_vec(),
            })
        };
        tokio::time::timeout(WITHIN, whole).await.map_err(|_| RegistryError::Late { host: at.clone() })?
    }
}

fn may_pass(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || (status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED)
}

/// Where an answer of an address sends to: a path is one of the same host.
fn from(address: &str, location: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://").filter(|_| location.starts_with('/')) else {
        return location.to_owned();
    };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    match location.strip_prefix("//") {
        Some(elsewhere) => format!("{scheme}://{elsewhere}"),
        None => format!("{scheme}://{authority}{location}"),
    }
}

/// What the registry said of it.
fn refused(address: &str, answer: &RegistryAnswer) -> RegistryError {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let said = ["message", "code"].iter().find_map(|field| body["errors"][0][field].as_str());
    let message = without_secrets(said.unwrap_or_default()).chars().take(200).collect();
    RegistryError::Refused { host: host(address), status: answer.status, message }
}

/// Scheme, host and port are the same.
fn is_at(address: &str, origin: &str) -> bool {
    address.strip_prefix(origin).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether an address is one of this machine.
fn is_here(address: &str) -> bool {
    let host = host(address);
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    is_this_machine(host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(&*host, |(name, _)| name))
}

/// Of an address, without what may be a secret.
fn host(address: &str) -> String {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_credentials() {
        assert_eq!(host("https://user:pw@r.example.com:5000/v2/a?token=x"), "r.example.com:5000");
        assert_eq!(host("r.example.com"), "r.example.com");
    }

    #[test]
    fn a_place_is_whole_or_one_of_the_same_host() {
        let at = "https://r.example.com:5000/v2/a/blobs/uploads/";
        for (location, expected) in [
            ("/v2/a/blobs/uploads/1?s=2", "https://r.example.com:5000/v2/a/blobs/uploads/1?s=2"),
            ("/proxy/v2/a/1", "https://r.example.com:5000/proxy/v2/a/1"),
            ("//store.example.com/1", "https://store.example.com/1"),
            ("https://store.example.com/1", "https://store.example.com/1"),
        ] {
            assert_eq!(from(at, location), expected);
        }
    }

    #[test]
    fn only_this_machine_is_here() {
        for address in ["http://localhost:5000/token", "http://127.0.0.1/token", "http://[::1]:5000/", "http://[::1]/"]
        {
            assert!(is_here(address), "{address}");
        }
        for address in ["http://r.example.com/token", "http://localhost@r.example.com/", "http://127.0.0.1.example.com"]
        {
            assert!(!is_here(address), "{address}");
        }
    }
}
