//! Snapshots as artifacts of an OCI registry: one layer, five requests to put it there, two to get it back.
//! Source: the OCI distribution specification 1.1, <https://github.com/opencontainers/distribution-spec/blob/v1.1.0/spec.md>.

#![expect(clippy::disallowed_methods, reason = "this adapter reads a file of credentials")]

mod challenge;
mod client;
mod reference;

use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::core::model::hexadecimal;

use client::{Ask, Client};

pub use client::{Credentials, RegistryError};
pub use reference::{Reference, ReferenceError, SCHEME};

/// What the artifact is.
const ARTIFACT: &str = "application/vnd.cutlist.snapshot.v1";
const LAYER: &str = "application/vnd.cutlist.snapshot.v1+json+gzip";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
/// The configuration that an artifact without one has.
const EMPTY_CONTENT: &[u8] = b"{}";
/// Of a manifest with one layer.
const MANIFEST_BYTES_MAX: usize = 1 << 20;
/// Of a compressed snapshot.
const LAYER_BYTES_MAX: usize = 512 << 20;

/// Puts a compressed snapshot under the tag of the reference, and gives the digest of its manifest. What was there before has no tag
/// any more: the registry's own policy says when it goes.
pub async fn push(
    to: &Reference,
    credentials: Option<Credentials>,
    content: Vec<u8>,
    title: &str,
    created: &str,
) -> Result<String, RegistryError> {
    let mut client = Client::new(to, credentials, "pull,push")?;
    let layer = descriptor(LAYER, &content, json!({ "org.opencontainers.image.title": title }));
    let config = descriptor(EMPTY, EMPTY_CONTENT, Value::Null);
    upload(&mut client, content).await?;
    upload(&mut client, EMPTY_CONTENT.to_vec()).await?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": ARTIFACT,
        "config": config,
        "layers": [layer],
        "annotations": { "org.opencontainers.image.created": created },
    });
    let manifest = manifest.to_string().into_bytes();
    let digest = digest(&manifest);
    let path = format!("/manifests/{}", to.tag());
    client.ask(Ask { content_type: MANIFEST, body: manifest, ..Ask::of(Method::PUT, path) }).await?;
    Ok(digest)
}

/// The snapshot under the tag or digest of the reference, with the digest of its manifest. Both are held against their digests.
pub async fn pull(from: &Reference, credentials: Option<Credentials>) -> Result<(String, Vec<u8>), RegistryError> {
    let mut client = Client::new(from, credentials, "pull")?;
    let path = format!("/manifests/{}", from.tag());
    let answer = client.ask(Ask { accept: MANIFEST, most: MANIFEST_BYTES_MAX, ..Ask::of(Method::GET, path) }).await?;
    let found = digest(&answer.body);
    let differs =
        |wanted: &str, found: &str| RegistryError::Digest { wanted: wanted.to_owned(), found: found.to_owned() };
    if from.tag().starts_with("sha256:") && from.tag() != found {
        return Err(differs(from.tag(), &found));
    }
    let manifest: Value = serde_json::from_slice(&answer.body).map_err(RegistryError::Manifest)?;
    let layer = manifest["layers"][0]["digest"].as_str().filter(|it| is_digest(it)).map(str::to_owned);
    let Some(layer) = layer.filter(|_| manifest["artifactType"] == ARTIFACT) else {
        return Err(RegistryError::NoSnapshot {
            what: manifest["artifactType"].as_str().unwrap_or("an image").to_owned(),
        });
    };
    let blob = Ask { most: LAYER_BYTES_MAX, follows: true, ..Ask::of(Method::GET, format!("/blobs/{layer}")) };
    let content = client.ask(blob).await?.body;
    let found_layer = digest(&content);
    if found_layer != layer {
        return Err(differs(&layer, &found_layer));
    }
    Ok((found, content))
}

async fn upload(client: &mut Client, content: Vec<u8>) -> Result<(), RegistryError> {
    let digest = digest(&content);
    let begun = client.ask(Ask::of(Method::POST, "/blobs/uploads/".to_owned())).await?;
    let Some(location) = begun.location.filter(|_| begun.status == StatusCode::ACCEPTED) else {
        return Err(RegistryError::NoUpload);
    };
    let sign = if location.contains('?') { '&' } else { '?' };
    let path = format!("{location}{sign}digest={}", digest.replace(':', "%3A"));
    let put = Ask { content_type: "application/octet-stream", body: content, ..Ask::of(Method::PUT, path) };
    client.ask(put).await.map(|_| ())
}

fn descriptor(media_type: &str, content: &[u8], annotations: Value) -> Value {
    let mut descriptor = json!({ "mediaType": media_type, "digest": digest(content), "size": content.len() });
    if !annotations.is_null() {
        descriptor["annotations"] = annotations;
    }
    descriptor
}

fn digest(content: &[u8]) -> String {
    format!("sha256:{}", hexadecimal(Sha256::digest(content)))
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hash| hash.len() == 64 && hash.bytes().all(|it| it.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests;
