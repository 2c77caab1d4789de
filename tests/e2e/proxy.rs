//! Between the program and the API server: passes everything on, and lets the watches of one kind hang in silence or end, or answers whoever
//! lists or watches it with a failure, or with what nobody can read.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use futures::stream::unfold;
use http::StatusCode;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// As much as an API server takes.
const BYTES_MAX: usize = 4 << 20;

/// What becomes of the watches of a kind, those that are open and those to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// They stay open, and nothing comes.
    Hangs,
    /// They end as soon as they begin.
    Ends,
    /// They end, and lists and watches are answered with this status.
    Answers(StatusCode),
    /// They end, and lists and watches are answered with what is no object.
    Garbage,
}

/// Begins as an answer of the API server does.
const GARBAGE: &str = "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"\u{1}\"},\"items\":[{\"metadata\":7},\n";

/// By the name of the kind in paths, such as `pods`.
type Faults = Option<(String, Fault)>;

pub struct Proxy {
    address: SocketAddr,
    faults: watch::Sender<Faults>,
    // Ends the server when it is dropped.
    _runtime: Runtime,
}

struct Shared {
    upstream: Client,
    faults: watch::Receiver<Faults>,
}

impl Proxy {
    /// Before the API server at this address, whose certificate is in a file. Who asks is whoever the request says.
    pub fn start(server: &str, certificate: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let kubeconfig: Kubeconfig = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
            "clusters": [{ "name": "proxy", "cluster": { "server": server, "certificate-authority": certificate } }],
            "users": [{ "name": "nobody", "user": {} }],
            "contexts": [{ "name": "proxy", "context": { "cluster": "proxy", "user": "nobody" } }],
        }))
        .unwrap();
        let (faults, seen) = watch::channel(None);
        let address = runtime.block_on(async {
            let mut config =
                kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
            config.read_timeout = None;
            let shared = Arc::new(Shared { upstream: Client::try_from(config).unwrap(), faults: seen });
            let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            let address = listener.local_addr().unwrap();
            let router = Router::new().fallback(pass_on).with_state(shared);
            tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
            address
        });
        Self { address, faults, _runtime: runtime }
    }

    pub fn server(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on, for watches of this kind and no other.
    pub fn fail(&self, resource: &str, fault: Fault) {
        self.faults.send_replace(Some((resource.to_owned(), fault)));
    }

    pub fn heal(&self) {
        self.faults.send_replace(None);
    }
}

async fn pass_on(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let watched = watched(&request);
    if let Some(answer) = answered_here(&request, &shared.faults.borrow()) {
        return answer;
    }
    let (mut parts, body) = request.into_parts();
    for header in [HOST, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
        parts.headers.remove(header);
    }
    let Ok(bytes) = to_bytes(body, BYTES_MAX).await else { return StatusCode::BAD_REQUEST.into_response() };
    let mut asked = http::Request::new(kube::client::Body::from(bytes.to_vec()));
    *asked.method_mut() = parts.method;
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    *asked.uri_mut() = path.parse().unwrap();
    *asked.headers_mut() = parts.headers;
    let Ok(answered) = shared.upstream.send(asked).await else { return StatusCode::BAD_GATEWAY.into_response() };
    let (mut parts, body) = answered.into_parts();
    for header in [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
        parts.headers.remove(header);
    }
    let body = Body::new(body);
    let body = match watched {
        Some(resource) => with_faults(body, resource, shared.faults.clone()),
        None => body,
    };
    Response::from_parts(parts, body)
}

/// The answer to who lists or watches a kind of which nothing else is heard.
fn answered_here(request: &Request, faults: &Faults) -> Option<Response> {
    let (resource, fault) = faults.as_ref()?;
    let is_asked =
        request.method() == http::Method::GET && request.uri().path().rsplit('/').next() == Some(resource.as_str());
    match fault {
        Fault::Hangs | Fault::Ends => None,
        Fault::Answers(status) => is_asked.then(|| {
            let failure = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "as the test says", "code": status.as_u16() });
            (*status, [(CONTENT_TYPE, "application/json")], failure.to_string()).into_response()
        }),
        Fault::Garbage => is_asked.then(|| ([(CONTENT_TYPE, "application/json")], GARBAGE).into_response()),
    }
}

/// The kind that is watched, where it is a watch.
fn watched(request: &Request) -> Option<String> {
    let query = request.uri().query().unwrap_or_default();
    let is_watch = query.split('&').any(|part| matches!(part, "watch=true" | "watch=1"));
    is_watch.then(|| request.uri().path().rsplit('/').next().unwrap_or_default().to_owned())
}

fn with_faults(body: Body, resource: String, faults: watch::Receiver<Faults>) -> Body {
    let frames = body.into_data_stream();
    Body::from_stream(unfold((frames, faults, resource), |(mut frames, mut faults, resource)| async move {
        loop {
            let fault = faults.borrow_and_update().clone().filter(|(kind, _)| *kind == resource);
            match fault {
                Some((_, Fault::Ends | Fault::Answers(_) | Fault::Garbage)) => return None,
                Some((_, Fault::Hangs)) => faults.changed().await.ok()?,
                None => tokio::select! {
                    frame = frames.next() => return Some((frame?, (frames, faults, resource))),
                    changed = faults.changed() => changed.ok()?,
                },
            }
        }
    }))
}
