//! Which cluster, and as whom.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::header::DATE;
use http::{Request, Response};
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use tower::util::{MapRequestLayer, MapResponseLayer};

use super::calls::Calls;
use super::kubeconfig::{has_sendable_token, remember_secrets, without_lines};
use super::server_time::ServerTime;
use crate::adapters::http::has_proxy;

/// An API server that does not answer within this time is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A request that is not answered within this time has failed; whether it was carried out is seen by the next look.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
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
    /// The API server's address, for messages.
    pub address: String,
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
    let client = |read_timeout: Option<Duration>, asks_again: bool| {
        let mut config = config.clone();
        config.read_timeout = read_timeout;
        config.default_retry = asks_again;
        counted(config, &calls, &time)
            .map_err(|source| ConnectError::Client { address: address.clone(), source: Box::new(source) })
    };
    Ok(Connection {
        client: client(Some(ANSWER_TIMEOUT), true)?,
        acting: client(Some(ANSWER_TIMEOUT), false)?,
        // Watches are quiet for as long as nothing happens; the server ends them when their time is over.
        watching: client(None, true)?,
        electing: client(Some(ELECTION_TIMEOUT), false)?,
        address: address.clone(),
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

/// A client whose requests are counted, and whose answers say what time it is.
fn counted(config: Config, calls: &Calls, time: &ServerTime) -> Result<Client, kube::Error> {
    let (calls, time) = (calls.clone(), time.clone());
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
    Ok(ClientBuilder::try_from(config)?.with_layer(&hear).with_layer(&count).build())
}
