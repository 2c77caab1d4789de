//! The archive of an artifact: within limits, from the address that the object names and no other, and of the digest that it names.

use std::time::Duration;

use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::header::USER_AGENT;
use hyper::{Request, StatusCode, Uri};
use sha2::{Digest, Sha256, Sha384, Sha512};

use super::artifact::Artifact;
use crate::adapters::http::{AGENT, Connector, connector};
use crate::core::model::hexadecimal;

const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// All of it.
const WITHIN: Duration = Duration::from_secs(60);
/// A repository of manifests has some megabytes, packed.
const BYTES_MAX: usize = 64 << 20;

#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    #[error("no trust in certificates can be set up")]
    Trust(#[source] rustls::Error),
    #[error("the artifact's address is none that can be asked")]
    NoAddress,
    #[error("{host} can not be asked")]
    Unreachable { host: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("{host} did not send the artifact within {} s", WITHIN.as_secs())]
    Late { host: String },
    #[error("{host} answers {status}")]
    Refused { host: String, status: StatusCode },
    #[error("the artifact is larger than {} MiB", BYTES_MAX >> 20)]
    TooLarge,
    #[error("the artifact has the digest {found}, and should have {wanted}")]
    Digest { wanted: String, found: String },
    #[error("the artifact's digest is `{0}`: sha256, sha384 and sha512 are known")]
    UnknownDigest(String),
}

impl DownloadError {
    /// Whether nothing but another artifact makes it better.
    pub fn stays(&self) -> bool {
        matches!(self, Self::NoAddress | Self::TooLarge | Self::UnknownDigest(_))
    }
}

pub struct Downloads {
    connections: hyper_util::client::legacy::Client<Connector, Empty<Bytes>>,
}

impl Downloads {
    pub fn new() -> Result<Self, DownloadError> {
        let connector = connector(CONNECT_WITHIN).map_err(DownloadError::Trust)?;
        let mut builder = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new());
        Ok(Self { connections: builder.pool_max_idle_per_host(0).build(connector) })
    }

    /// The bytes of the archive. In a cluster they come unencrypted; it is the digest that proves them.
    pub async fn get(&self, artifact: &Artifact) -> Result<Vec<u8>, DownloadError> {
        let uri: Uri = artifact.url.parse().map_err(|_| DownloadError::NoAddress)?;
        let host = uri.host().ok_or(DownloadError::NoAddress)?.to_owned();
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(DownloadError::NoAddress);
        }
        let late = |_| DownloadError::Late { host: host.clone() };
        let bytes = tokio::time::timeout(WITHIN, self.fetch(uri, &host)).await.map_err(late)??;
        let found = digest_as(&artifact.digest, &bytes)?;
        if found != artifact.digest {
            return Err(DownloadError::Digest { wanted: artifact.digest.clone(), found });
        }
        Ok(bytes.to_vec())
    }

    async fn fetch(&self, uri: Uri, host: &str) -> Result<Bytes, DownloadError> {
        let unreachable = |source| DownloadError::Unreachable { host: host.to_owned(), source };
        let request = Request::get(uri).header(USER_AGENT, AGENT).body(Empty::new());
        let request = request.map_err(|_| DownloadError::NoAddress)?;
        let answer = self.connections.request(request).await.map_err(|error| unreachable(error.into()))?;
        // Redirects are not followed: the object names the address.
        if answer.status() != StatusCode::OK {
            return Err(DownloadError::Refused { host: host.to_owned(), status: answer.status() });
        }
        let body = Limited::new(answer.into_body(), BYTES_MAX).collect().await;
        let body = body.map_err(|error| match error.is::<LengthLimitError>() {
            true => DownloadError::TooLarge,
            false => unreachable(error),
        })?;
        Ok(body.to_bytes())
    }
}

/// The digest of the bytes, in the way in which another one was made.
fn digest_as(wanted: &str, bytes: &[u8]) -> Result<String, DownloadError> {
    let algorithm = wanted.split_once(':').map_or("", |(algorithm, _)| algorithm);
    let digits = match algorithm {
        "sha256" => hexadecimal(Sha256::digest(bytes)),
        "sha384" => hexadecimal(Sha384::digest(bytes)),
        "sha512" => hexadecimal(Sha512::digest(bytes)),
        _ => return Err(DownloadError::UnknownDigest(wanted.chars().take(100).collect())),
    };
    Ok(format!("{algorithm}:{digits}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_made_as_the_object_has_them() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest_as(empty, b"").unwrap(), empty);
        assert!(digest_as("sha512:", b"").unwrap().starts_with("sha512:cf83e1357eefb8bd"));
        assert!(digest_as("sha384:", b"").unwrap().starts_with("sha384:38b060a751ac9638"));
        for digest in ["", "e3b0", "md5:a", "blake3:a"] {
            assert!(digest_as(digest, b"").is_err(), "{digest}");
        }
    }
}
