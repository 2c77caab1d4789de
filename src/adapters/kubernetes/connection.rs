//! Which cluster, and as whom.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::header::DATE;
use http::{Request, Response};
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use tower::layer::layer_fn;
use tower::util::{MapRequestLayer, MapResponseLayer};

use super::calls::Calls;
use super::kubeconfig::{has_sendable_token, remember_secrets, without_lines};
use super::server_time::ServerTime;
use super::whole_call::{LastWrite, WholeCall};
use crate::adapters::http::has_proxy;

/// An API server that does not answer within this time is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// An API server that is silent for so long does not answer. A write that is not answered as a whole within this time has failed; whether it
/// was carried out is seen by the next look.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// A page of a list is large, and the client asks for it again where the server has too much to do.
const READ_MAX: Duration = Duration::from_secs(120);
const ELECTION_TIMEOUT: Duration = Duration::from_secs(4);

/// A client, and what it is connected to.
#[derive(Clone)]
pub struct Connection {
    pub client: Client,
    /// The same for what a controller does: the answer is the answer. A client that asks again by itself where the server has too much
    /// to do, or a budget forbids an eviction, would hold up everything else for minutes.
    pub acting: Client,
    /// The same for watches, which may be silent for long.
    pub watching: Client,
    /// The same for the lease, whose holder must know soon that it can not renew; it asks again itself.
    pub electing: Client,
    /// When that last wrote the lease.
    pub(super) lease_written: LastWrite,
    /// The API server's address, for messages.
    pub address: String,
    /// By which it is believed, as DER; empty where the machine's own count.
    pub certificates: Vec<Vec<u8>>,
    /// The namespace of the context, or of the pod this runs in.
    pub namespace: String,
    /// Every call that goes through the client.
    pub calls: Calls,
    /// What time it is, by the API server's answers.
    pub time: ServerTime,
}

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Of a file that was named, or else of the environment.
    #[error("{}", path.as_ref().map_or_else(|| "the usual kubeconfig".to_owned(), |path| format!("kubeconfig {}", path.display())))]
    Kubeconfig { path: Option<PathBuf>, source: Box<dyn Error + Send + Sync> },
    #[error("no kubeconfig, and not in a cluster")]
    NoCluster { source: Box<kube::config::InferConfigError> },
    #[error("the kubeconfig's context{} can not be used", context.as_deref().map(|name| format!(" {name}")).unwrap_or_default())]
    Context { context: Option<String>, source: Box<KubeconfigError> },
    #[error("the token of the kubeconfig's user holds a line break, or something else that no header can hold")]
    Token,
    #[error("client for {address}")]
    Client { address: String, source: Box<kube::Error> },
}

/// A client for the cluster that `kubeconfig` (else `KUBECONFIG`, `~/.kube/config`, or the pod's service account) names. Nothing
/// is asked of the cluster yet.
pub async fn connect(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Connection, ConnectError> {
    let (mut config, has_own_proxy) = match (kubeconfig, context) {
        (None, None) => {
            let read = match Kubeconfig::read() {
                // It is the one that would be used, and says where it is wrong.
                Err(source @ KubeconfigError::Parse(_)) => {
                    return Err(ConnectError::Kubeconfig { path: None, source: without_lines(source) });
                }
                read => read.ok(),
            };
            read.iter().for_each(remember_secrets);
            let config = Config::infer().await;
            let config = config.map_err(|source| ConnectError::NoCluster { source: Box::new(source) })?;
            (config, read.is_some_and(|read| names_proxy(&read, None)))
        }
        (path, context) => {
            let read = match path {
                Some(path) => Kubeconfig::read_from(path),
                None => Kubeconfig::read(),
            };
            let path = path.map(Path::to_owned);
            let read = read.map_err(|source| ConnectError::Kubeconfig { path, source: without_lines(source) })?;
            remember_secrets(&read);
            let has_own_proxy = names_proxy(&read, context);
            let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
            let config = Config::from_custom_kubeconfig(read, &options).await;
            let config = config.map_err(|source| ConnectError::Context {
                context: context.map(str::to_owned),
                source: Box::new(source),
            })?;
            (config, has_own_proxy)
        }
    };
    if !has_sendable_token(&config.auth_info) {
        return Err(ConnectError::Token);
    }
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    // The library takes the environment's proxy without asking NO_PROXY about the API server.
    config.proxy_url = config.proxy_url.filter(|_| has_own_proxy || has_proxy(&config.cluster_url));
    let address = config.cluster_url.to_string();
    let namespace = config.default_namespace.clone();
    let (calls, time) = (Calls::default(), ServerTime::default());
    let lease_written = LastWrite::default();
    let client = |limits: Option<Limits>, asks_again: bool, last_write: &LastWrite| {
        let mut config = config.clone();
        config.read_timeout = limits.map(|limits| limits.silence);
        config.default_retry = asks_again;
        let whole = limits.map(|limits| limits.whole);
        limited(config, &calls, &time, whole, last_write)
            .map_err(|source| ConnectError::Client { address: address.clone(), source: Box::new(source) })
    };
    let (election, write) = (Limits::of(ELECTION_TIMEOUT), Limits::of(ANSWER_TIMEOUT));
    let read = Limits { whole: READ_MAX, ..write };
    let nobody_asks = LastWrite::default();
    Ok(Connection {
        client: client(Some(read), true, &nobody_asks)?,
        acting: client(Some(write), false, &nobody_asks)?,
        // Watches are quiet for as long as nothing happens; the server ends them when their time is over.
        watching: client(None, true, &nobody_asks)?,
        electing: client(Some(election), false, &lease_written)?,
        lease_written,
        address: address.clone(),
        certificates: config.root_cert.clone().unwrap_or_default(),
        namespace,
        calls: calls.clone(),
        time: time.clone(),
    })
}

/// Whether the kubeconfig itself names a proxy for the cluster of a context.
fn names_proxy(kubeconfig: &Kubeconfig, context: Option<&str>) -> bool {
    let used = context.or(kubeconfig.current_context.as_deref());
    let context =
        kubeconfig.contexts.iter().find(|it| Some(it.name.as_str()) == used).and_then(|it| it.context.as_ref());
    let cluster = context.and_then(|it| kubeconfig.clusters.iter().find(|cluster| cluster.name == it.cluster));
    cluster.and_then(|it| it.cluster.as_ref()?.proxy_url.as_ref()).is_some_and(|url| !url.is_empty())
}

/// How long a call may take.
#[derive(Clone, Copy)]
struct Limits {
    /// Between two pieces of an answer.
    silence: Duration,
    whole: Duration,
}

impl Limits {
    fn of(limit: Duration) -> Self {
        Self { silence: limit, whole: limit }
    }
}

/// A client whose calls end within a time and are counted, and whose answers say what time it is.
fn limited(
    config: Config,
    calls: &Calls,
    time: &ServerTime,
    limit: Option<Duration>,
    last_write: &LastWrite,
) -> Result<Client, kube::Error> {
    let (calls, time, last_write) = (calls.clone(), time.clone(), last_write.clone());
    let count = MapRequestLayer::new(move |request: Request<Body>| {
        calls.count(request.method(), request.uri().path(), request.uri().query());
        request
    });
    let hear = MapResponseLayer::new(move |answer: Response<_>| {
        if let Some(date) = answer.headers().get(DATE).and_then(|date| date.to_str().ok()) {
            time.hear(date);
        }
        answer
    });
    let builder = ClientBuilder::try_from(config)?.with_layer(&hear).with_layer(&count);
    let Some(limit) = limit else { return Ok(builder.build()) };
    let end = layer_fn(move |inner| WholeCall { inner, limit, last_write: last_write.clone() });
    Ok(builder.with_layer(&end).build())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread::{sleep, spawn};

    use super::*;

    const ANSWER: &[u8] = br#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}"#;

    /// An API server that answers one call byte by byte, with so long between two of them.
    #[expect(clippy::disallowed_methods, reason = "a server of the test's own, in a thread of its own")]
    fn address_of_slow_server(pause: Duration) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            assert!(connection.read(&mut [0; 4096]).unwrap() > 0);
            let length = ANSWER.len();
            let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
            connection.write_all(head.as_bytes()).unwrap();
            for byte in ANSWER {
                if connection.write_all(&[*byte]).is_err() {
                    break;
                }
                sleep(pause);
            }
        });
        address
    }

    #[tokio::test]
    async fn an_answer_that_comes_byte_by_byte_ends_with_the_time_of_the_call() {
        for (pause, limit, is_answered) in [(200, 500, false), (0, 20_000, true)] {
            let address = address_of_slow_server(Duration::from_millis(pause));
            let mut config = Config::new(address.parse().unwrap());
            config.read_timeout = Some(Duration::from_secs(20));
            let (calls, time, last_write) = (Calls::default(), ServerTime::default(), LastWrite::default());
            let limit = Some(Duration::from_millis(limit));
            let client = limited(config, &calls, &time, limit, &last_write).unwrap();
            let request = Request::patch("/lease").body(Vec::new()).unwrap();
            let answer = client.request_text(request).await;
            assert_eq!(answer.is_ok(), is_answered, "{answer:?}");
            assert_eq!(last_write.began_at().is_some(), is_answered, "a write counts when it was answered");
        }
    }
}
