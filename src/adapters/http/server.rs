//! Connections that come in: each for one request, and none for long. Who says nothing keeps nobody else from being heard.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

/// Requests that are answered at one time. Who asks here asks seldom.
pub const REQUESTS_MAX: usize = 64;
/// Connections of which no request has come yet. Where another one comes, the oldest of them ends.
pub const SILENT_MAX: usize = 256;
/// How long the head of a request may take to come.
pub const HEADERS_WITHIN: Duration = Duration::from_secs(3);
const ACCEPT_AGAIN: Duration = Duration::from_millis(200);

/// Answers with the router, without end. One request for each connection: who asks seldom connects again, and who asks for nothing holds
/// nothing. `purpose`: what the connections are for, in logs. `answered_within`: how long all of a request may take, with its answer.
pub async fn serve(listener: TcpListener, router: Router, purpose: &'static str, answered_within: Duration) {
    let server = Server { router, places: Arc::new(Semaphore::new(REQUESTS_MAX)), silent: Arc::default(), purpose };
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

#[derive(Clone)]
struct Server {
    router: Router,
    places: Arc<Semaphore>,
    silent: Arc<Silent>,
    purpose: &'static str,
}

impl Server {
    async fn answer(self, number: u64, stream: TcpStream, answered_within: Duration) {
        let (silent, purpose) = (Arc::clone(&self.silent), self.purpose);
        let asked = service_fn(move |request| {
            self.silent.ended(number);
            let (service, places) = (TowerToHyperService::new(self.router.clone()), Arc::clone(&self.places));
            async move {
                let _place = places.acquire().await;
                service.call(request).await
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

/// Connections of which no request has come yet, the oldest first.
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
