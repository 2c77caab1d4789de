//! Connections that come in: few at a time, each for one request, and none for long.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Connections at one time. Who asks here asks seldom; the rest waits in the system's own queue.
pub const CONNECTIONS_MAX: usize = 64;
/// How long the head of a request may take to come.
pub const HEADERS_WITHIN: Duration = Duration::from_secs(3);
const ACCEPT_AGAIN: Duration = Duration::from_millis(200);

/// Answers with the router, without end. One request for each connection: who asks seldom connects again, and who asks for nothing holds
/// nothing. `purpose`: what the connections are for, in logs. `answered_within`: how long all of a request may take, with its answer.
pub async fn serve(listener: TcpListener, router: Router, purpose: &'static str, answered_within: Duration) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    while let Ok(place) = places.clone().acquire_owned().await {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Such as no file descriptor left: others may close theirs.
                tracing::warn!(%error, "a connection for {purpose} is not accepted");
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let mut server = http1::Builder::new();
            server.timer(TokioTimer::new()).header_read_timeout(HEADERS_WITHIN).keep_alive(false);
            let connection = server.serve_connection(TokioIo::new(stream), service);
            if let Ok(Err(error)) = tokio::time::timeout(answered_within, connection).await {
                tracing::debug!(%error, "a connection for {purpose}");
            }
            drop(place);
        });
    }
}
