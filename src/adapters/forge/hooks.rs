//! Webhooks. One says no more than that it is worth to look now instead of soon: what is true is asked of the forge.
//!
//! The proof comes before the body is looked at. A delivery counts once.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::{constant_time, hmac};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::adapters::http;

use super::dialect::{Dialect, HookProof};
use super::http::{Secret, SecretError, SecretSource};
use super::{Address, ForgeKind, RepositoryName};

/// Bytes of a body. Those of pull requests have some tens of thousands; those of edited comments are ignored anyway.
const BODY_BYTES_MAX: usize = 1 << 20;
/// Shorter secrets can be guessed.
const SECRET_CHARACTERS_MIN: usize = 16;
/// Deliveries that are remembered: those of a week, in a busy repository.
const DELIVERIES_MAX: usize = 10_000;
/// How long a delivery may take, with its answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// Where webhooks come in, and what they are proven with.
#[derive(Clone, Debug)]
pub struct HookSettings {
    pub address: SocketAddr,
    pub secret: SecretSource,
}

/// Receives webhooks until it is dropped by the runtime.
pub struct HookReceiver {
    pub address: SocketAddr,
    news: Arc<Notify>,
}

#[derive(Debug, thiserror::Error)]
pub enum HookError {
    #[error("webhooks without a secret could be sent by anybody")]
    NoSecret(#[source] SecretError),
    #[error("a secret of webhooks has at least {SECRET_CHARACTERS_MIN} characters")]
    ShortSecret,
    #[error("listen on {0}")]
    Listen(SocketAddr, #[source] io::Error),
}

struct Received {
    secret: Secret,
    dialect: Box<dyn Dialect>,
    news: Arc<Notify>,
    deliveries: Mutex<Deliveries>,
}

#[derive(Default)]
struct Deliveries {
    known: BTreeSet<String>,
    order: VecDeque<String>,
}

impl Deliveries {
    /// Whether it is new; then it is known from now on.
    fn add(&mut self, delivery: &str) -> bool {
        if !self.known.insert(delivery.to_owned()) {
            return false;
        }
        self.order.push_back(delivery.to_owned());
        if self.order.len() > DELIVERIES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

impl HookReceiver {
    /// Begins to listen. Without a secret it does not.
    pub async fn start(
        settings: &HookSettings,
        kind: ForgeKind,
        repository: &RepositoryName,
        forge: &Address,
    ) -> Result<Self, HookError> {
        let secret = settings.secret.read().map_err(HookError::NoSecret)?;
        if secret.expose().chars().count() < SECRET_CHARACTERS_MIN {
            return Err(HookError::ShortSecret);
        }
        let failed = |error| HookError::Listen(settings.address, error);
        let listener = TcpListener::bind(settings.address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let news = Arc::new(Notify::new());
        let dialect = kind.dialect(repository, forge);
        let received = Received { secret, dialect, news: news.clone(), deliveries: Mutex::default() };
        let router = Router::new()
            .route("/hooks", post(receive))
            .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
            .with_state(Arc::new(received));
        tokio::spawn(http::serve(listener, router, "webhooks", ANSWERED_WITHIN));
        Ok(Self { address, news })
    }

    /// Waits for one that is worth a look. Several that come meanwhile are one.
    pub async fn news(&self) {
        self.news.notified().await;
    }
}

async fn receive(State(received): State<Arc<Received>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let hook = received.dialect.hook(&header);
    if !is_proven(hook.proof, &received.secret, &body) {
        return StatusCode::UNAUTHORIZED;
    }
    if hook.delivery.is_empty() {
        return StatusCode::BAD_REQUEST;
    }
    let is_new = received.deliveries.lock().unwrap_or_else(PoisonError::into_inner).add(hook.delivery);
    if !is_new {
        return StatusCode::CONFLICT;
    }
    if hook.is_about_changes && !is_edit(&body) {
        received.news.notify_one();
    }
    StatusCode::ACCEPTED
}

fn is_proven(proof: HookProof<'_>, secret: &Secret, body: &[u8]) -> bool {
    let secret = secret.expose().as_bytes();
    match proof {
        HookProof::Missing => false,
        HookProof::Secret(given) => constant_time::verify_slices_are_equal(given.as_bytes(), secret).is_ok(),
        HookProof::Signature(digits) => {
            let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
            bytes(digits).is_some_and(|signature| hmac::verify(&key, body, &signature).is_ok())
        }
    }
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.as_bytes().chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// Edits of comments are no news, and this program makes them itself.
fn is_edit(body: &[u8]) -> bool {
    let Ok(body) = serde_json::from_slice::<Value>(body) else { return true };
    body["action"] == "edited" && body.get("comment").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(secret: &str, body: &[u8]) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        hmac::sign(&key, body).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn only_the_right_signature_proves_anything() {
        let secret = Secret::new("a-secret-of-hooks".to_owned());
        let good = sign("a-secret-of-hooks", b"{}");
        assert!(is_proven(HookProof::Signature(&good), &secret, b"{}"));
        assert!(is_proven(HookProof::Secret("a-secret-of-hooks"), &secret, b"{}"));
        let other = sign("another-secret-of", b"{}");
        for digits in ["", "zz", "0", "é", good.get(2..).unwrap(), &other] {
            assert!(!is_proven(HookProof::Signature(digits), &secret, b"{}"), "{digits}");
        }
        assert!(!is_proven(HookProof::Signature(&good), &secret, b"{ }"));
        assert!(!is_proven(HookProof::Missing, &secret, b"{}"));
        assert!(!is_proven(HookProof::Secret(""), &secret, b"{}"));
    }

    #[test]
    fn a_delivery_counts_once() {
        let mut deliveries = Deliveries::default();
        assert!(deliveries.add("a"));
        assert!(!deliveries.add("a"));
        for number in 0..DELIVERIES_MAX {
            assert!(deliveries.add(&number.to_string()));
        }
        assert_eq!((deliveries.known.len(), deliveries.order.len()), (DELIVERIES_MAX, DELIVERIES_MAX));
    }

    #[test]
    fn edits_and_what_is_no_json_are_no_news() {
        assert!(is_edit(br#"{ "action": "edited", "comment": {} }"#));
        assert!(is_edit(b"x"));
        assert!(!is_edit(br#"{ "action": "edited", "pull_request": {} }"#));
        assert!(!is_edit(br#"{ "action": "created", "comment": {} }"#));
    }
}
