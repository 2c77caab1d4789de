//! Messages to receivers elsewhere, such as Slack: one request each, with time limits, to an address that is a secret.
//!
//! Whoever knows such an address may write there, so it is in no error: not the host's path, not what the receiver answered but for a word
//! of its own, and nothing of a library that was given the address.

use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, LOCATION, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request, StatusCode, Uri};

use crate::adapters::http::{AGENT, Connector, SecretError, SecretSource, connector, is_this_machine};
use crate::ports::chain;
use crate::ports::notifications::{Message, Receiver as ReceiverPort, Undelivered};

const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// All of a request.
const WITHIN: Duration = Duration::from_secs(20);
/// Of an answer, which nobody reads but for one word.
const ANSWER_BYTES_MAX: usize = 4 << 10;
/// Of that word: `invalid_payload`, `channel_is_archived`.
const WORD_CHARACTERS_MAX: usize = 40;
/// A receiver that wants more patience than this gets a try in between.
const PATIENCE_MAX: Duration = Duration::from_hours(1);
/// By which a receiver knows what it got already. Source: draft-ietf-httpapi-idempotency-key-header.
const KEY: HeaderName = HeaderName::from_static("idempotency-key");

#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("{0} holds no address: write https://HOST/PATH on one line")]
    NoAddress(String),
    #[error("the address in {0} is not encrypted, so everybody on the way could read it: write https://")]
    NotEncrypted(String),
    #[error("no trust in certificates can be set up")]
    Trust(#[source] rustls::Error),
    #[error("the message can not be written as a request")]
    Malformed,
    #[error("{receiver} can not be reached{}", of_connecting(*is_connecting))]
    Unreachable { receiver: &'static str, is_connecting: bool },
    #[error("{receiver} did not answer within {} s", WITHIN.as_secs())]
    Late { receiver: &'static str },
    #[error("{receiver} answers {status} and leads elsewhere, where nothing is sent: write the new address down")]
    Redirected { receiver: &'static str, status: StatusCode },
    #[error("{receiver} answers {status}{}", said(word))]
    Refused { receiver: &'static str, status: StatusCode, word: String, wait: Option<Duration> },
}

fn of_connecting(is_connecting: bool) -> &'static str {
    if is_connecting { ": no connection" } else { ": the connection ended" }
}

fn said(word: &str) -> String {
    if word.is_empty() { String::new() } else { format!(": {word}") }
}

impl DeliveryError {
    /// Whether it is this message that is not taken, whenever it is sent.
    fn is_of_message(&self) -> bool {
        matches!(
            self,
            Self::Malformed
                | Self::Refused {
                    status: StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY,
                    ..
                }
        )
    }

    /// How long the receiver asks to be left alone.
    fn wait(&self) -> Option<Duration> {
        match self {
            Self::Refused { wait, .. } => *wait,
            _ => None,
        }
    }
}

/// One address that messages go to.
pub struct Receiver {
    name: &'static str,
    address: SecretSource,
    allows_plain: bool,
    connections: hyper_util::client::legacy::Client<Connector, Full<Bytes>>,
}

impl Receiver {
    /// `name`: what it is called in messages. `allows_plain`: also without encryption to other machines, as within a cluster. An address that can
    /// not be right is an error now; it is read again each time, since secrets are rotated.
    pub fn new(name: &'static str, address: SecretSource, allows_plain: bool) -> Result<Self, DeliveryError> {
        let connector = connector(CONNECT_WITHIN).map_err(DeliveryError::Trust)?;
        let mut builder = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new());
        // Messages are rare: a connection that was idle since the last one is gone.
        let connections = builder.pool_max_idle_per_host(0).retry_canceled_requests(false).build(connector);
        let receiver = Self { name, address, allows_plain, connections };
        receiver.uri()?;
        Ok(receiver)
    }

    fn uri(&self) -> Result<Uri, DeliveryError> {
        let secret = self.address.read()?;
        let none = || DeliveryError::NoAddress(self.address.to_string());
        let uri: Uri = secret.expose().parse().map_err(|_| none())?;
        let (Some(scheme), Some(host)) = (uri.scheme_str(), uri.host()) else { return Err(none()) };
        let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
        match scheme {
            _ if host.is_empty() || has_user => Err(none()),
            "https" => Ok(uri),
            "http" if self.allows_plain || is_this_machine(host) => Ok(uri),
            "http" => Err(DeliveryError::NotEncrypted(self.address.to_string())),
            _ => Err(none()),
        }
    }

    /// Sends it once.
    pub async fn deliver(&self, message: Message<'_>) -> Result<(), DeliveryError> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(self.uri()?)
            .header(USER_AGENT, AGENT)
            .header(CONTENT_TYPE, message.content_type)
            .header(KEY, message.key)
            .body(Full::new(Bytes::from(message.text.to_owned())))
            .map_err(|_: http::Error| DeliveryError::Malformed)?;
        let late = |_| DeliveryError::Late { receiver: self.name };
        tokio::time::timeout(WITHIN, self.send(request)).await.map_err(late)?
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<(), DeliveryError> {
        let receiver = self.name;
        let answer = self.connections.request(request).await.map_err(|error| {
            // What the library says may hold what it was given.
            DeliveryError::Unreachable { receiver, is_connecting: error.is_connect() }
        })?;
        let (head, body) = answer.into_parts();
        let status = head.status;
        if status.is_success() {
            return Ok(());
        }
        if status.is_redirection() || head.headers.contains_key(LOCATION) {
            return Err(DeliveryError::Redirected { receiver, status });
        }
        let wait = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let wait = wait.map(|seconds| Duration::from_secs(seconds).min(PATIENCE_MAX));
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let word = body.map(|body| word(&body.to_bytes())).unwrap_or_default();
        Err(DeliveryError::Refused { receiver, status, word, wait })
    }
}

impl ReceiverPort for Receiver {
    fn name(&self) -> &str {
        self.name
    }

    async fn deliver(&self, message: Message<'_>) -> Result<(), Undelivered> {
        Self::deliver(self, message).await.map_err(|error| Undelivered {
            why: chain(&error),
            is_of_message: error.is_of_message(),
            wait: error.wait(),
        })
    }
}

/// What a receiver says where it is one word, as Slack does: a page of a proxy may hold the address.
fn word(body: &[u8]) -> String {
    let text = str::from_utf8(body).unwrap_or_default().trim();
    let is_word =
        text.len() <= WORD_CHARACTERS_MAX && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if is_word { text.to_owned() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::http::Secret;

    fn receiver(address: &str, allows_plain: bool) -> Result<Receiver, String> {
        let source = SecretSource::Variable("SLACK".to_owned(), Secret::new(address.to_owned()));
        Receiver::new("slack", source, allows_plain).map_err(|error| format!("{error} {error:?}"))
    }

    #[test]
    fn no_error_shows_an_address() {
        assert!(receiver("https://hooks.example.com/services/T/B/canary", false).is_ok());
        assert!(receiver("http://127.0.0.1:1/canary", false).is_ok());
        assert!(receiver("http://hooks.cutlist.svc/canary", true).is_ok());
        for address in [
            "http://hooks.example.com/canary",
            "hooks.example.com/canary",
            "ftp://hooks.example.com/canary",
            "https://canary@hooks.example.com/",
            "https:///canary",
            "canary canary",
        ] {
            let error = receiver(address, false).err().unwrap();
            assert!(!error.contains("canary") && error.contains("SLACK"), "{address}: {error}");
        }
    }

    #[test]
    fn of_an_answer_only_a_word_is_shown() {
        assert_eq!(word(b"invalid_payload\n"), "invalid_payload");
        for text in ["Cannot POST /services/T/B/canary", "", "canary1", &"a".repeat(41)] {
            assert_eq!(word(text.as_bytes()), "", "{text}");
        }
    }

    #[tokio::test]
    async fn nobody_there_is_an_error_without_an_address() {
        let receiver = receiver("http://127.0.0.1:1/canary", false).ok().unwrap();
        let message = Message { key: "a", content_type: "application/json", text: "{}" };
        let error = receiver.deliver(message).await.unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(shown.contains("slack can not be reached: no connection") && !shown.contains("canary"), "{shown}");
        assert!(!error.is_of_message());
    }
}
