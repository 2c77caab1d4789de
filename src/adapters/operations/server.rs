//! `/metrics`, `/healthz`, `/readyz`.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use super::Metrics;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Whether the controller has its view of the cluster, or waits to lead. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    pub fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::SeqCst);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Serves in the background until the runtime ends; gives the address, whose port the system chose where it was 0.
/// `before_metrics` is called for each scrape, to measure what is not measured as it happens.
pub async fn serve(
    address: SocketAddr,
    metrics: Metrics,
    readiness: Readiness,
    before_metrics: impl Fn(&Metrics) + Clone + Send + Sync + 'static,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let scrape = move || async move {
        before_metrics(&metrics);
        ([(header::CONTENT_TYPE, OPEN_METRICS)], metrics.text()).into_response()
    };
    let ready = move || async move {
        if readiness.is_set() {
            (StatusCode::OK, "ready\n")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "not ready: the cluster has not been read yet\n")
        }
    };
    let router = Router::new()
        .route("/metrics", get(scrape))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready));
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(error = %error, "metrics and health are no longer served");
        }
    });
    Ok(address)
}
