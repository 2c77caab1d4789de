//! A client of the API server that waits for each answer: requests as paths and JSON, without types, so that a test sees what
//! is there and not what a type leaves of it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use http::{Method, Request};
use kube::api::DynamicObject;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiResource, Scope, pinned_kind};
use kube::{Client, Resource};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// The field manager of what tests apply.
const MANAGER: &str = "e2e";
/// How often a condition is looked at.
const PAUSE: Duration = Duration::from_millis(100);

pub struct Cluster {
    runtime: Runtime,
    client: Client,
    kinds: RefCell<BTreeMap<(String, String), (ApiResource, Scope)>>,
}

/// How an object is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Apply {
    ForReal,
    /// Validated and admitted by the server, and not kept.
    DryRun,
}

impl Cluster {
    pub fn connect(kubeconfig: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let file = Kubeconfig::read_from(kubeconfig).unwrap();
            let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
            Client::try_from(config).unwrap()
        });
        Self { runtime, client, kinds: RefCell::default() }
    }

    pub fn text(&self, path: &str) -> Result<String, kube::Error> {
        let request = Request::get(path).body(Vec::new()).unwrap();
        self.runtime.block_on(self.client.request_text(request))
    }

    pub fn get(&self, path: &str) -> Result<Value, kube::Error> {
        self.send(Method::GET, path, "application/json", &Value::Null)
    }

    /// The objects of a collection.
    pub fn list(&self, path: &str) -> Vec<Value> {
        let Value::Array(items) = self.get(path).unwrap()["items"].take() else { panic!("{path} is no collection") };
        items
    }

    pub fn create(&self, path: &str, object: &Value) -> Result<Value, kube::Error> {
        self.send(Method::POST, path, "application/json", object)
    }

    /// In place of what is there.
    pub fn replace(&self, path: &str, object: &Value) -> Result<Value, kube::Error> {
        self.send(Method::PUT, path, "application/json", object)
    }

    pub fn delete(&self, path: &str) -> Result<Value, kube::Error> {
        self.send(Method::DELETE, path, "application/json", &Value::Null)
    }

    /// A merge patch.
    pub fn patch(&self, path: &str, patch: &Value) -> Result<Value, kube::Error> {
        self.send(Method::PATCH, path, "application/merge-patch+json", patch)
    }

    /// Server-side apply.
    pub fn apply(&self, object: &Value, how: Apply) -> Result<Value, kube::Error> {
        let dry_run = if how == Apply::DryRun { "&dryRun=All" } else { "" };
        let path = format!("{}?fieldManager={MANAGER}&force=true{dry_run}", self.path_of(object));
        self.send(Method::PATCH, &path, "application/apply-patch+yaml", object)
    }

    /// Applies all documents of a YAML text.
    pub fn apply_all(&self, text: &str) {
        for object in documents(text) {
            self.apply(&object, Apply::ForReal).unwrap_or_else(|error| panic!("{error}\n{object:#}"));
        }
    }

    /// A node that kwok keeps. With its room from the start: kwok fills in what is missing, and generously.
    pub fn add_node(&self, name: &str, cpu: &str) {
        let room = json!({ "cpu": cpu, "memory": "8Gi", "pods": "10" });
        let node = json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": { "name": name },
            "status": { "capacity": room, "allocatable": room },
        });
        self.create("/api/v1/nodes", &node).unwrap();
    }

    /// A token of a service account.
    pub fn token(&self, namespace: &str, service_account: &str) -> String {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token");
        let request = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} });
        self.create(&path, &request).unwrap()["status"]["token"].as_str().unwrap().to_owned()
    }

    /// Waits until `look` finds what it looks for; panics after `patience`, with what there was instead.
    pub fn wait<T>(&self, what: &str, patience: Duration, mut look: impl FnMut(&Self) -> Result<T, String>) -> T {
        let begin = Instant::now();
        loop {
            match look(self) {
                Ok(found) => return found,
                Err(instead) if begin.elapsed() > patience => {
                    panic!("not within {} s: {what}; instead: {instead}", patience.as_secs())
                }
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    /// The path of an object, by what the server says of its kind.
    pub fn path_of(&self, object: &Value) -> String {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let (resource, scope) = self.kind(&version, &kind);
        let namespace = match object["metadata"]["namespace"].as_str() {
            _ if scope == Scope::Cluster => None,
            Some(namespace) => Some(namespace),
            None => Some("default"),
        };
        let name = object["metadata"]["name"].as_str().unwrap();
        format!("{}/{name}", DynamicObject::url_path(&resource, namespace))
    }

    fn kind(&self, version: &str, kind: &str) -> (ApiResource, Scope) {
        let key = (version.to_owned(), kind.to_owned());
        if let Some((resource, scope)) = self.kinds.borrow().get(&key) {
            return (resource.clone(), scope.clone());
        }
        let (group, number) = version.split_once('/').unwrap_or(("", version));
        let wanted = GroupVersionKind::gvk(group, number, kind);
        let (resource, capabilities) = self
            .runtime
            .block_on(pinned_kind(&self.client, &wanted))
            .unwrap_or_else(|error| panic!("the server does not know {version} {kind}: {error}"));
        self.kinds.borrow_mut().insert(key, (resource.clone(), capabilities.scope.clone()));
        (resource, capabilities.scope)
    }

    fn send(&self, method: Method, path: &str, content_type: &str, body: &Value) -> Result<Value, kube::Error> {
        let bytes = if body.is_null() { Vec::new() } else { serde_json::to_vec(body).unwrap() };
        let request =
            Request::builder().method(method).uri(path).header("Content-Type", content_type).body(bytes).unwrap();
        self.runtime.block_on(self.client.request(request))
    }
}

/// The documents of a YAML text that hold something.
pub fn documents(text: &str) -> Vec<Value> {
    use serde::Deserialize;
    let all = serde_yaml::Deserializer::from_str(text).map(|document| Value::deserialize(document).unwrap());
    all.filter(|value| !value.is_null()).collect()
}
