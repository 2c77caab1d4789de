//! Connections that come in: each for one request, and none for long. Who says nothing, or sends a body byte by byte, keeps nobody else from
//! being heard: a request has a place when all of it is there, and what is not there yet has limits of number, of bytes and of time.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

/// Requests that are answered at one time. Who asks here asks seldom.
pub const REQUESTS_MAX: usize = 64;
/// Requests that wait for their turn; of more, each is told to come again.
const WAITING_MAX: usize = 256;
/// Connections of which no whole request has come yet. Where another one comes, the oldest of them ends.
pub const SILENT_MAX: usize = 256;
/// How long the head of a request may take to come.
pub const HEADERS_WITHIN: Duration = Duration::from_secs(3);
/// And its body, from then on.
pub const BODY_WITHIN: Duration = Duration::from_secs(3);
/// Bytes of bodies that are held at one time, in steps.
const HELD_STEPS: usize = (64 << 20) / STEP_BYTES;
const STEP_BYTES: usize = 4 << 10;
const ACCEPT_AGAIN: Duration = Duration::from_millis(200);

/// Answers with the router, without end. One request for each connection: who asks seldom connects again, and who asks for nothing holds
/// nothing. `answered_within`: how long all of a request may take, with its answer.
pub async fn serve(listener: TcpListener, router: Router, what: Incomings, answered_within: Duration) {
    let Incomings { purpose, .. } = what;
    let [places, waiting, held] = [REQUESTS_MAX, WAITING_MAX, HELD_STEPS].map(|most| Arc::new(Semaphore::new(most)));
    let server = Server { router, places, waiting, held, silent: Arc::default(), what };
    for number in 0.. {
        match listener.accept().await {
            Ok((stream, _)) => {
                server.silent.came(number);
                let connection = tokio::spawn(server.clone().answer(number, stream, answered_within));
                server.silent.is_answered_by(number, connection.abort_handle());
            }
            Err(error) => {
                // Such as no file descriptor left: others may close theirs.
                tracing::warn!(%error, "a connection for {purpose} is not accepted");
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}

/// What comes in.
#[derive(Clone, Copy, Debug)]
pub struct Incomings {
    /// What the connections are for, in logs.
    pub purpose: &'static str,
    /// Of one request.
    pub body_bytes_max: usize,
}

#[derive(Clone)]
struct Server {
    router: Router,
    places: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    held: Arc<Semaphore>,
    silent: Arc<Silent>,
    what: Incomings,
}

impl Server {
    async fn answer(self, number: u64, stream: TcpStream, answered_within: Duration) {
        let (silent, purpose) = (Arc::clone(&self.silent), self.what.purpose);
        let asked = service_fn(move |request: Request<Incoming>| {
            let server = self.clone();
            async move {
                let (head, body) = request.into_parts();
                let whole = tokio::time::timeout(BODY_WITHIN, server.whole(body)).await;
                server.silent.ended(number);
                let (body, _held) = match whole.unwrap_or(Err(StatusCode::REQUEST_TIMEOUT)) {
                    Ok(whole) => whole,
                    Err(refused) => return Ok(refused.into_response()),
                };
                server.answered(Request::from_parts(head, Body::from(body))).await
            }
        });
        let mut server = http1::Builder::new();
        server.timer(TokioTimer::new()).header_read_timeout(HEADERS_WITHIN).keep_alive(false);
        let connection = server.serve_connection(TokioIo::new(stream), asked);
        if let Ok(Err(error)) = tokio::time::timeout(answered_within, connection).await {
            tracing::debug!(%error, "a connection for {purpose}");
        }
        silent.ended(number);
    }
}

impl Server {
    /// All of a body, with the room that it takes; or why it is not taken.
    async fn whole(&self, mut body: Incoming) -> Result<(Bytes, Vec<OwnedSemaphorePermit>), StatusCode> {
        let most = self.what.body_bytes_max;
        let (mut whole, mut held) = (Vec::new(), Vec::new());
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let frame = frame.map_err(|_cut_off| StatusCode::BAD_REQUEST)?;
            let Ok(data) = frame.into_data() else { continue };
            if whole.len() + data.len() > most {
                return Err(StatusCode::PAYLOAD_TOO_LARGE);
            }
            while held.len() * STEP_BYTES < whole.len() + data.len() {
                let room = Arc::clone(&self.held).try_acquire_owned();
                held.push(room.map_err(|_full| StatusCode::SERVICE_UNAVAILABLE)?);
            }
            whole.extend_from_slice(&data);
        }
        Ok((whole.into(), held))
    }

    async fn answered(&self, request: Request<Body>) -> Result<Response, Infallible> {
        let Ok(_waiting) = self.waiting.try_acquire() else {
            return Ok(StatusCode::SERVICE_UNAVAILABLE.into_response());
        };
        let _place = self.places.acquire().await;
        TowerToHyperService::new(self.router.clone()).call(request).await
    }
}

/// Connections of which no whole request has come yet, the oldest first.
#[derive(Default)]
struct Silent(Mutex<VecDeque<(u64, Option<AbortHandle>)>>);

impl Silent {
    fn came(&self, number: u64) {
        let mut silent = self.lock();
        silent.push_back((number, None));
        if silent.len() > SILENT_MAX
            && let Some((_, Some(oldest))) = silent.pop_front()
        {
            oldest.abort();
        }
    }

    /// Unless it has asked by now.
    fn is_answered_by(&self, number: u64, connection: AbortHandle) {
        if let Some((_, task)) = self.lock().iter_mut().rev().find(|(silent, _)| *silent == number) {
            *task = Some(connection);
        }
    }

    /// It is not silent any more: it asked, or it is closed.
    fn ended(&self, number: u64) {
        self.lock().retain(|(silent, _)| *silent != number);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(u64, Option<AbortHandle>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream as Stream};
    use std::time::Instant;

    use axum::routing::post;

    use super::*;

    const BODY_BYTES_MAX: usize = 1_000;

    async fn served() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", post(|body: Bytes| async move { body.len().to_string() }));
        let what = Incomings { purpose: "a test", body_bytes_max: BODY_BYTES_MAX };
        tokio::spawn(serve(listener, router, what, Duration::from_secs(10)));
        address
    }

    /// A request whose body is said to be so long, and begins so.
    #[expect(clippy::disallowed_methods, reason = "a test connects as anybody can")]
    fn asked(address: SocketAddr, length: usize, begin: &[u8]) -> Stream {
        let mut stream = Stream::connect(address).unwrap();
        stream.set_read_timeout(Some(3 * BODY_WITHIN)).unwrap();
        let head = format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(&[head.as_bytes(), begin].concat()).unwrap();
        stream
    }

    #[expect(clippy::disallowed_methods, reason = "a test waits for the whole answer")]
    async fn answer(mut stream: Stream) -> String {
        let read = tokio::task::spawn_blocking(move || {
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).unwrap();
            String::from_utf8(answer).unwrap()
        });
        read.await.unwrap()
    }

    /// More than may be open, none of which ever comes to its end.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[expect(clippy::disallowed_methods, reason = "what others wait for is measured")]
    async fn bodies_that_come_byte_by_byte_hold_nothing() {
        let address = served().await;
        let mut slow: Vec<Stream> = (0..SILENT_MAX + 10).map(|_| asked(address, 100, b"x")).collect();
        let begin = Instant::now();
        let whole = answer(asked(address, 10, b"0123456789")).await;
        assert!(whole.starts_with("HTTP/1.1 200") && whole.ends_with("10"), "{whole}");
        assert!(begin.elapsed() < BODY_WITHIN, "it waits for none of them: {:?}", begin.elapsed());
        let last = answer(slow.pop().unwrap()).await;
        assert!(last.starts_with("HTTP/1.1 408"), "{last}");
        let large = answer(asked(address, BODY_BYTES_MAX + 1, &[b'x'; BODY_BYTES_MAX + 1])).await;
        assert!(large.starts_with("HTTP/1.1 413"), "{large}");
    }
}
