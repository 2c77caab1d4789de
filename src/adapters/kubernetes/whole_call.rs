//! A limit on a call as a whole, answer included: a limit on each read alone is never reached by an answer that comes byte by byte.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::client::Body;
use tokio::time::{Instant, timeout};
use tower::Service;

type BoxError = Box<dyn Error + Send + Sync>;
type Answer<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

/// When the last write began that the API server answered with success: it counts what was written from then on at the earliest.
#[derive(Clone, Debug, Default)]
pub(super) struct LastWrite(Arc<Mutex<Option<Instant>>>);

impl LastWrite {
    pub(super) fn began_at(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, began_at: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(began_at);
    }
}

/// A page of five hundred objects of the usual size has some megabytes.
const ANSWER_BYTES_MAX: usize = 256 << 20;

#[derive(Debug, thiserror::Error)]
#[error("the answer has more than {ANSWER_BYTES_MAX} bytes, and is not read")]
struct TooLarge;

fn too_large(error: BoxError) -> BoxError {
    if error.is::<LengthLimitError>() { TooLarge.into() } else { error }
}

#[derive(Debug, thiserror::Error)]
#[error("no whole answer within {} seconds", .0.as_secs())]
struct NotWhole(Duration);

/// Calls that end within a time, and what is noted of writes.
#[derive(Clone, Debug)]
pub(super) struct WholeCall<S> {
    pub(super) inner: S,
    pub(super) limit: Duration,
    pub(super) last_write: LastWrite,
}

impl<S, B> Service<Request<Body>> for WholeCall<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: BodyExt + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Answer<Self::Response>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    #[expect(clippy::disallowed_methods, reason = "how long a call takes is measured here")]
    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (limit, last_write) = (self.limit, self.last_write.clone());
        let is_write = request.method() != Method::GET;
        let began_at = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let whole = async {
                let (head, body) = answer.await.map_err(Into::into)?.into_parts();
                let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(too_large)?.to_bytes();
                Ok::<_, BoxError>(Response::from_parts(head, Body::from(body.to_vec())))
            };
            let answer = timeout(limit, whole).await.map_err(|_| NotWhole(limit))??;
            if is_write && answer.status().is_success() {
                last_write.note(began_at);
            }
            Ok(answer)
        })
    }
}
