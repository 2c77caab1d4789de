//! Webhooks. One says no more than that it is worth to look now instead of soon: what is true is asked of the forge.
//!
//! The proof comes before the body is looked at. A delivery counts once.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::{constant_time, digest, hmac};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::adapters::http;
use crate::ports::Clock;

use super::dialect::{Dialect, HookProof};
use super::http::{Secret, SecretError, SecretSource};
use super::{Address, ForgeKind, RepositoryName};

/// Bytes of a body. Those of pull requests have some tens of thousands; those of edited comments are ignored anyway.
const INCOMINGS: http::Incomings = http::Incomings { purpose: "webhooks", body_bytes_max: 1 << 20 };
/// Shorter secrets can be guessed.
const SECRET_CHARACTERS_MIN: usize = 16;
/// Deliveries that are remembered: those of a week, in a busy repository.
const DELIVERIES_MAX: usize = 10_000;
/// Forges name a delivery in some forty characters.
const DELIVERY_BYTES_MAX: usize = 200;
/// Deliveries that say when they were made are not older than this, nor from later: with the deliveries that are remembered none counts twice.
const AGE_MAX: SignedDuration = SignedDuration::from_mins(5);
/// Signatures of one delivery: of a secret, and of the one before it.
const SIGNATURES_MAX: usize = 8;
/// Before a signing token that is written in Base64, as Standard Webhooks have it.
const TOKEN_PREFIX: &str = "whsec_";
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
    clock: Arc<dyn Clock + Send + Sync>,
    news: Arc<Notify>,
    deliveries: Mutex<Deliveries>,
}

#[derive(Default)]
struct Deliveries {
    known: BTreeSet<Identity>,
    order: VecDeque<Identity>,
}

impl Deliveries {
    /// Whether it is new; then it is known from now on.
    fn add(&mut self, delivery: Identity) -> bool {
        if !self.known.insert(delivery.clone()) {
            return false;
        }
        self.order.push_back(delivery);
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
        clock: Arc<dyn Clock + Send + Sync>,
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
        let received = Received { secret, dialect, clock, news: news.clone(), deliveries: Mutex::default() };
        let router = Router::new().route("/hooks", post(receive)).with_state(Arc::new(received));
        tokio::spawn(http::serve(listener, router, INCOMINGS, ANSWERED_WITHIN));
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
    let delivery = Delivery { id: hook.delivery, body: &body };
    if !is_proven(hook.proof, &received.secret, delivery, received.clock.now()) {
        return StatusCode::UNAUTHORIZED;
    }
    if hook.delivery.is_empty() || hook.delivery.len() > DELIVERY_BYTES_MAX {
        return StatusCode::BAD_REQUEST;
    }
    // As a form, which forges offer as well: whoever set it up sees in the list of deliveries that it comes to nothing.
    let Ok(told) = serde_json::from_slice::<Value>(&body) else { return StatusCode::UNSUPPORTED_MEDIA_TYPE };
    let is_new = received.deliveries.lock().unwrap_or_else(PoisonError::into_inner).add(identity(hook.proof, delivery));
    if !is_new {
        return StatusCode::CONFLICT;
    }
    if hook.is_about_changes && !is_edit(&told) {
        received.news.notify_one();
    }
    StatusCode::ACCEPTED
}

/// SHA-256 of what the proof of a delivery covers.
type Identity = Vec<u8>;

/// What makes a delivery the same one again, of what nobody can change who has seen one: GitHub and Gitea sign the body and not the name, which
/// stands in a header, so that one body under many names is one delivery.
fn identity(proof: HookProof<'_>, delivery: Delivery<'_>) -> Identity {
    let mut hash = digest::Context::new(&digest::SHA256);
    if !matches!(proof, HookProof::Signature(_)) {
        hash.update(&(delivery.id.len() as u64).to_be_bytes());
        hash.update(delivery.id.as_bytes());
    }
    hash.update(delivery.body);
    hash.finish().as_ref().to_vec()
}

/// What is proven.
#[derive(Clone, Copy)]
struct Delivery<'a> {
    id: &'a str,
    body: &'a [u8],
}

fn is_proven(proof: HookProof<'_>, secret: &Secret, delivery: Delivery<'_>, now: Timestamp) -> bool {
    let secret = secret.expose();
    match proof {
        HookProof::Missing => false,
        HookProof::Secret(given) => {
            // A signing token is never sent.
            !secret.starts_with(TOKEN_PREFIX)
                && constant_time::verify_slices_are_equal(given.as_bytes(), secret.as_bytes()).is_ok()
        }
        HookProof::Signature(digits) => {
            let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
            bytes(digits).is_some_and(|signature| hmac::verify(&key, delivery.body, &signature).is_ok())
        }
        HookProof::Dated { moment, signatures } => {
            let made_at = moment.parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
            made_at.is_some_and(|at| now.duration_since(at).abs() <= AGE_MAX)
                && is_signed(&keys(secret), (moment, signatures), delivery)
        }
    }
}

/// The signature is over the delivery's name and moment as well, so that neither can be another one.
fn is_signed(keys: &[Vec<u8>], (moment, signatures): (&str, &str), delivery: Delivery<'_>) -> bool {
    let mut signed = format!("{}.{moment}.", delivery.id).into_bytes();
    signed.extend_from_slice(delivery.body);
    let given = signatures.split(' ').filter_map(|it| it.strip_prefix("v1,")).take(SIGNATURES_MAX);
    given.filter_map(|it| BASE64_STANDARD.decode(it).ok()).any(|signature| {
        keys.iter().any(|key| hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, key), &signed, &signature).is_ok())
    })
}

/// The token as it is written, and what it stands for where it is Base64.
fn keys(token: &str) -> Vec<Vec<u8>> {
    let decoded = token.strip_prefix(TOKEN_PREFIX).and_then(|rest| BASE64_STANDARD.decode(rest).ok());
    [token.as_bytes().to_vec()].into_iter().chain(decoded).collect()
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.as_bytes().chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// Edits of comments are no news, and this program makes them itself.
fn is_edit(body: &Value) -> bool {
    body["action"] == "edited" && body.get("comment").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(secret: &str, body: &[u8]) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        hmac::sign(&key, body).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn only_the_right_signature_proves_anything() {
        let secret = Secret::new("a-secret-of-hooks".to_owned());
        let is_proven = |proof, body| is_proven(proof, &secret, Delivery { id: "a", body }, at(0));
        let good = sign("a-secret-of-hooks", b"{}");
        assert!(is_proven(HookProof::Signature(&good), b"{}"));
        assert!(is_proven(HookProof::Secret("a-secret-of-hooks"), b"{}"));
        let other = sign("another-secret-of", b"{}");
        for digits in ["", "zz", "0", "é", good.get(2..).unwrap(), &other] {
            assert!(!is_proven(HookProof::Signature(digits), b"{}"), "{digits}");
        }
        assert!(!is_proven(HookProof::Signature(&good), b"{ }"));
        assert!(!is_proven(HookProof::Missing, b"{}"));
        assert!(!is_proven(HookProof::Secret(""), b"{}"));
    }

    /// The first is the example of Standard Webhooks' specification.
    #[test]
    fn a_dated_signature_is_good_for_its_delivery_and_for_minutes() {
        let token = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let (id, moment, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", br#"{"test": 2432232314}"#);
        let good = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        let proven = |signatures: &str, delivery: Delivery<'_>, moment: &str, now: i64| {
            is_proven(HookProof::Dated { moment, signatures }, &Secret::new(token.to_owned()), delivery, at(now))
        };
        let delivery = Delivery { id, body };
        for (signatures, now) in [(good, 1_614_265_330), (good, 1_614_265_630), (good, 1_614_265_030)] {
            assert!(proven(signatures, delivery, moment, now), "{now}");
        }
        assert!(proven(&format!("v1a,xx v1,AAAA {good}"), delivery, moment, 1_614_265_331), "one of several");
        for now in [1_614_265_631, 1_614_265_029, 0] {
            assert!(!proven(good, delivery, moment, now), "another time: {now}");
        }
        let now = 1_614_265_330;
        assert!(!proven(good, Delivery { id: "another", body }, moment, now));
        assert!(!proven(good, Delivery { id, body: b"{}" }, moment, now));
        for moment in ["1614265331", "", "x", "99999999999999999999", " 1614265330"] {
            assert!(!proven(good, delivery, moment, now), "{moment}");
        }
        for signatures in ["", "v1,", "v1", good.trim_start_matches("v1,"), &good.replace("v1", "v2")] {
            assert!(!proven(signatures, delivery, moment, now), "{signatures}");
        }
        // The token itself is not what is sent.
        assert!(!is_proven(HookProof::Secret(token), &Secret::new(token.to_owned()), delivery, at(now)));
    }

    #[test]
    fn a_delivery_counts_once() {
        let mut deliveries = Deliveries::default();
        let mut add =
            |proof, id: &str, body: &str| deliveries.add(identity(proof, Delivery { id, body: body.as_bytes() }));
        let signed = HookProof::Signature("");
        assert!(add(signed, "a", "one"));
        assert!(!add(signed, "a", "one"));
        // The name of a delivery is not signed.
        assert!(!add(signed, "b", "one"));
        assert!(add(signed, "a", "two"));
        let dated = HookProof::Dated { moment: "", signatures: "" };
        assert!(add(dated, "a", "one") && add(dated, "b", "one") && !add(dated, "b", "one"));
        for number in 0..DELIVERIES_MAX {
            assert!(add(signed, "a", &number.to_string()));
        }
        assert_eq!((deliveries.known.len(), deliveries.order.len()), (DELIVERIES_MAX, DELIVERIES_MAX));
    }

    #[test]
    fn edits_of_comments_are_no_news() {
        use serde_json::json;
        assert!(is_edit(&json!({ "action": "edited", "comment": {} })));
        assert!(!is_edit(&json!({ "action": "edited", "pull_request": {} })));
        assert!(!is_edit(&json!({ "action": "created", "comment": {} })));
    }
}
