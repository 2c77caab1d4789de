//! `/metrics`, `/healthz`, `/readyz`.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use super::Metrics;
use crate::adapters::http;
use crate::ports::operations::ReadyState;

/// Who asks here sends nothing.
const INCOMINGS: http::Incomings = http::Incomings { purpose: "metrics and health", body_bytes_max: 1 << 10 };
/// How long a request may take, with its answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(20);
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A kind that is not seen for so long is more than a connection that was made anew.
const DOUBTED_MAX: Duration = Duration::from_secs(30);

/// So many objects are named that are not relied on.
const LEFT_OUT_SHOWN_MAX: usize = 10;

/// Whether the controller has its view of the cluster, or waits to lead. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    stage: Arc<Mutex<Stage>>,
    doubted: Arc<Mutex<Option<(Instant, String)>>>,
    refused: Arc<Mutex<Option<RefusedRevision>>>,
    left_out: Arc<Mutex<Vec<String>>>,
}

/// How far it is.
#[derive(Clone, Debug, Default)]
enum Stage {
    #[default]
    Begins,
    /// Another replica leads. It is ready to take over: a Deployment that is rolled out ends the other one only then.
    WaitsToLead,
    /// For the first revision, and why there is none.
    WaitsForDefinitions(String),
    Sees,
}

/// A revision that is not used.
#[derive(Clone, Debug)]
struct RefusedRevision {
    why: String,
    /// Whether one before it stays in force.
    has_another: bool,
}

fn held<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Readiness {
    pub fn set(&self, ready: bool) {
        *held(&self.stage) = if ready { Stage::Sees } else { Stage::Begins };
    }

    pub fn waits_to_lead(&self) {
        *held(&self.stage) = Stage::WaitsToLead;
    }

    /// Why the first revision is not there yet; `None`: it is.
    pub fn waits_for_definitions(&self, why: Option<String>) {
        *held(&self.stage) = why.map_or(Stage::Begins, Stage::WaitsForDefinitions);
    }

    /// Why it is not ready.
    fn obstacle(&self) -> Option<String> {
        match &*held(&self.stage) {
            Stage::Begins => {
                let why = held(&self.doubted).as_ref().map(|(_, why)| format!(": {why}"));
                return Some(format!("the cluster has not been read yet{}", why.unwrap_or_default()));
            }
            Stage::WaitsForDefinitions(why) => return Some(format!("there are no definitions yet: {why}")),
            Stage::WaitsToLead => return None,
            Stage::Sees => {}
        }
        // With one in force all that it asks for is done, and whoever commits is told.
        if let Some(RefusedRevision { why, has_another: false }) = &*held(&self.refused) {
            return Some(format!("no revision is in force: {why}"));
        }
        let doubted = held(&self.doubted);
        let (since, why) = doubted.as_ref()?;
        (now().duration_since(*since) >= DOUBTED_MAX).then(|| why.clone())
    }

    /// What is said where it is ready.
    fn remark(&self) -> String {
        let mut remark = match &*held(&self.stage) {
            Stage::WaitsToLead => "ready: another replica leads\n".to_owned(),
            _ => match &*held(&self.refused) {
                Some(RefusedRevision { why, .. }) => format!("ready, by the revision before: {why}\n"),
                None => "ready\n".to_owned(),
            },
        };
        let left_out = held(&self.left_out);
        left_out.iter().take(LEFT_OUT_SHOWN_MAX).for_each(|sentence| remark.push_str(&format!("{sentence}\n")));
        if left_out.len() > LEFT_OUT_SHOWN_MAX {
            remark.push_str(&format!("and {} more\n", left_out.len() - LEFT_OUT_SHOWN_MAX));
        }
        remark
    }
}

impl ReadyState for Readiness {
    fn sees(&self) {
        self.set(true);
    }

    fn refuse(&self, why: String, has_another: bool) {
        *held(&self.refused) = Some(RefusedRevision { why, has_another });
    }

    fn forget_refused(&self) {
        *held(&self.refused) = None;
    }

    fn doubt(&self, why: Option<String>) {
        let mut doubted = held(&self.doubted);
        let since = doubted.as_ref().map_or_else(now, |(since, _)| *since);
        *doubted = why.map(|why| (since, why));
    }

    fn leaves_out(&self, objects: Vec<String>) {
        *held(&self.left_out) = objects;
    }
}

/// A look of the controller's loop that takes longer stands still: the largest plans take seconds, EC2 is not waited for, and every call of the
/// API server has a limit.
pub const LOOK_MAX: Duration = Duration::from_mins(3);

/// Whether the controller's loop goes on: since when it has looked, or nothing while it waits. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    looks_since: Arc<Mutex<Option<Instant>>>,
    longest: Duration,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self::with_longest(LOOK_MAX)
    }
}

impl Heartbeat {
    pub fn with_longest(longest: Duration) -> Self {
        Self { looks_since: Arc::default(), longest }
    }

    /// A look begins.
    pub fn begins(&self) {
        self.set(Some(now()));
    }

    /// A look is complete.
    pub fn ends(&self) {
        self.set(None);
    }

    fn set(&self, since: Option<Instant>) {
        *self.looks_since.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    /// How long the look takes already, if that is too long.
    fn stands_still(&self) -> Option<Duration> {
        let since = *self.looks_since.lock().unwrap_or_else(PoisonError::into_inner);
        since.map(|since| now().duration_since(since)).filter(|age| *age > self.longest)
    }
}

#[expect(clippy::disallowed_methods, reason = "how long a look takes is measured by a clock that nobody sets")]
fn now() -> Instant {
    Instant::now()
}

/// Serves in the background until the runtime ends; gives the address, whose port the system chose where it was 0.
/// `before_metrics` is called for each scrape, to measure what is not measured as it happens.
pub async fn serve(
    address: SocketAddr,
    metrics: Metrics,
    readiness: Readiness,
    heartbeat: Heartbeat,
    before_metrics: impl Fn(&Metrics) + Clone + Send + Sync + 'static,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let scrape = move || async move {
        before_metrics(&metrics);
        ([(header::CONTENT_TYPE, OPEN_METRICS)], metrics.text()).into_response()
    };
    let ready = move || async move {
        let remark = readiness.remark();
        match readiness.obstacle() {
            None => (StatusCode::OK, remark),
            Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")),
        }
    };
    let healthy = move || async move {
        match heartbeat.stands_still() {
            None => (StatusCode::OK, "ok\n".to_owned()),
            Some(age) => {
                let text = format!("no look was completed for {} seconds\n", age.as_secs());
                (StatusCode::SERVICE_UNAVAILABLE, text)
            }
        }
    };
    let router =
        Router::new().route("/metrics", get(scrape)).route("/healthz", get(healthy)).route("/readyz", get(ready));
    tokio::spawn(http::serve(listener, router, INCOMINGS, ANSWERED_WITHIN));
    Ok(address)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;
    use crate::adapters::http::{HEADERS_WITHIN, SILENT_MAX};

    #[expect(clippy::disallowed_methods, reason = "a test asks as a kubelet does")]
    async fn get(address: SocketAddr, path: &'static str) -> String {
        let asked = tokio::task::spawn_blocking(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        });
        asked.await.unwrap()
    }

    /// More than may be open, none of which ever asks for anything.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[expect(clippy::disallowed_methods, reason = "a test connects as anybody can")]
    async fn connections_that_ask_for_nothing_hold_nothing() {
        let address = ([127, 0, 0, 1], 0).into();
        let served = serve(address, Metrics::default(), Readiness::default(), Heartbeat::default(), |_| {});
        let address = served.await.unwrap();
        let mut silent = Vec::new();
        for _ in 0..SILENT_MAX + 10 {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET /healthz HTTP/1.1\r\nHost:").unwrap();
            silent.push(stream);
        }
        let begin = Instant::now();
        assert!(get(address, "/healthz").await.starts_with("HTTP/1.1 200"));
        assert!(begin.elapsed() < HEADERS_WITHIN, "it waits for none of them: {:?}", begin.elapsed());
        let mut stream = silent.remove(0);
        stream.set_read_timeout(Some(2 * HEADERS_WITHIN)).unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "closed: {}", String::from_utf8_lossy(&rest));
    }

    /// Who rolls it out waits for it to be ready before the one that leads ends.
    #[tokio::test]
    async fn ready_is_who_sees_the_cluster_by_a_revision_or_waits_to_lead() {
        let readiness = Readiness::default();
        let address = ([127, 0, 0, 1], 0).into();
        let served = serve(address, Metrics::default(), readiness.clone(), Heartbeat::default(), |_| {});
        let address = served.await.unwrap();
        let says = async |status: &str, text: &str| {
            let answer = get(address, "/readyz").await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(text), "{text}: {answer}");
        };
        says("503", "the cluster has not been read yet").await;
        readiness.waits_to_lead();
        says("200", "another replica leads").await;
        readiness.waits_for_definitions(Some("the remote has no commit yet".to_owned()));
        says("503", "there are no definitions yet: the remote has no commit yet").await;
        readiness.waits_for_definitions(None);
        says("503", "the cluster has not been read yet").await;
        readiness.doubt(Some("it is not known how pods are".to_owned()));
        says("503", "the cluster has not been read yet: it is not known how pods are").await;
        readiness.doubt(None);
        readiness.set(true);
        says("200", "ready").await;
        readiness.refuse("revision abc has errors".to_owned(), false);
        says("503", "no revision is in force: revision abc has errors").await;
        readiness.refuse("revision abc has errors".to_owned(), true);
        says("200", "by the revision before: revision abc has errors").await;
        readiness.forget_refused();
        says("200", "ready\n").await;
        readiness.leaves_out(vec!["NodeClaim odd can not be read: spec".to_owned()]);
        says("200", "ready\nNodeClaim odd can not be read: spec\n").await;
    }

    #[tokio::test]
    async fn a_loop_that_stands_still_is_unhealthy() {
        let heartbeat = Heartbeat::with_longest(Duration::from_millis(20));
        let address = ([127, 0, 0, 1], 0).into();
        let served = serve(address, Metrics::default(), Readiness::default(), heartbeat.clone(), |_| {});
        let address = served.await.unwrap();
        assert!(get(address, "/healthz").await.starts_with("HTTP/1.1 200"));
        heartbeat.begins();
        tokio::time::sleep(Duration::from_millis(40)).await;
        let answer = get(address, "/healthz").await;
        assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("no look was completed"), "{answer}");
        heartbeat.ends();
        assert!(get(address, "/healthz").await.starts_with("HTTP/1.1 200"));
    }
}
