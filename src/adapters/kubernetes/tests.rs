//! What is asked of the API server: an API server without objects, which remembers what came.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::following::Followed;
use super::whole_call::{LastWrite, WholeCall};
use super::writes::STATUS_OF_PLANS;
use super::*;
use crate::api::node_plan::{Fidelity, NodePlan, NodePlanPhase, NodePlanStatus};
use crate::api::node_pool::NodePool;
use crate::ports::{Cluster, PortErrorKind, SeenDefinition};

/// What is never answered.
const SILENT: &str = "/api/v1/nodes";

/// A request that was not only a look.
#[derive(Clone, Debug)]
struct Asked {
    method: String,
    path: String,
    body: Value,
}

/// Answers every list with nothing, says nothing to watches, and takes everything else.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<Vec<Asked>>>);

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let server = server.clone();
            async move {
                let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
                if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
                    std::future::pending::<()>().await;
                }
                let body = request.into_body().collect().await.unwrap().to_bytes();
                if path == SILENT {
                    std::future::pending::<()>().await;
                }
                let answer = if method == "GET" {
                    json!({ "metadata": { "resourceVersion": "1" }, "items": [] })
                } else {
                    let body = serde_json::from_slice(&body).unwrap_or_default();
                    server.0.lock().unwrap().push(Asked { method, path, body });
                    json!({ "kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201 })
                };
                let response = http::Response::builder().header("content-type", "application/json");
                Ok::<_, Infallible>(response.body(Body::from(answer.to_string().into_bytes())).unwrap())
            }
        });
        Client::new(service, "default")
    }

    fn cluster(&self) -> KubernetesCluster {
        KubernetesCluster::watch(&connection_of(self.client()), Leadership::alone())
    }

    fn only(&self) -> Asked {
        let asked = self.0.lock().unwrap();
        assert_eq!(asked.len(), 1, "{asked:?}");
        asked[0].clone()
    }
}

/// One client for everything.
pub(super) fn connection_of(client: Client) -> Connection {
    let lease_written = LastWrite::default();
    let asked = client.clone();
    let inner = tower::service_fn(move |request| {
        let client = asked.clone();
        async move { client.send(request).await }
    });
    let electing = WholeCall { inner, limit: Duration::from_secs(4), last_write: lease_written.clone() };
    Connection {
        client: client.clone(),
        acting: client.clone(),
        watching: client,
        electing: Client::new(electing, "default"),
        lease_written,
        address: "https://api.example.com".to_owned(),
        certificates: Vec::new(),
        namespace: "default".to_owned(),
        calls: Calls::default(),
        time: ServerTime::default(),
    }
}

#[tokio::test]
async fn an_eviction_is_of_one_pod_and_not_of_another_of_its_name() {
    let server = Server::default();
    server.cluster().evict("shop", "web-0", "0b5c").await.unwrap();
    let Asked { method, path, body } = server.only();
    assert_eq!((method.as_str(), path.as_str()), ("POST", "/api/v1/namespaces/shop/pods/web-0/eviction"));
    let expected = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": { "namespace": "shop", "name": "web-0" },
        "deleteOptions": { "preconditions": { "uid": "0b5c" } },
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn what_is_deleted_is_what_was_seen() {
    let seen = SeenDefinition {
        kind: "CapacityBuffer",
        name: "shop/spare".to_owned(),
        uid: "0b5c".to_owned(),
        resource_version: "71".to_owned(),
    };
    let server = Server::default();
    server.cluster().prune(&seen).await.unwrap();
    let Asked { method, path, body } = server.only();
    let expected = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/shop/capacitybuffers/spare";
    assert_eq!((method.as_str(), path.as_str()), ("DELETE", expected));
    assert_eq!(body, json!({ "preconditions": { "uid": "0b5c", "resourceVersion": "71" } }));

    let server = Server::default();
    server.cluster().forget_plan("plan-1", "77aa").await.unwrap();
    assert_eq!(server.only().body, json!({ "preconditions": { "uid": "77aa" } }));
}

/// Somebody, or a newer version, wrote what this one can not read, in one field or another.
#[tokio::test]
async fn of_a_plan_that_can_not_be_read_every_field_is_written() {
    let page = NodePlan::page(0).status.unwrap();
    let all = NodePlanStatus {
        observed_generation: Some(1),
        text: "text".to_owned(),
        moves_begun: vec![1],
        fidelity: Some(Fidelity::default()),
        history: vec![json!({})],
        conditions: vec![
            serde_json::from_value(json!({ "type": "Approved", "status": "True", "reason": "", "message": "",
            "lastTransitionTime": "2026-11-20T00:00:00Z" }))
            .unwrap(),
        ],
        ..page
    };
    let all = json!(all);
    let fields: BTreeSet<&str> = all.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields, STATUS_OF_PLANS.into());
    let seen = |moves_begun: Value, version: &str| -> watched::Watched<NodePlan> {
        let mut object = json!(NodePlan::page(0));
        object["metadata"]["name"] = json!("plan-1");
        object["metadata"]["uid"] = json!("0b5c");
        object["metadata"]["resourceVersion"] = json!(version);
        object["status"]["movesBegun"] = moves_begun;
        serde_json::from_value(object).unwrap()
    };
    for (moves_begun, is_whole) in [(json!([1]), false), (json!("none"), true)] {
        let server = Server::default();
        let cluster = server.cluster();
        cluster.node_plans.changed(seen(json!([1]), "1"));
        cluster.node_plans.changed(seen(moves_begun, "2"));
        let mut plan = seen(json!([1]), "1").object.unwrap();
        plan.status = Some(NodePlanStatus { phase: NodePlanPhase::Superseded, ..NodePlanStatus::default() });
        // The answer of this server is no plan.
        _ = cluster.record_plan(&plan).await;
        let Asked { method, path, body } = server.only();
        assert_eq!((method.as_str(), path.as_str()), ("PATCH", "/apis/cutlist.dev/v1alpha1/nodeplans/plan-1/status"));
        let status = body["status"].as_object().unwrap();
        assert_eq!((&status["phase"], &status["movesBegun"]), (&json!("Superseded"), &Value::Null));
        assert_eq!(status.contains_key("conditions"), is_whole, "{body}");
    }
}

#[test]
fn what_is_written_as_it_was_seen_keeps_its_version() {
    let pool = json!({
        "metadata": { "name": "general", "uid": "0b5c", "resourceVersion": "71" },
        "spec": { "template": { "spec": {
            "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
            "requirements": [],
        } } },
    });
    let watched: watched::Watched<NodePool> = serde_json::from_value(pool).unwrap();
    assert_eq!(watched.object.unwrap().metadata.resource_version.as_deref(), Some("71"));
}

#[tokio::test(start_paused = true)]
#[expect(clippy::disallowed_methods, reason = "the test's own time, which passes by itself")]
async fn a_kind_that_was_never_read_is_named_and_nothing_is_seen_without_it() {
    let cluster = Server::default().cluster();
    for seconds in [10, 20] {
        let began = tokio::time::Instant::now();
        let error = cluster.observe().await.unwrap_err();
        assert_eq!((error.kind, began.elapsed().as_secs()), (PortErrorKind::Temporary, 10), "{seconds}");
        let never_read = cluster.never_read();
        assert!(never_read.kinds.keys().eq(["nodes"]), "{never_read:?}");
        assert!(never_read.kinds["nodes"].why.starts_with("list nodes: "), "{never_read:?}");
    }
}

#[tokio::test(start_paused = true)]
#[expect(clippy::disallowed_methods, reason = "the test's own time, which passes by itself")]
async fn a_look_at_what_is_there_now_ends_without_an_answer() {
    let cluster = Server::default().cluster();
    let began = tokio::time::Instant::now();
    let error = cluster.nodes_now().await.unwrap_err();
    assert_eq!((error.kind, began.elapsed().as_secs()), (PortErrorKind::Temporary, 20));
}
