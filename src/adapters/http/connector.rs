//! Connections: TLS with the certificates that the system trusts, through the proxy that the environment names.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;
use tower::Service;

pub type Connector = HttpsConnector<ThroughProxy>;

/// Plain where the address says so: which addresses may, the adapter decides.
pub fn connector(within: Duration) -> Result<Connector, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()?
        .with_no_client_auth();
    let mut plain = HttpConnector::new();
    plain.enforce_http(false);
    plain.set_connect_timeout(Some(within));
    plain.set_nodelay(true);
    let through = ThroughProxy { direct: plain, proxies: Arc::new(Matcher::from_env()) };
    Ok(HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().wrap_connector(through))
}

/// Whether the environment names a proxy for what is there.
pub fn has_proxy(to: &Uri) -> bool {
    proxy_of(&Matcher::from_env(), to).is_some()
}

fn proxy_of(proxies: &Matcher, to: &Uri) -> Option<Intercept> {
    let is_encrypted = to.scheme_str() == Some("https");
    if is_encrypted && !is_this_machine(to.host().unwrap_or_default()) { proxies.intercept(to) } else { None }
}

/// Connects as `HTTPS_PROXY` (or `ALL_PROXY`) and `NO_PROXY` say, which is what Git does as well. The proxy only carries what is encrypted
/// from here to the server, so it sees no token; what is plain goes to its server and no other way.
#[derive(Clone)]
pub struct ThroughProxy {
    direct: HttpConnector,
    proxies: Arc<Matcher>,
}

/// Why there is no connection. A proxy's address may hold a password, so it is not named.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(transparent)]
    Direct(Box<dyn std::error::Error + Send + Sync>),
    #[error("the proxy that HTTPS_PROXY or ALL_PROXY names makes no connection")]
    Proxy(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("HTTPS_PROXY or ALL_PROXY names a proxy of the kind `{0}`: only http is spoken with proxies")]
    KindOfProxy(String),
}

type Connected = <HttpConnector as Service<Uri>>::Response;

impl Service<Uri> for ThroughProxy {
    type Response = Connected;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Connected, ConnectError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.direct.poll_ready(context).map_err(|error| ConnectError::Direct(error.into()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let Some(proxy) = proxy_of(&self.proxies, &to) else {
            let connected = self.direct.call(to);
            return Box::pin(async { connected.await.map_err(|error| ConnectError::Direct(error.into())) });
        };
        if proxy.uri().scheme_str() != Some("http") {
            let kind = proxy.uri().scheme_str().unwrap_or_default().to_owned();
            return Box::pin(async { Err(ConnectError::KindOfProxy(kind)) });
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.direct.clone());
        if let Some(credential) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credential.clone());
        }
        let connected = tunnel.call(to);
        Box::pin(async { connected.await.map_err(|error| ConnectError::Proxy(error.into())) })
    }
}

/// Whether a host is the machine that this runs on. An IPv6 address may have its brackets.
pub fn is_this_machine(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
