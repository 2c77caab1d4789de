//! An API server that has one source, and a source-controller that serves artifacts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, RawQuery, State as Shared};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use kube::Config;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::*;
use crate::core::model::hexadecimal;
use crate::ports::chain;

#[derive(Clone, Default)]
struct World {
    object: Arc<Mutex<Option<Value>>>,
    version: Arc<Mutex<u64>>,
    changed: Arc<Notify>,
    artifacts: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    asked: Arc<Mutex<Vec<String>>>,
    is_forbidden: bool,
    address: String,
}

const OBJECTS: &str = "/apis/source.toolkit.fluxcd.io/v1/namespaces/flux-system/gitrepositories";

impl World {
    async fn start(mut self) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        self.address = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new()
            .route(OBJECTS, get(list_or_watch))
            .route("/artifacts/{name}", get(artifact))
            .with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        self
    }

    fn follow(&self) -> FluxSource {
        let mut config = Config::new(self.address.parse().unwrap());
        config.default_namespace = "default".to_owned();
        let client = Client::try_from(config).unwrap();
        FluxSource::follow(&client, "GitRepository/nodes.flux-system".parse().unwrap()).unwrap()
    }

    fn says(&self, status: Option<Value>) {
        self.is(status, &json!({}));
    }

    fn is(&self, status: Option<Value>, spec: &Value) {
        let mut version = self.version.lock().unwrap();
        *version += 1;
        let object = status.map(|status| {
            json!({
                "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "spec": spec, "status": status,
                "metadata": { "name": "nodes", "namespace": "flux-system", "resourceVersion": version.to_string() },
            })
        });
        *self.object.lock().unwrap() = object;
        self.changed.notify_waiters();
    }

    fn suspends(&self, is_suspended: bool) {
        let status = self.object.lock().unwrap().as_ref().map(|object| object["status"].clone());
        self.is(status, &json!({ "suspend": is_suspended }));
    }

    /// An artifact with this content; `digest`: what the object says of it.
    fn fetches(&self, name: &str, digest: Option<&str>) -> Value {
        let content = name.as_bytes().to_vec();
        let right = format!("sha256:{}", hexadecimal(Sha256::digest(&content)));
        self.artifacts.lock().unwrap().insert(name.to_owned(), content);
        json!({ "artifact": {
            "url": format!("{}/artifacts/{name}", self.address), "revision": format!("main@sha1:{name}"),
            "digest": digest.unwrap_or(&right),
        } })
    }
}

fn as_json(value: &Value) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], format!("{value}\n"))
}

async fn list_or_watch(Shared(world): Shared<World>, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    assert!(query.contains("fieldSelector=metadata.name%3Dnodes"), "{query}");
    let query: BTreeMap<&str, &str> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
    if world.is_forbidden {
        let status = json!({ "kind": "Status", "apiVersion": "v1", "code": 403, "reason": "Forbidden", "status": "Failure",
                             "message": "gitrepositories is forbidden" });
        return (StatusCode::FORBIDDEN, as_json(&status)).into_response();
    }
    let now = || (world.object.lock().unwrap().clone(), *world.version.lock().unwrap());
    if !query.contains_key("watch") {
        let (object, version) = now();
        let items: Vec<Value> = object.into_iter().collect();
        let list = json!({ "kind": "GitRepositoryList", "apiVersion": "source.toolkit.fluxcd.io/v1", "items": items,
                           "metadata": { "resourceVersion": version.to_string() } });
        return as_json(&list).into_response();
    }
    let since: u64 = query["resourceVersion"].parse().unwrap();
    loop {
        let changed = world.changed.notified();
        let (object, version) = now();
        if version > since {
            let gone = json!({ "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
                               "metadata": { "name": "nodes", "namespace": "flux-system", "resourceVersion": version.to_string() } });
            let event = match object {
                Some(object) => json!({ "type": "MODIFIED", "object": object }),
                None => json!({ "type": "DELETED", "object": gone }),
            };
            return as_json(&event).into_response();
        }
        changed.await;
    }
}

async fn artifact(Shared(world): Shared<World>, Path(name): Path<String>) -> Response {
    world.asked.lock().unwrap().push(name.clone());
    if name == "elsewhere" {
        return (StatusCode::FOUND, [(header::LOCATION, "/artifacts/first")]).into_response();
    }
    match world.artifacts.lock().unwrap().get(&name) {
        Some(content) => content.clone().into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn next(source: &mut FluxSource) -> Result<Option<String>, String> {
    match source.next().await {
        Ok(Some(downloaded)) => {
            source.took(&downloaded);
            assert_eq!(downloaded.archive, downloaded.revision.id.as_bytes());
            Ok(Some(downloaded.title))
        }
        Ok(None) => Ok(None),
        Err(error) => Err(chain(&error)),
    }
}

async fn changed(source: &mut FluxSource) {
    tokio::time::timeout(Duration::from_secs(10), source.changed()).await.unwrap();
}

#[tokio::test]
async fn each_artifact_is_handed_over_once() {
    let world = World::default().start().await;
    world.says(Some(world.fetches("first", None)));
    let mut source = world.follow();
    assert_eq!(next(&mut source).await, Ok(Some("main@sha1:first".to_owned())));
    assert_eq!(next(&mut source).await, Ok(None));
    world.says(Some(world.fetches("second", None)));
    changed(&mut source).await;
    assert_eq!(next(&mut source).await, Ok(Some("main@sha1:second".to_owned())));
    assert_eq!(*world.asked.lock().unwrap(), ["first", "second"]);
}

/// A commit that changes nothing of what Flux packs is the revision all the same.
#[tokio::test]
async fn the_same_archive_of_another_revision_is_handed_over() {
    let world = World::default().start().await;
    let mut status = world.fetches("first", None);
    world.says(Some(status.clone()));
    let mut source = world.follow();
    assert_eq!(next(&mut source).await, Ok(Some("main@sha1:first".to_owned())));
    status["artifact"]["revision"] = json!("other@sha1:first");
    world.says(Some(status));
    changed(&mut source).await;
    assert_eq!(next(&mut source).await, Ok(Some("other@sha1:first".to_owned())));
    assert_eq!(next(&mut source).await, Ok(None));
}

#[tokio::test]
async fn what_is_not_what_the_object_says_changes_nothing() {
    let world = World::default().start().await;
    world.says(Some(world.fetches("first", None)));
    let mut source = world.follow();
    assert!(next(&mut source).await.unwrap().is_some());
    let wrong = format!("sha256:{}", "0".repeat(64));
    world.says(Some(world.fetches("forged", Some(&wrong))));
    changed(&mut source).await;
    let error = next(&mut source).await.unwrap_err();
    assert!(error.contains("has an artifact that can not be had") && error.contains(&wrong), "{error}");
    // It is tried again by itself.
    changed(&mut source).await;
    assert!(next(&mut source).await.is_err());
    for (name, said) in [("elsewhere", "302"), ("gone", "404")] {
        let mut status = world.fetches(name, None);
        world.artifacts.lock().unwrap().remove("gone");
        status["artifact"]["revision"] = json!("main@sha1:x");
        world.says(Some(status));
        changed(&mut source).await;
        let error = next(&mut source).await.unwrap_err();
        assert!(error.contains(said) && !error.contains("artifacts/"), "{error}");
    }
    world.says(Some(world.fetches("second", None)));
    changed(&mut source).await;
    assert_eq!(next(&mut source).await, Ok(Some("main@sha1:second".to_owned())));
}

#[tokio::test]
async fn a_source_that_is_gone_or_not_ready_is_said_and_changes_nothing() {
    let world = World::default().start().await;
    let mut source = world.follow();
    let error = next(&mut source).await.unwrap_err();
    assert_eq!(error, "GitRepository/nodes.flux-system is not there");
    let refused =
        json!([{ "type": "Ready", "status": "False", "reason": "GitOperationFailed", "message": "no route" }]);
    world.says(Some(json!({ "conditions": refused })));
    changed(&mut source).await;
    assert!(next(&mut source).await.unwrap_err().ends_with("has no artifact yet: no route"));
    world.says(Some(world.fetches("first", None)));
    changed(&mut source).await;
    assert!(next(&mut source).await.unwrap().is_some());
    let mut status = world.fetches("first", None);
    status["conditions"] = refused;
    world.says(Some(status));
    changed(&mut source).await;
    let error = next(&mut source).await.unwrap_err();
    assert!(error.ends_with("is not ready, and its last artifact stays in use: no route"), "{error}");
    world.says(None);
    changed(&mut source).await;
    assert!(next(&mut source).await.unwrap_err().ends_with("is not there"));
    world.says(Some(world.fetches("first", None)));
    changed(&mut source).await;
    assert_eq!(next(&mut source).await, Ok(None), "the same as before");
    assert_eq!(*world.asked.lock().unwrap(), ["first"]);
}

#[tokio::test]
async fn a_source_that_is_suspended_is_no_trouble() {
    let world = World::default().start().await;
    world.says(Some(world.fetches("first", None)));
    let mut source = world.follow();
    assert!(next(&mut source).await.unwrap().is_some());
    assert!(!source.is_suspended());
    world.suspends(true);
    changed(&mut source).await;
    assert_eq!((next(&mut source).await, source.is_suspended()), (Ok(None), true));
    world.suspends(false);
    changed(&mut source).await;
    assert_eq!((next(&mut source).await, source.is_suspended()), (Ok(None), false));
}

#[tokio::test]
async fn a_right_that_is_missing_is_said_at_once() {
    let world = World { is_forbidden: true, ..World::default() }.start().await;
    let mut source = world.follow();
    let error = source.next().await.err().unwrap();
    assert_eq!(error.kind, PortErrorKind::Denied);
    assert!(chain(&error).contains("forbidden"), "{}", chain(&error));
}
