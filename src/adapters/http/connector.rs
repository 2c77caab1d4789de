//! Connections: TLS with the certificates that the system trusts.

use std::sync::Arc;
use std::time::Duration;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;

pub type Connector = HttpsConnector<HttpConnector>;

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
    Ok(HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().wrap_connector(plain))
}
